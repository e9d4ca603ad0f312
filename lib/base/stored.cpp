// Numbers of stored dtypes. See stored.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stored.h>

#include <cmath>
#include <limits>

namespace plait {

std::uint8_t float8_bits(double value, DType dtype) {
  const Float8Layout layout = float8_layout(dtype);
  const auto sign = std::uint8_t(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return std::uint8_t(sign | 0x7f);
  const double magnitude = std::abs(value);
  if (std::isinf(magnitude)) return std::uint8_t(sign | layout.overflowed);
  // Codes count the numbers from zero on: steps of one exponent follow those of the last.
  const int least = 1 - layout.bias();
  const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
  const double steps = std::nearbyint(std::ldexp(magnitude, layout.mantissa - exponent));
  const double code = steps + double(exponent - least) * (1 << layout.mantissa);
  return std::uint8_t(sign | (code > layout.largest ? layout.overflowed : int(code)));
}

float float8_value(std::uint8_t bits, DType dtype) {
  const Float8Layout layout = float8_layout(dtype);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  const int code = bits & 0x7f, fraction = code & ((1 << layout.mantissa) - 1),
            exponent = code >> layout.mantissa;
  if (code > layout.largest)
    return std::copysign(dtype == DType::float8_e5m2 && fraction == 0
                             ? std::numeric_limits<float>::infinity()
                             : std::numeric_limits<float>::quiet_NaN(),
                         sign);
  const int steps = exponent == 0 ? fraction : fraction + (1 << layout.mantissa);
  return sign * std::ldexp(float(steps), std::max(exponent, 1) - layout.bias() - layout.mantissa);
}

Buffer numbers_of_stored(const Buffer& dense, DType dtype) {
  if (dtype == DType::key) return words_of_keys(dense);
  if (!is_float8(dtype)) return dense;
  Buffer numbers = Buffer::empty(DType::float32, dense.shape());
  const auto* bits = static_cast<const std::uint8_t*>(dense.data());
  auto* values = static_cast<float*>(numbers.mutable_data());
  for (std::int64_t i = 0; i < dense.view().size(); ++i) values[i] = float8_value(bits[i], dtype);
  return numbers;
}

Buffer words_of_keys(const Buffer& keys) {
  View view = keys.placed();
  view.dtype = DType::uint32;
  for (std::int64_t& stride : view.strides) stride *= 2;
  view.shape.push_back(2);
  view.strides.push_back(1);
  return Buffer(keys.storage(), std::move(view));
}

std::optional<Buffer> keys_of_words(const Buffer& words) {
  View view = words.placed();
  if (view.shape.empty() || view.shape.back() != 2 || view.strides.back() != 1) return {};
  view.dtype = DType::uint64;
  view.shape.pop_back();
  view.strides.pop_back();
  bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % sizeof(std::uint64_t) == 0;
  for (std::int64_t& stride : view.strides) {
    aligned &= stride % 2 == 0;
    stride /= 2;
  }
  if (!aligned) return {};
  return Buffer(words.storage(), std::move(view));
}

}  // namespace plait
