// What a rank of a job gives other ranks and gets from them, inside a compiled program: what is
// made of the primitives of mesh.h for one place. Not part of primitives.h.
//
// All ranks run these in the same order, which is that of the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/mesh.h>

namespace plait {

extern const Primitive communicate_p, stacks_of_places_p, stack_of_place_p;

namespace communicate {

// What follows is made in the scope of a program, on this thread. Its collectives are numbered as
// they are made: no other one takes part in them, of this program or another.
class Scope {
 public:
  explicit Scope(const Jaxpr& program);  // before it is made one of ranks
  ~Scope();
  Scope(const Scope&) = delete;
  // `mine`, which was made of the program for this rank, after an exchange that shows whether all
  // ranks run the same program.
  Jaxpr agreed(const Jaxpr& mine) const;

 private:
  std::string text_, what_;
  std::uint64_t hash_, hash_around_, count_around_;
};

Array reduce(const Array& x, const MeshAxis& axis, const std::string& kind);
Array all_gather(const Array& x, const MeshAxis& axis);  // along a new first axis
Array all_to_all(const Array& x, const MeshAxis& axis);  // of slices along the first axis
// x to the place `target` along the axis, and what `source` sends; -1 is none, and gives zeros.
Array send(const Array& x, const MeshAxis& axis, std::int64_t source, std::int64_t target);

// In one process: the stacks of places as one, and the stack of a place.
Array stacks_of_places(const Arrays& stacks);
Array stack_of_place(const Array& stacks, std::size_t place);

}  // namespace communicate
}  // namespace plait
