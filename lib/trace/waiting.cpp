// Which threads wait for generated loops, and the hook that compiles them. See wait.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/trace/data_sizes.h>
#include <plait/trace/wait.h>

namespace plait {
namespace {

constinit thread_local bool is_waiting_here = false;
constinit CallCompiler installed = nullptr;

}  // namespace

Waiting::Waiting() : outer_(is_waiting_here) { is_waiting_here = true; }
Waiting::~Waiting() { is_waiting_here = outer_; }
bool Waiting::is_on() { return is_waiting_here; }

void set_call_compiler(CallCompiler compiler) { installed = compiler; }

void detail::compile_calls(const Function& function, std::span<const Array> inputs) {
  const DataSizedScope from_data;
  const Traced traced = make_jaxpr(function, avals_of(inputs), "jit");
  const Waiting waiting;
  installed(traced.jaxpr);
}

}  // namespace plait
