// plait info: the content of a file. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "program/inspection.h"
#include "tool/command.h"

namespace plait::tool {
namespace {

std::int64_t bytes_of(const Array& array) { return array.buffer().bytes(); }

std::string sizes_of(const Jaxpr& jaxpr) {
  std::string text;
  for (Dim size : jaxpr->sizes) text += (text.empty() ? "" : ", ") + size.to_string();
  for (const Constraint& constraint : jaxpr->constraints)
    text += "; " + constraint.left.to_string() + " <= " + constraint.right.to_string();
  return text;
}

void print_entry(const Entry& entry) {
  const Jaxpr& jaxpr = entry.jaxpr();
  std::printf("\n%s: %s%s\n", entry.name().c_str(),
              counted(std::int64_t(jaxpr->equations.size()), "equation").c_str(),
              entry.has_example() ? ", with a test vector" : "");
  if (!jaxpr->sizes.empty()) std::printf("  sizes     %s\n", sizes_of(jaxpr).c_str());
  const auto print_line = [](const char* what, const std::string& name, const Aval& aval) {
    std::printf("  %-9s %s: %s\n", what, name.c_str(), aval.to_string().c_str());
  };
  for (std::size_t i = 0; i < entry.inputs().size(); ++i)
    print_line("argument", input_name(entry, int(i)), entry.inputs()[i]);
  for (std::size_t i = 0; i < entry.constants().size(); ++i)
    print_line("constant", entry.constant_names()[i], entry.constants()[i].aval());
  const std::vector<Aval> outputs = jaxpr->output_avals();
  for (std::size_t i = 0; i < outputs.size(); ++i)
    print_line("result", output_name(entry, int(i)), outputs[i]);
}

}  // namespace

int info(const Arguments& arguments) {
  const Program program = load_for_inspection(arguments[0]);
  std::map<const void*, std::int64_t> constants;  // shared ones count once
  for (const Entry& entry : program.entries())
    for (const Array& array : entry.constants())
      constants[array.buffer().placed().data] = bytes_of(array);
  std::int64_t bytes = 0;
  for (const auto& [place, size] : constants) bytes += size;
  const bool are_absent = !constants.empty() && lacks_constants(arguments[0]);
  std::printf("%s: %s, %s of %s%s\n", arguments[0].c_str(),
              counted(std::int64_t(program.entries().size()), "entry point").c_str(),
              counted(std::int64_t(constants.size()), "constant").c_str(),
              bytes_text(bytes).c_str(), are_absent ? ", which the file does not hold" : "");
  if (!program.licence().empty()) std::printf("licence: %s\n", program.licence().c_str());
  for (const auto& [key, value] : program.meta())
    std::printf("%s: %s\n", key.c_str(), value.c_str());
  for (const Entry& entry : program.entries()) print_entry(entry);
  return 0;
}

}  // namespace plait::tool
