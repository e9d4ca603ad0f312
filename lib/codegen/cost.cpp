// See cost.h. Every loop is timed once, from the inside out; then it is one operation of the loop
// around it.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/cost.h"

#include <plait/base/hash.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/cost.h>
#include <plait/rules/motion.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <unordered_map>

#include "codegen/lanes.h"
#include "codegen/traffic.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr double line = 64;              // bytes
constexpr double parts = 8;              // of a combination that is not in order
constexpr double looked_ahead = 30;      // ns of operations that a processor holds
constexpr double longest_foreseen = 32;  // steps of a loop whose end is foreseen

double sum(const std::array<double, 3>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

// Of one run of a statement.
struct Time {
  double throughput = 0, memory = 0;
  double access = 0;  // of vectors that go to and from the first cache, beside operations
  double ns = 0;      // of what takes long: alone, from its operands to its results
  std::array<double, 3> shares{};
  bool is_long = false;  // what follows waits for its end
  double step_ns = 0;    // of a loop
};

// What a statement with those in it needs and changes.
struct Effects {
  std::vector<Value> used, defined;
  std::vector<int> reads, writes;
};
void add_effects(const Statement& s, Effects& effects) {
  const auto use = [&](const Place& place) {
    for (const Place::Term& term : place.terms) effects.used.push_back(term.index);
  };
  effects.used.insert(effects.used.end(), s.operands.begin(), s.operands.end());
  use(s.place), use(s.source_place);
  if (s.kind == Kind::load) effects.reads.push_back(s.place.memory);
  if (s.kind == Kind::store || s.kind == Kind::copy) effects.writes.push_back(s.place.memory);
  if (s.kind == Kind::copy) effects.reads.push_back(s.source_place.memory);
  for (std::size_t i = 0; i < s.places.size(); ++i) {
    use(s.places[i]);
    (i < s.call->strides.size() ? effects.reads : effects.writes).push_back(s.places[i].memory);
  }
  if (s.value >= 0) effects.defined.push_back(s.value);
  for (const Statement::Carry& carry : s.carries) {
    effects.defined.push_back(carry.value);
    effects.used.insert(effects.used.end(), carry.nexts.begin(), carry.nexts.end());
    if (s.kind == Kind::branch) continue;
    effects.used.insert(effects.used.end(), {carry.first, carry.next});
    effects.defined.push_back(carry.last);
  }
  if (s.kind == Kind::combine) effects.defined.push_back(s.counter);
  for (const Block& block : s.blocks)
    for (const Statement& inner : block) add_effects(inner, effects);
}

class Model {
 public:
  Model(const LoopProgram& program, const Block& block, const Machine& machine)
      : program_(program),
        machine_(machine),
        traffic_(program, block, machine),
        has_lanes_(program.dtypes.size(), false),
        block_(block) {}

  Prediction run() {
    const Time time = time_of_steps(nullptr, {&block_}, 1);
    Prediction prediction{time.ns, time.shares, is_known_};
    double most = 0;
    for (const Statement& s : block_) {
      const auto found = times_.find(&s);
      if (found == times_.end() || found->second.ns <= most) continue;
      most = found->second.ns;
      const bool is_serial = s.kind == Kind::repeat && !s.is_parallel && s.steps > 1;
      prediction.steps = is_serial ? s.steps : 0;
      prediction.step_ns = is_serial ? found->second.step_ns : 0;
    }
    return prediction;
  }

 private:
  // --- Operations
  // ----------------------------------------------------------------------------------

  enum class Class { cheap, division, function };
  static Class class_of(const Primitive& primitive) {
    if (primitive == div_p || primitive == rem_p || primitive == sqrt_p) return Class::division;
    const bool is_cheap = moves_as(primitive, Motion::cheap) || moves_as(primitive, Motion::layout);
    return is_cheap ? Class::cheap : Class::function;
  }
  bool is_literal(Value value) const {
    return std::any_of(program_.literals.begin(), program_.literals.end(),
                       [&](const auto& each) { return each.first == value; });
  }
  DType dtype(Value value) const { return program_.dtypes[std::size_t(value)]; }
  bool has_lanes(Value value) const { return has_lanes_[std::size_t(value)]; }
  double registers_of(DType type) const {
    return std::ceil(lanes_ * double(size_of(type)) / machine_.vector_bytes);
  }

  double time_of_compute(const Primitive& primitive, const Values& operands, DType result) {
    const bool in_lanes = std::any_of(operands.begin(), operands.end(),
                                      [&](Value operand) { return has_lanes(operand); });
    double registers = registers_of(result);
    for (Value operand : operands) registers = std::max(registers, registers_of(dtype(operand)));
    const bool is_whole = is_integer(result);
    switch (class_of(primitive)) {
      case Class::cheap:
        return in_lanes ? registers * machine_.vector : machine_.operation;
      case Class::division:
        if (is_whole && is_literal(operands.back()))  // a product with the reciprocal, and shifts
          return 4 * (in_lanes ? registers * machine_.vector : machine_.operation);
        if (is_whole && in_lanes && size_of(result) <= 4)  // by numbers of float64
          return registers_of(DType::float64) * machine_.vector_division + 8 * machine_.vector;
        if (is_whole) return (in_lanes ? lanes_ : 1) * machine_.division;
        return in_lanes ? registers * machine_.vector_division : machine_.division;
      case Class::function:
        return machine_.function * (in_lanes ? registers : machine_.operation / machine_.vector);
    }
    return 0;
  }
  double latency_of(const Primitive& primitive, DType result) const {
    switch (class_of(primitive)) {
      case Class::cheap:
        return is_inexact(result) ? machine_.addition : machine_.integer;
      case Class::division:
        return machine_.divided;
      case Class::function:
        return machine_.exponential;
    }
    return 0;
  }
  double latency_of_combining(const Statement& s) const {
    return *s.primitive == dot_general_p ? machine_.multiply_add
                                         : latency_of(*s.primitive, dtype(s.value));
  }

  // Where lanes go: elements beside each other, or each by itself.
  double time_of_access(const Place& place, DType type, bool is_store) {
    const double one = machine_.operation * (is_store ? 2 : 1);
    std::int64_t stride = 0;
    bool is_linear = true, in_lanes = false;
    for (const Place::Term& term : place.terms) {
      if (lanes_ == 0 || !has_lanes(term.index)) continue;
      in_lanes = true;
      if (term.index == counter_)
        stride += term.stride;
      else
        is_linear = false;
    }
    if (!in_lanes && !(is_store && lanes_ > 0)) return one;
    constexpr double lane = 2;  // operations: it is moved, and put to the others
    if (!is_linear || std::abs(stride) > 2) return lanes_ * lane * machine_.operation;
    // A vector, or two of which every other element counts; more where it lies in two lines.
    const double vectors = double(std::max<std::int64_t>(std::abs(stride), 1));
    const double lines = is_aligned(place, size_of(type)) ? 1 : 1 + machine_.vector_bytes / line;
    return lanes_ * double(size_of(type)) / machine_.levels[0].read * vectors * lines *
           (is_store ? 2 : 1) / (is_shared(place) ? rows_together : 1);
  }
  // Whether steps that are written together read the same.
  bool is_shared(const Place& place) const {
    if (rows_ < 0) return false;
    const loops::Index form = traffic_.form_of(place);
    return std::none_of(form.terms.begin(), form.terms.end(),
                        [&](const Place::Term& term) { return term.index == rows_; });
  }
  bool is_aligned(const Place& place, std::int64_t bytes) const {
    constexpr auto whole = std::int64_t(line);
    const loops::Index form = traffic_.form_of(place);
    return form.offset * bytes % whole == 0 &&
           std::all_of(form.terms.begin(), form.terms.end(), [&](const Place::Term& term) {
             return term.index == counter_ || term.stride * bytes % whole == 0;
           });
  }
  bool is_of_vectors(const Place& place) const {
    return lanes_ > 0 && std::all_of(place.terms.begin(), place.terms.end(), [&](const auto& term) {
             return !has_lanes(term.index) ||
                    (term.index == counter_ && std::abs(term.stride) <= 2);
           });
  }

  double time_of_copy(const Statement& s) const {
    const double count = double(num_elements(s.shape));
    const bool is_run = !s.shape.empty() && s.strides.back() == 1 && s.source_strides.back() == 1;
    if (!is_run) return 3 * count * machine_.operation;
    const double bytes =
        count * double(size_of(program_.memories[std::size_t(s.place.memory)].dtype));
    return 3 * std::ceil(bytes / machine_.vector_bytes) * machine_.vector;
  }

  // Products reach what registers do; in other kernels each operation waits for another.
  double time_of_call(const Statement& s) const {
    const Jaxpr& program = s.call->program;
    const Equation& equation = program->equations[0];
    const DType type = program->aval(program->outputs[0]).dtype;
    const bool is_product = *equation.primitive == dot_general_p;
    const double at_once =
        is_product ? 2 * double(machine_.vector_bytes) / double(size_of(type)) : 1;
    const double of_one = is_product ? machine_.vector : machine_.addition;
    return machine_.call + work_of(program).flops / at_once * of_one;
  }

  // --- Statements
  // ----------------------------------------------------------------------------------

  // Steps that are lanes of vectors.
  class Lanes {
   public:
    Lanes(Model& model, double lanes, Value counter)
        : model_(model),
          lanes_(std::exchange(model.lanes_, lanes)),
          counter_(std::exchange(model.counter_, counter)) {
      model.has_lanes_[std::size_t(counter)] = true;
    }
    ~Lanes() { model_.lanes_ = lanes_, model_.counter_ = counter_; }
    Lanes(const Lanes&) = delete;

   private:
    Model& model_;
    const double lanes_;
    const Value counter_;
  };

  Time time_of(const Statement& s) {
    const auto of_operations = [&](double time) {
      return Time{time, traffic_.time_of(s) * std::max(lanes_, 1.0)};
    };
    switch (s.kind) {
      case Kind::compute:
        for (Value operand : s.operands)
          if (has_lanes(operand)) has_lanes_[std::size_t(s.value)] = true;
        return of_operations(time_of_compute(*s.primitive, s.operands, dtype(s.value)));
      case Kind::load:
        for (const Place::Term& term : s.place.terms)
          if (has_lanes(term.index)) has_lanes_[std::size_t(s.value)] = true;
        return of_access(s, time_of_access(s.place, dtype(s.value), false));
      case Kind::store:
        return of_access(s, time_of_access(s.place, dtype(s.operands[0]), true));
      case Kind::check:
        return of_operations(2 * machine_.operation);
      case Kind::copy:
        return of_whole(of_operations(time_of_copy(s)));
      case Kind::call:
        return of_whole(of_operations(time_of_call(s)));
      case Kind::repeat:
        return s.is_parallel ? time_of_parallel(s)
                             : time_of_steps(&s, {&s.blocks[0]}, double(s.steps));
      case Kind::combine:
        return time_of_combination(s);
      case Kind::loop: {
        is_known_ = false;
        if (lanes_ > 0)
          for (const Statement::Carry& carry : s.carries)
            has_lanes_[std::size_t(carry.value)] = has_lanes_[std::size_t(carry.last)] = true;
        Time time = time_of_steps(&s, {&s.blocks[0], &s.blocks[1]}, usual_steps);
        time.ns += machine_.misprediction;
        time.shares[std::size_t(Bound::latency)] += machine_.misprediction;
        time.is_long = true;
        return time;
      }
      case Kind::branch:
        return time_of_branch(s);
    }
    return {};
  }

  Time of_access(const Statement& s, double time) const {
    Time all{time, traffic_.time_of(s) * std::max(lanes_, 1.0)};
    if (is_of_vectors(s.place)) all.access = std::exchange(all.throughput, 0);
    return all;
  }

  // What moves or computes much in one statement.
  Time of_whole(Time time) const {
    time.ns = std::max(time.throughput, time.memory);
    time.shares[std::size_t(time.memory > time.throughput ? Bound::memory : Bound::throughput)] =
        time.ns;
    return time;
  }

  // The dearest alternative, and now and then one that was not foreseen.
  Time time_of_branch(const Statement& s) {
    constexpr double unforeseen = 0.25;
    Time dearest;
    for (const Block& alternative : s.blocks) {
      const Time time = time_of_steps(nullptr, {&alternative}, 1);
      if (time.ns >= dearest.ns) dearest = time;
    }
    const double guess = unforeseen * machine_.misprediction;
    dearest.throughput += guess, dearest.ns += guess;
    dearest.shares[std::size_t(Bound::throughput)] += guess;
    return dearest;
  }

  Time time_of_parallel(const Statement& s) {
    const double lanes = num_lanes(program_, s, machine_.vector_bytes);
    const Lanes with(*this, lanes, s.value);
    Time time = time_of_steps(nullptr, {&s.blocks[0]}, std::ceil(double(s.steps) / lanes));
    time.is_long |= double(s.steps) / lanes > longest_foreseen;
    return time;
  }

  Time time_of_combination(const Statement& s) {
    if (lanes_ > 0 || s.is_in_order) {
      has_lanes_[std::size_t(s.value)] = lanes_ > 0;
      return combined(s, double(s.steps), double(s.steps) / (s.is_in_order ? 1 : parts));
    }
    const Lanes with(*this, parts, s.counter);
    const double steps = std::ceil(double(s.steps) / parts);
    return combined(s, steps, steps);
  }
  // steps: that are written; links: of the chain of sums.
  Time combined(const Statement& s, double steps, double links) {
    const double taken =
        lanes_ > 0 ? registers_of(dtype(s.value)) * machine_.vector : machine_.operation;
    Time time = time_of_steps(nullptr, {&s.blocks[0]}, steps, taken);
    const double each = latency_of_combining(s);
    const double chain = links * each + (s.is_in_order ? 0 : 3 * (each + machine_.integer));
    const double ns = std::max({time.throughput, time.memory, time.ns, chain});
    time.shares[std::size_t(ns == time.memory       ? Bound::memory
                            : ns == time.throughput ? Bound::throughput
                                                    : Bound::latency)] += ns - time.ns;
    time.ns = ns;
    time.is_long |= steps > longest_foreseen;
    return time;
  }

  // --- Steps
  // ---------------------------------------------------------------------------------------

  // A loop, or statements that run so many times and do not wait for each other.
  // more: operations of a step beside the statements.
  Time time_of_steps(const Statement* loop, const std::vector<const Block*>& blocks, double steps,
                     double more = 0) {
    const bool is_together = loop && lanes_ <= 0 && combines_apart(*loop);
    const double together = is_together ? rows_together : 1;
    const Value outer_rows = std::exchange(rows_, is_together ? loop->value : rows_);
    Time step{more};
    double inner = 0;  // of the step: what loops in it take one after the other
    for (const Block* block : blocks)
      for (const Statement& s : *block) {
        const Time time = times_[&s] = time_of(s);
        step.memory += time.memory, step.access += time.access;
        const double alone =
            time.is_long ? time.ns : std::max(time.ns - looked_ahead, time.throughput);
        const double own = std::max(time.throughput, alone / together);
        step.throughput += own;
        if (sum(time.shares) == 0) continue;
        inner += own;
        if (own < time.ns) {
          step.shares[std::size_t(Bound::throughput)] += own;
          continue;
        }
        for (std::size_t i = 0; i < 3; ++i)
          step.shares[i] += time.shares[i] * own / sum(time.shares);
      }
    rows_ = outer_rows;
    const bool is_loop = loop || steps > 1;
    if (is_loop) step.throughput += 2 * machine_.operation;
    step.throughput = std::max(step.throughput, step.access);
    const Chain chain = chain_of(loop, blocks, steps);
    Time time;
    time.throughput = step.throughput * steps, time.memory = step.memory * steps;
    step.ns = std::max({step.throughput, step.memory, chain.growth});
    time.ns = std::max(steps * step.ns, chain.first + std::max(steps - 1, 0.0) * chain.growth);
    time.step_ns = steps > 0 ? time.ns / steps : 0;
    time.is_long = is_loop && loop && steps > longest_foreseen;
    const Bound bound = step.memory >= std::max(step.throughput, chain.growth) ? Bound::memory
                        : steps * step.throughput >= time.ns                   ? Bound::throughput
                                                                               : Bound::latency;
    // What loops in a step take is theirs, the rest that of this one.
    const double theirs = bound == Bound::memory ? 0 : std::min(inner * steps, time.ns);
    if (inner > 0)
      for (std::size_t i = 0; i < 3; ++i) time.shares[i] = step.shares[i] / inner * theirs;
    time.shares[std::size_t(bound)] += time.ns - theirs;
    return time;
  }

  // Results that wait for results: of a first step, and how much later those of each next step are.
  struct Chain {
    double first = 0, growth = 0;
  };

  // Follows a few steps, as if nothing but the results that they need held them up.
  Chain chain_of(const Statement* loop, const std::vector<const Block*>& blocks, double steps) {
    constexpr double followed = 8;
    Steps at{std::vector<double>(program_.dtypes.size(), 0), {}, {}, {}, 0, loop};
    const auto count = int(loop ? std::min(steps, followed) : 1);
    std::vector<std::vector<double>> ready;  // by step and statement
    for (at.step = 0; at.step < count; ++at.step) {
      ready.emplace_back();
      for (const Block* block : blocks)
        for (const Statement& s : *block) ready.back().push_back(follow(s, at));
      if (!loop) continue;
      std::vector<double> next;
      for (const Statement::Carry& carry : loop->carries)
        next.push_back(at.ready[std::size_t(carry.next)]);
      for (std::size_t i = 0; i < next.size(); ++i) {
        at.ready[std::size_t(loop->carries[i].value)] = next[i];
        ready.back().push_back(next[i]);
      }
    }
    Chain chain;
    if (ready.empty()) return chain;
    for (double time : ready.front()) chain.first = std::max(chain.first, time);
    const std::size_t last = ready.size() - 1, half = last - ready.size() / 2;
    for (std::size_t i = 0; i < ready[last].size() && last > half; ++i)
      chain.growth =
          std::max(chain.growth, (ready[last][i] - ready[half][i]) / double(last - half));
    return chain;
  }

  struct Steps {
    std::vector<double> ready;                       // by value
    std::unordered_map<std::size_t, double> stored;  // by place
    std::unordered_map<int, double> written;         // by memory: anywhere
    std::unordered_map<int, double> filled;          // by memory: by a loop, a copy or a call
    int step;
    const Statement* loop;
  };

  // An element as this step names it: what the loop counts is a number.
  std::size_t key_of(const Place& place, const Steps& at) const {
    const loops::Index form = traffic_.form_of(place);
    std::int64_t offset = form.offset;
    std::size_t hash = 0;
    for (const Place::Term& term : form.terms) {
      const Statement* loop = traffic_.counted_by(term.index);
      if (loop && loop == at.loop) {
        offset += term.stride * traffic_.growth_of(term.index) * at.step;
        continue;
      }
      std::size_t of_term = hash_combine(std::size_t(term.index), std::size_t(term.stride));
      // What is computed in a step is another element than in others.
      if (!loop && traffic_.is_computed(place))
        of_term = hash_combine(of_term, std::size_t(at.step));
      hash += of_term;
    }
    return hash_combine(hash_combine(std::size_t(place.memory), std::size_t(offset)), hash);
  }

  double follow(const Statement& s, Steps& at) const {
    double start = 0;
    const auto wait_for = [&](Value value) {
      if (value >= 0) start = std::max(start, at.ready[std::size_t(value)]);
    };
    for (Value operand : s.operands) wait_for(operand);
    for (const Place::Term& term : s.place.terms) wait_for(term.index);
    switch (s.kind) {
      case Kind::compute: {
        double& ready = at.ready[std::size_t(s.value)];
        return ready = start + latency_of(*s.primitive, dtype(s.value));
      }
      case Kind::load:
        return at.ready[std::size_t(s.value)] = loaded(s.place, start, at);
      case Kind::store: {
        at.stored[key_of(s.place, at)] = start;
        double& written = at.written[s.place.memory];
        written = std::max(written, start);
        return start;
      }
      case Kind::check:
        return start;
      default:
        return follow_loop(s, at);
    }
  }

  double loaded(const Place& place, double start, const Steps& at) const {
    const bool is_foreseen = !traffic_.is_computed(place);
    double ready =
        start + (is_foreseen ? machine_.levels[0].latency : traffic_.latency_of(place.memory));
    if (const auto store = at.stored.find(key_of(place, at)); store != at.stored.end())
      ready = std::max(ready, store->second + machine_.forwarding);
    if (const auto filled = at.filled.find(place.memory); filled != at.filled.end())
      ready = std::max(ready, filled->second + machine_.forwarding);
    return ready;
  }

  // As one operation of all that it needs.
  double follow_loop(const Statement& s, Steps& at) const {
    Effects effects;
    add_effects(s, effects);
    double start = 0;
    std::sort(effects.defined.begin(), effects.defined.end());
    for (Value value : effects.used)
      if (!std::binary_search(effects.defined.begin(), effects.defined.end(), value))
        start = std::max(start, at.ready[std::size_t(value)]);
    for (int memory : effects.reads)
      for (const auto* writes : {&at.written, &at.filled})
        if (const auto write = writes->find(memory); write != writes->end())
          start = std::max(start, write->second + machine_.forwarding);
    const double end = start + times_.at(&s).ns;
    for (int memory : effects.writes) {
      double& filled = at.filled[memory];
      filled = std::max(filled, end);
    }
    for (Value value : effects.defined) at.ready[std::size_t(value)] = end;
    return end;
  }

  const LoopProgram& program_;
  const Machine& machine_;
  const Traffic traffic_;
  std::vector<bool> has_lanes_;  // by value
  const Block& block_;
  std::unordered_map<const Statement*, Time> times_;
  double lanes_ = 0;    // 0 outside of loops whose steps are lanes
  Value counter_ = -1;  // of these steps
  Value rows_ = -1;     // the counter of the loop whose steps are written together
  bool is_known_ = true;
};

std::string time_text(double ns) {
  const auto [unit, name] = ns < 1e3   ? std::pair(1.0, "ns")
                            : ns < 1e6 ? std::pair(1e3, "us")
                            : ns < 1e9 ? std::pair(1e6, "ms")
                                       : std::pair(1e9, "s");
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", ns / unit < 9.95 ? 1 : 0, ns / unit, name);
  return text;
}

}  // namespace

Bound Prediction::bound() const {
  return Bound(std::max_element(shares.begin(), shares.end()) - shares.begin());
}

std::string Prediction::to_string() const {
  static constexpr const char* bounds[] = {"operations", "memory", "latency"};
  std::string text = time_text(ns) + " (bound by " + bounds[int(bound())];
  if (steps > 0) text += ": " + std::to_string(steps) + " steps x " + time_text(step_ns);
  if (!is_known)
    text += "; with " + std::to_string(int(usual_steps)) + " steps of each loop of unknown length";
  return text + ")";
}

Prediction predict(const LoopProgram& program, const Machine& machine) {
  return Model(program, program.body, machine).run();
}

double predicted_ns(const LoopProgram& program, const Block& block, const Machine& machine) {
  return Model(program, block, machine).run().ns;
}

}  // namespace plait::codegen
