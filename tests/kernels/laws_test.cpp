// The laws of kernels (plait conformance), and random compositions of transforms, by kernels that
// run on the CPU. The laws are asked twice. The first time the texts of kernels are collected, and
// groups run on the CPU; then few compilers make kernels of all texts. What they made is kept in
// the folder of the build, by text.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/error.h>
#include <plait/base/transfer.h>
#include <plait/inspect/conformance.h>
#include <plait/inspect/samples.h>
#include <plait/plait.h>

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "../cuda/here.h"
#include "../laws/compositions.h"
#include "backends/cuda/backend.h"
#include "backends/cuda/driver.h"

using namespace plait;

namespace {

Device here() { return Device::named("cuda:0"); }

Arrays on_cpu(const Jaxpr& program, std::span<const Buffer> inputs) {
  const CompileOptions options{.backends = {find_backend("control"), find_backend("reference")}};
  Arrays results;
  for (const Buffer& buffer : compile(program, options)->run(inputs))
    results.push_back(Array(buffer));
  return results;
}

// What runs a group on the CPU where its kernel, if there is one, is of a text that is collected.
class CollectedKernel final : public Kernel {
 public:
  CollectedKernel(std::unique_ptr<Kernel> kernel, Jaxpr group)
      : kernel_(std::move(kernel)), group_(std::move(group)) {}

  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
               const Launch& launch) const override {
    try {
      if (kernel_) return kernel_->enqueue(inputs, outputs, scratch, launch);
    } catch (const InternalError& error) {
      if (std::string(error.what()).find("the text is collected") == std::string::npos) throw;
    }
    std::vector<Buffer> buffers;
    for (const View& view : inputs) {
      buffers.push_back(Buffer::empty(view.dtype, view.shape));
      download(view, buffers.back().view(), launch.stream);
    }
    const Arrays results = on_cpu(group_, buffers);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      upload(results[i].buffer().view(), outputs[i], launch.stream);
    launch.stream.synchronize();
  }
  std::exception_ptr error_of(const Failure& failure) const override {
    return kernel_ ? kernel_->error_of(failure) : Kernel::error_of(failure);
  }
  std::int64_t scratch_bytes() const override { return kernel_ ? kernel_->scratch_bytes() : 0; }
  bool is_whole() const override { return true; }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const Jaxpr group_;
};

// The backend of loop programs, but for large groups: each element takes some microseconds here.
class CollectingBackend final : public Backend {
 public:
  bool collects = false;

  std::string_view name() const override { return all_->name(); }
  bool runs_on(Device device) const override { return all_->runs_on(device); }
  bool runs_eagerly() const override { return all_->runs_eagerly(); }
  bool takes_views() const override { return all_->takes_views(); }
  Support supports(const Equation& equation, std::span<const Aval> inputs,
                   std::span<const Aval> outputs, Device device) const override {
    return all_->supports(equation, inputs, outputs, device);
  }
  bool joins(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
             std::span<const int> more) const override {
    return all_->joins(program, uses, group, more);
  }
  std::string sibling_key(const Jaxpr& program, std::span<const int> group) const override {
    return all_->sibling_key(program, group);
  }
  std::unique_ptr<Kernel> compile(const Jaxpr& group, const Target& target) const override {
    if (is_large(group)) return std::make_unique<CollectedKernel>(nullptr, group);
    std::unique_ptr<Kernel> kernel = all_->compile(group, target);
    if (!collects) return kernel;
    return std::make_unique<CollectedKernel>(std::move(kernel), group);
  }

 private:
  static bool is_large(const Jaxpr& group) {
    constexpr std::int64_t most_elements = 4096;
    return std::any_of(group->avals.begin(), group->avals.end(), [](const Aval& aval) {
      return num_elements(aval.shape.to_sizes()) > most_elements;
    });
  }
  const std::unique_ptr<Backend> all_ = cuda::make_backend();
};

// The program that transforms make of a random one, on the device against the CPU.
std::optional<std::string> difference_of(const laws::Composition& composition) {
  const laws::Transformed whole = laws::transformed(composition);
  const Jaxpr program = make_jaxpr(whole.function, whole.avals, "composition").jaxpr;
  std::vector<Buffer> inputs;
  for (std::size_t i = 0; i < whole.avals.size(); ++i)
    inputs.push_back(laws::normal_like(whole.avals[i], 50 + unsigned(i)).buffer());
  const Arrays expected = on_cpu(program, inputs);
  for (Buffer& input : inputs) input = input.on(here());
  Arrays results;
  for (const Buffer& buffer : compile(program, {.device = here()})->run(inputs))
    results.push_back(Array(buffer));
  return laws::difference(results, expected);
}

struct Verdicts {
  ConformanceReport report;
  std::vector<std::string> of_compositions;
};
// PLAIT_FIRST_SEED and PLAIT_COMPOSITIONS try others, and more; PLAIT_PRIMITIVE one alone.
Verdicts verdicts(const Backend& backend) {
  const auto number = [](const char* variable, int otherwise) {
    const char* const asked = std::getenv(variable);
    return asked ? std::atoi(asked) : otherwise;
  };
  const int first = number("PLAIT_FIRST_SEED", 0), count = number("PLAIT_COMPOSITIONS", 24);
  const std::vector<DType> dtypes{DType::float32, DType::int32, DType::bool_};
  ConformanceOptions options{.device = here(), .dtypes = dtypes};
  if (const char* const asked = std::getenv("PLAIT_PRIMITIVE")) options.primitives = {asked};
  Verdicts found{conformance(backend, options), {}};
  for (int seed = first; seed < first + count; ++seed) {
    const laws::Composition composition = laws::random_composition(unsigned(seed));
    std::optional<std::string> what;
    try {
      what = difference_of(composition);
    } catch (const Error& error) {
      what = error.what();
    }
    if (what)
      found.of_compositions.push_back("seed " + std::to_string(seed) + ": " + *what + "\n" +
                                      composition.to_string());
  }
  return found;
}

// Makes kernels of the texts that were collected: of the stand-in alone; a GPU's compiler is quick.
using CompileCollected = int (*)(int jobs);
CompileCollected find_compile_collected() {
  const std::string path = std::string(std::getenv("PLAIT_CUDA_LIBRARIES")) + "/libnvrtc.so.13";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr
                            : CompileCollected(dlsym(library, "standin_compile_collected"));
}

}  // namespace

TEST_CASE("laws of primitives and compositions hold for kernels") {
  setenv("PLAIT_CUDA", "0", 1);
  REQUIRE(cuda::register_cuda_driver());
  const auto folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cuda" / "kernels";
  std::filesystem::create_directories(folder);
  setenv("STANDIN_KERNELS", folder.c_str(), 1);
  setenv("PLAIT_CACHE_DIR", "0", 1);
  setenv("PLAIT_CUDA_TOGETHER", "0", 1);  // texts are known one by one
  auto made = std::make_unique<CollectingBackend>();
  CollectingBackend& backend = *made;
  register_backend(std::move(made), Preference::loops);
  const auto at_cpu_seconds = [] {
    return "at " + std::to_string(clock() / CLOCKS_PER_SEC) + " s of this process: ";
  };

  Verdicts found;
  int count = 1;
  if (const CompileCollected compile_them = find_compile_collected()) {
    backend.collects = true;
    setenv("STANDIN_COLLECT", "1", 1);
    found = verdicts(backend);
    unsetenv("STANDIN_COLLECT");
    backend.collects = false;
    MESSAGE(at_cpu_seconds() << "texts are collected");
    count = compile_them(int(std::thread::hardware_concurrency()));
  }
  if (count > 0) found = verdicts(backend);
  MESSAGE(at_cpu_seconds() << count << " texts were compiled, and all ran");
  for (const ConformanceRow& row : found.report.rows)
    if (row.state == ConformanceRow::State::failed)
      FAIL_CHECK(row.primitive << " " << short_name_of(row.dtype) << " " << row.detail);
  for (const std::string& what : found.of_compositions) FAIL_CHECK(what);
  CHECK(found.report.count(ConformanceRow::State::passed) >= 1);
  unsetenv("STANDIN_KERNELS");
}
