// Primitives, and the rules that define them.
//
// A Primitive is a name with identity. A rule kind is a type K with `name`, `Rule`, and `table()`;
// RuleTable<K> maps primitives to rules. Tables are keyed by the primitive's name, live as long as
// the program, and hold a pair at most once: a rule that a family supplied gives way to a stated
// one, and a redefinition from the same place (a notebook cell) replaces.
//
//   constinit const Primitive tanh_p{"tanh"};
//   static const auto tanh_def = define(tanh_p, "Hyperbolic tangent.")
//       .family(elementwise(floating))
//       .rule<Jvp>(unary([](auto, auto y) { return 1.0 - y * y; }));
//
// Recipes for a new primitive, transform and backend are code: examples/new_primitive.cpp,
// examples/new_transform.cpp, examples/new_backend.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>
#include <plait/ir/params.h>

#include <array>
#include <atomic>
#include <climits>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

inline constexpr int max_primitives = 4096;

class Primitive {
 public:
  explicit constexpr Primitive(const char* name) : name_(name) {}
  Primitive(const Primitive&) = delete;
  std::string_view name() const { return name_; }
  // The place of this name in every rule table; the same for equal names.
  int index() const;
  // The facts that its definition states: whether it is never merged, dropped or reordered; the
  // smallest and the largest number of operands; the operand whose memory Eval may use for the
  // result, or -1; whether it takes elements of stored dtypes (NOTE: [stored dtypes]); and whether
  // its Abstract rule says itself along which axes of a mesh results vary: those of others vary
  // where an operand does.
  bool is_effectful() const { return effectful_.load(std::memory_order_relaxed); }
  int min_operands() const { return min_operands_.load(std::memory_order_relaxed); }
  int max_operands() const { return max_operands_.load(std::memory_order_relaxed); }
  int overwritten() const { return overwritten_.load(std::memory_order_relaxed); }
  bool takes_stored() const { return takes_stored_.load(std::memory_order_relaxed); }
  bool states_varying() const { return states_varying_.load(std::memory_order_relaxed); }
  bool operator==(const Primitive& other) const {
    return this == &other || index() == other.index();
  }

 private:
  const char* name_;
  friend class Definition;
  mutable std::atomic<int> index_{-1}, min_operands_{0}, max_operands_{INT_MAX}, overwritten_{-1};
  mutable std::atomic<bool> effectful_{false}, takes_stored_{false}, states_varying_{false};
};

// The place where a rule is defined, for coverage tables and for detecting double definitions.
struct RuleOrigin {
  enum class Kind { stated, family, refused } kind = Kind::stated;
  std::string file;
  int line = 0;
  std::string reason;  // of a refusal
};

class AnyRuleTable {
 public:
  explicit AnyRuleTable(std::string_view kind);
  std::string_view kind() const { return kind_; }
  virtual const RuleOrigin* origin(const Primitive& primitive) const = 0;
  // Every table made so far, by kind name.
  static AnyRuleTable* find(std::string_view kind);
  static std::vector<AnyRuleTable*> all();

 protected:
  ~AnyRuleTable() = default;
  // Throws when a second definition of a pair comes from another place.
  void check_redefinition(const Primitive& primitive, const RuleOrigin& old, const RuleOrigin& now);

 private:
  std::string kind_;
};

template <class Kind>
class RuleTable final : public AnyRuleTable {
 public:
  using Rule = typename Kind::Rule;
  RuleTable() : AnyRuleTable(Kind::name) {}

  const Rule* find(const Primitive& primitive) const {
    const Entry* entry = entries_[primitive.index()].load(std::memory_order_acquire);
    return entry && entry->origin.kind != RuleOrigin::Kind::refused ? &entry->rule : nullptr;
  }
  const RuleOrigin* origin(const Primitive& primitive) const override {
    const Entry* entry = entries_[primitive.index()].load(std::memory_order_acquire);
    return entry ? &entry->origin : nullptr;
  }
  void set(const Primitive& primitive, Rule rule, RuleOrigin origin) {
    auto& slot = entries_[primitive.index()];
    const Entry* old = slot.load(std::memory_order_acquire);
    if (old) {
      if (origin.kind == RuleOrigin::Kind::family) return;
      check_redefinition(primitive, old->origin, origin);
    }
    // The old entry stays, because another thread may be using it.
    slot.store(new Entry{std::move(rule), std::move(origin), old}, std::memory_order_release);
  }

 private:
  struct Entry {
    Rule rule;
    RuleOrigin origin;
    const Entry* replaced;
  };
  std::array<std::atomic<const Entry*>, max_primitives> entries_{};
};

// Defines the table of a kind that declares `static RuleTable<Kind>& table()`: in one source file,
// so that every library shares it. A static of a template would be one for each library.
#define PLAIT_RULE_TABLE(Kind)                               \
  ::plait::RuleTable<Kind>& Kind::table() {                  \
    static auto* const table = new ::plait::RuleTable<Kind>; \
    return *table;                                           \
  }

// What a definition says besides its rules.
struct PrimitiveInfo {
  const Primitive* primitive = nullptr;
  std::string doc, file;
  int line = 0;
  std::string family;
};

class Definition;
// Supplies the rules that a whole family shares.
struct Family {
  std::string name;
  std::function<void(Definition&)> apply;
};

class Definition {
 public:
  Definition(const Primitive& primitive, std::string doc, const char* file, int line);

  Definition& family(const Family& family);
  template <class Kind>
  Definition& rule(typename Kind::Rule rule, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
    Kind::table().set(*primitive_, std::move(rule), origin(file, line));
    return *this;
  }
  // States that there will be no such rule, and why; the reason is part of the user's error.
  template <class Kind>
  Definition& refuse(std::string reason, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) {
    RuleOrigin refused = origin(file, line);
    refused.kind = RuleOrigin::Kind::refused;
    refused.reason = std::move(reason);
    Kind::table().set(*primitive_, {}, std::move(refused));
    return *this;
  }
  Definition& effectful();
  // States the number of operands, or the least number, so that no rule sees another.
  Definition& operands(int number);
  Definition& operands_at_least(int number);
  // States that Eval may get the memory of this operand for its result, which has as many bytes,
  // and then writes only what differs. Nothing reads the operand later.
  Definition& overwrites(int operand);
  // States that it moves elements of any dtype, and computes with none of them.
  Definition& takes_stored();
  // States that its Abstract rule says along which axes of a mesh each result varies.
  Definition& states_varying();
  const Primitive& primitive() const { return *primitive_; }

 private:
  RuleOrigin origin(const char* file, int line) const;
  const Primitive* primitive_;
  bool in_family_ = false;
};

inline Definition define(const Primitive& primitive, std::string doc,
                         const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return Definition(primitive, std::move(doc), file, line);
}

const PrimitiveInfo& info_of(const Primitive& primitive);  // InternalError when undefined
const Primitive* find_primitive(std::string_view name);    // nullptr when undefined
std::vector<const PrimitiveInfo*> all_primitives();        // in order of name

// Throws MissingRuleError: "no `kind` rule for `primitive`", with the reason of a refusal.
[[noreturn]] void throw_missing_rule(const AnyRuleTable& table, const Primitive& primitive);

// The rule of a primitive, or the error that names it.
template <class Kind>
const typename Kind::Rule& rule(const Primitive& primitive) {
  if (const auto* found = Kind::table().find(primitive)) return *found;
  throw_missing_rule(Kind::table(), primitive);
}

// Rules for one kind over many primitives, as a transform's own file states them:
//   static const auto interval_rules = rules<Interval>().on(add_p, ...).on(neg_p, ...);
template <class Kind>
struct Rules {
  Rules& on(const Primitive& primitive, typename Kind::Rule rule,
            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    Kind::table().set(primitive, std::move(rule), {RuleOrigin::Kind::stated, file, line, {}});
    return *this;
  }
};
template <class Kind>
Rules<Kind> rules() {
  return {};
}

// One line a primitive: "tanh  rule lib/primitives/elementwise/unary.cpp:42", `family`,
// `decompose`, `refused: reason` or `missing`.
struct Coverage {
  std::string primitive, state, file;
  int line;
};
std::vector<Coverage> coverage(std::string_view kind);  // ValueError lists the kinds that exist

}  // namespace plait
