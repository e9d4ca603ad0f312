// Loops with conditions that hold for some examples longer than for others. See lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include "lanes.h"

namespace plait {
namespace {

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
              sizes_) {
    const std::vector<Aval> outputs = loop_.body->output_avals();
    pushed_.assign(outputs.begin() + std::ptrdiff_t(num_carry_), outputs.end());
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void*,
           const Stream&) const override {
    std::vector<Buffer> copies;
    std::vector<std::int32_t> live;
    const std::vector<View> operands = collect(inputs, copies, live);
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

 private:
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
  std::vector<Aval> pushed_;
};

}  // namespace

std::unique_ptr<Kernel> compile_lanes_while(const Jaxpr& group) {
  return std::make_unique<LaneWhile>(group);
}

}  // namespace plait
