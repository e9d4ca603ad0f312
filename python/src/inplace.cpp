// Writing to arrays: x[i] = v, x += v, and views that show what is written.
//
// A value never changes. Writing computes a new one (a scatter, or the result of the operator) and
// lets the handle stand for it. A basic index makes a view: a handle that knows its base and the
// index. Writing to a view writes to its base, and whatever is written to an array is shown by its
// views, which are cut out of it again; so all of it is differentiated like any other operation.
// SPDX-License-Identifier: Apache-2.0
#include "array.h"

#include <plait/ops.h>
#include <plait/tape.h>

#include <algorithm>

namespace plait::python {

struct ViewOf {
  ArrayObject* base;  // a counted reference
  Subscripts subscripts;
  ArrayObject *next, *previous;  // among the base's views
};

namespace {

ArrayObject* handle_of(PyObject* object) { return reinterpret_cast<ArrayObject*>(object); }

// Integers alone give an element, which is a value as in NumPy; arrays in an index copy.
bool makes_view(const Subscripts& subscripts, const Array& result) {
  bool element = true;
  for (const Subscript& entry : subscripts) {
    if (std::holds_alternative<Array>(entry)) return false;
    element &= std::holds_alternative<Dim>(entry);
  }
  return !element || result.ndim() > 0;
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

// A trace runs the function once for all calls: what it writes outside of itself is lost.
void check_fresh(const ArrayObject* root) {
  const Trace* trace = Trace::current();
  if (!trace || root->made_in == trace->id()) return;
  throw TracerError("an array of type " + root->array.aval().to_string() +
                        " that was made outside of the function is written to while " +
                        std::string(trace->name()) + " traces the function",
                    "pass it as an argument and return it, or make a new array: "
                    "x = x.at[index].set(v), x = x + v");
}

// What views of a handle show when it stands for value, and views of those.
struct Change {
  py::object handle;
  Array value;
};

void add_views(std::vector<Change>& changes, const ArrayObject* base, const Array& value) {
  const std::size_t first = changes.size();
  for (ArrayObject* view = base->first_view; view; view = view->view->next)
    changes.push_back({borrowed(reinterpret_cast<PyObject*>(view)), Array()});
  for (std::size_t i = first, end = changes.size(); i < end; ++i) {
    const ArrayObject* view = handle_of(changes[i].handle.ptr());
    // A view on the tape stays there, also when its base is updated under no_grad.
    const RecordingScope scope(is_recording() || requires_grad(view->array));
    changes[i].value = getitem(value, view->view->subscripts);
  }
}

// Lets the handle stand for value, through what it is a view of.
void write(ArrayObject* self, Array value) {
  ArrayObject* root = self;
  while (root->view) root = root->view->base;
  check_fresh(root);
  for (root = self; root->view; root = root->view->base)
    value = update_item(root->view->base->array, root->view->subscripts, value, UpdateKind::set);
  Array updated = root->array;
  assign(updated, value);
  std::vector<Change> changes;
  changes.push_back({borrowed(reinterpret_cast<PyObject*>(root)), updated});
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Array shown = changes[i].value;
    add_views(changes, handle_of(changes[i].handle.ptr()), shown);
  }
  for (Change& change : changes) std::swap(handle_of(change.handle.ptr())->array, change.value);
}

int rank_of_kind(DType dtype) {
  return dtype == DType::bool_ ? 0 : is_integer(dtype) ? 1 : is_floating(dtype) ? 2 : 3;
}

// The result of x op y as a value of x's type: NumPy's rule of the same kind.
Array fitted(const Array& x, const Array& result) {
  if (!(x.shape() == result.shape()))
    throw ShapeError("an operator such as += gives shape (" + result.shape().to_string() +
                         ") for an array of shape (" + x.shape().to_string() +
                         "), and writing cannot change a shape",
                     "write x = x + y, which makes a new array");
  if (x.dtype() == result.dtype() || x.aval().weak) return result;
  if (rank_of_kind(result.dtype()) > rank_of_kind(x.dtype()))
    throw DtypeError("an operator such as += gives " + std::string(name_of(result.dtype())) +
                         " for an array of " + std::string(name_of(x.dtype())) +
                         ", and writing cannot change a dtype",
                     "write x = x + y, which makes a new array, or convert x with .astype");
  return lax::convert_element_type(result, x.dtype());
}

}  // namespace

PyObject* wrap_view(PyObject* base, Subscripts subscripts, Array array) {
  const bool is_view = makes_view(subscripts, array);
  PyObject* object = wrap(std::move(array));
  if (!object || !is_view) return object;
  ArrayObject* self = handle_of(object);
  ArrayObject* of = handle_of(Py_NewRef(base));
  self->view = new ViewOf{of, std::move(subscripts), of->first_view, nullptr};
  if (of->first_view) of->first_view->view->previous = self;
  of->first_view = self;
  return object;
}

// A chain of views of views is let go of one by one, without recursion.
void forget_view(ArrayObject* self) {
  static std::vector<PyObject*>* waiting = nullptr;  // guarded by the GIL
  ViewOf* view = std::exchange(self->view, nullptr);
  if (view->next) view->next->view->previous = view->previous;
  (view->previous ? view->previous->view->next : view->base->first_view) = view->next;
  auto* base = reinterpret_cast<PyObject*>(view->base);
  delete view;
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

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  return guarded_int([&]() -> int {
    Source::forget_line();
    if (!value)
      throw DtypeError("elements of an array cannot be deleted", "use plait.numpy.delete");
    const Subscripts subscripts = to_subscripts(key);
    // x[i] += v has written through the view x[i] already, and sets it once more.
    if (is_array(value)) {
      const ViewOf* view = handle_of(value)->view;
      if (view && view->base == handle_of(self) && same_place(view->subscripts, subscripts))
        return 0;
    }
    const Array values = to_array(value, {"x[...] = v"});
    write(handle_of(self), update_item(array_of(self), subscripts, values, UpdateKind::set));
    return 0;
  });
}

PyObject* write_result(PyObject* self, PyObject* result) {
  if (!result || result == Py_NotImplemented) return result;
  const py::object owner = py::reinterpret_steal<py::object>(result);
  return guarded([&] {
    write(handle_of(self), fitted(array_of(self), array_of(result)));
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
