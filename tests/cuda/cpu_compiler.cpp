// See cpu_compiler.h. The compiler is the variable CXX, or c++; meson.build has its options, which
// are PLAIT_OPTIONS here.
// SPDX-License-Identifier: Apache-2.0
#include "cpu_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

namespace cuda_standin {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// A folder for one compilation.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "plait-kernel-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Of comments nothing is left but their lines.
std::string without_comments(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 2, "/*") == 0) {
      i = std::min(text.find("*/", i + 2), text.size() - 1) + 1;
      continue;
    }
    if (i < text.size()) result += text[i];
  }
  return result;
}

// A list of the kernels, to stand behind them.
std::string list_of(const std::string& source) {
  static const std::regex kernel(
      R"(__global__\s+(?:void\s+)?(?:__launch_bounds__\s*\(\s*(\d+)[^)]*\)\s*)?(?:void\s+)?(\w+)\s*\()");
  const std::string text = without_comments(source);
  std::string list;
  for (std::sregex_iterator match(text.begin(), text.end(), kernel), end; match != end; ++match) {
    const std::string name = (*match)[2], bound = (*match)[1].matched ? (*match)[1].str() : "0";
    list += "    on_cpu::entry<&" + name + ">(\"" + name + "\", " + bound + ", &" + name + "),\n";
  }
  return "on_cpu::Entry plait_kernel_list[] = {\n" + list + "    {}};\n";
}

// Whether the compiler was content; what it says is in the file log.
bool run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int status = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) {
    std::ofstream(log) << "cannot run " << command[0] << ": " << std::strerror(status) << "\n";
    return false;
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A unit of C++ to a library.
Compiled compiled_unit(const std::string& unit, const std::vector<std::string>& options) {
  const char* cxx = std::getenv("CXX");
  std::vector<std::string> command = words(cxx != nullptr && *cxx != '\0' ? cxx : "c++");
  if (command.size() > 1 && command[0].ends_with("ccache")) command.erase(command.begin());
  for (const std::string& option : words(PLAIT_OPTIONS)) command.push_back(option);
  // Which takes longer to read than the language alone.
  if (unit.find("plait/functions.h") != std::string::npos)
    for (const char* option : {"-include", PLAIT_PRECOMPILED}) command.push_back(option);
  command.insert(command.end(), options.begin(), options.end());
  const Folder folder;
  const std::string source = folder / "kernel.cpp", library = folder / "kernel.so",
                    log = folder / "log";
  std::ofstream(source) << unit;
  for (const std::string& word : {std::string("-shared"), std::string("-o"), library, source})
    command.push_back(word);
  // Linking what kernels do not need takes as long as compiling a small one.
  for (const char* option : {"-nostdlib", "-lm", "-lc", "-lgcc"}) command.push_back(option);
  Compiled result;
  result.is_content = run(command, log);
  result.log = contents(log);
  if (result.is_content) result.library = contents(library);
  return result;
}

}  // namespace

std::optional<std::vector<std::string>> translated(const std::vector<std::string>& options,
                                                   std::string& unknown) {
  // The first one says whether products and sums are contracted: NVRTC's default.
  std::vector<std::string> result{"-ffp-contract=fast"};
  const auto translate = [&](const std::string& option) {
    const auto begins = [&](const char* prefix) { return option.rfind(prefix, 0) == 0; };
    if (begins("--fmad=") || begins("-fmad=")) {
      result[0] = option.ends_with("false") ? "-ffp-contract=off" : "-ffp-contract=fast";
      return true;
    }
    if (begins("-D") || begins("-U")) return result.push_back(option), true;
    if (begins("--define-macro=")) return result.push_back("-D" + option.substr(15)), true;
    for (const char* known : {"--gpu-architecture=sm_90",
                              "-arch=sm_90",
                              "--std=c++20",
                              "-std=c++20",
                              "-I",
                              "--include-path=",
                              "--device-as-default-execution-space",
                              "-default-device",
                              "--generate-line-info",
                              "-lineinfo",
                              "--ftz=false",
                              "-ftz=false",
                              "--prec-div=true",
                              "-prec-div=true",
                              "--prec-sqrt=true",
                              "-prec-sqrt=true",
                              "--restrict",
                              "-restrict",
                              "--disable-warnings",
                              "-w",
                              "--no-source-include",
                              "--minimal",
                              "-minimal",
                              "--diag-suppress=",
                              "-diag-suppress=",
                              "--split-compile=",
                              "--dopt=",
                              "--ptxas-options=",
                              "--Ofast-compile=",
                              "--device-int128",
                              "-device-int128",
                              "--extra-device-vectorization"})
      if (begins(known)) return true;
    return false;
  };
  for (const std::string& option : options)
    if (!translate(option)) {
      unknown = option;
      return {};
    }
  return result;
}

Compiled compiled(const Text& text) {
  return compiled_unit("#line 1 \"" + text.name + "\"\n" + text.source +
                           "\nextern \"C\" {\n[[gnu::visibility(\"default\")]] " +
                           list_of(text.source) + "}\n",
                       text.options);
}

// --- Many together -------------------------------------------------------------------------------

namespace {

namespace fs = std::filesystem;

std::string joined(const std::vector<std::string>& options) {
  std::string all;
  for (const std::string& option : options) all += option + " ";
  return all;
}

std::string in_hex(std::size_t number) {
  std::ostringstream text;
  text << std::hex << number;
  return text.str();
}

// Stands for a text, and for what decides what becomes of it.
std::string key_of(const Text& text) {
  static const std::string version = [] {
    std::string all = PLAIT_OPTIONS;
    for (const char* folder : PLAIT_INCLUDED)
      for (const auto& entry : fs::recursive_directory_iterator(folder))
        if (entry.is_regular_file()) all += contents(entry.path());
    return in_hex(std::hash<std::string>()(all));
  }();
  const std::string options = joined(text.options);
  return in_hex(std::hash<std::string>()(version + options + text.source)) +
         in_hex(std::hash<std::string>()(text.source + options + version));
}

void write_whole(const fs::path& path, const std::string& bytes) {
  const fs::path unfinished = path.string() + "." + std::to_string(getpid()) + "-" +
                              in_hex(std::hash<std::thread::id>()(std::this_thread::get_id()));
  std::ofstream(unfinished, std::ios::binary) << bytes;
  fs::rename(unfinished, path);
}

struct Unit {
  std::vector<std::string> keys, options;
  std::string text;
};

// Texts as one: each in a namespace of its own, behind what they include.
Unit unit_of(const std::vector<std::pair<std::string, Text>>& texts) {
  static const std::regex include(R"((^|\n)[ ]*#include ([<"][^\n]*))"),
      linkage("extern \"C\" (?=__global__)");
  Unit unit;
  unit.options = texts[0].second.options;
  std::vector<std::string> included;
  std::string bodies, lists;
  for (const auto& [key, text] : texts) {
    for (std::sregex_iterator match(text.source.begin(), text.source.end(), include), end;
         match != end; ++match)
      if (std::find(included.begin(), included.end(), (*match)[2]) == included.end())
        included.push_back((*match)[2]);
    const std::string own = "text" + std::to_string(unit.keys.size());
    bodies += "namespace " + own + " {\n#line 1 \"" + text.name + "\"\n" +
              std::regex_replace(std::regex_replace(text.source, include, "$1"), linkage, "") +
              "\nstatic " + list_of(text.source) + "}\n";
    lists += own + "::plait_kernel_list, ";
    unit.keys.push_back(key);
  }
  for (const std::string& header : included) unit.text += "#include " + header + "\n";
  unit.text += bodies +
               "extern \"C\" [[gnu::visibility(\"default\")]] on_cpu::Entry* "
               "plait_kernel_lists[] = {" +
               lists + "};\n";
  return unit;
}

// One that the compiler refuses has texts that are compiled alone when they are asked for: then
// what is wrong is said.
void compile_unit(const fs::path& folder, const Unit& unit) {
  const Compiled made = compiled_unit(unit.text, unit.options);
  if (!made.is_content) {
    if (std::getenv("STANDIN_LOG") != nullptr) std::fputs(made.log.c_str(), stderr);
    return;
  }
  const fs::path library = folder / (unit.keys[0] + ".so");
  write_whole(library, made.library);
  for (std::size_t i = 0; i < unit.keys.size(); ++i)
    write_whole(folder / unit.keys[i], image_prefix + library.string() + "\n" + std::to_string(i));
}

}  // namespace

Kept kept(const Text& text, std::string& image) {
  const char* const folder = std::getenv("STANDIN_KERNELS");
  if (folder == nullptr || *folder == '\0') return Kept::no;
  const std::string key = key_of(text);
  image = contents(fs::path(folder) / key);
  if (!image.empty()) {
    image += '\0';
    return Kept::yes;
  }
  const char* const collects = std::getenv("STANDIN_COLLECT");
  // Copies are few, and needed by whatever runs meanwhile.
  const bool is_copy = text.source.find("plait/copy.h") != std::string::npos;
  if (is_copy || collects == nullptr || std::strcmp(collects, "1") != 0) return Kept::no;
  write_whole(fs::path(folder) / (key + ".cu"),
              joined(text.options) + "\n" + text.name + "\n" + text.source);
  return Kept::collected;
}

}  // namespace cuda_standin

int standin_compile_collected(int jobs) {
  using namespace cuda_standin;
  constexpr std::size_t most_texts = 500;
  const char* const folder = std::getenv("STANDIN_KERNELS");
  if (folder == nullptr || !fs::is_directory(folder)) return 0;
  jobs = std::max(jobs, 1);
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".cu") files.insert(entry.path());
  std::vector<Unit> units;
  std::vector<std::pair<std::string, Text>> texts;
  const std::size_t in_unit = std::min(most_texts, files.size() / std::size_t(2 * jobs) + 1);
  const auto finish = [&] {
    if (!texts.empty()) units.push_back(unit_of(texts));
    texts.clear();
  };
  for (const fs::path& path : files) {
    std::ifstream file(path);
    std::string options, name;
    std::getline(file, options);
    std::getline(file, name);
    Text text{name, {std::istreambuf_iterator<char>(file), {}}, words(options)};
    if (!texts.empty() && texts[0].second.options != text.options) finish();
    texts.emplace_back(path.stem().string(), std::move(text));
    if (texts.size() == in_unit) finish();
  }
  finish();
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < jobs; ++i)
    threads.emplace_back([&] {
      for (std::size_t at = next++; at < units.size(); at = next++) compile_unit(folder, units[at]);
    });
  for (std::thread& thread : threads) thread.join();
  for (const fs::path& path : files) fs::remove(path);
  return int(files.size());
}
