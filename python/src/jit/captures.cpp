// Captures of jitted functions. See captures.h.
// SPDX-License-Identifier: Apache-2.0
#include "captures.h"

#include <algorithm>
#include <cstring>

namespace plait::python {
namespace {

// The attribute dict of an object, also of one that keeps it elsewhere than others do, such as
// threading.local; null if it has none.
py::object dict_of(PyObject* from) {
  static PyObject* const name = PyUnicode_InternFromString("__dict__");
  PyTypeObject* const type = Py_TYPE(from);
  if (PyModule_Check(from)) return borrowed(PyModule_GetDict(from));
  if (type->tp_dictoffset != 0)
    return py::reinterpret_steal<py::object>(PyObject_GenericGetDict(from, nullptr));
  if (type->tp_getattro == PyObject_GenericGetAttr) return {};
  static PyObject* const hooks[] = {PyUnicode_InternFromString("__getattr__"),
                                    PyUnicode_InternFromString("__getattribute__")};
  for (PyObject* hook : hooks)
    if (PyObject* found = _PyType_Lookup(type, hook); found && PyFunction_Check(found)) return {};
  py::object dict = py::reinterpret_steal<py::object>(PyObject_GetAttr(from, name));
  if (!dict) PyErr_Clear();
  return dict && PyDict_Check(dict.ptr()) ? dict : py::object();
}

// Looks up an attribute in the object's own dict or in its class, without running properties and
// hooks.
PyObject* look_up(PyObject* from, PyObject* name, PlaceValues& values) {
  if (PyModule_Check(from)) return PyDict_GetItemWithError(PyModule_GetDict(from), name);
  if (PyType_Check(from)) return _PyType_Lookup(reinterpret_cast<PyTypeObject*>(from), name);
  PyTypeObject* const type = Py_TYPE(from);
  if (type->tp_dictoffset != 0) {
    if (PyObject* dict = PyObject_GenericGetDict(from, nullptr)) {
      PyObject* const found = PyDict_GetItemWithError(dict, name);
      Py_DECREF(dict);  // the object holds it
      if (found) return found;
    }
    PyErr_Clear();
  }
  PyObject* const found = _PyType_Lookup(type, name);
  if (!found || !Py_TYPE(found)->tp_descr_get) {
    if (type->tp_dictoffset != 0) return found;
    const py::object dict = dict_of(from);
    PyObject* const own = dict ? PyDict_GetItemWithError(dict.ptr(), name) : nullptr;
    return own ? own : found;
  }
  if (Py_TYPE(found) != &PyMemberDescr_Type && Py_TYPE(found) != &PyGetSetDescr_Type)
    return nullptr;
  PyObject* const got =
      Py_TYPE(found)->tp_descr_get(found, from, reinterpret_cast<PyObject*>(type));
  if (got) values.kept.push_back(py::reinterpret_steal<py::object>(got));
  return got;
}

// Whether comparing values of this type, or looking them up, runs no Python code.
bool is_plain(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis) return true;
  for (PyTypeObject* type :
       {&PyUnicode_Type, &PyLong_Type, &PyFloat_Type, &PyBool_Type, &PyBytes_Type, &PyComplex_Type})
    if (Py_TYPE(object) == type) return true;
  return is_numpy_scalar(object) || is_numpy_dtype(object);
}

bool same_slice(PyObject* a, PyObject* b) {
  auto* left = reinterpret_cast<PySliceObject*>(a);
  auto* right = reinterpret_cast<PySliceObject*>(b);
  return same_static(left->start, right->start) && same_static(left->stop, right->stop) &&
         same_static(left->step, right->step);
}

// The memory of an array or a NumPy scalar, with its type.
std::string contents_of(PyObject* object) {
  struct Hold {
    Py_buffer buffer{};
    ~Hold() {
      if (buffer.obj) PyBuffer_Release(&buffer);
    }
  } hold;
  if (PyObject_GetBuffer(object, &hold.buffer, PyBUF_FULL_RO) < 0) {
    PyErr_Clear();
    const py::object array = py::module_::import("numpy").attr("asarray")(borrowed(object));
    const py::object data = array.attr("tobytes")();
    const py::object type = py::make_tuple(array.attr("dtype"), array.attr("shape"));
    return text_of(type.ptr()) + std::string(data.cast<py::bytes>());
  }
  const Py_buffer& buffer = hold.buffer;
  std::string text(buffer.format ? buffer.format : "B");
  for (int i = 0; i < buffer.ndim; ++i) text += " " + std::to_string(buffer.shape[i]);
  const std::size_t start = text.size() + 1;
  text.resize(start + std::size_t(buffer.len));
  if (PyBuffer_ToContiguous(text.data() + start, &buffer, buffer.len, 'C') < 0)
    throw py::error_already_set();
  return text;
}

Py_ssize_t length_of(PyObject* container) {
  if (PyList_Check(container)) return PyList_GET_SIZE(container);
  if (PyTuple_Check(container)) return PyTuple_GET_SIZE(container);
  if (PyDict_Check(container)) return PyDict_GET_SIZE(container);
  const Py_ssize_t size = PyObject_Size(container);
  if (size < 0) PyErr_Clear();
  return size;
}

py::tuple keys_of(PyObject* dict) {
  return py::reinterpret_steal<py::tuple>(PySequence_Tuple(dict));
}

bool same_keys(PyObject* expected, PyObject* dict) {
  if (length_of(dict) != PyTuple_GET_SIZE(expected)) return false;
  if (!PyDict_CheckExact(dict)) return same_static(expected, keys_of(dict).ptr());
  Py_ssize_t position = 0, i = 0;
  PyObject *key, *value;
  while (PyDict_Next(dict, &position, &key, &value)) {
    PyObject* const before = PyTuple_GET_ITEM(expected, i++);
    if (key != before && !same_static(before, key)) return false;
  }
  return true;
}

bool same_tuple(PyObject* a, PyObject* b) {
  if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
    if (!same_static(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  return true;
}

// Whether values that are equal may still differ in what a program makes of them: range(0) and
// range(5, 5), Decimal('1') and Decimal('1.00'), frozenset({1}) and frozenset({1.0}).
bool is_told_apart_by_text(PyObject* value) {
  if (PyRange_Check(value) || PyAnySet_Check(value)) return true;
  const std::string_view type = Py_TYPE(value)->tp_name;
  return type.starts_with("decimal.") || type.starts_with("datetime.");
}

std::string sorted_text(PyObject* value) {
  if (!PyAnySet_Check(value)) return std::string(py::repr(borrowed(value)));
  std::vector<std::string> texts;
  for (py::handle item : borrowed(value)) texts.push_back(std::string(py::repr(item)));
  std::sort(texts.begin(), texts.end());
  std::string text;
  for (const std::string& item : texts) text += item + ", ";
  return text;
}

bool same_items(PyObject* expected, PyObject* container) {
  if (length_of(container) != PyTuple_GET_SIZE(expected)) return false;
  py::object copied;
  if (!PyList_Check(container) && !PyTuple_Check(container)) {
    copied = owned(PySequence_List(container));
    container = copied.ptr();
  }
  PyObject** const items = PySequence_Fast_ITEMS(container);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(expected); ++i)
    if (!same_static(PyTuple_GET_ITEM(expected, i), items[i])) return false;
  return true;
}

std::optional<Aval> type_of_array(PyObject* object) {
  if (is_array(object)) return array_of(object).aval();
  if (!is_numpy_array(object)) return std::nullopt;
  if (std::optional<Aval> aval = aval_of_numpy(object)) return aval;
  try {
    return to_aval(object);
  } catch (const DtypeError&) {
    return std::nullopt;  // a dtype that plait does not have
  }
}

// Whether two functions do the same if their cells, defaults and globals agree.
bool same_code(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (!PyFunction_Check(b)) return false;
  PyObject *left = PyFunction_GET_CODE(a), *right = PyFunction_GET_CODE(b);
  return left == right ||
         (PyFunction_GET_GLOBALS(a) == PyFunction_GET_GLOBALS(b) && same_static(left, right));
}

}  // namespace

bool same_static(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  // 0.0 and -0.0 are different constants, and NaN is itself.
  if (PyFloat_Check(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    if (std::memcmp(&x, &y, sizeof x) != 0) return false;
    if (PyFloat_CheckExact(a) || x != x) return true;
  }
  if (PyComplex_CheckExact(a)) {
    const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (is_numpy_scalar(a)) return contents_of(a) == contents_of(b);
  if (PySlice_Check(a)) return same_slice(a, b);
  if (PyTuple_Check(a) && !same_tuple(a, b)) return false;
  if (PyTuple_CheckExact(a)) return true;
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) throw py::error_already_set();
  return equal == 1 && (!is_told_apart_by_text(a) || sorted_text(a) == sorted_text(b));
}

// --- Places --------------------------------------------------------------------------------------

int Places::add(py::handle path) {
  auto number = [&](int parent, Step step, py::object key) {
    const bool is_root = step == Step::root;
    const py::object name =
        py::make_tuple(parent, int(step), is_root ? py::int_(std::uintptr_t(key.ptr())) : key,
                       type_name_of(key.ptr()));
    if (numbers_.contains(name)) return numbers_[name].cast<int>();
    std::optional<Py_ssize_t> index;
    if (!is_root && PyIndex_Check(key.ptr())) {
      index = PyNumber_AsSsize_t(key.ptr(), PyExc_OverflowError);
      if (PyErr_Occurred()) {
        PyErr_Clear();
        index.reset();
      }
    }
    if (!is_root && !is_plain(key.ptr())) keeps_ = true;
    places_.push_back({step, parent, key, index});
    numbers_[name] = int(places_.size()) - 1;
    return int(places_.size()) - 1;
  };
  const auto parts = py::reinterpret_borrow<py::tuple>(path);
  int at = number(-1, Step::root, parts[0]);
  for (py::handle part : parts[1]) {
    Step step = Step(part[py::int_(0)].cast<int>());
    const py::object key = part[py::int_(1)];
    if (step == Step::attribute) {
      const std::string name = utf8_of(key.ptr());
      if (name == "__closure__") step = Step::closure;
      if (name == "__globals__") step = Step::globals;
      if (name == "__defaults__") step = Step::defaults;
      if (name == "__code__") step = Step::code;
      if (name == "__class__") step = Step::type;
      if (name == "__dict__") step = Step::dict;
    }
    at = number(at, step, key);
  }
  return at;
}

PyObject* Places::follow(const Place& place, PyObject* from, PlaceValues& values) const {
  const bool is_function = PyFunction_Check(from);
  switch (place.step) {
    case Step::cell:
      return PyCell_Check(from) ? PyCell_GET(from) : nullptr;
    case Step::item:
      if (PyDict_Check(from)) return PyDict_GetItemWithError(from, place.key.ptr());
      if (PyList_Check(from) || PyTuple_Check(from)) {
        if (!place.index) return nullptr;
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(from);
        const Py_ssize_t index = *place.index < 0 ? *place.index + size : *place.index;
        return index >= 0 && index < size ? PySequence_Fast_GET_ITEM(from, index) : nullptr;
      }
      values.kept.push_back(
          py::reinterpret_steal<py::object>(PyObject_GetItem(from, place.key.ptr())));
      return values.kept.back().ptr();
    case Step::closure:
      return is_function ? PyFunction_GET_CLOSURE(from) : nullptr;
    case Step::globals:
      return is_function ? PyFunction_GET_GLOBALS(from) : nullptr;
    case Step::defaults:
      return is_function ? PyFunction_GET_DEFAULTS(from) : nullptr;
    case Step::code:
      return is_function ? PyFunction_GET_CODE(from) : nullptr;
    case Step::dict:
      values.kept.push_back(dict_of(from));
      return values.kept.back().ptr();
    case Step::type:
      return reinterpret_cast<PyObject*>(Py_TYPE(from));
    default:
      return look_up(from, place.key.ptr(), values);
  }
}

void Places::read(PlaceValues& values) const {
  values.at.reserve(places_.size());
  int unordered = -1;  // the container whose elements are in `list`
  py::object list;
  for (const Place& place : places_) {
    PyObject* found = nullptr;
    PyObject* const from = place.parent < 0 ? nullptr : values.at[place.parent];
    if (place.step == Step::root) {
      found = place.key.ptr();
    } else if (from && place.step == Step::element) {
      if (unordered != place.parent) {
        list = py::reinterpret_steal<py::object>(PySequence_List(from));
        if (list) values.kept.push_back(list);
        unordered = place.parent;
      }
      if (list && place.index && *place.index < PyList_GET_SIZE(list.ptr()))
        found = PyList_GET_ITEM(list.ptr(), *place.index);
    } else if (from) {
      found = follow(place, from, values);
    }
    if (!found && PyErr_Occurred()) PyErr_Clear();
    if (found && keeps_) values.kept.push_back(borrowed(found));
    values.at.push_back(found);
  }
}

int Places::visit(visitproc visit, void* arg) const {
  for (const Place& place : places_) Py_VISIT(place.key.ptr());
  return 0;
}

// --- Guards --------------------------------------------------------------------------------------

bool Guard::holds(const PlaceValues& values) const {
  PyObject* const now = values.at[place];
  if (!now) return kind == Kind::absent;
  switch (kind) {
    case Kind::value:
      return same_static(expected.ptr(), now);
    case Kind::same_object:
      return expected.ptr() == now;
    case Kind::type:
      return expected.ptr() == reinterpret_cast<PyObject*>(Py_TYPE(now));
    case Kind::length:
      return length_of(now) == length;
    case Kind::keys:
      return same_keys(expected.ptr(), now);
    case Kind::items:
      return same_items(expected.ptr(), now);
    case Kind::bytes:
      return (is_array(now) || PyObject_CheckBuffer(now) || is_numpy_array(now)) &&
             (!is_array(now) || array_of(now).is_concrete()) && contents_of(now) == bytes;
    case Kind::aval:
      return is_array(now) ? aval && array_of(now).aval() == *aval : type_of_array(now) == aval;
    case Kind::code:
      return same_code(expected.ptr(), now);
    case Kind::absent:
      return false;
    case Kind::alias:
      return values.at[other] == now;
  }
  return false;
}

std::string Guard::explain(const PlaceValues& values) const {
  PyObject* const now = values.at[place];
  const std::string name = kind == Kind::length ? "len(" + text + ")"
                           : kind == Kind::type ? "type(" + text + ")"
                           : kind == Kind::keys ? "list(" + text + ")"
                                                : text;
  if (!now) return name + " is gone";
  auto changed = [&](const std::string& after, const std::string& before) {
    return name + " is " + after + " where it was " + before;
  };
  switch (kind) {
    case Kind::value:
    case Kind::same_object:
      return changed(text_of(now), text_of(expected.ptr()));
    case Kind::items:
      return changed(text_of(now), text_of(py::list(expected).ptr()));
    case Kind::type:
      return changed(type_name_of(now), reinterpret_cast<PyTypeObject*>(expected.ptr())->tp_name);
    case Kind::length:
    case Kind::keys:
      if (length_of(now) < 0)
        return text + " is of type " + type_name_of(now) + ", and held others";
      if (kind == Kind::length)
        return changed(std::to_string(length_of(now)), std::to_string(length));
      return changed(text_of(py::list(borrowed(now)).ptr()), text_of(py::list(expected).ptr()));
    case Kind::aval:
      if (const std::optional<Aval> type = type_of_array(now); type && aval)
        return changed(type->to_string(), aval->to_string());
      return name + " is an array of another type";
    case Kind::bytes:
      return "the array " + name + " holds other values";
    case Kind::code:
      return "the function " + name + " is another one";
    case Kind::absent:
      return name + " is there where it was not";
    case Kind::alias:
      break;
  }
  return "names that led to one object lead to several, " + name + " among them";
}

// --- Captures ------------------------------------------------------------------------------------

void Captures::add_path(Captured& array, py::handle path) {
  array.places.push_back(places_.add(path));
  array.texts.push_back(utf8_of(py::object(path[py::int_(2)]).ptr()));
}

void Captures::add_guard(py::handle description) {
  const auto parts = py::reinterpret_borrow<py::tuple>(description);
  Guard guard{Guard::Kind(parts[1].cast<int>()), places_.add(parts[0]), parts[2],
              utf8_of(py::object(parts[0][py::int_(2)]).ptr())};
  PyObject* const expected = guard.expected.ptr();
  bool keeps_expected = true;
  if (guard.kind == Guard::Kind::value && !is_plain(expected)) places_.keep_references();
  if (guard.kind == Guard::Kind::keys || guard.kind == Guard::Kind::items)
    for (py::handle item : py::reinterpret_borrow<py::tuple>(expected))
      if (!is_plain(item.ptr())) places_.keep_references();
  if (guard.kind == Guard::Kind::length) {
    guard.length = parts[2].cast<Py_ssize_t>();
  } else if (guard.kind == Guard::Kind::alias) {
    guard.other = places_.add(parts[2]);
    keeps_expected = false;
  } else if (guard.kind == Guard::Kind::bytes) {
    guard.bytes = contents_of(expected);
    keeps_expected = false;
  } else if (guard.kind == Guard::Kind::aval) {
    guard.aval = type_of_array(expected);
    keeps_expected = false;
  }
  if (!keeps_expected) guard.expected = py::none();
  guards_.push_back(std::move(guard));
}

bool Captures::match(Arrays& inputs, BorrowedMemory* memory) const {
  PlaceValues values;
  places_.read(values);
  for (const Guard& guard : guards_)
    if (!guard.holds(values)) return false;
  for (const Captured& item : arrays) {
    if (item.places.empty()) {
      inputs.push_back(item.value);
      continue;
    }
    PyObject* const now = values.at[item.places[0]];
    if (!now) return false;
    for (int place : item.places)
      if (values.at[place] != now) return false;
    if (!item.from_numpy) {
      if (!is_array(now) || !(array_of(now).aval() == item.aval)) return false;
      inputs.push_back(array_of(now));
      continue;
    }
    if (!is_numpy_array(now)) return false;
    std::optional<Array> array = memory ? memory->read(now) : std::nullopt;
    if (!array) array = to_array(now);
    if (!(array->aval() == item.aval)) return false;
    inputs.push_back(std::move(*array));
  }
  return true;
}

std::string Captures::explain_miss() const {
  PlaceValues values;
  places_.read(values);
  for (const Guard& guard : guards_)
    if (!guard.holds(values)) return guard.explain(values);
  for (const Captured& item : arrays)
    for (std::size_t i = 0; i < item.places.size(); ++i) {
      PyObject* const now = values.at[item.places[i]];
      if (!now || !is_array_like(now)) return "the captured array " + item.texts[i] + " is gone";
      if (const Aval type = to_array(now).aval(); !(type == item.aval))
        return "the captured array " + item.texts[i] + " is " + type.to_string() +
               " where it was " + item.aval.to_string();
    }
  for (const Captured& item : arrays)
    for (int place : item.places)
      if (values.at[place] != values.at[item.places[0]])
        return "names that led to one captured array lead to several";
  return "";
}

int Captures::visit(visitproc visit, void* arg) const {
  if (const int result = places_.visit(visit, arg)) return result;
  for (const Guard& guard : guards_) Py_VISIT(guard.expected.ptr());
  return 0;
}

}  // namespace plait::python
