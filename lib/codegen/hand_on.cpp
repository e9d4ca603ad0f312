// What a step of a serial loop stores, and one of the next steps loads, is a number that the loop
// carries: that step does not wait until it can be loaded.
//
//   for v1 in 0..62                    v5 = load m1[0]
//     v2 = load m1[v1]                 for v1 in 0..62 (v6 = v5, then v4, at last v7)
//     v3 = load m0[v1]                   v3 = load m0[v1]
//     v4 = add v2 v3                     v4 = add v6 v3
//     store m1[v1 + 1] = v4              store m1[v1 + 1] = v4
//
// It runs once loops have their places: a loop that carries nothing may move, and be united.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/hand_on.h"

#include <algorithm>
#include <set>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t farthest = 3;      // from the step that stores to the one that loads
constexpr std::size_t most_carried = 12;  // so that numbers stay in registers

Place moved(Place place, std::int64_t distance) {
  place.offset += distance;
  return place;
}
Place without(Place place, Value index) {
  std::erase_if(place.terms, [&](const Place::Term& term) { return term.index == index; });
  return place;
}
bool is_same(const Place& a, const Place& b) {
  return a.memory == b.memory && a.offset == b.offset &&
         std::is_permutation(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end());
}

class HandingOn {
 public:
  explicit HandingOn(LoopProgram& program) : program_(program) {}

  void run(Block& block) {
    Block result;
    for (Statement& s : block) {
      for (Block& inner : s.blocks) run(inner);
      if (s.kind == Kind::repeat && !s.is_parallel && !s.is_apart && s.exchanged.empty())
        run_loop(s, result);
      result.push_back(std::move(s));
    }
    block = std::move(result);
  }

 private:
  // before: what runs before the loop.
  void run_loop(Statement& loop, Block& before) {
    std::set<Value> own;
    for_each_statement(loop, [&](const Statement& s) {
      for_each_definition(s, [&](Value value) { own.insert(value); });
    });
    own.erase(loop.value);
    std::vector<Statement> stores;
    for (const Statement& s : loop.blocks[0])
      if (s.kind == Kind::store && is_known(s.place, own) && is_only_write(loop, s))
        stores.push_back(s);
    for (const Statement& store : stores) hand_on(loop, store, before);
  }

  static bool is_known(const Place& place, const std::set<Value>& own) {
    return std::none_of(place.terms.begin(), place.terms.end(),
                        [&](const Place::Term& term) { return own.count(term.index) > 0; });
  }
  static bool is_only_write(const Statement& loop, const Statement& store) {
    int writes = 0;
    for_each_statement(loop, [&](const Statement& s) {
      for_each_place(s, [&](const Place& place, bool is_write) {
        writes += is_write && place.memory == store.place.memory;
      });
      for (const auto& pair : s.exchanged)
        writes += pair[0] == store.place.memory || pair[1] == store.place.memory;
    });
    return writes == 1;
  }

  bool is_inside(const Place& place) const {
    std::int64_t low = place.offset, high = place.offset;
    for (const Place::Term& term : place.terms) {
      const std::optional<Range> range = program_.range(term.index);
      if (!range) return false;
      low += std::min(term.stride * range->low, term.stride * range->high);
      high += std::max(term.stride * range->low, term.stride * range->high);
    }
    return 0 <= low && high < program_.memories[std::size_t(place.memory)].size;
  }

  // How many steps after the store a load reads the same element, or 0.
  static std::int64_t distance(const Statement& s, const Statement& store, std::int64_t stride,
                               std::int64_t steps) {
    if (s.kind != Kind::load) return 0;
    for (std::int64_t d = 1; d <= std::min(farthest, steps - 1); ++d)
      if (is_same(s.place, moved(store.place, -d * stride))) return d;
    return 0;
  }

  void hand_on(Statement& loop, const Statement& store, Block& before) {
    const std::int64_t stride = stride_of(store.place, loop.value);
    if (stride == 0) return;
    Block& block = loop.blocks[0];
    std::int64_t most = 0;
    for (const Statement& s : block) most = std::max(most, distance(s, store, stride, loop.steps));
    if (most == 0 || loop.carries.size() + std::size_t(most) > most_carried) return;
    // Where steps check, it is not known that the loop loads what is loaded before it.
    for (std::int64_t d = 1; d <= most; ++d)
      if (has_checks(loop) && !is_inside(without(moved(store.place, -d * stride), loop.value)))
        return;
    std::vector<Value> carried{store.operands[0]};  // by distance
    const DType dtype = program_.dtypes[std::size_t(carried[0])];
    for (std::int64_t d = 1; d <= most; ++d) {
      Statement load;
      load.kind = Kind::load;
      load.value = define(program_, dtype);
      load.place = without(moved(store.place, -d * stride), loop.value);
      const Value value = define(program_, dtype);
      loop.carries.push_back({value, load.value, carried.back(), define(program_, dtype)});
      carried.push_back(value);
      before.push_back(std::move(load));
    }
    Names names;
    std::erase_if(block, [&](const Statement& s) {
      const std::int64_t d = distance(s, store, stride, loop.steps);
      if (d > 0) names[s.value] = carried[std::size_t(d)];
      return d > 0;
    });
    for (Statement& s : block) rename(s, names);
    for (Statement::Carry& carry : loop.carries) carry.next = named(names, carry.next);
  }

  LoopProgram& program_;
};

}  // namespace

void hand_on(LoopProgram& program) { HandingOn(program).run(program.body); }

}  // namespace plait::codegen
