// Array in Python: a heap type written by hand, because every eager operation makes one. This file
// holds allocation, operators, and conversions to Python numbers; properties and methods are in
// access.cpp.
//
// The type is final and holds no Python objects, so exact type checks are complete and the cycle
// collector has nothing to look at. Freed objects are kept for the next one.
// SPDX-License-Identifier: Apache-2.0
#include "array.h"

#include <plait/functions/numpy.h>
#include <plait/primitives/primitives.h>

#include <structmember.h>

namespace plait::python {

PyTypeObject* array_type = nullptr;

namespace {

constexpr int free_limit = 512;
ArrayObject* free_list[free_limit];
int num_free = 0;

void dealloc(PyObject* object) {
  auto* self = reinterpret_cast<ArrayObject*>(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  if (self->view) forget_view(self);
  if (self->made_in) LivingArrays::add(self->made_in, -1);
  self->array.~Array();
  PyTypeObject* type = Py_TYPE(object);
  if (num_free < free_limit)
    free_list[num_free++] = self;
  else
    PyObject_Free(object);
  Py_DECREF(type);
}

// --- Operators -----------------------------------------------------------------------------------

// Applies body to both operands as arrays; NotImplemented when one is not array-like, so that
// Python asks the other operand.
template <class Body>
PyObject* with_operands(PyObject* a, PyObject* b, Body&& body) {
  return guarded([&]() -> PyObject* {
    if (is_array(a) && is_array(b)) return wrap(body(array_of(a), array_of(b)));
    std::optional<Array> left = to_operand(a);
    std::optional<Array> right = left ? to_operand(b) : std::nullopt;
    if (!right) Py_RETURN_NOTIMPLEMENTED;
    return wrap(body(*left, *right));
  });
}

template <Array (*function)(Operand, Operand)>
PyObject* direct(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Array& x, const Array& y) { return function(x, y); });
}
PyObject* add(PyObject* a, PyObject* b) {
  return direct<static_cast<Array (*)(Operand, Operand)>(operator+)>(a, b);
}
PyObject* subtract(PyObject* a, PyObject* b) {
  return direct<static_cast<Array (*)(Operand, Operand)>(operator-)>(a, b);
}
PyObject* multiply(PyObject* a, PyObject* b) {
  return direct<static_cast<Array (*)(Operand, Operand)>(operator*)>(a, b);
}
PyObject* true_divide(PyObject* a, PyObject* b) {
  return direct<static_cast<Array (*)(Operand, Operand)>(operator/)>(a, b);
}
PyObject* matmul(PyObject* a, PyObject* b) {
  return with_operands(a, b, [](const Array& x, const Array& y) { return numpy::matmul(x, y); });
}

// x op= y rebinds x to x op y. Variables of the tape are written to instead.
template <PyObject* (*function)(PyObject*, PyObject*)>
PyObject* inplace(PyObject* a, PyObject* b) {
  PyObject* result = function(a, b);
  return is_written_by_operators(a) ? write_result(a, result) : result;
}

PyObject* power_of(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return direct<numpy::power>(a, b);
}

PyObject* inplace_power(PyObject* a, PyObject* b, PyObject* modulus) {
  PyObject* result = power_of(a, b, modulus);
  return is_written_by_operators(a) ? write_result(a, result) : result;
}

PyObject* divmod_of(PyObject* a, PyObject* b) {
  PyObject* quotient = direct<numpy::floor_divide>(a, b);
  if (!quotient || quotient == Py_NotImplemented) return quotient;
  PyObject* rest = direct<numpy::remainder>(a, b);
  if (!rest) {
    Py_DECREF(quotient);
    return nullptr;
  }
  PyObject* pair = PyTuple_Pack(2, quotient, rest);
  Py_DECREF(quotient);
  Py_DECREF(rest);
  return pair;
}

PyObject* negative(PyObject* a) {
  return guarded([&] { return wrap(-Operand(array_of(a))); });
}
PyObject* positive(PyObject* a) { return copy(a, nullptr); }
PyObject* absolute(PyObject* a) {
  return guarded([&] { return wrap(numpy::abs(array_of(a))); });
}
PyObject* invert(PyObject* a) {
  return guarded([&] { return wrap(lax::bitwise_not(array_of(a))); });
}

PyObject* compare(PyObject* a, PyObject* b, int operator_id) {
  switch (operator_id) {
    case Py_LT:
      return direct<numpy::less>(a, b);
    case Py_LE:
      return direct<numpy::less_equal>(a, b);
    case Py_EQ:
      return direct<numpy::equal>(a, b);
    case Py_NE:
      return direct<numpy::not_equal>(a, b);
    case Py_GT:
      return direct<numpy::greater>(a, b);
    default:
      return direct<numpy::greater_equal>(a, b);
  }
}

// --- Numbers -------------------------------------------------------------------------------------

int truth(PyObject* self) {
  return guarded_int([&]() -> int {
    const Array& array = read_by_python(array_of(self));
    if (!(array.shape().num_elements() == Dim(1)))
      throw ValueError("the truth value of an array of " +
                           array.shape().num_elements().to_string() + " elements, " +
                           array.aval().to_string() + ", is ambiguous",
                       "use .any() or .all(), or compare sizes");
    return array.item<bool>();
  });
}

PyObject* to_int(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Array& array = read_by_python(array_of(self));
    if (is_complex(array.dtype()))
      throw DtypeError("a complex array does not convert to an int", "take .real first");
    if (is_inexact(array.dtype())) return PyLong_FromDouble(array.item<double>());
    if (array.dtype() == DType::uint64)
      return PyLong_FromUnsignedLongLong(std::uint64_t(array.item<std::int64_t>()));
    return PyLong_FromLongLong(array.item<std::int64_t>());
  });
}

PyObject* to_float(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Array& array = read_by_python(array_of(self));
    if (is_complex(array.dtype()))
      throw DtypeError("a complex array does not convert to a float", "take .real first");
    return PyFloat_FromDouble(array.item<double>());
  });
}

PyObject* to_index_number(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Array& array = read_by_python(array_of(self));
    if (!is_integer(array.dtype()) || array.ndim() != 0)
      throw DtypeError("only an integer array of rank 0 is an index, and this one is " +
                           array.aval().to_string(),
                       "convert it with int(x) or .astype(int)");
    if (array.dtype() == DType::uint64)
      return PyLong_FromUnsignedLongLong(std::uint64_t(array.item<std::int64_t>()));
    return PyLong_FromLongLong(array.item<std::int64_t>());
  });
}

Py_ssize_t length(PyObject* self) {
  Py_ssize_t result = -1;
  guarded_int([&]() -> int {
    const Array& array = array_of(self);
    if (array.ndim() == 0)
      throw DtypeError("len() of an array of rank 0", "only arrays with axes have a length");
    if (!array.shape(0).is_constant())
      throw TracerError("len() gives Python an integer, and the size of axis 0 of " +
                            array.aval().to_string() + " is named",
                        "use x.shape[0], a size that does arithmetic");
    result = array.shape(0).constant();
    return 0;
  });
  return result;
}

PyObject* iterate(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (array_of(self).ndim() == 0)
      throw DtypeError("iteration over an array of rank 0",
                       "only arrays with axes can be iterated over");
    return length(self) < 0 ? nullptr : PySeqIter_New(self);
  });
}

// value in x: whether any element equals it.
int contains(PyObject* self, PyObject* value) {
  return guarded_int([&]() -> int {
    const std::optional<Array> wanted = to_operand(value);
    return wanted && numpy::any(numpy::equal(array_of(self), *wanted)).item<bool>();
  });
}

PyObject* item_at(PyObject* self, Py_ssize_t index) {
  return guarded([&]() -> PyObject* {
    const Array& array = array_of(self);
    const std::int64_t place = index;
    if (std::optional<Array> element = element_at(array, std::span(&place, 1))) {
      Source::forget_line();
      return wrap(*std::move(element));
    }
    if (array.ndim() > 0 && array.shape(0).is_constant() && index >= array.shape(0).constant()) {
      // The error that ends an iteration needs no good message: nobody reads it.
      PyErr_SetString(PyExc_IndexError, "index out of range");
      return nullptr;
    }
    return get_item(self, owned(PyLong_FromSsize_t(index)).ptr());
  });
}

PyObject* make(PyTypeObject*, PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    throw DtypeError("Array is not a constructor",
                     "make arrays with plait.numpy.array, asarray, zeros, ...");
  });
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ArrayObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* const found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const Py_ssize_t length = PyUnicode_GetLength(name);
  if (length == 0 || PyUnicode_READ_CHAR(name, 0) == '_') return nullptr;  // a protocol probe
  PyErr_Clear();
  return guarded([&]() -> PyObject* {
    const py::object type = borrowed(reinterpret_cast<PyObject*>(array_type));
    const py::object hint =
        py::module_::import("plait._names")
            .attr("suggestion")(borrowed(name), py::list(type.attr("__dict__")));
    const std::string text =
        "an array has no attribute '" + utf8_of(name) + "'" + std::string(py::str(hint));
    PyErr_SetString(PyExc_AttributeError, text.c_str());
    throw py::error_already_set();
  });
}

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

LivingArrays* LivingArrays::innermost_ = nullptr;

LivingArrays::LivingArrays()
    : trace_(Trace::current() ? Trace::current()->id() : 0),
      outer_(std::exchange(innermost_, this)) {}

LivingArrays::~LivingArrays() {
  LivingArrays** place = &innermost_;
  while (*place != this) place = &(*place)->outer_;
  *place = outer_;
}

void LivingArrays::add(std::uint64_t trace, int change) {
  for (LivingArrays* counted = innermost_; counted; counted = counted->outer_)
    if (counted->trace_ == trace) {
      counted->count_ += change;
      return;
    }
}

PyObject* wrap(Array array) {
  ArrayObject* self;
  if (num_free > 0) {
    self = free_list[--num_free];
    PyObject_Init(reinterpret_cast<PyObject*>(self), array_type);
  } else {
    self = PyObject_New(ArrayObject, array_type);
    if (!self) return nullptr;
  }
  new (&self->array) Array(std::move(array));
  self->weak_references = nullptr;
  const Trace* trace = Trace::current();
  self->made_in = trace ? trace->id() : 0;
  if (trace) LivingArrays::add(trace->id(), 1);
  self->view = nullptr;
  self->shown_views = self->hidden_views = nullptr;
  self->is_argument = false;
  return reinterpret_cast<PyObject*>(self);
}

void add_array(py::module_& module) {
  PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>(
           "An array of numbers: in memory, or a value that a transform traces.\n\n"
           "Make one with plait.numpy.array, asarray, zeros, arange, ...\n\n"
           "x[i] = v writes to this array, and whatever is a view of it or it is a view of shows "
           "that:\nx[...] with slices, reshape, T, split, flip, real and others, as in NumPy. "
           "x += v is x = x + v:\nother names of x keep their value. The page \"Values and "
           "views\" of the documentation says it all.")},
      {Py_tp_dealloc, slot(dealloc)},
      {Py_tp_new, slot(make)},
      {Py_tp_getattro, slot(get_attribute)},
      {Py_tp_repr, slot(repr)},
      {Py_tp_str, slot(text)},
      {Py_tp_hash, slot(PyObject_HashNotImplemented)},
      {Py_tp_richcompare, slot(compare)},
      {Py_tp_iter, slot(iterate)},
      {Py_tp_members, members},
      {Py_tp_getset, array_getset},
      {Py_tp_methods, array_methods},
      {Py_mp_length, slot(length)},
      {Py_sq_length, slot(length)},
      {Py_sq_item, slot(item_at)},
      {Py_sq_contains, slot(contains)},
      {Py_mp_subscript, slot(get_item)},
      {Py_mp_ass_subscript, slot(set_item)},
      {Py_nb_add, slot(add)},
      {Py_nb_subtract, slot(subtract)},
      {Py_nb_multiply, slot(multiply)},
      {Py_nb_true_divide, slot(true_divide)},
      {Py_nb_floor_divide, slot(direct<numpy::floor_divide>)},
      {Py_nb_remainder, slot(direct<numpy::remainder>)},
      {Py_nb_divmod, slot(divmod_of)},
      {Py_nb_power, slot(power_of)},
      {Py_nb_matrix_multiply, slot(matmul)},
      {Py_nb_and, slot(direct<numpy::bitwise_and>)},
      {Py_nb_or, slot(direct<numpy::bitwise_or>)},
      {Py_nb_xor, slot(direct<numpy::bitwise_xor>)},
      {Py_nb_lshift, slot(direct<numpy::left_shift>)},
      {Py_nb_rshift, slot(direct<numpy::right_shift>)},
      {Py_nb_inplace_add, slot(inplace<add>)},
      {Py_nb_inplace_subtract, slot(inplace<subtract>)},
      {Py_nb_inplace_multiply, slot(inplace<multiply>)},
      {Py_nb_inplace_true_divide, slot(inplace<true_divide>)},
      {Py_nb_inplace_floor_divide, slot(inplace<direct<numpy::floor_divide>>)},
      {Py_nb_inplace_remainder, slot(inplace<direct<numpy::remainder>>)},
      {Py_nb_inplace_power, slot(inplace_power)},
      {Py_nb_inplace_matrix_multiply, slot(inplace<matmul>)},
      {Py_nb_inplace_and, slot(inplace<direct<numpy::bitwise_and>>)},
      {Py_nb_inplace_or, slot(inplace<direct<numpy::bitwise_or>>)},
      {Py_nb_inplace_xor, slot(inplace<direct<numpy::bitwise_xor>>)},
      {Py_nb_inplace_lshift, slot(inplace<direct<numpy::left_shift>>)},
      {Py_nb_inplace_rshift, slot(inplace<direct<numpy::right_shift>>)},
      {Py_nb_negative, slot(negative)},
      {Py_nb_positive, slot(positive)},
      {Py_nb_absolute, slot(absolute)},
      {Py_nb_invert, slot(invert)},
      {Py_nb_bool, slot(truth)},
      {Py_nb_int, slot(to_int)},
      {Py_nb_float, slot(to_float)},
      {Py_nb_index, slot(to_index_number)},
      {Py_bf_getbuffer, slot(get_buffer)},
      {Py_bf_releasebuffer, slot(release_buffer)},
      {0, nullptr},
  };
  PyType_Spec spec{"plait.Array", sizeof(ArrayObject), 0, Py_TPFLAGS_DEFAULT, slots};
  array_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!array_type) throw py::error_already_set();
  module.attr("Array") = borrowed(reinterpret_cast<PyObject*>(array_type));
}

}  // namespace plait::python
