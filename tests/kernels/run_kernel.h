// Kernels on the stand-in of a device, called as executables do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>
#include <plait/base/stream.h>
#include <plait/base/transfer.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "../codegen/text_library.h"
#include "../cuda/here.h"
#include "backends/cuda/driver.h"
#include "base/staging.h"

namespace plait::kernels {

// The devices are those of the parts that this program is linked with, not of the module.
inline const bool is_apart = setenv("PLAIT_CUDA", "0", 1) == 0 && cuda::register_cuda_driver();
inline Device device() { return Device::named("cuda:0"); }

// meanwhile: what the host does with the word of the call. before: of other arrays, so many
// elements in front of each operand and result.
inline codegen::Outcome run(const Kernel& kernel, const Arrays& operands,
                            std::span<const Aval> results,
                            const std::function<void(Failure&)>& meanwhile = {},
                            std::int64_t before = 0) {
  const Stream stream = Stream::current(device());
  std::vector<Storage> memory;
  const auto placed = [&](const View& like) {
    const std::int64_t size = size_of(like.dtype);
    memory.push_back(Storage::allocate(std::size_t((before + like.size()) * size), stream));
    View view{static_cast<char*>(memory.back().data()) + before * size, like.dtype, like.shape,
              dense_strides(like.shape)};
    return view;
  };
  std::vector<View> inputs, outputs;
  for (const Array& array : operands) {
    const Buffer dense = array.buffer().dense();
    inputs.push_back(placed(dense.view()));
    upload(dense.view(), inputs.back(), stream);
  }
  for (const Aval& aval : results)
    outputs.push_back(placed({nullptr, aval.dtype, aval.shape.to_sizes(), {}}));
  const Storage scratch = Storage::allocate(std::size_t(kernel.scratch_bytes()), stream);
  const Staging word(device(), sizeof(Failure));
  std::memset(word.data(), 0, sizeof(Failure));
  auto* const failure = static_cast<Failure*>(word.data());
  codegen::Outcome outcome;
  try {
    kernel.enqueue(inputs, outputs, scratch.data(), {stream, failure, 0});
    if (meanwhile) meanwhile(*failure);
    stream.synchronize();
    if (failure->step != 0) std::rethrow_exception(kernel.error_of(*failure));
    for (const View& view : outputs) {
      Buffer buffer = Buffer::empty(view.dtype, view.shape);
      download(view, buffer.view(), stream);
      outcome.results.push_back(Array(buffer));
    }
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

}  // namespace plait::kernels
