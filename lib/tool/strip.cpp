// plait strip and plait upgrade: a file read, and written again. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>

#include "program/archive.h"
#include "program/manifest.h"
#include "program/upgrade.h"
#include "tool/command.h"

namespace plait::tool {
namespace {

void save_again(const Program& program, const std::string& path, const SaveOptions& options) {
  std::map<std::string, TracedFunction> functions;
  for (const Entry& entry : program.entries()) functions.emplace(entry.name(), entry.function());
  save(path, functions, options);
}

std::string size_text(const std::string& path) {
  return bytes_text(std::int64_t(std::filesystem::file_size(path)));
}

}  // namespace

int strip(const Words& words) {
  if (!words.has("-o")) throw Usage("-o is missing: the file to write");
  SaveOptions options;
  options.constants = !words.has("--constants");
  options.test_vectors = !words.has("--test-vectors");
  options.sources = !words.has("--sources");
  if (options.constants && options.test_vectors && options.sources && !words.has("--meta"))
    throw Usage("say what to leave out: --constants, --test-vectors, --sources or --meta");
  const Program program = load(words[0], {.verify = options.test_vectors});
  if (!words.has("--meta")) options.meta = program.meta();
  options.licence = program.licence();
  const std::string before = size_text(words[0]), path = words.value("-o");
  save_again(program, path, options);
  std::printf("%s: %s; it was %s\n", path.c_str(), size_text(path).c_str(), before.c_str());
  return 0;
}

int upgrade(const Words& words) {
  const std::string path = words.value("-o", words[0]);
  // Before the format: what is damaged is refused here, and the texts are those of the file.
  const Program program = load(words[0], {.verify = true});
  const int format =
      parse_manifest(ArchiveReader(words[0]).text("manifest.json", 1 << 30), words[0]).format;
  if (format == program_format && path == words[0]) {
    std::printf("%s: format %d, the newest\n", path.c_str(), format);
    return 0;
  }
  save_again(program, path, {.meta = program.meta(), .licence = program.licence()});
  std::printf("%s: format %d, from %d\n", path.c_str(), program_format, format);
  return 0;
}

}  // namespace plait::tool
