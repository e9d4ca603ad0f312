// The transforms over flat lists of arrays, for the package's Python files, which know of trees,
// argument numbers and axes. None stands for a symbolic zero.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/implicit.h>
#include <plait/ops.h>
#include <plait/transforms.h>

namespace plait::python {
namespace {

py::object tangent_object(const Tangent& tangent) {
  return tangent.is_zero() ? py::object(py::none()) : to_python(tangent.array());
}

py::list tangent_list(std::span<const Tangent> tangents) {
  py::list list;
  for (const Tangent& tangent : tangents) list.append(tangent_object(tangent));
  return list;
}

// Tangents that fit these values; an array is converted to the value's own dtype by the caller.
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

std::vector<Aval> to_avals(py::handle sequence) {
  std::vector<Aval> avals;
  for (py::handle item : sequence) avals.push_back(to_aval(item.ptr()));
  return avals;
}

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

// A Python function of a function of leaves, and of leaves.
flat::Solver to_solver(py::object solver) {
  if (solver.is_none()) return {};
  return [shared = share(std::move(solver))](const Function& f, std::span<const Array> y) {
    py::gil_scoped_acquire gil;
    const py::cpp_function callable(
        [f](py::object leaves) { return from_arrays(f(to_arrays(leaves))); });
    return to_arrays(borrowed(static_cast<PyObject*>(shared.get()))(callable, from_arrays(y)));
  };
}

void add_implicit(py::module_& module) {
  module.def("flat_custom_linear_solve", [](py::object matvec, py::object b, py::object solve,
                                            py::object transpose_solve, bool symmetric,
                                            const std::string& name) {
    return from_arrays(flat::custom_linear_solve(to_function(matvec, name), to_arrays(b),
                                                 to_solver(std::move(solve)),
                                                 to_solver(std::move(transpose_solve)), symmetric));
  });
  module.def("flat_custom_root", [](py::object f, py::object guess, py::object solve,
                                    py::object tangent_solve, const std::string& name) {
    TransformScope scope("custom_root", name);
    return from_arrays(flat::custom_root(to_function(f, name), to_arrays(guess),
                                         to_solver(std::move(solve)),
                                         to_solver(std::move(tangent_solve)), name));
  });
}

}  // namespace

void add_flat(py::module_& module) {
  add_implicit(module);
  module.def(
      "flat_make_jaxpr",
      [](py::object function, py::object avals, const std::string& transform,
         const std::string& name, py::object sizes) {
        TransformScope scope(transform, name);
        std::vector<Dim> dims;
        for (py::handle size : sizes) dims.push_back(to_dim(size.ptr()));
        const Traced traced =
            make_jaxpr(to_function(function, name), to_avals(avals), transform, std::move(dims));
        return py::make_tuple(jaxpr_object(traced.jaxpr), from_arrays(traced.captured));
      },
      py::arg("function"), py::arg("avals"), py::arg("transform"), py::arg("name"),
      py::arg("sizes") = py::tuple());
  module.def("flat_jvp", [](py::object function, py::object primals, py::object tangents,
                            const std::string& name) {
    TransformScope scope("jvp", name);
    const Arrays arrays = to_arrays(primals);
    const Differentiated result =
        flat::jvp(to_function(function, name), arrays, to_tangents(tangents, avals_of(arrays)));
    return py::make_tuple(from_arrays(result.outputs), tangent_list(result.tangents));
  });
  module.def("flat_linearize", [](py::object function, py::object primals,
                                  const std::string& transform, const std::string& name) {
    TransformScope scope(transform, name);
    const Arrays arrays = to_arrays(primals);
    auto map = std::make_shared<flat::LinearMap>(flat::linearize(
        to_function(function, name), arrays, std::vector<bool>(arrays.size(), true)));
    return py::make_tuple(
        from_arrays(map->outputs), jaxpr_object(map->jaxpr),
        py::cpp_function([map](py::object tangents) {
          Arrays inputs;
          const py::list given(tangents);
          for (int input : map->inputs) inputs.push_back(to_array(given[input].ptr()));
          inputs.insert(inputs.end(), map->residuals.begin(), map->residuals.end());
          const Arrays results = eval_jaxpr(map->jaxpr, inputs);
          py::list list;
          std::size_t next = 0;
          for (std::size_t i = 0; i < map->outputs.size(); ++i) {
            const bool has = next < results.size() && map->outputs_with_tangent[next] == int(i);
            list.append(has ? to_python(results[next++]) : py::object(py::none()));
          }
          return list;
        }),
        from_arrays(map->residuals), map->inputs, map->outputs_with_tangent);
  });
  module.def("flat_transpose", [](const Jaxpr& jaxpr, py::object known, py::object cotangents,
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
  });
  module.def("flat_vmap", [](py::object function, py::object inputs, py::object in_axes,
                             py::object out_axes, py::object size, py::object chunk,
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
    return from_arrays(flat::vmap(to_function(function, name), to_arrays(inputs), options));
  });
  module.def("flat_value_and_grad",
             [](py::object function, py::object primals, const std::vector<bool>& wrt,
                const std::string& transform, const std::string& name, bool holomorphic,
                py::object place) {
               TransformScope scope(transform, name);
               const ArgumentNames names(to_names(place));
               const Arrays arrays = to_arrays(primals);
               const flat::ValueAndGrad result = flat::value_and_grad(
                   to_function(function, name), arrays, wrt, {.holomorphic = holomorphic});
               return py::make_tuple(from_arrays(result.outputs), from_arrays(result.gradients));
             });
  module.def(
      "flat_jacobian",
      [](py::object function, py::object primals, const std::vector<bool>& wrt,
         const std::string& transform, const std::string& name, py::object chunk, bool holomorphic,
         py::object place, py::object num_differentiated, py::object output_place) {
        TransformScope scope(transform, name);
        const ArgumentNames names(to_names(place));
        const auto jacobian = transform == "jacfwd" ? flat::jacfwd : flat::jacrev;
        const flat::Jacobian result = jacobian(
            to_function(function, name), to_arrays(primals), wrt,
            {to_chunk(chunk), holomorphic, [&] { return num_differentiated().cast<std::size_t>(); },
             [&](std::size_t i) { return output_place(i).cast<std::string>(); }});
        return py::make_tuple(from_arrays(result.outputs), from_arrays(result.derivatives));
      });
  module.def("flat_call", [](const Jaxpr& jaxpr, py::object inputs, const std::string& name) {
    return from_arrays(flat::call(jaxpr, to_arrays(inputs), {{"name", name}}));
  });
  module.def("flat_custom_jvp", [](py::object function, py::object jvp, py::object inputs,
                                   const std::string& name) {
    TransformScope scope("custom_jvp", name);
    return from_arrays(flat::custom_jvp(to_function(function, name),
                                        to_function(jvp, "the jvp rule of " + name, Traces::part),
                                        to_arrays(inputs), name));
  });
  module.def("flat_custom_vjp", [](py::object function, py::object fwd, py::object bwd,
                                   py::object inputs, const std::string& name) {
    TransformScope scope("custom_vjp", name);
    const flat::ForwardRule forward = [shared = share(fwd)](std::span<const Array> primals) {
      py::gil_scoped_acquire gil;
      const py::tuple result = borrowed(static_cast<PyObject*>(shared.get()))(from_arrays(primals));
      return flat::Forward{to_arrays(result[0]), to_arrays(result[1])};
    };
    return from_arrays(flat::custom_vjp(to_function(function, name), forward,
                                        to_function(bwd, "the bwd rule of " + name, Traces::part),
                                        to_arrays(inputs), name));
  });
  module.def("stages_custom_rules",
             [](py::object inputs) { return flat::stages_custom_rules(to_arrays(inputs)); });
  py::class_<Callable>(module, "Policy", "Which equations' results checkpoint keeps.")
      .def("__repr__", [](const Callable& policy) { return "<policy " + policy.name() + ">"; });
  module.def("nothing_saveable", [] { return flat::nothing_saveable(); });
  module.def("everything_saveable", [] { return flat::everything_saveable(); });
  module.def("dots_saveable", [] { return flat::dots_saveable(); });
  module.def("save_only_these_names", [](py::args names) {
    std::vector<std::string> list;
    for (py::handle name : names) {
      if (!PyUnicode_Check(name.ptr()))
        throw DtypeError("save_only_these_names: " + text_of(name.ptr()) + " is no name",
                         "give the names of tags as strings");
      list.push_back(utf8_of(name.ptr()));
    }
    return flat::save_only_these_names(list);
  });
  module.def("make_policy", [](const std::string& name, py::object keep) {
    return flat::make_policy(name, [shared = share(std::move(keep))](const Equation& equation) {
      py::gil_scoped_acquire gil;
      const py::object answer =
          borrowed(static_cast<PyObject*>(shared.get()))(std::string(equation.primitive->name()));
      if (!PyBool_Check(answer.ptr()))
        throw DtypeError("checkpoint: the policy returned " + text_of(answer.ptr()),
                         "return True or False");
      return answer.is(py::bool_(true));
    });
  });
  module.def("flat_checkpoint", [](py::object function, py::object inputs, const Callable& policy,
                                   const std::string& name) {
    TransformScope scope("checkpoint", name);
    return from_arrays(
        flat::checkpoint(to_function(function, name), to_arrays(inputs), policy, name));
  });
  module.def("is_tracing", [] { return Trace::current() != nullptr; });
  module.def("have_same_trace", [](py::object a, py::object b) {
    const Array &x = array_of(a.ptr()), &y = array_of(b.ptr());
    for (const Trace* trace = Trace::current(); trace; trace = trace->parent())
      if (trace->owns(x) || trace->owns(y)) return trace->owns(x) && trace->owns(y);
    return x.is_concrete() == y.is_concrete();
  });
  module.def("is_concrete", [](py::object array) {
    return is_array(array.ptr()) && array_of(array.ptr()).is_concrete();
  });
  // Whether Python can ask for a value now: an array's number, or anything that is no array.
  module.def("is_known", [](py::object value) {
    if (is_array(value.ptr())) return array_of(value.ptr()).known_buffer().has_value();
    return !is_size(value.ptr());
  });
  // Whether what is written to an array shows in another one, or the other way round.
  module.def("is_viewed", [](py::object array) {
    const auto* handle = reinterpret_cast<const ArrayObject*>(array.ptr());
    return is_array(array.ptr()) && (handle->view || handle->shown_views || handle->hidden_views);
  });
  // Writing to these arrays warns: a function that is being traced got them for the caller's.
  module.def("mark_arguments", [](py::object arrays) {
    for (py::handle array : arrays)
      if (is_array(array.ptr())) reinterpret_cast<ArrayObject*>(array.ptr())->is_argument = true;
  });
  module.def("is_of_this_trace", [](py::object array) {
    const Trace* trace = Trace::current();
    return trace && is_array(array.ptr()) && trace->owns(array_of(array.ptr()));
  });
  // The jaxpr of a function of a list of arrays, and what it captured: a branch or the body of a
  // loop, which errors do not name as a transform.
  module.def("trace_region", [](py::object function, py::object avals) {
    const Traced traced =
        make_jaxpr(to_function(function, "script", Traces::part), to_avals(avals), "script");
    return py::make_tuple(jaxpr_object(traced.jaxpr), from_arrays(traced.captured));
  });
  module.def("is_differentiable",
             [](py::object array) { return is_differentiable(to_array(array.ptr()).aval()); });
  module.def("zeros_like", [](py::object array) {
    return to_python(lax::zeros_like(tangent_aval(to_aval(array.ptr()))));
  });
  module.def("one_like", [](py::object array) {
    return to_python(lax::full(array_of(array.ptr()).shape(), 1, array_of(array.ptr()).dtype()));
  });
  module.def("convert", [](py::object array, py::object dtype) {
    return to_python(lax::convert_element_type(to_array(array.ptr()), to_dtype(dtype.ptr())));
  });
  module.def("stop_gradient",
             [](py::object array) { return to_python(lax::stop_gradient(to_array(array.ptr()))); });
}

}  // namespace plait::python
