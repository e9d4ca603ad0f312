// host_call: a function of the host, in C++ or Python, as an equation of a program. It is opaque to
// plait: an island.
//
// It runs where the equation runs, eagerly and in compiled programs, on arrays of the real shapes.
// Under vmap it runs once for each example, or once for all if it is batched; under mask it sees no
// padding. A pure function may be merged with an equal one, or dropped where its results are not
// needed. An ordered one runs each time, in the program's order. It has no derivative of its own:
// wrap it in custom_jvp or custom_vjp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/primitives/primitives.h>

namespace plait {

extern const Primitive host_call_p, ordered_host_call_p;

struct HostCallOptions {
  bool ordered = false;
  // The function accepts further leading axes, the same for all arguments, and its results have
  // them too: vmap then calls it once.
  bool batched = false;
  std::string name = "f";
};

// Calls function(inputs), whose results have these avals. The function gets copies that it may
// keep, runs outside any trace, and may call plait again. At run time: HostError where it throws,
// with its error; ShapeError, DtypeError or TreeError where its results do not have these avals.
Arrays host_call(const Function& function, std::span<const Aval> outputs,
                 std::span<const Array> inputs, const HostCallOptions& options = {});
// The same for one result.
Array host_call(const Function& function, const Aval& output, std::initializer_list<Array> inputs,
                const HostCallOptions& options = {});
// The same for a callable that holds a Function and raises HostErrors itself.
Arrays bind_host_call(const Callable& function, std::span<const Aval> outputs,
                      std::span<const Array> inputs, const HostCallOptions& options);

// The host calls of a program, including nested ones, in program order.
struct HostCallSite {
  std::string name;
  bool ordered;
  Source source;
};
std::vector<HostCallSite> host_calls_of(const Jaxpr& jaxpr);

// While it lives, host calls on this thread are refused, whether traced or run. The reason says
// where: "a strict save". A UserError names the function.
class NoHostCalls {
 public:
  explicit NoHostCalls(std::string reason);
  ~NoHostCalls();
  NoHostCalls(const NoHostCalls&) = delete;

 private:
  friend void require_host_calls(const std::string& name);
  std::string reason_;
  const NoHostCalls* outer_;
};
void require_host_calls(const std::string& name);

}  // namespace plait
