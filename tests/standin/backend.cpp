// The backend of the stand-in: kernels of the reference, which run when their stream comes to them,
// on the memory behind the addresses that they were given.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/base/examples.h>
#include <plait/compile/backend.h>

#include <mutex>

#include "standin/standin.h"

namespace standin {
namespace {

using namespace plait;

class StandinKernel final : public Kernel {
 public:
  explicit StandinKernel(std::unique_ptr<Kernel> kernel) : state_(std::make_shared<State>()) {
    state_->kernel = std::move(kernel);
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    if (launch.stream.is_host()) throw InternalError("a kernel of the stand-in runs on the CPU");
    std::vector<View> from, to;
    for (const View& view : inputs) from.push_back(translate(aligned(view)));
    for (const View& view : outputs) to.push_back(translate(aligned(view)));
    if (scratch_bytes() > 0) scratch = translate(scratch);
    submit(launch.stream, [state = state_, from = std::move(from), to = std::move(to), scratch,
                           launch, scopes = SavedScopes::of_this_thread()] {
      const ScopesAgain again(scopes);
      try {
        state->kernel->enqueue(from, to, scratch, {});
      } catch (...) {
        const std::lock_guard lock(state->mutex);
        state->thrown.push_back(std::current_exception());
        if (launch.failure->step == 0)  // the first failure of a call counts
          *launch.failure = {1 + launch.step, int(state->thrown.size()), {}};
      }
    });
  }
  std::int64_t operand_alignment() const override { return 16; }
  bool is_capturable() const override { return true; }
  std::int64_t scratch_bytes() const override { return state_->kernel->scratch_bytes(); }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return state_->kernel->may_overwrite(input, output);
  }
  std::string note() const override { return state_->kernel->note(); }
  std::exception_ptr error_of(const Failure& failure) const override {
    const std::lock_guard lock(state_->mutex);
    return state_->thrown.at(std::size_t(failure.code - 1));
  }

 private:
  static const View& aligned(const View& view) {
    if (reinterpret_cast<std::uintptr_t>(view.data) % 16 != 0)
      throw InternalError("an operand is not aligned as the kernel says");
    return view;
  }
  struct State {
    std::unique_ptr<Kernel> kernel;
    std::mutex mutex;
    std::vector<std::exception_ptr> thrown;
  };
  const std::shared_ptr<State> state_;
};

// Takes what the reference takes, except what belongs to the host.
class StandinBackend final : public Backend {
 public:
  std::string_view name() const override { return "standin"; }
  bool runs_on(Device device) const override {
    return device.kind == lazy().kind || device.kind == delayed().kind;
  }
  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device device) const override {
    if (reference().runs_on(device) && reference().supports(equation, inputs, outputs, device))
      return Support::no("it belongs to the host");
    return reference().supports(equation, inputs, outputs, {});
  }
  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    return reference().joins(program, uses, group, more);
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    return std::make_unique<StandinKernel>(reference().compile(group, {{}, target.strides}));
  }

 private:
  static const Backend& reference() {
    static const Backend& reference = *find_backend("reference");
    return reference;
  }
};

[[maybe_unused]] const bool registered =
    register_backend(std::make_unique<StandinBackend>(), Preference::library);

}  // namespace
}  // namespace standin
