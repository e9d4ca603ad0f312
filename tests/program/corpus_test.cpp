// What fuzzers start from, and what they found once, is refused or read (tests/fuzz).
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "../fuzz/targets.h"

namespace fs = std::filesystem;

TEST_CASE("the fuzzers' corpus does no harm") {
  const fs::path corpus = fs::path("tests") / "fuzz" / "corpus";
  const std::pair<const char*, void (*)(std::string_view)> targets[] = {
      {"parse", fuzz::parse},
      {"loops", fuzz::loops},
      {"safetensors", fuzz::safetensors},
      {"npy", fuzz::npy},
      {"load", fuzz::load}};
  for (const auto& [name, target] : targets) {
    REQUIRE(fs::exists(corpus / name));
    int count = 0;
    for (const auto& entry : fs::directory_iterator(corpus / name)) {
      CAPTURE(entry.path().string());
      std::ifstream file(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      CHECK_NOTHROW(target(bytes));
      ++count;
    }
    CHECK(count > 0);
  }
}
