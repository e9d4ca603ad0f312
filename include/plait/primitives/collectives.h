// Communication along a named axis: what examples of vmap(f, axis_name="i") give each other, or the
// places of a mesh inside shard_map (primitives/mesh.h). The
// primitives, and the functions of plait::lax under JAX's names. Not part of primitives.h.
//
// Each is an operation on one example, and vmap of that name makes it an operation on the batch: a
// sum, a transpose, or nothing. ValueError outside of such an axis. Along several axes examples
// are numbered with the last axis the fastest.
//
// Derivatives are those of the whole batch: psum transposes to psum, all_gather to a sum of what
// every example gives back, ppermute to the inverse permutation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

extern const Primitive psum_p, pmax_p, pmin_p, all_gather_p, all_to_all_p, ppermute_p, axis_index_p;

namespace lax {

// The name of an axis, or several: "data", or {"data", "model"}.
struct AxisNames {
  AxisNames(const char* name) : names{name} {}                                // NOLINT
  AxisNames(std::string name) : names{std::move(name)} {}                     // NOLINT
  AxisNames(std::vector<std::string> several) : names(std::move(several)) {}  // NOLINT
  AxisNames(std::initializer_list<const char*> several) : names(several.begin(), several.end()) {}
  std::vector<std::string> names;
};

// The sum, or extreme, of x over the examples, the same for each.
Array psum(Operand x, const AxisNames& axis_name);
Array pmax(Operand x, const AxisNames& axis_name);
Array pmin(Operand x, const AxisNames& axis_name);
Array pmean(Operand x, const AxisNames& axis_name);
// The x of all examples, along a new axis; tiled: joined along an axis that there is.
Array all_gather(Operand x, const AxisNames& axis_name, int axis = 0, bool tiled = false);
// The same as a value that does not vary along these axes of a mesh: its cotangent is divided among
// the places, and not summed.
Array all_gather_invariant(Operand x, const AxisNames& axis_name, int axis = 0, bool tiled = false);
// The part of the sum that belongs to the example: the axis has one slice for each, and goes;
// tiled: as many slices for each, and the axis stays.
Array psum_scatter(Operand x, const AxisNames& axis_name, int scatter_dimension = 0,
                   bool tiled = false);
// Slice j along split_axis goes to example j, which gets one of each example along concat_axis. The
// split axis goes, and there is a new axis at concat_axis; tiled: both are axes that there are.
Array all_to_all(Operand x, const AxisNames& axis_name, int split_axis, int concat_axis,
                 bool tiled = false);
// Pairs of source and destination.
using Permutation = std::vector<std::pair<int, int>>;
// The x of the example that perm sends to this one; zeros where
// there is none. ValueError unless sources, and destinations, differ.
Array ppermute(Operand x, const AxisNames& axis_name, const Permutation& perm);
// The x of example perm[i], for example i.
Array pshuffle(Operand x, const AxisNames& axis_name, const std::vector<int>& perm);
// x with an axis exchanged for the named one, which has its size.
Array pswapaxes(Operand x, const AxisNames& axis_name, int axis);
// x as a value that varies along an axis of the mesh of shard_map: each place has its own, the same
// number so far. Its cotangent is the sum over the places. Elsewhere x itself.
Array pvary(Operand x, const AxisNames& axis_name);
// The same, of x that varies along none of the axes: ValueError for one that does, and for kinds of
// values other than "varying".
Array pcast(Operand x, const AxisNames& axis_name, const std::string& to);
// The number of the example, an int32; and how many there are.
Array axis_index(const AxisNames& axis_name);
Dim axis_size(const AxisNames& axis_name);

}  // namespace lax
}  // namespace plait
