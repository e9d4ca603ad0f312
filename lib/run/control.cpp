// How control flow runs: the backend of cond, scan and while, whose kernels hold executables of
// their bodies. A loop opens its bodies once, and carries lie in two places in turn: what one step
// writes the next one reads.
// SPDX-License-Identifier: Apache-2.0
#include "control.h"

#include "compile/loop_constants.h"
#include "rows.h"
#include "tiers.h"

namespace plait {
namespace {

using compile_passes::LoopConstants;

class CondKernel final : public Kernel {
 public:
  explicit CondKernel(const Jaxpr& group) : operands_(group) {
    const CondParams cond(group->equations[0].params);
    for (const Jaxpr& branch : cond.branches) branches_.push_back(std::make_unique<Body>(branch));
  }
  void run(std::span<const View> inputs, std::span<const View> outputs, void*,
           const Stream&) const override {
    std::vector<Buffer> copies;
    const std::vector<View> operands = operands_.collect(inputs, copies);
    const std::int32_t last = std::int32_t(branches_.size()) - 1;
    const std::int32_t index = std::clamp(*operands[0].as<std::int32_t>(), 0, last);
    Body::Lease(*branches_[std::size_t(index)]).run(std::span(operands).subspan(1), outputs);
  }

 private:
  DenseOperands operands_;
  std::vector<std::unique_ptr<Body>> branches_;
};

// A loop of the first tier that a slow backend makes one kernel of: how it goes on from a step. See
// NOTE: [tiers].
class RestOfLoop {
 public:
  explicit RestOfLoop(const Jaxpr& group) : equation_(group->equations[0]) {
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : equation_.inputs) inputs.push_back(group->aval(atom));
    for (Var var : equation_.outputs) outputs.push_back(group->aval(var));
    for (const Backend* backend : tiers::FirstTier::slow_backends())
      if (!backend_ && backend->supports(equation_, inputs, outputs)) backend_ = backend;
    operands_ = std::move(inputs);
    std::size_t size = 0;
    for_each_body(open_bodies(equation_.params),
                  [&](const Jaxpr& body) { size += body->equations.size(); });
    compilation_ = tiers::compilation_time(size);
  }

  // Whether a run that began then has taken as long as compiling the rest would.
  bool pays(std::chrono::steady_clock::time_point start) const {
    return backend_ && std::chrono::steady_clock::now() - start >= compilation_;
  }

  // All remaining steps, of which there are at most so many, from these operands: memory apart from
  // the outputs. Whether it could.
  bool run(std::optional<std::int64_t> max_steps, std::span<const View> operands,
           std::span<const View> outputs, const Stream& stream) const {
    std::unique_ptr<Kernel> kernel;
    try {
      kernel = compile(max_steps);
    } catch (const BackendError& error) {
      log_line(std::string("a loop stays on its first tier: ") + error.what());
      return false;
    }
    const Storage scratch = Storage::allocate(std::size_t(kernel->scratch_bytes()));
    kernel->run(operands, outputs, scratch.data(), stream);
    return true;
  }

 private:
  std::unique_ptr<Kernel> compile(std::optional<std::int64_t> max_steps) const {
    Builder builder;
    std::vector<Atom> atoms;
    for (const Aval& aval : operands_) atoms.push_back(builder.add_binder(aval));
    Params params = equation_.params;
    if (max_steps) params = params.with("max_steps", Dim(*max_steps));
    const std::vector<Var> outputs =
        builder.add(*equation_.primitive, std::move(atoms), params, equation_.source);
    return backend_->compile(builder.close({outputs.begin(), outputs.end()}));
  }

  const Equation equation_;
  std::vector<Aval> operands_;
  const Backend* backend_ = nullptr;
  std::chrono::nanoseconds compilation_{};
};

class WhileKernel final : public Kernel {
 public:
  explicit WhileKernel(const Jaxpr& group)
      : source_(group->equations[0].source),
        loop_(group->equations[0].params),
        rest_(group),
        operands_(group),
        cond_(loop_.cond),
        body_(loop_.body),
        carries_(loop_.body->input_avals().first(loop_.num_carry)) {
    const std::vector<Aval> outputs = loop_.body->output_avals();
    pushed_.assign(outputs.begin() + std::ptrdiff_t(loop_.num_carry), outputs.end());
  }

  std::int64_t scratch_bytes() const override { return carries_.bytes(); }

  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream& stream) const override {
    std::vector<Buffer> copies;
    const std::vector<View> operands = operands_.collect(inputs, copies);
    const std::size_t n = loop_.num_carry, first_const = n + loop_.num_cond_consts;
    // (carry, consts) of the condition and of the body; the carry changes its place each step.
    std::vector<View> of_cond(operands.begin(), operands.begin() + std::ptrdiff_t(first_const));
    std::vector<View> of_body(operands.begin(), operands.begin() + std::ptrdiff_t(n));
    of_body.insert(of_body.end(), operands.begin() + std::ptrdiff_t(first_const), operands.end());
    std::vector<View> here(outputs.begin(), outputs.begin() + std::ptrdiff_t(n)),
        there = carries_.views(here, scratch);
    std::vector<std::shared_ptr<Stack>> stacks;
    for (const Aval& aval : pushed_) {
      stacks.push_back(make_stack(aval));
      here.push_back(element_view(aval));
      there.push_back(element_view(aval));
    }
    const LoopConstants constants{std::span(operands).subspan(n)};
    Body::Lease cond(cond_), body(body_);
    bool holds = false;
    const View predicate{&holds, DType::bool_, {}, {}};
    const auto start = std::chrono::steady_clock::now();
    bool may_change = stacks.empty();
    for (std::int64_t step = 0;; ++step) {
      check_interrupts();
      if (may_change && step % steps_between_looks == 0 && step > 0 && rest_.pays(start)) {
        if (run_rest(step, of_cond, operands, outputs, stream)) return;
        may_change = false;
      }
      cond.run(of_cond, {&predicate, 1});
      if (!holds) break;
      if (loop_.max_steps && step == *loop_.max_steps) throw_endless(step, source_);
      for (std::size_t i = 0; i < stacks.size(); ++i) here[n + i].data = stacks[i]->push();
      body.run(of_body, here);
      std::copy_n(here.begin(), n, of_body.begin());
      std::copy_n(here.begin(), n, of_cond.begin());
      std::swap(here, there);
    }
    for (std::size_t i = 0; i < n; ++i) copy_dense(of_cond[i], outputs[i]);
    for (std::size_t i = 0; i < stacks.size(); ++i)
      *outputs[n + i].as<Stack::Handle>() = std::move(stacks[i]);
  }

 private:
  static constexpr std::int64_t steps_between_looks = 16;

  // The steps from this one on, as one kernel. Whether it could.
  bool run_rest(std::int64_t step, std::span<const View> carry, std::span<const View> operands,
                std::span<const View> outputs, const Stream& stream) const {
    std::vector<Buffer> copies;
    std::vector<View> from(operands.begin(), operands.end());
    for (std::size_t i = 0; i < loop_.num_carry; ++i) {
      copies.push_back(Buffer::copy_of(carry[i]));
      from[i] = copies.back().view();
    }
    if (!loop_.max_steps) return rest_.run({}, from, outputs, stream);
    try {
      return rest_.run(*loop_.max_steps - step, from, outputs, stream);
    } catch (const ValueError&) {  // of the bound: nothing else in a generated loop has one
      throw_endless(*loop_.max_steps, source_);
    }
  }

  const Source source_;
  const WhileParams loop_;
  const RestOfLoop rest_;
  const DenseOperands operands_;
  const Body cond_, body_;
  const Carries carries_;
  std::vector<Aval> pushed_;
};

// Slices of an array along its first axis, or the elements of a stack, one after the other.
class Slices {
 public:
  Slices(const View& whole, const Aval& slice, bool is_stack)
      : view_(element_view(slice)), bytes_(bytes_of(view_)) {
    if (is_stack)
      elements_.emplace(*whole.as<Stack::Handle>(), slice);
    else
      data_ = whole.as<char>();
  }
  // A stack to be filled.
  Slices(const Aval& slice, std::int64_t length)
      : view_(element_view(slice)), stack_(make_stack(slice)) {
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
  explicit ScanKernel(const Jaxpr& group)
      : scan_(group->equations[0].params),
        operands_(group),
        body_(scan_.body),
        outputs_(scan_.body->output_avals()),
        carries_(scan_.body->input_avals().first(scan_.num_carry)) {}

  std::int64_t scratch_bytes() const override { return carries_.bytes(); }

  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream&) const override {
    std::vector<Buffer> copies;
    std::vector<View> in = operands_.collect(inputs, copies);
    const std::size_t n = scan_.num_carry;
    const std::int64_t length = length_of(in);
    const std::vector<View> last(outputs.begin(), outputs.begin() + std::ptrdiff_t(n)),
        other = carries_.views(last, scratch);
    std::vector<Slices> xs, ys;
    for (std::size_t i = n; i < n + scan_.num_xs; ++i)
      xs.emplace_back(in[i], scan_.body->avals[i], is_stack(scan_.body->avals[i]));
    for (std::size_t i = n; i < outputs.size(); ++i)
      ys.push_back(is_stack(outputs_[i]) ? Slices(outputs_[i], length)
                                         : Slices(outputs[i], outputs_[i], false));
    std::vector<View> out(outputs.begin(), outputs.end());
    const LoopConstants constants{std::span(in).subspan(n + scan_.num_xs)};
    Body::Lease body(body_);
    for (std::int64_t step = 0; step < length; ++step) {
      check_interrupts();
      // So that the last step writes where the result is wanted.
      const std::vector<View>& next = (length - 1 - step) % 2 == 0 ? last : other;
      const std::int64_t index = scan_.reverse ? length - 1 - step : step;
      for (std::size_t i = 0; i < xs.size(); ++i) in[n + i] = xs[i].at(index);
      for (std::size_t i = 0; i < ys.size(); ++i) out[n + i] = ys[i].at(index);
      std::copy(next.begin(), next.end(), out.begin());
      body.run(in, out);
      std::copy(next.begin(), next.end(), in.begin());
    }
    if (length == 0)
      for (std::size_t i = 0; i < n; ++i) copy_dense(in[i], last[i]);
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
  const Body body_;
  const std::vector<Aval> outputs_;  // of the body
  const Carries carries_;
};

std::vector<ControlKernels>& registered_kernels() {
  static auto& all = *new std::vector<ControlKernels>();
  return all;
}
// Of the file that takes the equation, or none.
const ControlKernels* find_kernels(const Equation& equation) {
  for (const ControlKernels& kernels : registered_kernels())
    if (kernels.takes(equation)) return &kernels;
  return nullptr;
}

class ControlBackend final : public Backend {
 public:
  std::string_view name() const override { return "control"; }
  Support supports(const Equation& equation, std::span<const Aval>,
                   std::span<const Aval>) const override {
    const Primitive& primitive = *equation.primitive;
    const bool mine = primitive == cond_p || primitive == while_p || primitive == scan_p ||
                      find_kernels(equation) != nullptr;
    return mine ? Support::yes() : Support::no();
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group) const override {
    const Equation& equation = group->equations[0];
    if (const ControlKernels* kernels = find_kernels(equation)) return kernels->compile(group);
    if (*equation.primitive == cond_p) return std::make_unique<CondKernel>(group);
    if (*equation.primitive == while_p) return std::make_unique<WhileKernel>(group);
    return std::make_unique<ScanKernel>(group);
  }
};

const bool registered = register_backend(std::make_unique<ControlBackend>(), Preference::reference);

}  // namespace

bool register_control(ControlKernels kernels) {
  registered_kernels().push_back(kernels);
  return true;
}

void throw_endless(std::int64_t steps, Source source) {
  ValueError error(
      "while_loop: the condition still holds after max_steps = " + std::to_string(steps) + " steps",
      "let the condition become false, or raise max_steps");
  if (source) error.at(source);  // else whoever called knows the line
  throw error;
}

}  // namespace plait
