// Queries of the package's Python files about values: whether they are traced, known, viewed, or
// differentiated; and the few operations that they need on one value.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/primitives/primitives.h>
#include <plait/transforms/transforms.h>

namespace plait::python {
namespace {

bool is_tracing() { return Trace::current() != nullptr; }

bool is_of_this_trace(py::object array) {
  const Trace* trace = Trace::current();
  return trace && is_array(array.ptr()) && trace->owns(array_of(array.ptr()));
}

// Whether the innermost trace that owns either of two arrays owns both.
bool have_same_trace(py::object a, py::object b) {
  const Array &x = array_of(a.ptr()), &y = array_of(b.ptr());
  for (const Trace* trace = Trace::current(); trace; trace = trace->parent())
    if (trace->owns(x) || trace->owns(y)) return trace->owns(x) && trace->owns(y);
  return x.is_concrete() == y.is_concrete();
}

bool is_concrete(py::object array) {
  return is_array(array.ptr()) && array_of(array.ptr()).is_concrete();
}

// Whether Python can read a value now: a known array, or what is neither an array nor a size.
bool is_known(py::object value) {
  if (is_array(value.ptr())) return array_of(value.ptr()).known_buffer().has_value();
  return !is_size(value.ptr());
}

// Whether writes to an array are visible in another one, or the reverse.
bool is_viewed(py::object array) {
  const auto* handle = reinterpret_cast<const ArrayObject*>(array.ptr());
  return is_array(array.ptr()) && (handle->view || handle->shown_views || handle->hidden_views);
}

// Makes writes to these arrays warn: the function that is being traced got them in place of the
// caller's arrays.
void mark_arguments(py::object arrays) {
  for (py::handle array : arrays)
    if (is_array(array.ptr())) reinterpret_cast<ArrayObject*>(array.ptr())->is_argument = true;
}

bool is_differentiable_value(py::object array) {
  return is_differentiable(to_array(array.ptr()).aval());
}

// A zero tangent of a value.
py::object zeros_like(py::object array) {
  return to_python(lax::zeros_like(tangent_aval(to_aval(array.ptr()))));
}

py::object one_like(py::object array) {
  return to_python(lax::full(array_of(array.ptr()).shape(), 1, array_of(array.ptr()).dtype()));
}

py::object convert(py::object array, py::object dtype) {
  return to_python(lax::convert_element_type(to_array(array.ptr()), to_dtype(dtype.ptr())));
}

py::object stop_gradient(py::object array) {
  return to_python(lax::stop_gradient(to_array(array.ptr())));
}

}  // namespace

void add_traced(py::module_& module) {
  module.def("is_tracing", &is_tracing);
  module.def("is_of_this_trace", &is_of_this_trace);
  module.def("have_same_trace", &have_same_trace);
  module.def("is_concrete", &is_concrete);
  module.def("is_known", &is_known);
  module.def("is_viewed", &is_viewed);
  module.def("mark_arguments", &mark_arguments);
  module.def("is_differentiable", &is_differentiable_value);
  module.def("zeros_like", &zeros_like);
  module.def("one_like", &one_like);
  module.def("convert", &convert);
  module.def("stop_gradient", &stop_gradient);
}

}  // namespace plait::python
