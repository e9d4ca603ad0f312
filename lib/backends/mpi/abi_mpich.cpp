// The ABI of MPICH and of those that follow it (Intel MPI, MVAPICH), libmpi.so.12: handles are
// ints.
// SPDX-License-Identifier: Apache-2.0
#include "backends/mpi/engine.h"

namespace plait::mpi {
namespace {

struct Mpich {
  using Comm = int;
  using Request = int;
  using Datatype = int;
  using Errhandler = int;
  using Info = int;
  static constexpr int thread_serialized = 2, type_shared = 1, any_tag = -1;
  static void* no_status() { return reinterpret_cast<void*>(1); }
  struct Constants {
    explicit Constants(const Library&) {}
    bool are_complete() const { return true; }
    int world = 0x44000000, byte = 0x4c00010d, errors_return = 0x54000001, no_info = 0x1c000000;
  };
};

}  // namespace

std::shared_ptr<Communicator> start_mpich(const Library& library, const Job& job) {
  return start<Mpich>(library, job);
}

}  // namespace plait::mpi
