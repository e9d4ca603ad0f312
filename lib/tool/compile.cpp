// plait compile: a program as an object with a C interface, which runs without plait.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "compile/modules.h"
#include "inspect/page.h"
#include "tool/deploy.h"

namespace plait::tool {
namespace {

// The folder of libplait.
std::filesystem::path library_folder() {
  Dl_info info;
  Program (*const inside)(const std::string&, const LoadOptions&) = &load;
  if (!dladdr(reinterpret_cast<void*>(inside), &info) || !info.dli_fname) return ".";
  return std::filesystem::path(info.dli_fname).parent_path();
}

std::string existing(const std::filesystem::path& path, const char* fix) {
  if (!std::filesystem::exists(path))
    throw FileError("compile: there is no run-time library at " + path.string(), fix);
  return std::filesystem::absolute(path).string();
}

// Backends that can be linked in, with the vendor's library.
struct Linkable {
  const char *name, *library;
};
constexpr Linkable linkables[] = {{"onednn", "-ldnnl"}, {"llvm", nullptr}};

void add_backends(const Arguments& arguments, LinkOptions& options) {
  const std::vector<std::string> wanted = arguments.values("--with");
  for (const std::string& name : wanted) {
    const auto* found = std::find_if(std::begin(linkables), std::end(linkables),
                                     [&](const Linkable& one) { return name == one.name; });
    if (found == std::end(linkables))
      throw Usage("--with knows onednn and llvm, not `" + name + "`");
    options.backends.push_back(existing(library_folder() / ("libplait_run_" + name + ".a"),
                                        "build plait with that backend"));
    if (found->library) options.libraries.push_back(found->library);
  }
  load_modules_only(wanted);
}

// "model" from "out/libmodel.so": the prefix of names in the header.
std::string name_of(const Arguments& arguments, const std::filesystem::path& output) {
  std::string name = output.stem().string();
  if (name.starts_with("lib")) name = name.substr(3);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  name = arguments.value("--name", name);
  const auto is_good = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) ||
      !std::all_of(name.begin(), name.end(), is_good))
    throw Usage("`" + name + "` cannot begin names in C; give one with --name");
  return name;
}

}  // namespace

int compile(const Arguments& arguments) {
  const std::filesystem::path output = arguments.value("-o");
  if (output.empty()) throw Usage("-o is missing: model.so or model.a");
  if (output.extension() != ".so" && output.extension() != ".a")
    throw Usage("-o needs a name that ends in .so or .a, not `" + output.string() + "`");
  LinkOptions options;
  options.output = std::filesystem::absolute(output).string();
  options.name = name_of(arguments, output);
  options.runtime = existing(
      arguments.value("--runtime", (library_folder() / "libplait_run.a").string()),
      "install it (of the wheels: pip install 'plait[compile]'), or name it with --runtime");
  const TemporaryFolder kernels;
  const std::vector<std::string> backends = arguments.values("--with");
  const bool has_kernels = std::count(backends.begin(), backends.end(), "llvm") > 0;
  if (has_kernels) prepare_kernels(kernels.path());
  add_backends(arguments, options);
  const Program program = load(arguments[0]);
  const SizeChoices sizes(arguments.values("--size"));
  const std::vector<std::string> wanted = arguments.values("--entry");
  std::vector<DeployedEntry> entries;
  for (const Entry& entry : program.entries())
    if (wanted.empty()) entries.push_back(prepare_entry(entry, sizes));
  for (const std::string& name : wanted) entries.push_back(prepare_entry(program[name], sizes));
  name_entries(entries);
  options.header =
      header_text(options.name, std::filesystem::path(arguments[0]).filename().string(), entries);
  if (has_kernels) options.kernels = kernels_for(entries, kernels.path());
  options.source = source_text(options.name, entries,
                               options.kernels.empty() ? Kernels::none : Kernels::embedded);
  options.bundle = bundle_of(entries);
  options.files = files_for(entries, has_kernels);
  for (const DeployedEntry& entry : entries) options.bounds.push_back(entry.bounds);
  link_object(options);
  std::filesystem::path header = output;
  header.replace_filename(options.name + ".h");
  const std::string header_path = arguments.value("--header", header.string());
  inspect::write_file("compile", header_path, options.header);
  std::printf("%s: %s\n%s\n", output.c_str(),
              bytes_text(std::int64_t(std::filesystem::file_size(options.output))).c_str(),
              header_path.c_str());
  return 0;
}

}  // namespace plait::tool
