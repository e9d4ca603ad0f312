// See relu.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cublaslt/relu.h"

#include <plait/base/transfer.h>
#include <plait/compile/backend.h>

#include <cmath>
#include <exception>
#include <limits>

#include "backends/cuda/cublaslt/product.h"
#include "backends/cuda/driver.h"

namespace plait::cuda {
namespace {

constexpr std::int64_t size = 64;

template <class T>
bool keeps_nan(Device device) {
  const MatrixLayout rows{true, size, 0}, columns{false, size, 0};
  const Problem problem{*product_types(dtype_of<T>(), dtype_of<T>()),
                        1,
                        size,
                        size,
                        size,
                        rows,
                        columns,
                        {},
                        CUBLASLT_EPILOGUE_RELU};
  const std::optional<Algorithm> algorithm = algorithm_for(device, problem);
  if (!algorithm) return false;
  const Product product(device, problem, *algorithm, 1);
  const Stream stream = Stream::make(device);  // where nobody else's failure is told
  const Sizes64 shape{size, size};
  const Buffer host = Buffer::empty(dtype_of<T>(), shape),
               operand = Buffer::empty(dtype_of<T>(), shape, stream),
               result = Buffer::empty(dtype_of<T>(), shape, stream);
  const Storage workspace =
      Storage::allocate(std::max<std::size_t>(1, product.workspace_bytes()), stream);
  T* const values = host.view().as<T>();
  for (std::int64_t i = 0; i < size * size; ++i)
    values[i] = T(i == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0f);
  upload(host.view(), operand.placed(), stream);
  {
    const CurrentContext current(device);
    product.enqueue({operand.placed().data, operand.placed().data, nullptr, nullptr,
                     result.placed().data, workspace.data()},
                    stream_of(stream));
  }
  download(result.placed(), host.view(), stream);
  return std::isnan(float(values[0]));
}

}  // namespace

bool relu_keeps_nan() {
  static const bool is_kept = [] {
    try {
      const Device device = Device::named("cuda");
      const bool is_kept = keeps_nan<float16>(device) && keeps_nan<float>(device);
      if (!is_kept) log_line("cublaslt: its relu does not keep NaN, and is not used");
      return is_kept;
    } catch (const std::exception& error) {
      log_line(std::string("cublaslt: its relu is not used: ") + error.what());
      return false;
    }
  }();
  return is_kept;
}

}  // namespace plait::cuda
