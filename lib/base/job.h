// What launchers of MPI tell a process about its job, in the environment.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace plait {

struct Job {
  enum class Launcher { open_mpi, mpich };
  Launcher launcher = Launcher::mpich;
  bool is_launcher_sure = false;  // Slurm starts ranks of both
  int rank = -1, size = 0;        // -1 and 0: it does not say
  int num_on_this_machine = 0;    // 0: it does not say
};
// Nothing where no launcher of MPI started this process, or PLAIT_MPI is 0.
std::optional<Job> job_of_environment();

// How many tasks a launcher that is no MPI's started, as `srun --mpi=none` does: each of them runs
// the whole program. 1 where there is none, and where PLAIT_MPI says that they are to.
int num_tasks_alone();

// How many threads a rank has when so many share the machine: its cores divided by them, or fewer
// where the launcher gave it fewer.
int num_threads_of_rank(int num_on_this_machine);
// Whether the user says how many threads there are.
bool are_threads_chosen();

}  // namespace plait
