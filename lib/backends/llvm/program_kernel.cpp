// A loop program as one generated function: numbers are in registers, arrays lie where the program
// says. What is decided was decided before; this file only writes it down.
//
// A check that fails leaves the function with its number and the index; the kernel then raises its
// error. Loops that may take long ask now and then whether to stop, and leave the function too.
// SPDX-License-Identifier: Apache-2.0
#include "program_kernel.h"

#include <bit>

#include "compile/loop_programs.h"
#include "jit.h"
#include "primitives.h"
#include "watch.h"

namespace plait::llvm {
namespace {

using codegen::LoopProgram;
using codegen::Memory;
using codegen::Statement;
using Kind = Statement::Kind;
using Number = codegen::Value;
using Place = codegen::Place;

using Function = void(void* const* memory, std::int64_t begin, std::int64_t end);

// Behind the memory of the program.
enum Extra { failed_slot, ask_slot, watch_slot };
// What a check that fails leaves: its number from 1 on, and the index.
using Failure = std::array<std::int64_t, 2>;

constexpr std::size_t most_statements = 3000;
// Statements that a piece of a loop runs: less than ten milliseconds. Then it asks whether to stop.
constexpr double piece_of_loop = 1 << 20;

double work_of(const codegen::Block& block) {
  constexpr double usual_steps = 16;  // of a while
  double work = 1;
  for (const Statement& s : block) {
    double inner = 0;
    for (const codegen::Block& each : s.blocks) inner += work_of(each);
    work += s.kind == Kind::repeat ? double(s.steps) * inner
            : s.kind == Kind::loop ? usual_steps * inner
            : s.kind == Kind::copy ? double(num_elements(s.shape))
                                   : 1 + inner;
  }
  return work;
}

std::size_t num_statements(const codegen::Block& block) {
  std::size_t count = block.size();
  for (const Statement& s : block)
    for (const codegen::Block& inner : s.blocks) count += num_statements(inner);
  return count;
}

void collect_checks(const codegen::Block& block, std::vector<const Statement*>& checks) {
  for (const Statement& s : block) {
    if (s.kind == Kind::check) checks.push_back(&s);
    for (const codegen::Block& inner : s.blocks) collect_checks(inner, checks);
  }
}

class ProgramWriter {
 public:
  ProgramWriter(const LoopProgram& program, std::span<const Statement* const> checks)
      : program_(program), checks_(checks), emitter_(1), values_(program.dtypes.size()) {
    for (std::size_t i = 0; i < program.memories.size() + 3; ++i)
      memories_.push_back(emitter_.load(
          emitter_.pointer(),
          emitter_.at(emitter_.pointer(), emitter_.parameter(0), constant(std::int64_t(i))), 8));
    for (const auto& [value, literal] : program.literals) at(value) = constant_of(literal).v;
    write(program.body);
    emitter_.return_void();
  }
  Object compile() const { return emitter_.compile(); }

 private:
  Value constant(std::int64_t value) const { return emitter_.constant(value); }
  Value& at(Number number) { return values_[std::size_t(number)]; }
  Register number(Number number) { return {at(number), program_.dtypes[std::size_t(number)]}; }
  std::vector<Value> numbers(const std::vector<Statement::Carry>& carries,
                             Number Statement::Carry::* which) {
    std::vector<Value> values;
    for (const Statement::Carry& carry : carries) values.push_back(at(carry.*which));
    return values;
  }
  void set(const std::vector<Statement::Carry>& carries, Number Statement::Carry::* which,
           std::span<const Value> values) {
    for (std::size_t i = 0; i < carries.size(); ++i) at(carries[i].*which) = values[i];
  }
  Value extra(Extra slot) const { return memories_[program_.memories.size() + std::size_t(slot)]; }

  Type element(int memory) const {
    return emitter_.element(program_.memories[std::size_t(memory)].dtype);
  }
  Value offset(const Place& place) {
    Value sum = nullptr;
    for (const Place::Term& term : place.terms) {
      Value part = at(term.index);
      if (term.stride != 1) part = emitter_.multiply(part, constant(term.stride));
      sum = sum ? emitter_.add(sum, part) : part;
    }
    if (!sum) return constant(place.offset);
    return place.offset == 0 ? sum : emitter_.add(sum, constant(place.offset));
  }
  Value address(int memory, Value offset) const {
    return emitter_.at(element(memory), memories_[std::size_t(memory)], offset);
  }
  int alignment(int memory) const {
    return int(size_of(program_.memories[std::size_t(memory)].dtype));
  }

  // Asks, in the last step of each piece, whether to stop.
  void ask(Value step, double work_of_step) {
    const auto piece =
        std::int64_t(std::bit_floor(std::uint64_t(std::max(piece_of_loop / work_of_step, 1.0))));
    const Value place = api().BuildAnd(emitter_.builder(), step, constant(piece - 1), "");
    const Value is_end =
        api().BuildNot(emitter_.builder(), emitter_.is_unequal(place, constant(piece - 1)), "");
    const std::vector<Value> answer = emitter_.choose(
        is_end,
        [&] {
          Type parameter = emitter_.pointer();
          const Type type = api().FunctionType(emitter_.integer(64), &parameter, 1, false);
          Value watch = extra(watch_slot);
          return std::vector{
              api().BuildCall2(emitter_.builder(), type, extra(ask_slot), &watch, 1, "")};
        },
        [&] { return std::vector{constant(0)}; });
    emitter_.return_if(emitter_.is_unequal(answer[0], constant(0)), [] {});
  }

  void write(const codegen::Block& block) {
    for (const Statement& s : block) write(s);
  }

  void write(const Statement& s) {
    switch (s.kind) {
      case Kind::compute: {
        Equation equation;
        equation.primitive = s.primitive;
        equation.params = s.params;
        std::vector<Register> operands;
        for (Number operand : s.operands) {
          equation.inputs.push_back(Var{int(operands.size())});
          operands.push_back(number(operand));
        }
        at(s.value) = lower(equation, operands, program_.dtypes[std::size_t(s.value)]).v;
        return;
      }
      case Kind::load: {
        const int memory = s.place.memory;
        const Value loaded =
            emitter_.load(element(memory), address(memory, offset(s.place)), alignment(memory));
        at(s.value) = from_memory(loaded, program_.memories[std::size_t(memory)].dtype).v;
        return;
      }
      case Kind::store: {
        const int memory = s.place.memory;
        return emitter_.store(to_memory(number(s.operands[0])), address(memory, offset(s.place)),
                              alignment(memory));
      }
      case Kind::copy:
        return write_copy(s, 0, offset(s.place), offset(s.source_place));
      case Kind::check:
        return write_check(s);
      case Kind::repeat: {
        const double work = work_of(s.blocks[0]);
        const std::vector<Value> last = emitter_.loop_carrying(
            constant(0), constant(s.steps), 1, numbers(s.carries, &Statement::Carry::first),
            [&](Value step, const std::vector<Value>& carried) {
              at(s.value) = step;
              set(s.carries, &Statement::Carry::value, carried);
              if (double(s.steps) * work > piece_of_loop) ask(step, work);
              write(s.blocks[0]);
              return numbers(s.carries, &Statement::Carry::next);
            });
        return set(s.carries, &Statement::Carry::last, last);
      }
      case Kind::loop: {
        const double work = work_of(s.blocks[0]) + work_of(s.blocks[1]);
        std::vector<Value> start = numbers(s.carries, &Statement::Carry::first);
        start.push_back(constant(0));  // steps
        const std::vector<Value> last = emitter_.while_carrying(
            start,
            [&](const std::vector<Value>& carried) {
              set(s.carries, &Statement::Carry::value, std::span(carried).first(s.carries.size()));
              write(s.blocks[0]);
              return at(s.operands[0]);
            },
            [&](const std::vector<Value>& carried) {
              ask(carried.back(), work);
              write(s.blocks[1]);
              std::vector<Value> next = numbers(s.carries, &Statement::Carry::next);
              next.push_back(emitter_.add(carried.back(), constant(1)));
              return next;
            });
        return set(s.carries, &Statement::Carry::last, std::span(last).first(s.carries.size()));
      }
      case Kind::branch:
        return set(s.carries, &Statement::Carry::value, write_alternative(s, 0));
    }
  }

  // Those from an alternative on.
  std::vector<Value> write_alternative(const Statement& s, std::size_t first) {
    const auto results = [&] {
      write(s.blocks[first]);
      std::vector<Value> values;
      for (const Statement::Carry& carry : s.carries) values.push_back(at(carry.nexts[first]));
      return values;
    };
    if (first + 1 == s.blocks.size()) return results();
    return emitter_.choose(
        emitter_.is_unequal(at(s.operands[0]), constant(std::int64_t(first))),
        [&] { return write_alternative(s, first + 1); }, results);
  }

  void write_copy(const Statement& s, std::size_t axis, Value to, Value from) {
    if (axis == s.shape.size()) {
      const int target = s.place.memory, source = s.source_place.memory;
      return emitter_.store(
          emitter_.load(element(source), address(source, from), alignment(source)),
          address(target, to), alignment(target));
    }
    emitter_.loop(constant(0), constant(s.shape[axis]), 1, [&](Value index) {
      const auto moved = [&](Value offset, std::int64_t stride) {
        return emitter_.add(offset, emitter_.multiply(index, constant(stride)));
      };
      write_copy(s, axis + 1, moved(to, s.strides[axis]), moved(from, s.source_strides[axis]));
    });
  }

  void write_check(const Statement& s) {
    const Value index = at(s.operands[0]);
    const Value is_outside =
        api().BuildOr(emitter_.builder(), emitter_.is_less(index, constant(s.low)),
                      emitter_.is_less(constant(s.high), index), "");
    const auto number = std::find(checks_.begin(), checks_.end(), &s) - checks_.begin() + 1;
    emitter_.return_if(is_outside, [&] {
      emitter_.store(constant(number), extra(failed_slot), 8);
      emitter_.store(index, emitter_.at(emitter_.integer(64), extra(failed_slot), constant(1)), 8);
    });
  }

  const LoopProgram& program_;
  const std::span<const Statement* const> checks_;
  Emitter emitter_;
  std::vector<Value> values_;    // by number
  std::vector<Value> memories_;  // by memory, then extras
};

class ProgramKernel final : public Kernel {
 public:
  explicit ProgramKernel(LoopProgram program) : program_(std::move(program)) {
    for (const Memory& memory : program_.memories) {
      frame_at_.push_back(frame_bytes_);
      if (memory.space == Memory::Space::frame)
        frame_bytes_ += (memory.size * size_of(memory.dtype) + 63) / 64 * 64;
    }
    collect_checks(program_.body, checks_);
    code_ = make_code("loop program\n" + codegen::print(program_),
                      [&] { return ProgramWriter(program_, checks_).compile(); });
  }

  std::int64_t scratch_bytes() const override { return frame_bytes_; }
  bool is_whole() const override { return true; }
  std::string note() const override { return "one loop program"; }

  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream&) const override {
    std::vector<Buffer> copies;
    std::vector<void*> memory;
    for (std::size_t i = 0; i < program_.memories.size(); ++i) {
      const Memory& each = program_.memories[i];
      if (each.space == Memory::Space::frame) {
        memory.push_back(static_cast<char*>(scratch) + frame_at_[i]);
      } else if (each.space == Memory::Space::result) {
        memory.push_back(outputs[std::size_t(each.index)].data);
      } else if (const View& input = inputs[std::size_t(each.index)]; input.is_dense()) {
        memory.push_back(input.data);
      } else {
        copies.push_back(Buffer::copy_of(input));
        memory.push_back(copies.back().mutable_data());
      }
    }
    Failure failure{};
    Watch watch;
    memory.push_back(failure.data());
    memory.push_back(reinterpret_cast<void*>(&Watch::ask));
    memory.push_back(&watch);
    code_->as<Function>()(memory.data(), 0, 1);
    watch.interrupts.rethrow();
    if (failure[0] > 0) codegen::raise(*checks_[std::size_t(failure[0] - 1)], failure[1]);
  }

 private:
  const LoopProgram program_;
  std::vector<const Statement*> checks_;
  std::vector<std::int64_t> frame_at_;  // by memory
  std::int64_t frame_bytes_ = 0;
  std::shared_ptr<const Code> code_;
};

// Why a program cannot be written.
std::string refusal_of(const codegen::Lowered& lowered) {
  if (!lowered.program) return lowered.reason;
  for (DType dtype : lowered.program->dtypes)
    if (!has_registers(dtype)) return "numbers of dtype " + std::string(name_of(dtype));
  for (const Memory& memory : lowered.program->memories)
    if (!has_registers(memory.dtype))
      return "memory of dtype " + std::string(name_of(memory.dtype));
  if (num_statements(lowered.program->body) > most_statements) return "too many statements";
  return {};
}

}  // namespace

Support supports_program(const Equation& equation, std::span<const Aval> inputs) {
  const std::string refusal = refusal_of(*compile_passes::loop_program(equation, inputs));
  return refusal.empty() ? Support::yes() : Support::no("no loop program: " + refusal);
}

std::unique_ptr<Kernel> make_program_kernel(const Jaxpr& group) {
  const compile_passes::LoopProgram lowered = compile_passes::loop_program(group);
  if (!refusal_of(*lowered).empty()) return nullptr;
  return std::make_unique<ProgramKernel>(*lowered->program);
}

}  // namespace plait::llvm
