// How control flow runs: the backend of cond, scan and while, whose kernels hold executables of
// their bodies. A loop opens its bodies once, and carries lie in two places in turn: what one step
// writes the next one reads.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stack.h>
#include <plait/ops_control.h>
#include <plait/run.h>

#include <atomic>
#include <cstring>

namespace plait {
namespace {

// An executable with a session that the next call takes, if no other has it.
class Body {
 public:
  explicit Body(const Jaxpr& jaxpr) : executable_(compile(jaxpr)) {}
  ~Body() { delete spare_.load(); }
  Body(const Body&) = delete;

  class Lease {
   public:
    explicit Lease(const Body& body)
        : body_(body), session_(body.spare_.exchange(nullptr, std::memory_order_acquire)) {
      if (!session_) session_ = body.executable_->open().release();
    }
    ~Lease() {
      Session* expected = nullptr;
      if (!body_.spare_.compare_exchange_strong(expected, session_, std::memory_order_release))
        delete session_;
    }
    Lease(const Lease&) = delete;
    void run(std::span<const View> inputs, std::span<const View> outputs) {
      session_->run(inputs, outputs);
    }

   private:
    const Body& body_;
    Session* session_;
  };

 private:
  const std::shared_ptr<const Executable> executable_;
  mutable std::atomic<Session*> spare_{nullptr};
};

// An equation's operands as dense memory: the group's inputs in order, with literals between them.
class Operands {
 public:
  explicit Operands(const Jaxpr& group) {
    for (const Atom& atom : group->equations[0].inputs) {
      sources_.push_back(atom.is_var() ? atom.var().id : -1);
      literals_.push_back(atom.is_var() ? Buffer() : Array::literal(atom.literal()).buffer());
    }
  }
  std::vector<View> collect(std::span<const View> inputs, std::vector<Buffer>& copies) const {
    std::vector<View> views;
    views.reserve(sources_.size());
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      views.push_back(sources_[i] < 0 ? literals_[i].view() : inputs[std::size_t(sources_[i])]);
      if (views.back().is_dense()) continue;
      copies.push_back(Buffer::copy_of(views.back()));
      views.back() = copies.back().view();
    }
    return views;
  }

 private:
  std::vector<int> sources_;  // inputs of the group, -1 for literals
  std::vector<Buffer> literals_;
};

std::int64_t bytes_of(const View& view) { return view.size() * size_of(view.dtype); }
void copy_dense(const View& from, const View& to) {
  if (const std::int64_t bytes = bytes_of(to); bytes > 0 && from.data != to.data)
    std::memcpy(to.data, from.data, std::size_t(bytes));
}

// Places for carries in scratch memory.
class Carries {
 public:
  explicit Carries(std::span<const Aval> avals) {
    for (const Aval& aval : avals) {
      offsets_.push_back(bytes_);
      const std::int64_t bytes = num_elements(aval.shape.to_sizes()) * size_of(aval.dtype);
      bytes_ += (bytes + 63) / 64 * 64;
    }
  }
  std::int64_t bytes() const { return bytes_; }
  std::vector<View> views(std::span<const View> like, void* scratch) const {
    std::vector<View> views(like.begin(), like.end());
    for (std::size_t i = 0; i < views.size(); ++i)
      views[i].data = static_cast<char*>(scratch) + offsets_[i];
    return views;
  }

 private:
  std::vector<std::int64_t> offsets_;
  std::int64_t bytes_ = 0;
};

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
  Operands operands_;
  std::vector<std::unique_ptr<Body>> branches_;
};

// What an element of a stack, or a slice, looks like in memory.
View element_view(const Aval& slice) {
  const Aval aval = in_memory(slice);
  const Sizes64 shape = aval.shape.to_sizes();
  return {nullptr, aval.dtype, shape, dense_strides(shape)};
}
std::shared_ptr<Stack> make_stack(const Aval& element) {
  return std::make_shared<Stack>(bytes_of(element_view(element)), element.stack > 0);
}

class WhileKernel final : public Kernel {
 public:
  explicit WhileKernel(const Jaxpr& group)
      : source_(group->equations[0].source),
        loop_(group->equations[0].params),
        operands_(group),
        cond_(loop_.cond),
        body_(loop_.body),
        carries_(loop_.body->input_avals().first(loop_.num_carry)) {
    const std::vector<Aval> outputs = loop_.body->output_avals();
    pushed_.assign(outputs.begin() + std::ptrdiff_t(loop_.num_carry), outputs.end());
  }

  std::int64_t scratch_bytes() const override { return carries_.bytes(); }

  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream&) const override {
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
    Body::Lease cond(cond_), body(body_);
    bool holds = false;
    const View predicate{&holds, DType::bool_, {}, {}};
    for (std::int64_t step = 0;; ++step) {
      cond.run(of_cond, {&predicate, 1});
      if (!holds) break;
      if (loop_.max_steps && step == *loop_.max_steps) throw_endless(step);
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
  [[noreturn]] void throw_endless(std::int64_t steps) const {
    ValueError error("while_loop: the condition still holds after max_steps = " +
                         std::to_string(steps) + " steps",
                     "let the condition become false, or raise max_steps");
    if (source_) error.at(source_);  // else whoever called knows the line
    throw error;
  }

  const Source source_;
  const WhileParams loop_;
  const Operands operands_;
  const Body cond_, body_;
  const Carries carries_;
  std::vector<Aval> pushed_;
};

// Slices of an array along its first axis, or the elements of a stack, one after the other.
class Slices {
 public:
  Slices(const View& whole, const Aval& slice, bool is_stack, std::int64_t length)
      : view_(element_view(slice)), bytes_(bytes_of(view_)) {
    if (!is_stack) {
      data_ = whole.as<char>();
      return;
    }
    stack_ = *whole.as<Stack::Handle>();
    if (stack_) size_ = stack_->size();
    if (size_ < length) zeros_.assign(std::size_t(bytes_ + 63) / 64 * 64, 0);
  }
  // A stack to be filled.
  Slices(const Aval& slice, std::int64_t length) : view_(element_view(slice)) {
    stack_ = make_stack(slice);
    for (; size_ < length; ++size_) stack_->push();
  }
  const View& at(std::int64_t index) {
    if (data_)
      view_.data = data_ + index * bytes_;
    else if (stack_ || !zeros_.empty())
      view_.data = index < size_ ? stack_->at(index) : zeros_.data();
    return view_;
  }
  const std::shared_ptr<Stack>& stack() const { return stack_; }

 private:
  View view_;
  std::int64_t bytes_ = 0, size_ = 0;
  char* data_ = nullptr;  // of an array; null also for one without elements
  std::shared_ptr<Stack> stack_;
  std::vector<char>
      zeros_;  // what is read behind the end of a stack: loops of other examples went on
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
      xs.emplace_back(in[i], scan_.body->avals[i], is_stack(scan_.body->avals[i]), length);
    for (std::size_t i = n; i < outputs.size(); ++i)
      ys.push_back(is_stack(outputs_[i]) ? Slices(outputs_[i], length)
                                         : Slices(outputs[i], outputs_[i], false, length));
    std::vector<View> out(outputs.begin(), outputs.end());
    Body::Lease body(body_);
    for (std::int64_t step = 0; step < length; ++step) {
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
  const Operands operands_;
  const Body body_;
  const std::vector<Aval> outputs_;  // of the body
  const Carries carries_;
};

class ControlBackend final : public Backend {
 public:
  std::string_view name() const override { return "control"; }
  Support supports(const Equation& equation, std::span<const Aval>,
                   std::span<const Aval>) const override {
    const Primitive& primitive = *equation.primitive;
    const bool mine = primitive == cond_p || primitive == while_p || primitive == scan_p;
    return mine ? Support::yes() : Support::no();
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group) const override {
    const Primitive& primitive = *group->equations[0].primitive;
    if (primitive == cond_p) return std::make_unique<CondKernel>(group);
    if (primitive == while_p) return std::make_unique<WhileKernel>(group);
    return std::make_unique<ScanKernel>(group);
  }
};

const bool registered = register_backend(std::make_unique<ControlBackend>(), Preference::reference);

}  // namespace
}  // namespace plait
