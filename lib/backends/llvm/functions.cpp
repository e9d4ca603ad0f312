// Names of functions and what they stand for. See functions.h.
// SPDX-License-Identifier: Apache-2.0
#include "functions.h"

#include <plait/base/math.h>
#include <plait/rules/rules.h>

namespace plait::llvm {
namespace {

constexpr std::string_view far_prefix = "far reduction ", loop_prefix = "loop ";

template <class T>
void reduce_far_lanes(const T* x, T* r, T* r_low, BitsOf<T>* n, std::int64_t lanes) {
  for (std::int64_t i = 0; i < lanes; ++i) {
    if (std::abs(x[i]) <= math::TrigConstants<T>::limit) continue;
    const auto lane = math::reduce_trig_far(x[i]);
    r[i] = lane.r, r_low[i] = lane.r_low, n[i] = lane.n;
  }
}

// Of the one equation of a program.
const void* find_loop(const JaxprData& program) {
  const Equation& equation = program.equations.at(0);
  std::vector<DType> dtypes;
  for (const Atom& atom : equation.inputs) dtypes.push_back(program.aval(atom).dtype);
  return reinterpret_cast<const void*>(
      rule<Pointwise>(*equation.primitive)(dtypes, equation.params).loop);
}

}  // namespace

std::string far_reduction(DType dtype) {
  return std::string(far_prefix) + std::string(name_of(dtype));
}

std::string loop_of(const Equation& equation, std::span<const DType> inputs, DType output) {
  Builder builder;
  std::vector<Atom> operands;
  for (DType dtype : inputs) operands.push_back(builder.add_binder({{}, dtype}));
  const std::vector<Var> results =
      builder.add(*equation.primitive, operands, equation.params, Source(), {{{}, output}});
  return std::string(loop_prefix) + print(builder.close({results[0]}));
}

const void* function_named(const std::string& name) {
  if (name == far_reduction(DType::float32))
    return reinterpret_cast<const void*>(&reduce_far_lanes<float>);
  if (name == far_reduction(DType::float64))
    return reinterpret_cast<const void*>(&reduce_far_lanes<double>);
  if (!name.starts_with(loop_prefix)) return nullptr;
  try {
    return find_loop(*parse(std::string_view(name).substr(loop_prefix.size())));
  } catch (const UserError&) {
    return nullptr;  // a primitive that this process has not
  }
}

}  // namespace plait::llvm
