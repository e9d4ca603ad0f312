// Kernels on the stand-in of a device, called as executables do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>
#include <plait/base/stream.h>

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

// meanwhile: what the host does with the word of the call.
inline codegen::Outcome run(const Kernel& kernel, const Arrays& operands,
                            std::span<const Aval> results,
                            const std::function<void(Failure&)>& meanwhile = {}) {
  const Stream stream = Stream::current(device());
  std::vector<Buffer> in, out;
  std::vector<View> inputs, outputs;
  for (const Array& array : operands) in.push_back(array.buffer().dense().on(device()));
  for (const Aval& aval : results)
    out.push_back(Buffer::empty(aval.dtype, aval.shape.to_sizes(), stream));
  for (const Buffer& buffer : in) inputs.push_back(buffer.placed());
  for (const Buffer& buffer : out) outputs.push_back(buffer.placed());
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
    for (const Buffer& buffer : out) outcome.results.push_back(Array(buffer.on_host()));
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

}  // namespace plait::kernels
