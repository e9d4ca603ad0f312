// Loop programs in the three ways that they run: interpreted, as generated code, and as C++ text
// that the compiler of the tests compiles.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/plait.h>

#include <functional>
#include <memory>

#include "codegen/program.h"

namespace plait::codegen {

// What a run gives: arrays, or an error.
struct Outcome {
  Arrays results;
  std::string error;
};
// Nothing where both are the same, to the bit, but for the bits of a NaN.
std::optional<std::string> difference(const Outcome& actual, const Outcome& expected);

Outcome interpreted(const LoopProgram& program, const Arrays& operands,
                    std::span<const Aval> results);
// A loop as the llvm backend compiles it; nothing, and why, where it does not.
struct Generated {
  std::optional<Outcome> outcome;
  std::string reason;
};
Generated generated(const Jaxpr& loop, const Arrays& operands);

// Programs as the functions of one library, so that what their text includes is read once.
class TextLibrary {
 public:
  TextLibrary() = default;
  ~TextLibrary();
  TextLibrary(const TextLibrary&) = delete;

  // The command of a C++ compiler: that of the variable CXX, else c++; nothing where it is missing.
  static std::optional<std::string> compiler();

  // The number of its function. edit: what to make of its text.
  std::size_t add(const LoopProgram& program,
                  const std::function<std::string(std::string)>& edit = {});
  std::size_t size() const { return programs_.size(); }
  void compile();
  // Every memory has a margin, so that a wrong text that is off by a few elements reads and writes
  // what is nobody's.
  Outcome run(std::size_t number, const Arrays& operands, std::span<const Aval> results) const;

 private:
  using Programs = std::vector<std::unique_ptr<const LoopProgram>>;
  Programs programs_;
  std::string text_, folder_;
  void* library_ = nullptr;
  std::vector<void*> functions_;
};

}  // namespace plait::codegen
