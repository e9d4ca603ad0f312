// Structures of nested containers. See tree.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/base/tree.h>

#include <algorithm>
#include <charconv>

namespace plait {

struct TreeDef::Node {
  Kind kind;
  Type type;
  std::vector<std::string> keys;
  std::vector<TreeDef> children;
  int num_leaves;
  std::size_t hash;
};

TreeDef TreeDef::make(Kind kind, Type type, std::vector<std::string> keys,
                      std::vector<TreeDef> children) {
  int leaves = kind == Kind::leaf ? 1 : 0;
  std::size_t hash = std::size_t(kind) * 31 + std::hash<void*>{}(type.type.get());
  for (const std::string& key : keys) hash = hash * 1000003 + std::hash<std::string>{}(key);
  for (const TreeDef& child : children) {
    leaves += child.num_leaves();
    hash = hash * 1000003 + child.hash();
  }
  return TreeDef(std::make_shared<const Node>(
      Node{kind, std::move(type), std::move(keys), std::move(children), leaves, hash}));
}

TreeDef::TreeDef() {
  // Never destroyed: threads may outlive main.
  static const auto& leaf = *new std::shared_ptr<const Node>(make(Kind::leaf, {}, {}, {}).node_);
  node_ = leaf;
}
TreeDef TreeDef::none() { return make(Kind::none, {}, {}, {}); }
TreeDef TreeDef::tuple(std::vector<TreeDef> children) {
  return make(Kind::tuple, {}, {}, std::move(children));
}
TreeDef TreeDef::list(std::vector<TreeDef> children) {
  return make(Kind::list, {}, {}, std::move(children));
}
TreeDef TreeDef::dict(std::vector<std::string> keys, std::vector<TreeDef> children) {
  return make(Kind::dict, {}, std::move(keys), std::move(children));
}
TreeDef TreeDef::dict(std::vector<std::string> keys, std::vector<TreeDef> children, Type type) {
  return make(Kind::dict, std::move(type), std::move(keys), std::move(children));
}
TreeDef TreeDef::record(Type type, std::vector<std::string> fields, std::vector<TreeDef> children) {
  return make(Kind::record, std::move(type), std::move(fields), std::move(children));
}
TreeDef TreeDef::fields(std::string_view type, std::span<const std::string_view> names,
                        std::vector<TreeDef> children) {
  std::vector<std::string> keys(names.begin(), names.end());
  for (std::size_t i = keys.size(); i < children.size(); ++i) keys.push_back(std::to_string(i));
  return record({std::string(type), nullptr, nullptr, nullptr}, std::move(keys),
                std::move(children));
}

TreeDef::Kind TreeDef::kind() const { return node_->kind; }
const TreeDef::Type& TreeDef::type() const { return node_->type; }
const std::vector<std::string>& TreeDef::keys() const { return node_->keys; }
const std::vector<TreeDef>& TreeDef::children() const { return node_->children; }
int TreeDef::num_leaves() const { return node_->num_leaves; }
std::size_t TreeDef::hash() const { return node_->hash; }

namespace {

std::string step(const TreeDef& node, std::size_t child) {
  switch (node.kind()) {
    case TreeDef::Kind::dict:
      return "['" + node.keys()[child] + "']";
    case TreeDef::Kind::record:
      return node.keys()[child].starts_with("[") ? node.keys()[child] : "." + node.keys()[child];
    default:
      return "[" + std::to_string(child) + "]";
  }
}

}  // namespace

std::string TreeDef::path(int index) const {
  for (std::size_t i = 0; i < children().size(); ++i) {
    if (index < children()[i].num_leaves()) return step(*this, i) + children()[i].path(index);
    index -= children()[i].num_leaves();
  }
  return "";
}

std::string TreeDef::to_string() const {
  std::string inside;
  for (std::size_t i = 0; i < children().size(); ++i) {
    if (i) inside += ", ";
    if (kind() == Kind::dict) inside += "'" + keys()[i] + "': ";
    if (kind() == Kind::record) inside += keys()[i] + "=";
    inside += children()[i].to_string();
  }
  switch (kind()) {
    case Kind::leaf:
      return "*";
    case Kind::none:
      return "None";
    case Kind::tuple:
      return "(" + inside + (children().size() == 1 ? ",)" : ")");
    case Kind::list:
      return "[" + inside + "]";
    case Kind::dict:
      return "{" + inside + "}";
    default:
      return is_constant() ? type().name : type().name + "(" + inside + ")";
  }
}

bool TreeDef::has_names() const {
  if (kind() == Kind::dict) return true;
  return kind() == Kind::record && !keys().empty() && keys()[0].find_first_of("[0123456789") != 0;
}

bool TreeDef::is_constant() const {
  return kind() == Kind::record && children().empty() && type().aux && !type().type;
}

std::vector<int> TreeDef::places_of(std::span<const std::string_view> names,
                                    std::size_t count) const {
  const bool has_parts = kind() != Kind::leaf && kind() != Kind::none && !is_constant();
  if (!has_parts || children().size() != count)
    throw_misfit(*this, "does not have " + std::to_string(count) + " parts");
  std::vector<int> places;
  for (std::size_t i = 0; i < count; ++i) places.push_back(int(i));
  if (!has_names()) return places;
  if (names.size() != count)
    throw TreeError("a value of structure " + to_string() +
                        " has parts by name, and the names of the C++ struct's fields are not "
                        "known",
                    "declare them: static constexpr auto plait_fields = plait::fields(\"" +
                        (keys().empty() ? "" : keys()[0]) +
                        "\", &S::" + (keys().empty() ? "" : keys()[0]) + ", ...)");
  for (std::size_t i = 0; i < count; ++i) {
    const auto found = std::find(keys().begin(), keys().end(), names[i]);
    if (found == keys().end()) throw_misfit(*this, "has no part '" + std::string(names[i]) + "'");
    places[i] = int(found - keys().begin());
    if (std::find(places.begin(), places.begin() + std::ptrdiff_t(i), places[i]) !=
        places.begin() + std::ptrdiff_t(i))
      throw_misfit(*this, "is to give '" + std::string(names[i]) + "' twice");
  }
  return places;
}

void throw_misfit(const TreeDef& structure, std::string_view what) {
  throw TreeError("a value of structure " + structure.to_string() +
                      " does not fit the C++ type: it " + std::string(what),
                  "use one structure throughout");
}

std::string number_text(double value) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

bool TreeDef::operator==(const TreeDef& other) const {
  if (node_ == other.node_) return true;
  if (hash() != other.hash() || kind() != other.kind() || type().type != other.type().type ||
      keys() != other.keys() || children().size() != other.children().size())
    return false;
  if (type().aux != other.type().aux &&
      (!type().same_aux || !type().aux || !other.type().aux ||
       !type().same_aux(type().aux.get(), other.type().aux.get())))
    return false;
  for (std::size_t i = 0; i < children().size(); ++i)
    if (!(children()[i] == other.children()[i])) return false;
  return true;
}

namespace {

void match_prefix(const TreeDef& prefix, const TreeDef& structure, const std::string& path,
                  const std::string& what, int& leaf, std::vector<int>& result) {
  if (prefix.kind() == TreeDef::Kind::leaf) {
    result.insert(result.end(), structure.num_leaves(), leaf++);
    return;
  }
  // Lists and tuples both count as sequences here, because users write in_axes=[0, None].
  auto is_sequence = [](const TreeDef& def) {
    return def.kind() == TreeDef::Kind::tuple || def.kind() == TreeDef::Kind::list;
  };
  const bool same =
      (prefix.kind() == structure.kind() || (is_sequence(prefix) && is_sequence(structure))) &&
      prefix.keys() == structure.keys() && prefix.children().size() == structure.children().size();
  if (!same)
    throw TreeError(
        what + " does not fit the arguments" + (path.empty() ? "" : " at " + path) + ": " +
            prefix.to_string() + " against " + structure.to_string(),
        "give a prefix of the arguments' structure, such as one value for each argument");
  for (std::size_t i = 0; i < prefix.children().size(); ++i)
    match_prefix(prefix.children()[i], structure.children()[i], path + step(structure, i), what,
                 leaf, result);
}

}  // namespace

std::vector<int> broadcast_prefix(const TreeDef& prefix, const TreeDef& structure,
                                  const std::string& what) {
  std::vector<int> result;
  int leaf = 0;
  match_prefix(prefix, structure, "", what, leaf, result);
  return result;
}

}  // namespace plait
