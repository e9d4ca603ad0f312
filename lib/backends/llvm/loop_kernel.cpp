// A scan or a while as one generated function: carries stay in registers, slices are read and
// written where they lie. Where a loop is the same for many examples (it was vmapped, or is written
// so), they lie in the lanes of vectors, and blocks of them are shared by threads.
//
// Bodies are emitted once, whatever the number of steps. Values of a body are small: see small.h.
//
// A loop that may take milliseconds is cut into pieces, before each of which it asks whether to
// stop: see Watch.
// SPDX-License-Identifier: Apache-2.0
#include "loop_kernel.h"

#include <plait/base/pool.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <bit>

#include "flat_loop.h"
#include "kernel.h"
#include "loop_memory.h"
#include "loop_plan.h"
#include "watch.h"

namespace plait::llvm {
namespace {

using Function = void(void* const* memory, std::int64_t begin, std::int64_t end);
using Smalls = std::vector<Small>;

// Behind the operands and the results in the memory of a loop.
enum Extra { failed_slot, ask_slot, watch_slot, stopped_slot };

// Operations on elements, of which a piece of a loop has so many: less than ten milliseconds.
constexpr double piece_of_loop = 1 << 20;

// Those of one step, roughly.
double work_of_step(const Jaxpr& body, std::int64_t examples) {
  constexpr double usual_steps = 16;  // of a while
  double work = 1;
  for (const Equation& equation : body->equations) {
    double times = 1;
    if (*equation.primitive == scan_p)
      times = double(ScanParams(equation.params).length->constant());
    if (*equation.primitive == while_p) times = usual_steps;
    for_each_body(open_bodies(equation.params), [&](const Jaxpr& inner) {
      work += times * work_of_step(plain_body(inner), examples);
    });
    for (Var var : equation.outputs) {
      const Aval& aval = body->aval(var);
      work += double(example_size(aval, example_axis(aval, examples)));
    }
  }
  return work;
}

// Steps between two questions: a power of two.
std::int64_t steps_of_piece(const Jaxpr& body, std::int64_t examples) {
  const double steps = piece_of_loop / work_of_step(body, examples);
  return std::int64_t(std::bit_floor(std::uint64_t(std::max(steps, 1.0))));
}

std::vector<Value> values_of(std::span<const Small> smalls) {
  std::vector<Value> values;
  for (const Small& small : smalls)
    for (const Register& element : small.elements) values.push_back(element.v);
  return values;
}

// The same arrays with other values.
Smalls with_values(Smalls smalls, std::span<const Value> values) {
  std::size_t next = 0;
  for (Small& small : smalls)
    for (Register& element : small.elements) element = {values[next++], small.dtype};
  return smalls;
}

// Writes the code of loops; in one without examples there is one lane.
class LoopWriter {
 public:
  LoopWriter(const JaxprData& group, std::span<const Sizes64> strides, const LoopPlan& plan,
             int lanes)
      : group_(group), strides_(strides), plan_(plan), emitter_(lanes) {
    failed_ = pointer_at(extra(failed_slot));
    if (plan.examples == 0) {
      write_all();
    } else {
      emitter_.loop(emitter_.parameter(1), emitter_.parameter(2), 1, [&](Value block) {
        examples_.first = emitter_.multiply(block, emitter_.constant(lanes));
        if (plan.examples % lanes != 0) examples_.mask = mask_of(examples_.first);
        write_all();
      });
    }
    emitter_.return_void();
  }
  Object compile() const { return emitter_.compile(); }

 private:
  Value constant(std::int64_t value) const { return emitter_.constant(value); }

  // The lanes whose examples exist.
  Value mask_of(Value first) const {
    const Value last = emitter_.splat(constant(plan_.examples));
    return detail::compare(detail::Compare::lt, detail::Kind::signed_integer, emitter_.ramp(first),
                           last)
        .v;
  }

  LoopMemory memory(int number, const Aval& aval, const Sizes64& strides, int axis) {
    return {aval.dtype, aval.shape.to_sizes(), strides, axis, pointer_at(number), examples_};
  }
  int extra(Extra slot) const { return group_.num_binders + int(group_.outputs.size()) + slot; }
  // Whether to stop: asked, or as others were told.
  Value ask() const {
    Type parameter = emitter_.pointer();
    const Type type = api().FunctionType(emitter_.integer(64), &parameter, 1, false);
    Value watch = pointer_at(extra(watch_slot));
    const Value answer =
        api().BuildCall2(emitter_.builder(), type, pointer_at(extra(ask_slot)), &watch, 1, "");
    return emitter_.is_unequal(answer, constant(0));
  }
  Value is_stopped() const {
    const Value flag = emitter_.load(emitter_.integer(64), pointer_at(extra(stopped_slot)), 8);
    return emitter_.is_unequal(flag, constant(0));
  }
  Value pointer_at(int number) const {
    const Value place = emitter_.at(emitter_.pointer(), emitter_.parameter(0), constant(number));
    return emitter_.load(emitter_.pointer(), place, 8);
  }

  // The group's equation, between the memory of its operands and of its results.
  void write_all() {
    const Equation& equation = group_.equations[0];
    const ExampleAxes axes = operand_axes(equation, plan_.examples);
    std::vector<LoopMemory> operands, results;
    std::vector<Small> literals(equation.inputs.size());
    for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
      const Atom& atom = equation.inputs[i];
      if (!atom.is_var()) {
        literals[i] = literal(atom);
        operands.emplace_back();
        continue;
      }
      const int input = atom.var().id;
      operands.push_back(memory(input, group_.avals[input], strides_[input], axes[i]));
    }
    const ExampleAxes output_axes = loop_axes(equation, axes, plan_.examples);
    for (std::size_t o = 0; o < equation.outputs.size(); ++o) {
      const Aval& aval = group_.aval(equation.outputs[o]);
      results.push_back(memory(group_.num_binders + int(o), aval,
                               dense_strides(aval.shape.to_sizes()), output_axes[o]));
    }
    auto load = [&](std::size_t i) {
      if (!equation.inputs[i].is_var()) return literals[i];
      const Aval& aval = group_.aval(equation.inputs[i]);
      if (example_size(aval, axes[i]) <= largest_value) return operands[i].load();
      Small large;
      large.dtype = aval.dtype;
      large.shape = aval.shape.to_sizes();
      large.axis = axes[i];
      large.memory = &operands[i];
      return large;
    };
    const auto num_carry = std::size_t(equation.params.integer("carry"));
    Smalls last;
    if (*equation.primitive == while_p) {
      Smalls inputs;
      for (std::size_t i = 0; i < operands.size(); ++i) inputs.push_back(load(i));
      last = write_while(WhileParams(equation.params), std::move(inputs));
    } else {
      const ScanParams scan(equation.params);
      const std::size_t first_const = scan.num_carry + scan.num_xs;
      Smalls carry, consts;
      for (std::size_t i = 0; i < num_carry; ++i) carry.push_back(load(i));
      for (std::size_t i = first_const; i < operands.size(); ++i) consts.push_back(load(i));
      last = write_scan(scan, std::move(carry), consts,
                        std::span(operands).subspan(num_carry, scan.num_xs),
                        std::span(results).subspan(num_carry));
    }
    for (std::size_t i = 0; i < last.size(); ++i) results[i].store(last[i]);
  }

  Small literal(const Atom& atom) const {
    Small value(atom.literal().aval(), -1);
    value.elements[0] = constant_of(atom.literal());
    return value;
  }

  Smalls write_scan(const ScanParams& scan, Smalls carry, std::span<const Small> consts,
                    std::span<const LoopMemory> xs, std::span<const LoopMemory> ys) {
    const Jaxpr body = plain_body(scan.body);
    const std::int64_t length = scan.length->constant(),
                       piece = steps_of_piece(body, plan_.examples);
    auto write_steps = [&](Value begin, Value end, const std::vector<Value>& start) {
      return emitter_.loop_carrying(
          begin, end, 1, start, [&](Value step, const std::vector<Value>& values) {
            const Value place =
                scan.reverse ? api().BuildSub(emitter_.builder(), constant(length - 1), step, "")
                             : step;
            Smalls inputs = with_values(carry, values);
            for (const LoopMemory& x : xs) inputs.push_back(x.at(place).load());
            inputs.insert(inputs.end(), consts.begin(), consts.end());
            const Smalls outputs = write_body(body, std::move(inputs));
            for (std::size_t i = 0; i < ys.size(); ++i)
              ys[i].at(place).store(outputs[scan.num_carry + i]);
            return values_of(std::span(outputs).first(scan.num_carry));
          });
    };
    const std::vector<Value> start = values_of(carry);
    if (length <= piece)
      return with_values(std::move(carry), write_steps(constant(0), constant(length), start));
    std::vector<Value> state = start;
    state.push_back(constant(0));  // where the next piece begins
    std::vector<Value> last = emitter_.while_carrying(
        state,
        [&](const std::vector<Value>& values) {
          return api().BuildAnd(emitter_.builder(),
                                emitter_.is_less(values.back(), constant(length)),
                                api().BuildNot(emitter_.builder(), ask(), ""), "");
        },
        [&](std::vector<Value> values) {
          const Value begin = values.back(),
                      end =
                          emitter_.smaller(emitter_.add(begin, constant(piece)), constant(length));
          values.pop_back();
          std::vector<Value> next = write_steps(begin, end, values);
          next.push_back(end);
          return next;
        });
    last.pop_back();
    return with_values(std::move(carry), last);
  }

  Smalls write_while(const WhileParams& loop, Smalls inputs) {
    const Jaxpr cond = plain_body(loop.cond), body = plain_body(loop.body);
    const auto first_const = inputs.begin() + std::ptrdiff_t(loop.num_carry),
               of_body = first_const + std::ptrdiff_t(loop.num_cond_consts);
    const Smalls carry(inputs.begin(), first_const), cond_consts(first_const, of_body),
        body_consts(of_body, inputs.end());
    auto with_consts = [&](const std::vector<Value>& values, const Smalls& consts) {
      return concatenate(with_values(carry, values), consts);
    };
    std::vector<Value> start = values_of(carry);
    start.push_back(constant(0));  // steps
    const Value may_begin = api().BuildNot(emitter_.builder(), is_stopped(), "");
    const std::int64_t piece = steps_of_piece(body, plan_.examples);
    std::vector<Value> last = emitter_.while_carrying(
        start,
        [&](const std::vector<Value>& values) {
          const Value holds =
              first_lane(write_body(cond, with_consts(values, cond_consts))[0].elements[0]);
          const Value is_within =
              loop.max_steps ? write_bound(holds, values.back(), *loop.max_steps) : holds;
          return api().BuildAnd(emitter_.builder(), is_within,
                                write_piece(values.back(), piece, may_begin), "");
        },
        [&](const std::vector<Value>& values) {
          std::vector<Value> next = values_of(write_body(body, with_consts(values, body_consts)));
          next.push_back(emitter_.add(values.back(), constant(1)));
          return next;
        });
    return with_values(carry, last);
  }

  // Whether to go on with this step, asked where a piece ends.
  Value write_piece(Value step, std::int64_t piece, Value may_begin) {
    const Value place = api().BuildAnd(emitter_.builder(), step, constant(piece - 1), "");
    const Value is_end =
        api().BuildNot(emitter_.builder(), emitter_.is_unequal(place, constant(piece - 1)), "");
    return emitter_.choose(
        is_end, [&] { return std::vector{api().BuildNot(emitter_.builder(), ask(), "")}; },
        [&] { return std::vector{may_begin}; })[0];
  }

  // Whether to go on, which after max_steps is a failure.
  Value write_bound(Value holds, Value step, std::int64_t max_steps) {
    const Value is_within = emitter_.is_less(step, constant(max_steps));
    const Value is_beyond = api().BuildAnd(emitter_.builder(), holds,
                                           api().BuildNot(emitter_.builder(), is_within, ""), "");
    emitter_.branch_if(is_beyond, [&] { emitter_.store(constant(1), failed_, 8); });
    return api().BuildAnd(emitter_.builder(), holds, is_within, "");
  }

  Value first_lane(const Register& value) const {
    return emitter_.lanes() == 1 ? value.v : emitter_.extract(value.v, 0);
  }

  Smalls write_body(const Jaxpr& body, Smalls inputs) {
    Smalls environment = std::move(inputs);
    environment.resize(body->avals.size());
    auto read = [&](const Atom& atom) {
      return atom.is_var() ? environment[std::size_t(atom.var().id)] : literal(atom);
    };
    for (const Equation& equation : body->equations) {
      Smalls operands;
      for (const Atom& atom : equation.inputs) operands.push_back(read(atom));
      Smalls results = write(*body, equation, std::move(operands));
      for (std::size_t i = 0; i < results.size(); ++i)
        environment[std::size_t(equation.outputs[i].id)] = std::move(results[i]);
    }
    Smalls outputs;
    for (const Atom& atom : body->outputs) outputs.push_back(read(atom));
    return outputs;
  }

  Smalls write(const JaxprData& body, const Equation& equation, Smalls operands) {
    if (*equation.primitive == scan_p) return write_inner_scan(equation, std::move(operands));
    if (*equation.primitive == while_p)
      return write_while(WhileParams(equation.params), std::move(operands));
    if (*equation.primitive == cond_p) return write_cond(equation, std::move(operands));
    std::vector<Aval> inputs, outputs;
    std::vector<const Small*> pointers;
    ExampleAxes axes;
    for (const Atom& atom : equation.inputs) inputs.push_back(body.aval(atom));
    for (Var var : equation.outputs) outputs.push_back(body.aval(var));
    for (const Small& operand : operands) {
      pointers.push_back(&operand);
      axes.push_back(operand.axis);
    }
    const ExampleAxes results = *example_axes(equation, inputs, outputs, axes, plan_.examples);
    return lower_small(equation, pointers, outputs, results, {examples_.first, failed_});
  }

  // Slices by computed places need memory.
  Smalls write_inner_scan(const Equation& equation, Smalls operands) {
    const ScanParams scan(equation.params);
    const auto first_x = operands.begin() + std::ptrdiff_t(scan.num_carry),
               first_const = first_x + std::ptrdiff_t(scan.num_xs);
    std::vector<LoopMemory> xs, ys;
    for (auto x = first_x; x != first_const; ++x) {
      xs.emplace_back(Aval{Shape::of(x->shape), x->dtype}, x->axis);
      xs.back().store(*x);
    }
    const Smalls consts(first_const, operands.end());
    Smalls carry(operands.begin(), first_x);
    ExampleAxes axes;
    for (const Small& operand : operands) axes.push_back(operand.axis);
    const ExampleAxes results = loop_axes(equation, axes, plan_.examples);
    const std::vector<Aval> slices = scan.body->output_avals();
    for (std::size_t o = scan.num_carry; o < slices.size(); ++o)
      ys.emplace_back(scan.stacked(slices[o]), results[o]);
    Smalls outputs = write_scan(scan, std::move(carry), consts, xs, ys);
    for (const LoopMemory& y : ys) outputs.push_back(y.load());
    return outputs;
  }

  Smalls write_cond(const Equation& equation, Smalls operands) {
    const CondParams cond(equation.params);
    const Value index = first_lane(operands[0].elements[0]);
    operands.erase(operands.begin());
    Smalls like;
    const std::vector<Value> values = write_branches(cond.branches, index, 0, operands, like);
    return with_values(std::move(like), values);
  }

  // Branch `number` where the index is at most that, or one behind it.
  std::vector<Value> write_branches(std::span<const Jaxpr> branches, Value index, int number,
                                    const Smalls& operands, Smalls& like) {
    auto write_first = [&] {
      like = write_body(plain_body(branches[0]), operands);
      return values_of(like);
    };
    if (branches.size() == 1) return write_first();
    const Value is_here = emitter_.is_less(
        index, api().ConstInt(emitter_.integer(32), std::uint64_t(number) + 1, false));
    return emitter_.choose(is_here, write_first, [&] {
      return write_branches(branches.subspan(1), index, number + 1, operands, like);
    });
  }

  const JaxprData& group_;
  const std::span<const Sizes64> strides_;
  const LoopPlan plan_;
  Emitter emitter_;
  Examples examples_{};
  Value failed_ = nullptr;
};

class LoopKernel final : public Kernel {
 public:
  LoopKernel(const Jaxpr& group, std::span<const Sizes64> strides)
      : group_(group), plan_(plan_loop(group->equations[0])) {
    const Jaxpr flat = plan_.is_flat ? flat_group(group) : group;
    lanes_ = plan_.examples == 0 ? 1 : lanes_for_loop(*flat);
    const std::vector<Sizes64> of_flat = dense(*flat);
    const std::string description = "loop, " + std::to_string(plan_.examples) + " examples in " +
                                    std::to_string(lanes_) + (plan_.is_flat ? ", flat\n" : "\n") +
                                    describe(group, strides);
    code_ = make_code(description, [&] {
      return LoopWriter(*flat, plan_.is_flat ? of_flat : strides, plan_, lanes_).compile();
    });
    blocks_ = plan_.examples == 0 ? 1 : (plan_.examples + lanes_ - 1) / lanes_;
    // What one thread takes at least: about 20 us.
    const double block = 0.3 * plan_.work * double(lanes_) / 16;
    grain_ = std::max<std::int64_t>(1, std::int64_t(20000 / std::max(block, 1.0)));
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void*,
           const Stream& stream) const override {
    std::vector<void*> memory;
    std::vector<Buffer> copies;
    memory.reserve(inputs.size() + outputs.size() + 4);
    for (const View& input : inputs) {
      memory.push_back(input.data);
      if (!plan_.is_flat || input.is_dense()) continue;
      copies.push_back(Buffer::copy_of(input));
      memory.back() = copies.back().mutable_data();
    }
    for (const View& output : outputs) memory.push_back(output.data);
    std::int64_t failed = 0;
    Watch watch;
    memory.push_back(&failed);
    memory.push_back(reinterpret_cast<void*>(&Watch::ask));
    memory.push_back(&watch);
    memory.push_back(&watch.is_stopped);
    Function* const function = code_->as<Function>();
    if (blocks_ <= grain_)
      function(memory.data(), 0, blocks_);
    else
      parallel_for(blocks_, grain_, [&](std::int64_t begin, std::int64_t end) {
        function(memory.data(), begin, end);
      });
    watch.interrupts.rethrow();
    if (failed) run_otherwise(inputs, outputs, stream);
  }

  bool is_whole() const override { return true; }
  std::string note() const override {
    if (plan_.examples == 0) return "one kernel";
    return "one kernel, " + std::to_string(plan_.examples) + " examples in " +
           std::to_string(lanes_) + " lanes";
  }

 private:
  static std::vector<Sizes64> dense(const JaxprData& group) {
    std::vector<Sizes64> strides;
    for (const Aval& aval : group.input_avals())
      strides.push_back(dense_strides(aval.shape.to_sizes()));
    return strides;
  }

  // What a step refuses (an index that lies outside, too many steps) is an error with the names of
  // the user's arrays and lines. Who runs loops step by step finds it again.
  void run_otherwise(std::span<const View> inputs, std::span<const View> outputs,
                     const Stream& stream) const {
    const Equation& equation = group_->equations[0];
    std::vector<Aval> of_inputs, of_outputs;
    for (const Atom& atom : equation.inputs) of_inputs.push_back(group_->aval(atom));
    for (Var var : equation.outputs) of_outputs.push_back(group_->aval(var));
    for (const Backend* backend : backends_of()) {
      if (backend->name() == "llvm" || !backend->supports(equation, of_inputs, of_outputs))
        continue;
      const std::unique_ptr<Kernel> kernel = backend->compile(group_);
      const Storage scratch = Storage::allocate(std::size_t(kernel->scratch_bytes()));
      return kernel->run(inputs, outputs, scratch.data(), stream);
    }
    throw InternalError("llvm: a loop failed that no other backend runs");
  }

  // Several vectors at once where carries are few: a step waits for the one before.
  int lanes_for_loop(const JaxprData& group) const {
    JaxprData all;
    all.avals = group.avals;
    for_each_body(open_bodies(group.equations[0].params), [&](const Jaxpr& body) {
      const Jaxpr plain = plain_body(body);
      all.avals.insert(all.avals.end(), plain->avals.begin(), plain->avals.end());
    });
    const int one = lanes_for(all);
    int lanes = one;
    while (lanes * 2 <= 64 && lanes < 4 * one && plan_.values * lanes / one <= 8 &&
           plan_.weight * lanes / one <= 600 && lanes * 2 * num_threads() <= plan_.examples)
      lanes *= 2;
    return lanes;
  }

  const Jaxpr group_;
  const LoopPlan plan_;
  int lanes_ = 1;
  std::shared_ptr<const Code> code_;
  std::int64_t blocks_ = 1, grain_ = 1;
};

}  // namespace

Support supports_loop(const Equation& equation) {
  LoopPlan plan = plan_loop(equation);
  if (plan.refusal.empty()) return Support::yes();
  return Support::no("its body has " + plan.refusal);
}

bool has_examples(const Equation& loop) {
  const LoopPlan plan = plan_loop(loop);
  return plan.refusal.empty() && plan.examples > 0;
}

std::unique_ptr<Kernel> make_loop_kernel(const Jaxpr& group, std::span<const Sizes64> strides) {
  return std::make_unique<LoopKernel>(group, strides);
}

}  // namespace plait::llvm
