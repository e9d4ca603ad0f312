// See rest_of_loop.h.
// SPDX-License-Identifier: Apache-2.0
#include "rest_of_loop.h"

#include <plait/primitives/primitives.h>

#include "compile/tiers.h"
#include "ir/splice.h"

namespace plait {

Jaxpr rest_program(const Equation& equation, std::span<const Aval> operands) {
  const WhileParams loop(equation.params);
  const std::size_t first_const = loop.num_carry + loop.num_cond_consts;
  const Aval number{{}, DType::int64};
  WhileParams counted = loop;
  std::vector<Aval> avals(operands.begin(), operands.end());
  if (loop.max_steps) {
    avals.insert(avals.begin() + std::ptrdiff_t(first_const), number);
    avals.insert(avals.begin() + std::ptrdiff_t(loop.num_carry), number);
    counted.num_carry += 1, counted.num_cond_consts += 1;
    counted.max_steps = {}, counted.checkpoints = {};
    auto splice_into = [&](Builder& builder, const Jaxpr& body, std::span<const Aval> binders,
                           std::vector<Var>& vars) {
      for (const Aval& aval : binders) vars.push_back(builder.add_binder(aval));
      std::vector<Atom> inputs(vars.begin(), vars.end());
      inputs.erase(inputs.begin() + std::ptrdiff_t(loop.num_carry));
      inputs.resize(std::size_t(body->num_binders), vars[0]);  // without the bound
      return splice(builder, body, std::move(inputs));
    };
    Builder cond, body;
    std::vector<Var> of_cond, of_body;
    const std::span<const Aval> all(avals);
    const Atom holds = splice_into(cond, loop.cond, all.first(first_const + 2), of_cond)[0];
    const Var within = cond.add(cmp_p, {of_cond[loop.num_carry], of_cond.back()},
                                {{"direction", std::string("lt")}}, equation.source)[0];
    counted.cond = cond.close({cond.add(and_p, {holds, within}, {}, equation.source)[0]});
    std::vector<Aval> binders(all.begin(), all.begin() + std::ptrdiff_t(loop.num_carry) + 1);
    binders.insert(binders.end(), all.begin() + std::ptrdiff_t(first_const) + 2, all.end());
    std::vector<Atom> outputs = splice_into(body, loop.body, binders, of_body);
    const Literal one{DType::int64, false, 1, 0, 0};
    outputs.push_back(body.add(add_p, {of_body[loop.num_carry], one}, {}, equation.source)[0]);
    counted.body = body.close(std::move(outputs));
  }
  Builder builder;
  std::vector<Atom> atoms;
  for (const Aval& aval : avals) atoms.push_back(builder.add_binder(aval));
  const std::vector<Var> outputs =
      builder.add(while_p, std::move(atoms), counted.to_params(), equation.source);
  return builder.close({outputs.begin(), outputs.end()});
}

RestOfLoop::RestOfLoop(const WhileParams& loop, Device device,
                       const std::function<Jaxpr()>& program) {
  const std::span<const Backend* const> slow = tiers::FirstTier::slow_backends();
  if (!device.is_host() || slow.empty() || loop.num_pushes() > 0) return;
  program_ = program();
  for (const Backend* backend : slow)
    if (!backend_ && backend->supports(program_->equations[0], program_->input_avals(),
                                       program_->output_avals(), {}))
      backend_ = backend;
  compilation_ = tiers::compilation_time(loop.cond->equations.size() + loop.body->equations.size());
}

bool RestOfLoop::run(std::span<const View> operands, std::span<const View> outputs,
                     const Launch& launch) const {
  std::call_once(once_, [&] {
    try {
      kernel_ = backend_->compile(program_, {});
      is_compiled_.store(true, std::memory_order_release);
    } catch (const BackendError& error) {
      log_line(std::string("a loop stays on its first tier: ") + error.what());
    }
  });
  if (!kernel_) return false;
  const Storage scratch = Storage::allocate(std::size_t(kernel_->scratch_bytes()));
  kernel_->enqueue(operands, outputs, scratch.data(), launch);
  return true;
}

}  // namespace plait
