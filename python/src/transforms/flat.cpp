// The transforms over flat lists of arrays, for the package's Python files, which handle trees,
// argument numbers and axes. None stands for a symbolic zero.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/rules/interpret.h>
#include <plait/rules/speculate.h>
#include <plait/transforms/transforms.h>

namespace plait::python {
namespace {

std::vector<Aval> to_avals(py::handle sequence) {
  std::vector<Aval> avals;
  for (py::handle item : sequence) avals.push_back(to_aval(item.ptr()));
  return avals;
}

// --- Tracing -------------------------------------------------------------------------------------

py::tuple traced_object(const Traced& traced) {
  return py::make_tuple(jaxpr_object(traced.jaxpr), from_arrays(traced.captured));
}

py::tuple flat_make_jaxpr(py::object function, py::object avals, const std::string& transform,
                          const std::string& name, py::object sizes) {
  TransformScope scope(transform, name);
  std::vector<Dim> dims;
  for (py::handle size : sizes) dims.push_back(to_dim(size.ptr()));
  return traced_object(
      make_jaxpr(to_function(function, name), to_avals(avals), transform, std::move(dims)));
}

// Traces a branch or the body of a loop, which errors do not name as a transform. Returns the jaxpr
// and what it captures.
py::tuple trace_region(py::object function, py::object avals) {
  return traced_object(
      make_jaxpr(to_function(function, "script", Traces::part), to_avals(avals), "script"));
}

py::list flat_call(const Jaxpr& jaxpr, py::object inputs, const std::string& name) {
  return from_arrays(flat::call(jaxpr, to_arrays(inputs), name));
}

// --- Derivatives ---------------------------------------------------------------------------------

py::object tangent_object(const Tangent& tangent) {
  return tangent.is_zero() ? py::object(py::none()) : to_python(tangent.array());
}

py::list tangent_list(std::span<const Tangent> tangents) {
  py::list list;
  for (const Tangent& tangent : tangents) list.append(tangent_object(tangent));
  return list;
}

// Tangents that fit these values. The caller has converted arrays to the values' dtypes.
Tangents to_tangents(py::handle sequence, std::span<const Aval> avals) {
  Tangents tangents;
  std::size_t i = 0;
  for (py::handle item : sequence) {
    const Aval& aval = avals[i++];
    if (item.is_none() || !is_differentiable(aval))
      tangents.push_back(Tangent(tangent_aval(aval)));
    else
      tangents.push_back(Tangent(to_array(item.ptr())));
  }
  return tangents;
}

// A tangent or cotangent that fits its value, an array or a type.
py::object fitting(py::object value, py::object given, const std::string& what,
                   const std::string& which) {
  return to_python(
      flat::fitting(to_aval(value.ptr()), to_array(given.ptr(), {which}), what, which));
}

py::tuple flat_jvp(py::object function, py::object primals, py::object tangents,
                   const std::string& name) {
  TransformScope scope("jvp", name);
  const Arrays arrays = to_arrays(primals);
  const Differentiated result =
      flat::jvp(to_function(function, name), arrays, to_tangents(tangents, avals_of(arrays)));
  return py::make_tuple(from_arrays(result.outputs), tangent_list(result.tangents));
}

// The tangents of all outputs of a linear map; None for those that depend on no input.
py::list apply_linear(const flat::LinearMap& map, const py::list& tangents) {
  Arrays inputs;
  for (int input : map.inputs) inputs.push_back(to_array(tangents[input].ptr()));
  inputs.insert(inputs.end(), map.residuals.begin(), map.residuals.end());
  const Arrays results = eval_jaxpr(map.jaxpr, inputs);
  py::list list;
  std::size_t next = 0;
  for (std::size_t i = 0; i < map.outputs.size(); ++i) {
    const bool has = next < results.size() && map.outputs_with_tangent[next] == int(i);
    list.append(has ? to_python(results[next++]) : py::object(py::none()));
  }
  return list;
}

py::tuple flat_linearize(py::object function, py::object primals, const std::string& transform,
                         const std::string& name) {
  TransformScope scope(transform, name);
  const Arrays arrays = to_arrays(primals);
  const auto map = std::make_shared<flat::LinearMap>(
      flat::linearize(to_function(function, name), arrays, std::vector<bool>(arrays.size(), true)));
  const py::cpp_function apply(
      [map](py::object tangents) { return apply_linear(*map, py::list(tangents)); });
  return py::make_tuple(from_arrays(map->outputs), jaxpr_object(map->jaxpr), apply,
                        from_arrays(map->residuals), map->inputs, map->outputs_with_tangent);
}

py::list flat_transpose(const Jaxpr& jaxpr, py::object known, py::object cotangents,
                        const std::string& transform, const std::string& name) {
  TransformScope scope(transform, name);
  std::vector<TransposeInput> inputs;
  std::size_t i = 0;
  for (py::handle value : known) {
    const Aval& aval = jaxpr->input_avals()[i++];
    inputs.push_back(value.is_none() ? TransposeInput(aval)
                                     : TransposeInput(to_array(value.ptr())));
  }
  return tangent_list(
      flat::transpose(jaxpr, inputs, to_tangents(cotangents, jaxpr->output_avals())));
}

py::tuple flat_value_and_grad(py::object function, py::object primals, const std::vector<bool>& wrt,
                              const std::string& transform, const std::string& name,
                              bool holomorphic, py::object place) {
  TransformScope scope(transform, name);
  const ArgumentNames names(to_names(place));
  const Arrays arrays = to_arrays(primals);
  const flat::ValueAndGrad result =
      flat::value_and_grad(to_function(function, name), arrays, wrt, {holomorphic, transform});
  return py::make_tuple(from_arrays(result.outputs), from_arrays(result.gradients));
}

// --- Mapped transforms --------------------------------------------------------------------------

std::vector<std::optional<int>> to_axes(py::handle sequence) {
  std::vector<std::optional<int>> axes;
  for (py::handle item : sequence)
    axes.push_back(item.is_none() ? std::nullopt
                                  : std::optional<int>(to_ints(
                                        Shape{to_dim(item.ptr(), {"vmap", "out_axes"})})[0]));
  return axes;
}

std::optional<std::int64_t> to_chunk(const py::object& chunk) {
  if (chunk.is_none()) return std::nullopt;
  const Dim size = to_dim(chunk.ptr(), {"vmap", "chunk"});
  if (!size.is_constant())
    throw ValueError("vmap: chunk is the size " + size.to_string(), "give a number");
  return size.constant();
}

py::tuple flat_jacobian(py::object function, py::object primals, const std::vector<bool>& wrt,
                        const std::string& transform, const std::string& name, py::object chunk,
                        bool holomorphic, py::object place, py::object num_differentiated,
                        py::object output_place) {
  TransformScope scope(transform, name);
  const ArgumentNames names(to_names(place));
  const auto jacobian = transform == "jacfwd" ? flat::jacfwd : flat::jacrev;
  const flat::Jacobian result = jacobian(
      to_function(function, name), to_arrays(primals), wrt,
      {to_chunk(chunk), holomorphic, [&] { return num_differentiated().cast<std::size_t>(); },
       [&](std::size_t i) { return output_place(i).cast<std::string>(); }});
  return py::make_tuple(from_arrays(result.outputs), from_arrays(result.derivatives));
}

py::list flat_vmap(py::object function, py::object inputs, py::object in_axes, py::object out_axes,
                   py::object size, py::object chunk, const std::string& axis_name,
                   const std::string& name, py::object place) {
  TransformScope scope("vmap", name);
  const ArgumentNames names(to_names(place));
  flat::VmapOptions options;
  options.in_dims = to_axes(in_axes);
  options.out_dims = [out_axes](std::size_t count) {
    std::vector<std::optional<int>> axes = to_axes(out_axes());
    if (axes.size() != count)
      throw InternalError("vmap: out_axes of " + std::to_string(axes.size()) + " outputs of " +
                          std::to_string(count));
    return axes;
  };
  if (!size.is_none()) options.size = to_dim(size.ptr());
  options.chunk = to_chunk(chunk);
  options.axis_name = axis_name;
  return from_arrays(flat::vmap(to_function(function, name), to_arrays(inputs), options));
}

}  // namespace

void add_flat(py::module_& module) {
  module.def("flat_make_jaxpr", &flat_make_jaxpr, py::arg("function"), py::arg("avals"),
             py::arg("transform"), py::arg("name"), py::arg("sizes") = py::tuple());
  module.def("trace_region", &trace_region);
  module.def("may_speculate", [](py::object jaxpr) { return may_speculate(jaxpr_of(jaxpr)); });
  module.def("flat_call", &flat_call);
  module.def("fitting", &fitting);
  module.def("flat_jvp", &flat_jvp);
  module.def("flat_linearize", &flat_linearize);
  module.def("flat_transpose", &flat_transpose);
  module.def("flat_value_and_grad", &flat_value_and_grad);
  module.def("flat_jacobian", &flat_jacobian);
  module.def("flat_vmap", &flat_vmap);
}

}  // namespace plait::python
