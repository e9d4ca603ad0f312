// Values in memory and copies between strided views. See buffer.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/buffer.h>
#include <plait/base/error.h>
#include <plait/base/pool.h>
#include <plait/base/transfer.h>

#include <cstring>

#include "base/outcome.h"
#include "base/transpose_lanes.h"

namespace plait {
namespace {

// Copies a strided run. Elements are moved as integers of their width, so NaN payloads survive.
template <class T>
void copy_run(const T* src, std::int64_t src_stride, T* dst, std::int64_t dst_stride,
              std::int64_t n) {
  if (src_stride == 1 && dst_stride == 1) {
    // In pieces: memcpy writes long runs past the caches, which takes longer, and so does their
    // next reader.
    constexpr std::int64_t piece = 1 << 17;
    for (std::int64_t at = 0; at < n; at += piece)
      std::memcpy(dst + at, src + at, std::min(piece, n - at) * sizeof(T));
  } else if (src_stride == 0 && dst_stride == 1) {
    std::fill_n(dst, n, *src);
  } else {
    for (std::int64_t i = 0; i < n; ++i) dst[i * dst_stride] = src[i * src_stride];
  }
}

struct alignas(8) Bytes16 {
  std::uint64_t low, high;
};

// Rows of a few elements, contiguous or all the same: a call for each would take longer than the
// copy. Whole blocks are copied, of which the last overlaps the one before.
constexpr std::int64_t largest_short_row = 256;  // bytes

template <int block>
void copy_short_rows(const char* src, std::int64_t src_step, char* dst, std::int64_t dst_step,
                     std::int64_t rows, std::int64_t bytes) {
  for (; rows > 0; --rows, src += src_step, dst += dst_step) {
    for (std::int64_t at = 0; at + block <= bytes; at += block)
      std::memcpy(dst + at, src + at, block);
    std::memcpy(dst + bytes - block, src + bytes - block, block);
  }
}

template <class T, int block>
void fill_short_rows(const T* src, std::int64_t src_step, T* dst, std::int64_t dst_step,
                     std::int64_t rows, std::int64_t n) {
  for (; rows > 0; --rows, src += src_step, dst += dst_step) {
    T splat[block];
    std::fill_n(splat, block, *src);
    for (std::int64_t at = 0; at + block <= n; at += block)
      std::memcpy(dst + at, splat, sizeof splat);
    std::memcpy(dst + n - block, splat, sizeof splat);
  }
}

// The loops of a copy, outermost first, once adjacent dimensions that are contiguous in both views
// are merged; the last is the inner run.
struct CopyPlan {
  Sizes64 shape, src, dst;
};

CopyPlan plan_copy(const View& src, const View& dst) {
  CopyPlan plan;
  for (std::size_t i = 0; i < src.shape.size(); ++i) {
    if (src.shape[i] == 1) continue;
    if (!plan.shape.empty() && plan.src.back() == src.strides[i] * src.shape[i] &&
        plan.dst.back() == dst.strides[i] * src.shape[i]) {
      plan.shape.back() *= src.shape[i];
      plan.src.back() = src.strides[i];
      plan.dst.back() = dst.strides[i];
    } else {
      plan.shape.push_back(src.shape[i]);
      plan.src.push_back(src.strides[i]);
      plan.dst.push_back(dst.strides[i]);
    }
  }
  if (plan.shape.empty()) {
    plan.shape.push_back(1);
    plan.src.push_back(1);
    plan.dst.push_back(1);
  }
  return plan;
}

// A transposing copy of the two innermost loops, in tiles that fit the first-level cache, for rows
// that are contiguous in src. Whole squares of a tile are transposed in registers.
template <class T>
void copy_tiles(const T* src, T* dst, const CopyPlan& plan) {
  constexpr std::int64_t tile = 32, side = sizeof(T) == 4 ? 8 : 4;
  constexpr bool has_squares = sizeof(T) == 4 || sizeof(T) == 8;
  const std::size_t r = plan.shape.size();
  const std::int64_t rows = plan.shape[r - 2], columns = plan.shape[r - 1];
  const std::int64_t src_step = plan.src[r - 1], dst_step = plan.dst[r - 2];
  // Columns [begin, end) of one row.
  auto copy_row = [&](std::int64_t i, std::int64_t begin, std::int64_t end) {
    copy_run(src + i + begin * src_step, src_step, dst + i * dst_step + begin * plan.dst[r - 1],
             plan.dst[r - 1], end - begin);
  };
  for (std::int64_t i0 = 0; i0 < rows; i0 += tile)
    for (std::int64_t j0 = 0; j0 < columns; j0 += tile) {
      std::int64_t i = i0;
      const std::int64_t i1 = std::min(rows, i0 + tile), j1 = std::min(columns, j0 + tile);
      if constexpr (has_squares)
        for (; plan.dst[r - 1] == 1 && i + side <= i1; i += side) {
          std::int64_t j = j0;
          for (; j + side <= j1; j += side) {
            Pack<T, side> square[side];
#pragma GCC unroll 8
            for (int k = 0; k < side; ++k)
              square[k] = Pack<T, side>::load(src + i + (j + k) * src_step);
            transpose_lanes(square);
#pragma GCC unroll 8
            for (int k = 0; k < side; ++k) square[k].store(dst + (i + k) * dst_step + j);
          }
          for (std::int64_t k = i; k < i + side; ++k) copy_row(k, j, j1);
        }
      for (; i < i1; ++i) copy_row(i, j0, j1);
    }
}

// Repeats a short run: the written part doubles, until copies are long.
template <class T>
void repeat(T* dst, std::int64_t size, std::int64_t times) {
  const std::int64_t longest = std::max<std::int64_t>(size, (1 << 14) / sizeof(T) / size * size);
  for (std::int64_t done = size, total = size * times; done < total;) {
    const std::int64_t next = std::min({done, longest, total - done});
    std::memcpy(dst + done, dst, next * sizeof(T));
    done += next;
  }
}

// Copies the two innermost loops if it can; returns whether it did.
template <class T>
bool copied_short_rows(const T* src, T* dst, const CopyPlan& plan) {
  constexpr std::int64_t size = sizeof(T);
  const std::size_t r = plan.shape.size();
  const std::int64_t rows = plan.shape[r - 2], n = plan.shape[r - 1], src_row = plan.src[r - 2],
                     dst_row = plan.dst[r - 2], step = plan.src[r - 1];
  if (plan.dst[r - 1] != 1 || n * size > largest_short_row) return false;
  if (src_row == 0 && dst_row == n) {
    copy_run(src, step, dst, 1, n);
    repeat(dst, n, rows);
    return true;
  }
  auto in_blocks_of = [&](auto bytes) {
    constexpr int block = decltype(bytes)::value;
    if constexpr (block >= size) {
      if (n * size < block || (step != 0 && step != 1)) return false;
      if (step == 0)
        fill_short_rows<T, block / size>(src, src_row, dst, dst_row, rows, n);
      else
        copy_short_rows<block>(reinterpret_cast<const char*>(src), src_row * size,
                               reinterpret_cast<char*>(dst), dst_row * size, rows, n * size);
      return true;
    }
    return false;
  };
  return in_blocks_of(std::integral_constant<int, 32>()) ||
         in_blocks_of(std::integral_constant<int, 16>()) ||
         in_blocks_of(std::integral_constant<int, 8>());
}

template <class T>
void copy_loops(const T* src, T* dst, const CopyPlan& plan, std::size_t depth) {
  const std::size_t left = plan.shape.size() - depth;
  if (left == 1) {
    copy_run(src, plan.src[depth], dst, plan.dst[depth], plan.shape[depth]);
  } else if (left == 2 && copied_short_rows(src, dst, plan)) {
    return;
  } else if (left == 2 && plan.src[depth + 1] != 1 && plan.src[depth] == 1) {
    copy_tiles(src, dst, plan);
  } else {
    for (std::int64_t i = 0; i < plan.shape[depth]; ++i)
      copy_loops(src + i * plan.src[depth], dst + i * plan.dst[depth], plan, depth + 1);
  }
}

template <class T>
void copy_typed(const View& src, const View& dst) {
  CopyPlan plan = plan_copy(src, dst);
  const std::int64_t outer = plan.shape[0], total = num_elements(plan.shape);
  const std::int64_t grain =
      std::max<std::int64_t>(1, (1 << 17) / std::max<std::int64_t>(1, total / outer * sizeof(T)));
  constexpr std::int64_t piece = (1 << 17) / sizeof(T);
  if (plan.shape.size() == 2 && plan.shape[1] > piece && (plan.src[1] == 0 || plan.src[1] == 1) &&
      plan.dst[1] == 1 && outer < 2 * num_threads()) {
    // Few long rows, which threads share.
    const std::int64_t pieces = (plan.shape[1] + piece - 1) / piece;
    return parallel_for(outer * pieces, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t row = i / pieces, first = i % pieces * piece;
        copy_run(src.as<T>() + row * plan.src[0] + first * plan.src[1], plan.src[1],
                 dst.as<T>() + row * plan.dst[0] + first * plan.dst[1], plan.dst[1],
                 std::min(piece, plan.shape[1] - first));
      }
    });
  }
  parallel_for(outer, grain, [&](std::int64_t begin, std::int64_t end) {
    CopyPlan part = plan;
    part.shape[0] = end - begin;
    copy_loops(src.as<T>() + begin * plan.src[0], dst.as<T>() + begin * plan.dst[0], part, 0);
  });
}

}  // namespace

bool View::is_dense() const {
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[i] != stride) return false;
    stride *= shape[i];
  }
  return true;
}

namespace {

// The bytes of a dense array of this shape.
std::int64_t checked_bytes(DType dtype, const Sizes64& shape) {
  std::int64_t bytes = size_of(dtype);
  bool overflow = false, zero = false;
  for (std::int64_t size : shape) {
    if (size < 0)
      throw ShapeError("an array cannot have the negative size " + std::to_string(size),
                       "give sizes >= 0");
    zero |= size == 0;
    overflow |= __builtin_mul_overflow(bytes, size, &bytes);
  }
  if (zero)
    bytes = 0;
  else if (overflow)
    throw ShapeError(
        "the size of an array of shape (" + Shape::of(shape).to_string() + ") overflows 63 bits",
        "give smaller sizes");
  return bytes;
}

// Also gives what becomes of the work that writes it.
std::shared_ptr<Outcome> wait_to_read(const Storage& storage, const Stream& stream) {
  auto outcome = std::make_shared<Outcome>(stream, Outcome::Own::fine);
  const OutcomeScope scope(outcome);
  storage.wait_to_read(stream);
  return outcome;
}

}  // namespace

Buffer Buffer::empty(DType dtype, const Sizes64& shape, const Stream& stream) {
  const auto bytes = std::size_t(checked_bytes(dtype, shape));
  Storage storage = stream.is_host() ? Storage::allocate(bytes) : Storage::allocate(bytes, stream);
  View view{storage.data(), dtype, shape, dense_strides(shape)};
  return Buffer(std::move(storage), std::move(view));
}

Buffer Buffer::empty(DType dtype, const Sizes64& shape, Device device) {
  return empty(dtype, shape, device.is_host() ? Stream() : Stream::current(device));
}

Buffer Buffer::copy_of(const View& view) {
  Buffer copy = empty(view.dtype, view.shape);
  copy_elements(view, copy.view());
  return copy;
}

Buffer Buffer::copy() const {
  const Stream stream = device_.is_host() ? Stream() : Stream::current(device_);
  Buffer target = empty(dtype(), shape(), stream);
  target.set_free(is_free());
  const OutcomeScope scope(std::make_shared<Outcome>(stream, Outcome::Own::fine));
  storage_.wait_to_read(stream);
  plait::copy(view_, target.view_, stream);
  storage_.note_read(stream);
  target.storage_.note_written(stream);
  return target;
}

Buffer Buffer::on(Device device) const {
  if (device == device_) return *this;
  if (!device_.is_host() && !device.is_host()) return on_host().on(device);
  if (device.is_host()) {
    Buffer target = empty(dtype(), shape());
    const Stream stream = Stream::current(device_);
    const auto outcome = wait_to_read(storage_, stream);
    download(view_, target.view_, stream);
    outcome->rethrow();
    return target;
  }
  const Stream stream = Stream::current(device);
  Buffer target = empty(dtype(), shape(), stream);
  const OutcomeScope scope(nullptr);
  upload(view_, target.view_, stream);
  target.storage_.note_written(stream);
  return target;
}

void Buffer::wait() const {
  if (device_.is_host()) return;
  const Stream stream = Stream::current(device_);
  const auto outcome = wait_to_read(storage_, stream);
  stream.synchronize();
  outcome->rethrow();
}

void Buffer::refuse_host() const {
  throw ValueError(
      "the memory of an array on " + device_.to_string() + " cannot be read or written by the host",
      "copy it to the host first: Buffer::on_host()");
}

Buffer Buffer::view_as(const Sizes64& shape, const Sizes64& strides,
                       std::int64_t byte_offset) const {
  Buffer other = *this;
  other.view_.shape = shape;
  other.view_.strides = strides;
  other.view_.data = static_cast<char*>(view_.data) + byte_offset;
  return other;
}

void copy_elements(const View& src, const View& dst) {
  if (num_elements(src.shape) == 0) return;
  switch (size_of(src.dtype)) {
    case 1:
      return copy_typed<std::uint8_t>(src, dst);
    case 2:
      return copy_typed<std::uint16_t>(src, dst);
    case 4:
      return copy_typed<std::uint32_t>(src, dst);
    case 8:
      return copy_typed<std::uint64_t>(src, dst);
    default:
      return copy_typed<Bytes16>(src, dst);
  }
}

}  // namespace plait
