// The system's compiler and linker: generated C code and the run-time library become one object
// that exports only what its header declares.
//
// NOTE: [what is linked] The run-time library is an archive. Linked normally, it would lack
// primitives and rules, which register themselves and which nothing calls by name. Linked whole, it
// would contain every kernel. So the object files that define what the program uses are extracted
// and linked unconditionally, and the linker takes from the rest what these call.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "inspect/page.h"
#include "tool/deploy.h"

extern char** environ;

namespace plait::tool {
namespace {

void write_file(const std::string& path, std::string_view bytes) {
  inspect::write_file("compile", path, bytes);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs a program without a shell, in the folder, and returns its output. BackendError with that
// output where it fails.
std::string run(const std::vector<std::string>& command, const std::string& folder) {
  const std::string log = folder + "/log";
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = -1;
  if (error == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (error == 0 && status == 0) return read_file(log);
  throw BackendError(
      "compile: " + command[0] + " failed: " + (error ? std::strerror(error) : read_file(log)),
      "install a C++ compiler with its binutils, or name it in CXX");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The words of CXX, or c++.
std::vector<std::string> compiler() {
  const char* asked = std::getenv("CXX");
  std::vector<std::string> words;
  std::istringstream stream(asked && *asked ? asked : "c++");
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The archive's names of the object files compiled from the source files.
std::set<std::string> members_of(const std::set<std::string>& files) {
  std::set<std::string> names;
  for (std::string file : files) {
    std::replace(file.begin(), file.end(), '/', '_');
    names.insert(file + ".o");
  }
  return names;
}
std::vector<std::string> needed_members(const LinkOptions& options, const std::string& folder) {
  const std::set<std::string> names = members_of(options.files.needed);
  std::vector<std::string> members;
  for (const std::string& member : lines_of(run({"ar", "t", options.runtime}, folder)))
    if (names.count(member)) members.push_back(member);
  return members;
}

// Redirects the memory functions of the object to deployed/memory.cpp.
constexpr const char* own_memory[] = {"-Wl,--wrap=malloc", "-Wl,--wrap=free"};

void link_shared(const LinkOptions& options, const std::vector<std::string>& objects,
                 const std::string& runtime, const std::string& output, const std::string& folder) {
  write_file(folder + "/exports", "{ global: " + options.name + "_*; local: *; };\n");
  std::vector<std::string> command = compiler();
  for (const std::string& word : {std::string("-shared"), std::string("-o"), output})
    command.push_back(word);
  command.insert(command.end(), objects.begin(), objects.end());
  if (!options.backends.empty()) command.push_back("-Wl,--whole-archive");
  command.insert(command.end(), options.backends.begin(), options.backends.end());
  if (!options.backends.empty()) command.push_back("-Wl,--no-whole-archive");
  command.push_back(runtime);
  command.insert(command.end(), options.libraries.begin(), options.libraries.end());
  command.insert(command.end(), std::begin(own_memory), std::end(own_memory));
  const std::string file = std::filesystem::path(options.output).filename().string();
  for (const std::string& word :
       {std::string("-Wl,--gc-sections"), std::string("-Wl,--version-script=exports"),
        std::string("-Wl,--no-undefined"), std::string("-Wl,-O1"), std::string("-s"),
        "-Wl,-soname," + file, std::string("-pthread"), std::string("-ldl")})
    command.push_back(word);
  run(command, folder);
}

// Turns symbols that are unique in a process (inline variables) into ordinary ones, which can be
// hidden: each object then has its own.
void make_unique_symbols_ordinary(const std::string& path) {
  std::string bytes = read_file(path);
  auto* const header = reinterpret_cast<Elf64_Ehdr*>(bytes.data());
  auto* const sections = reinterpret_cast<Elf64_Shdr*>(bytes.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    auto* const symbols = reinterpret_cast<Elf64_Sym*>(bytes.data() + sections[i].sh_offset);
    for (std::size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s)
      if (ELF64_ST_BIND(symbols[s].st_info) == STB_GNU_UNIQUE)
        symbols[s].st_info = ELF64_ST_INFO(STB_GLOBAL, ELF64_ST_TYPE(symbols[s].st_info));
  }
  write_file(path, bytes);
}

// One object file, in an archive, whose only global names are those of the header.
void link_static(const LinkOptions& options, std::vector<std::string> objects,
                 const std::string& folder) {
  std::vector<std::string> command = compiler();
  for (const char* word : {"-r", "-nostdlib", "-Wl,--force-group-allocation", "-o", "all.o"})
    command.push_back(word);
  command.insert(command.end(), objects.begin(), objects.end());
  command.insert(command.end(), options.backends.begin(), options.backends.end());
  command.push_back(options.runtime);
  command.insert(command.end(), std::begin(own_memory), std::end(own_memory));
  run(command, folder);
  make_unique_symbols_ordinary(folder + "/all.o");
  run({"objcopy", "--wildcard", "--keep-global-symbol=" + options.name + "_*", "--strip-unneeded",
       "all.o", options.name + ".o"},
      folder);
  run({"ar", "rcs", "object.a", options.name + ".o"}, folder);
}

// The problem with the object, or nullopt. The object is loaded and opened, and its entries with
// named sizes are prepared at several sizes. It stays loaded: the process ends next, and threads of
// the object may still be exiting.
std::string fault_of(const std::string& path, const LinkOptions& options) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::string("cannot be loaded: ") + dlerror();
  using Open = int(void**);
  using Call = int(void*, int, const std::int64_t*, const void* const*, void* const*);
  using Message = const char*();
  const auto find = [&](const char* what) { return dlsym(library, (options.name + what).c_str()); };
  auto* const open = reinterpret_cast<Open*>(find("_open"));
  auto* const call = reinterpret_cast<Call*>(find("_call"));
  auto* const message = reinterpret_cast<Message*>(find("_message"));
  if (!open || !call || !message) return "lacks its functions";
  void* session = nullptr;
  if (open(&session) != 0) return std::string("does not open: ") + message();
  for (std::size_t i = 0; i < options.bounds.size(); ++i)
    for (std::int64_t size : tried_sizes) {
      std::vector<std::int64_t> sizes = options.bounds[i];
      if (sizes.empty()) continue;
      for (std::int64_t& bound : sizes) bound = std::min(bound, size);
      constexpr int broken = 4;  // a size that the program refuses is not an error here
      if (call(session, int(i), sizes.data(), nullptr, nullptr) == broken)
        return std::string("cannot be prepared: ") + message();
    }
  return {};
}

// The smallest object that works; where something is missing at run time, one with everything that
// the linker would take by itself.
std::string link_checked(const LinkOptions& options, const std::vector<std::string>& objects,
                         const std::string& folder) {
  std::string fault;
  for (const bool is_lean : {true, false}) {
    std::string runtime = options.runtime;
    const std::string output = is_lean ? "object.so" : "whole.so";
    if (is_lean) {
      std::string archive = read_file(options.runtime);
      make_idle(archive, members_of(options.files.idle));
      runtime = folder + "/idle.a";
      write_file(runtime, archive);
    }
    link_shared(options, objects, runtime, output, folder);
    fault = fault_of(folder + "/" + output, options);
    if (fault.empty()) return output;
  }
  throw BackendError("compile: the object " + fault, "report this with the program");
}

void move_file(const std::string& from, const std::string& to) {
  const std::string next = to + ".part";
  std::error_code error;
  std::filesystem::copy_file(from, next, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) std::filesystem::rename(next, to, error);
  if (error)
    throw FileError("compile: cannot write " + to + ": " + error.message(),
                    "choose another folder, or make room");
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "plait_compile_XXXXXX").string();
  if (!mkdtemp(path_.data()))
    throw FileError("compile: cannot make a folder in " + path_ + ": " + std::strerror(errno),
                    "name a folder that can be written in TMPDIR");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void link_object(const LinkOptions& options) {
  const TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  write_file(folder + "/" + options.name + ".h", options.header);
  write_file(folder + "/source.c", options.source);
  write_file(folder + "/bundle", options.bundle);
  if (!options.kernels.empty()) write_file(folder + "/kernels", options.kernels);
  std::vector<std::string> command = compiler();
  for (const char* word : {"-x", "c", "-O2", "-fPIC", "-c", "source.c", "-o", "source.o"})
    command.push_back(word);
  run(command, folder);
  std::vector<std::string> objects = needed_members(options, folder);
  std::vector<std::string> extract = {"ar", "x", options.runtime};
  extract.insert(extract.end(), objects.begin(), objects.end());
  run(extract, folder);
  objects.insert(objects.begin(), "source.o");
  const bool is_archive = options.output.ends_with(".a");
  std::string made = "object.a";
  if (is_archive)
    link_static(options, objects, folder);
  else
    made = link_checked(options, objects, folder);
  move_file(folder + "/" + made, options.output);
}

}  // namespace plait::tool
