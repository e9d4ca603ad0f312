// What one step of a loop has for itself of an array, a few elements at known places, is numbers
// from its first statement to its last: a load is the number that was stored last, and a loop
// within the step carries what it stores. Short loops over such elements are written out, so that
// their places are known.
//
//   parallel for e in 0..64                     parallel for e in 0..64
//     for t in 0..100                             v1 = load m1[e]
//       v1 = load m1[e]                           for t in 0..100 (v2 = v1, then v3, at last v4)
//       v2 = mul v1 0.5                             v3 = mul v2 0.5
//       store m1[e] = v2                          store m1[e] = v4
// SPDX-License-Identifier: Apache-2.0
#include "codegen/promote.h"

#include <plait/primitives/emitted.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <map>
#include <set>

#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using Kind = Statement::Kind;

constexpr std::int64_t most_steps = 16, most_terms = 16;  // of loops and combinations written out
constexpr std::int64_t most_elements = 16;                // that a step has of a memory
constexpr std::size_t most_numbers = 200, most_statements = 1500;
constexpr std::size_t parts = 8;  // of a combination: see Writer::combine

// --- Loops written out ---------------------------------------------------------------------------

class Unroller {
 public:
  Unroller(LoopProgram& program, const Statement& loop) : program_(program), loop_(loop) {
    for_each_statement(loop, [&](const Statement& s) {
      for_each_place(s, [&](const Place& place, bool is_write) {
        if (is_write) written_.insert(place.memory);
      });
    });
  }

  // Nothing where it would be long.
  std::optional<Block> run(const Block& block) {
    Block result = written_out(block);
    return is_long_ || num_statements(result) > most_statements ? std::nullopt
                                                                : std::optional(std::move(result));
  }

 private:
  // Loops in loops multiply: what is known to be long ends at once.
  Block written_out(const Block& block) {
    Block result;
    for (const Statement& given : block) {
      if (is_long_) break;
      Statement s = given;
      const bool was_inside = std::exchange(is_inside_, is_inside_ || s.steps > most_steps);
      for (Block& inner : s.blocks) inner = written_out(inner);
      is_inside_ = was_inside;
      rename(s, names_);
      if (s.kind == Kind::repeat && s.steps <= most_steps && !is_better_in_lanes(s) &&
          counts_elements(s, s.value))
        write_steps(s, result);
      else if (s.kind == Kind::combine && s.steps <= most_terms && counts_elements(s, s.counter))
        write_terms(s, result);
      else
        result.push_back(std::move(s));
      is_long_ = is_long_ || result.size() > most_statements;
    }
    return result;
  }

  // Of the program as a whole, where no step waits for the one before it: whether lanes do at once
  // what would be written again and again.
  bool is_better_in_lanes(const Statement& s) const {
    constexpr std::int64_t most_work = 128;
    return loop_.value < 0 && s.is_parallel &&
           (is_inside_ || s.steps * std::int64_t(num_statements(s.blocks[0])) > most_work);
  }

  // Whether a counter is part of the place of an element that a step has for itself.
  bool counts_elements(const Statement& s, Value counter) const {
    if (!s.exchanged.empty()) return false;
    bool counts = false;
    for_each_statement(s.blocks[0], [&](const Statement& each) {
      for_each_place(each, [&](const Place& place, bool) {
        const Memory& memory = program_.memories[std::size_t(place.memory)];
        if (!written_.count(place.memory) || memory.space == Memory::Space::counts ||
            memory.size > most_elements * loop_.steps)
          return;
        for (const Place::Term& term : place.terms) counts = counts || term.index == counter;
      });
    });
    return counts;
  }

  // The statements of a block for one value of a counter.
  void write_step(const Block& block, Value counter, std::int64_t step, Names& names,
                  Block& result) {
    if (is_long_) return;
    for (Statement& s : copy_of(program_, block, names)) {
      count(s, counter, step);
      result.push_back(std::move(s));
    }
    is_long_ = result.size() > most_statements;
  }
  void count(Statement& s, Value counter, std::int64_t step) {
    for_each_place(s, [&](Place& place, bool) {
      std::erase_if(place.terms, [&](const Place::Term& term) {
        if (term.index != counter) return false;
        place.offset += term.stride * step;
        return true;
      });
    });
    for_each_use(s, [&](Value& value) {
      if (value == counter) value = integer(program_, step);
    });
    for (Block& block : s.blocks)
      for (Statement& inner : block) count(inner, counter, step);
  }

  void write_steps(const Statement& s, Block& result) {
    std::vector<Value> carried;
    for (const Statement::Carry& carry : s.carries) carried.push_back(carry.first);
    for (std::int64_t step = 0; step < s.steps; ++step) {
      Names names;
      for (std::size_t i = 0; i < carried.size(); ++i) names[s.carries[i].value] = carried[i];
      write_step(s.blocks[0], s.value, step, names, result);
      for (std::size_t i = 0; i < carried.size(); ++i) {
        const Value next = named(names, s.carries[i].next);
        carried[i] = next == s.value ? integer(program_, step) : next;
      }
    }
    for (std::size_t i = 0; i < carried.size(); ++i) names_[s.carries[i].last] = carried[i];
  }

  // In the order of the combination, one term after the other or in eight interleaved parts.
  void write_terms(const Statement& s, Block& result) {
    std::vector<Value> sums(s.is_in_order ? 1 : parts, s.operands[0]);
    for (std::int64_t step = 0; step < s.steps; ++step) {
      Names names;
      write_step(s.blocks[0], s.counter, step, names, result);
      Value& sum = sums[std::size_t(step) % sums.size()];
      Values terms{sum};
      for (std::size_t i = 1; i < s.operands.size(); ++i) {
        const Value term = named(names, s.operands[i]);
        terms.push_back(term == s.counter ? integer(program_, step) : term);
      }
      sum = take_in(program_, s, std::move(terms), result);
    }
    const Primitive& by = *s.primitive == dot_general_p ? add_p : *s.primitive;
    for (std::size_t width = sums.size() / 2; width > 0; width /= 2)
      for (std::size_t part = 0; part < width; ++part)
        sums[part] = compute(s, by, {sums[part], sums[part + width]}, result);
    names_[s.value] = sums[0];
  }
  Value compute(const Statement& like, const Primitive& by, Values operands, Block& result) {
    Statement s;
    s.source = like.source;
    s.primitive = &by;
    s.operands = std::move(operands);
    s.value = define(program_, program_.dtypes[std::size_t(like.value)]);
    result.push_back(std::move(s));
    return result.back().value;
  }

  LoopProgram& program_;
  const Statement& loop_;
  std::set<int> written_;
  Names names_;             // of the results of what was written out
  bool is_long_ = false;    // the rest is not written out
  bool is_inside_ = false;  // of a loop that stays one
};

// --- Numbers -------------------------------------------------------------------------------------

// An element of a step: a memory and an offset.
using Key = std::pair<int, std::int64_t>;
using Numbers = std::map<Key, Value>;  // what each of them holds

class Promoter {
 public:
  Promoter(LoopProgram& program, const Statement& loop) : program_(program), loop_(loop) {
    find_keys();
  }

  Block run() {
    Block result;
    Numbers numbers;
    for (const Key& key : keys_) {
      Statement load;
      load.kind = Kind::load;
      load.value = define(program_, dtype(key));
      load.place = place(key);
      numbers[key] = load.value;
      result.push_back(std::move(load));
    }
    const Numbers before = numbers;
    Block body = promoted(loop_.blocks[0], numbers);
    result.insert(result.end(), std::make_move_iterator(body.begin()),
                  std::make_move_iterator(body.end()));
    const std::set<int> wanted = memories_read_outside();
    for (const auto& [key, value] : numbers) {
      if (value == before.at(key) || !wanted.count(key.first)) continue;
      Statement store;
      store.kind = Kind::store;
      store.place = place(key);
      store.operands = {value};
      result.push_back(std::move(store));
    }
    return result;
  }

 private:
  DType dtype(const Key& key) const { return program_.memories[std::size_t(key.first)].dtype; }
  Place place(const Key& key) const { return {key.first, key.second, terms_.at(key.first)}; }

  void find_keys() {
    std::set<Value> inside;
    std::set<int> others;
    for_each_statement(loop_.blocks[0], [&](const Statement& s) {
      for_each_definition(s, [&](Value value) { inside.insert(value); });
    });
    for_each_statement(loop_.blocks[0], [&](const Statement& s) {
      const bool is_element = s.kind == Kind::load || s.kind == Kind::store;
      for_each_place(s, [&](const Place& place, bool) {
        if (is_element && is_known(place, inside))
          keys_.insert({place.memory, place.offset});
        else
          others.insert(place.memory);
      });
    });
    for (bool grows = true; std::exchange(grows, false);)
      for_each_statement(loop_.blocks[0], [&](const Statement& s) {
        for (const auto& [a, b] : s.exchanged) {
          const bool has_a = !others.count(a) && terms_.count(a),
                     has_b = !others.count(b) && terms_.count(b);
          if (has_a && has_b && terms_[a] == terms_[b]) continue;
          grows |= others.insert(a).second;
          grows |= others.insert(b).second;
        }
      });
    std::erase_if(keys_, [&](const Key& key) { return others.count(key.first) > 0; });
    for_each_statement(loop_.blocks[0], [&](const Statement& s) {
      for (const auto& [a, b] : s.exchanged) {
        const std::set<Key> before = keys_;
        for (const auto& [memory, offset] : before) {
          if (memory == a) keys_.insert({b, offset});
          if (memory == b) keys_.insert({a, offset});
        }
      }
    });
    keep_few();
  }

  // What is only read is left where it is first, then all.
  void keep_few() {
    std::set<int> written;
    for_each_statement(loop_.blocks[0], [&](const Statement& s) {
      for_each_place(s, [&](const Place& place, bool is_write) {
        if (is_write) written.insert(place.memory);
      });
      for (const auto& pair : s.exchanged) written.insert(pair.begin(), pair.end());
    });
    if (keys_.size() > most_numbers)
      std::erase_if(keys_, [&](const Key& key) { return !written.count(key.first); });
    if (keys_.size() > most_numbers) keys_.clear();
  }

  // Whether a place is a step's own, but for its offset known before the step, and like the others
  // of its memory.
  bool is_known(const Place& place, const std::set<Value>& inside) {
    std::vector<Place::Term> terms = place.terms;
    std::sort(terms.begin(), terms.end(),
              [](const Place::Term& a, const Place::Term& b) { return a.index < b.index; });
    bool is_own = loop_.value < 0;
    for (const Place::Term& term : terms) {
      if (inside.count(term.index)) return false;
      is_own = is_own || term.index == loop_.value;
    }
    return is_own && terms_.try_emplace(place.memory, terms).first->second == terms;
  }
  bool is_key(const Place& place) const { return keys_.count({place.memory, place.offset}) > 0; }
  bool is_numbers(int memory) const {
    const auto first = keys_.lower_bound({memory, std::numeric_limits<std::int64_t>::min()});
    return first != keys_.end() && first->first == memory;
  }

  // What a statement stores, with what is in it.
  std::set<Key> stored(const Statement& s) const {
    std::set<Key> keys;
    for_each_statement(s, [&](const Statement& each) {
      if (each.kind == Kind::store && is_key(each.place))
        keys.insert({each.place.memory, each.place.offset});
      for (const auto& pair : each.exchanged)
        for (const Key& key : keys_)
          if (key.first == pair[0] || key.first == pair[1]) keys.insert(key);
    });
    return keys;
  }

  Block promoted(const Block& block, Numbers& numbers) {
    Block result;
    for (const Statement& given : block) {
      if (given.kind == Kind::load && is_key(given.place)) {
        names_[given.value] = numbers.at({given.place.memory, given.place.offset});
        continue;
      }
      if (given.kind == Kind::store && is_key(given.place)) {
        numbers[{given.place.memory, given.place.offset}] = named(names_, given.operands[0]);
        continue;
      }
      Statement s = given;
      if (s.kind == Kind::branch)
        branch(s, numbers);
      else if (s.kind == Kind::repeat || s.kind == Kind::loop)
        loop(s, numbers);
      else
        for (Block& inner : s.blocks) inner = promoted(inner, numbers);
      for_each_use(s, [&](Value& value) { value = named(names_, value); });
      result.push_back(std::move(s));
    }
    return result;
  }

  void loop(Statement& s, Numbers& numbers) {
    const std::set<Key> keys = stored(s);
    Numbers inside = numbers;
    const std::size_t first = s.carries.size();
    for (const Key& key : keys) {
      const Value value = define(program_, dtype(key));
      s.carries.push_back({value, numbers.at(key), -1, define(program_, dtype(key))});
      inside[key] = value;
    }
    for (Block& block : s.blocks) block = promoted(block, inside);
    for (std::size_t i = s.exchanged.size(); i-- > 0;) {
      const auto [a, b] = s.exchanged[i];
      if (!is_numbers(a)) continue;
      for (const Key& key : keys)
        if (key.first == a) std::swap(inside[key], inside[{b, key.second}]);
      s.exchanged.erase(s.exchanged.begin() + std::ptrdiff_t(i));
      if (!s.regions.empty()) s.regions.erase(s.regions.begin() + std::ptrdiff_t(i));
    }
    std::size_t next = first;
    for (const Key& key : keys) {
      s.carries[next].next = inside.at(key);
      numbers[key] = s.carries[next++].last;
    }
  }

  void branch(Statement& s, Numbers& numbers) {
    const std::set<Key> keys = stored(s);
    std::vector<Numbers> ends(s.blocks.size(), numbers);
    for (std::size_t i = 0; i < s.blocks.size(); ++i) s.blocks[i] = promoted(s.blocks[i], ends[i]);
    for (const Key& key : keys) {
      Statement::Carry carry{define(program_, dtype(key)), -1, -1, -1};
      for (const Numbers& end : ends) carry.nexts.push_back(end.at(key));
      numbers[key] = carry.value;
      s.carries.push_back(std::move(carry));
    }
  }

  // Of the program, but for the loop itself; where it runs again, all that it reads.
  std::set<int> memories_read_outside() const {
    std::set<int> read;
    for (std::size_t i = 0; i < program_.memories.size(); ++i)
      if (program_.memories[i].space == Memory::Space::result ||
          program_.memories[i].space == Memory::Space::counts)
        read.insert(int(i));
    add_reads(program_.body, false, read);
    return read;
  }
  void add_reads(const Block& block, bool is_repeated, std::set<int>& read) const {
    for (const Statement& s : block) {
      const bool is_self = &s == &loop_;
      if (is_self && !is_repeated) continue;
      for_each_place(s, [&](const Place& place, bool is_write) {
        if (!is_write) read.insert(place.memory);
      });
      for (const auto& pair : s.exchanged) read.insert(pair.begin(), pair.end());
      for (const Block& inner : s.blocks)
        add_reads(inner, is_repeated || s.kind != Kind::branch, read);
    }
  }

  LoopProgram& program_;
  const Statement& loop_;
  std::map<int, std::vector<Place::Term>> terms_;  // by memory: of all its places
  std::set<Key> keys_;
  Names names_;
};

}  // namespace

void promote(LoopProgram& program) {
  Statement whole;
  whole.kind = Kind::repeat;
  whole.steps = 1;
  whole.blocks = {std::move(program.body)};
  program.body.clear();
  promote(program, whole);
  program.body = std::move(whole.blocks[0]);
}

void promote(LoopProgram& program, Statement& loop) {
  if (std::optional<Block> written_out = Unroller(program, loop).run(loop.blocks[0]))
    loop.blocks[0] = std::move(*written_out);
  keep_numbers(program, loop);
}

void keep_numbers(LoopProgram& program, Statement& loop) {
  loop.blocks[0] = Promoter(program, loop).run();
}

}  // namespace plait::codegen
