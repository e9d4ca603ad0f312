// Runs elementwise loops over views of any strides. See kernels.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/primitives/kernels.h>

#include "primitives/bytes16.h"

#include <cstring>

namespace plait {
namespace {

// Elements per chunk where inputs must be gathered or broadcast: few enough for the first-level
// cache, enough to amortise the call of a loop.
constexpr std::int64_t block = 512;
constexpr int max_inputs = 4;

template <class T>
void gather_typed(const View& view, std::int64_t begin, std::int64_t count, T* dst) {
  const T* src = view.as<T>();
  const int rank = view.rank();
  if (rank == 0) {
    std::fill_n(dst, count, *src);
    return;
  }
  // Position of the first element, then run by run along the last axis.
  Sizes64 index(rank);
  std::int64_t offset = 0, rest = begin;
  for (int axis = rank; axis-- > 0;) {
    index[axis] = rest % view.shape[axis];
    rest /= view.shape[axis];
    offset += index[axis] * view.strides[axis];
  }
  const std::int64_t inner = view.shape[rank - 1], stride = view.strides[rank - 1];
  while (count > 0) {
    const std::int64_t run = std::min(count, inner - index[rank - 1]);
    const T* from = src + offset;
    if (stride == 1)
      std::memcpy(dst, from, run * sizeof(T));
    else if (stride == 0)
      std::fill_n(dst, run, *from);
    else
      for (std::int64_t i = 0; i < run; ++i) dst[i] = from[i * stride];
    dst += run;
    count -= run;
    offset += run * stride;
    index[rank - 1] += run;
    for (int axis = rank - 1; axis > 0 && index[axis] == view.shape[axis]; --axis) {
      offset += view.strides[axis - 1] - index[axis] * view.strides[axis];
      index[axis] = 0;
      ++index[axis - 1];
    }
  }
}

}  // namespace

void gather_run(const View& view, std::int64_t begin, std::int64_t count, void* dst) {
  switch (size_of(view.dtype)) {
    case 1:
      return gather_typed(view, begin, count, static_cast<std::uint8_t*>(dst));
    case 2:
      return gather_typed(view, begin, count, static_cast<std::uint16_t*>(dst));
    case 4:
      return gather_typed(view, begin, count, static_cast<std::uint32_t*>(dst));
    case 8:
      return gather_typed(view, begin, count, static_cast<std::uint64_t*>(dst));
    default:
      return gather_typed(view, begin, count, static_cast<Bytes16*>(dst));
  }
}

void run_pointwise(const Chunk& chunk, std::span<const View> inputs, const View& output) {
  const std::int64_t n = num_elements(output.shape);
  if (n == 0) return;
  enum class Access { dense, splat, gather } access[max_inputs];
  bool all_dense = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (num_elements(inputs[i].shape) == 1 && n > 1)
      access[i] = Access::splat;
    else
      access[i] = inputs[i].is_dense() ? Access::dense : Access::gather;
    all_dense &= access[i] == Access::dense;
  }
  char* out = output.as<char>();
  const std::int64_t out_size = size_of(output.dtype);
  parallel_for(n, 131072, [&](std::int64_t begin, std::int64_t end) {
    const void* sources[max_inputs];
    if (all_dense) {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        sources[i] = inputs[i].as<char>() + begin * size_of(inputs[i].dtype);
      chunk.loop(sources, out + begin * out_size, end - begin, chunk.argument);
      return;
    }
    alignas(64) char scratch[max_inputs][block * 16];
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (access[i] == Access::splat) {
        View scalar{inputs[i].data, inputs[i].dtype, {}, {}};
        gather_run(scalar, 0, std::min(block, end - begin), scratch[i]);
      }
    for (std::int64_t at = begin; at < end; at += block) {
      const std::int64_t count = std::min(block, end - at);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (access[i] == Access::dense) {
          sources[i] = inputs[i].as<char>() + at * size_of(inputs[i].dtype);
          continue;
        }
        if (access[i] == Access::gather) gather_run(inputs[i], at, count, scratch[i]);
        sources[i] = scratch[i];
      }
      chunk.loop(sources, out + at * out_size, count, chunk.argument);
    }
  });
}

std::string to_string(DTypes dtypes) {
  std::string text;
  auto add = [&](DTypes part, const char* name) {
    if ((dtypes.bits & part.bits) == part.bits) {
      text += (text.empty() ? "" : " or ") + std::string(name);
      dtypes.bits &= ~part.bits;
    }
  };
  add(boolean, "bool");
  add(integers, "integer");
  add(signed_integers, "signed integer");
  add(floating, "float");
  add(complexes, "complex");
  for (int i = 0; i < num_dtypes; ++i)
    if (dtypes.has(DType(i))) text += (text.empty() ? "" : " or ") + std::string(name_of(DType(i)));
  return text;
}

}  // namespace plait
