// Backends: what compiles and runs groups of equations. The reference runs everything; others claim
// what they do better, in order of preference, and say why they leave the rest.
//
//   struct Mine final : Backend { ... };
//   static const bool registered = register_backend(std::make_unique<Mine>(), Preference::library);
//
// A backend is registered by any library that is loaded; the shared modules in the folder
// plait/backends beside libplait.so are loaded before the first program is compiled. Nothing else
// in plait knows a backend's name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules.h>

namespace plait {

// A compiled group: immutable, and called from many threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // inputs and outputs are the group's, in order, as memory of the stream's device. Inputs may have
  // any strides, outputs are dense. scratch points to scratch_bytes() bytes, 64-byte aligned.
  virtual void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
                   const Stream& stream) const = 0;
  virtual std::int64_t scratch_bytes() const { return 0; }
  // Whether the output may be written over an input of as many bytes, when that one is dense and
  // nobody reads it later.
  virtual bool may_overwrite(std::size_t input, std::size_t output) const {
    (void)input, (void)output;
    return false;
  }
  // Whether bodies of its equations are part of it, and not programs with steps of their own.
  virtual bool is_whole() const { return false; }
  // What explain shows beside the names of the equations: "tolerance 1e-6", "block 1024".
  virtual std::string note() const { return {}; }
};

// An answer with its reason: empty where a backend has nothing to say of such equations.
struct Support {
  bool is_supported = false;
  std::string reason;
  static Support yes() { return {true, {}}; }
  static Support no(std::string reason = {}) { return {false, std::move(reason)}; }
  explicit operator bool() const { return is_supported; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual Device::Kind device() const { return Device::Kind::cpu; }
  // Whether it compiles faster than a call may wait. Where not, single operations outside programs
  // run on others, and programs begin on others (tiers): their kernels must give the same bits.
  virtual bool runs_eagerly() const { return true; }
  // Whether it runs this equation by itself. A composite is a `call` whose parameter symbol names
  // it; one that no backend of the device claims is replaced by its body.
  virtual Support supports(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const Aval> outputs) const = 0;
  // Whether two groups of a program (indices of equations) may become one kernel: the first is its
  // own and feeds the second, which is its own too, or one equation that is still free. uses counts
  // the readers of every var, the program's caller among them. Cycles are the partitioner's
  // concern.
  virtual bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
                     std::span<const int> more) const {
    (void)program, (void)uses, (void)group, (void)more;
    return false;
  }
  // Groups that do not depend on each other become one kernel too where they and what they come to
  // have the same key: updates of many small weights, say, where a kernel each would take longer to
  // start than to run. Empty: none. Asked once all groups have joined that may.
  virtual std::string sibling_key(const Jaxpr& program, std::span<const int> group) const {
    (void)program, (void)group;
    return {};
  }
  // Whether groups may read their own results through equations that only look at memory otherwise
  // (Alias). These are then among the equations that joins is given, and in the group's jaxpr.
  virtual bool takes_views() const { return false; }
  // Compiles a group: a jaxpr of constant shapes that holds the claimed equations and no others.
  virtual std::unique_ptr<Kernel> compile(const Jaxpr& group) const = 0;
  // The same, told the strides (in elements) that the kernel's inputs will have at every call.
  virtual std::unique_ptr<Kernel> compile_for(const Jaxpr& group,
                                              std::span<const Sizes64> strides) const {
    (void)strides;
    return compile(group);
  }
};

// Who is asked first: vendor libraries, then generated loops, then the reference.
enum class Preference { library, loops, reference };

// Adds a backend for good; the order among equals is that of registration. Returns true, so that a
// static variable can hold the call.
bool register_backend(std::unique_ptr<Backend> backend, Preference preference);
// Notes that a backend cannot be used here, for explain and the log: "libdnnl.so.3 is not
// installed".
bool report_missing_backend(std::string name, std::string reason);

// The backends of a device, most preferred first. Loads the modules at the first call.
std::vector<const Backend*> backends_of(Device::Kind device = Device::Kind::cpu);
const Backend* find_backend(std::string_view name);  // nullptr when there is none
struct MissingBackend {
  std::string name, reason;
};
std::vector<MissingBackend> missing_backends();

// One line on standard error when the environment variable PLAIT_LOG is set to anything but 0.
void log_line(const std::string& text);

}  // namespace plait
