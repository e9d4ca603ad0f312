// See work.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/work.h"

#include <plait/primitives/primitives.h>
#include <plait/rules/motion.h>

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr double scalar = 0.5, byte_in_lanes = 0.02;

bool is_division(const Primitive& primitive) {
  return primitive == div_p || primitive == rem_p || primitive == sqrt_p;
}
// In additions.
double weight_of(const Primitive& primitive) {
  constexpr double division = 4, function = 12;
  return is_division(primitive) ? division : is_function(primitive) ? function : 1;
}

}  // namespace

bool is_function(const Primitive& primitive) {
  return !is_division(primitive) && !moves_as(primitive, Motion::cheap) &&
         !moves_as(primitive, Motion::layout);
}

double Work::of(const Block& block, Value lane) const {
  double sum = 0;
  for (const Statement& s : block) sum += of(s, lane);
  return sum;
}

double Work::of(const Statement& s, Value lane) const {
  constexpr double usual_steps = 16;         // of a while
  constexpr double addition_in_order = 1.3;  // waits for the one before it
  const bool is_in_lanes = lane != none;
  double inner = 0;
  for (const Block& block : s.blocks)
    inner += of(block, is_in_lanes               ? lane
                       : s.is_parallel           ? s.value
                       : s.kind == Kind::combine ? s.counter
                                                 : none);
  const auto in_lanes = [&] {
    return byte_in_lanes / 2 * double(size_of(program_.dtypes[std::size_t(s.value)]));
  };
  switch (s.kind) {
    case Kind::compute:
      return weight_of(*s.primitive) * (is_in_lanes ? in_lanes() : scalar);
    case Kind::load:
    case Kind::store:
      return of_access(s.place, lane);
    case Kind::combine:
      return double(s.steps) *
             (inner + (s.is_in_order && !is_in_lanes ? addition_in_order : in_lanes()));
    case Kind::repeat:
      return double(s.steps) * (inner + (s.is_parallel ? 0 : scalar));
    case Kind::loop:
      return usual_steps * inner;
    case Kind::copy:
      return double(num_elements(s.shape)) * 2 * byte_in_lanes * double(bytes_of(s.place));
    default:
      return scalar + inner;
  }
}

// Lanes whose elements do not lie side by side are loaded and stored one by one.
double Work::of_access(const Place& place, Value lane) const {
  if (lane == none) return scalar;
  for (const Place::Term& term : place.terms)
    if (term.index == lane && term.stride != 1) return scalar;
  return byte_in_lanes * double(bytes_of(place));
}

}  // namespace plait::codegen
