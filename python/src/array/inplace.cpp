// Writing to arrays: x[i] = v, x op= v of variables, and the lists of views that a write hides.
//
// x[i] = v rebinds the handle to a new value (a scatter), so it is differentiated like any other
// operation. A write to a view is a write to its base. Where nothing is traced or taped and nobody
// else holds the memory, elements are written in place. x += v writes only to variables of the
// tape. See NOTE: [views].
// SPDX-License-Identifier: Apache-2.0
#include "array.h"

#include <plait/primitives/primitives.h>
#include <plait/trace/concrete.h>
#include <plait/trace/donated.h>
#include <plait/transforms/tape.h>

#include <algorithm>

namespace plait::python {
namespace {

ArrayObject* handle_of(PyObject* object) { return reinterpret_cast<ArrayObject*>(object); }
PyObject* object_of(ArrayObject* handle) { return reinterpret_cast<PyObject*>(handle); }

bool is_base(const ArrayObject* handle) { return !handle->view || !handle->view->base; }

ArrayObject* root_of(ArrayObject* handle) {
  while (!is_base(handle)) handle = handle->view->base;
  return handle;
}

// --- Lists of views ------------------------------------------------------------------------------

void link(ArrayObject*& list, ArrayObject* handle) {
  handle->view->previous = nullptr;
  handle->view->next = list;
  if (list) list->view->previous = handle;
  list = handle;
}

void unlink(ArrayObject*& list, ArrayObject* handle) {
  const ViewOf& view = *handle->view;
  if (view.next) view.next->view->previous = view.previous;
  (view.previous ? view.previous->view->next : list) = view.next;
}

// Drops the values of all views of base, and of views of those. They are freed together once the
// lists are consistent again, because freeing may run other code.
void hide_views(ArrayObject* base) {
  if (!base->shown_views) return;
  std::vector<Array> values;
  std::vector<ArrayObject*> bases{base};
  while (!bases.empty()) {
    ArrayObject* const at = bases.back();
    bases.pop_back();
    while (ArrayObject* handle = at->shown_views) {
      // A view on the tape stays there, even if its base is updated under no_grad.
      handle->view->records = is_recording() || requires_grad(handle->array);
      unlink(at->shown_views, handle);
      link(at->hidden_views, handle);
      values.push_back(std::exchange(handle->array, Array()));
      if (handle->shown_views) bases.push_back(handle);
    }
  }
}

// Visits every hidden view under base, bases before their views.
template <class Visit>
void each_hidden(ArrayObject* base, Visit&& visit) {
  std::vector<ArrayObject*> bases{base};
  while (!bases.empty()) {
    ArrayObject* const at = bases.back();
    bases.pop_back();
    for (ArrayObject* handle = at->hidden_views; handle; handle = handle->view->next) {
      visit(handle);
      bases.push_back(handle);
    }
  }
}

void hold(ArrayObject* handle, Array value) {
  unlink(handle->view->base->hidden_views, handle);
  handle->array = std::move(value);
  link(handle->view->base->shown_views, handle);
}

// The trace that a handle was made in, if it is still active: no other one may have written to it.
Trace* trace_of(const ArrayObject* handle) {
  Trace* trace = Trace::current();
  while (trace && trace->id() != handle->made_in) trace = trace->parent();
  return trace;
}

}  // namespace

void show(ArrayObject* self) {
  std::vector<ArrayObject*> hidden;
  for (ArrayObject* at = self; !at->array.is_valid() && !is_base(at); at = at->view->base)
    hidden.push_back(at);
  if (hidden.empty()) return;
  const TraceScope scope(trace_of(root_of(self)));
  for (; !hidden.empty(); hidden.pop_back()) {
    ArrayObject* const handle = hidden.back();
    const ViewOf& view = *handle->view;
    const RecordingScope recording(view.records);
    if (!view.map.part) {
      hold(handle, view.map.read(view.base->array));
      continue;
    }
    // All results of the call are read at once.
    const Arrays parts = view.map.read_parts(view.base->array);
    const auto call = view.map.call;
    for (ArrayObject *at = view.base->hidden_views, *next; at; at = next) {
      next = at->view->next;
      if (at->view->map.call == call) hold(at, parts.at(*at->view->map.part));
    }
  }
}

void show_views(ArrayObject* base) {
  std::vector<py::object> hidden;
  each_hidden(base, [&](ArrayObject* handle) { hidden.push_back(borrowed(object_of(handle))); });
  for (const py::object& handle : hidden) array_of(handle.ptr());
}

PyObject* wrap_view(ArrayObject* base, ViewMap map, Array array, const char* made_by) {
  PyObject* object = wrap(std::move(array));
  if (!object) return object;
  ArrayObject* self = handle_of(object);
  self->view = new ViewOf{handle_of(Py_NewRef(object_of(base))), std::move(map), made_by};
  link(base->shown_views, self);
  return object;
}

PyObject* wrap_unwritable(Array array, const char* made_by) {
  PyObject* object = wrap(std::move(array));
  if (object) handle_of(object)->view = new ViewOf{nullptr, {}, made_by};
  return object;
}

// A chain of views of views is released iteratively: recursion could overflow the stack.
void forget_view(ArrayObject* self) {
  static std::vector<PyObject*>* waiting = nullptr;  // guarded by the GIL
  if (ArrayObject* base = self->view->base)
    unlink(self->array.is_valid() ? base->shown_views : base->hidden_views, self);
  ViewOf* view = std::exchange(self->view, nullptr);
  PyObject* base = object_of(view->base);
  delete view;
  if (!base) return;
  if (waiting) {
    waiting->push_back(base);
    return;
  }
  std::vector<PyObject*> bases{base};
  waiting = &bases;
  while (!bases.empty()) {
    PyObject* next = bases.back();
    bases.pop_back();
    Py_DECREF(next);
  }
  waiting = nullptr;
}

// --- Writing -------------------------------------------------------------------------------------

namespace {

// A trace runs the function once for all calls, so its writes to arrays from outside would be lost.
void check_fresh(const ArrayObject* root) {
  const Trace* trace = Trace::current();
  if (!trace || root->made_in == trace->id()) return;
  throw TracerError("an array of type " + root->array.aval().to_string() +
                        " that was made outside of the function is written to while " +
                        std::string(trace->name()) + " traces the function",
                    "pass it as an argument and return it, or make a new array: "
                    "x = x.at[index].set(v), x = x + v");
}

void check_writable(ArrayObject* self) {
  ArrayObject* root = self;
  for (;; root = root->view->base) {
    if (root->view && root->view->made_by)
      throw ValueError("the result of " + std::string(root->view->made_by) +
                           ", which cannot be written to, is written to",
                       "write to the array that it was made of, or to a copy: x = x.copy()");
    if (is_base(root)) break;
  }
  if (const auto* donated = dynamic_cast<const DonatedNode*>(root->array.node()))
    throw ValueError("an array of type " + array_of(object_of(self)).aval().to_string() +
                         (self == root ? "" : ", a view of one,") +
                         " is written to after it had been donated to `" + donated->function + "`",
                     "write to what the function returned, or to a copy made before: x.copy()");
  check_fresh(root);
}

void warn_of_argument(const ArrayObject* root) {
  if (!root->is_argument || !Trace::current()) return;
  const std::string text =
      "x[...] = v writes to an argument of a function while " +
      std::string(Trace::current()->name()) +
      " traces it: the function has an array of its own, and the caller's stays as it is. Write to "
      "a copy, x = x.copy(), or return x.at[...].set(v)";
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw py::error_already_set();
}

// Gives a handle a new value; a view passes it on to its base.
void replace(ArrayObject* self, Array value) {
  array_of(object_of(self));
  ArrayObject* root = self;
  for (; !is_base(root); root = root->view->base)
    value = root->view->map.write(root->view->base->array, value);
  Array updated = root->array;
  assign(updated, value);
  hide_views(root);
  if (is_recording() && requires_grad(updated))
    each_hidden(root, [](ArrayObject* handle) { handle->view->records = true; });
  std::swap(root->array, updated);
}

// Whether this handle alone refers to its memory, once its views are hidden.
bool owns_memory(const ArrayObject* root) {
  if (!root->array.node()->is_plain() || !DonatedNode::is_unique(*root->array.node())) return false;
  const Array& array = root->array;
  const ConcreteNode& node = *static_cast<const ConcreteNode*>(array.node());
  const Storage& storage = node.buffer.storage();
  if (node.is_literal || array.aval().weak || !storage.is_unique() || storage.is_foreign() ||
      !node.buffer.device().is_host())
    return false;
  for (int axis = 0; axis < array.ndim(); ++axis)  // broadcast elements share memory
    if (node.buffer.strides()[axis] == 0 && node.buffer.shape()[axis] > 1) return false;
  return true;
}

// Writes values to elements of self in place, if nobody else can see that. Returns whether it did.
bool write_in_place(ArrayObject* self, ArrayObject* root, const Subscripts& subscripts,
                    const Array& values) {
  if (Trace::current() || !values.node()->is_plain()) return false;
  const auto is_plain = [](const Subscript& entry) {
    const Array* array = std::get_if<Array>(&entry);
    return !array || array->node()->is_plain();
  };
  if (!std::all_of(subscripts.begin(), subscripts.end(), is_plain)) return false;
  hide_views(root);
  if (!owns_memory(root)) return false;
  const Array& shown = array_of(object_of(self));
  const auto memory_of = [](const Array& array) {
    return static_cast<const ConcreteNode*>(array.node())->buffer.storage().data();
  };
  if (memory_of(shown) != memory_of(root->array)) return false;  // it shows a copy
  return write_memory(shown, subscripts, values);
}

int rank_of_kind(DType dtype) {
  return dtype == DType::bool_ ? 0 : is_integer(dtype) ? 1 : is_floating(dtype) ? 2 : 3;
}

// Refuses values whose fraction or imaginary part would be lost. NumPy drops them.
void require_kind(const Array& x, const Array& values) {
  const int kind = rank_of_kind(values.dtype());
  if (kind < 2 || kind <= rank_of_kind(x.dtype())) return;
  throw DtypeError("x[...] = v: values of dtype " + std::string(name_of(values.dtype())) +
                       " for an array of dtype " + std::string(name_of(x.dtype())),
                   kind == 3 ? "take their .real first, or make the array complex"
                             : "convert them with .astype(int), or make the array float");
}

// The result of x op y in the shape and dtype of the variable x.
Array fitted(const Array& x, const Array& result) {
  if (!(x.shape() == result.shape()))
    throw ShapeError("an operator such as += gives shape (" + result.shape().to_string() +
                         ") for a variable of shape (" + x.shape().to_string() +
                         "), and writing cannot change a shape",
                     "write x = x + y, which makes a new array");
  if (x.dtype() == result.dtype()) return result;
  if (rank_of_kind(result.dtype()) > rank_of_kind(x.dtype()))
    throw DtypeError("an operator such as += gives " + std::string(name_of(result.dtype())) +
                         " for a variable of " + std::string(name_of(x.dtype())) +
                         ", and writing cannot change a dtype",
                     "write x = x + y, which makes a new array, or convert x with .astype");
  return lax::convert_element_type(result, x.dtype());
}

void write(ArrayObject* self, const Subscripts& subscripts, PyObject* value) {
  const py::object keep = borrowed(object_of(root_of(self)));
  check_writable(self);
  const Array values = to_array(value, {"x[...] = v"});
  require_kind(array_of(object_of(self)), values);
  ArrayObject* const root = handle_of(keep.ptr());
  warn_of_argument(root);
  if (!write_in_place(self, root, subscripts, values))
    replace(self, update_item(array_of(object_of(self)), subscripts, values, UpdateKind::set));
}

bool operator==(const Range& a, const Range& b) {
  return a.start == b.start && a.stop == b.stop && a.step == b.step;
}

bool same_place(const Subscripts& a, const Subscripts& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Subscript& left, const Subscript& right) {
                      if (left.index() != right.index()) return false;
                      if (const Dim* dim = std::get_if<Dim>(&left))
                        return *dim == std::get<Dim>(right);
                      if (const Range* range = std::get_if<Range>(&left))
                        return *range == std::get<Range>(right);
                      return !std::holds_alternative<Array>(left);
                    });
}

// As in NumPy, an index of integers alone gives an element, which is a value, and an index with an
// array makes a copy. A traced integer counts as an integer.
bool makes_view(const Subscripts& subscripts, const Array& result) {
  bool element = true;
  for (const Subscript& entry : subscripts) {
    const Array* array = std::get_if<Array>(&entry);
    if (array && (array->ndim() > 0 || !is_integer(array->dtype()))) return false;
    element &= array || std::holds_alternative<Dim>(entry);
  }
  return !element || result.ndim() > 0;
}

}  // namespace

PyObject* wrap_item(PyObject* base, Subscripts subscripts, Array array) {
  if (makes_view(subscripts, array))
    return wrap_view(handle_of(base), {std::move(subscripts)}, std::move(array));
  // An element of a large array gets memory of its own, because a write to an array whose memory is
  // shared copies that array.
  if (array.ndim() == 0 && array.node()->is_plain()) {
    constexpr std::size_t many = 4096;
    const Buffer& buffer = static_cast<const ConcreteNode*>(array.node())->buffer;
    if (buffer.storage().bytes() > many) array = make_concrete(array.aval(), buffer.copy());
  }
  return wrap(std::move(array));
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  return guarded_int([&]() -> int {
    Source::forget_line();
    if (!value)
      throw DtypeError("elements of an array cannot be deleted", "use plait.numpy.delete");
    const Subscripts subscripts = to_subscripts(key);
    // x[i] += v of a variable has written through the view x[i] already. Python then assigns it
    // again.
    if (is_array(value)) {
      const ViewOf* view = handle_of(value)->view;
      if (view && view->base == handle_of(self) && !view->map.call && !view->made_by &&
          same_place(view->map.subscripts, subscripts))
        return 0;
    }
    write(handle_of(self), subscripts, value);
    return 0;
  });
}

int set_all(PyObject* view, PyObject* value) {
  return guarded_int([&] {
    write(handle_of(view), {Ellipsis{}}, value);
    return 0;
  });
}

bool is_written_by_operators(PyObject* self) {
  const ArrayObject* root = root_of(handle_of(self));
  return root->array.is_valid() && root->array.node()->is_taped() && is_variable(root->array);
}

PyObject* write_result(PyObject* self, PyObject* result) {
  if (!result || result == Py_NotImplemented) return result;
  const py::object owner = py::reinterpret_steal<py::object>(result);
  return guarded([&] {
    check_writable(handle_of(self));
    replace(handle_of(self), fitted(array_of(self), array_of(result)));
    return Py_NewRef(self);
  });
}

PyObject* copy(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(same_value(array_of(self))); });
}

PyObject* deepcopy(PyObject* self, PyObject*) {
  return guarded([&] {
    const Array& array = array_of(self);
    return wrap(is_variable(array) ? variable(array) : same_value(array));
  });
}

}  // namespace plait::python
