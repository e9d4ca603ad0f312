// Common subexpressions: a number that the same operands have given before, in the block or around
// it, an element that was loaded or stored since its memory was written last, and the check of an
// index that has passed already. Lowering leaves none, but passes that bring loops together do, and
// emitters write down what they are given. What is computed in lanes stays: to load a vector again
// takes less than to keep it in one of few registers.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/once.h"

#include <plait/base/hash.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "codegen/effects.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

class Once {
 public:
  explicit Once(LoopProgram& program) : program_(program) {}

  void run(Block& block) {
    const std::size_t computed = order_.size(), checked = checked_.size();
    Block kept;
    kept.reserve(block.size());
    for (Statement& s : block) {
      for_each_use(s, [&](Value& value) { value = named(names_, value); });
      for (Place* place : {&s.place, &s.source_place}) sort(*place);
      if (is_in_lanes_ || !is_known(s)) {
        run_within(s);
        kept.push_back(std::move(s));
      }
    }
    block = std::move(kept);
    // What a block defines is not known behind it.
    for (; order_.size() > computed; order_.pop_back()) computed_.erase(order_.back());
    checked_.resize(checked);
  }

 private:
  // Whether a statement gives nothing that was not there before. If it does, it is known now.
  bool is_known(const Statement& s) {
    switch (s.kind) {
      case Kind::compute: {
        const auto [first, last] = computed_.equal_range(hash_of(s));
        for (auto it = first; it != last; ++it) {
          const Computed& other = it->second;
          // What a check has shown of one of them need not hold where the other one is.
          if (*other.primitive == *s.primitive && other.operands == s.operands &&
              other.params == s.params && have_one_range(other.value, s.value)) {
            names_[s.value] = other.value;
            return true;
          }
        }
        order_.push_back(
            computed_.emplace(hash_of(s), Computed{s.primitive, s.params, s.operands, s.value}));
        return false;
      }
      case Kind::load:
        for (const Element& element : elements_)
          if (element.place == s.place) {
            names_[s.value] = element.value;
            return true;
          }
        know(s.place, s.value);
        return false;
      case Kind::store:
        forget({s.place.memory});
        know(s.place, s.operands[0]);
        return false;
      case Kind::check:
        for (const Checked& other : checked_)
          if (other.index == s.operands[0] && s.low <= other.low && other.high <= s.high)
            return true;
        checked_.push_back({s.operands[0], s.low, s.high});
        return false;
      default:
        return false;
    }
  }

  // What a statement writes is no longer known, in its blocks too, which may run again.
  void run_within(Statement& s) {
    if (s.kind == Kind::compute || s.kind == Kind::load || s.kind == Kind::store) return;
    Effects effects;
    effects.add(s);
    forget({effects.writes.begin(), effects.writes.end()});
    const std::vector<Element> around = elements_;
    const bool was_in_lanes = is_in_lanes_;
    is_in_lanes_ = is_in_lanes_ || s.is_parallel || s.kind == Kind::combine;
    for (Block& block : s.blocks) {
      run(block);
      elements_ = around;
    }
    is_in_lanes_ = was_in_lanes;
    // What the blocks have made has new names for the values that they give.
    for (Value& operand : s.operands) operand = named(names_, operand);
    for (Statement::Carry& carry : s.carries) {
      carry.next = named(names_, carry.next);
      for (Value& next : carry.nexts) next = named(names_, next);
    }
  }
  void know(const Place& place, Value value) {
    constexpr std::size_t most = 256;
    if (elements_.size() < most) elements_.push_back({place, value});
  }
  void forget(const std::set<int>& memories) {
    std::erase_if(elements_,
                  [&](const Element& each) { return memories.count(each.place.memory) > 0; });
  }

  bool have_one_range(Value a, Value b) const {
    const std::optional<Range> of_a = program_.range(a), of_b = program_.range(b);
    return of_a.has_value() == of_b.has_value() &&
           (!of_a || (of_a->low == of_b->low && of_a->high == of_b->high));
  }
  static void sort(Place& place) {
    std::sort(place.terms.begin(), place.terms.end(),
              [](const Place::Term& a, const Place::Term& b) { return a.index < b.index; });
  }
  static std::size_t hash_of(const Statement& s) {
    std::size_t hash = hash_combine(std::size_t(s.primitive->index()), s.params.hash());
    for (const Value operand : s.operands) hash = hash_combine(hash, std::size_t(operand));
    return hash;
  }

  struct Computed {
    const Primitive* primitive;
    Params params;
    Values operands;
    Value value;
  };
  struct Element {
    Place place;
    Value value;
  };
  struct Checked {
    Value index;
    std::int64_t low, high;
  };
  using Table = std::unordered_multimap<std::size_t, Computed>;

  LoopProgram& program_;
  bool is_in_lanes_ = false;
  Names names_;  // of what is not computed again
  Table computed_;
  std::vector<Table::iterator> order_;
  std::vector<Element> elements_;  // what they hold
  std::vector<Checked> checked_;
};

}  // namespace

void compute_once(LoopProgram& program) { Once(program).run(program.body); }

}  // namespace plait::codegen
