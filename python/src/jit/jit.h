// What a jitted function keeps: entries, one for each signature. signature.cpp makes and explains
// them; jit_call.cpp matches calls with them and runs them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "captures.h"
#include "outputs.h"

#include <plait/compile/sized.h>
#include <plait/trace/data_sizes.h>
#include <plait/transforms/trace_store.h>

namespace plait::python {

struct ArgumentKey {
  bool is_static = false;
  py::object value;   // of a static argument
  TreeDef structure;  // of other arguments
};
struct LeafKey {
  std::optional<Aval> aval;  // of an array or number; with named sizes where specs say so
  py::object value;          // of a leaf that is neither: part of the key
  bool is_donated = false;
};

// The program for inputs of these avals, and its executable, which the first call outside of traces
// makes. An entry without named sizes has one instance for each device.
struct Instance {
  Device device;
  std::vector<Aval> avals;
  Jaxpr jaxpr;
  std::shared_ptr<const Executable> executable;
  bool releases_gil = false;
  std::optional<SizedProgram::Instance> sized;  // with named sizes
  bool keeps_outputs = false;                   // writes to spare arrays of outputs
  bool calls_host = false;                      // host functions may keep their arguments
  SpareOutputs outputs;
};

struct JitEntry {
  std::size_t num_positional = 0;
  std::vector<py::object> names;  // of keyword arguments, sorted
  std::vector<ArgumentKey> arguments;
  std::vector<LeafKey> leaves;

  Jaxpr jaxpr;
  std::shared_ptr<SizedProgram> sized;                 // with named sizes
  std::shared_ptr<const DataSizedOutputs> data_sized;  // null: no output is of such sizes
  Captures captures;
  TreeDef outputs;
  std::vector<bool> donated;                         // by input of the jaxpr; empty: none
  std::vector<std::shared_ptr<Instance>> instances;  // the most recently used first
  std::int64_t hits = 0;

  std::string to_string() const;  // "(x: f32[3], n=4)"
  int visit(visitproc visit, void* arg) const;
};

// The inputs that a call gives to its program: arguments, then captured arrays. owners: the Python
// arrays that are donated, null for other inputs; empty if none is.
struct JitInputs {
  Arrays arrays;
  std::vector<py::object> owners;
  BorrowedMemory borrowed;
  bool are_placed = false;  // on the device of jit(device=): what was no array may go there
};

// The arguments of a call: positional values, then values of keywords, sorted by name.
struct JitCall {
  std::size_t num_positional = 0;
  InlineVector<PyObject*, 8> values, names;
};

// The GIL guards the state of a jitted function. Comparing a call with an entry may run user code,
// which may switch threads or call the same function.
struct HeldGil {
  void lock() {}
  void unlock() {}
};

struct JitState {
  py::object function;
  std::string name;
  std::vector<std::int64_t> static_argnums;
  std::vector<py::object> static_argnames;
  std::vector<std::int64_t> donate_argnums;
  std::vector<py::object> donate_argnames;
  bool waits = false;                   // for generated loops
  std::optional<Device> device;         // on which it runs; absent: where its arguments are
  py::object specs;                     // a tuple, one for each argument; null without named sizes
  SizeOptions options;                  // of named sizes
  std::vector<std::string> parameters;  // names of positional parameters, if known
  TraceStore<JitEntry, HeldGil> traces;
  std::int64_t hits = 0, misses = 0;
  std::string last_miss;

  bool is_static(const JitCall& call, std::size_t index) const;
  bool is_donated(const JitCall& call, std::size_t index) const;
  py::object spec_of(const JitCall& call, std::size_t index) const;  // None if there is none
  std::string argument_name(const JitCall& call, std::size_t index) const;
  // The name of an input of an entry's jaxpr, for messages: "argument p['w']".
  std::string input_name(const JitEntry& entry, std::size_t input) const;
};

// Traces the function for this call. keeps: whether the entry is valid for later calls.
std::shared_ptr<JitEntry> make_entry(JitState& state, const JitCall& call, bool& keeps);
// The entry for a call, traced if there is none, and the inputs of the call.
std::shared_ptr<JitEntry> find_entry(JitState& state, const JitCall& call, JitInputs& inputs);
// The entry's program for these inputs. ShapeError if sizes of one name disagree.
std::shared_ptr<Instance> find_instance(const JitState& state, JitEntry& entry,
                                        const Arrays& arrays, Device device);
// The device of a call, where what may move has been moved then; the CPU unless all are known, or
// jit was given one. BackendError for an argument that lies on another than that.
Device settle(const JitState& state, const JitEntry& entry, Arrays& arrays);
std::shared_ptr<const Executable> compile_for(const JitState& state, const JitEntry& entry,
                                              const Instance& instance);
PyObject* run_entry(const JitState& state, JitEntry& entry, JitInputs& inputs);
// Why no entry fits, compared with the most recently used one.
std::string explain_miss(const JitState& state, const JitCall& call);

}  // namespace plait::python
