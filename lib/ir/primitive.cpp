// The registry of primitives and rule tables. See primitive.h.
//
// Everything here is made on first use and never destroyed. So registration is safe from static
// initialisers of any library, in any order, and so is use at exit.
// SPDX-License-Identifier: Apache-2.0
#include "ir/operands.h"

#include <plait/ir/abstract.h>
#include <plait/ir/primitive.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

namespace plait {
namespace {

struct Registry {
  std::recursive_mutex mutex;
  std::map<std::string, int, std::less<>> indices;
  std::map<std::string, PrimitiveInfo, std::less<>> infos;
  std::map<std::string, AnyRuleTable*, std::less<>> tables;
};

Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

// "lib/primitives/elementwise/unary.cpp" from any path given to the compiler.
std::string short_path(std::string_view file) {
  for (std::string_view top : {"lib/", "transforms/", "examples/", "tests/"})
    if (auto at = file.rfind(top); at != std::string_view::npos)
      return std::string(file.substr(at));
  return std::string(file);
}

}  // namespace

int Primitive::index() const {
  int index = index_.load(std::memory_order_acquire);
  if (index >= 0) return index;
  std::lock_guard lock(registry().mutex);
  auto [entry, added] =
      registry().indices.try_emplace(std::string(name_), int(registry().indices.size()));
  if (added && entry->second >= max_primitives)
    throw ValueError("more than " + std::to_string(max_primitives) + " primitives are defined",
                     "define fewer primitives");
  index_.store(entry->second, std::memory_order_release);
  return entry->second;
}

AnyRuleTable::AnyRuleTable(std::string_view kind) : kind_(kind) {
  std::lock_guard lock(registry().mutex);
  registry().tables[kind_] = this;
}

AnyRuleTable* AnyRuleTable::find(std::string_view kind) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().tables.find(kind);
  return found == registry().tables.end() ? nullptr : found->second;
}

std::vector<AnyRuleTable*> AnyRuleTable::all() {
  std::lock_guard lock(registry().mutex);
  std::vector<AnyRuleTable*> tables;
  for (auto& [name, table] : registry().tables) tables.push_back(table);
  return tables;
}

void AnyRuleTable::check_redefinition(const Primitive& primitive, const RuleOrigin& old,
                                      const RuleOrigin& now) {
  if (old.kind == RuleOrigin::Kind::family) return;
  if (old.file == now.file && old.line == now.line) return;  // the same statement run again
  throw ValueError("the " + kind_ + " rule of `" + std::string(primitive.name()) +
                       "` is defined twice: at " + short_path(old.file) + ":" +
                       std::to_string(old.line) + " and at " + short_path(now.file) + ":" +
                       std::to_string(now.line),
                   "define a rule where the primitive is or where the transform is, once");
}

Definition::Definition(const Primitive& primitive, std::string doc, const char* file, int line)
    : primitive_(&primitive) {
  std::lock_guard lock(registry().mutex);
  PrimitiveInfo& info = registry().infos[std::string(primitive.name())];
  if (info.primitive && (info.file != file || info.line != line))
    throw ValueError("the primitive `" + std::string(primitive.name()) + "` is defined twice: at " +
                         short_path(info.file) + ":" + std::to_string(info.line) + " and at " +
                         short_path(file) + ":" + std::to_string(line),
                     "choose another name");
  info = {&primitive, std::move(doc), file, line, {}};
  primitive.index();
}

Definition& Definition::family(const Family& family) {
  const bool outer = std::exchange(in_family_, true);  // a family may build on another
  family.apply(*this);
  in_family_ = outer;
  std::lock_guard lock(registry().mutex);
  registry().infos[std::string(primitive_->name())].family = family.name;
  return *this;
}

Definition& Definition::effectful() {
  primitive_->effectful_ = true;
  return *this;
}

Definition& Definition::operands(int number) {
  primitive_->max_operands_ = number;
  return operands_at_least(number);
}

Definition& Definition::operands_at_least(int number) {
  primitive_->min_operands_ = number;
  return *this;
}

Definition& Definition::overwrites(int operand) {
  primitive_->overwritten_ = operand;
  return *this;
}

Definition& Definition::takes_stored() {
  primitive_->takes_stored_ = true;
  return *this;
}

Definition& Definition::states_varying() {
  primitive_->states_varying_ = true;
  return *this;
}

void require_operands(const Primitive& primitive, std::size_t count) {
  const bool too_few = count < std::size_t(primitive.min_operands());
  if (!too_few && count <= std::size_t(primitive.max_operands())) return;
  throw ValueError("`" + std::string(primitive.name()) + "` has " + std::to_string(count) +
                       " operands and takes " + std::to_string(primitive.min_operands()),
                   too_few ? "give it all its operands" : "leave out the others");
}

RuleOrigin Definition::origin(const char* file, int line) const {
  return {in_family_ ? RuleOrigin::Kind::family : RuleOrigin::Kind::stated, file, line, {}};
}

const PrimitiveInfo& info_of(const Primitive& primitive) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().infos.find(primitive.name());
  if (found == registry().infos.end())
    throw InternalError("the primitive `" + std::string(primitive.name()) + "` is not defined");
  return found->second;
}

const Primitive* find_primitive(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().infos.find(name);
  return found == registry().infos.end() ? nullptr : found->second.primitive;
}

std::vector<const PrimitiveInfo*> all_primitives() {
  std::lock_guard lock(registry().mutex);
  std::vector<const PrimitiveInfo*> all;
  for (auto& [name, info] : registry().infos) all.push_back(&info);
  return all;
}

void throw_missing_rule(const AnyRuleTable& table, const Primitive& primitive) {
  const std::string name(primitive.name()), kind(table.kind());
  const RuleOrigin* origin = table.origin(primitive);
  if (origin && origin->kind == RuleOrigin::Kind::refused)
    throw MissingRuleError(
        "`" + name + "` refuses " + kind + ": " + origin->reason,
        "rewrite the function without `" + name + "` here, or give it a custom rule");
  throw MissingRuleError(
      "`" + name + "` has no " + kind + " rule",
      "add .rule<" + kind + "> to its definition, or a decomposition into other primitives");
}

std::vector<Coverage> coverage(std::string_view kind) {
  const AnyRuleTable* table = AnyRuleTable::find(kind);
  if (!table) {
    std::string kinds;
    for (AnyRuleTable* each : AnyRuleTable::all())
      kinds += (kinds.empty() ? "" : ", ") + std::string(each->kind());
    throw ValueError("there is no rule kind '" + std::string(kind) + "'", "choose one of " + kinds);
  }
  const AnyRuleTable* decompositions = AnyRuleTable::find("decompose");
  // Primitives that hold jaxprs state jvp through linearize, and cost what their bodies cost.
  const AnyRuleTable* instead = kind == "jvp"    ? AnyRuleTable::find("linearize")
                                : kind == "cost" ? AnyRuleTable::find("bodies")
                                                 : nullptr;
  std::vector<Coverage> lines;
  for (const PrimitiveInfo* info : all_primitives()) {
    const RuleOrigin* origin = table->origin(*info->primitive);
    if (!origin && instead) origin = instead->origin(*info->primitive);
    Coverage line{std::string(info->primitive->name()), "missing", short_path(info->file),
                  info->line};
    if (origin) {
      line.file = short_path(origin->file);
      line.line = origin->line;
      line.state = origin->kind == RuleOrigin::Kind::refused  ? "refused: " + origin->reason
                   : origin->kind == RuleOrigin::Kind::family ? "family " + info->family
                                                              : "rule";
    } else if (decompositions && decompositions->origin(*info->primitive)) {
      line.state = "decompose";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

PLAIT_RULE_TABLE(Abstract)
PLAIT_RULE_TABLE(Identity)
PLAIT_RULE_TABLE(Fold)

}  // namespace plait
