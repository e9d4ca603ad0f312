// Shared by the files of the extension module: Python's view of arrays, sizes, dtypes, trees and
// errors.
//
// Everything here needs the GIL unless it says otherwise. C++ errors become Python errors in one
// place (raise_current). Python's own exceptions pass through C++ frames unchanged, as
// pybind11::error_already_set.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/argument_names.h>
#include <plait/base/tree.h>
#include <plait/functions/catalogue.h>
#include <plait/trace/trace.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cxxabi.h>

#include <utility>
#include <vector>

namespace py = pybind11;

namespace plait {
class Spec;
}

namespace plait::python {

// --- Errors (error.cpp) --------------------------------------------------------------------------

// Turns the current C++ exception into the Python error. Call it inside a catch block.
void raise_current() noexcept;
// A daemon thread that asks for the GIL when the interpreter is gone ends by unwinding its stack,
// which must not be stopped.
template <class Body>
PyObject* guarded(Body&& body) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    raise_current();
    return nullptr;
  }
}
template <class Body>
int guarded_int(Body&& body) {
  try {
    return body();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    raise_current();
    return -1;
  }
}
// Runs body without the GIL. An error gets its line of Python afterwards, when the GIL is held
// again.
template <class Body>
auto without_gil(Body&& body) {
  struct Released {
    PyThreadState* state = PyEval_SaveThread();
    ~Released() noexcept(false) { PyEval_RestoreThread(state); }
  };
  try {
    Released released;
    return body();
  } catch (Error& error) {
    if (!error.source()) error.at(Source::current());
    throw;
  }
}
// A new reference that must not be null: throws the Python error that is set.
inline py::object owned(PyObject* object) {
  if (!object) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}
inline py::object borrowed(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }
// A Python object that C++ holds. Any thread may release it, with the GIL or without.
std::shared_ptr<void> share(py::object object);
std::string type_name_of(PyObject* object);
// The UTF-8 text of a str. What UTF-8 cannot encode becomes an escape.
std::string utf8_of(PyObject* text);
// Forbids constructing a class in Python: plait's functions make its values, and
// Class.__new__(Class) would make an object without one.
void forbid_construction(py::handle type);
// Python's text of an object, shortened to a readable length.
std::string text_of(PyObject* object);

// --- Arrays (array.cpp) --------------------------------------------------------------------------

// A handle. Writing to an array (inplace.cpp) rebinds its handle to another value, and with it
// every view of the handle; see NOTE: [views].
struct ViewOf;
struct ArrayObject {
  PyObject_HEAD Array array;  // empty in a view that must read its base again
  PyObject* weak_references;
  std::uint64_t made_in;                    // the id of the trace that was current, or 0
  ViewOf* view;                             // what it is a view of; null: nothing
  ArrayObject *shown_views, *hidden_views;  // live views of it, with and without a value
  bool is_argument;                         // of a function that is being traced
};
extern PyTypeObject* array_type;  // final: exact type checks are complete
inline bool is_array(PyObject* object) { return Py_TYPE(object) == array_type; }
void show(ArrayObject* view);  // makes it hold its value
inline const Array& array_of(PyObject* object) {
  auto* self = reinterpret_cast<ArrayObject*>(object);
  if (!self->array.is_valid()) [[unlikely]]
    show(self);
  return self->array;
}
PyObject* wrap(Array array);  // new reference
inline py::object to_python(Array array) { return owned(wrap(std::move(array))); }
// Counts the live arrays that were made in the current trace since it was constructed. Needs the
// GIL throughout; counts of several threads may overlap.
class LivingArrays {
 public:
  LivingArrays();
  ~LivingArrays();
  LivingArrays(const LivingArrays&) = delete;
  std::int64_t count() const { return count_; }
  static void add(std::uint64_t trace, int change);

 private:
  const std::uint64_t trace_;
  std::int64_t count_ = 0;
  LivingArrays* outer_;
  static LivingArrays* innermost_;
};
// TracerError if a value of the current trace can be reached from a traced function, or from
// objects of its signature: pairs of a parameter's name and a value.
void check_nothing_left(const py::object& function, const py::list& objects);

// --- Conversions (convert.cpp, argument.cpp, size.cpp) -------------------------------------------

// Which argument is being converted, for messages: "numpy.sum: argument 'a'".
struct Role {
  std::string_view function = {}, parameter = {};
  std::string to_string() const;
  std::string prefix() const;  // of a message: "numpy.sum: argument 'a': ", or nothing
};
// An array from anything array-like. Python numbers are weak, and so are NumPy scalars of dtype
// float64, int64 or complex128. Lists are strong. Their dtype is the default unless an item has a
// strong one; ValueError if an integer does not fit. NumPy arrays are copied unless nobody can
// write to them. DtypeError for anything else.
Array to_array(PyObject* object, const Role& role = {});
// The same for an operand of an operator. Nullopt if its type does not say that it is an array, so
// that Python asks the other operand.
std::optional<Array> to_operand(PyObject* object);
[[noreturn]] void throw_no_array(PyObject* object, const Role& role, const std::string& why = {});
bool is_numpy_array(PyObject* object);
bool is_numpy_scalar(PyObject* object);
bool is_numpy_dtype(PyObject* object);
// Whether an object would be traced as an array: arrays and numbers of any library.
bool is_array_like(PyObject* object);
// A read-only NumPy array of the value, which shares its memory if that is dense.
py::object to_numpy(const Array& array);
// Recorded while jit traces: arrays made of NumPy arrays, so that they can be found again, and
// arrays whose values Python read. See captures.h.
struct Conversions {
  std::vector<std::pair<Array, py::object>> made;
  Arrays read;
};
extern thread_local Conversions* conversions;
// Returns the array, and records that Python reads its values.
inline const Array& read_by_python(const Array& array) {
  if (conversions && array.is_concrete()) conversions->read.push_back(array);
  return array;
}

DType to_dtype(PyObject* object, const Role& role = {});
py::object dtype_object(DType dtype);     // a NumPy dtype
py::object device_object(Device device);  // a plait.Device
Buffer host_buffer_of(
    const Array& array);  // a copy, and a wait without the GIL, where it is needed
Dim to_dim(PyObject* object, const Role& role = {});
bool is_size(PyObject* object);               // a plait.Size
std::optional<Dim> as_dim(PyObject* object);  // of an integer or size
py::object dim_object(Dim dim);               // an int, or a plait.Size
py::object shape_object(const Shape& shape);
Shape to_shape(PyObject* object);
py::object aval_object(const Aval& aval);  // plait.ShapeDtypeStruct
Aval to_aval(PyObject* object,
             const Role& role = {});  // of anything with shape and dtype, or array-like

// A spec from text, None, or anything with a shape and a dtype; values give their own avals.
Spec to_spec(PyObject* object);

Argument to_argument(PyObject* object, const FunctionInfo& info, std::size_t index);
py::object from_argument(const Argument& argument);

// --- Catalogue (builtin.cpp) ---------------------------------------------------------------------

// The catalogue's function that a builtin object calls; null for other objects.
const FunctionInfo* function_of(PyObject* object);

// --- Trees (pytree.cpp) --------------------------------------------------------------------------

// The structure of a tree, and its leaves in order. is_leaf stops at nodes for which it is true.
TreeDef flatten(PyObject* tree, std::vector<py::object>& leaves, PyObject* is_leaf = nullptr);
py::object unflatten(const TreeDef& structure, std::span<const py::object> leaves);
py::object unflatten_arrays(const TreeDef& structure, Arrays leaves);
// Whether tree has this structure. leaves are then its leaves (borrowed, or kept alive by keep).
bool flatten_as(const TreeDef& structure, PyObject* tree, std::vector<PyObject*>& leaves,
                std::vector<py::object>& keep);
py::object treedef_object(TreeDef structure);
const TreeDef& treedef_of(py::handle object);
// The leaves of a tree as arrays. A TreeError names the path of a leaf that is not an array.
Tree<Array> to_tree(PyObject* tree, const Role& role = {});
py::object from_tree(const Tree<Array>& tree);

// --- Jaxprs and functions (jaxpr.cpp) ------------------------------------------------------------

py::object jaxpr_object(const Jaxpr& jaxpr);
const Jaxpr& jaxpr_of(py::handle object);
// Parameters as a dict of Python values. Callables of primitives made in Python are Python objects;
// others can only be named, as in the text of a jaxpr.
enum class Callables { objects, names };
py::dict params_object(const Params& params, Callables callables);
// A Python function of a list of arrays that returns a list of array-likes. It is an error if a
// value of the trace can be reached after a whole function. A part, such as the body of a loop, may
// leave values to the function around it.
enum class Traces { function, part };
Function to_function(py::object callable, std::string what, Traces traces = Traces::function);
// Names of arguments from a Python function of their index, which must outlive them.
ArgumentNames::Name to_names(const py::object& place);
Arrays to_arrays(py::handle sequence);
py::list from_arrays(std::span<const Array> arrays);
// Whether a program runs so long that other threads should have the GIL.
bool is_worth_releasing_gil(const Jaxpr& program);

// --- Parts of the module -------------------------------------------------------------------------

void add_errors(py::module_& module);
void add_source(py::module_& module);
void add_array(py::module_& module);
void add_access(py::module_& module);
void add_devices(py::module_& module);
void add_convert(py::module_& module);
void add_sizes(py::module_& module);
void add_builtin(py::module_& module);
void add_pytree(py::module_& module);
void add_jaxpr(py::module_& module);
void add_flat(py::module_& module);
void add_mesh(py::module_& module);
void add_custom(py::module_& module);
void add_solvers(py::module_& module);
void add_checkpoint(py::module_& module);
void add_traced(py::module_& module);
void add_control(py::module_& module);
void add_jit(py::module_& module);
void add_interchange(py::module_& module);
void add_tape(py::module_& module);
void add_programs(py::module_& module);
void add_saved(py::module_& module);
void add_extend(py::module_& module);
void add_host_call(py::module_& module);
void add_checks(py::module_& module);
void add_where(py::module_& module);
void add_autocast(py::module_& module);
void add_profile(py::module_& module);
void add_inspect(py::module_& module);
void add_rewrite(py::module_& module);
void add_interrupts();

}  // namespace plait::python
