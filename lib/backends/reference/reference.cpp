// The reference backend: every primitive by its Eval rule, and runs of elementwise equations as one
// loop. There is no second set of kernels: eager evaluation runs the same ones.
// SPDX-License-Identifier: Apache-2.0
#include "compile/operands.h"

#include <plait/compile/backend.h>
#include <plait/primitives/kernels.h>
#include <plait/rules/on_host.h>

#include "backends/interpreter/interpreter.h"

namespace plait {
namespace {

// One elementwise equation: its loop over views of any strides.
class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const Equation& equation, const Jaxpr& group) : operands_(equation, group) {
    std::vector<DType> dtypes;
    for (const Atom& atom : equation.inputs) dtypes.push_back(group->aval(atom).dtype);
    chunk_ = rule<Pointwise>(*equation.primitive)(dtypes, equation.params);
    if (!chunk_.loop)
      throw InternalError("`" + std::string(equation.primitive->name()) + "` has no loop for " +
                          std::string(name_of(dtypes[0])));
    out_size_ = size_of(group->avals[equation.outputs[0].id].dtype);
    for (const Aval& aval : group->input_avals()) in_sizes_.push_back(size_of(aval.dtype));
  }
  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch&) const override {
    if (operands_.is_plain()) return run_pointwise(chunk_, inputs, outputs[0]);
    View views[4];
    run_pointwise(chunk_, operands_.collect(inputs, views), outputs[0]);
  }
  bool may_overwrite(std::size_t input, std::size_t) const override {
    return in_sizes_[input] == out_size_;
  }

 private:
  GroupOperands operands_;
  Chunk chunk_;
  std::int64_t out_size_;
  std::vector<std::int64_t> in_sizes_;
};

// One equation by its Eval rule.
class EvalKernel final : public Kernel {
 public:
  EvalKernel(const Equation& equation, const Jaxpr& group)
      : eval_(rule<Eval>(*equation.primitive)),
        params_(equation.params),
        source_(equation.source),
        operands_(equation, group) {
    const int operand = equation.primitive->overwritten();
    if (operand >= 0 && equation.inputs[operand].is_var() &&
        std::ranges::count(equation.inputs, equation.inputs[operand]) == 1)
      overwritten_ = equation.inputs[operand].var().id;
  }
  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch&) const override {
    try {
      if (operands_.is_plain()) return eval_(inputs, outputs, params_);
      std::vector<View> views(operands_.size());
      eval_(operands_.collect(inputs, views.data()), outputs, params_);
    } catch (Error& error) {
      if (source_) error.at(source_);  // the line of the equation, not of the call that runs it
      throw;
    }
  }
  bool may_overwrite(std::size_t input, std::size_t) const override {
    return int(input) == overwritten_;
  }

 private:
  const Eval::Rule& eval_;
  const Params params_;
  const Source source_;
  const GroupOperands operands_;
  int overwritten_ = -1;  // the group's input
};

// On a device: a kernel of the host, between programs of the device.
class OnHostKernel final : public Kernel {
 public:
  OnHostKernel(const Equation& equation, const Jaxpr& group, std::string_view reason)
      : kernel_(equation, group), reason_(reason) {}
  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch&) const override {
    kernel_.enqueue(inputs, outputs, scratch, {});
  }
  bool reads_on_host(std::size_t) const override { return true; }
  bool writes_on_host(std::size_t) const override { return true; }
  std::string note() const override {
    return "on the host, where the device is waited for: " + std::string(reason_);
  }

 private:
  const EvalKernel kernel_;
  const std::string_view reason_;
};

// On a device, where no result has an element.
class NothingKernel final : public Kernel {
 public:
  void enqueue(std::span<const View>, std::span<const View>, void*, const Launch&) const override {}
  bool is_capturable() const override { return true; }
  bool can_fail() const override { return false; }
  std::string note() const override { return "no elements"; }
};

bool is_empty(const Aval& aval) {
  return aval.stack == 0 && num_elements(aval.shape.to_sizes()) == 0;
}

// The most equations in one group: the values of a block of elements stay in the caches.
constexpr std::size_t largest_group = 192;

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  bool runs_pointwise_loops() const override { return true; }
  // On other devices: what belongs to the host, and arrays without elements, which loops of devices
  // do not have.
  bool runs_on(Device) const override { return true; }

  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device device) const override {
    if (!device.is_host() && !OnHost::table().find(*equation.primitive)) {
      if (is_effectful(equation)) return Support::no();
      if (std::ranges::all_of(outputs, is_empty)) return Support::yes();
      if (std::ranges::none_of(inputs, is_empty)) return Support::no();
    }
    if (Eval::table().find(*equation.primitive)) return Support::yes();
    return Support::no("`" + std::string(equation.primitive->name()) + "` has no Eval rule");
  }

  // Elementwise equations of one shape, as one loop program. All of a group have the same shape, so
  // comparing the first ones suffices.
  bool joins(const Jaxpr& program, std::span<const int>, std::span<const int> group,
             std::span<const int> more) const override {
    if (group.size() + more.size() > largest_group) return false;
    const Equation &a = program->equations[group[0]], &b = program->equations[more[0]];
    if (!is_pointwise(a) || !is_pointwise(b)) return false;
    const Aval &of_a = program->avals[a.outputs[0].id], &of_b = program->avals[b.outputs[0].id];
    return of_a.shape == of_b.shape && of_a.stack == 0 && of_b.stack == 0 &&
           num_elements(of_a.shape.to_sizes()) > 0;
  }

  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    if (group->equations.size() > 1)
      return target.strides.empty() ? make_interpreted(group)
                                    : make_interpreted(group, target.strides);
    const Equation& first = group->equations[0];
    if (!target.device.is_host()) {
      if (const OnHost::Rule* reason = OnHost::table().find(*first.primitive))
        return std::make_unique<OnHostKernel>(first, group, *reason);
      if (std::ranges::all_of(group->output_avals(), is_empty))
        return std::make_unique<NothingKernel>();
      return std::make_unique<OnHostKernel>(first, group, "an operand has no elements");
    }
    if (is_pointwise(first)) return std::make_unique<PointwiseKernel>(first, group);
    return std::make_unique<EvalKernel>(first, group);
  }

 private:
  static bool is_pointwise(const Equation& equation) {
    return Pointwise::table().find(*equation.primitive) && equation.inputs.size() <= 4;
  }
};

const bool registered =
    register_backend(std::make_unique<ReferenceBackend>(), Preference::reference);

}  // namespace
}  // namespace plait
