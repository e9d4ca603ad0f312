// Sizes and types of arrays in Python: plait.Size, a named size that does arithmetic, and
// ShapeDtypeStruct.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/primitives/primitives.h>

#include "ir/possible.h"

namespace plait::python {
namespace {

PyObject* size_type = nullptr;

}  // namespace

bool is_size(PyObject* object) {
  return size_type && Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(size_type);
}

// --- Sizes ---------------------------------------------------------------------------------------

std::optional<Dim> as_dim(PyObject* object) {
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow || value > (1LL << 61) || value < -(1LL << 61))
      throw ShapeError("the size " + text_of(object) + " does not fit 62 bits",
                       "use a smaller size");
    return Dim(std::int64_t(value));
  }
  if (is_size(object)) return py::cast<Dim>(py::handle(object));
  return std::nullopt;
}

Dim to_dim(PyObject* object, const Role& role) {
  if (std::optional<Dim> dim = as_dim(object)) return *dim;
  PyObject* index = PyNumber_Index(object);
  if (!index) {
    if (is_array(object)) throw py::error_already_set();
    PyErr_Clear();
    throw DtypeError(
        role.prefix() + text_of(object) + " of type " + type_name_of(object) + " is no integer",
        "pass an integer or a size");
  }
  const py::object owner = py::reinterpret_steal<py::object>(index);
  return *as_dim(index);
}

py::object dim_object(Dim dim) {
  if (dim.is_constant()) return owned(PyLong_FromLongLong(dim.constant()));
  return py::cast(dim);
}

py::object shape_object(const Shape& shape) {
  py::tuple result(shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) result[i] = dim_object(shape[i]);
  return result;
}

Shape to_shape(PyObject* object) {
  Shape shape;
  if (as_dim(object)) {
    shape.push_back(to_dim(object));
    return shape;
  }
  PyObject* items = PySequence_Fast(object, "");
  if (!items) {
    PyErr_Clear();
    throw DtypeError("a shape is " + text_of(object) + " of type " + type_name_of(object),
                     "give an integer or a sequence of integers");
  }
  const py::object sequence = py::reinterpret_steal<py::object>(items);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.ptr()); ++i)
    shape.push_back(to_dim(PySequence_Fast_GET_ITEM(sequence.ptr(), i)));
  return shape;
}

namespace {

// plait.Size: arithmetic, and comparisons that hold for all values of the named sizes.
void add_size(py::module_& module) {
  py::class_<Dim> type(module, "Size",
                       "The size of an axis that has a name: an expression such as n, 2*n+1 or "
                       "min(n, 8). It does arithmetic and\n"
                       "stands wherever a size may.");
  size_type = type.ptr();
  auto with = [&type](const char* name, auto operation, bool reflected) {
    type.def(
        name,
        [operation, reflected](Dim self, py::object other) -> py::object {
          if (!as_dim(other.ptr())) return borrowed(Py_NotImplemented);
          const Dim right = *as_dim(other.ptr());
          return dim_object(reflected ? operation(right, self) : operation(self, right));
        },
        py::is_operator());
  };
  auto both = [&](const std::string& name, auto operation) {
    with(("__" + name + "__").c_str(), operation, false);
    with(("__r" + name + "__").c_str(), operation, true);
  };
  both("add", [](Dim a, Dim b) { return a + b; });
  both("sub", [](Dim a, Dim b) { return a - b; });
  both("mul", [](Dim a, Dim b) { return a * b; });
  both("floordiv", [](Dim a, Dim b) { return floor_divide(a, b); });
  both("mod", [](Dim a, Dim b) { return modulo(a, b); });
  type.def("__truediv__", [](Dim self, py::object other) {
    return to_python(Operand(Array(self)) / to_array(other.ptr()));
  });
  type.def("__rtruediv__", [](Dim self, py::object other) {
    return to_python(Operand(to_array(other.ptr())) / Array(self));
  });
  type.def("__pow__", [](Dim self, py::object power) {
    const Dim times = to_dim(power.ptr(), {"size ** power"});
    if (!times.is_constant() || times.constant() < 0)
      throw ValueError("the size " + self.to_string() + " to the power " + times.to_string(),
                       "give an integer of 0 or more, or divide");
    Dim result = 1;
    for (std::int64_t i = 0; i < times.constant(); ++i) result = result * self;
    return dim_object(result);
  });
  type.def("__neg__", [](Dim self) { return dim_object(-self); });
  type.def(
      "__eq__",
      [](Dim self, py::object other) -> py::object {
        std::optional<Dim> right = as_dim(other.ptr());
        if (!right) return borrowed(Py_NotImplemented);
        std::optional<bool> decided = plait::equal(self, *right);
        return py::bool_(decided.value_or(self == *right));
      },
      py::is_operator());
  type.def("__hash__", [](Dim self) { return self.hash(); });
  auto ordered = [&type](const char* name, const char* sign, auto decide) {
    type.def(
        name,
        [decide, sign](Dim self, py::object other) -> py::object {
          std::optional<Dim> right = as_dim(other.ptr());
          if (!right) return borrowed(Py_NotImplemented);
          if (std::optional<bool> decided = decide(self, *right)) return py::bool_(*decided);
          throw TracerError(
              "whether " + self.to_string() + " " + sign + " " + right->to_string() +
                  " depends on the sizes, which this program leaves open",
              "use min or max of sizes, where on values, declare it in constraints, or give "
              "the size a number");
        },
        py::is_operator());
  };
  ordered("__le__", "<=", [](Dim a, Dim b) { return plait::less_equal(a, b); });
  ordered("__ge__", ">=", [](Dim a, Dim b) { return plait::less_equal(b, a); });
  ordered("__lt__", "<", [](Dim a, Dim b) { return plait::less_equal(a + 1, b); });
  ordered("__gt__", ">", [](Dim a, Dim b) { return plait::less_equal(b + 1, a); });
  auto refuse = [](Dim self) -> py::object {
    throw TracerError("Python needs the size " + self.to_string() +
                          " as an integer, and this program leaves it open",
                      "let the size itself stand in shapes and slices, use it in array arithmetic, "
                      "or give it a number");
  };
  for (const char* name : {"__index__", "__int__", "__float__", "__bool__"}) type.def(name, refuse);
  type.def("__repr__", &Dim::to_string);
  type.def("__reduce__", [type](Dim self) {
    return py::make_tuple(type.attr("parse"), py::make_tuple(self.to_string()));
  });
  type.def_static(
      "parse", [](const std::string& text) { return dim_object(Dim::parse(text)); },
      "A size from text such as 'n' or '2*n+1'.");
  module.def("min_size", [](py::object a, py::object b) {
    return dim_object(minimum(to_dim(a.ptr()), to_dim(b.ptr())));
  });
  module.def("max_size", [](py::object a, py::object b) {
    return dim_object(maximum(to_dim(a.ptr()), to_dim(b.ptr())));
  });
}

}  // namespace

// --- Avals ---------------------------------------------------------------------------------------

py::object aval_object(const Aval& aval) { return py::cast(aval); }

Aval to_aval(PyObject* object, const Role& role) {
  if (is_array(object)) return array_of(object).aval();
  if (py::isinstance<Aval>(object)) return py::cast<Aval>(py::handle(object));
  if (!is_array_like(object) && PyObject_HasAttrString(object, "shape") &&
      PyObject_HasAttrString(object, "dtype")) {
    const py::object value = borrowed(object);
    return {to_shape(py::object(value.attr("shape")).ptr()),
            to_dtype(py::object(value.attr("dtype")).ptr(), role), false};
  }
  return to_array(object, role).aval();
}

void add_sizes(py::module_& module) {
  add_size(module);
  py::class_<Aval>(module, "ShapeDtypeStruct",
                   "The type of an array: shape, dtype, and whether the dtype is weak.")
      .def(py::init([](py::object shape, py::object dtype, bool weak_type) {
             Aval aval{to_shape(shape.ptr()), to_dtype(dtype.ptr()), weak_type};
             require_possible(aval, "ShapeDtypeStruct");
             return aval;
           }),
           py::arg("shape"), py::arg("dtype"), py::kw_only(), py::arg("weak_type") = false)
      .def_property_readonly("shape", [](const Aval& aval) { return shape_object(aval.shape); })
      .def_property_readonly("dtype", [](const Aval& aval) { return dtype_object(aval.dtype); })
      .def_property_readonly("ndim", [](const Aval& aval) { return aval.rank(); })
      .def_property_readonly("size",
                             [](const Aval& aval) { return dim_object(aval.shape.num_elements()); })
      .def_readonly("weak_type", &Aval::weak)
      .def("__eq__", [](const Aval& a,
                        py::object b) { return py::isinstance<Aval>(b) && a == b.cast<Aval>(); })
      .def("__hash__", &Aval::hash)
      .def("__repr__", &Aval::to_string);
}

}  // namespace plait::python
