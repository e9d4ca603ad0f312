// The laws of kernels. Outputs and scratch lie between guard bytes, which must not change.
// SPDX-License-Identifier: Apache-2.0
#include "inspect/kernel_laws.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace plait::laws {
namespace {

using Verdict = std::optional<std::string>;

constexpr std::int64_t guard = 256;       // bytes before and after
constexpr std::uint8_t untouched = 0xa5;  // the content of guards

// Memory between guards, with the promised 64-byte alignment.
class Guarded {
 public:
  explicit Guarded(std::int64_t bytes)
      : bytes_(bytes), buffer_(Buffer::empty(DType::uint8, {bytes + 2 * guard})) {
    std::memset(buffer_.mutable_data(), untouched, std::size_t(bytes + 2 * guard));
  }
  char* data() { return static_cast<char*>(buffer_.mutable_data()) + guard; }
  bool is_intact() const {
    auto holds = [&](std::int64_t from) {
      const auto* at = static_cast<const std::uint8_t*>(buffer_.data()) + from;
      return std::all_of(at, at + guard, [](std::uint8_t byte) { return byte == untouched; });
    };
    return holds(0) && holds(guard + bytes_);
  }

 private:
  std::int64_t bytes_;
  Buffer buffer_;
};

std::vector<View> views_of(const Arrays& arrays) {
  std::vector<View> views;
  for (const Array& array : arrays) views.push_back(array.buffer().view());
  return views;
}

// One call on memory between guards.
struct Call {
  Arrays results;
  Verdict wrong;
};

Call run(const Kernel& kernel, const Jaxpr& group, std::span<const View> inputs) {
  std::vector<Guarded> memory;
  std::vector<View> outputs;
  for (const Aval& aval : group->output_avals()) {
    const Sizes64 shape = aval.shape.to_sizes();
    memory.emplace_back(num_elements(shape) * size_of(aval.dtype));
    outputs.push_back({memory.back().data(), aval.dtype, shape, dense_strides(shape)});
  }
  Guarded scratch(kernel.scratch_bytes());
  kernel.run(inputs, outputs, scratch.data(), Stream{});
  Call call;
  if (!scratch.is_intact()) call.wrong = "writes outside its scratch memory";
  for (Guarded& output : memory)
    if (!output.is_intact()) call.wrong = "writes outside its outputs";
  for (const View& output : outputs) call.results.push_back(Array(Buffer::copy_of(output)));
  return call;
}

Verdict overwriting_violation(const Kernel& kernel, const Arrays& inputs, const Arrays& results) {
  Guarded scratch(kernel.scratch_bytes());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t o = 0; o < results.size(); ++o) {
      const Buffer mine = Buffer::copy_of(inputs[i].buffer().view());
      if (mine.bytes() == 0 || mine.bytes() != results[o].buffer().bytes() ||
          !kernel.may_overwrite(i, o))
        continue;
      std::vector<View> sources = views_of(inputs), targets;
      sources[i] = mine.view();
      std::vector<Buffer> others;
      for (std::size_t k = 0; k < results.size(); ++k) {
        const Aval& aval = results[k].aval();
        const Sizes64 shape = aval.shape.to_sizes();
        others.push_back(Buffer::empty(aval.dtype, shape));
        targets.push_back(others.back().view());
        if (k == o) targets.back().data = mine.view().data;
      }
      kernel.run(sources, targets, scratch.data(), Stream{});
      for (std::size_t k = 0; k < results.size(); ++k)
        if (auto found = difference_in_bits(Array(Buffer::copy_of(targets[k])), results[k]))
          return "output " + std::to_string(o) + " written over input " + std::to_string(i) + ": " +
                 *found;
    }
  return std::nullopt;
}

Verdict threads_violation(const Kernel& kernel, const Jaxpr& group, std::span<const View> inputs,
                          const Arrays& results) {
  Call calls[2];
  std::string errors[2];
  auto call = [&](int i) {
    try {
      calls[i] = run(kernel, group, inputs);
    } catch (const std::exception& error) {
      errors[i] = error.what();
    }
  };
  std::thread other(call, 1);
  call(0);
  other.join();
  for (int i = 0; i < 2; ++i) {
    if (!errors[i].empty()) return "called from two threads at once: " + errors[i];
    if (auto found = difference_in_bits(calls[i].results, results))
      return "called from two threads at once: " + *found;
  }
  return std::nullopt;
}

}  // namespace

// Kernels are compiled for the strides of their inputs, as in programs. Backends that also run
// eager operations compile them without strides, for any layout.
Verdict kernel_violation(const Backend& backend, const Jaxpr& group, const Arrays& inputs,
                         const Arrays& expected) {
  auto compiled_for = [&](const Arrays& arrays) {
    std::vector<Sizes64> strides;
    for (const Array& array : arrays) strides.push_back(array.buffer().strides());
    return backend.compile_for(group, strides);
  };
  const std::unique_ptr<Kernel> kernel = compiled_for(inputs);
  const std::vector<View> views = views_of(inputs);
  Arrays before;
  for (const Array& input : inputs) before.push_back(Array(Buffer::copy_of(input.buffer().view())));
  const Call first = run(*kernel, group, views);
  if (first.wrong) return first.wrong;
  if (auto found = difference(first.results, expected)) return "the reference: " + *found;
  if (auto found = difference_in_bits(inputs, before)) return "it changes its inputs: " + *found;
  if (auto found = difference_in_bits(run(*kernel, group, views).results, first.results))
    return "a second call: " + *found;

  Arrays scattered;
  for (const Array& input : inputs) scattered.push_back(strided(input));
  const Call told = run(*compiled_for(scattered), group, views_of(scattered));
  if (told.wrong) return "inputs with gaps: it " + *told.wrong;
  if (auto found = difference(told.results, expected)) return "inputs with gaps: " + *found;
  if (backend.runs_eagerly()) {
    const Call any = run(*backend.compile(group), group, views_of(scattered));
    if (any.wrong) return "inputs with gaps, not told of: it " + *any.wrong;
    if (auto found = difference(any.results, expected))
      return "inputs with gaps, not told of: " + *found;
  }
  if (auto found = overwriting_violation(*kernel, inputs, first.results)) return found;
  return threads_violation(*kernel, group, views, first.results);
}

}  // namespace plait::laws
