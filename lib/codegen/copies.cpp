// See copies.h.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/copies.h"

#include <algorithm>

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

class Copies {
 public:
  explicit Copies(const LoopProgram& program) : program_(program) { add(program.body, false); }

  std::string text() const {
    constexpr std::size_t most = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, found_.size()); ++i)
      text += (i ? "; " : "") + found_[i];
    if (found_.size() > most) text += "; and " + std::to_string(found_.size() - most) + " others";
    return text;
  }

 private:
  void add(const Block& block, bool is_in_loop) {
    for (const Statement& s : block) {
      if (is_in_loop && !s.reason.empty()) add(s);
      // Loops whose steps are apart go over the elements of arrays.
      const bool is_loop =
          s.kind == Kind::loop || (s.kind == Kind::repeat && !s.is_parallel && !s.is_apart);
      for (const Block& inner : s.blocks) add(inner, is_in_loop || is_loop);
    }
  }
  void add(const Statement& s) {
    const Memory& memory = program_.memories[std::size_t(s.place.memory)];
    const Shape shape = s.kind == Kind::copy ? Shape::of(s.shape) : Shape::of({memory.size});
    const std::string text =
        "copies " + Aval{shape, memory.dtype}.to_string() + " at each step: " + s.reason;
    if (std::find(found_.begin(), found_.end(), text) == found_.end()) found_.push_back(text);
  }

  const LoopProgram& program_;
  std::vector<std::string> found_;
};

}  // namespace

std::string copies_in_loops(const LoopProgram& program) { return Copies(program).text(); }

}  // namespace plait::codegen
