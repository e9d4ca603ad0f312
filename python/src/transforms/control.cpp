// Control flow over flat lists of arrays, for the package's _control.py, which handles trees.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/backends/lane_work.h>
#include <plait/compile/compile.h>
#include <plait/transforms/transforms.h>

namespace plait::python {
namespace {

flat::OutputName to_output_name(const py::object& place) {
  return [place](std::size_t index) { return place(index).cast<std::string>(); };
}

std::optional<Dim> to_length(const py::object& length, const std::string& transform) {
  if (length.is_none()) return std::nullopt;
  return to_dim(length.ptr(), {transform, "length"});
}

std::optional<std::int64_t> to_count(const py::object& value, const std::string& transform,
                                     const char* name) {
  if (value.is_none()) return std::nullopt;
  const Dim dim = to_dim(value.ptr(), {transform, name});
  if (!dim.is_constant())
    throw ValueError(transform + ": " + name + " is the size " + dim.to_string(), "give a number");
  return dim.constant();
}

}  // namespace

void add_control(py::module_& module) {
  module.def("lane_work", [] {
    const LaneWork work = lane_work();
    return py::make_tuple(work.live, work.all);
  });
  module.def("flat_cond", [](py::object index, py::list branches, py::object operands,
                             const std::string& transform, const std::string& name,
                             py::object place, std::optional<bool> select) {
    TransformScope scope(transform, name);
    std::vector<Function> functions;
    for (py::handle branch : branches)
      functions.push_back(to_function(py::reinterpret_borrow<py::object>(branch), name));
    return from_arrays(flat::cond(to_array(index.ptr(), {transform, "pred"}), functions,
                                  to_arrays(operands), transform, to_output_name(place), select));
  });
  module.def(
      "flat_while", [](py::object cond, py::object body, py::object init, py::object max_steps,
                       py::object checkpoints, const std::string& transform,
                       const std::string& name, py::object place, std::optional<bool> select) {
        TransformScope scope(transform, name);
        const ArgumentNames names(to_names(place));
        return from_arrays(flat::while_loop(to_function(cond, name), to_function(body, name),
                                            to_arrays(init),
                                            {to_count(max_steps, transform, "max_steps"), select,
                                             to_count(checkpoints, transform, "checkpoints")},
                                            transform));
      });
  module.def("flat_scan", [](py::object body, py::object init, py::object xs, py::object length,
                             bool reverse, std::int64_t unroll, py::object checkpoints,
                             const std::string& transform, const std::string& name,
                             py::object place) {
    TransformScope scope(transform, name);
    const ArgumentNames names(to_names(place));
    const flat::Scanned done = flat::scan(to_function(body, name), to_arrays(init), to_arrays(xs),
                                          {to_length(length, transform), reverse, unroll,
                                           to_count(checkpoints, transform, "checkpoints")},
                                          transform);
    return py::make_tuple(from_arrays(done.carry), from_arrays(done.ys));
  });
  module.def(
      "flat_fori_loop", [](py::object lower, py::object upper, py::object body, py::object init,
                           std::int64_t unroll, const std::string& name, py::object place) {
        TransformScope scope("fori_loop", name);
        // The index is the first carry.
        const ArgumentNames names([place](std::size_t index) {
          return index == 0 ? std::string("the index") : place(index - 1).cast<std::string>();
        });
        return from_arrays(flat::fori_loop(to_array(lower.ptr(), {"fori_loop", "lower"}),
                                           to_array(upper.ptr(), {"fori_loop", "upper"}),
                                           to_function(body, name), to_arrays(init), unroll));
      });
  module.def("flat_map", [](py::object function, py::object xs, py::object batch_size,
                            const std::string& name, py::object place) {
    TransformScope scope("map", name);
    const ArgumentNames names(to_names(place));
    return from_arrays(flat::map(to_function(function, name), to_arrays(xs),
                                 to_count(batch_size, "map", "batch_size")));
  });
  module.def(
      "flat_associative_scan", [](py::object function, py::object elements, bool reverse,
                                  py::object axis, const std::string& name, py::object place) {
        TransformScope scope("associative_scan", name);
        const ArgumentNames names(to_names(place));
        const int normal = to_ints(Shape{to_dim(axis.ptr(), {"associative_scan", "axis"})})[0];
        return from_arrays(flat::associative_scan(to_function(function, name), to_arrays(elements),
                                                  reverse, normal));
      });
}

}  // namespace plait::python
