// Backends: what compiles and runs groups of equations. The reference backend runs everything.
// Other backends claim what they do better, in order of preference, and say why they leave the
// rest.
//
//   struct Mine final : Backend { ... };
//   static const bool registered = register_backend(std::make_unique<Mine>(), Preference::library);
//
// A backend is registered by any library that is loaded. The shared modules in the folder
// plait/backends beside libplait.so are loaded before the first program is compiled. Nothing else
// in plait knows the name of a backend.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/rules.h>
#include <plait/run/kernel.h>

namespace plait {

// An answer with its reason, which is empty where a backend has nothing to say about such
// equations.
struct Support {
  bool is_supported = false;
  std::string reason;
  static Support yes() { return {true, {}}; }
  static Support no(std::string reason = {}) { return {false, std::move(reason)}; }
  explicit operator bool() const { return is_supported; }
};

// What a kernel is compiled for.
struct Target {
  Device device = {};
  // Of the kernel's inputs at every call, in elements. Empty: any strides, where the backend runs
  // eagerly; dense inputs otherwise.
  std::span<const Sizes64> strides = {};
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  virtual bool runs_on(Device device) const { return device.is_host(); }
  // Whether it compiles faster than a call may wait. If not, eager operations run on other
  // backends, and programs start on other backends (tiers), whose kernels must give the same bits.
  virtual bool runs_eagerly() const { return true; }
  // Whether it runs elementwise equations by the loops of their Pointwise rules. Eager operations
  // then call such a loop themselves, without a kernel.
  virtual bool runs_pointwise_loops() const { return false; }
  // Whether it runs this equation by itself on a device that it runs on. A composite is named by
  // its parameter symbol; a composite that no backend of the device claims is replaced by its body.
  virtual Support supports(const Equation& equation, std::span<const Aval> inputs,
                           std::span<const Aval> outputs, Device device) const = 0;
  // Whether two groups of a program (indices of equations) may become one kernel. The first belongs
  // to this backend and feeds the second, which belongs to it too or is one equation that is still
  // free. uses counts the readers of every var, including the program's caller. The partitioner
  // prevents cycles.
  virtual bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
                     std::span<const int> more) const {
    (void)program, (void)uses, (void)group, (void)more;
    return false;
  }
  // Independent groups become one kernel too where they, and the groups that they join, have the
  // same key: updates of many small weights, say, where one kernel each would take longer to start
  // than to run. An empty key joins nothing. Asked once all groups that may join have joined.
  virtual std::string sibling_key(const Jaxpr& program, std::span<const int> group) const {
    (void)program, (void)group;
    return {};
  }
  // Whether groups may read their own results through equations that only reinterpret memory
  // (Alias). These equations are then passed to joins, and stand in the group's jaxpr.
  virtual bool takes_views() const { return false; }
  // Compiles a group: a jaxpr of constant shapes that holds the claimed equations and no others.
  virtual std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const = 0;
};

// The order in which backends are asked: vendor libraries, generated loops, interpreted ones, the
// reference.
enum class Preference { library, loops, interpreted, reference };

// Adds a backend permanently; equals keep the order of registration. Returns true, so that a static
// variable can hold the call.
bool register_backend(std::unique_ptr<Backend> backend, Preference preference);
// Notes that a backend cannot be used here, for explain and the log: "libdnnl.so.3 is not
// installed". of_device: a whole kind of devices is not there; programs of the CPU do not miss it.
bool report_missing_backend(std::string name, std::string reason, bool of_device = false);

// The backends of a device, most preferred first. Loads the modules at the first call.
std::vector<const Backend*> backends_of(Device device = {});
std::vector<const Backend*> backends_of(Device device, Preference preference);
const Backend* find_backend(std::string_view name);  // nullptr when there is none
struct MissingBackend {
  std::string name, reason;
  bool of_device = false;
};
std::vector<MissingBackend> missing_backends();

// One line on standard error when the environment variable PLAIT_LOG is set to anything but 0.
void log_line(const std::string& text);

}  // namespace plait
