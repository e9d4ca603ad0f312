// See manifest.h. Trees are written as "*" for a leaf, null for None, {"tuple": []}, {"list": []},
// {"dict": [], "keys": []} and {"record": [], "keys": [], "class": name}.
// SPDX-License-Identifier: Apache-2.0
#include "manifest.h"

#include <plait/base/error.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace plait {
namespace {

using Json = nlohmann::json;
constexpr int max_depth = 200, max_nodes = 1'000'000;

Json json_of(const TreeDef& tree) {
  Json children = Json::array();
  for (const TreeDef& child : tree.children()) children.push_back(json_of(child));
  switch (tree.kind()) {
    case TreeDef::Kind::leaf:
      return "*";
    case TreeDef::Kind::none:
      return nullptr;
    case TreeDef::Kind::tuple:
      return {{"tuple", std::move(children)}};
    case TreeDef::Kind::list:
      return {{"list", std::move(children)}};
    case TreeDef::Kind::dict:
      return {{"dict", std::move(children)}, {"keys", tree.keys()}};
    default:
      return {{"record", std::move(children)}, {"keys", tree.keys()}, {"class", tree.type().name}};
  }
}

class Reader {
 public:
  explicit Reader(const std::string& where) : where_(where) {}

  Manifest read(const std::string& text) {
    const auto bounded = [&](int depth, Json::parse_event_t, Json&) {
      if (depth > max_depth) fail("it is nested too deeply");
      if (++nodes_ > max_nodes) fail("it has too many parts");
      return true;
    };
    Json json = Json::parse(text.begin(), text.end(), bounded, false);
    if (!json.is_object()) fail("it is no JSON object");
    if (!json.contains("format") || !json["format"].is_number_unsigned()) fail("it says no format");
    const std::uint64_t format = json["format"].get<std::uint64_t>();
    if (format == 0 || format > std::uint64_t(program_format))
      throw ValueError(where_ + ": the file has format " + std::to_string(format) +
                           ", and this plait reads formats up to " + std::to_string(program_format),
                       "load it with a newer plait");
    Manifest manifest;
    manifest.format = int(format);
    upgrade_manifest(manifest.format, json);
    manifest.licence = text_of(json, "licence");
    manifest.meta = named_texts(json, "meta");
    manifest.checksums = named_texts(json, "checksums");
    std::set<std::string> names;
    for (const Json& entry : member(json, "entries", Json::value_t::array)) {
      manifest.entries.push_back(entry_of(entry));
      const std::string& name = manifest.entries.back().name;
      if (!names.insert(name).second) fail("there are two entries '" + name + "'");
    }
    return manifest;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError(where_ + ": " + what,
                     "the file is damaged, or is no .plait file; save it again");
  }
  const Json& member(const Json& json, const char* name, Json::value_t type) const {
    if (!json.is_object() || !json.contains(name) || json[name].type() != type)
      fail(std::string("it has no proper '") + name + "'");
    return json[name];
  }
  std::string text_of(const Json& json, const char* name) const {
    return member(json, name, Json::value_t::string).get<std::string>();
  }
  std::map<std::string, std::string> named_texts(const Json& json, const char* name) const {
    std::map<std::string, std::string> texts;
    for (const auto& [key, value] : member(json, name, Json::value_t::object).items()) {
      if (!value.is_string()) fail(std::string(name) + " '" + key + "' is no text");
      texts.emplace(key, value.get<std::string>());
    }
    return texts;
  }
  std::vector<std::string> texts_of(const Json& json, const char* name) const {
    std::vector<std::string> texts;
    for (const Json& text : member(json, name, Json::value_t::array)) {
      if (!text.is_string()) fail(std::string("a part of '") + name + "' is no text");
      texts.push_back(text.get<std::string>());
    }
    return texts;
  }
  Manifest::Entry entry_of(const Json& json) const {
    Manifest::Entry entry;
    entry.name = text_of(json, "name");
    entry.argument_names = texts_of(json, "argument_names");
    entry.constants = texts_of(json, "constants");
    entry.has_example = member(json, "example", Json::value_t::boolean).get<bool>();
    if (!json.contains("arguments") || !json.contains("result"))
      fail("entry '" + entry.name + "' has no arguments or no result");
    entry.arguments = tree_of(json["arguments"]);
    entry.result = tree_of(json["result"]);
    if (entry.arguments.kind() != TreeDef::Kind::tuple)
      fail("the arguments of entry '" + entry.name + "' are no tuple");
    return entry;
  }
  TreeDef tree_of(const Json& json) const {
    if (json.is_null()) return TreeDef::none();
    if (json.is_string() && json.get<std::string>() == "*") return TreeDef();
    for (const char* kind : {"tuple", "list", "dict", "record"}) {
      if (!json.is_object() || !json.contains(kind)) continue;
      std::vector<TreeDef> children;
      for (const Json& child : member(json, kind, Json::value_t::array))
        children.push_back(tree_of(child));
      if (kind == std::string("tuple")) return TreeDef::tuple(std::move(children));
      if (kind == std::string("list")) return TreeDef::list(std::move(children));
      std::vector<std::string> keys = texts_of(json, "keys");
      if (keys.size() != children.size()) fail("a tree has not a key for each part");
      if (std::set<std::string>(keys.begin(), keys.end()).size() != keys.size())
        fail("a tree has a key twice");
      // Leaves of a dict are in the order of its keys.
      if (kind == std::string("dict") && !std::is_sorted(keys.begin(), keys.end()))
        fail("a dict has its keys in another order than theirs");
      if (kind == std::string("dict")) return TreeDef::dict(std::move(keys), std::move(children));
      return TreeDef::record({text_of(json, "class"), nullptr, nullptr, nullptr}, std::move(keys),
                             std::move(children));
    }
    fail("a tree has a part of no known kind");
  }

  const std::string& where_;
  int nodes_ = 0;
};

}  // namespace

std::string to_json(const Manifest& manifest) {
  Json entries = Json::array();
  for (const Manifest::Entry& entry : manifest.entries)
    entries.push_back({{"name", entry.name},
                       {"arguments", json_of(entry.arguments)},
                       {"result", json_of(entry.result)},
                       {"argument_names", entry.argument_names},
                       {"constants", entry.constants},
                       {"example", entry.has_example}});
  const Json json{{"format", unsigned(program_format)},    {"plait", PLAIT_VERSION},
                  {"licence", manifest.licence},           {"meta", Json(manifest.meta)},
                  {"checksums", Json(manifest.checksums)}, {"entries", std::move(entries)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& where) {
  return Reader(where).read(text);
}

}  // namespace plait
