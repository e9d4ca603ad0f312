// host_call: a function of the host, in C++ or Python, as an equation of a program: an island that
// plait cannot look into.
//
// It runs where the equation runs, eagerly and in compiled programs, on arrays of the real shapes:
// under vmap once for each example (or at once for all, where it says that it can), under mask on
// what is not padding. A pure one may be merged with an equal one, or dropped where its results are
// not needed; an ordered one runs each time, in the program's order. It has no derivative of its
// own: put custom_jvp or custom_vjp around it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ops.h>

namespace plait {

extern const Primitive host_call_p, ordered_host_call_p;

struct HostCallOptions {
  bool ordered = false;
  // The function takes further leading axes, the same for all arguments, and gives results with
  // them: vmap then calls it once.
  bool batched = false;
  std::string name = "f";
};

// function(inputs), whose results have these avals. The function gets copies that it may keep, runs
// with no trace around it, and may call plait again. When it runs: HostError where it raised, with
// what it raised; ShapeError, DtypeError or TreeError where its results are not those promised.
Arrays host_call(const Function& function, std::span<const Aval> outputs,
                 std::span<const Array> inputs, const HostCallOptions& options = {});
// The same for one result.
Array host_call(const Function& function, const Aval& output, std::initializer_list<Array> inputs,
                const HostCallOptions& options = {});
// The same for a callable that holds a Function and raises HostErrors itself.
Arrays bind_host_call(const Callable& function, std::span<const Aval> outputs,
                      std::span<const Array> inputs, const HostCallOptions& options);

// The host calls of a program, nested ones too, in its order.
struct HostCallSite {
  std::string name;
  bool ordered;
  Source source;
};
std::vector<HostCallSite> host_calls_of(const Jaxpr& jaxpr);

// While it lives, on this thread, host calls are refused, whether they are traced or run; the
// reason says where: "a strict save". A UserError names the function.
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
