// The laws of kernels. Outputs and scratch lie between guard bytes, which must not change.
// SPDX-License-Identifier: Apache-2.0
#include "inspect/kernel_laws.h"

#include <plait/base/transfer.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/staging.h"

namespace plait::laws {
namespace {

using Verdict = std::optional<std::string>;

constexpr std::int64_t guard = 256;       // bytes before and after
constexpr std::uint8_t untouched = 0xa5;  // the content of guards

// Memory of a stream's device between guards, with the promised 64-byte alignment.
class Guarded {
 public:
  Guarded(std::int64_t bytes, const Stream& stream)
      : bytes_(bytes), buffer_(Buffer::empty(DType::uint8, {bytes + 2 * guard}, stream)) {
    const Buffer filled = Buffer::empty(DType::uint8, {bytes + 2 * guard});
    std::memset(filled.view().data, untouched, std::size_t(bytes + 2 * guard));
    upload(filled.view(), buffer_.placed(), stream);
  }
  char* data() const { return buffer_.placed().as<char>() + guard; }
  // Once the stream has come past the work.
  bool is_intact() const {
    const Buffer here = buffer_.on_host();
    auto holds = [&](std::int64_t from) {
      const auto* at = static_cast<const std::uint8_t*>(here.data()) + from;
      return std::all_of(at, at + guard, [](std::uint8_t byte) { return byte == untouched; });
    };
    return holds(0) && holds(guard + bytes_);
  }

 private:
  std::int64_t bytes_;
  Buffer buffer_;
};

// The operands of a kernel: on its device, and those that it reads there on the host.
class Operands {
 public:
  Operands(const Kernel& kernel, const Arrays& arrays, Device device) {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const Buffer buffer = arrays[i].buffer();
      buffers_.push_back(kernel.reads_on_host(i) || device.is_host()
                             ? buffer
                             : there(buffer, device, kernel.operand_alignment()));
    }
  }
  std::vector<View> views() const {
    std::vector<View> views;
    for (const Buffer& buffer : buffers_) views.push_back(buffer.placed());
    return views;
  }

 private:
  // With the same strides, and the first element aligned as the kernel asks.
  static Buffer there(const Buffer& buffer, Device device, std::int64_t alignment) {
    const auto bytes = std::int64_t(buffer.storage().bytes());
    char* const data = static_cast<char*>(buffer.storage().data());
    const std::int64_t offset = buffer.view().as<char>() - data,
                       pad = (alignment - offset % alignment) % alignment;
    const Stream stream = Stream::current(device);
    const Buffer space = Buffer::empty(DType::uint8, {bytes + pad}, stream);
    char* const begin = space.placed().as<char>() + pad;
    upload({data, DType::uint8, {bytes}, {1}}, {begin, DType::uint8, {bytes}, {1}}, stream);
    space.storage().note_written(stream);
    return Buffer(space.storage(),
                  View{begin + offset, buffer.dtype(), buffer.shape(), buffer.strides()});
  }
  std::vector<Buffer> buffers_;
};

// Runs a kernel to its end, and throws what failed.
void run_to_end(const Kernel& kernel, std::span<const View> inputs, std::span<const View> outputs,
                void* scratch, const Stream& stream) {
  if (stream.is_host()) return kernel.enqueue(inputs, outputs, scratch, {});
  const Staging word(stream.device(), sizeof(Failure));
  auto* const failure = static_cast<Failure*>(word.data());
  *failure = {};
  kernel.enqueue(inputs, outputs, scratch, {stream, failure, 0});
  stream.synchronize();
  if (failure->step != 0) std::rethrow_exception(kernel.error_of(*failure));
}

// One call on memory between guards.
struct Call {
  Arrays results;
  Verdict wrong;
};

// The host's memory where a kernel writes there, else the device's.
struct Result {
  Result(const Aval& aval, const Stream& stream)
      : shape(aval.shape.to_sizes()),
        stream(stream),
        memory(num_elements(shape) * size_of(aval.dtype), stream),
        view{memory.data(), aval.dtype, shape, dense_strides(shape)} {}
  Array value() const {
    Buffer here = Buffer::empty(view.dtype, shape);
    download(view, here.view(), stream);
    return Array(here);
  }
  Sizes64 shape;
  Stream stream;
  Guarded memory;
  View view;
};

Call run(const Kernel& kernel, const Jaxpr& group, std::span<const View> inputs,
         const Stream& stream) {
  std::vector<Result> results;
  std::vector<View> outputs;
  for (const Aval& aval : group->output_avals()) {
    results.emplace_back(aval, kernel.writes_on_host(results.size()) ? Stream() : stream);
    outputs.push_back(results.back().view);
  }
  const Guarded scratch(kernel.scratch_bytes(), stream);
  run_to_end(kernel, inputs, outputs, scratch.data(), stream);
  Call call;
  if (!scratch.is_intact()) call.wrong = "writes outside its scratch memory";
  for (const Result& result : results)
    if (!result.memory.is_intact()) call.wrong = "writes outside its outputs";
  for (const Result& result : results) call.results.push_back(result.value());
  return call;
}

Verdict overwriting_violation(const Kernel& kernel, const Arrays& inputs, const Arrays& results,
                              const Stream& stream) {
  const Guarded scratch(kernel.scratch_bytes(), stream);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t o = 0; o < results.size(); ++o) {
      Arrays mine = inputs;
      mine[i] = Array(Buffer::copy_of(inputs[i].buffer().view()));
      if (mine[i].buffer().bytes() == 0 ||
          mine[i].buffer().bytes() != results[o].buffer().bytes() || !kernel.may_overwrite(i, o))
        continue;
      const Operands operands(kernel, mine, stream.device());
      const std::vector<View> sources = operands.views();
      std::vector<Result> others;
      std::vector<View> targets;
      for (std::size_t k = 0; k < results.size(); ++k) {
        others.emplace_back(results[k].aval(), kernel.writes_on_host(k) ? Stream() : stream);
        if (k == o) others.back().view.data = sources[i].data;
        targets.push_back(others.back().view);
      }
      run_to_end(kernel, sources, targets, scratch.data(), stream);
      for (std::size_t k = 0; k < results.size(); ++k)
        if (auto found = difference_in_bits(others[k].value(), results[k]))
          return "output " + std::to_string(o) + " written over input " + std::to_string(i) + ": " +
                 *found;
    }
  return std::nullopt;
}

// On a device, each thread has a stream of its own.
Verdict threads_violation(const Kernel& kernel, const Jaxpr& group, std::span<const View> inputs,
                          const Arrays& results, const Stream& stream) {
  Call calls[2];
  std::string errors[2];
  auto call = [&](int i, const Stream& own) {
    const StreamScope scope(own);
    try {
      calls[i] = run(kernel, group, inputs, own);
    } catch (const std::exception& error) {
      errors[i] = error.what();
    }
  };
  static thread_local Stream second;
  if (!(second.device() == stream.device())) second = Stream::make(stream.device());
  std::thread other(call, 1, second);
  call(0, stream);
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
Verdict kernel_violation(const Backend& backend, Device device, const Jaxpr& group,
                         const Arrays& inputs, const Arrays& expected) {
  const Stream stream = Stream::current(device);
  auto compiled_for = [&](const Arrays& arrays) {
    std::vector<Sizes64> strides;
    for (const Array& array : arrays) strides.push_back(array.buffer().strides());
    return backend.compile(group, {device, strides});
  };
  const std::unique_ptr<Kernel> kernel = compiled_for(inputs);
  Arrays before;
  for (const Array& input : inputs) before.push_back(Array(Buffer::copy_of(input.buffer().view())));
  const Operands operands(*kernel, inputs, device);
  const std::vector<View> views = operands.views();
  const Call first = run(*kernel, group, views, stream);
  if (first.wrong) return first.wrong;
  if (auto found = difference(first.results, expected)) return "the reference: " + *found;
  Arrays after;
  for (std::size_t i = 0; i < views.size(); ++i) {
    Buffer here = Buffer::empty(views[i].dtype, views[i].shape);
    download(views[i], here.view(), kernel->reads_on_host(i) ? Stream() : stream);
    after.push_back(Array(here, inputs[i].aval().weak));
  }
  if (auto found = difference_in_bits(after, before)) return "it changes its inputs: " + *found;
  if (auto found = difference_in_bits(run(*kernel, group, views, stream).results, first.results))
    return "a second call: " + *found;

  Arrays scattered;
  for (const Array& input : inputs) scattered.push_back(strided(input));
  const std::unique_ptr<Kernel> told_of = compiled_for(scattered);
  const Operands gaps(*told_of, scattered, device);
  const Call told = run(*told_of, group, gaps.views(), stream);
  if (told.wrong) return "inputs with gaps: it " + *told.wrong;
  if (auto found = difference(told.results, expected)) return "inputs with gaps: " + *found;
  if (backend.runs_eagerly()) {
    const Call any = run(*backend.compile(group, {device, {}}), group, gaps.views(), stream);
    if (any.wrong) return "inputs with gaps, not told of: it " + *any.wrong;
    if (auto found = difference(any.results, expected))
      return "inputs with gaps, not told of: " + *found;
  }
  if (auto found = overwriting_violation(*kernel, inputs, first.results, stream)) return found;
  return threads_violation(*kernel, group, views, first.results, stream);
}

}  // namespace plait::laws
