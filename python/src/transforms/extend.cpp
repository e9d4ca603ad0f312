// Primitives made in Python. Their rules are Python functions, in the same tables as those of the
// catalogue, so that every transform finds them.
//
// Rules run once per trace, except Eval, which computes on NumPy arrays each time the primitive
// runs.
// SPDX-License-Identifier: Apache-2.0
#include "jaxprs/atoms.h"

#include <plait/primitives/primitives.h>
#include <plait/rules/rules.h>
#include <plait/trace/staged.h>

#include <deque>

namespace plait::python {
namespace {

// Any hashable object as a parameter. Equations compare parameters without running user code, so
// objects are compared here: equal ones of a type are one, of the latest thousand.
Callable interned(py::handle object) {
  static py::dict& known = *new py::dict;  // (type, object) -> Callable
  const py::tuple key = py::make_tuple(py::type::of(object), object);
  if (PyObject* found = PyDict_GetItemWithError(known.ptr(), key.ptr()))
    return *py::reinterpret_borrow<py::capsule>(found).get_pointer<Callable>();
  if (PyErr_Occurred()) throw py::error_already_set();
  if (known.size() == 1000) known.clear();
  const Callable made(type_name_of(object.ptr()),
                      std::static_pointer_cast<PyObject>(share(borrowed(object.ptr()))));
  known[key] = py::capsule(new Callable(made),
                           [](void* pointer) { delete static_cast<Callable*>(pointer); });
  return made;
}

// Whether a tuple or list holds sizes alone.
bool holds_sizes(const py::sequence& items) {
  return std::all_of(items.begin(), items.end(),
                     [](py::handle item) { return as_dim(item.ptr()).has_value(); });
}

}  // namespace

ParamValue to_param(py::handle value, const std::string& name) {
  PyObject* object = value.ptr();
  if (PyBool_Check(object)) return object == Py_True;
  if (std::optional<Dim> dim = as_dim(object)) return *dim;
  if (PyFloat_Check(object)) return PyFloat_AsDouble(object);
  if (PyUnicode_Check(object)) return utf8_of(object);
  if (PyTuple_Check(object) || PyList_Check(object)) {
    const auto items = py::reinterpret_borrow<py::sequence>(value);
    const bool are_jaxprs = items.size() > 0 && py::isinstance<Jaxpr>(items[0]);
    if (!are_jaxprs && PyTuple_Check(object) && !holds_sizes(items)) return interned(value);
    if (!are_jaxprs) return to_shape(object);
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
    if (PyObject_Hash(object) != -1) return interned(value);
    PyErr_Clear();
    throw DtypeError(
        "the parameter '" + name + "' is " + text_of(object) + " of type " + type_name_of(object),
        "parameters are bools, numbers, strings, dtypes, tuples of integers, jaxprs, functions, "
        "and objects that can be hashed");
  }
}

namespace {

// A rule that is a Python function. It gets the parameters of the equation as keywords.
class PythonRule {
 public:
  PythonRule(const char* kind, const Primitive& primitive, py::object function, bool reads_zeros)
      : kind_(kind),
        primitive_(&primitive),
        function_(share(std::move(function))),
        reads_zeros_(reads_zeros) {}
  const Primitive& primitive() const { return *primitive_; }
  // "the jvp rule of `name`"
  std::string to_string() const {
    return "the " + std::string(kind_) + " rule of `" + std::string(primitive_->name()) + "`";
  }
  py::object call(const py::tuple& arguments, const Params& params) const {
    return owned(PyObject_Call(static_cast<PyObject*>(function_.get()), arguments.ptr(),
                               params_object(params, Callables::objects).ptr()));
  }
  // The results as a list. A single value stands for a list of one.
  py::list call_listed(const py::tuple& arguments, const Params& params) const {
    return listed(call(arguments, params));
  }
  static py::list listed(const py::object& result) {
    if (PyList_Check(result.ptr()) || PyTuple_Check(result.ptr())) return py::list(result);
    py::list list;
    list.append(result);
    return list;
  }
  // Tangents or cotangents as arguments. Zeros are arrays, or None for a rule that reads them.
  py::list tangents(std::span<const Tangent> tangents) const {
    py::list list;
    for (const Tangent& tangent : tangents)
      list.append(reads_zeros_ && tangent.is_zero() ? py::object(py::none())
                                                    : to_python(tangent.instantiate()));
    return list;
  }
  Array array(py::handle result) const { return to_array(result.ptr(), {primitive_->name()}); }
  void require_count(std::size_t given, std::size_t wanted, const char* fix) const {
    if (given != wanted)
      throw TreeError(to_string() + " returned " + std::to_string(given) + " values where " +
                          std::to_string(wanted) + " are needed",
                      fix);
  }

 private:
  const char* kind_;
  const Primitive* primitive_;
  std::shared_ptr<void> function_;
  bool reads_zeros_;
};

template <class Items, class Convert>
py::list list_of(const Items& items, Convert&& convert) {
  py::list list;
  for (const auto& item : items) list.append(convert(item));
  return list;
}

// --- What each kind of rule takes and returns in Python ------------------------------------------

// rule(*avals) -> avals
std::vector<Aval> abstract(const PythonRule& rule, std::span<const Aval> inputs,
                           const Params& params) {
  std::vector<Aval> outputs;
  for (py::handle aval : rule.call_listed(list_of(inputs, aval_object), params))
    outputs.push_back(to_aval(aval.ptr(), {rule.primitive().name()}));
  if (outputs.empty() && !rule.primitive().is_effectful())
    throw TreeError(rule.to_string() + " returned no type",
                    "return the type of each result, such as one of its arguments");
  return outputs;
}

// rule(*numpy_arrays) -> arrays
void eval(const PythonRule& rule, std::span<const View> inputs, std::span<const View> outputs,
          const Params& params) {
  const char* const fix = "return what the abstract rule says";
  const auto to_value = [](const View& view) { return to_numpy(Array(Buffer::copy_of(view))); };
  const py::list results = rule.call_listed(list_of(inputs, to_value), params);
  rule.require_count(results.size(), outputs.size(), fix);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Buffer result = rule.array(results[i]).buffer();
    if (result.dtype() != outputs[i].dtype || result.shape() != outputs[i].shape)
      throw ShapeError(rule.to_string() + " returned " + Array(result).aval().to_string() +
                           " where its abstract rule says " +
                           Aval{Shape::of(outputs[i].shape), outputs[i].dtype, false}.to_string(),
                       fix);
    copy_elements(result.view(), outputs[i]);
  }
}

// A tangent or cotangent, checked against the type of its value. Plain numbers take its dtype.
Array fitted(const PythonRule& rule, const Array& tangent, const Aval& aval) {
  const Aval wanted = tangent_aval(aval);
  const bool fits =
      tangent.shape() == wanted.shape && (tangent.dtype() == wanted.dtype || tangent.aval().weak);
  if (!fits)
    throw ShapeError(rule.to_string() + " returned " + tangent.aval().to_string() + " where " +
                         wanted.to_string() + " is needed",
                     "return values of the shape and dtype of what they belong to");
  return lax::convert_element_type(tangent, wanted.dtype);
}

// The tangents or cotangents that a rule returned for values of these types; None is zero.
Tangents tangents_of(const PythonRule& rule, const py::list& results,
                     const std::vector<Aval>& avals) {
  rule.require_count(results.size(), avals.size(),
                     "return a list with one for each, None for zero");
  Tangents tangents;
  for (std::size_t i = 0; i < avals.size(); ++i)
    tangents.push_back(results[i].is_none()
                           ? Tangent(tangent_aval(avals[i]))
                           : Tangent(fitted(rule, rule.array(results[i]), avals[i])));
  return tangents;
}

// rule(primals, tangents, outputs) -> tangents
Tangents jvp(const PythonRule& rule, std::span<const Array> primals,
             std::span<const Tangent> tangents, std::span<const Array> outputs,
             const Params& params) {
  return tangents_of(rule,
                     rule.call_listed(py::make_tuple(from_arrays(primals), rule.tangents(tangents),
                                                     from_arrays(outputs)),
                                      params),
                     avals_of(outputs));
}

// rule(cotangents, inputs) -> cotangents; a linear input is passed as its type.
Tangents transpose(const PythonRule& rule, std::span<const Tangent> cotangents,
                   std::span<const TransposeInput> inputs, const Params& params) {
  const py::list known = list_of(inputs, [](const TransposeInput& input) {
    return input.is_linear() ? aval_object(input.aval()) : to_python(input.known());
  });
  return tangents_of(rule,
                     rule.call_listed(py::make_tuple(rule.tangents(cotangents), known), params),
                     avals_of(inputs));
}

Batched batched_of(const PythonRule& rule, py::handle result, py::handle axis, Dim size) {
  Array array = rule.array(result);
  if (axis.is_none()) return {std::move(array), std::nullopt};
  const Dim given = to_dim(axis.ptr(), {rule.primitive().name(), "batch axis"});
  const int dim = normalize_axis(to_ints(Shape{given})[0], array.ndim(), rule.to_string());
  if (!(array.shape(dim) == size))
    throw ShapeError(rule.to_string() + " returned " + array.aval().to_string() +
                         " with the batch axis " + std::to_string(dim) + " for " +
                         size.to_string() + " examples",
                     "name the axis that counts the examples");
  return {std::move(array), dim};
}

// rule(size, inputs, batch_axes) -> (outputs, batch_axes); the axis of an unbatched value is None.
std::vector<Batched> batch(const PythonRule& rule, Dim size, std::span<const Batched> inputs,
                           const Params& params) {
  const py::list arrays =
      list_of(inputs, [](const Batched& input) { return to_python(input.array); });
  const py::list dims = list_of(inputs, [](const Batched& input) {
    return input.dim ? py::object(py::int_(*input.dim)) : py::object(py::none());
  });
  const py::object pair = rule.call(py::make_tuple(dim_object(size), arrays, dims), params);
  if (!PyTuple_Check(pair.ptr()) || PyTuple_GET_SIZE(pair.ptr()) != 2)
    throw TreeError(rule.to_string() + " returned " + text_of(pair.ptr()),
                    "return a pair: outputs, and the batch axis of each");
  const py::list results = PythonRule::listed(pair[py::int_(0)]);
  const py::list axes = PythonRule::listed(pair[py::int_(1)]);
  rule.require_count(axes.size(), results.size(), "return as many batch axes as outputs");
  std::vector<Batched> batched;
  for (std::size_t i = 0; i < results.size(); ++i)
    batched.push_back(batched_of(rule, results[i], axes[i], size));
  return batched;
}

// rule(padded_inputs, in_avals, out_avals, value_of_size) -> padded_outputs
Arrays mask(const PythonRule& rule, std::span<const Masked> inputs, std::span<const Aval> outputs,
            const Params& params, const SizeValues& sizes) {
  const py::list arrays =
      list_of(inputs, [](const Masked& input) { return to_python(input.padded); });
  const py::list avals =
      list_of(inputs, [](const Masked& input) { return aval_object(input.aval); });
  const py::cpp_function value(
      [&sizes](py::object size) { return to_python(sizes.value(to_dim(size.ptr()))); });
  const py::list padded =
      rule.call_listed(py::make_tuple(arrays, avals, list_of(outputs, aval_object), value), params);
  rule.require_count(padded.size(), outputs.size(), "return one for each output");
  const Arrays made = to_arrays(padded);
  for (std::size_t i = 0; i < made.size(); ++i) {
    Shape wanted = outputs[i].shape;
    for (Dim& dim : wanted)
      if (!dim.is_constant()) dim = sizes.bound(dim);
    if (!(made[i].shape() == wanted))
      throw ShapeError(rule.to_string() + " returned " + made[i].aval().to_string() + " for " +
                           outputs[i].to_string() + ", which is padded to (" + wanted.to_string() +
                           ")",
                       "return arrays of the padded shape");
  }
  return made;
}

// rule(*arrays) -> arrays
Arrays decompose(const PythonRule& rule, std::span<const Array> inputs, const Params& params) {
  return to_arrays(rule.call_listed(from_arrays(inputs), params));
}

// --- The kinds -----------------------------------------------------------------------------------

struct RuleKind {
  std::string_view name;
  void (*define)(const Primitive& primitive, py::object function, bool reads_zeros,
                 RuleOrigin origin);
};

template <class Kind, auto run>
constexpr RuleKind stated_in_python{
    Kind::name,
    [](const Primitive& primitive, py::object function, bool reads_zeros, RuleOrigin origin) {
      const PythonRule rule(Kind::name, primitive, std::move(function), reads_zeros);
      const auto call = [rule](auto&&... arguments) {
        py::gil_scoped_acquire gil;
        return run(rule, std::forward<decltype(arguments)>(arguments)...);
      };
      Kind::table().set(primitive, call, std::move(origin));
    }};

constexpr RuleKind rule_kinds[] = {
    stated_in_python<Abstract, abstract>,
    stated_in_python<Eval, eval>,
    stated_in_python<Jvp, jvp>,
    stated_in_python<Transpose, transpose>,
    stated_in_python<Batch, batch>,
    stated_in_python<Mask, mask>,
    stated_in_python<Decompose, decompose>,
};

void define_rule(const Primitive& primitive, const std::string& kind, py::object function,
                 bool reads_zeros, RuleOrigin origin) {
  std::string names;
  for (const RuleKind& known : rule_kinds) {
    if (known.name == kind)
      return known.define(primitive, std::move(function), reads_zeros, std::move(origin));
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw ValueError("there is no rule kind '" + kind + "'", "choose one of " + names);
}

// Primitives live as long as the process, as their rules do.
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
  module.def(
      "define_rule",
      [](const std::string& name, const std::string& kind, py::object function,
         const std::string& file, int line, bool reads_zeros) {
        define_rule(primitive_named(name), kind, std::move(function), reads_zeros,
                    {RuleOrigin::Kind::stated, file, line, {}});
      },
      py::arg(), py::arg(), py::arg(), py::arg(), py::arg(), py::arg("reads_zeros") = false);
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
