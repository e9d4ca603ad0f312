// The ABI of Open MPI 3 to 5, libmpi.so.40: handles are addresses of the library's objects.
// SPDX-License-Identifier: Apache-2.0
#include "backends/mpi/engine.h"

namespace plait::mpi {
namespace {

struct OpenMpi {
  using Comm = void*;
  using Request = void*;
  using Datatype = void*;
  using Errhandler = void*;
  using Info = void*;
  static constexpr int thread_serialized = 2, type_shared = 0, any_tag = -1;
  static void* no_status() { return nullptr; }
  struct Constants {
    explicit Constants(const Library& library)
        : world(library.find("ompi_mpi_comm_world")),
          byte(library.find("ompi_mpi_byte")),
          errors_return(library.find("ompi_mpi_errors_return")),
          no_info(library.find("ompi_mpi_info_null")) {}
    bool are_complete() const { return world && byte && errors_return && no_info; }
    void *world, *byte, *errors_return, *no_info;
  };
};

}  // namespace

std::shared_ptr<Communicator> start_openmpi(const Library& library, const Job& job) {
  return start<OpenMpi>(library, job);
}

}  // namespace plait::mpi
