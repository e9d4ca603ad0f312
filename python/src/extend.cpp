// Primitives made in Python: their rules are Python functions, put into the same tables as those of
// the catalogue, so that every transform finds them.
//
// Rules run once per trace, except Eval, which computes on NumPy arrays each time the primitive
// runs.
// SPDX-License-Identifier: Apache-2.0
#include "atoms.h"

#include <plait/ops.h>
#include <plait/rules.h>
#include <plait/staged.h>

#include <deque>

namespace plait::python {
ParamValue to_param(py::handle value, const std::string& name) {
  PyObject* object = value.ptr();
  if (PyBool_Check(object)) return object == Py_True;
  if (std::optional<Dim> dim = as_dim(object)) return *dim;
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (PyUnicode_Check(object)) return utf8_of(object);
  if (PyTuple_Check(object) || PyList_Check(object)) {
    const auto items = py::reinterpret_borrow<py::sequence>(value);
    if (items.size() == 0 || !py::isinstance<Jaxpr>(items[0])) return to_shape(object);
    std::vector<Jaxpr> bodies;
    for (py::handle item : items) bodies.push_back(jaxpr_of(item));
    return bodies;
  }
  if (py::isinstance<Jaxpr>(value)) return value.cast<Jaxpr>();
  if (py::isinstance<Callable>(value)) return value.cast<Callable>();
  if (PyCallable_Check(object) && !PyType_Check(object))
    return Callable(py::str(value.attr("__name__")),
                    std::static_pointer_cast<PyObject>(share(borrowed(object))));
  try {
    return to_dtype(object);
  } catch (const DtypeError&) {
    throw DtypeError(
        "the parameter '" + name + "' is " + text_of(object) + " of type " + type_name_of(object),
        "parameters are bools, integers, floats, strings, dtypes, tuples of integers, jaxprs and "
        "functions");
  }
}

namespace {

struct Rule {
  std::shared_ptr<void> function;
  explicit Rule(py::object function) : function(share(std::move(function))) {}
  template <class... A>
  py::object operator()(const Params& params, A&&... arguments) const {
    return borrowed(static_cast<PyObject*>(function.get()))(
        std::forward<A>(arguments)..., **params_object(params, Callables::objects));
  }
  py::object spread(const py::object& arguments, const Params& params) const {
    return owned(PyObject_Call(static_cast<PyObject*>(function.get()), py::tuple(arguments).ptr(),
                               params_object(params, Callables::objects).ptr()));
  }
};

// A rule's results as a list: one value stands for a list of one.
py::list listed(const py::object& result) {
  if (PyList_Check(result.ptr()) || PyTuple_Check(result.ptr())) return py::list(result);
  py::list list;
  list.append(result);
  return list;
}

std::string rule_text(const char* kind, const Primitive& primitive) {
  return "the " + std::string(kind) + " rule of `" + std::string(primitive.name()) + "`";
}

void require_count(std::size_t given, std::size_t wanted, const char* kind,
                   const Primitive& primitive, const char* fix) {
  if (given != wanted)
    throw TreeError(rule_text(kind, primitive) + " returned " + std::to_string(given) +
                        " values where " + std::to_string(wanted) + " are needed",
                    fix);
}

// A tangent or cotangent that fits its value; numbers take its dtype.
Array fitted(const Array& tangent, const Aval& aval, const char* kind, const Primitive& primitive) {
  const Aval wanted = tangent_aval(aval);
  const bool fits =
      tangent.shape() == wanted.shape && (tangent.dtype() == wanted.dtype || tangent.aval().weak);
  if (!fits)
    throw ShapeError(rule_text(kind, primitive) + " returned " + tangent.aval().to_string() +
                         " where " + wanted.to_string() + " is needed",
                     "return values of the shape and dtype of what they belong to");
  return lax::convert_element_type(tangent, wanted.dtype);
}

Tangents to_tangents(const py::list& list, const std::vector<Aval>& avals, const char* kind,
                     const Primitive& primitive) {
  require_count(list.size(), avals.size(), kind, primitive,
                "return a list with one for each, None for zero");
  Tangents tangents;
  for (std::size_t i = 0; i < avals.size(); ++i) {
    if (list[i].is_none())
      tangents.push_back(Tangent(tangent_aval(avals[i])));
    else
      tangents.push_back(Tangent(fitted(to_array(py::object(list[i]).ptr(), {primitive.name()}),
                                        avals[i], kind, primitive)));
  }
  return tangents;
}

void define_rule(const Primitive& primitive, const std::string& kind, py::object function,
                 RuleOrigin origin) {
  const Primitive* p = &primitive;
  const Rule rule(std::move(function));
  if (kind == "abstract") {
    Abstract::table().set(
        primitive,
        [rule, p](std::span<const Aval> inputs, const Params& params) {
          py::gil_scoped_acquire gil;
          py::list avals;
          for (const Aval& aval : inputs) avals.append(aval_object(aval));
          std::vector<Aval> outputs;
          for (py::handle aval : listed(rule.spread(avals, params)))
            outputs.push_back(to_aval(aval.ptr(), {p->name()}));
          if (outputs.empty() && !p->is_effectful())
            throw TreeError(rule_text("abstract", *p) + " returned no type",
                            "return the type of each result, such as one of its arguments");
          return outputs;
        },
        std::move(origin));
  } else if (kind == "eval") {
    Eval::table().set(
        primitive,
        [rule, p](std::span<const View> inputs, std::span<const View> outputs,
                  const Params& params) {
          py::gil_scoped_acquire gil;
          py::list arrays;
          for (const View& input : inputs) arrays.append(to_numpy(Array(Buffer::copy_of(input))));
          const py::list results = listed(rule.spread(arrays, params));
          require_count(results.size(), outputs.size(), "eval", *p,
                        "return what the abstract rule says");
          for (std::size_t i = 0; i < outputs.size(); ++i) {
            const Buffer result = to_array(py::object(results[i]).ptr(), {p->name()}).buffer();
            const bool fits =
                result.dtype() == outputs[i].dtype && result.shape() == outputs[i].shape;
            if (!fits)
              throw ShapeError(
                  "the eval rule of `" + std::string(p->name()) + "` returned " +
                      Array(result).aval().to_string() + " where its abstract rule says " +
                      Aval{Shape::of(outputs[i].shape), outputs[i].dtype, false}.to_string(),
                  "return what the abstract rule says");
            copy_elements(result.view(), outputs[i]);
          }
        },
        std::move(origin));
  } else if (kind == "jvp") {
    Jvp::table().set(
        primitive,
        [rule, p](std::span<const Array> primals, std::span<const Tangent> tangents,
                  std::span<const Array> outputs, const Params& params) {
          py::gil_scoped_acquire gil;
          py::list directions;
          for (const Tangent& tangent : tangents)
            directions.append(to_python(tangent.instantiate()));
          return to_tangents(
              listed(rule(params, from_arrays(primals), directions, from_arrays(outputs))),
              avals_of(outputs), "jvp", *p);
        },
        std::move(origin));
  } else if (kind == "transpose") {
    Transpose::table().set(
        primitive,
        [rule, p](std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                  const Params& params) {
          py::gil_scoped_acquire gil;
          py::list arrays, known;
          for (const Tangent& cotangent : cotangents)
            arrays.append(to_python(cotangent.instantiate()));
          for (const TransposeInput& input : inputs)
            known.append(input.is_linear() ? aval_object(input.aval()) : to_python(input.known()));
          return to_tangents(listed(rule(params, arrays, known)), avals_of(inputs), "transpose",
                             *p);
        },
        std::move(origin));
  } else if (kind == "batch") {
    Batch::table().set(
        primitive,
        [rule, p](Dim size, std::span<const Batched> inputs, const Params& params) {
          py::gil_scoped_acquire gil;
          py::list arrays, dims;
          for (const Batched& input : inputs) {
            arrays.append(to_python(input.array));
            dims.append(input.dim ? py::object(py::int_(*input.dim)) : py::object(py::none()));
          }
          const py::object pair = rule(params, dim_object(size), arrays, dims);
          if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2)
            throw TreeError("the batch rule of `" + std::string(p->name()) + "` returned " +
                                text_of(pair.ptr()),
                            "return a pair: outputs, and the batch axis of each");
          const py::list results = listed(pair[py::int_(0)]), axes = listed(pair[py::int_(1)]);
          require_count(axes.size(), results.size(), "batch", *p,
                        "return as many batch axes as outputs");
          std::vector<Batched> batched;
          for (std::size_t i = 0; i < results.size(); ++i) {
            Array array = to_array(py::object(results[i]).ptr(), {p->name()});
            std::optional<int> dim;
            if (!axes[i].is_none())
              dim = normalize_axis(
                  to_ints(Shape{to_dim(py::object(axes[i]).ptr(), {p->name(), "batch axis"})})[0],
                  array.ndim(), rule_text("batch", *p));
            if (dim && !(array.shape(*dim) == size))
              throw ShapeError(rule_text("batch", *p) + " returned " + array.aval().to_string() +
                                   " with the batch axis " + std::to_string(*dim) + " for " +
                                   size.to_string() + " examples",
                               "name the axis that counts the examples");
            batched.push_back({std::move(array), dim});
          }
          return batched;
        },
        std::move(origin));
  } else if (kind == "mask") {
    Mask::table().set(
        primitive,
        [rule, p](std::span<const Masked> inputs, std::span<const Aval> outputs,
                  const Params& params, const SizeValues& sizes) {
          py::gil_scoped_acquire gil;
          py::list arrays, avals, results;
          for (const Masked& input : inputs) {
            arrays.append(to_python(input.padded));
            avals.append(aval_object(input.aval));
          }
          for (const Aval& aval : outputs) results.append(aval_object(aval));
          const py::cpp_function value(
              [&sizes](py::object size) { return to_python(sizes.value(to_dim(size.ptr()))); });
          const py::list padded = listed(rule(params, arrays, avals, results, value));
          require_count(padded.size(), outputs.size(), "mask", *p, "return one for each output");
          const Arrays made = to_arrays(padded);
          for (std::size_t i = 0; i < made.size(); ++i) {
            Shape wanted = outputs[i].shape;
            for (Dim& dim : wanted)
              if (!dim.is_constant()) dim = sizes.bound(dim);
            if (!(made[i].shape() == wanted))
              throw ShapeError(rule_text("mask", *p) + " returned " + made[i].aval().to_string() +
                                   " for " + outputs[i].to_string() + ", which is padded to (" +
                                   wanted.to_string() + ")",
                               "return arrays of the padded shape");
          }
          return made;
        },
        std::move(origin));
  } else if (kind == "decompose") {
    Decompose::table().set(
        primitive,
        [rule](std::span<const Array> inputs, const Params& params) {
          py::gil_scoped_acquire gil;
          return to_arrays(listed(rule.spread(from_arrays(inputs), params)));
        },
        std::move(origin));
  } else {
    throw ValueError("there is no rule kind '" + kind + "'",
                     "choose one of abstract, eval, jvp, transpose, batch, mask, decompose");
  }
}

// Primitives live as long as the program, as their rules do.
const Primitive& make_primitive(const std::string& name, const std::string& doc,
                                const std::string& file, int line, bool effectful) {
  static auto* primitives = new std::deque<Primitive>;
  static auto* names = new std::deque<std::string>;
  if (const Primitive* found = find_primitive(name)) {
    names->push_back(file);
    Definition definition = define(*found, doc, names->back().c_str(), line);
    if (effectful) definition.effectful();
    return *found;
  }
  names->push_back(name);
  const Primitive& primitive = primitives->emplace_back(names->back().c_str());
  names->push_back(file);
  Definition definition = define(primitive, doc, names->back().c_str(), line);
  if (effectful) definition.effectful();
  return primitive;
}

}  // namespace

void add_extend(py::module_& module) {
  module.def("make_primitive",
             [](const std::string& name, const std::string& doc, const std::string& file, int line,
                bool effectful) { make_primitive(name, doc, file, line, effectful); });
  module.def("define_rule", [](const std::string& name, const std::string& kind,
                               py::object function, const std::string& file, int line) {
    define_rule(primitive_named(name), kind, std::move(function),
                {RuleOrigin::Kind::stated, file, line, {}});
  });
  module.def("bind", [](const std::string& name, py::args inputs, py::kwargs params) -> py::object {
    Arrays arrays;
    for (py::handle input : inputs) arrays.push_back(to_array(input.ptr(), {name}));
    std::vector<Params::Entry> entries;
    for (auto [key, value] : params)
      entries.emplace_back(utf8_of(key.ptr()), to_param(value, utf8_of(key.ptr())));
    const Arrays outputs = plait::bind(name, arrays, Params(std::move(entries)));
    if (outputs.size() == 1) return to_python(outputs[0]);
    return py::tuple(from_arrays(outputs));
  });
  module.def("has_primitive",
             [](const std::string& name) { return find_primitive(name) != nullptr; });
}

}  // namespace plait::python
