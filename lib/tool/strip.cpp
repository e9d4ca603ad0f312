// plait strip and plait upgrade: read a file, and write it again. See command.h.
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

int strip(const Arguments& arguments) {
  if (!arguments.has("-o")) throw Usage("-o is missing: the file to write");
  SaveOptions options;
  options.constants = !arguments.has("--constants");
  options.test_vectors = !arguments.has("--test-vectors");
  options.sources = !arguments.has("--sources");
  if (options.constants && options.test_vectors && options.sources && !arguments.has("--meta"))
    throw Usage("say what to leave out: --constants, --test-vectors, --sources or --meta");
  const Program program = load(arguments[0], {.verify = options.test_vectors});
  if (!arguments.has("--meta")) options.meta = program.meta();
  options.licence = program.licence();
  const std::string before = size_text(arguments[0]), path = arguments.value("-o");
  save_again(program, path, options);
  std::printf("%s: %s; it was %s\n", path.c_str(), size_text(path).c_str(), before.c_str());
  return 0;
}

int upgrade(const Arguments& arguments) {
  const std::string path = arguments.value("-o", arguments[0]);
  // Loaded first: damaged files are refused here, and the texts are those of the file.
  const Program program = load(arguments[0], {.verify = true});
  const int format =
      parse_manifest(ArchiveReader(arguments[0]).text("manifest.json", 1 << 30), arguments[0])
          .format;
  if (format == program_format && path == arguments[0]) {
    std::printf("%s: format %d, the newest\n", path.c_str(), format);
    return 0;
  }
  save_again(program, path, {.meta = program.meta(), .licence = program.licence()});
  std::printf("%s: format %d, from %d\n", path.c_str(), program_format, format);
  return 0;
}

}  // namespace plait::tool
