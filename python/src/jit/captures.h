// What a jitted function reads from outside: places in the user's objects, the arrays there, which
// are hidden inputs, and guards of the values that its trace took as constants.
//
// Each place comes after the one that it is reached from, so that a prefix shared by many paths is
// followed once. Reading runs no user code and holds no references, unless keys or values are of
// user classes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"
#include "convert/numpy_memory.h"

#include <optional>
#include <span>

namespace plait::python {

// The current objects at the places; null where a place leads nowhere.
struct PlaceValues {
  InlineVector<PyObject*, 32> at;
  std::vector<py::object> kept;  // objects that nobody else holds
};

class Places {
 public:
  // Adds a path, (root, ((step, key), ...), text), and returns its last place.
  int add(py::handle path);
  void read(PlaceValues& values) const;
  void keep_references() { keeps_ = true; }
  void close() { numbers_ = py::dict(); }  // no more places are added
  int visit(visitproc visit, void* arg) const;

 private:
  // The numbers of cell to element are those of _reads.py. The others are attributes of Python's
  // own objects, which are read without a look-up.
  enum class Step {
    cell,
    item,
    attribute,
    element,
    root,
    closure,
    globals,
    defaults,
    code,
    type,
    dict
  };
  struct Place {
    Step step;
    int parent;
    py::object key;
    std::optional<Py_ssize_t> index;  // of a list or tuple, where the key is one
  };
  PyObject* follow(const Place& place, PyObject* from, PlaceValues& values) const;
  std::vector<Place> places_;
  py::dict numbers_;  // by (parent, step, key), while places are added
  bool keeps_ = false;
};

struct Guard {
  // The numbers are those of _reads.py.
  enum class Kind {
    value,
    same_object,
    type,
    length,
    keys,
    items,
    bytes,
    aval,
    code,
    absent,
    alias,
  } kind;
  int place;
  py::object expected;
  std::string text;
  Py_ssize_t length = 0;       // of a container
  int other = -1;              // the place of the same object
  std::string bytes = {};      // of an array, with its type
  std::optional<Aval> aval{};  // of an array
  bool holds(const PlaceValues& values) const;
  // How it differs, for messages.
  std::string explain(const PlaceValues& values) const;
};

// An array that the function captured. Every path must lead to the same object. An array without a
// path is frozen.
struct Captured {
  Aval aval;
  Array value;  // if frozen; else for the first call only, so that it can be freed
  bool from_numpy = false;
  std::vector<int> places = {};
  std::vector<std::string> texts = {};  // of paths
};

class Captures {
 public:
  std::vector<Captured> arrays;

  void add_path(Captured& array, py::handle path);
  void add_guard(py::handle guard);
  void close() { places_.close(); }
  // Adds the captured arrays with their current values. False if the program no longer fits. With
  // memory, NumPy arrays are read in place.
  bool match(Arrays& inputs, BorrowedMemory* memory) const;
  // Why it does not fit; empty if everything that it keeps agrees.
  std::string explain_miss() const;
  int visit(visitproc visit, void* arg) const;

 private:
  Places places_;
  std::vector<Guard> guards_;
};

// Whether two values are the same constant to a program.
bool same_static(PyObject* a, PyObject* b);

}  // namespace plait::python
