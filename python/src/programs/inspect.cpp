// Inspection of programs for Python: summaries, generated code and differences of jaxprs, and
// staged programs. _inspect.py traces functions for them.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/inspect/conformance.h>
#include <plait/inspect/inspect.h>
#include <plait/trace/staged.h>

namespace plait::python {
namespace {

py::list aval_list(std::span<const Aval> avals) {
  py::list list;
  for (const Aval& aval : avals) list.append(aval_object(aval));
  return list;
}

// A function of (sizes, arrays) that calls a Python function with all of them.
SizedFunction to_sized_function(py::object callable) {
  return [shared = share(std::move(callable))](std::span<const Dim> sizes,
                                               std::span<const Array> inputs) {
    py::gil_scoped_acquire gil;
    py::tuple arguments(sizes.size() + inputs.size());
    std::size_t next = 0;
    for (const Dim size : sizes) arguments[next++] = dim_object(size);
    for (const Array& input : inputs) arguments[next++] = to_python(input);
    const py::object result =
        owned(PyObject_CallObject(static_cast<PyObject*>(shared.get()), arguments.ptr()));
    if (is_array_like(result.ptr())) return Arrays{to_array(result.ptr(), {"staged"})};
    return to_arrays(result);
  };
}

// The programs of a primitive's samples.
std::vector<Jaxpr> sample_programs(const Primitive& primitive) {
  std::vector<Jaxpr> programs;
  const Samples::Rule* samples = Samples::table().find(primitive);
  if (!samples) return programs;
  for (const Sample& sample : (*samples)()) {
    std::vector<Aval> avals;
    for (const Sample::Input& input : sample.inputs) avals.push_back(input.aval);
    programs.push_back(make_closed_jaxpr(
        [&](std::span<const Array> inputs) { return bind(primitive, inputs, sample.params); },
        avals));
  }
  return programs;
}

const char* kind_name(Change::Kind kind) {
  static constexpr const char* names[] = {"same", "removed", "added", "changed"};
  return names[int(kind)];
}

const char* state_name(ConformanceRow::State state) {
  static constexpr const char* names[] = {"passed", "refused", "failed"};
  return names[int(state)];
}

void add_conformance(py::module_& module) {
  py::class_<ConformanceRow>(module, "ConformanceRow",
                             "What a backend did with a primitive in one dtype.")
      .def_readonly("primitive", &ConformanceRow::primitive)
      .def_property_readonly("dtype",
                             [](const ConformanceRow& row) { return dtype_object(row.dtype); })
      .def_property_readonly("state",
                             [](const ConformanceRow& row) { return state_name(row.state); })
      .def_readonly("samples", &ConformanceRow::samples)
      .def_readonly("detail", &ConformanceRow::detail)
      .def("__repr__", [](const ConformanceRow& row) {
        return "ConformanceRow('" + row.primitive + "', " + std::string(name_of(row.dtype)) + ", " +
               state_name(row.state) + ")";
      });
  py::class_<ConformanceReport>(module, "ConformanceReport", "How a backend keeps the laws.")
      .def_readonly("backend", &ConformanceReport::backend)
      .def_readonly("rows", &ConformanceReport::rows, "One for each primitive and dtype.")
      .def("passed", &ConformanceReport::passed, "Whether no row failed.")
      .def("__str__", &ConformanceReport::to_string)
      .def("__repr__", &ConformanceReport::to_string);
  module.def(
      "conformance_of",
      [](const std::string& backend, const std::vector<std::string>& modules,
         std::vector<std::string> primitives, bool programs, const std::string& device, bool runs) {
        py::gil_scoped_release nothing_of_python;
        const Backend& known = backend_named(backend, modules);  // modules have devices too
        return conformance(known, {.primitives = std::move(primitives),
                                   .runs = runs,
                                   .programs = programs,
                                   .device = Device::named(device)});
      });
}

}  // namespace

void add_inspect(py::module_& module) {
  add_conformance(module);
  py::class_<ScopeSummary>(module, "ScopeSummary", "What one named scope of a program does.")
      .def_readonly("path", &ScopeSummary::path)
      .def_readonly("depth", &ScopeSummary::depth)
      .def_property_readonly("name", &ScopeSummary::name)
      .def_property_readonly("outputs",
                             [](const ScopeSummary& row) { return aval_list(row.outputs); })
      .def_property_readonly("parameters",
                             [](const ScopeSummary& row) { return std::int64_t(row.parameters); })
      .def_readonly("equations", &ScopeSummary::equations)
      .def_property_readonly("flops", [](const ScopeSummary& row) { return row.work.flops; })
      .def_property_readonly("bytes_read",
                             [](const ScopeSummary& row) { return row.work.bytes_read; })
      .def_property_readonly("bytes_written",
                             [](const ScopeSummary& row) { return row.work.bytes_written; })
      .def_property_readonly("known", [](const ScopeSummary& row) { return row.work.known; })
      .def_property_readonly("live_bytes",
                             [](const ScopeSummary& row) { return std::int64_t(row.live_bytes); })
      .def("__repr__", [](const ScopeSummary& row) {
        return "ScopeSummary('" + row.path + "', equations=" + std::to_string(row.equations) + ")";
      });
  py::class_<Summary>(module, "Summary", "A table of a program by named scope.")
      .def_property_readonly("rows", &Summary::rows, "The whole program, then its scopes.")
      .def_property_readonly("total", &Summary::total, "The row of the whole program.")
      .def("to_json", &Summary::to_json, "The rows as JSON text: a list of objects.")
      .def("__str__", &Summary::to_string)
      .def("__repr__", &Summary::to_string);
  py::class_<Difference>(module, "Difference",
                         "How two programs differ, equation by equation; false when they do not.")
      .def_property_readonly(
          "changes",
          [](const Difference& difference) {
            py::list list;
            for (const Change& change : difference.changes())
              list.append(py::make_tuple(
                  kind_name(change.kind),
                  change.first < 0 ? py::object(py::none()) : py::int_(change.first),
                  change.second < 0 ? py::object(py::none()) : py::int_(change.second)));
            return list;
          },
          "Triples (kind, place in the first, place in the second): 'same', 'removed', 'added' or "
          "'changed', and the numbers of the equations, None where there is none.")
      .def("__bool__", [](const Difference& difference) { return bool(difference); })
      .def("__str__", &Difference::to_string)
      .def("__repr__", &Difference::to_string);
  module.def("summary_of",
             [](const Jaxpr& jaxpr, const std::string& title) { return summary(jaxpr, title); });
  module.def("code_of", [](const Jaxpr& jaxpr, bool cpp, const std::string& name) {
    const Code made = code(jaxpr, cpp ? Language::cpp : Language::python, name);
    py::dict callables;
    for (const auto& [text, callable] : made.callables)
      callables[py::str(text)] = py::cast(callable);
    return py::make_tuple(made.text, callables);
  });
  module.def("diff_of", [](const Jaxpr& a, const Jaxpr& b) { return diff(a, b); });
  module.def("sample_programs", [](const std::string& primitive) {
    return sample_programs(primitive_named(primitive));
  });
  module.def("literal", [](const std::string& text) { return to_python(literal(text)); });
  module.def("size_of_text", [](const std::string& text) { return dim_object(Dim::parse(text)); });
  module.def("staged", [](const std::string& header, py::object function) {
    return staged(header, to_sized_function(std::move(function)));
  });
}

}  // namespace plait::python
