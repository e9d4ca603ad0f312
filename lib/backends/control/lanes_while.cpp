// Loops with conditions that hold for some examples longer than for others. See lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/linalg.h>
#include <plait/primitives/primitives.h>

#include <chrono>
#include <mutex>

#include "compile/passes/pipeline.h"
#include "compile/tiers.h"
#include "lanes.h"
#include "primitives/contraction/dot.h"

namespace plait {
namespace {

using Clock = std::chrono::steady_clock;

// Whether a body gives one example, alone, the bits that it gives it among others: sums that a
// library or a longer loop takes over for many have others. batched: its binders that are the
// examples' own.
bool is_same_alone(const Jaxpr& body, Flags batched) {
  batched.resize(body->avals.size(), false);
  for (const Equation& equation : body->equations) {
    const auto is_own = [&](const Atom& atom) {
      return atom.is_var() && batched[std::size_t(atom.var().id)];
    };
    const bool any = std::any_of(equation.inputs.begin(), equation.inputs.end(), is_own);
    for (Var var : equation.outputs) batched[std::size_t(var.id)] = any;
    if (*equation.primitive == triangular_solve_p && any && !is_own(equation.inputs[0]))
      return false;
    if (*equation.primitive == dot_general_p) {
      const DotAxes axes(equation.params);
      const Aval &lhs = body->aval(equation.inputs[0]), &rhs = body->aval(equation.inputs[1]);
      std::int64_t m = 1, k = 1, n = 1;
      for (int axis : free_axes(lhs.rank(), axes.lhs_contract, axes.lhs_batch))
        m *= lhs.shape[axis].constant();
      for (int axis : axes.lhs_contract) k *= lhs.shape[axis].constant();
      for (int axis : free_axes(rhs.rank(), axes.rhs_contract, axes.rhs_batch))
        n *= rhs.shape[axis].constant();
      if (lhs.dtype != DType::float32 || m > 32 || k > 32 || n > 32) return false;
    }
    bool same = true;
    for_each_body(open_bodies(equation.params), [&](const Jaxpr& inner) {
      same &= is_same_alone(inner, Flags(std::size_t(inner->num_binders), true));
    });
    if (!same) return false;
  }
  return true;
}

// The other way to run a loop for many examples: one after the other, each as one kernel, where a
// slow backend makes one of the loop. Which is faster depends on how much longer than others some
// examples take, and on how much of a step batching makes quicker: both are tried, and the faster
// one stays.
class OneByOne {
 public:
  OneByOne(const Equation& equation, const Jaxpr& example, const Flags& batched) {
    const WhileParams loop(equation.params);
    if (loop.num_pushes() > 0 || loop.max_steps) return;
    std::vector<const Backend*> quick;
    for (const Backend* backend : backends_of())
      if (backend->runs_eagerly()) quick.push_back(backend);
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(example->aval(atom));
    for (Var var : equation.outputs) outputs.push_back(example->aval(var));
    const Backend* taker = nullptr;
    for (const Backend* backend : backends_of())
      if (!taker && !backend->runs_eagerly() && backend->supports(equation, inputs, outputs))
        taker = backend;
    if (!taker) return;
    const std::size_t n = loop.num_carry, first_const = n + loop.num_cond_consts;
    const Flags carry(n, true);
    const auto middle = batched.begin() + std::ptrdiff_t(first_const);
    const Flags of_cond(batched.begin() + std::ptrdiff_t(n), middle),
        of_body(middle, batched.end());
    if (!is_same_alone(compile_passes::prepare(loop.cond, quick), concatenate(carry, of_cond)) ||
        !is_same_alone(compile_passes::prepare(loop.body, quick), concatenate(carry, of_body)))
      return;
    program_ = alone(equation, inputs);
    backend_ = taker;
    compilation_ = tiers::compilation_time(loop.body->equations.size());
    if (tiers::is_waiting()) compile();
  }

  // The kernel, where it is this way's turn or this way is the faster; else nothing.
  const Kernel* kernel() const {
    if (!kernel_.load(std::memory_order_acquire)) {
      if (!backend_ || spent_.load(std::memory_order_relaxed) < compilation_.count())
        return nullptr;
      compile();
    }
    const Kernel* const made = kernel_.load(std::memory_order_acquire);
    const std::int64_t apart = time_apart_.load(std::memory_order_relaxed),
                       together = time_together_.load(std::memory_order_relaxed);
    return together > 0 && (apart == 0 || apart < together) ? made : nullptr;
  }
  void note_together(Clock::duration time) const { note(time_together_, time); }
  void note_apart(Clock::duration time) const { note(time_apart_, time); }

  std::string note() const {
    const std::int64_t apart = time_apart_.load(std::memory_order_relaxed),
                       together = time_together_.load(std::memory_order_relaxed);
    if (apart == 0 || together == 0) return "";
    auto microseconds = [](std::int64_t time) { return std::to_string(time / 1000) + " us"; };
    return apart < together
               ? ", one after the other: " + microseconds(apart) + " for " + microseconds(together)
               : ", together: " + microseconds(together) + " for " + microseconds(apart);
  }

 private:
  static Jaxpr alone(const Equation& equation, std::span<const Aval> inputs) {
    Builder builder;
    std::vector<Atom> atoms;
    for (const Aval& aval : inputs) atoms.push_back(builder.add_binder(aval));
    const std::vector<Var> outputs =
        builder.add(*equation.primitive, std::move(atoms), equation.params, equation.source);
    return builder.close({outputs.begin(), outputs.end()});
  }

  void compile() const {
    const std::lock_guard lock(compiling_);
    if (kernel_.load(std::memory_order_relaxed) || failed_) return;
    try {
      owner_ = backend_->compile(program_);
      kernel_.store(owner_.get(), std::memory_order_release);
    } catch (const BackendError& error) {
      log_line(std::string("examples of a loop stay together: ") + error.what());
      failed_ = true;
    }
  }

  // The least that it took; some runs have fewer examples, or shorter ones.
  void note(std::atomic<std::int64_t>& time, Clock::duration taken) const {
    const std::int64_t now = std::max<std::int64_t>(1, std::chrono::nanoseconds(taken).count());
    spent_.fetch_add(now, std::memory_order_relaxed);
    const std::int64_t before = time.load(std::memory_order_relaxed);
    if (before == 0 || now < before) time.store(now, std::memory_order_relaxed);
  }

  Jaxpr program_;
  const Backend* backend_ = nullptr;
  std::chrono::nanoseconds compilation_{};
  mutable std::mutex compiling_;
  mutable std::unique_ptr<const Kernel> owner_;
  mutable std::atomic<const Kernel*> kernel_{nullptr};
  mutable bool failed_ = false;
  mutable std::atomic<std::int64_t> spent_{0}, time_apart_{0}, time_together_{0};  // nanoseconds
};

class LaneWhile final : public LaneKernel {
 public:
  explicit LaneWhile(const Jaxpr& group)
      : LaneKernel(group),
        loop_(equation().params),
        num_carry_(loop_.num_carry),
        first_const_(loop_.num_carry + loop_.num_cond_consts),
        cond_(loop_.cond, concatenate(Flags(num_carry_, true), batched(num_carry_, first_const_)),
              sizes_),
        body_(loop_.body,
              concatenate(Flags(num_carry_, true),
                          batched(first_const_, std::size_t(lanes_.body->num_binders))),
              sizes_),
        one_by_one_(equation(), lanes_.body, batched(0, std::size_t(lanes_.body->num_binders))) {
    const std::vector<Aval> outputs = loop_.body->output_avals();
    pushed_.assign(outputs.begin() + std::ptrdiff_t(num_carry_), outputs.end());
  }

  std::string note() const override { return LaneKernel::note() + one_by_one_.note(); }

  void run(std::span<const View> inputs, std::span<const View> outputs, void*,
           const Stream& stream) const override {
    std::vector<Buffer> copies;
    std::vector<std::int32_t> live;
    const std::vector<View> operands = collect(inputs, copies, live);
    const Clock::time_point start = Clock::now();
    if (const Kernel* const kernel = one_by_one_.kernel()) {
      run_one_by_one(*kernel, live, operands, outputs, stream);
      one_by_one_.note_apart(Clock::now() - start);
      return;
    }
    run_together(live, operands, outputs);
    one_by_one_.note_together(Clock::now() - start);
  }

 private:
  void run_one_by_one(const Kernel& kernel, std::span<const std::int32_t> live,
                      std::span<const View> operands, std::span<const View> outputs,
                      const Stream& stream) const {
    std::vector<View> from, to;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      from.push_back(element_view(example(i)));
      from.back().data = operands[i].data;
    }
    for (std::size_t i = 0; i < num_carry_; ++i) to.push_back(element_view(example(i)));
    const Storage scratch = Storage::allocate(std::size_t(kernel.scratch_bytes()));
    for (std::int32_t number : live) {
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (is_batched(i)) from[i].data = operands[i].as<char>() + number * bytes_of_example(i);
      for (std::size_t i = 0; i < num_carry_; ++i)
        to[i].data = outputs[i].as<char>() + number * bytes_of_example(i);
      kernel.run(from, to, scratch.data(), stream);
    }
    fill_others(live, outputs.first(num_carry_), lanes_.body->input_avals());
  }

  void run_together(const std::vector<std::int32_t>& live, const std::vector<View>& operands,
                    std::span<const View> outputs) const {
    for (std::size_t i = 0; i < num_carry_; ++i) spread_operand(i, operands[i], outputs[i]);
    std::vector<Stack::Handle> stacks;
    for (const Aval& aval : pushed_) stacks.push_back(std::make_shared<Stack>(aval.stack > 0));
    Count count;
    // At first all have the carry that came in; then those that are left have that of their last
    // step, in rows.
    std::vector<View> carry(outputs.begin(), outputs.begin() + std::ptrdiff_t(num_carry_));
    State state;
    if (!live.empty()) state = gathered(rows_of(live), carry, operands);
    std::int64_t step = 0;
    for (bool decided = false; state.num_live > 0; decided = true) {
      step = run_level(state, step, decided, outputs, stacks, count);
      if (state.num_live > 0) state = compacted(state);
    }
    for (std::size_t i = 0; i < stacks.size(); ++i)
      *outputs[num_carry_ + i].as<Stack::Handle>() = std::move(stacks[i]);
    fill_others(live, outputs.first(num_carry_), lanes_.body->input_avals());
  }

  // What some examples have in rows: carries in two places, and constants.
  struct State {
    ActiveRows rows;
    std::vector<char> live;  // by row
    std::int64_t num_live = 0;
    std::vector<Buffer> here, there;
    std::vector<View> consts;  // of the condition, then of the body
    std::vector<Buffer> owned;
  };

  std::vector<View> views_of(std::span<const Buffer> buffers) const {
    std::vector<View> views;
    for (const Buffer& buffer : buffers) views.push_back(buffer.view());
    return views;
  }

  State gathered(const ActiveRows& rows, std::span<const View> carry,
                 std::span<const View> operands) const {
    State state;
    state.rows = rows;
    for (std::int64_t row = 0; row < rows.size(); ++row) {
      state.live.push_back(rows[row] >= 0);
      state.num_live += rows[row] >= 0;
    }
    for (std::size_t i = 0; i < num_carry_; ++i) {
      state.here.push_back(rows.gather(carry[i], example(i)));
      state.there.push_back(make_rows(example(i), rows.size()));
    }
    for (std::size_t i = num_carry_; i < operands.size(); ++i) {
      if (!is_batched(i)) {
        state.consts.push_back(operands[i]);
        continue;
      }
      state.owned.push_back(rows.gather(operands[i], example(i)));
      state.consts.push_back(state.owned.back().view());
    }
    return state;
  }

  // The rows that are still live, together.
  State compacted(const State& from) const {
    std::vector<std::int32_t> rows, numbers;
    for (std::int64_t row = 0; row < from.rows.size(); ++row)
      if (from.live[std::size_t(row)]) {
        rows.push_back(std::int32_t(row));
        numbers.push_back(from.rows[row]);
      }
    const std::int64_t size = sizes_[level_for(std::int64_t(rows.size()))];
    std::vector<View> operands = views_of(from.here);
    operands.insert(operands.end(), from.consts.begin(), from.consts.end());
    State state = gathered(ActiveRows(std::move(rows), size, from.rows.size()), operands, operands);
    state.rows = ActiveRows(std::move(numbers), size, num_examples_);
    return state;
  }

  // Steps until no row is live, or half of them; returns how many steps there have been. decided:
  // the condition is known to hold at first.
  std::int64_t run_level(State& state, std::int64_t step, bool decided,
                         std::span<const View> outputs, std::span<const Stack::Handle> stacks,
                         Count& count) const {
    const std::int64_t num_rows = state.rows.size();
    const std::size_t level = level_for(num_rows);
    for (std::size_t i = 0; i < stacks.size(); ++i)
      stacks[i]->begin(step, state.rows.numbers(), bytes_of(rows_view(pushed_[i], num_rows)));
    std::vector<char> holds(std::size_t(num_rows), false);
    const View predicate = flags_view(holds);
    std::vector<View> of_cond{flags_view(state.live)}, of_body{of_cond}, results;
    for (const Buffer& carry : state.here) {
      of_cond.push_back(carry.view());
      of_body.push_back(carry.view());
    }
    const auto middle = state.consts.begin() + std::ptrdiff_t(loop_.num_cond_consts);
    of_cond.insert(of_cond.end(), state.consts.begin(), middle);
    of_body.insert(of_body.end(), middle, state.consts.end());
    const ExampleScope scope(state.rows.numbers().get(), axes_);
    CompiledBody::Lease cond(cond_.at(level)), body(body_.at(level));
    for (;; ++step, decided = false) {
      check_interrupts();
      if (!decided) {
        cond.run(of_cond, {&predicate, 1});
        leave(state, holds, outputs);
      }
      if (state.num_live == 0) return step;
      if (level + 1 < sizes_.size() && state.num_live <= sizes_[level + 1]) return step;
      if (loop_.max_steps && step == *loop_.max_steps) throw_endless(step, source_);
      count.add(state.num_live, num_rows);
      results = views_of(state.there);
      for (std::size_t i = 0; i < stacks.size(); ++i) {
        results.push_back(rows_view(pushed_[i], num_rows));
        results.back().data = stacks[i]->push();
      }
      body.run(of_body, results);
      if (!stacks.empty()) clear_others(state.live, results[num_carry_], row_bytes(pushed_[0]));
      std::swap(state.here, state.there);
      for (std::size_t i = 0; i < num_carry_; ++i)
        of_cond[i + 1].data = of_body[i + 1].data = state.here[i].view().data;
    }
  }

  // What is pushed first says who has taken this step.
  static void clear_others(const std::vector<char>& live, const View& flags, std::int64_t bytes) {
    for (std::size_t row = 0; row < live.size(); ++row)
      if (!live[row])
        std::memset(flags.as<char>() + std::int64_t(row) * bytes, 0, std::size_t(bytes));
  }

  // Writes the carries of those that have finished where their results are.
  void leave(State& state, const std::vector<char>& holds, std::span<const View> outputs) const {
    const std::size_t num_rows = holds.size();
    const auto first = [&] {
      return std::size_t(std::find(state.live.begin(), state.live.end(), 1) - state.live.begin());
    };
    const std::size_t first_before = first();
    std::vector<std::size_t> copies;  // rows to be made so
    for (std::size_t row = 0; row < num_rows; ++row) {
      if (!state.live[row] || holds[row]) continue;
      state.live[row] = false;
      --state.num_live;
      copies.push_back(row);
      for (std::size_t i = 0; i < num_carry_; ++i)
        copy_row(state.here[i].view().data, std::int64_t(row), outputs[i].data,
                 state.rows[std::int64_t(row)], bytes_of_example(i));
    }
    if (copies.empty() || state.num_live == 0) return;
    const std::size_t now = first();
    if (now != first_before) {
      copies.clear();
      for (std::size_t row = 0; row < num_rows; ++row)
        if (!state.live[row]) copies.push_back(row);
    }
    auto copy = [&](void* data, std::size_t operand) {
      for (std::size_t row : copies)
        copy_row(data, std::int64_t(now), data, std::int64_t(row), bytes_of_example(operand));
    };
    for (std::size_t i = 0; i < num_carry_; ++i) copy(state.here[i].mutable_data(), i);
    for (std::size_t i = 0; i < state.consts.size(); ++i)
      if (is_batched(num_carry_ + i) && example(num_carry_ + i).stack == 0)
        copy(state.consts[i].data, num_carry_ + i);
  }

  const WhileParams loop_;
  const std::size_t num_carry_, first_const_;
  const LaneBody cond_, body_;
  const OneByOne one_by_one_;
  std::vector<Aval> pushed_;
};

}  // namespace

std::unique_ptr<Kernel> compile_lanes_while(const Jaxpr& group) {
  return std::make_unique<LaneWhile>(group);
}

}  // namespace plait
