// Meshes and shard_map over flat lists of arrays, for _mesh.py.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/transforms/shard_map.h>

namespace plait::python {
namespace {

// For each axis of an array the names of axes of a mesh.
using Names = std::vector<std::vector<std::string>>;

py::list flat_shard_map(const Mesh& mesh, py::object function, const std::vector<Names>& in_specs,
                        py::object out_specs, py::object inputs, const std::string& name,
                        py::object place, bool check_vma) {
  const TransformScope scope("shard_map", name);
  const ArgumentNames names(to_names(place));
  std::vector<MeshSpec> given;
  for (const Names& names : in_specs) given.push_back(mesh.spec(names, "shard_map: in_specs"));
  std::vector<std::string> results;
  flat::OutSpecs outputs;
  outputs.specs = [&](std::size_t) {
    std::vector<MeshSpec> specs;
    for (const py::handle& each : out_specs()) {
      const auto [names, result] = each.cast<std::pair<Names, std::string>>();
      specs.push_back(mesh.spec(names, "shard_map: out_specs"));
      results.push_back(result);
    }
    return specs;
  };
  outputs.name = [&](std::size_t output) { return results[output]; };
  return from_arrays(flat::shard_map(to_function(function, name), mesh, given, outputs,
                                     to_arrays(inputs), name,
                                     check_vma ? CheckVma::yes : CheckVma::no));
}

}  // namespace

void add_mesh(py::module_& module) {
  py::class_<Mesh>(module, "FlatMesh")
      .def(py::init<std::vector<std::int64_t>, std::vector<std::string>>())
      .def("only", &Mesh::only)
      .def("check", [](const Mesh& mesh, const Names& names, const std::string& what) {
        mesh.spec(names, what);
      });
  module.def("flat_shard_map", flat_shard_map);
  // The names of axes along which an array varies.
  module.def("varying_axes", [](py::object array) {
    std::vector<std::string> names;
    for (const MeshAxis& axis : to_arrays(py::make_tuple(array))[0].aval().varying.axes())
      names.push_back(axis.name);
    return names;
  });
  // This process among those of its job: (number, how many); (0, 1) where it is alone.
  module.def("rank_and_size", [] { return std::pair(process_index(), process_count()); });
}

}  // namespace plait::python
