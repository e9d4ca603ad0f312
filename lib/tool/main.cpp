// The program `plait`: finds the verb, and turns errors into messages and exit codes. See
// command.h.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>

#include "tool/command.h"
#include "tool/job.h"

namespace plait::tool {
namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string general_help() {
  std::string text =
      "usage: plait VERB ...\n\n"
      "Looks into saved programs (.plait files), runs and compiles them.\n\n";
  for (const Verb& verb : verbs()) text += "  " + padded(verb.name, 12) + verb.summary + "\n";
  return text +
         "\n  plait help VERB says more about one; plait --version says which plait this is.\n"
         "Exit codes: 0 fine, 1 the answer is no, or it failed, 2 the command was not "
         "understood.\n";
}

// "usage: plait run [options] FILE [ENTRY]\n"
std::string usage_of(const Verb& verb) {
  return std::string("usage: plait ") + verb.name + (verb.options.empty() ? " " : " [options] ") +
         verb.operands + "\n";
}

std::string help_of(const Verb& verb) {
  std::string text = usage_of(verb) + "\n" + verb.summary + "\n";
  if (*verb.details) text += std::string("\n") + verb.details;
  if (!verb.options.empty()) text += "\n";
  for (const Option& option : verb.options)
    text += "  " +
            padded(std::string(option.name) + (option.value ? std::string(" ") + option.value : ""),
                   22) +
            option.help + "\n";
  return text;
}

const Verb& find_verb(const std::string& name) {
  std::vector<std::string> names = {"help"};
  for (const Verb& verb : verbs()) {
    if (name == verb.name) return verb;
    names.push_back(verb.name);
  }
  throw Usage("there is no verb `" + name + "`" + nearest(name, names));
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

int run_verb(const Verb& verb, std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--" || (verb.run == &run && names_a_program(word))) break;
    if (asks_for_help(word)) return print(help_of(verb));
  }
  try {
    if (verb.run == &run)
      if (const std::optional<int> code = run_processes(words)) return *code;
    return verb.run(Arguments(verb, words));
  } catch (const Usage& usage) {
    std::fprintf(stderr, "plait %s: %s\n  fix: %splait help %s says more\n", verb.name,
                 usage.what(), usage_of(verb).c_str(), verb.name);
    return 2;
  }
}

int run_words(std::span<const std::string> words) {
  if (words.empty()) {
    std::fputs(general_help().c_str(), stderr);
    return 2;
  }
  if (words[0] == "--version") return print("plait " PLAIT_VERSION "\n");
  if (asks_for_help(words[0])) return print(general_help());
  if (words[0] == "help") {
    if (words.size() == 1) return print(general_help());
    return print(help_of(find_verb(words[1])));
  }
  return run_verb(find_verb(words[0]), words.subspan(1));
}

// Output that could not be written is a failure if the disk is full, but not if the reader has gone
// away.
int flushed(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  std::fprintf(stderr, "plait: standard output cannot be written: %s\n", std::strerror(errno));
  return 1;
}

}  // namespace
}  // namespace plait::tool

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    return plait::tool::flushed(plait::tool::run_words(words));
  } catch (const plait::tool::Usage& usage) {
    std::fprintf(stderr, "plait: %s\n  fix: plait help lists them\n", usage.what());
    return 2;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "plait: %s\n", error.what());
    return 1;
  }
}
