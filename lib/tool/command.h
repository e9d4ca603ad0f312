// The command line `plait`: a table of verbs, each in a file of its own.
//
// A verb says its usage and its options, and gets the words that follow it, taken apart. It prints
// to standard output and returns the exit code: 0 fine, 1 the answer is no. What it throws is
// printed to standard error: Usage exits with 2, any other error with 1.
//
// To add a verb: a file with its function, a line here, a row in verbs.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/program.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait::tool {

// Words that make no command.
struct Usage : std::exception {
  explicit Usage(std::string what) : text(std::move(what)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

struct Option {
  const char* name;   // "--sources", "-o"
  const char* value;  // what follows it, "FILE"; nullptr for none
  const char* help;
};

class Words;

struct Verb {
  const char* name;
  const char* operands;  // "FILE [ENTRY]"
  int least, most;       // how many operands
  const char* summary;   // one line, for the list
  const char* details;   // more lines, for its own help; "" for none
  std::vector<Option> options;
  int (*run)(const Words& words);
};

std::span<const Verb> verbs();  // in the order of the help

// What follows a verb: operands, and options in any order. "--name=value" is "--name value"; after
// "--" all are operands.
class Words {
 public:
  Words(const Verb& verb, std::span<const std::string> words);  // Usage
  const std::string& operator[](std::size_t i) const { return operands_[i]; }
  std::size_t size() const { return operands_.size(); }
  bool has(std::string_view option) const { return options_.count(std::string(option)) > 0; }
  // All values of an option that may be given several times.
  std::vector<std::string> values(std::string_view option) const;
  // The last one, or what is used without.
  std::string value(std::string_view option, std::string otherwise = {}) const;
  std::int64_t number(std::string_view option, std::int64_t otherwise) const;  // Usage

 private:
  std::vector<std::string> operands_;
  std::map<std::string, std::vector<std::string>> options_;
};

int info(const Words& words);
int show(const Words& words);
int check(const Words& words);
int code(const Words& words);
int conformance(const Words& words);
int summary(const Words& words);
int diff(const Words& words);
int draw(const Words& words);
int run(const Words& words);
int profile(const Words& words);
int bench(const Words& words);
int strip(const Words& words);
int upgrade(const Words& words);
int completions(const Words& words);

// The entries that the words ask for: the one named by operand `at`, or all.
std::vector<Entry> entries_of(const Program& program, const Words& words, std::size_t at);
// "weights['w']" of the i-th leaf of an entry's arguments, or of its result: "result[0]".
std::string input_name(const Entry& entry, int i);
std::string output_name(const Entry& entry, int i);
// "1 equation", "2 equations"
std::string counted(std::int64_t count, const std::string& noun);
std::string bytes_text(std::int64_t bytes);  // "12.3 MB"
std::string seconds_text(double seconds);    // "12.3 us"
// " (did you mean `show`?)" of `shwo`; "" where none of the names is near.
std::string nearest(const std::string& word, std::span<const std::string> names);

}  // namespace plait::tool
