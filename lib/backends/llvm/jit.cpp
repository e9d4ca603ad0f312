// Code generation through one target machine. The IR is written as it should run, so no pass of
// the optimiser is asked for: instruction selection, scheduling and register allocation are all
// that a kernel waits for. Without the last two (level 0) it waits half as long, and runs up to 1.5
// times as long where polynomials are long.
// SPDX-License-Identifier: Apache-2.0
#include "jit.h"

#include <plait/base/error.h>
#include <plait/compile/backend.h>

#include <cpuid.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/before_exit.h"
#include "cache.h"
#include "embedded.h"

namespace plait::llvm {
namespace {

// Of llvm-c/TargetMachine.h.
constexpr int level_default = 2, relocation_pic = 2, code_model_small = 3, object_file = 1;

struct Compiler {
  std::atomic<bool> is_started{false};  // loaded, or known to fail
  std::string failure;
  std::atomic<bool> is_missing{false};
  std::mutex mutex;  // of who writes and compiles: a target machine serves one thread at a time
  TargetMachine target = nullptr;
  ModuleTarget module;
};

struct Codes {
  std::mutex mutex;
  std::map<Key, std::weak_ptr<const Code>> all;
  std::size_t purge_at = 64;
};

// Never destroyed: executables outlive main.
Compiler& compiler() {
  static Compiler& compiler = *new Compiler;
  return compiler;
}
Codes& codes() {
  static Codes& codes = *new Codes;
  return codes;
}

void lock_all() { compiler().mutex.lock(), codes().mutex.lock(); }
void unlock_all() { codes().mutex.unlock(), compiler().mutex.unlock(); }

// A child of fork must not find a mutex held by a thread that it has not. Known before anything is
// compiled in the background, so that fork waits for that (see NOTE: [fork]) before it locks these.
[[maybe_unused]] const int guarded = pthread_atfork(lock_all, unlock_all, unlock_all);

void require_running(const LibraryUse& use) {
  if (use.is_refused()) throw BackendError("llvm: the process ends", "compile earlier");
}

// What write makes, unless the process ends.
Object write_alone(const std::function<Object()>& write) {
  require_compiler();
  const LibraryUse use;
  require_running(use);
  const std::lock_guard lock(compiler().mutex);
  return write();
}

std::string take(char* message) {
  std::string text = message ? message : "";
  if (message) api().DisposeMessage(message);
  return text;
}

// Kernels for elsewhere run on every machine that plait runs on.
bool is_capped() {
  if (is_for_elsewhere()) return true;
  const char* cap = std::getenv("PLAIT_MAX_ISA");
  return cap && std::string(cap) == "avx2";
}

// What this processor can do, in its own words.
std::string processor_identity() {
  std::string words = is_capped() ? "avx2 " : "native ";
  unsigned a, b, c, d;
  auto add = [&](unsigned leaf, unsigned subleaf) {
    if (!__get_cpuid_count(leaf, subleaf, &a, &b, &c, &d)) return;
    if (leaf == 1) b = 0;  // names the core
    for (unsigned word : {a, b, c, d}) words += std::to_string(word) + " ";
  };
  add(1, 0), add(7, 0), add(7, 1), add(0x80000001, 0);
  return words;
}

std::string start() {
  std::string failure = load();
  if (!failure.empty()) return failure;
  const Api& llvm = api();
  Compiler& all = compiler();
  llvm.InitializeX86TargetInfo();
  llvm.InitializeX86Target();
  llvm.InitializeX86TargetMC();
  llvm.InitializeX86AsmPrinter();
  all.module.triple = take(llvm.GetDefaultTargetTriple());
  std::string cpu = "x86-64-v3", features;
  if (machine().has_avx512 || !is_capped()) {
    cpu = take(llvm.GetHostCPUName());
    features = take(llvm.GetHostCPUFeatures());
  }
  Target target = nullptr;
  char* message = nullptr;
  const char* triple = all.module.triple.c_str();
  if (llvm.GetTargetFromTriple(triple, &target, &message)) return take(message);
  all.target = llvm.CreateTargetMachine(target, triple, cpu.c_str(), features.c_str(),
                                        level_default, relocation_pic, code_model_small);
  if (!all.target) return llvm.path + " makes no code for " + all.module.triple;
  all.module.layout = llvm.CreateTargetDataLayout(all.target);
  log_line("llvm: " + llvm.path + " (version " + std::to_string(llvm.version) +
           ") makes code for " + cpu);
  return {};
}

Machine find_machine() {
  Machine machine;
  machine.has_avx512 = !is_capped() && __builtin_cpu_supports("avx512f") &&
                       __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq");
  if (machine.has_avx512) machine.vector_bytes = 64;
  return machine;
}

}  // namespace

const Machine& machine() {
  static const Machine machine = find_machine();
  return machine;
}

void require_compiler() {
  Compiler& all = compiler();
  if (!all.is_started.load(std::memory_order_acquire)) {
    const LibraryUse use;
    require_running(use);
    const std::lock_guard lock(all.mutex);
    if (!all.is_started) {
      all.failure = start();
      all.is_missing = !all.failure.empty();
      if (all.is_missing) report_missing_backend("llvm", all.failure);
      all.is_started.store(true, std::memory_order_release);
    }
  }
  if (!all.failure.empty())
    throw BackendError("libLLVM cannot be used: " + all.failure,
                       "install it, or name it with PLAIT_LLVM; PLAIT_LLVM=0 does without");
}

bool is_compiler_missing() { return compiler().is_missing; }

const ModuleTarget& module_target() { return compiler().module; }

Object compile_module(Module module) {
  const Api& llvm = api();
  char* message = nullptr;
  MemoryBuffer buffer = nullptr;
  if (llvm.TargetMachineEmitToMemoryBuffer(compiler().target, module, object_file, &message,
                                           &buffer))
    throw InternalError("llvm: " + take(message));
  Object object{{llvm.GetBufferStart(buffer), llvm.GetBufferSize(buffer)}};
  llvm.DisposeMemoryBuffer(buffer);
  return object;
}

std::shared_ptr<const Code> make_code(const std::string& description,
                                      const std::function<Object()>& write) {
  if (is_embedded()) {
    if (std::shared_ptr<const Code> code = embedded_code(key_of(description))) return code;
    throw BackendError("llvm: no kernel is embedded for these equations",
                       "compile the program again with this version of plait");
  }
  static const std::string& everywhere = *new const std::string(
      build_identity() + "\n" + library_identity() + "\n" + processor_identity() + "\n");
  const Key key = key_of(everywhere + description);
  Codes& all = codes();
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.all.find(key); found != all.all.end())
      if (auto code = found->second.lock()) return code;
  }
  std::shared_ptr<const Code> code;
  if (const std::optional<Object> kept = read_object(key)) {
    code = std::make_shared<const Code>(*kept);
  } else {
    const Object object = write_alone(write);
    code = std::make_shared<const Code>(object);
    export_kernel(key_of(description), object);
    write_object(key, object);
  }
  const std::lock_guard lock(all.mutex);
  all.all[key] = code;
  if (all.all.size() >= all.purge_at) {
    std::erase_if(all.all, [](const auto& entry) { return entry.second.expired(); });
    all.purge_at = 2 * all.all.size() + 64;
  }
  return code;
}

}  // namespace plait::llvm
