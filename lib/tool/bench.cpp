// plait bench: how long an entry takes, on either tier. See command.h and NOTE: [tiers].
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "compile/tiers.h"
#include "tool/inputs.h"

namespace plait::tool {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Bench {
 public:
  Bench(const Inputs& inputs, const Arguments& arguments)
      : wanted_(arguments.number("--repeat", 0)) {
    if (arguments.has("--repeat") && wanted_ < 1) throw Usage("--repeat needs 1 or more");
    for (const Array& array : inputs.operands) operands_.push_back(array.host_buffer().dense());
  }

  // One line: the median time of calls, after a warm-up call.
  void print(const char* what, double seconds_to_compile, const Executable& executable) const {
    const double first = seconds_of(executable);
    // As many calls as take about half a second.
    const std::int64_t count = wanted_ ? wanted_ : std::clamp<std::int64_t>(0.5 / first, 5, 10'000);
    std::vector<double> seconds;
    for (std::int64_t i = 0; i < count; ++i) seconds.push_back(seconds_of(executable));
    std::sort(seconds.begin(), seconds.end());
    std::printf("  %-11s median %s, least %s, of %s; compiled in %s\n", what,
                seconds_text(seconds[seconds.size() / 2]).c_str(), seconds_text(seconds[0]).c_str(),
                counted(count, "call").c_str(), seconds_text(seconds_to_compile).c_str());
  }

 private:
  double seconds_of(const Executable& executable) const {
    const double begin = now();
    executable.run(operands_);
    return std::max(now() - begin, 1e-9);
  }

  std::vector<Buffer> operands_;
  const std::int64_t wanted_;
};

}  // namespace

int bench(const Arguments& arguments) {
  choose_threads(arguments);
  const Program program = program_of(arguments);
  const Entry& entry = entry_of(program, arguments);
  const Inputs inputs = inputs_of(entry, arguments);
  const Bench bench(inputs, arguments);
  std::printf("%s: %s, %s%s\n", entry.name().c_str(),
              counted(std::int64_t(inputs.jaxpr->equations.size()), "equation").c_str(),
              counted(num_threads(), "thread").c_str(),
              inputs.is_example ? ", on its test vector" : "");
  double begin = now();
  const std::shared_ptr<const Executable> executable = plait::compile(inputs.jaxpr);
  // The first tier itself, which is never replaced.
  if (!tiers::is_waiting()) bench.print("first tier", now() - begin, executable->current());
  begin = now();
  tiers::finish(*executable);
  bench.print("last tier", now() - begin, executable->current());
  return 0;
}

}  // namespace plait::tool
