// The command line `plait`: a table of verbs, each in a file of its own.
//
// A verb states its usage and its options, and receives the parsed words that follow it. It prints
// to standard output and returns the exit code: 0 for success, 1 for a negative answer. An
// exception is printed to standard error: Usage exits with 2, any other error with 1.
//
// To add a verb: a file with its function, a line here, a row in verbs.cpp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/program/program.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait::tool {

// Words that do not form a valid command.
struct Usage : std::exception {
  explicit Usage(std::string what) : text(std::move(what)) {}
  const char* what() const noexcept override { return text.c_str(); }
  std::string text;
};

struct Option {
  const char* name;   // "--sources", "-o"
  const char* value;  // the name of its argument, "FILE"; nullptr if it has none
  const char* help;
};

class Arguments;

struct Verb {
  const char* name;
  const char* operands;  // "FILE [ENTRY]"
  int least, most;       // the number of operands
  const char* summary;   // one line, for the list
  const char* details;   // more lines, for its own help; "" for none
  std::vector<Option> options;
  int (*run)(const Arguments& arguments);
};

std::span<const Verb> verbs();  // in the order of the help

// The parsed words after a verb: operands, and options in any order. "--name=value" is "--name
// value"; after "--" all words are operands.
class Arguments {
 public:
  Arguments(const Verb& verb, std::span<const std::string> words);  // Usage
  const std::string& operator[](std::size_t i) const { return operands_[i]; }
  std::size_t size() const { return operands_.size(); }
  bool has(std::string_view option) const { return options_.count(std::string(option)) > 0; }
  // All values of an option that may be given several times.
  std::vector<std::string> values(std::string_view option) const;
  // The last value, or the default.
  std::string value(std::string_view option, std::string otherwise = {}) const;
  std::int64_t number(std::string_view option, std::int64_t otherwise) const;  // Usage

 private:
  std::vector<std::string> operands_;
  std::map<std::string, std::vector<std::string>> options_;
};

int info(const Arguments& arguments);
int show(const Arguments& arguments);
int check(const Arguments& arguments);
int code(const Arguments& arguments);
int conformance(const Arguments& arguments);
int summary(const Arguments& arguments);
int diff(const Arguments& arguments);
int draw(const Arguments& arguments);
int run(const Arguments& arguments);
int profile(const Arguments& arguments);
int bench(const Arguments& arguments);
int strip(const Arguments& arguments);
int upgrade(const Arguments& arguments);
int completions(const Arguments& arguments);

// The requested entries: the one named by operand `at`, or all.
std::vector<Entry> entries_of(const Program& program, const Arguments& arguments, std::size_t at);
// "weights['w']" for the i-th leaf of an entry's arguments; "result[0]" for a leaf of its result.
std::string input_name(const Entry& entry, int i);
std::string output_name(const Entry& entry, int i);
// "1 equation", "2 equations"
std::string counted(std::int64_t count, const std::string& noun);
std::string bytes_text(std::int64_t bytes);  // "12.3 MB"
std::string seconds_text(double seconds);    // "12.3 us"
// " (did you mean `show`?)" for `shwo`; "" where no name is close.
std::string nearest(const std::string& word, std::span<const std::string> names);

}  // namespace plait::tool
