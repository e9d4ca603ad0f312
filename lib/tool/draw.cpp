// plait draw and plait profile: a program as a picture, and the time of its steps. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/draw.h>
#include <plait/inspect/profile.h>

#include <cstdio>

#include "program/inspection.h"
#include "tool/inputs.h"

namespace plait::tool {
namespace {

DrawColor color_of(const std::string& name) {
  if (name == "kind") return DrawColor::kind;
  if (name == "bytes") return DrawColor::bytes;
  if (name == "time") return DrawColor::time;
  if (name == "backend") return DrawColor::backend;
  throw Usage("--color knows kind, bytes, time and backend, not `" + name + "`");
}

Profile profile_of(const Entry& entry, const Inputs& inputs, const Arguments& arguments) {
  const std::int64_t runs = arguments.number("--repeat", 0);
  if (arguments.has("--repeat") && (runs < 1 || runs > 1'000'000))
    throw Usage("--repeat needs 1 or more");
  return plait::profile(inputs.jaxpr, inputs.operands,
                        {.name = entry.name(), .num_runs = int(runs)});
}

}  // namespace

int draw(const Arguments& arguments) {
  if (!arguments.has("-o")) throw Usage("-o is missing: page.html, or picture.svg");
  DrawOptions options;
  options.color = color_of(arguments.value("--color", "kind"));
  const bool runs = options.color == DrawColor::time || options.color == DrawColor::backend;
  const Program program = runs ? program_of(arguments) : load_for_inspection(arguments[0]);
  const Entry& entry = entry_of(program, arguments);
  options.title = entry.name();
  for (std::size_t i = 0; i < entry.inputs().size(); ++i)
    options.input_names.push_back(input_name(entry, int(i)));
  for (const std::string& name : entry.constant_names()) options.input_names.push_back(name);
  for (int i = 0; i < entry.result().num_leaves(); ++i)
    options.output_names.push_back(output_name(entry, i));
  std::optional<Profile> profile;
  Jaxpr jaxpr;
  if (runs) {
    choose_threads(arguments);
    const Inputs inputs = inputs_of(entry, arguments);
    jaxpr = inputs.jaxpr;
    options.profile = &profile.emplace(profile_of(entry, inputs, arguments));
  } else {
    check_sizes({&entry, 1}, arguments);
    jaxpr = sized(entry, arguments);
  }
  plait::draw(jaxpr, arguments.value("-o"), options);
  return 0;
}

int profile(const Arguments& arguments) {
  choose_threads(arguments);
  const Program program = program_of(arguments);
  const Entry& entry = entry_of(program, arguments);
  const Inputs inputs = inputs_of(entry, arguments);
  const Profile profile = profile_of(entry, inputs, arguments);
  if (inputs.is_example) std::fprintf(stderr, "on the test vector of the file\n");
  std::printf("%s\n", (arguments.has("--json") ? profile.json() : profile.to_string()).c_str());
  if (arguments.has("--trace")) profile.write_trace(arguments.value("--trace"));
  if (arguments.has("--flame")) profile.write_flame(arguments.value("--flame"));
  return 0;
}

}  // namespace plait::tool
