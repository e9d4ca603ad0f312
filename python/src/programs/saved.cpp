// Saved programs for Python: files, programs and their entries over flat lists of arrays;
// _programs.py handles trees.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/program/program.h>

#include <utility>

namespace plait::python {
namespace {

// The structure as a nested tuple: (kind, name of the class, keys, parts).
py::object describe(const TreeDef& def) {
  static constexpr const char* kinds[] = {"leaf", "none", "tuple", "list", "dict", "record"};
  py::list parts;
  for (const TreeDef& child : def.children()) parts.append(describe(child));
  return py::make_tuple(kinds[int(def.kind())], def.type().name, def.keys(), parts);
}

TracedFunction to_traced(const py::dict& parts) {
  TracedFunction traced;
  traced.jaxpr = jaxpr_of(parts["jaxpr"]);
  traced.constants = to_arrays(parts["constants"]);
  traced.arguments = treedef_of(parts["arguments"]);
  traced.result = treedef_of(parts["result"]);
  traced.constant_names = parts["constant_names"].cast<std::vector<std::string>>();
  traced.argument_names = parts["argument_names"].cast<std::vector<std::string>>();
  traced.example = to_arrays(parts["example"]);
  return traced;
}

std::map<std::string, Array> to_named_arrays(const py::dict& dict) {
  std::map<std::string, Array> arrays;
  for (auto [name, value] : dict)
    arrays.emplace(utf8_of(name.ptr()), to_array(value.ptr(), {"load", "constants"}));
  return arrays;
}

}  // namespace

// The result of trace(), and a pair (node, NumPy array or None) for each constant, which are its
// second item. By these pairs _captures.py finds where the user keeps the arrays.
py::tuple trace_with_origins(const py::function& trace) {
  struct Recording {
    Conversions made;
    Conversions* const outer = std::exchange(conversions, &made);
    ~Recording() { conversions = outer; }
  } recording;
  const py::tuple result = trace();
  py::list origins;
  for (const Array& array : to_arrays(result[1])) {
    py::object numpy = py::none();
    for (const auto& [converted, object] : recording.made.made)
      if (converted.is_same(array)) numpy = object;
    origins.append(py::make_tuple(reinterpret_cast<std::uintptr_t>(array.node()), numpy));
  }
  return py::make_tuple(result[0], result[1], origins);
}

void add_saved(py::module_& module) {
  auto entry =
      py::class_<Entry>(module, "ProgramEntry")
          .def_property_readonly("name", &Entry::name)
          .def_property_readonly("jaxpr",
                                 [](const Entry& entry) { return jaxpr_object(entry.jaxpr()); })
          .def_property_readonly("argument_names", &Entry::argument_names)
          .def_property_readonly("constant_names", &Entry::constant_names)
          .def_property_readonly("constants",
                                 [](const Entry& entry) { return from_arrays(entry.constants()); })
          .def_property_readonly("has_example", &Entry::has_example)
          .def("arguments", [](const Entry& entry) { return describe(entry.arguments()); })
          .def("result", [](const Entry& entry) { return describe(entry.result()); })
          .def("call",
               [](const Entry& entry, py::object structure, py::object leaves) {
                 const TreeDef given = treedef_of(structure);
                 entry.check_arguments(given);  // before the leaves are converted
                 return from_arrays(entry(entry.arranged(given, to_arrays(leaves))));
               })
          .def("with_constants",
               [](const Entry& entry, const py::dict& constants) {
                 return entry.with_constants(to_named_arrays(constants));
               })
          .def("with_jaxpr", &Entry::with_jaxpr)
          .def("verify", &Entry::verify);
  auto program = py::class_<Program>(module, "ProgramData")
                     .def_property_readonly("entries", &Program::entries)
                     .def_property_readonly("meta", &Program::meta)
                     .def_property_readonly("licence", &Program::licence);
  forbid_construction(entry);
  forbid_construction(program);
  module.def("save_program",
             [](const std::string& path, const py::dict& functions,
                const std::map<std::string, std::string>& meta, const std::string& licence,
                bool constants, bool test_vectors, bool sources) {
               std::map<std::string, TracedFunction> traced;
               for (auto [name, parts] : functions)
                 traced.emplace(utf8_of(name.ptr()), to_traced(parts.cast<py::dict>()));
               save(path, traced, {meta, licence, constants, test_vectors, sources});
             });
  module.def("trace_with_origins", trace_with_origins);
  module.def("load_program",
             [](const std::string& path, bool verify, const py::dict& constants, bool map_memory) {
               return load(path, {verify, to_named_arrays(constants), map_memory});
             });
}

}  // namespace plait::python
