// How control flow runs whose examples go different ways: only for those that need it. The rows of
// live examples are brought together, and bodies are compiled for half as many, a quarter, ... on
// demand, so that the work is at most twice that of the live ones. Generated code, where there is
// any, runs examples one after the other instead: see Writer::for_each_example.
//
// A branch runs on the examples that take it. An example that has finished a loop leaves it with
// its carry. What a loop pushes are such rows, and a scan over stacks runs on the rows that it
// finds there.
//
// NOTE: rows that are not live, and results of examples that do not take part, are copies of those
// of the first that is live. So whatever else is computed of them fails for no one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control.h"

#include <plait/base/examples.h>
#include <plait/transforms/laned.h>

#include "control/bodies.h"

#include <algorithm>

namespace plait {

// Counts the rows that bodies run on, for one run of a kernel.
struct Count {
  std::int64_t live = 0, all = 0;
  ~Count();
  void add(std::int64_t live_now, std::int64_t rows) {
    live += live_now;
    all += rows;
  }
};

// Numbers of rows that bodies are compiled for: all, half as many (rounded up), ... 1.
inline std::vector<std::int64_t> sizes_for(std::int64_t num_examples) {
  std::vector<std::int64_t> sizes{num_examples};
  while (sizes.back() > 1) sizes.push_back((sizes.back() + 1) / 2);
  return sizes;
}

// A body of one example, compiled for many on demand. Rules of Python may run then, so no lock is
// held: of threads that race, the first one's stays.
class LaneBody {
 public:
  // batched: the inputs that have a row for each example.
  LaneBody(Jaxpr body, Device device, Flags batched, std::span<const std::int64_t> sizes)
      : body_(std::move(body)),
        device_(device),
        batched_(std::move(batched)),
        sizes_(sizes.begin(), sizes.end()),
        compiled_(sizes.size()) {}
  ~LaneBody() {
    for (const std::atomic<CompiledBody*>& body : compiled_) delete body.load();
  }
  LaneBody(const LaneBody&) = delete;

  const CompiledBody& at(std::size_t level) const {
    CompiledBody* known = compiled_[level].load(std::memory_order_acquire);
    if (known) return *known;
    auto made = std::make_unique<CompiledBody>(for_rows(body_, batched_, sizes_[level]), device_);
    return compiled_[level].compare_exchange_strong(known, made.get()) ? *made.release() : *known;
  }

 private:
  const Jaxpr body_;
  const Device device_;
  const Flags batched_;
  const std::vector<std::int64_t> sizes_;
  mutable std::vector<std::atomic<CompiledBody*>> compiled_;  // by level
};

// A `lanes` equation: who takes part, then the operands of the one equation in its body.
class LaneKernel : public Kernel {
 public:
  // num_on_host: how many operands behind the guard are read on the host.
  LaneKernel(const Jaxpr& group, Device device, std::size_t num_on_host = 0)
      : lanes_(group->equations[0].params),
        operands_(group, device, num_on_host + (lanes_.guarded ? 1 : 0)),
        source_(group->equations[0].source),
        num_examples_(lanes_.lanes[0].size.constant()),
        sizes_(sizes_for(num_examples_)),
        axes_(lanes_.axes.rank() > 0 ? lanes_.axes.to_sizes() : Sizes64{num_examples_}) {
    for (const Aval& example : lanes_.body->input_avals()) bytes_.push_back(row_bytes(example));
  }

  std::string note() const override { return std::to_string(num_examples_) + " lanes"; }
  // Who takes part.
  bool reads_on_host(std::size_t input) const override {
    return lanes_.guarded && operands_.reads(input, 0);
  }

 protected:
  const Equation& equation() const { return lanes_.body->equations[0]; }
  const Aval& example(std::size_t operand) const { return lanes_.body->avals[operand]; }
  std::int64_t bytes_of_example(std::size_t operand) const { return bytes_[operand]; }
  bool is_batched(std::size_t operand) const {
    return lanes_.lanes[0].batched[operand + num_before(lanes_)];
  }
  Flags batched(std::size_t begin, std::size_t end) const {
    Flags flags;
    for (std::size_t i = begin; i < end; ++i) flags.push_back(is_batched(i));
    return flags;
  }
  // The smallest size that has room for so many.
  std::size_t level_for(std::int64_t count) const {
    std::size_t level = sizes_.size() - 1;
    while (sizes_[level] < count) --level;
    return level;
  }
  ActiveRows rows_of(std::vector<std::int32_t> numbers) const {
    const std::int64_t size = sizes_[level_for(std::int64_t(numbers.size()))];
    return ActiveRows(std::move(numbers), size, num_examples_);
  }
  // Operands as dense memory, and the numbers of the examples that take part.
  std::vector<View> collect(std::span<const View> inputs, std::vector<Buffer>& copies,
                            std::vector<std::int32_t>& live, const Stream& stream) const {
    std::vector<View> views = operands_.collect(inputs, copies, stream);
    const bool* guard = lanes_.guarded ? views[0].as<bool>() : nullptr;
    const bool each = lanes_.guarded && lanes_.lanes[0].batched[0];
    for (std::int64_t i = 0; i < num_examples_; ++i)
      if (!guard || guard[each ? i : 0]) live.push_back(std::int32_t(i));
    if (guard) views.erase(views.begin());
    return views;
  }
  // An operand as rows, or as it is where all examples share it.
  View rows_of_operand(std::size_t operand, const View& all, const ActiveRows& rows,
                       std::vector<Buffer>& owned, const Stream& stream) const {
    if (!is_batched(operand) || !rows.numbers()) return all;
    owned.push_back(rows.gather(all, example(operand), stream));
    return owned.back().placed();
  }
  // Gives those that do not take part the results of the first one that does.
  void fill_others(std::span<const std::int32_t> live, std::span<const View> outputs,
                   std::span<const Aval> examples, const Stream& stream) const {
    if (std::int64_t(live.size()) == num_examples_) return;
    std::vector<bool> takes_part(std::size_t(num_examples_), false);
    for (std::int32_t number : live) takes_part[std::size_t(number)] = true;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (examples[i].stack > 0) continue;
      const std::int64_t bytes = row_bytes(examples[i]);
      if (live.empty()) clear(outputs[i], stream);
      for (std::int64_t number = 0; number < num_examples_ && !live.empty(); ++number)
        if (!takes_part[std::size_t(number)])
          copy_row(outputs[i].data, live[0], outputs[i].data, number, bytes, stream);
    }
  }
  // The value of an operand for each example.
  void spread_operand(std::size_t operand, const View& from, const View& to,
                      const Stream& stream) const {
    const std::int64_t bytes = bytes_of_example(operand);
    if (is_batched(operand)) return copy_dense(from, to, stream);
    for (std::int64_t i = 0; i < num_examples_; ++i)
      copy_row(from.data, 0, to.data, i, bytes, stream);
  }

  const LanesParams lanes_;
  const DenseOperands operands_;
  const Source source_;
  const std::int64_t num_examples_;
  const std::vector<std::int64_t> sizes_;
  const Sizes64 axes_;  // how examples are numbered

 private:
  std::vector<std::int64_t> bytes_;  // by operand
};

inline View rows_view(const Aval& example, std::int64_t num_rows) {
  Aval element = example;
  element.shape.insert(0, num_rows);
  return element_view(element);
}

// By the one equation in the group's body.
std::unique_ptr<Kernel> compile_lanes_while(const Jaxpr& group, Device device);
std::unique_ptr<Kernel> compile_lanes_scan(const Jaxpr& group, Device device);

}  // namespace plait
