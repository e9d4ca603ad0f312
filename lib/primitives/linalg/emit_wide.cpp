// See emit_wide.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/emit_wide.h"

#include <plait/primitives/primitives.h>

namespace plait {

using namespace written;  // NOLINT

void require_any_matrices(loops::Writer& w, std::span<const loops::Tensor> inputs,
                          std::size_t num_inputs) {
  require_no_kernels(w);
  if (inputs.size() != num_inputs) w.refuse("a decomposition of padded matrices");
}

DType wide_dtype_of(DType dtype) { return is_complex(dtype) ? DType::complex128 : DType::float64; }

// The last one stays where it is, and the others go round.
void Pairs::run(const Index& round, const Index& pair,
                const std::function<void(const Index&, const Index&)>& f) const {
  const Number t = number_of(round), i = number_of(pair), around = integer(even - 1);
  const Number is_first = i == integer(0);
  const Number a = select(is_first, integer(even - 1), (t + i) % around),
               b = (t - i + around) % around;
  const Number p = minimum(a, b), q = maximum(a, b);
  const auto run_pair = [&] { f(index_below(p, count), index_below(q, count)); };
  if (count == even)
    run_pair();
  else
    only_where(q < integer(count), run_pair);
}

// Of the Hermitian [[first, product], [conj(product), second]]: Golub and Van Loan, "Matrix
// Computations", algorithm 8.4.1, behind a phase that makes the product real.
Rotation rotation_of(Number first, Number second, Number product) {
  const DType dtype = first.dtype;
  const Number one = literal(1, dtype), size = abs(product);
  const Number theta = (second - first) / (literal(2, dtype) * size);
  const Number root = one / (abs(theta) + sqrt(fma(theta, theta, one)));
  const Number t = select(theta < literal(0, dtype), -root, root);
  const Number c = one / sqrt(fma(t, t, one));
  return {c, product / size * (t * c)};
}

Extent extent_of(std::int64_t rows, std::int64_t columns, DType dtype,
                 const std::function<Number(const Index&, const Index&)>& x) {
  const Number zero = literal(0, real_dtype_of(dtype));
  const Sizes64 sizes{rows, columns};
  const auto element = [&](const Index& place) {
    const Indices at = digits_of(place, sizes);
    return x(at[0], at[1]);
  };
  const Number zeros = sum(zero.dtype, rows * columns, [&](const Index& place) {
    const Number each = element(place);
    return real(each) * zero + imag(each) * zero;
  });
  const Number most = combined(max_p, zero, rows * columns, [&](const Index& place) {
    const Number each = element(place);
    return maximum(abs(real(each)), abs(imag(each)));
  });
  return {zeros == zero, select(most > zero, most, literal(1, zero.dtype))};
}

Number phase_of(std::int64_t size, const std::function<Number(const Index&)>& x) {
  const Number first_one = x({0});
  const DType dtype = first_one.dtype, of_parts = real_dtype_of(dtype);
  const Number zero = literal(0, of_parts);
  const Number most = combined(max_p, zero, size, [&](const Index& i) { return abs(x(i)); });
  const Number first = combined(min_p, integer(size - 1), size, [&](const Index& i) {
    const Number each = abs(x(i)), is_large = each >= most / literal(2, of_parts);
    return select(is_large, number_of(i), integer(size - 1));
  });
  const Number chosen = x(index_below(first, size));
  return select(most > zero, conj(chosen) / abs(chosen), literal(1, dtype));
}

void repeat_sweeps(const std::function<Number()>& sweep) {
  constexpr double limit = 1e-9;
  constexpr std::int64_t most = 40;
  repeated_while(
      {literal(1, DType::bool_), integer(0)},
      [](const Numbers& carried) { return carried[0] & (carried[1] < integer(most)); },
      [&](const Numbers& carried) {
        const Number largest = sweep();
        return Numbers{largest > literal(limit, largest.dtype), carried[1] + integer(1)};
      });
}

}  // namespace plait
