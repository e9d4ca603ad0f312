// See loop_cases.h.
// SPDX-License-Identifier: Apache-2.0
#include "loop_cases.h"

#include <plait/inspect/samples.h>
#include <plait/primitives/families.h>
#include <plait/rules/bodies.h>
#include <plait/rules/interpret.h>

#include <set>

#include "../laws/compositions.h"
#include "compile/passes/pipeline.h"

namespace plait::codegen {
namespace {

// Runs a program, and keeps its loops and their operands.
struct Collecting {
  using Value = Array;
  const std::string& title;
  LoopCases& cases;

  Array lift(const Array& array) { return array; }
  Arrays process(const Equation& equation, std::span<const Array> inputs) {
    if (has_loop_body(equation) || runs_examples(equation)) {
      LoopCase one{title, program_of(equation, avals_of(inputs)), {}, {}};
      std::set<int> known;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (const Atom& atom = equation.inputs[i];
            atom.is_var() && known.insert(atom.var().id).second)
          one.operands.push_back(inputs[i]);
      one.lowered = compile_passes::loop_program(one.group);
      if (one.lowered->program)
        cases.loops.push_back(std::move(one));
      else
        ++cases.refused[one.lowered->reason];
    }
    return bind(*equation.primitive, inputs, equation.params);
  }
};

}  // namespace

void LoopCases::add(LoopCases more) {
  loops.insert(loops.end(), std::make_move_iterator(more.loops.begin()),
               std::make_move_iterator(more.loops.end()));
  for (const auto& [reason, count] : more.refused) refused[reason] += count;
}

LoopCases loops_of(const std::string& name, const Function& function, const Arrays& inputs) {
  const Traced traced = make_jaxpr(function, avals_of(inputs));
  const Jaxpr program = compile_passes::simplify_program(
      traced.jaxpr, [](const Equation& equation, auto, auto) { return runs_examples(equation); });
  LoopCases cases;
  try {
    interpret(Collecting{name, cases}, program, concatenate(inputs, traced.captured));
  } catch (const Error&) {
    // What a loop raises is compared too; what follows it does not run.
  }
  return cases;
}

namespace {

// Three examples, one after the other.
LoopCases in_a_loop(const laws::Case& one) {
  Arrays stacked;
  for (std::size_t i = 0; i < one.inputs.size(); ++i) {
    Arrays examples;
    for (const unsigned seed : {1u, 2u, 3u}) examples.push_back(one.values(seed)[i]);
    stacked.push_back(laws::stacked(examples));
  }
  if (stacked.empty()) return {};
  const Function each = [&](std::span<const Array> xs) {
    return flat::map(one.function(), xs, {});
  };
  try {
    return loops_of(one.to_string(), each, stacked);
  } catch (const Error&) {
    return {};  // no loop holds it: its inputs have other sizes in each example, say
  }
}

}  // namespace

LoopCases loops_of_primitives() {
  LoopCases all;
  for (const PrimitiveInfo* info : laws::primitives_under_law())
    for (const laws::Case& one : laws::cases_of(*info->primitive)) {
      all.add(in_a_loop(one));
      if (const auto large = laws::enlarged(one, 5)) all.add(in_a_loop(*large));
      for (const DType dtype :
           {DType::float32, DType::bfloat16, DType::int8, DType::uint64, DType::complex128})
        if (const auto other = laws::with_dtype(one, dtype)) all.add(in_a_loop(*other));
    }
  return all;
}

// For each of three examples, one after the other: the loops of a random program are in this one.
LoopCases random_loops(unsigned first_seed, unsigned count) {
  LoopCases all;
  for (unsigned seed = first_seed; seed < first_seed + count; ++seed) {
    laws::Composition composition = laws::random_composition(seed);
    std::erase(composition.layers, laws::Layer::mask);  // no loop holds `masked`
    const laws::Transformed random = laws::transformed(composition);
    Arrays stacked;
    for (std::size_t i = 0; i < random.avals.size(); ++i) {
      Arrays examples;
      for (unsigned example = 0; example < 3; ++example)
        examples.push_back(laws::normal_like(random.avals[i], 50 + 10 * example + unsigned(i)));
      stacked.push_back(laws::stacked(examples));
    }
    const Function each = [&](std::span<const Array> xs) {
      return flat::map(random.function, xs, {});
    };
    all.add(loops_of("seed " + std::to_string(seed), each, stacked));
  }
  return all;
}

}  // namespace plait::codegen
