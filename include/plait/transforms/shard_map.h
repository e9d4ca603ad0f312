// shard_map: a function of one place of a mesh becomes a function of whole arrays, which runs in
// all places at once. Each place has a block of every argument that its spec divides, and the whole
// of the others; what places give each other is said by lax::psum and its kind, over the names of
// the mesh's axes.
//
// The places are the ranks of a job (`plait run -n 4`), where there is one; a process that is alone
// has them all, and gives the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/mesh.h>
#include <plait/transforms/transforms.h>

namespace plait {

// Places in a grid, whose axes have names. In a job there are as many as ranks, numbered row-major.
class Mesh {
 public:
  // ValueError for shapes and names that do not fit each other, or not the job.
  Mesh(std::vector<std::int64_t> shape, std::vector<std::string> axis_names);
  const std::vector<MeshAxis>& axes() const { return axes_; }
  std::int64_t size() const;  // the number of places
  // Of names for each axis of an array, of which those of no name are whole. ValueError for what is
  // no axis, or is there twice.
  MeshSpec spec(const std::vector<std::vector<std::string>>& names, const std::string& what) const;

 private:
  std::vector<MeshAxis> axes_;
};

namespace flat {

// What function gives for the blocks of inputs, each whole again. in_specs: by input; out_specs
// gives them for so many outputs, and says which is meant in messages. ShapeError where blocks do
// not divide an input; ValueError for an output that differs along an axis which its spec does not
// name.
struct OutSpecs {
  std::function<std::vector<MeshSpec>(std::size_t num_outputs)> specs;
  std::function<std::string(std::size_t output)> name;
};
Arrays shard_map(const Function& function, const Mesh& mesh, std::span<const MeshSpec> in_specs,
                 const OutSpecs& out_specs, std::span<const Array> inputs, std::string_view name);

}  // namespace flat
}  // namespace plait
