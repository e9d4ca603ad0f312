// Finding the MPI that started the job, and what its engine says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/communicator.h>

namespace plait::mpi {

// BackendError where there is no MPI, or another one than that which started the job.
std::shared_ptr<Communicator> start_engine();

inline constexpr char fix_of_library[] =
    "set PLAIT_MPI_LIBRARIES to the folder of the libmpi that belongs to the mpirun of this job; "
    "with Slurm, srun --mpi=pmi2 starts MPICH and --mpi=pmix Open MPI; or set PLAIT_MPI=0 to run "
    "every process alone";

// "Open MPI v4.1.4", "MPICH 4.0.2", of what MPI_Get_library_version writes.
std::string name_of_version(const std::string& text);
std::string machine_name();
std::string text_of(std::chrono::duration<double> time);  // "1.5 s"
std::string named(const Ranks& ranks);                    // "rank 1", "ranks 1, 2 and 3"
// One line on stderr, whole.
void say(const std::string& line);

}  // namespace plait::mpi
