// plait draw and plait profile: a program as a picture, and what its steps take. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/draw.h>
#include <plait/profile.h>

#include <cstdio>

#include "program/look.h"
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

Profile profile_of(const Entry& entry, const Inputs& inputs, const Words& words) {
  const std::int64_t runs = words.number("--repeat", 0);
  if (words.has("--repeat") && (runs < 1 || runs > 1'000'000))
    throw Usage("--repeat needs 1 or more");
  return plait::profile(inputs.jaxpr, inputs.operands,
                        {.name = entry.name(), .num_runs = int(runs)});
}

}  // namespace

int draw(const Words& words) {
  if (!words.has("-o")) throw Usage("-o is missing: page.html, or picture.svg");
  DrawOptions options;
  options.color = color_of(words.value("--color", "kind"));
  const bool runs = options.color == DrawColor::time || options.color == DrawColor::backend;
  const Program program = runs ? program_of(words) : load_to_look_at(words[0]);
  const Entry& entry = entry_of(program, words);
  options.title = entry.name();
  for (std::size_t i = 0; i < entry.inputs().size(); ++i)
    options.input_names.push_back(input_name(entry, int(i)));
  for (const std::string& name : entry.constant_names()) options.input_names.push_back(name);
  for (int i = 0; i < entry.result().num_leaves(); ++i)
    options.output_names.push_back(output_name(entry, i));
  std::optional<Profile> profile;
  Jaxpr jaxpr;
  if (runs) {
    choose_threads(words);
    const Inputs inputs = inputs_of(entry, words);
    jaxpr = inputs.jaxpr;
    options.profile = &profile.emplace(profile_of(entry, inputs, words));
  } else {
    check_sizes({&entry, 1}, words);
    jaxpr = sized(entry, words);
  }
  plait::draw(jaxpr, words.value("-o"), options);
  return 0;
}

int profile(const Words& words) {
  choose_threads(words);
  const Program program = program_of(words);
  const Entry& entry = entry_of(program, words);
  const Inputs inputs = inputs_of(entry, words);
  const Profile profile = profile_of(entry, inputs, words);
  if (inputs.is_example) std::fprintf(stderr, "on the test vector of the file\n");
  std::printf("%s\n", (words.has("--json") ? profile.json() : profile.to_string()).c_str());
  if (words.has("--trace")) profile.write_trace(words.value("--trace"));
  if (words.has("--flame")) profile.write_flame(words.value("--flame"));
  return 0;
}

}  // namespace plait::tool
