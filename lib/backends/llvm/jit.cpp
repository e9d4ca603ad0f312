// Code generation through one target machine and ORC's LLJIT. The IR is written as it should run,
// so no pass of the optimiser is asked for: instruction selection, scheduling and register
// allocation are all that a kernel waits for. Without the last two (level 0) it waits half as long,
// and runs up to 1.5 times as long where polynomials are long.
// SPDX-License-Identifier: Apache-2.0
#include "jit.h"

#include <plait/base/error.h>

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

namespace plait::llvm {
namespace {

// Of llvm-c/TargetMachine.h.
constexpr int level_default = 2, relocation_pic = 2, code_model_jit_default = 1, object_file = 1;

struct Compiler {
  std::mutex mutex;  // a target machine serves one thread at a time
  TargetMachine target = nullptr;
  Jit jit = nullptr;
  Dylib dylib = nullptr;
  Machine machine;
};

// Never destroyed: executables that outlive main free their code.
Compiler& compiler() {
  static Compiler& compiler = *new Compiler;
  return compiler;
}

std::string take(char* message) {
  std::string text = message ? message : "";
  if (message) api().DisposeMessage(message);
  return text;
}

std::string message_of(Failure failure) {
  char* message = api().GetErrorMessage(failure);
  std::string text = message;
  api().DisposeErrorMessage(message);
  return text;
}

Machine find_machine() {
  Machine machine;
  machine.triple = take(api().GetDefaultTargetTriple());
  machine.cpu = take(api().GetHostCPUName());
  machine.features = take(api().GetHostCPUFeatures());
  const char* cap = std::getenv("PLAIT_MAX_ISA");
  const bool capped = cap && std::string(cap) == "avx2";
  for (const char* feature : {"avx512f", "avx512vl", "avx512bw", "avx512dq"})
    if (machine.features.find("+" + std::string(feature)) == std::string::npos) return machine;
  if (capped) {
    machine.cpu = "x86-64-v3";
    machine.features.clear();
    return machine;
  }
  machine.vector_bytes = 64;
  machine.has_avx512 = true;
  return machine;
}

}  // namespace

const Machine& machine() { return compiler().machine; }

std::string start() {
  const Api& llvm = api();
  Compiler& all = compiler();
  llvm.InitializeX86TargetInfo();
  llvm.InitializeX86Target();
  llvm.InitializeX86TargetMC();
  llvm.InitializeX86AsmPrinter();
  all.machine = find_machine();
  Target target = nullptr;
  char* message = nullptr;
  if (llvm.GetTargetFromTriple(all.machine.triple.c_str(), &target, &message)) return take(message);
  all.target = llvm.CreateTargetMachine(target, all.machine.triple.c_str(), all.machine.cpu.c_str(),
                                        all.machine.features.c_str(), level_default, relocation_pic,
                                        code_model_jit_default);
  if (!all.target) return "LLVM makes no code for " + all.machine.triple;
  all.machine.layout = llvm.CreateTargetDataLayout(all.target);
  if (const Failure failure = llvm.OrcCreateLLJIT(&all.jit, nullptr)) return message_of(failure);
  all.dylib = llvm.OrcLLJITGetMainJITDylib(all.jit);
  // A child of fork must not find the mutex held by a thread that it has not.
  pthread_atfork([] { compiler().mutex.lock(); }, [] { compiler().mutex.unlock(); },
                 [] { compiler().mutex.unlock(); });
  return {};
}

std::string next_name() {
  static std::atomic<std::uint64_t> count{0};
  return "plait_" + std::to_string(count++);
}

std::unique_ptr<const Code> compile_module(Module module, const std::string& name) {
  const Api& llvm = api();
  Compiler& all = compiler();
  auto fail = [](const std::string& reason) { throw InternalError("llvm: " + reason); };
  const std::lock_guard lock(all.mutex);
  char* message = nullptr;
  MemoryBuffer object = nullptr;
  if (llvm.TargetMachineEmitToMemoryBuffer(all.target, module, object_file, &message, &object))
    fail(take(message));
  const Tracker tracker = llvm.OrcJITDylibCreateResourceTracker(all.dylib);
  std::uint64_t address = 0;
  Failure failure = llvm.OrcLLJITAddObjectFileWithRT(all.jit, tracker, object);
  if (!failure) failure = llvm.OrcLLJITLookup(all.jit, &address, name.c_str());
  if (failure) {
    llvm.OrcReleaseResourceTracker(tracker);
    fail(message_of(failure));
  }
  return std::make_unique<const Code>(tracker, reinterpret_cast<void*>(address));
}

Code::~Code() {
  const std::lock_guard lock(compiler().mutex);
  if (const Failure failure = api().OrcResourceTrackerRemove(tracker_)) message_of(failure);
  api().OrcReleaseResourceTracker(tracker_);
}

}  // namespace plait::llvm
