// How control flow runs: the backend of cond, scan and while, whose kernels hold executables of
// their bodies. A loop opens its bodies once, and carries lie in two places in turn: what one step
// writes the next one reads.
// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include "compile/loop_constants.h"
#include "control/endless.h"
#include "rest_of_loop.h"

namespace plait {
namespace {

using compile_passes::LoopConstants;

class CondKernel final : public Kernel {
 public:
  CondKernel(const Jaxpr& group, Device device) : operands_(group, device, 1) {
    for (const Body& branch : bodies_of(group->equations[0]))
      branches_.push_back(
          std::make_unique<CompiledBody>(branch.jaxpr, device, num_replaced(branch)));
  }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return operands_.is_only(input, output + 1) &&
           std::all_of(branches_.begin(), branches_.end(),
                       [&](const auto& branch) { return branch->is_in_place(output); });
  }
  // The index of the branch.
  bool reads_on_host(std::size_t input) const override { return operands_.reads(input, 0); }
  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch& launch) const override {
    std::vector<Buffer> copies;
    const std::vector<View> operands = operands_.collect(inputs, copies, launch.stream);
    const std::int32_t last = std::int32_t(branches_.size()) - 1;
    const std::int32_t index = std::clamp(*operands[0].as<std::int32_t>(), 0, last);
    CompiledBody::Lease(*branches_[std::size_t(index)])
        .run(std::span(operands).subspan(1), outputs, launch.stream);
  }

 private:
  DenseOperands operands_;
  std::vector<std::unique_ptr<CompiledBody>> branches_;
};

class WhileKernel final : public Kernel {
 public:
  WhileKernel(const Jaxpr& group, Device device)
      : source_(group->equations[0].source),
        loop_(group->equations[0].params),
        rest_(loop_, device,
              [&] {
                std::vector<Aval> operands;
                for (const Atom& atom : group->equations[0].inputs)
                  operands.push_back(group->aval(atom));
                return rest_program(group->equations[0], operands);
              }),
        operands_(group, device),
        cond_(loop_.cond, device, num_replaced(bodies_of(group->equations[0])[0])),
        body_(loop_.body, device, num_replaced(bodies_of(group->equations[0])[1])),
        carries_(loop_.body->input_avals().first(loop_.num_carry)) {
    const std::vector<Aval> outputs = loop_.body->output_avals();
    pushed_.assign(outputs.begin() + std::ptrdiff_t(loop_.num_carry), outputs.end());
  }

  std::int64_t scratch_bytes() const override { return carries_.bytes(); }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return output < loop_.num_carry && body_.is_in_place(output) &&
           operands_.is_only(input, output);
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    std::vector<Buffer> copies;
    const Stream& stream = launch.stream;
    const std::vector<View> operands = operands_.collect(inputs, copies, stream);
    const std::size_t n = loop_.num_carry, first_const = n + loop_.num_cond_consts;
    // (carry, consts) of the condition and of the body; the carry changes its place each step.
    std::vector<View> of_cond(operands.begin(), operands.begin() + std::ptrdiff_t(first_const));
    std::vector<View> of_body(operands.begin(), operands.begin() + std::ptrdiff_t(n));
    of_body.insert(of_body.end(), operands.begin() + std::ptrdiff_t(first_const), operands.end());
    std::vector<View> here(outputs.begin(), outputs.begin() + std::ptrdiff_t(n)),
        there = carries_.views(here, scratch);
    for (std::size_t i = 0; i < n; ++i) {
      if (!body_.is_in_place(i)) continue;
      copy_dense(operands[i], here[i], stream);
      there[i] = of_cond[i] = of_body[i] = here[i];
    }
    std::vector<std::shared_ptr<Stack>> stacks;
    for (const Aval& aval : pushed_) {
      stacks.push_back(make_stack(aval, stream));
      here.push_back(element_view(aval));
      there.push_back(element_view(aval));
    }
    const LoopConstants constants{std::span(operands).subspan(n)};
    CompiledBody::Lease cond(cond_), body(body_);
    SharedFlags holds(1, stream);
    const View predicate = holds.scalar();
    const auto start = std::chrono::steady_clock::now();
    bool may_change = stacks.empty();
    for (std::int64_t step = 0;; ++step) {
      check_interrupts();
      if (may_change && step % RestOfLoop::steps_between_looks == 0 && step > 0 &&
          rest_.pays(start)) {
        if (run_rest(step, of_cond, operands, outputs, cond, launch)) return;
        may_change = false;
      }
      cond.run(of_cond, {&predicate, 1}, stream);
      holds.fetch();
      if (!holds.values[0]) break;
      if (loop_.max_steps && step == *loop_.max_steps) throw_endless(step, source_);
      for (std::size_t i = 0; i < stacks.size(); ++i) here[n + i].data = stacks[i]->push();
      body.run(of_body, here, stream);
      std::copy_n(here.begin(), n, of_body.begin());
      std::copy_n(here.begin(), n, of_cond.begin());
      std::swap(here, there);
    }
    for (std::size_t i = 0; i < n; ++i) copy_dense(of_cond[i], outputs[i], stream);
    for (std::size_t i = 0; i < stacks.size(); ++i)
      *outputs[n + i].as<Stack::Handle>() = std::move(stacks[i]);
  }

 private:
  // The steps from this one on, as one kernel. Whether it could.
  bool run_rest(std::int64_t step, std::span<const View> carry, std::span<const View> operands,
                std::span<const View> outputs, CompiledBody::Lease& cond,
                const Launch& launch) const {
    const std::size_t n = loop_.num_carry, first_const = n + loop_.num_cond_consts;
    std::vector<Buffer> copies;
    std::vector<View> from, to(outputs.begin(), outputs.end());
    for (std::size_t i = 0; i < n; ++i) {
      copies.push_back(Buffer::copy_of(carry[i]));
      from.push_back(copies.back().view());
    }
    if (!loop_.max_steps) {
      from.insert(from.end(), operands.begin() + std::ptrdiff_t(n), operands.end());
      return rest_.run(from, to, launch);
    }
    std::int64_t none = 0, most = *loop_.max_steps - step, taken = 0;
    auto number = [](std::int64_t& value) { return View{&value, DType::int64, {}, {}}; };
    from.push_back(number(none));
    from.insert(from.end(), operands.begin() + std::ptrdiff_t(n),
                operands.begin() + std::ptrdiff_t(first_const));
    from.push_back(number(most));
    from.insert(from.end(), operands.begin() + std::ptrdiff_t(first_const), operands.end());
    to.push_back(number(taken));
    if (!rest_.run(from, to, launch)) return false;
    if (taken < most) return true;
    std::vector<View> of_cond(outputs.begin(), outputs.end());
    of_cond.insert(of_cond.end(), operands.begin() + std::ptrdiff_t(n),
                   operands.begin() + std::ptrdiff_t(first_const));
    bool holds = false;
    const View predicate{&holds, DType::bool_, {}, {}};
    cond.run(of_cond, {&predicate, 1}, {});
    if (holds) throw_endless(*loop_.max_steps, source_);
    return true;
  }

  const Source source_;
  const WhileParams loop_;
  const RestOfLoop rest_;
  const DenseOperands operands_;
  const CompiledBody cond_, body_;
  const Carries carries_;
  std::vector<Aval> pushed_;
};

// Slices of an array along its first axis, or the elements of a stack, one after the other.
class Slices {
 public:
  Slices(const View& whole, const Aval& slice, bool is_stack, const Stream& stream)
      : view_(element_view(slice)), bytes_(bytes_of(view_)) {
    if (is_stack)
      elements_.emplace(*whole.as<Stack::Handle>(), slice, stream);
    else
      data_ = whole.as<char>();
  }
  // A stack to be filled.
  Slices(const Aval& slice, std::int64_t length, const Stream& stream)
      : view_(element_view(slice)), stack_(make_stack(slice, stream)) {
    for (std::int64_t i = 0; i < length; ++i) stack_->push();
  }
  const View& at(std::int64_t index) {
    if (elements_) return elements_->at(index);
    view_.data = stack_ ? stack_->segments()[0].elements->at(index) : data_ + index * bytes_;
    return view_;
  }
  const Stack::Handle& stack() const { return stack_; }

 private:
  View view_;
  std::int64_t bytes_ = 0;
  char* data_ = nullptr;                 // of an array
  std::optional<StackReader> elements_;  // of a stack that is read
  Stack::Handle stack_;                  // that is written
};

class ScanKernel final : public Kernel {
 public:
  ScanKernel(const Jaxpr& group, Device device)
      : scan_(group->equations[0].params),
        operands_(group, device),
        body_(scan_.body, device, num_replaced(bodies_of(group->equations[0])[0])),
        outputs_(scan_.body->output_avals()),
        carries_(scan_.body->input_avals().first(scan_.num_carry)) {}

  std::int64_t scratch_bytes() const override { return carries_.bytes(); }
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return output < scan_.num_carry && body_.is_in_place(output) &&
           operands_.is_only(input, output);
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    const Stream& stream = launch.stream;
    std::vector<Buffer> copies;
    std::vector<View> in = operands_.collect(inputs, copies, stream);
    const std::size_t n = scan_.num_carry;
    const std::int64_t length = length_of(in);
    const std::vector<View> last(outputs.begin(), outputs.begin() + std::ptrdiff_t(n));
    std::vector<View> other = carries_.views(last, scratch);
    for (std::size_t i = 0; i < n; ++i) {
      if (!body_.is_in_place(i)) continue;
      copy_dense(in[i], last[i], stream);
      in[i] = other[i] = last[i];
    }
    std::vector<Slices> xs, ys;
    for (std::size_t i = n; i < n + scan_.num_xs; ++i)
      xs.emplace_back(in[i], scan_.body->avals[i], is_stack(scan_.body->avals[i]), stream);
    for (std::size_t i = n; i < outputs.size(); ++i)
      ys.push_back(is_stack(outputs_[i]) ? Slices(outputs_[i], length, stream)
                                         : Slices(outputs[i], outputs_[i], false, stream));
    std::vector<View> out(outputs.begin(), outputs.end());
    const LoopConstants constants{std::span(in).subspan(n + scan_.num_xs)};
    CompiledBody::Lease body(body_);
    for (std::int64_t step = 0; step < length; ++step) {
      check_interrupts();
      // So that the last step writes where the result is wanted.
      const std::vector<View>& next = (length - 1 - step) % 2 == 0 ? last : other;
      const std::int64_t index = scan_.reverse ? length - 1 - step : step;
      for (std::size_t i = 0; i < xs.size(); ++i) in[n + i] = xs[i].at(index);
      for (std::size_t i = 0; i < ys.size(); ++i) out[n + i] = ys[i].at(index);
      std::copy(next.begin(), next.end(), out.begin());
      body.run(in, out, stream);
      std::copy(next.begin(), next.end(), in.begin());
    }
    if (length == 0)
      for (std::size_t i = 0; i < n; ++i) copy_dense(in[i], last[i], stream);
    for (std::size_t i = 0; i < ys.size(); ++i)
      if (is_stack(outputs_[n + i])) *outputs[n + i].as<Stack::Handle>() = ys[i].stack();
  }

 private:
  // Whether slices of this kind are together a stack.
  bool is_stack(const Aval& slice) const { return scan_.stacked(slice).stack > 0; }

  std::int64_t length_of(std::span<const View> in) const {
    if (scan_.length) return scan_.length->constant();
    std::int64_t length = 0;
    for (std::size_t i = 0; i < scan_.num_xs; ++i)
      if (const auto& stack = *in[scan_.num_carry + i].as<Stack::Handle>())
        length = std::max(length, stack->size());
    return length;
  }

  const ScanParams scan_;
  const DenseOperands operands_;
  const CompiledBody body_;
  const std::vector<Aval> outputs_;  // of the body
  const Carries carries_;
};

std::vector<ControlKernel>& registered_kernels() {
  static auto& all = *new std::vector<ControlKernel>{{&cond_p, make_kernel<CondKernel>},
                                                     {&while_p, make_kernel<WhileKernel>},
                                                     {&scan_p, make_kernel<ScanKernel>}};
  return all;
}
// That of an equation, or none.
const ControlKernel* find_kernel(const Equation& equation) {
  for (const ControlKernel& kernel : registered_kernels())
    if (*kernel.primitive == *equation.primitive && (!kernel.takes || kernel.takes(equation)))
      return &kernel;
  return nullptr;
}

class ControlBackend final : public Backend {
 public:
  std::string_view name() const override { return "control"; }
  // Loops are driven by the host wherever their bodies run.
  bool runs_on(Device) const override { return true; }
  Support supports(const Equation& equation, std::span<const Aval>, std::span<const Aval>,
                   Device) const override {
    return find_kernel(equation) ? Support::yes() : Support::no();
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    return find_kernel(group->equations[0])->compile(group, target.device);
  }
};

const bool is_registered =
    register_backend(std::make_unique<ControlBackend>(), Preference::reference);

}  // namespace

bool register_control(ControlKernel kernel) {
  registered_kernels().push_back(kernel);
  return true;
}

void throw_endless(std::int64_t steps, Source source) {
  ValueError error = endless(steps);
  if (source) error.at(source);  // else whoever called knows the line
  throw error;
}

}  // namespace plait
