// MPI as a module of the library: it says how a job is joined, and does nothing before it is asked.
// SPDX-License-Identifier: Apache-2.0
#include "backends/mpi/find.h"

namespace plait::mpi {
namespace {

const bool is_known = (set_engine(&start_engine), true);

}  // namespace
}  // namespace plait::mpi
