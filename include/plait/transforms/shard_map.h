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
#include <plait/transforms/api.h>

namespace plait {

// Places in a grid, whose axes have names. In a job there are as many as ranks, numbered row-major.
class Mesh {
 public:
  // ValueError for shapes and names that do not fit each other, or not the job.
  Mesh(std::vector<std::int64_t> shape, std::vector<std::string> axis_names);
  const std::vector<MeshAxis>& axes() const { return axes_; }
  std::int64_t size() const;  // the number of places
  // The mesh of these axes: along the others values are the same. ValueError for what is no axis.
  Mesh only(const std::vector<std::string>& axis_names) const;
  // Of names for each axis of an array, of which those of no name are whole. ValueError for what is
  // no axis, or is there twice.
  MeshSpec spec(const std::vector<std::vector<std::string>>& names, const std::string& what) const;

 private:
  std::vector<MeshAxis> axes_;
};

// The number of this process among those of its job, from 0 on, and how many there are: 0 and 1 for
// one that is alone.
int process_index();
int process_count();

// For each axis of an array the axis of the mesh along which it is divided, several, or none:
// P("data", std::nullopt). Axes left out at the end are whole.
class PartitionSpec {
 public:
  struct Part {
    Part(std::nullopt_t) {}                                                // NOLINT
    Part(const char* name) : names{name} {}                                // NOLINT
    Part(std::string name) : names{std::move(name)} {}                     // NOLINT
    Part(std::vector<std::string> several) : names(std::move(several)) {}  // NOLINT
    std::vector<std::string> names;
  };
  PartitionSpec() = default;
  template <class... Parts>
    requires(sizeof...(Parts) > 0 && (std::is_convertible_v<Parts, Part> && ...))
  explicit PartitionSpec(Parts&&... parts) : names_{Part(std::forward<Parts>(parts)).names...} {}
  const std::vector<std::vector<std::string>>& names() const { return names_; }

 private:
  std::vector<std::vector<std::string>> names_;
};
using P = PartitionSpec;
// One spec for a whole tree, or a list for its parts.
using PartitionTree = PrefixTree<PartitionSpec>;

// Whether types say along which axes values vary inside shard_map: results are checked by them, and
// gradients of what is the same in all places are summed over these. Without, everything counts as
// varying, psum transposes to psum, and a result is the first place's where its spec does not name
// an axis.
enum class CheckVma { yes, no };

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
                 const OutSpecs& out_specs, std::span<const Array> inputs, std::string_view name,
                 CheckVma check_vma = CheckVma::yes);

}  // namespace flat

// f, a function of one place of the mesh, as a function of whole arrays. in_specs: one spec, or a
// list with one for each argument.
template <class F>
auto shard_map(F f, Mesh mesh, PartitionTree in_specs, PartitionTree out_specs,
               CheckVma check_vma = CheckVma::yes) {
  if constexpr (!detail::Transformable<F>) {
    return detail::Refused();
  } else {
    using Result = detail::result_of<F>;
    return typename detail::signature_of<F>::template Returning<Result>(
        [=](const auto&... arguments) -> Result {
          TransformScope scope("shard_map", "");
          const detail::Flat<F> flat(f, arguments...);
          const auto spread = [&](const PartitionTree& tree, const std::string& what,
                                  const TreeDef& structure) {
            std::vector<PartitionSpec> given;
            tree.spread(what, structure, given);
            std::vector<MeshSpec> specs;
            for (const PartitionSpec& spec : given) specs.push_back(mesh.spec(spec.names(), what));
            return specs;
          };
          const std::vector<MeshSpec> inputs =
              spread(in_specs, "shard_map: in_specs", TreeDef::tuple(flat.structures));
          const flat::OutSpecs outputs{
              [&](std::size_t) { return spread(out_specs, "shard_map: out_specs", *flat.result); },
              [&](std::size_t output) { return "output " + std::to_string(output); }};
          return unflatten<Result>(
              *flat.result,
              flat::shard_map(flat.function, mesh, inputs, outputs, flat.inputs, "f", check_vma));
        });
  }
}

}  // namespace plait
