// Combinations of a block that do not need each other come one after the other, those that read the
// same elements side by side: such are written together, see combines_together in lanes.h. What is
// computed from their results follows them.
//
// It runs once loops have their places.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/together.h"

#include <algorithm>
#include <map>

#include "codegen/effects.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

// Whether it only gives a number.
bool is_pure(const Statement& s) {
  return s.kind == Kind::compute || s.kind == Kind::load ||
         (s.kind == Kind::combine && std::all_of(s.blocks[0].begin(), s.blocks[0].end(), is_pure));
}

// Whether one reads an element in a step that the other one reads in the same step.
bool read_same(const Statement& a, const Statement& b) {
  return a.steps == b.steps &&
         std::any_of(a.blocks[0].begin(), a.blocks[0].end(), [&](const Statement& x) {
           return x.kind == Kind::load && stride_of(x.place, a.counter) != 0 &&
                  std::any_of(b.blocks[0].begin(), b.blocks[0].end(), [&](const Statement& y) {
                    Place place = y.place;
                    for (Place::Term& term : place.terms)
                      if (term.index == b.counter) term.index = a.counter;
                    return y.kind == Kind::load && place == x.place;
                  });
         });
}

class Gatherer {
 public:
  void run(Block& block) {
    for (auto first = block.begin(); first != block.end();) {
      const auto last = std::find_if_not(first, block.end(), is_pure);
      if (std::count_if(first, last, [](const Statement& s) { return s.kind == Kind::combine; }) >
          1)
        bring_together(first, last);
      if (last == block.end()) return;
      if (!last->is_parallel)
        for (Block& inner : last->blocks) run(inner);
      first = last + 1;
    }
  }

 private:
  void bring_together(Block::iterator first, Block::iterator last) {
    std::map<Value, int> ready;            // by value: behind how many combinations
    std::map<int, Block> plain, combined;  // by the same
    for (auto s = first; s != last; ++s) {
      Effects effects;
      effects.add(*s);
      int pass = 0;
      for (const Value value : effects.used)
        if (const auto found = ready.find(value); found != ready.end())
          pass = std::max(pass, found->second);
      const bool combines = s->kind == Kind::combine;
      ready[s->value] = pass + combines;
      (combines ? combined : plain)[pass].push_back(std::move(*s));
    }
    for (int pass = 0; first != last; ++pass) {
      first = std::move(plain[pass].begin(), plain[pass].end(), first);
      Block& rest = combined[pass];
      while (!rest.empty()) {
        *first++ = std::move(rest.front());
        rest.erase(rest.begin());
        const Statement& one = *(first - 1);
        const auto others = std::stable_partition(
            rest.begin(), rest.end(), [&](const Statement& s) { return read_same(one, s); });
        first = std::move(rest.begin(), others, first);
        rest.erase(rest.begin(), others);
      }
    }
  }
};

}  // namespace

void bring_combinations_together(LoopProgram& program) { Gatherer().run(program.body); }

}  // namespace plait::codegen
