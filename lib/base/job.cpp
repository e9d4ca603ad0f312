// See job.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/job.h"

#include <plait/base/pool.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "base/cgroup.h"

namespace plait {
namespace {

const char* variable(const char* name) {
  const char* text = std::getenv(name);
  return text && *text ? text : nullptr;
}

// The number in the first of these variables that has one; Slurm writes "4(x2)" for two machines.
int number_in(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names)
    if (const char* text = variable(name)) {
      char* end = nullptr;
      if (const long number = std::strtol(text, &end, 10); end != text) return int(number);
    }
  return otherwise;
}

}  // namespace

std::optional<Job> job_of_environment() {
  if (const char* asked = variable("PLAIT_MPI"); asked && std::string_view(asked) == "0") return {};
  const bool is_open_mpi = variable("OMPI_COMM_WORLD_RANK");
  const bool is_pmi = variable("PMI_RANK"), is_pmix = variable("PMIX_RANK");
  if (!is_open_mpi && !is_pmi && !is_pmix) return {};
  Job job;
  // Of the interfaces of Slurm MPICH has PMI, and Open MPI has PMIx; both may be built otherwise.
  job.launcher = is_open_mpi || !is_pmi ? Job::Launcher::open_mpi : Job::Launcher::mpich;
  job.is_launcher_sure = is_open_mpi || (is_pmi && !variable("SLURM_PROCID"));
  job.rank = number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, -1);
  job.size = number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 0);
  job.num_on_this_machine =
      number_in({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"}, 0);
  return job;
}

int num_tasks_alone() {
  if (variable("PLAIT_MPI") || job_of_environment()) return 1;
  return number_in({"SLURM_STEP_NUM_TASKS"}, 1);
}

bool are_threads_chosen() { return variable("PLAIT_THREADS") || variable("OMP_NUM_THREADS"); }

int num_threads_of_rank(int num_on_this_machine) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (const auto quota = cgroup_cpus()) cores = std::min(cores, long(std::ceil(*quota)));
  const long each = cores / std::max(num_on_this_machine, 1);
  return int(std::clamp<long>(each, 1, num_threads()));
}

}  // namespace plait
