// The pieces of plait compile: what goes into an object, the C code around it, and the system's
// compiler and linker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "tool/command.h"

namespace plait::tool {

// One entry as it is compiled: sizes that were given are numbers in it, the others have bounds.
struct DeployedEntry {
  Entry entry;
  Jaxpr jaxpr;
  std::vector<std::int64_t> bounds;  // of the named sizes that are left
  std::string name = {};             // in C: see name_entries
};
// Gives every entry a name of its own in C, which is none of those that headers use.
void name_entries(std::span<DeployedEntry> entries);

// The sizes of the command line: "n=32" fixes one, "n<=64" bounds it. Usage for other words.
struct SizeChoices {
  explicit SizeChoices(std::span<const std::string> words);
  std::map<std::string, std::int64_t> fixed, bounds;
};

// ValueError for a named size without a choice.
DeployedEntry prepare_entry(const Entry& entry, const SizeChoices& choices);
// The bytes that deployed.cpp reads: see deployed/bundle.h.
std::string bundle_of(std::span<const DeployedEntry> entries);
// Source files, "lib/ops/dot.cpp": those whose definitions and rules these programs need, and those
// that define what they do not.
struct SourceFiles {
  std::set<std::string> needed, idle;
};
SourceFiles files_for(std::span<const DeployedEntry> entries);
// Makes members of an archive, "lib_ops_dot.cpp.o", register nothing. See idle.cpp.
void make_idle(std::string& archive, const std::set<std::string>& members);

// The header that users include, and the functions that it declares. name is an identifier.
std::string header_text(const std::string& name, const std::string& from,
                        std::span<const DeployedEntry> entries);
enum class Kernels { none, embedded };
std::string source_text(const std::string& name, std::span<const DeployedEntry> entries,
                        Kernels kernels);

struct LinkOptions {
  std::string output, name;            // model.so or model.a; the identifier
  std::string header, source, bundle;  // their texts and bytes
  std::string runtime;                 // libplait_run.a
  std::string kernels;                 // for plait_embed_kernels, or nothing
  std::vector<std::string> backends;   // more archives, whole
  std::vector<std::string> libraries;  // "-ldnnl"
  SourceFiles files;
  std::vector<std::vector<std::int64_t>> bounds;  // of the named sizes, by entry
};
// The sizes at which entries with named sizes are tried: each decomposes as it runs, and may do so
// differently where a size is 0 or 1.
inline constexpr std::int64_t tried_sizes[] = {0, 1, 2, 3, 64};
// FileError where something cannot be written, BackendError where a program fails, with what it
// said, or where the object does not open here.
void link_object(const LinkOptions& options);
// Generated loops for the entries whose sizes are numbers, as plait_embed_kernels reads them.
// prepare_kernels comes before anything is compiled.
void prepare_kernels(const std::string& folder);
std::string kernels_for(std::span<const DeployedEntry> entries, const std::string& folder);

// A folder that is removed with it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int compile(const Words& words);

}  // namespace plait::tool
