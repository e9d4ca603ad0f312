// The evaluator: what bind does when nothing is being traced. One equation runs on the kernel that jit
// would choose for it alone; a call runs its compiled body.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>
#include <plait/rules.h>
#include <plait/run.h>
#include <plait/trace/interpret.h>
#include <plait/transforms.h>

namespace plait {
namespace {

Arrays wrap(std::vector<Buffer> buffers, const std::vector<Aval>& avals) {
  Arrays results;
  results.reserve(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) results.push_back(Array(std::move(buffers[i]), avals[i].weak));
  return results;
}

std::vector<Buffer> buffers_of(std::span<const Array> inputs) {
  std::vector<Buffer> buffers;
  buffers.reserve(inputs.size());
  for (const Array& input : inputs) buffers.push_back(input.buffer());
  return buffers;
}

Arrays evaluate(const Primitive& primitive, std::span<const Array> inputs, const Params& params) {
  if (primitive == call_p) {
    const Jaxpr body = body_of_call(params);
    return wrap(compile(body)->run(buffers_of(inputs)), body->output_avals());
  }
  std::vector<Aval> avals;
  avals.reserve(inputs.size());
  for (const Array& input : inputs) avals.push_back(input.aval());
  if (const Identity::Rule* identity = Identity::table().find(primitive); identity && (*identity)(avals, params)) return {inputs[0]};
  const Eval::Rule* eval = Eval::table().find(primitive);
  if (!eval) {
    if (!Decompose::table().find(primitive)) throw_missing_rule(Eval::table(), primitive);
    return eval_jaxpr(decomposition(primitive, avals, params), inputs);
  }
  const std::vector<Aval> outputs = infer(primitive, avals, params);
  if (const Alias::Rule* alias = Alias::table().find(primitive); alias && inputs.size() == 1) {
    const Buffer input = inputs[0].buffer();
    if (std::optional<View> view = (*alias)(input.view(), outputs[0].shape.to_sizes(), params)) {
      const std::int64_t offset = static_cast<char*>(view->data) - static_cast<char*>(input.data());
      return {Array(input.view_as(view->shape, view->strides, offset), outputs[0].weak)};
    }
  }
  std::vector<View> sources, targets;
  std::vector<Buffer> results;
  sources.reserve(inputs.size());
  for (const Array& input : inputs) sources.push_back(static_cast<const ConcreteNode*>(input.node())->buffer.view());
  for (const Aval& aval : outputs) {
    results.push_back(Buffer::empty(aval.dtype, aval.shape.to_sizes()));
    targets.push_back(results.back().view());
  }
  (*eval)(sources, targets, params);
  return wrap(std::move(results), outputs);
}

const bool installed = (set_evaluator(evaluate), true);

}  // namespace
}  // namespace plait
