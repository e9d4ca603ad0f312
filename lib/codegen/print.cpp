// The text of loop programs, and their checker. See program.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/internal_error.h>
#include <plait/primitives/primitives.h>

#include <set>

#include "codegen/lanes.h"
#include "codegen/own.h"
#include "codegen/share.h"
#include "codegen/walk.h"
#include "ir/source_comment.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

class Printer {
 public:
  Printer(const LoopProgram& program, ShowSources sources) : program_(program), sources_(sources) {
    for (const auto& [value, literal] : program.literals) literals_[value] = literal.to_string();
  }

  std::string text() {
    static constexpr const char* spaces[] = {" operand ", " result ", " frame", " counts"};
    for (std::size_t i = 0; i < program_.memories.size(); ++i) {
      const Memory& memory = program_.memories[i];
      out_ += "memory m" + std::to_string(i) + ": " + std::string(name_of(memory.dtype)) + "[" +
              std::to_string(memory.size) + "]" + spaces[int(memory.space)] +
              (memory.has_index() ? std::to_string(memory.index) : "") + "\n";
    }
    write(program_.body, "");
    return out_;
  }

 private:
  std::string name(Value value) const {
    const auto found = literals_.find(value);
    return found == literals_.end() ? "v" + std::to_string(value) : found->second;
  }
  std::string typed(Value value) const {
    return name(value) + ": " + std::string(name_of(program_.dtypes[std::size_t(value)]));
  }
  static std::string text_of(const Primitive& primitive, const Params& params) {
    std::string text(primitive.name());
    if (!params.entries().empty()) text += "[" + params.to_string() + "]";
    return text;
  }
  std::string text_of(const Place& place) const {
    std::string text = "m" + std::to_string(place.memory) + "[";
    for (const Place::Term& term : place.terms)
      text += (text.back() == '[' ? "" : " + ") + name(term.index) +
              (term.stride == 1 ? "" : " * " + std::to_string(term.stride));
    if (place.offset != 0 || place.terms.empty())
      text += (text.back() == '[' ? "" : " + ") + std::to_string(place.offset);
    return text + "]";
  }

  void write_soon(const Statement& s) {
    for (const Place& place : s.soon)
      out_ += (&place == &s.soon[0] ? " and soon " : " ") + text_of(place);
  }
  void write(const Block& block, const std::string& indent) {
    for (const Statement& s : block) write(s, indent);
  }

  void write(const Statement& s, const std::string& indent) {
    out_ += indent;
    switch (s.kind) {
      case Kind::compute:
        out_ += typed(s.value) + " = " + text_of(*s.primitive, s.params);
        for (Value operand : s.operands) out_ += " " + name(operand);
        break;
      case Kind::load:
        out_ += typed(s.value) + " = load " + text_of(s.place);
        break;
      case Kind::store:
        out_ += "store " + text_of(s.place) + " = " + name(s.operands[0]);
        break;
      case Kind::copy:
        out_ += "copy " + text_of(s.source_place) + " -> " + text_of(s.place) + " of (" +
                Shape::of(s.shape).to_string() + ") by (" +
                Shape::of(s.source_strides).to_string() + ") -> (" +
                Shape::of(s.strides).to_string() + ")";
        break;
      case Kind::check:
        out_ += "check " + std::to_string(s.low) + " <= " + name(s.operands[0]) +
                " <= " + std::to_string(s.high);
        break;
      case Kind::repeat:
        out_ += std::string(s.is_parallel ? "parallel "
                            : s.is_apart  ? "apart "
                                          : "") +
                "for " + name(s.value) + " in 0.." + std::to_string(s.steps);
        if (s.grain > 0) out_ += " in shares of " + std::to_string(s.grain);
        for (const int memory : s.own)
          out_ += (memory == s.own[0] ? " with its own m" : " m") + std::to_string(memory);
        write_soon(s);
        write_carries(s);
        return write_blocks(s, indent, {""});
      case Kind::combine:
        out_ += typed(s.value);
        for (const Statement::Carry& carry : s.carries) out_ += " and " + typed(carry.last);
        out_ += " = combine " + text_of(*s.primitive, s.params) +
                (s.is_in_order ? " in order" : "") + " from " + name(s.operands[0]) + " of " +
                name(s.counter) + " in 0.." + std::to_string(s.steps);
        write_soon(s);
        write_blocks(s, indent, {""});
        out_ += indent + "  ->";
        for (std::size_t i = 1; i < s.operands.size(); ++i) out_ += " " + name(s.operands[i]);
        for (const Statement::Carry& carry : s.carries) out_ += " " + name(carry.next);
        out_ += "\n";
        return;
      case Kind::loop:
        out_ += "while " + name(s.operands[0]);
        write_carries(s);
        return write_blocks(s, indent, {"test", "step"});
      case Kind::call:
        write_call(s);
        break;
      case Kind::branch:
        for (const Statement::Carry& carry : s.carries) {
          out_ += typed(carry.value) + " (";
          for (Value next : carry.nexts) out_ += (out_.back() == '(' ? "" : ", ") + name(next);
          out_ += ") ";
        }
        out_ += (s.carries.empty() ? "branch " : "= branch ") + name(s.operands[0]);
        return write_blocks(s, indent, {});
    }
    end_line(s);
  }

  // "m2[0] = call sort[axis=0] x0 within 0..9 where x0: i32[32] at m1[0] by (1)"
  void write_call(const Statement& s) {
    const Jaxpr& program = s.call->program;
    const Equation& equation = program->equations[0];
    const std::size_t operands = s.call->strides.size();
    for (std::size_t i = operands; i < s.places.size(); ++i) out_ += text_of(s.places[i]) + " ";
    out_ += "= call " + text_of(*equation.primitive, equation.params);
    for (const Atom& atom : equation.inputs)
      out_ +=
          " " + (atom.is_var() ? "x" + std::to_string(atom.var().id) : atom.literal().to_string());
    if (s.low < s.high) out_ += " within " + std::to_string(s.low) + ".." + std::to_string(s.high);
    for (std::size_t i = 0; i < operands; ++i)
      out_ += (i ? ", x" : " where x") + std::to_string(i) + ": " +
              program->input_avals()[i].to_string() + " at " + text_of(s.places[i]) + " by (" +
              Shape::of(s.call->strides[i]).to_string() + ")";
  }

  void end_line(const Statement& s) {
    if (sources_ == ShowSources::yes) {
      if (!s.reason.empty())
        out_ += "  # " + std::string(reason_mark) + s.reason;
      else if (s.source)
        out_ += "  # " + comment_of(s.source);
    }
    out_ += "\n";
  }

  void write_carries(const Statement& s) {
    for (const Statement::Carry& carry : s.carries)
      out_ += " (" + typed(carry.value) + " = " + name(carry.first) + ", then " + name(carry.next) +
              ", at last " + name(carry.last) + ")";
    for (std::size_t i = 0; i < s.exchanged.size(); ++i) {
      const auto [a, b] = s.exchanged[i];
      out_ += " (m" + std::to_string(a) + " and m" + std::to_string(b) + " change places";
      if (!s.regions.empty()) {
        const Statement::Region& region = s.regions[i];
        out_ += " from " + text_of(region.place) + " of (" + Shape::of(region.shape).to_string() +
                ") by (" + Shape::of(region.strides).to_string() + ")";
      }
      out_ += ")";
    }
  }

  void write_blocks(const Statement& s, const std::string& indent,
                    const std::vector<std::string>& titles) {
    end_line(s);
    for (std::size_t i = 0; i < s.blocks.size(); ++i) {
      const std::string title = i < titles.size() ? titles[i] : std::to_string(i);
      if (!title.empty()) out_ += indent + " " + title + "\n";
      write(s.blocks[i], indent + "  ");
    }
  }

  const LoopProgram& program_;
  const ShowSources sources_;
  std::unordered_map<Value, std::string> literals_;
  std::string out_;
};

class Checker {
 public:
  explicit Checker(const LoopProgram& program)
      : program_(program), known_(program.dtypes.size(), false) {}

  // Throws what is broken.
  void run() {
    for (const auto& [value, literal] : program_.literals) {
      define(value);
      require(literal.dtype == dtype(value), "L2", "a literal of another dtype");
    }
    for (const int memory : memories_of_steps(program_)) of_steps_.insert(memory);
    visit(program_.body);
    const std::vector<bool> has_lanes = find_lanes(program_);
    for_each_statement(program_.body, [&](const Statement& s) {
      require(!s.is_parallel || runs_in_lanes(s, has_lanes, program_.fails_by_example), "L6",
              "a parallel step that lanes cannot run");
    });
  }

 private:
  DType dtype(Value value) const { return program_.dtypes[std::size_t(value)]; }

  void require(bool holds, const char* invariant, const std::string& what) const {
    if (!holds) throw Broken{statement_, std::string(invariant) + " is broken: " + what};
  }
  void define(Value value) {
    require(value >= 0 && std::size_t(value) < known_.size() && !known_[std::size_t(value)], "L1",
            "v" + std::to_string(value) + " is defined twice");
    known_[std::size_t(value)] = true;
    defined_.push_back(value);
  }
  void use(Value value) const {
    require(value >= 0 && std::size_t(value) < known_.size() && known_[std::size_t(value)], "L1",
            "v" + std::to_string(value) + " is used where it is not known");
  }
  void use(const Place& place) const {
    require(place.memory >= 0 && std::size_t(place.memory) < program_.memories.size(), "L3",
            "there is no memory m" + std::to_string(place.memory));
    require(!of_steps_.count(place.memory) || given_.count(place.memory), "L8",
            "m" + std::to_string(place.memory) + " is used where no step has its own");
    for (const Place::Term& term : place.terms) {
      use(term.index);
      require(dtype(term.index) == DType::int64, "L3",
              "v" + std::to_string(term.index) + " is no int64");
    }
  }
  void require_exchange(const Statement& s) const {
    std::vector<int> seen;
    for (const auto& pair : s.exchanged)
      for (const int memory : pair) {
        use(Place{memory});
        const Memory &a = program_.memories[std::size_t(memory)],
                     &b = program_.memories[std::size_t(pair[0])];
        require(a.space != Memory::Space::operand, "L4", "an operand changes places");
        require(a.dtype == b.dtype && a.size == b.size &&
                    std::find(seen.begin(), seen.end(), memory) == seen.end(),
                "L5", "m" + std::to_string(memory) + " cannot change places");
        seen.push_back(memory);
      }
    require(s.regions.empty() || s.regions.size() == s.exchanged.size(), "L5",
            "a region for each pair, or none");
    for (std::size_t i = 0; i < s.regions.size(); ++i) {
      use(s.regions[i].place);
      require(s.regions[i].place.memory == s.exchanged[i][0] && !s.regions[i].shape.empty() &&
                  s.regions[i].shape.size() == s.regions[i].strides.size(),
              "L5", "a region of m" + std::to_string(s.exchanged[i][0]) + " that is none");
    }
  }
  const Memory& memory(const Place& place) const {
    return program_.memories[std::size_t(place.memory)];
  }
  void write_to(const Place& place) const {
    use(place);
    require(memory(place).space != Memory::Space::operand, "L4",
            "m" + std::to_string(place.memory) + " is an operand");
  }

  void visit(const Block& block) {
    const Statement* const outer = statement_;
    for (const Statement& s : block) {
      statement_ = &s;
      visit(s);
    }
    statement_ = outer;
  }
  // What a block defines is not known behind it.
  template <class Body>
  void within(const Body& body) {
    const std::size_t before = defined_.size();
    body();
    for (std::size_t i = before; i < defined_.size(); ++i) known_[std::size_t(defined_[i])] = false;
    defined_.resize(before);
  }

  void visit(const Statement& s) {
    for (Value operand : s.operands)
      if (s.kind != Kind::loop && s.kind != Kind::combine) use(operand);
    switch (s.kind) {
      case Kind::compute: {
        std::vector<DType> dtypes;
        for (Value operand : s.operands) dtypes.push_back(dtype(operand));
        require_result(s, dtypes);
        return define(s.value);
      }
      case Kind::load:
        use(s.place);
        require(memory(s.place).dtype == dtype(s.value), "L2", "a load of another dtype");
        return define(s.value);
      case Kind::store:
        write_to(s.place);
        return require(memory(s.place).dtype == dtype(s.operands[0]), "L2",
                       "a store of another dtype");
      case Kind::copy:
        write_to(s.place);
        use(s.source_place);
        require(s.shape.size() == s.strides.size() && s.shape.size() == s.source_strides.size(),
                "L3", "a copy of another number of axes");
        return require(memory(s.place).dtype == memory(s.source_place).dtype, "L2",
                       "a copy between dtypes");
      case Kind::check:
        return require(dtype(s.operands[0]) == DType::int64, "L3", "a check of no int64");
      case Kind::combine:
        return visit_combine(s);
      case Kind::repeat:
      case Kind::loop:
        return visit_loop(s);
      case Kind::call:
        return visit_call(s);
      case Kind::branch:
        return visit_branch(s);
    }
  }

  void visit_combine(const Statement& s) {
    require(is_simple(s), "L6", "a combination that does more than compute");
    use(s.operands[0]);
    for (const Statement::Carry& carry : s.carries) use(carry.first);
    within([&] {
      define(s.counter);
      visit(s.blocks[0]);
      for (std::size_t i = 1; i < s.operands.size(); ++i) {
        use(s.operands[i]);
        require(dtype(s.operands[i]) == dtype(s.value), "L2", "a combination of other dtypes");
      }
      for (const Statement::Carry& carry : s.carries) {
        use(carry.next);
        for (const Value value : {carry.first, carry.next, carry.last})
          require(dtype(value) == dtype(s.value), "L2", "a combination of other dtypes");
      }
    });
    require(s.operands.size() == (*s.primitive == dot_general_p ? 3u : 2u), "L2",
            "a combination of another number of terms");
    require(dtype(s.operands[0]) == dtype(s.value), "L2", "a combination of other dtypes");
    if (*s.primitive != dot_general_p)
      require_result(s, {dtype(s.value), dtype(s.value)});
    else
      require(dtype(s.value) == DType::float64 || dtype(s.value) == DType::float32, "L2",
              "a sum of products of another dtype");
    define(s.value);
    for (const Statement::Carry& carry : s.carries) define(carry.last);
  }
  void visit_loop(const Statement& s) {
    if (s.grain > 0)
      require(
          (may_share(program_, s) || writes_anywhere(program_, s)) && num_shared(s.blocks[0]) == 0,
          "L7", "a shared loop whose steps are not apart");
    require_exchange(s);
    for (const Statement::Carry& carry : s.carries) use(carry.first);
    const std::set<int> outer = given_;
    for (const int memory : s.own) {
      require(program_.memories[std::size_t(memory)].space == Memory::Space::frame && s.is_apart &&
                  !s.is_parallel && given_.insert(memory).second,
              "L8", "m" + std::to_string(memory) + " cannot be a step's own");
    }
    require(s.own.empty() || num_shared(s.blocks[0]) == 0, "L8",
            "threads share a loop in steps that have memory of their own");
    within([&] {
      if (s.kind == Kind::repeat) define(s.value);
      for (const Statement::Carry& carry : s.carries) define(carry.value);
      for (const Block& block : s.blocks)
        within([&] {
          visit(block);
          if (s.kind == Kind::loop && &block == &s.blocks[0]) {
            use(s.operands[0]);
            return require(dtype(s.operands[0]) == DType::bool_, "L2", "a test of no bool");
          }
          for (const Statement::Carry& carry : s.carries) {
            use(carry.next);
            require(
                dtype(carry.next) == dtype(carry.value) && dtype(carry.first) == dtype(carry.value),
                "L2", "a carry of several dtypes");
          }
        });
    });
    given_ = outer;
    for (const Statement::Carry& carry : s.carries) define(carry.last);
  }
  void visit_branch(const Statement& s) {
    require(dtype(s.operands[0]) == DType::int64, "L3", "a branch by no int64");
    for (const Statement::Carry& carry : s.carries)
      require(carry.nexts.size() == s.blocks.size(), "L1", "a result of not all alternatives");
    for (std::size_t i = 0; i < s.blocks.size(); ++i)
      within([&] {
        visit(s.blocks[i]);
        for (const Statement::Carry& carry : s.carries) {
          use(carry.nexts[i]);
          require(dtype(carry.nexts[i]) == dtype(carry.value), "L2", "a result of several dtypes");
        }
      });
    for (const Statement::Carry& carry : s.carries) define(carry.value);
  }
  void visit_call(const Statement& s) {
    const std::span<const Aval> inputs = s.call->program->input_avals();
    std::vector<Aval> avals(inputs.begin(), inputs.end());
    const std::vector<Aval> outputs = s.call->program->output_avals();
    avals.insert(avals.end(), outputs.begin(), outputs.end());
    require(s.places.size() == avals.size() && s.call->strides.size() == inputs.size(), "L3",
            "a call of another number of arrays");
    for (std::size_t i = 0; i < avals.size(); ++i) {
      i < inputs.size() ? use(s.places[i]) : write_to(s.places[i]);
      require(memory(s.places[i]).dtype == avals[i].dtype, "L2", "a call of other dtypes");
      require(i >= inputs.size() || std::ptrdiff_t(s.call->strides[i].size()) == avals[i].rank(),
              "L3", "a call of another number of axes");
    }
  }
  // Whether its primitive makes a number of numbers of these dtypes.
  void require_result(const Statement& s, const std::vector<DType>& dtypes) const {
    std::vector<Aval> avals;
    for (const DType dtype : dtypes) avals.push_back({{}, dtype});
    std::string problem;
    try {
      const std::vector<Aval> results = infer(*s.primitive, avals, s.params);
      const std::string name = "v" + std::to_string(s.value);
      const Pointwise::Rule* const rule = Pointwise::table().find(*s.primitive);
      if (!rule || results.size() != 1 || !(*rule)(dtypes, s.params).loop)
        problem = std::string(s.primitive->name()) + " is not elementwise";
      else if (!(results[0].dtype == dtype(s.value)))
        problem = name + " has another dtype";
    } catch (const InternalError& error) {
      problem = problem_of(error);
    } catch (const UserError& error) {
      problem = error.problem();
    }
    require(problem.empty(), "L2", problem);
  }

  const LoopProgram& program_;
  const Statement* statement_ = nullptr;  // the innermost that is being visited
  std::vector<bool> known_;
  std::vector<Value> defined_;
  std::set<int> of_steps_, given_;  // memories of which steps have their own; those around
};

}  // namespace

namespace {

bool is_simple(const Block& block, bool may_store, bool may_loop) {
  return std::all_of(block.begin(), block.end(), [&](const Statement& s) {
    switch (s.kind) {
      case Kind::compute:
      case Kind::load:
        return true;
      case Kind::combine:
        return is_simple(s.blocks[0], false, false);
      case Kind::store:
        return may_store;
      case Kind::loop:
        return may_loop && s.exchanged.empty() && is_simple(s.blocks[0], false, true) &&
               is_simple(s.blocks[1], false, true);
      default:
        return false;
    }
  });
}

}  // namespace

bool is_simple(const Statement& loop) {
  const bool is_combination = loop.kind == Kind::combine;
  return (loop.carries.empty() || is_combination) && loop.exchanged.empty() &&
         is_simple(loop.blocks[0], true, !is_combination);
}
std::string print(const LoopProgram& program, ShowSources sources) {
  return Printer(program, sources).text();
}

std::optional<Broken> broken(const LoopProgram& program) {
  try {
    Checker(program).run();
    return {};
  } catch (Broken& broken) {
    return std::move(broken);
  }
}
void check(const LoopProgram& program) {
  if (const std::optional<Broken> found = broken(program))
    throw InternalError(found->what + "\n" + print(program));
}

}  // namespace plait::codegen
