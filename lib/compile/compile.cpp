// The driver: chooses the backends and the first tier, and makes the executables of a program. See
// compile.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/compile.h>

#include <plait/rules/bodies.h>
#include <plait/rules/cost.h>

#include <array>

#include "compile/carriers.h"
#include "compile/executable_of.h"
#include "compile/passes/pipeline.h"
#include "compile/places.h"
#include "compile/plan.h"
#include "compile/several_devices.h"
#include "compile/tiers.h"
#include "run/executable.h"

namespace plait {
namespace {

bool claims(std::span<const Backend* const> backends, const Jaxpr& program,
            const Equation& equation, Device device) {
  std::vector<Aval> inputs, outputs;
  for (const Atom& atom : equation.inputs) inputs.push_back(program->aval(atom));
  for (Var var : equation.outputs) outputs.push_back(program->aval(var));
  return compile_passes::is_claimed(backends, equation, inputs, outputs, device);
}

// Whether these backends alone run a program that was prepared for them. Those registered for the
// CPU do.
bool run_all(std::span<const Backend* const> backends, const Jaxpr& program,
             const CompileOptions& options) {
  if (options.backends.empty() && options.device.is_host()) return true;
  return std::all_of(program->equations.begin(), program->equations.end(),
                     [&](const Equation& equation) {
                       // Some views are copies: of a transposed array, or of a number.
                       const bool is_view = Alias::table().find(*equation.primitive);
                       return (is_view && options.device.is_host()) ||
                              claims(backends, program, equation, options.device);
                     });
}

// What a program may gain from slow backends, if they claim any of it.
struct Gain {
  tiers::Worth worth{};
  bool has_long_loops = false;  // loops that take longer, in one call, than compilation
};

std::optional<Gain> gain_of(std::span<const Backend* const> slow, const Jaxpr& program,
                            Device device) {
  constexpr double of_equation = 90;  // overhead in ns, beside its time
  constexpr int sample = 64;          // the number of equations that stand for the others
  double gain = 0, loops = 0;
  int count = 0;
  for (const Equation& equation : program->equations) {
    const bool is_loop = has_loop_body(equation);
    if (count >= sample && !is_loop) continue;
    if (!claims(slow, program, equation, device)) continue;
    const double time = estimated_time(program, equation);
    gain += of_equation + time;
    if (is_loop) loops += time;
    ++count;
  }
  if (count == 0) return {};
  const auto compilation = tiers::compilation_time(program->equations.size());
  // The cost is a tenth of the compilation time, as another thread spends it, and only that of the
  // counted equations. A program that runs once is not worth compiling.
  const double cost = double(tiers::compilation_time(std::size_t(count)).count()) / 10;
  return Gain{{int(std::clamp(cost / gain, 2.0, 1000.0)), compilation},
              loops > double(compilation.count())};
}

// next: the backends of the next tier, if this is a first tier.
std::shared_ptr<PlannedExecutable> compile_with(std::span<const Backend* const> backends,
                                                std::span<const Backend* const> next,
                                                const Jaxpr& plain, std::vector<Aval> outputs,
                                                const CompileOptions& options) {
  const tiers::FirstTier scope(next);
  compile_passes::Plan plan = compile_passes::make_plan(
      plain, compile_passes::partition_program(plain, backends, options.device), options,
      tiers::breathe);
  plan.outputs = std::move(outputs);
  auto executable = make_executable(std::move(plan), options.device, plain);
  for (const MissingBackend& missing : missing_backends())
    if (!missing.of_device)
      executable->remark("backend " + missing.name + " is not used: " + missing.reason);
  return executable;
}

std::shared_ptr<const Executable> compile_now(const Jaxpr& typed, const CompileOptions& options) {
  if (!typed->sizes.empty())
    throw InternalError("compile: the program has named sizes; instantiate it first\n" +
                        print(typed));
  const Jaxpr jaxpr = compile_passes::with_carriers(compile_passes::with_places(typed));
  const std::vector<Aval> outputs = typed->output_avals();  // weak or stored where it says so
  if (!options.input_devices.empty() || puts_elsewhere(jaxpr, options.device))
    return compile_on_several(jaxpr, outputs, options);
  std::vector<const Backend*> all = options.backends, quick, slow;
  if (all.empty()) all = backends_of(options.device);
  for (const Backend* backend : all) (backend->runs_eagerly() ? quick : slow).push_back(backend);
  const Jaxpr plain = compile_passes::prepare(jaxpr, quick, options.device);
  if (!run_all(quick, plain, options))  // there is no tier to start on
    return compile_with(all, {}, compile_passes::prepare(jaxpr, all, options.device), outputs,
                        options);
  const std::optional<Gain> gain = gain_of(slow, plain, options.device);
  std::string failure;
  if (gain && (gain->has_long_loops || tiers::is_waiting())) try {
      const bool was_asked = tiers::is_waiting();
      const Waiting waiting;  // the programs that it holds are compiled with it
      auto executable = compile_with(all, {}, plain, outputs, options);
      if (!was_asked)
        executable->remark("tier: last; compiled before the first call, which is long");
      return executable;
    } catch (const std::exception& error) {
      failure = error.what();
    }
  // Slow backends that claim nothing are asked all the same, so that explain can say why.
  const std::shared_ptr<const PlannedExecutable> first =
      compile_with(gain ? quick : all, slow, plain, outputs, options);
  if (!failure.empty()) return tiers::make_failed(first, failure);
  // What a host call captures belongs to Python, which the background thread must not touch.
  if (first->has_host_calls() || !gain) return first;
  return tiers::make_tiered(
      first, [=] { return compile_with(all, {}, plain, outputs, options); }, gain->worth);
}

}  // namespace

std::shared_ptr<const Executable> compile(const Jaxpr& jaxpr, const CompileOptions& options) {
  struct Compiled {
    using Result = Executable;
    CompileOptions options;
    bool operator==(const Compiled&) const = default;
  };
  const auto executable =
      jaxpr->memo.get(Compiled{options}, [&] { return compile_now(jaxpr, options); });
  if (tiers::is_waiting()) tiers::finish(*executable);
  return executable;
}

std::shared_ptr<const Executable> compile(const Jaxpr& jaxpr) { return compile(jaxpr, {}); }

std::shared_ptr<const Executable> executable_of(const Jaxpr& jaxpr, Device device) {
  struct Entry {
    Jaxpr jaxpr;
    Device device;
    std::shared_ptr<const Executable> executable;
  };
  static thread_local std::array<Entry, 8> entries;
  const auto address = reinterpret_cast<std::uintptr_t>(&*jaxpr);
  Entry& entry = entries[address / alignof(std::max_align_t) % entries.size()];
  if (entry.jaxpr && &*entry.jaxpr == &*jaxpr && entry.device == device) return entry.executable;
  // Host functions are released by their owner, not by the cache of a thread.
  if (holds_callable(jaxpr)) return compile(jaxpr, {.device = device});
  entry = {jaxpr, device, compile(jaxpr, {.device = device})};
  return entry.executable;
}

}  // namespace plait
