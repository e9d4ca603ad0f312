// Shared by Spelling rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/spelling.h>

namespace plait::spelling {

using Text = std::optional<std::string>;

// A function of the operands, under this name or the primitive's own.
inline Spelling::Rule function(std::string name) {
  return [name](const EquationWriter& w) -> Text {
    return w.call(name, w.equation.inputs.size() == 1 ? w.operands() : w.numbers());
  };
}
inline Spelling::Rule function() {
  return [](const EquationWriter& w) -> Text {
    return function(std::string(w.equation.primitive->name()))(w);
  };
}

// The dtype of the results, unless it is that of the operands.
inline void add_dtype(const EquationWriter& w, std::vector<std::string>& arguments,
                      const std::string& keyword) {
  if (w.params().get<DType>("dtype") == w.operand_dtype(0)) return;
  arguments.push_back((w.is_python() ? keyword + "=" : "") + w.dtype("dtype"));
}

}  // namespace plait::spelling
