// The launcher of jobs: a layer over mpirun. See job.h.
// SPDX-License-Identifier: Apache-2.0
#include "tool/job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/job.h"
#include "base/library.h"

extern char** environ;

namespace plait::tool {
namespace {

bool is_executable(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

// The first of these programs on PATH, each of them sought in all folders; then beside plait's own
// package, in the environment of Python that it is installed in.
std::string find_program(std::span<const char* const> names) {
  std::vector<std::string> folders = split(variable("PATH"), ':');
  for (const std::string& site : folders_of_packages()) folders.push_back(site + "/../../../bin");
  for (const char* name : names)
    for (const std::string& folder : folders)
      if (std::string path = folder + "/" + name; is_executable(path)) return path;
  return {};
}

std::string output_of(const std::string& command) {
  std::string text;
  if (FILE* pipe = popen(command.c_str(), "r")) {
    char part[4096];
    while (const std::size_t size = std::fread(part, 1, sizeof part, pipe)) text.append(part, size);
    pclose(pipe);
  }
  return text;
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string own_path() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, std::size_t(length)) : "plait";
}

[[noreturn]] void replace_process(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::fflush(nullptr);
  execvp(words[0], words.data());
  throw FileError(command[0] + " cannot be run: " + std::strerror(errno),
                  "check the path, and that it is an executable program");
}

bool is_saved_program(const std::string& path) {
  if (path.ends_with(".plait")) return true;
  std::ifstream file(path, std::ios::binary);
  char start[2] = {};
  return file.read(start, 2) && start[0] == 'P' && start[1] == 'K';  // an archive
}

// Whether a shell finds it by this name, as it does "python"; a file of the folder comes first.
bool is_on_path(const std::string& name) {
  if (name.find('/') != std::string::npos || access(name.c_str(), F_OK) == 0) return false;
  const char* names[] = {name.c_str()};
  return !find_program(names).empty();
}

// What runs a file, with the words after it.
std::vector<std::string> command_of(std::span<const std::string> words) {
  std::vector<std::string> command;
  if (words[0].ends_with(".py")) {
    std::string python = variable("PLAIT_PYTHON");
    constexpr const char* names[] = {"python3", "python"};
    if (python.empty()) python = find_program(names);
    if (python.empty())
      throw FileError("no python was found to run " + words[0], "set PLAIT_PYTHON to its path");
    command = {python};
  }
  command.insert(command.end(), words.begin(), words.end());
  if (words[0].find('/') == std::string::npos && command[0] == words[0] && !is_on_path(words[0]))
    command[0] = "./" + command[0];
  return command;
}

int number_of_ranks(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1)
    throw Usage("-n " + text + " is no number of ranks");
  return number;
}

}  // namespace

bool names_a_program(const std::string& path) {
  if (path[0] == '-') return false;
  return path.ends_with(".py") || (is_executable(path) && !is_saved_program(path)) ||
         is_on_path(path);
}

std::vector<std::string> launch_command(int num_ranks) {
  std::vector<std::string> command = split(variable("PLAIT_MPIRUN"), ' ');
  if (command.empty()) {
    constexpr const char* names[] = {"mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.hydra"};
    command.push_back(find_program(names));
    if (command[0].empty())
      throw BackendError(
          "no launcher of MPI was found: there is no mpirun on PATH",
          "install Open MPI or MPICH, as by `pip install mpich`, or set PLAIT_MPIRUN "
          "to the command that starts jobs here");
  }
  const std::string version = output_of(quoted(command[0]) + " --version 2>&1");
  if (version.find("Open MPI") != std::string::npos ||
      version.find("OpenRTE") != std::string::npos) {
    if (geteuid() == 0) command.push_back("--allow-run-as-root");
    command.insert(command.end(), {"--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"});
    for (char** entry = environ; *entry; ++entry) {  // to other machines; MPICH passes all
      const std::string name(*entry, std::strcspn(*entry, "="));
      if (name.starts_with("PLAIT_") || name == "PYTHONPATH")
        command.insert(command.end(), {"-x", name});
    }
  }
  command.insert(command.end(), {"-n", std::to_string(num_ranks)});
  return command;
}

std::optional<int> run_processes(std::span<const std::string> words) {
  if (words.empty() || words[0].empty()) return {};
  if (const bool is_apart = words[0] == "-n"; is_apart || words[0].starts_with("-n=")) {
    if (is_apart && words.size() < 2) throw Usage("-n needs a value: N");
    const int num_ranks = number_of_ranks(is_apart ? words[1] : words[0].substr(3));
    words = words.subspan(is_apart ? 2 : 1);
    if (words.empty()) throw Usage("-n is followed by the program: script.py, or a path");
    if (words[0][0] != '-' && access(words[0].c_str(), R_OK) != 0 && !is_on_path(words[0]))
      throw FileError(words[0] + " cannot be read: " + std::strerror(errno), "check the path");
    std::vector<std::string> command = launch_command(num_ranks);
    command.insert(command.end(), {own_path(), "run"});
    command.insert(command.end(), words.begin(), words.end());
    replace_process(command);
  }
  if (!names_a_program(words[0])) return {};
  const std::vector<std::string> command = command_of(words);
  const std::optional<Job> job = job_of_environment();
  if (!job) replace_process(command);
  if (!are_threads_chosen() && job->num_on_this_machine > 0)
    setenv("PLAIT_THREADS", std::to_string(num_threads_of_rank(job->num_on_this_machine)).c_str(),
           1);
  return supervise(command);
}

}  // namespace plait::tool
