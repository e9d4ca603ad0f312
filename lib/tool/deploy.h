// The parts of plait compile: the content of an object, the C code around it, and the system's
// compiler and linker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "tool/command.h"

namespace plait::tool {

// An entry prepared for compilation: given sizes are substituted, the others have bounds.
struct DeployedEntry {
  Entry entry;
  Jaxpr jaxpr;
  std::vector<std::int64_t> bounds;  // of the remaining named sizes
  std::string name = {};             // in C: see name_entries
};
// Gives every entry a unique name in C that no header uses.
void name_entries(std::span<DeployedEntry> entries);

// Sizes of the command line: "n=32" fixes one, "n<=64" bounds it. Other words are a Usage error.
struct SizeChoices {
  explicit SizeChoices(std::span<const std::string> words);
  std::map<std::string, std::int64_t> fixed, bounds;
};

// ValueError for a named size without a choice.
DeployedEntry prepare_entry(const Entry& entry, const SizeChoices& choices);
// The bytes that deployed.cpp reads: see deployed/bundle.h.
std::string bundle_of(std::span<const DeployedEntry> entries);
// Source files, "lib/primitives/contraction/dot.cpp": those whose definitions and rules these
// programs need, and those that define primitives which they do not need.
struct SourceFiles {
  std::set<std::string> needed, idle;
};
SourceFiles files_for(std::span<const DeployedEntry> entries, bool has_loop_programs);
// Disables the registrations of archive members, such as "lib_primitives_contraction_dot.cpp.o".
// See idle.cpp.
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
  std::vector<std::string> backends;   // more archives, linked whole
  std::vector<std::string> libraries;  // "-ldnnl"
  SourceFiles files;
  std::vector<std::vector<std::int64_t>> bounds;  // of the named sizes, by entry
};
// Trial sizes of entries with named sizes: each decomposes at run time, and may do so differently
// where a size is 0 or 1.
inline constexpr std::int64_t tried_sizes[] = {0, 1, 2, 3, 64};
// FileError where a file cannot be written; BackendError where a command fails, with its output, or
// where the object does not load on this machine.
void link_object(const LinkOptions& options);
// Generated loops for the entries without named sizes, in the form that plait_embed_kernels reads.
// prepare_kernels must be called before anything is compiled.
void prepare_kernels(const std::string& folder);
std::string kernels_for(std::span<const DeployedEntry> entries, const std::string& folder);

// A temporary folder, removed by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int compile(const Arguments& arguments);

}  // namespace plait::tool
