// plait diff: how two programs differ, by equation. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/inspect.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tool/command.h"

namespace plait::tool {
namespace {

bool same_array(const Array& a, const Array& b) {
  if (!(a.aval() == b.aval())) return false;
  const Buffer left = a.host_buffer().dense(), right = b.host_buffer().dense();
  return left.bytes() == 0 ||
         std::memcmp(left.data(), right.data(), std::size_t(left.bytes())) == 0;
}

// Constants by name; equations show those that only one program has.
std::string constants_text(const Entry& first, const Entry& second) {
  std::string text;
  for (std::size_t i = 0; i < first.constants().size(); ++i)
    for (std::size_t k = 0; k < second.constants().size(); ++k)
      if (first.constant_names()[i] == second.constant_names()[k] &&
          !same_array(first.constants()[i], second.constants()[k]))
        text += "the constant " + first.constant_names()[i] + " has other values\n";
  return text;
}

// "" where they are equal.
std::string difference_text(const Entry& first, const Entry& second) {
  const std::string constants = constants_text(first, second);
  const Difference difference = plait::diff(first.jaxpr(), second.jaxpr());
  return difference ? difference.to_string() + constants : constants;
}

const Entry* find(const std::vector<Entry>& entries, const std::string& name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.name() == name; });
  return found == entries.end() ? nullptr : &*found;
}

// Prints nothing where they are equal.
bool print(const std::string& name, const std::string& difference) {
  if (!difference.empty()) std::printf("%s:\n%s", name.c_str(), difference.c_str());
  return difference.empty();
}

}  // namespace

int diff(const Arguments& arguments) {
  const std::vector<Entry> first = entries_of(load(arguments[0]), arguments, 2);
  const std::vector<Entry> second = entries_of(load(arguments[1]), arguments, 2);
  if (first.size() == 1 && second.size() == 1 && arguments.size() == 2)  // whatever their names
    return print(first[0].name(), difference_text(first[0], second[0])) ? 0 : 1;
  bool is_equal = true;
  for (const Entry& entry : first) {
    const Entry* other = find(second, entry.name());
    is_equal &= print(entry.name(), other ? difference_text(entry, *other)
                                          : "- the entry " + entry.name() + "\n");
  }
  for (const Entry& entry : second)
    if (!find(first, entry.name()))
      is_equal &= print(entry.name(), "+ the entry " + entry.name() + "\n");
  return is_equal ? 0 : 1;
}

}  // namespace plait::tool
