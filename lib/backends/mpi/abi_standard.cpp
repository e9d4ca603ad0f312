// The ABI of the standard, MPI 5, libmpi_abi.so.1: handles are pointers, constants are small
// numbers.
// SPDX-License-Identifier: Apache-2.0
#include "backends/mpi/engine.h"

namespace plait::mpi {
namespace {

struct Standard {
  using Comm = void*;
  using Request = void*;
  using Datatype = void*;
  using Errhandler = void*;
  using Info = void*;
  static constexpr int thread_serialized = 2048, type_shared = 221, any_tag = -2;
  static void* no_status() { return nullptr; }
  struct Constants {
    explicit Constants(const Library&) {}
    bool are_complete() const { return true; }
    static void* handle(std::uintptr_t number) { return reinterpret_cast<void*>(number); }
    void *world = handle(0x101), *byte = handle(0x247), *errors_return = handle(0x143),
         *no_info = handle(0x130);
  };
};

}  // namespace

std::shared_ptr<Communicator> start_standard(const Library& library, const Job& job) {
  return start<Standard>(library, job);
}

}  // namespace plait::mpi
