// plait completions: shell completion, generated from the table of verbs. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "tool/command.h"

namespace plait::tool {
namespace {

// Quoted for a shell's '...'.
std::string quoted(const std::string& text) {
  std::string inside;
  for (char c : text) inside += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + inside + "'";
}

bool is_file(const Option& option) {
  const std::string value = option.value ? option.value : "";
  return value.find("FILE") != std::string::npos || value == "OUTPUT";
}

std::string options_of(const Verb& verb) {
  std::string text = "--help";
  for (const Option& option : verb.options) text += std::string(" ") + option.name;
  return text;
}

std::string for_bash() {
  std::string names, cases;
  for (const Verb& verb : verbs()) {
    names += std::string(" ") + verb.name;
    cases += std::string("    ") + verb.name + ") words=\"" + options_of(verb) + "\" ;;\n";
  }
  return "# plait completions bash > ~/.local/share/bash-completion/completions/plait\n"
         "_plait() {\n"
         "  local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ] || [ \"${COMP_WORDS[1]}\" = help ]; then\n"
         "    COMPREPLY=($(compgen -W \"" +
         names.substr(1) +
         " help --help --version\" -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         cases +
         "  esac\n"
         "  case \"$word\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _plait plait\n";
}

// "--inputs[arrays]:FILE:_files", with characters escaped that _arguments treats as syntax.
std::string zsh_option(const Option& option) {
  std::string help;
  for (const char* c = option.help; *c; ++c)
    help += *c == '[' || *c == ']' || *c == ':' ? std::string("\\") + *c : std::string(1, *c);
  std::string text = std::string("*") + option.name + "[" + help + "]";
  if (option.value) text += is_file(option) ? ":file:_files" : ":value:";
  return quoted(text);
}

std::string for_zsh() {
  std::string names, cases;
  for (const Verb& verb : verbs()) {
    names += "    " + quoted(std::string(verb.name) + ":" + verb.summary) + "\n";
    cases += std::string("    ") + verb.name + ") _arguments '*--help[what it does]'";
    for (const Option& option : verb.options) cases += " " + zsh_option(option);
    cases += " '*:file:_files' ;;\n";
  }
  return "#compdef plait\n"
         "# plait completions zsh > \"${fpath[1]}/_plait\"\n"
         "_plait() {\n"
         "  local -a verbs\n"
         "  verbs=(\n" +
         names +
         "    'help:what a verb does'\n"
         "  )\n"
         "  if (( CURRENT == 2 )) || [[ ${words[2]} == help ]]; then\n"
         "    _describe verb verbs\n"
         "    return\n"
         "  fi\n"
         "  local verb=${words[2]}\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $verb in\n" +
         cases +
         "  esac\n"
         "}\n"
         // The first completion loads this file as the body of the function; a shell may also
         // source it.
         "if [[ ${funcstack[1]} == _plait ]]; then _plait \"$@\"; else compdef _plait plait; fi\n";
}

std::string for_fish() {
  std::string text =
      "# plait completions fish > ~/.config/fish/completions/plait.fish\n"
      "complete -c plait -n __fish_use_subcommand -f -a help -d 'what a verb does'\n"
      "complete -c plait -l help -d 'what it does'\n";
  for (const Verb& verb : verbs()) {
    for (const char* place : {"__fish_use_subcommand", "'__fish_seen_subcommand_from help'"})
      text += std::string("complete -c plait -n ") + place + " -f -a " + verb.name + " -d " +
              quoted(verb.summary) + "\n";
    for (const Option& option : verb.options) {
      const std::string name = option.name;
      text += std::string("complete -c plait -n '__fish_seen_subcommand_from ") + verb.name + "' " +
              (name.starts_with("--") ? "-l " + name.substr(2) : "-s " + name.substr(1)) +
              (option.value ? is_file(option) ? " -r -F" : " -x" : "") + " -d " +
              quoted(option.help) + "\n";
    }
  }
  return text;
}

}  // namespace

int completions(const Arguments& arguments) {
  const std::string& shell = arguments[0];
  if (shell != "bash" && shell != "zsh" && shell != "fish")
    throw Usage("there are completions for bash, zsh and fish, not for `" + shell + "`");
  const std::string text = shell == "bash" ? for_bash() : shell == "zsh" ? for_zsh() : for_fish();
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace plait::tool
