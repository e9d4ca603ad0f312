// Programs with named sizes, masks and ragged batches, the table of rules, and facts about the
// machine.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/transforms/specs.h>

#include <plait/base/memory.h>
#include <plait/base/pool.h>
#include <plait/compile/backend.h>
#include <plait/trace/sizes.h>
#include <plait/transforms/transforms.h>

namespace plait::python {

Spec to_spec(PyObject* object) {
  if (object == Py_None) return Spec();
  if (PyUnicode_Check(object)) return Spec(utf8_of(object));
  if (!PyObject_HasAttrString(object, "shape"))
    throw DtypeError("the spec " + text_of(object) + " of type " + type_name_of(object) +
                         " stands for no argument",
                     "give text such as \"n d\" or \"i32[n]\", None, or an array of that type");
  return Spec(to_aval(object));
}

namespace {

std::vector<Spec> to_specs(py::handle sequence) {
  std::vector<Spec> specs;
  for (py::handle item : sequence) specs.push_back(to_spec(item.ptr()));
  return specs;
}

}  // namespace

void add_programs(py::module_& module) {
  module.def("trace_with_specs", [](py::object function, py::object leaves, const std::string& name,
                                    const std::vector<std::string>& constraints) {
    TransformScope scope("make_jaxpr", name);
    std::vector<std::optional<Aval>> actual;
    for (py::handle leaf : leaves) {
      const bool value = !leaf.is_none() && !PyUnicode_Check(leaf.ptr());
      actual.push_back(value ? std::optional<Aval>(to_aval(leaf.ptr())) : std::nullopt);
    }
    const std::vector<Spec> specs = to_specs(leaves);
    const Traced traced = trace_with_specs(to_function(function, name), specs, actual, "make_jaxpr",
                                           Constraints(constraints));
    return py::make_tuple(jaxpr_object(traced.jaxpr), from_arrays(traced.captured));
  });
  module.def("instantiate", [](const Jaxpr& jaxpr, py::dict sizes) {
    std::map<std::string, Dim> values;
    for (auto [name, value] : sizes)
      values.emplace(utf8_of(name.ptr()), to_dim(value.ptr(), {"instantiate"}));
    return instantiate(jaxpr, values);
  });
  module.def("flat_mask", [](py::object function, py::object inputs, py::object in_shapes,
                             py::object out_shapes, py::dict sizes, const std::string& name,
                             py::object place, const std::vector<std::string>& constraints) {
    TransformScope scope("mask", name);
    const ArgumentNames names(to_names(place));
    flat::MaskOptions options;
    options.in_shapes = to_specs(in_shapes);
    if (!out_shapes.is_none())
      options.out_shapes = [&](std::size_t) { return to_specs(out_shapes()); };
    for (auto [key, value] : sizes)
      options.sizes.emplace(utf8_of(key.ptr()),
                            to_array(value.ptr(), {"mask", utf8_of(key.ptr())}));
    return from_arrays(flat::mask(to_function(function, name), to_arrays(inputs), options,
                                  Constraints(constraints)));
  });
  module.def("pad_ragged", [](py::object arrays, py::object length) {
    const Arrays list = to_arrays(arrays);
    const Ragged padded =
        ragged(list, length.is_none() ? std::nullopt : std::optional<Dim>(to_dim(length.ptr())));
    return py::make_tuple(to_python(padded.data), to_python(padded.lengths));
  });
  module.def("unpad_ragged", [](py::object data, py::object lengths) {
    return from_arrays(Ragged{to_array(data.ptr()), to_array(lengths.ptr())}.arrays());
  });
  module.def("coverage", [](const std::string& kind) {
    py::list rows;
    for (const Coverage& row : coverage(kind))
      rows.append(py::make_tuple(row.primitive, row.state, row.file, row.line));
    return rows;
  });
  module.def("rule_kinds", [] {
    py::list kinds;
    for (const AnyRuleTable* table : AnyRuleTable::all()) kinds.append(std::string(table->kind()));
    return kinds;
  });
  module.def("parse_jaxpr", [](const std::string& text) { return parse(text); });
  module.def("missing_backends", [] {
    py::list missing;
    for (const MissingBackend& one : missing_backends())
      missing.append(py::make_tuple(one.name, one.reason));
    return missing;
  });
  module.def("machine_info", [] {
    py::dict facts;
    facts["threads"] = num_threads();
    std::string names;
    for (const Backend* backend : backends_of())
      names += (names.empty() ? "" : ", ") + std::string(backend->name());
    for (const MissingBackend& missing : missing_backends())
      if (!missing.of_device) names += "; " + missing.name + " is missing: " + missing.reason;
    facts["backends"] = names;
    facts["isa"] = __builtin_cpu_supports("avx512f") ? "avx512" : "avx2";
    const MemoryStats memory = memory_stats();
    facts["allocated bytes"] = memory.bytes_in_use;
    facts["cached bytes"] = memory.bytes_cached;
    return facts;
  });
  module.def(
      "memory_stats",
      [] {
        const MemoryStats memory = memory_stats();
        py::dict facts;
        facts["bytes_in_use"] = memory.bytes_in_use;
        facts["bytes_cached"] = memory.bytes_cached;
        facts["cache_limit"] = memory.cache_limit;
        return facts;
      },
      "The memory of arrays, in bytes: in use; freed and kept for the next ones; and how much may "
      "be "
      "kept.");
  module.def(
      "clear_memory", [] { without_gil([] { clear_memory(); }); },
      "Returns memory that was freed and kept to the system.");
  module.def(
      "set_cache_limit",
      [](py::object bytes) {
        const Dim wanted = to_dim(bytes.ptr(), {"set_cache_limit", "bytes"});
        if (!wanted.is_constant() || wanted.constant() < 0)
          throw ValueError("set_cache_limit: " + wanted.to_string() + " is no number of bytes",
                           "give an integer, 0 or more");
        return without_gil([&] { return set_cache_limit(std::size_t(wanted.constant())); });
      },
      py::arg("bytes"),
      "How many bytes of freed memory may be kept from now on; gives what it was before.\n\n"
      "At first it is a quarter of the memory that the machine, or the container, has, and at "
      "most\n"
      "4 GiB. 0 keeps only small blocks. ValueError for what is no number of bytes.");
}

}  // namespace plait::python
