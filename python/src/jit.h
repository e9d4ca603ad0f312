// What a jitted function keeps: entries, each for one signature. jit.cpp matches calls and runs
// them; signature.cpp makes entries and says what they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

#include <plait/run.h>

namespace plait::python {

// A way from an object to one that it leads to: cells, items and attributes.
struct Step {
  enum class Kind { cell, item, attribute } kind;
  py::object key;
};
struct Path {
  py::object root;
  std::vector<Step> steps;
  std::string text;
  // What the path leads to now; null when it leads nowhere.
  py::object read() const;
};

// An array that the function captured, a hidden input. Every path must lead to the same object;
// with no path the array is frozen.
struct Captured {
  Array value;
  bool from_numpy = false;
  std::vector<Path> paths;
};
// A Python scalar that the function captured: a changed one retraces.
struct Guard {
  Path path;
  py::object value;
};

struct ArgumentKey {
  bool is_static = false;
  py::object value;   // of a static argument
  TreeDef structure;  // of others
};
struct LeafKey {
  std::optional<Aval> aval;  // of an array or number
  py::object value;          // of a leaf that is neither: part of the key
};

struct JitEntry {
  std::size_t num_positional = 0;
  std::vector<py::object> names;  // of keyword arguments, sorted
  std::vector<ArgumentKey> arguments;
  std::vector<LeafKey> leaves;

  Jaxpr jaxpr;
  std::vector<Captured> captured;
  std::vector<Guard> guards;
  TreeDef outputs;
  std::vector<Aval> output_avals;
  std::shared_ptr<const Executable> executable;  // made at the first call outside traces
  bool releases_gil = false;
  std::int64_t hits = 0;

  std::string to_string() const;  // "(x: f32[3], n=4)"
  int visit(visitproc visit, void* arg) const;
};

// A call on its way: values of positional, then of keyword arguments in order of name.
struct JitCall {
  std::size_t num_positional = 0;
  std::vector<PyObject*> values, names;
};

struct JitState {
  py::object function;
  std::string name;
  std::vector<std::int64_t> static_argnums;
  std::vector<py::object> static_argnames;
  std::vector<std::string> parameters;  // names of positional parameters, where known
  std::vector<std::shared_ptr<JitEntry>> entries;
  std::shared_ptr<JitEntry> last;
  std::int64_t hits = 0, misses = 0;
  std::string last_miss;

  bool is_static(const JitCall& call, std::size_t index) const;
  std::string argument_name(const JitCall& call, std::size_t index) const;
};

bool same_static(PyObject* a, PyObject* b);
// Traces the function for this call; keeps says whether the entry is good for later calls.
std::shared_ptr<JitEntry> make_entry(JitState& state, const JitCall& call, bool& keeps);
// Why no entry fits, compared with the entry used last.
std::string explain_miss(const JitState& state, const JitCall& call);

}  // namespace plait::python
