// Loops with conditions that hold for some examples longer than for others. See lanes.h.
// SPDX-License-Identifier: Apache-2.0
#include "lanes.h"

#include "rest_of_loop.h"

namespace plait {
namespace {

class LaneWhile final : public LaneKernel {
 public:
  LaneWhile(const Jaxpr& group, Device device)
      : LaneKernel(group, device),
        loop_(equation().params),
        num_carry_(loop_.num_carry),
        first_const_(loop_.num_carry + loop_.num_cond_consts),
        cond_(loop_.cond, device,
              concatenate(Flags(num_carry_, true), batched(num_carry_, first_const_)), sizes_),
        body_(loop_.body, device,
              concatenate(Flags(num_carry_, true),
                          batched(first_const_, std::size_t(lanes_.body->num_binders))),
              sizes_),
        rest_(loop_, device, [&] { return rest_of_lanes(); }) {
    const std::vector<Aval> outputs = loop_.body->output_avals();
    pushed_.assign(outputs.begin() + std::ptrdiff_t(num_carry_), outputs.end());
  }

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch& launch) const override {
    const Stream& stream = launch.stream;
    std::vector<Buffer> copies;
    std::vector<std::int32_t> live;
    const std::vector<View> operands = collect(inputs, copies, live, stream);
    for (std::size_t i = 0; i < num_carry_; ++i) spread_operand(i, operands[i], outputs[i], stream);
    std::vector<Stack::Handle> stacks;
    for (const Aval& aval : pushed_)
      stacks.push_back(std::make_shared<Stack>(aval.stack > 0, stream));
    Count count;
    Run run{operands, outputs, launch};
    run.may_change = stacks.empty() && std::int64_t(live.size()) == num_examples_;
    // At first all have the carry that came in; then those that are left have that of their last
    // step, in rows.
    std::vector<View> carry(outputs.begin(), outputs.begin() + std::ptrdiff_t(num_carry_));
    State state;
    if (!live.empty()) state = gathered(rows_of(live), carry, operands, stream);
    std::int64_t step = 0;
    for (bool decided = false; state.num_live > 0; decided = true) {
      step = run_level(state, step, decided, run, stacks, count);
      if (state.num_live > 0) state = compacted(state, stream);
    }
    for (std::size_t i = 0; i < stacks.size(); ++i)
      *outputs[num_carry_ + i].as<Stack::Handle>() = std::move(stacks[i]);
    fill_others(live, outputs.first(num_carry_), lanes_.body->input_avals(), stream);
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

  // A run of the kernel.
  struct Run {
    std::span<const View> operands, outputs;
    const Launch& launch;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    bool may_change = false;  // to the rest of the loop as one kernel
  };

  // The loop of all examples from any step on. One that has finished takes no step more.
  Jaxpr rest_of_lanes() const {
    LanesParams rest = lanes_;
    Flags& batched = rest.lanes[0].batched;
    if (rest.guarded) batched.erase(batched.begin());
    rest.guarded = false;
    rest.body = rest_program(equation(), lanes_.body->input_avals());
    std::fill_n(batched.begin(), num_carry_, true);
    if (loop_.max_steps) {  // beside the carries, and behind what the condition reads
      batched.insert(batched.begin() + std::ptrdiff_t(first_const_), false);
      batched.insert(batched.begin() + std::ptrdiff_t(num_carry_), false);
    }
    Builder builder;
    std::vector<Atom> atoms;
    for (std::size_t i = 0; i < batched.size(); ++i) {
      Aval aval = rest.body->avals[i];
      if (batched[i]) aval.shape.insert(0, num_examples_);
      atoms.push_back(builder.add_binder(aval));
    }
    const std::vector<Var> outputs =
        builder.add(lanes_p, std::move(atoms), rest.to_params(), source_);
    return builder.close({outputs.begin(), outputs.end()});
  }

  // The steps from this one on, as one kernel. Whether it could.
  bool run_rest(const State& state, std::int64_t step, const Run& run) const {
    const Stream& stream = run.launch.stream;
    for (std::int64_t row = 0; row < state.rows.size(); ++row)
      for (std::size_t i = 0; i < num_carry_ && state.live[std::size_t(row)]; ++i)
        copy_row(state.here[i].placed().data, row, run.outputs[i].data, state.rows[row],
                 bytes_of_example(i), stream);
    const auto from_cond = run.operands.begin() + std::ptrdiff_t(num_carry_),
               to_cond = run.operands.begin() + std::ptrdiff_t(first_const_);
    std::vector<Buffer> copies;
    std::vector<View> from,
        to(run.outputs.begin(), run.outputs.begin() + std::ptrdiff_t(num_carry_));
    for (const View& carry : to) {
      copies.push_back(Buffer::copy_of(carry));
      from.push_back(copies.back().view());
    }
    if (!loop_.max_steps) {
      from.insert(from.end(), from_cond, run.operands.end());
      return rest_.run(from, to, run.launch);
    }
    std::int64_t none = 0, most = *loop_.max_steps - step;
    std::vector<std::int64_t> taken(std::size_t(num_examples_), 0);
    from.push_back({&none, DType::int64, {}, {}});
    from.insert(from.end(), from_cond, to_cond);
    from.push_back({&most, DType::int64, {}, {}});
    from.insert(from.end(), to_cond, run.operands.end());
    to.push_back({taken.data(), DType::int64, {num_examples_}, {1}});
    if (!rest_.run(from, to, run.launch)) return false;
    if (std::find(taken.begin(), taken.end(), most) == taken.end()) return true;
    SharedFlags holds(num_examples_, stream), all(num_examples_, stream);
    std::fill(all.values.begin(), all.values.end(), true);
    all.send();
    std::vector<View> of_cond{all.view()};
    of_cond.insert(of_cond.end(), to.begin(), to.end() - 1);
    of_cond.insert(of_cond.end(), from_cond, to_cond);
    CompiledBody::Lease(cond_.at(0)).run(of_cond, {&holds.view(), 1}, stream);
    holds.fetch();
    for (std::size_t i = 0; i < taken.size(); ++i)
      if (taken[i] == most && holds.values[i]) throw_endless(*loop_.max_steps, source_);
    return true;
  }

  std::vector<View> views_of(std::span<const Buffer> buffers) const {
    std::vector<View> views;
    for (const Buffer& buffer : buffers) views.push_back(buffer.placed());
    return views;
  }

  State gathered(const ActiveRows& rows, std::span<const View> carry,
                 std::span<const View> operands, const Stream& stream) const {
    State state;
    state.rows = rows;
    for (std::int64_t row = 0; row < rows.size(); ++row) {
      state.live.push_back(rows[row] >= 0);
      state.num_live += rows[row] >= 0;
    }
    for (std::size_t i = 0; i < num_carry_; ++i) {
      state.here.push_back(rows.gather(carry[i], example(i), stream));
      state.there.push_back(make_rows(example(i), rows.size(), stream));
    }
    for (std::size_t i = num_carry_; i < operands.size(); ++i) {
      if (!is_batched(i)) {
        state.consts.push_back(operands[i]);
        continue;
      }
      state.owned.push_back(rows.gather(operands[i], example(i), stream));
      state.consts.push_back(state.owned.back().placed());
    }
    return state;
  }

  // The rows that are still live, together.
  State compacted(const State& from, const Stream& stream) const {
    std::vector<std::int32_t> rows, numbers;
    for (std::int64_t row = 0; row < from.rows.size(); ++row)
      if (from.live[std::size_t(row)]) {
        rows.push_back(std::int32_t(row));
        numbers.push_back(from.rows[row]);
      }
    const std::int64_t size = sizes_[level_for(std::int64_t(rows.size()))];
    std::vector<View> operands = views_of(from.here);
    operands.insert(operands.end(), from.consts.begin(), from.consts.end());
    State state =
        gathered(ActiveRows(std::move(rows), size, from.rows.size()), operands, operands, stream);
    state.rows = ActiveRows(std::move(numbers), size, num_examples_);
    return state;
  }

  // Steps until no row is live, or half of them; returns how many steps there have been. decided:
  // the condition is known to hold at first.
  std::int64_t run_level(State& state, std::int64_t step, bool decided, Run& run,
                         std::span<const Stack::Handle> stacks, Count& count) const {
    const Stream& stream = run.launch.stream;
    const std::int64_t num_rows = state.rows.size();
    const std::size_t level = level_for(num_rows);
    for (std::size_t i = 0; i < stacks.size(); ++i)
      stacks[i]->begin(step, state.rows.numbers(), bytes_of(rows_view(pushed_[i], num_rows)));
    SharedFlags holds(num_rows, stream), live(num_rows, stream);
    live.values = state.live;
    live.send();
    std::vector<View> of_cond{live.view()}, of_body{of_cond}, results;
    for (const Buffer& carry : state.here) {
      of_cond.push_back(carry.placed());
      of_body.push_back(carry.placed());
    }
    const auto middle = state.consts.begin() + std::ptrdiff_t(loop_.num_cond_consts);
    of_cond.insert(of_cond.end(), state.consts.begin(), middle);
    of_body.insert(of_body.end(), middle, state.consts.end());
    const ExampleScope scope(state.rows.numbers().get(), axes_);
    CompiledBody::Lease cond(cond_.at(level)), body(body_.at(level));
    for (;; ++step, decided = false) {
      check_interrupts();
      if (!decided) {
        cond.run(of_cond, {&holds.view(), 1}, stream);
        holds.fetch();
        leave(state, holds.values, run.outputs, stream);
        std::copy(state.live.begin(), state.live.end(), live.values.begin());
        live.send();
      }
      if (state.num_live == 0) return step;
      if (run.may_change && step % RestOfLoop::steps_between_looks == 0 && step > 0 &&
          rest_.pays(run.start)) {
        run.may_change = false;
        if (run_rest(state, step, run)) {
          state.num_live = 0;
          return step;
        }
      }
      if (level + 1 < sizes_.size() && state.num_live <= sizes_[level + 1]) return step;
      if (loop_.max_steps && step == *loop_.max_steps) throw_endless(step, source_);
      count.add(state.num_live, num_rows);
      results = views_of(state.there);
      for (std::size_t i = 0; i < stacks.size(); ++i) {
        results.push_back(rows_view(pushed_[i], num_rows));
        results.back().data = stacks[i]->push();
      }
      body.run(of_body, results, stream);
      if (!stacks.empty())
        clear_others(state.live, results[num_carry_], row_bytes(pushed_[0]), stream);
      std::swap(state.here, state.there);
      for (std::size_t i = 0; i < num_carry_; ++i)
        of_cond[i + 1].data = of_body[i + 1].data = state.here[i].placed().data;
    }
  }

  // What is pushed first says who has taken this step.
  static void clear_others(const std::vector<char>& live, const View& flags, std::int64_t bytes,
                           const Stream& stream) {
    for (std::size_t row = 0; row < live.size(); ++row)
      if (!live[row]) clear_row(flags.data, std::int64_t(row), bytes, stream);
  }

  // Writes the carries of those that have finished where their results are.
  void leave(State& state, const std::vector<char>& holds, std::span<const View> outputs,
             const Stream& stream) const {
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
        copy_row(state.here[i].placed().data, std::int64_t(row), outputs[i].data,
                 state.rows[std::int64_t(row)], bytes_of_example(i), stream);
    }
    if (copies.empty() || state.num_live == 0) return;
    const std::size_t now = first();
    if (now != first_before) {
      copies.clear();
      for (std::size_t row = 0; row < num_rows; ++row)
        if (!state.live[row]) copies.push_back(row);
    }
    auto copy_to_rows = [&](void* data, std::size_t operand) {
      for (std::size_t row : copies)
        copy_row(data, std::int64_t(now), data, std::int64_t(row), bytes_of_example(operand),
                 stream);
    };
    for (std::size_t i = 0; i < num_carry_; ++i) copy_to_rows(state.here[i].placed().data, i);
    for (std::size_t i = 0; i < state.consts.size(); ++i)
      if (is_batched(num_carry_ + i) && example(num_carry_ + i).stack == 0)
        copy_to_rows(state.consts[i].data, num_carry_ + i);
  }

  const WhileParams loop_;
  const std::size_t num_carry_, first_const_;
  const LaneBody cond_, body_;
  const RestOfLoop rest_;
  std::vector<Aval> pushed_;
};

}  // namespace

std::unique_ptr<Kernel> compile_lanes_while(const Jaxpr& group, Device device) {
  return std::make_unique<LaneWhile>(group, device);
}

}  // namespace plait
