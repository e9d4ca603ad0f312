// See upgrade.h.
// SPDX-License-Identifier: Apache-2.0
#include "upgrade.h"

#include <iterator>
#include <nlohmann/json.hpp>

namespace plait {
namespace {

using Json = nlohmann::json;

// What changed from a format to the next, in order; null where nothing did.
struct Step {
  void (*manifest)(Json& manifest);
  void (*text)(std::string& jaxpr);
};

// 2 has a checksum for each constant. Its texts have scopes and transforms in the comments that
// tell lines, and lines in the bodies of equations: those of 1 are read as they are.
void add_checksums(Json& manifest) { manifest["checksums"] = Json::object(); }

constexpr Step steps[] = {
    {add_checksums, nullptr},  // 1 -> 2
};
static_assert(std::size(steps) == program_format - 1);

}  // namespace

void upgrade_manifest(int format, Json& manifest) {
  for (int from = format; from < program_format; ++from)
    if (const auto change = steps[from - 1].manifest) change(manifest);
}

void upgrade_text(int format, std::string& jaxpr) {
  for (int from = format; from < program_format; ++from)
    if (const auto change = steps[from - 1].text) change(jaxpr);
}

}  // namespace plait
