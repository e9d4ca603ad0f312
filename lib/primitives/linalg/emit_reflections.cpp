// See emit_reflections.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/emit_reflections.h"

namespace plait {

using namespace written;  // NOLINT

namespace {

// Element i of the vector of reflection k, whose first one is 1 and is not stored.
Number reflector(const MatrixIn& x, const Index& i, const Index& k) {
  const Number row = number_of(i), step = number_of(k);
  const DType dtype = x.stack.aval.dtype;
  return select(row > step, x(i, k), select(row == step, literal(1, dtype), literal(0, dtype)));
}

}  // namespace

void reflect(const MatrixIn& x, const Index& k, Number tau, const MatrixIn& columns,
             std::int64_t rows, std::int64_t count, Number first) {
  const DType dtype = x.stack.aval.dtype;
  for_all(count, [&](const Index& j) {
    only_where(number_of(j) >= first, [&] {
      const Number product = sum_of_products(dtype, rows, [&](const Index& i) {
        const Number is_in = number_of(i) >= number_of(k);
        return std::array{select(is_in, conj(reflector(x, i, k)), literal(0, dtype)),
                          select(is_in, columns(i, j), literal(0, dtype))};
      });
      const Number factor = tau * product;
      for_all(rows, [&](const Index& i) {
        only_where(number_of(i) >= number_of(k),
                   [&] { columns.put(i, j, columns(i, j) - factor * reflector(x, i, k)); });
      });
    });
  });
}

void make_reflection(const MatrixIn& x, const Index& k, std::int64_t rows, const VectorIn& taus) {
  const DType dtype = x.stack.aval.dtype, of_parts = real_dtype_of(dtype);
  const Number zero = literal(0, of_parts), least = literal(0x1p-1022, of_parts);
  const Number head = x(k, k), of_head = imag(head);
  const Number rest = sum(of_parts, rows, [&](const Index& i) {
    return select(number_of(i) > number_of(k), squared_size(x(i, k)), zero);
  });
  Number is_none = rest <= least;
  if (is_complex(dtype)) is_none = is_none & (of_head * of_head <= least);
  const Number size = sqrt(squared_size(head) + rest);
  const Number beta = select(is_none, real(head), select(real(head) >= zero, -size, size));
  const auto widened = [&](Number number) {
    return is_complex(dtype) ? complex_of(number, zero) : number;
  };
  const Number gap = head - widened(beta);
  taus.put(k, select(is_none, literal(0, dtype), conj(-gap / widened(beta))));
  for_all(rows, [&](const Index& i) {
    only_where(number_of(i) >= number_of(k), [&] {
      const Number scaled = select(is_none, literal(0, dtype), x(i, k) / gap);
      x.put(i, k, select(number_of(i) == number_of(k), widened(beta), scaled));
    });
  });
}

}  // namespace plait
