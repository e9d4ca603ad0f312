// Executables: a flat list of steps. See run.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>
#include <plait/rules.h>
#include <plait/run.h>

namespace plait {
namespace {

class StepExecutable final : public Executable {
 public:
  explicit StepExecutable(const Jaxpr& jaxpr) : jaxpr_(jaxpr) {}
  std::vector<Buffer> run(std::span<const Buffer> inputs) const override {
    Arrays arrays;
    for (const Buffer& input : inputs) arrays.push_back(Array(input));
    TraceScope scope(nullptr);
    std::vector<Buffer> outputs;
    for (const Array& output : eval_jaxpr(jaxpr_, arrays)) outputs.push_back(output.buffer());
    return outputs;
  }
  std::int64_t arena_bytes() const override { return 0; }
  std::string explain() const override { return print(jaxpr_); }

 private:
  Jaxpr jaxpr_;
};

}  // namespace

std::shared_ptr<const Executable> compile(const Jaxpr& jaxpr) {
  return std::static_pointer_cast<const Executable>(jaxpr->memo.get("executable", [&]() -> std::shared_ptr<const void> {
    return std::make_shared<StepExecutable>(jaxpr);
  }));
}

}  // namespace plait
