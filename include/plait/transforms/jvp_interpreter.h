// The interpreter of jvp and linearize.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/interpret.h>

namespace plait {

struct JvpInterpreter {
  static constexpr std::string_view name = "jvp";
  struct Value {
    Array primal;
    Tangent tangent;
  };
  // When linearizing: tangents live in this trace, primals in its parent.
  LinearTrace* linear = nullptr;
  // Computes the outputs of an equation: bind, unless a checkpoint has kept them.
  std::function<Arrays(const Equation&, const Arrays& primals)> evaluate;

  Value lift(const Array& array) { return {array, Tangent(array.aval())}; }
  const Aval& aval(const Value& value) { return value.primal.aval(); }
  std::optional<Array> known(const Value& value) { return value.primal; }
  static bool has_rule(const Primitive& primitive) {
    return Jvp::table().find(primitive) || Linearize::table().find(primitive) ||
           !Decompose::table().find(primitive);
  }
  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs);
};

// Whether this array carries the tangent of a derivative being taken, so that its value alone would
// lose it.
bool carries_tangent(const Array& array);

// The tangent or cotangent of a value. That of a weak number is weak, whatever the arrays are that
// rules made for it: a step along it must not make it a strong one of 64 bits.
Tangent as_weak(const Tangent& tangent, const Aval& primal);

}  // namespace plait
