// Parses the words of a command, and names things for verbs. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "tool/command.h"

namespace plait::tool {

Arguments::Arguments(const Verb& verb, std::span<const std::string> words) {
  bool only_operands = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (only_operands || word.size() < 2 || word[0] != '-') {
      operands_.push_back(word);
      continue;
    }
    if (word == "--") {
      only_operands = true;
      continue;
    }
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const Option* option = nullptr;
    for (const Option& known : verb.options)
      if (name == known.name) option = &known;
    if (!option) {
      std::vector<std::string> names;
      for (const Option& known : verb.options) names.push_back(known.name);
      throw Usage("there is no option " + name + nearest(name, names));
    }
    std::string value;
    if (equals != std::string::npos) {
      if (!option->value) throw Usage(name + " takes no value");
      value = word.substr(equals + 1);
    } else if (option->value) {
      if (++i == words.size()) throw Usage(name + " needs a value: " + option->value);
      value = words[i];
    }
    options_[name].push_back(std::move(value));
  }
  if (int(operands_.size()) < verb.least) throw Usage("operands are missing");
  if (int(operands_.size()) > verb.most)
    throw Usage("there are too many operands, from `" + operands_[std::size_t(verb.most)] + "` on");
}

std::vector<std::string> Arguments::values(std::string_view option) const {
  const auto found = options_.find(std::string(option));
  return found == options_.end() ? std::vector<std::string>{} : found->second;
}

std::string Arguments::value(std::string_view option, std::string otherwise) const {
  const std::vector<std::string> all = values(option);
  return all.empty() ? otherwise : all.back();
}

std::int64_t Arguments::number(std::string_view option, std::int64_t otherwise) const {
  if (!has(option)) return otherwise;
  const std::string text = value(option);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw Usage(std::string(option) + " needs a whole number, not `" + text + "`");
  return number;
}

std::vector<Entry> entries_of(const Program& program, const Arguments& arguments, std::size_t at) {
  if (arguments.size() > at) return {program[arguments[at]]};
  return program.entries();
}

std::string input_name(const Entry& entry, int i) {
  const std::vector<TreeDef>& arguments = entry.arguments().children();
  const std::vector<std::string>& names = entry.argument_names();
  int first = 0;
  for (std::size_t a = 0; a < arguments.size(); first += arguments[a++].num_leaves())
    if (i < first + arguments[a].num_leaves())
      return (a < names.size() ? names[a] : "argument" + std::to_string(a)) +
             arguments[a].path(i - first);
  return "input" + std::to_string(i);
}

std::string output_name(const Entry& entry, int i) { return "result" + entry.result().path(i); }

std::string counted(std::int64_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1000) return counted(bytes, "byte");
  double number = double(bytes);
  const char* unit = "";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (number < 1000) break;
    number /= 1000;
    unit = next;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", number, unit);
  return text;
}

std::string seconds_text(double seconds) {
  const char* unit = "s";
  for (const char* next : {"ms", "us", "ns"}) {
    if (seconds >= 1) break;
    seconds *= 1000;
    unit = next;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %s", seconds, unit);
  return text;
}

std::string nearest(const std::string& word, std::span<const std::string> names) {
  // Levenshtein distance: the least number of inserted, deleted or replaced letters.
  const auto distance = [&](const std::string& name) {
    std::vector<std::size_t> row(name.size() + 1);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (std::size_t i = 0; i < word.size(); ++i) {
      std::size_t diagonal = row[0]++;
      for (std::size_t j = 0; j < name.size(); ++j) {
        const std::size_t changed = diagonal + (word[i] != name[j]);
        diagonal = row[j + 1];
        row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
      }
    }
    return row.back();
  };
  const std::string* best = nullptr;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : names)
    if (const std::size_t far = distance(name); far < least && far < name.size())
      least = far, best = &name;
  return best ? " (did you mean `" + *best + "`?)" : "";
}

}  // namespace plait::tool
