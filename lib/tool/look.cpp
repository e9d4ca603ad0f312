// plait summary, code and diff: saved programs looked into. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect.h>

#include <charconv>
#include <cstdio>

#include "tool/command.h"

namespace plait::tool {
namespace {

// A program with the numbers of --size n=32 for those of its sizes that these name.
Jaxpr sized(const Entry& entry, const Words& words) {
  std::map<std::string, Dim> sizes;
  for (const std::string& choice : words.values("--size")) {
    const std::size_t equals = choice.find('=');
    std::int64_t number = 0;
    const char* end = choice.data() + choice.size();
    if (equals == std::string::npos ||
        std::from_chars(choice.data() + equals + 1, end, number).ptr != end || number < 0 ||
        equals + 1 == choice.size())
      throw Usage("--size takes a name and a number, n=32, and not `" + choice + "`");
    const std::string name = choice.substr(0, equals);
    for (const Dim size : entry.jaxpr()->sizes)
      if (size.name() == name) sizes.insert_or_assign(name, Dim(number));
  }
  return sizes.empty() ? entry.jaxpr() : instantiate(entry.jaxpr(), sizes);
}

const Entry* find(const Program& program, const std::string& name) {
  for (const Entry& entry : program.entries())
    if (entry.name() == name) return &entry;
  return nullptr;
}

}  // namespace

int summarize(const Words& words) {
  for (const Entry& entry : entries_of(load(words[0]), words, 1)) {
    const Summary table = summary(sized(entry, words), entry.name());
    std::printf("%s\n", (words.has("--json") ? table.to_json() : table.to_string()).c_str());
  }
  return 0;
}

int code_of(const Words& words) {
  const Language language = words.has("--cpp") ? Language::cpp : Language::python;
  for (const Entry& entry : entries_of(load(words[0]), words, 1))
    std::printf("%s\n", code(entry.jaxpr(), language, entry.name()).text.c_str());
  return 0;
}

int diff_of(const Words& words) {
  const Program first = load(words[0]), second = load(words[1]);
  bool differ = false;
  for (const Entry& entry : entries_of(first, words, 2)) {
    const Entry* other = find(second, entry.name());
    const std::string text = other ? diff(entry.jaxpr(), other->jaxpr()).to_string()
                                   : "- the entry " + entry.name() + "\n";
    if (!text.empty()) std::printf("%s:\n%s", entry.name().c_str(), text.c_str());
    differ |= !text.empty();
  }
  for (const Entry& entry : second.entries()) {
    if (words.size() > 2 || find(first, entry.name())) continue;
    std::printf("%s:\n+ the entry %s\n", entry.name().c_str(), entry.name().c_str());
    differ = true;
  }
  return differ ? 1 : 0;
}

}  // namespace plait::tool
