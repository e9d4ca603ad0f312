// Primitives of programs that run in several places of a mesh at once: what shard_map is made of.
// The functions over named axes (lax::psum, all_gather, ...; primitives/collectives.h) are these
// inside shard_map. Not part of primitives.h.
//
// A value varies along axes of the mesh, which its type says, or all places have the same. Programs
// are compiled for one place of a job of several, or for all places in one process, one after the
// other (lib/compile/places.cpp).
//
//   pvary            the same value, as one that varies along `axes`; its transpose sums
//   mesh_reduce      the sum, max or min (`kind`) over the places along `axis`, which varies no
//   more mesh_all_gather, mesh_all_to_all, mesh_ppermute, mesh_axis_index
//                    as all_gather and its like, along an axis of a mesh
//   mesh_invariant   the value of the first place along `axis`, for all: of values that are said to
//                    be the same in all places, and whose types do not say so. Its transpose gives
//                    each its part
//   shard            the block of an array that belongs to a place; `spec` says along which axes of
//                    the mesh each axis is divided. Its transpose is
//   unshard          the array whose blocks these are
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

extern const Primitive pvary_p, mesh_reduce_p, mesh_all_gather_p, mesh_all_to_all_p,
    mesh_ppermute_p, mesh_axis_index_p, mesh_invariant_p, shard_p, unshard_p;

// The axes along which the places of a program give each other something, or differ, at any depth.
MeshAxes communicated(const Jaxpr& program);
// Those along which they give each other something: all have to come by.
MeshAxes exchanged(const Jaxpr& program);
// ValueError where which of these programs a place runs, or how often, differs along axes along
// which they exchange something: some places would wait for others that never come by.
void require_same_ways(MeshAxes predicate, std::span<const Jaxpr> programs, std::string_view name,
                       const std::string& what);

// For each axis of an array the axes of a mesh along which it is divided, the outermost first.
struct MeshSpec {
  std::vector<std::vector<MeshAxis>> parts;

  MeshAxes axes() const;
  std::int64_t num_parts(std::size_t axis) const;  // the product of the sizes
  // "x:4@2|y:2+z:2|": one part for each axis.
  std::string to_string() const;
  static MeshSpec from_string(std::string_view text);
  bool operator==(const MeshSpec&) const = default;
};

namespace places {

// What equations over a mesh say in their parameters axis and spec.
MeshAxis axis_of(const Params& params);
MeshSpec spec_of(const Params& params);
MeshAxes axes_in(const std::string& text);  // of "x:4@2,y:2"

// These take axes of a mesh; x is made to vary along them where it does not.
Array reduce(Operand x, const std::string& kind, const MeshAxis& axis);
Array all_gather(Operand x, const MeshAxis& axis, int at);  // along a new axis
Array all_to_all(Operand x, const MeshAxis& axis, int split, int concat);
Array ppermute(Operand x, const MeshAxis& axis, const Shape& from, const Shape& to);
Array axis_index(const MeshAxis& axis);
Array invariant(Operand x, const MeshAxis& axis);
// ShapeError where the parts do not divide an axis.
Array shard(Operand x, const MeshSpec& spec);
Array unshard(Operand x, const MeshSpec& spec);

}  // namespace places
}  // namespace plait
