// Axes of a mesh, along which a program runs in several places at once, and sets of them as bits,
// which types hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// Places are numbered row-major: stride is the distance in that number of neighbours along the
// axis.
struct MeshAxis {
  std::string name;
  std::int64_t size = 1, stride = 1;
  std::int64_t coordinate(std::int64_t place) const { return place / stride % size; }
  std::string to_string() const;  // "x:4", or "x:4@2" with a stride
  // Its inverse; ValueError for other text.
  static MeshAxis from_string(std::string_view text);
  bool operator==(const MeshAxis&) const = default;
};

// A set of axes, the outermost first.
class MeshAxes {
 public:
  constexpr MeshAxes() = default;
  explicit MeshAxes(const MeshAxis& axis);  // ValueError for more than 32 in a process
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool includes(MeshAxes other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr MeshAxes operator|(MeshAxes other) const { return MeshAxes(bits_ | other.bits_); }
  constexpr MeshAxes operator&(MeshAxes other) const { return MeshAxes(bits_ & other.bits_); }
  constexpr MeshAxes without(MeshAxes other) const { return MeshAxes(bits_ & ~other.bits_); }
  constexpr MeshAxes& operator|=(MeshAxes other) { return *this = *this | other; }
  constexpr bool operator==(const MeshAxes&) const = default;
  constexpr std::uint32_t bits() const { return bits_; }
  std::vector<MeshAxis> axes() const;
  std::int64_t num_places() const;  // the product of their sizes
  std::string to_string() const;    // "x:4@2,y:2"
  // Whether a set that is not empty was ever made: if not, no type has one.
  static bool are_used();

 private:
  explicit constexpr MeshAxes(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

}  // namespace plait
