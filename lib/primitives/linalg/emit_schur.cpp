// See emit_schur.h. Steps are in order; the elements of rows and columns that one of them rotates,
// or reflects, are independent of each other.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/emit_schur.h"

#include <plait/primitives/primitives.h>

#include <limits>

namespace plait {
namespace {

using namespace written;  // NOLINT

constexpr double epsilon = std::numeric_limits<double>::epsilon();

Number size_of_parts(Number x) {
  return is_complex(x.dtype) ? abs(real(x)) + abs(imag(x)) : abs(x);
}

// The unitary [[c, -conj(s)], [s, conj(c)]] whose adjoint makes (p, q) a number and 0.
Rotation rotation_onto_first(Number p, Number q) {
  const DType of_parts = real_dtype_of(p.dtype);
  const Number most = size_of_parts(p) + size_of_parts(q), none = literal(0, of_parts);
  const Number is_none = most == none, scale = select(is_none, literal(1, of_parts), most);
  const Number x = p / scale, y = q / scale;
  const Number length = sqrt(squared_size(x) + squared_size(y));
  const Number divisor = select(is_none, literal(1, of_parts), length);
  return {select(is_none, literal(1, p.dtype), x / divisor), y / divisor};
}
void rotate_rows(const MatrixIn& a, const Index& i, const Index& k, const Index& column,
                 const Rotation& r) {
  const Number x = a(i, column), y = a(k, column);
  a.put(i, column, conj(r.c) * x + conj(r.s) * y);
  a.put(k, column, r.c * y - r.s * x);
}
void rotate_columns(const MatrixIn& a, const Index& j, const Index& k, const Index& row,
                    const Rotation& r) {
  const Number x = a(row, j), y = a(row, k);
  a.put(row, j, r.c * x + r.s * y);
  a.put(row, k, conj(r.c) * y - conj(r.s) * x);
}

Index before(Number row, std::int64_t n) {
  return index_below(maximum(row - integer(1), integer(0)), n);
}

// The last row from 1 to `last` whose element beside the diagonal is small, or is not; 0 where
// there is none.
enum class Wanted : std::uint8_t { small, other };
Number last_row(std::int64_t n, Number last, Wanted wanted,
                const std::function<Number(const Index&, const Index&)>& is_small) {
  return combined(max_p, integer(0), n - 1, [&](const Index& i) {
    const Index row = sum_of(i, {1});
    const Number small = is_small(row, i);
    return select((wanted == Wanted::small ? small : !small) & (number_of(row) <= last),
                  number_of(row), integer(0));
  });
}

}  // namespace

SchurForm::SchurForm(const loops::Tensor& x, bool is_complex_form, Vectors vectors)
    : x_(x),
      n_(num_rows(x.aval)),
      shape_(batch_of(x.aval)),
      has_vectors_(vectors == Vectors::all),
      wide_(wide_dtype_of(x.aval.dtype)),
      real_(real_dtype_of(wide_)),
      is_widened_(is_complex_form && !is_complex(wide_)),
      matrices_(make_stack(shape_, {n_, n_}, wide_)),
      vectors_(make_stack(shape_, {n_, n_}, wide_)),
      reflector_(make_stack(shape_, {n_}, wide_)) {
  if (!is_widened_) return;
  widened_ = make_stack(shape_, {n_, n_}, DType::complex128);
  widened_vectors_ = make_stack(shape_, {n_, n_}, DType::complex128);
  pairs_ = make_stack(shape_, {n_}, DType::int32);
}

MatrixIn SchurForm::t(const Indices& batch) const {
  return {is_widened_ ? widened_ : matrices_, batch};
}
MatrixIn SchurForm::z(const Indices& batch) const {
  return {is_widened_ ? widened_vectors_ : vectors_, batch, true};
}
VectorIn SchurForm::pairs(const Indices& batch) const { return {pairs_, batch}; }

Number SchurForm::decompose(const Indices& batch) const {
  const MatrixIn x{x_, batch}, a{matrices_, batch}, v{vectors_, batch, true};
  const auto element = [&](const Index& i, const Index& j) { return cast(x(i, j), wide_); };
  const Extent extent = extent_of(n_, n_, wide_, element);
  for_elements(n_, n_,
               [&](const Index& i, const Index& j) { a.put(i, j, element(i, j) / extent.scale); });
  if (has_vectors_)
    for_elements(n_, n_, [&](const Index& j, const Index& i) {
      v.put(i, j, select(number_of(i) == number_of(j), literal(1, wide_), literal(0, wide_)));
    });
  if (n_ > 2) reduce(batch);
  Number found = extent.is_finite;
  if (n_ > 1) {
    const Number converged = is_complex(wide_) ? iterate_complex(batch, extent.is_finite)
                                               : iterate_real(batch, extent.is_finite);
    found = found & converged;
  }
  if (is_widened_) widen(batch);
  const MatrixIn to = t(batch);
  const std::int64_t below = is_complex(dtype()) ? 0 : 1;  // the diagonal
  for_elements(n_, n_, [&](const Index& i, const Index& j) {
    const Number is_kept = number_of(i) <= number_of(j) + integer(below);
    to.put(i, j, select(is_kept, to(i, j) * extent.scale, literal(0, dtype())));
  });
  return found;
}

// Hessenberg's form H = Q^H A Q, by reflections of the rows below the diagonal: Golub and Van Loan,
// "Matrix Computations", algorithm 7.4.2.
void SchurForm::reduce(const Indices& batch) const {
  const MatrixIn a{matrices_, batch}, z{vectors_, batch, true};
  const VectorIn v{reflector_, batch};
  const Number zero = literal(0, real_), least = literal(0x1p-1022, real_);
  const auto widened = [&](Number number) {
    return is_complex(wide_) ? complex_of(number, zero) : number;
  };
  for_steps(n_ - 2, [&](const Index& k) {
    const Index first = sum_of(k, {1});
    const Number head = a(first, k), of_head = imag(head);
    const Number rest = sum(real_, n_, [&](const Index& i) {
      return select(number_of(i) > number_of(first), squared_size(a(i, k)), zero);
    });
    Number is_none = rest <= least;
    if (is_complex(wide_)) is_none = is_none & (of_head * of_head <= least);
    const Number size = sqrt(squared_size(head) + rest);
    const Number beta = select(is_none, real(head), select(real(head) >= zero, -size, size));
    const Number gap = head - widened(beta);
    const Number tau = select(is_none, literal(0, wide_), conj(-gap / widened(beta)));
    for_all(n_, [&](const Index& i) {
      const Number is_behind = (number_of(i) > number_of(first)) & !is_none;
      const Number is_first = number_of(i) == number_of(first);
      v.put(i, select(is_behind, a(i, k) / gap,
                      select(is_first, literal(1, wide_), literal(0, wide_))));
    });
    for_all(n_, [&](const Index& j) {
      only_where(number_of(j) >= number_of(k), [&] {
        const Number product = tau * sum_of_products(wide_, n_, [&](const Index& i) {
                                 return std::array{conj(v(i)), a(i, j)};
                               });
        const Number is_made = number_of(j) == number_of(k);
        for_all(n_, [&](const Index& i) {
          const Number is_below = number_of(i) > number_of(first);
          const Number reflected = a(i, j) - product * v(i);
          a.put(i, j, select(is_made & is_below, literal(0, wide_), reflected));
        });
      });
    });
    const auto reflect_rows = [&](const MatrixIn& rows) {
      for_all(n_, [&](const Index& i) {
        const Number product = conj(tau) * sum_of_products(wide_, n_, [&](const Index& j) {
                                 return std::array{rows(i, j), v(j)};
                               });
        for_all(n_, [&](const Index& j) { rows.put(i, j, rows(i, j) - product * conj(v(j))); });
      });
    };
    reflect_rows(a);
    if (has_vectors_) reflect_rows(z);
  });
}

// --- QR steps with one shift, of complex matrices ------------------------------------------------

Number SchurForm::iterate_complex(const Indices& batch, Number may_run) const {
  const MatrixIn a{matrices_, batch};
  const auto is_small = [&](const Index& row, const Index& above) {
    return size_of_parts(a(row, above)) <=
           (size_of_parts(a(row, row)) + size_of_parts(a(above, above))) * literal(epsilon, real_);
  };
  const std::int64_t most_steps = 30 * n_;
  const Numbers last = repeated_while(
      {select(may_run, integer(n_ - 1), integer(0)), integer(0), integer(0)},
      [&](const Numbers& carried) {
        return (carried[0] > integer(0)) & (carried[2] <= integer(most_steps));
      },
      [&](const Numbers& carried) {
        const Number end = last_row(n_, carried[0], Wanted::other, is_small);
        for_all(n_ - 1, [&](const Index& i) {
          const Index row = sum_of(i, {1});
          only_where((number_of(row) <= carried[0]) & is_small(row, i),
                     [&] { a.put(row, i, literal(0, wide_)); });
        });
        const Number step =
            select(end < carried[0], integer(0), carried[1]) + integer(1);  // of this row
        only_where(end > integer(0), [&] {
          const Number begin = last_row(n_, end, Wanted::small, is_small);
          const Index u = index_below(end, n_), p = before(end, n_),
                      r = before(end - integer(1), n_);
          const auto constant = [&](double value) { return literal(value, real_); };
          // The eigenvalue of the last two rows that is closer to the last element.
          const Number t00 = a(p, p), t01 = a(p, u), t10 = a(u, p), t11 = a(u, u);
          const Number size = abs(t00) + abs(t01) + abs(t10) + abs(t11);
          const Number x = t00 / size, y = t11 / size;
          const Number b = (t01 / size) * (t10 / size), c = x - y;
          const Number root = sqrt(c * c + b * constant(4));
          const Number product = x * y - b, trace = x + y;
          const Number first = (trace + root) * constant(0.5),
                       second = (trace - root) * constant(0.5);
          const Number is_larger = size_of_parts(first) > size_of_parts(second);
          const Number none = literal(0, wide_);
          const Number one = select(is_larger | (second == none), first, product / second),
                       other = select(is_larger, product / first, second);
          const Number is_one = size_of_parts(one - y) < size_of_parts(other - y);
          const Number wilkinson = select(is_one, one, other) * size;
          const Number is_exceptional =
              ((step == integer(10)) | (step == integer(20))) & (end > integer(1));
          const Number exceptional = complex_of(abs(real(t10)) + abs(real(a(p, r))), constant(0));
          chase(batch, begin, end, select(is_exceptional, exceptional, wilkinson));
        });
        return Numbers{end, step, carried[2] + integer(1)};
      });
  return last[0] == integer(0);
}

// Rotations of neighbouring rows and columns from the first to the last.
void SchurForm::chase(const Indices& batch, Number first, Number last, Number shift) const {
  const MatrixIn a{matrices_, batch}, z{vectors_, batch, true};
  repeated_while(
      {first}, [&](const Numbers& carried) { return carried[0] < last; },
      [&](const Numbers& carried) {
        const Number k = carried[0], is_first = k == first;
        const Index row = index_below(k, n_), next = index_below(k + integer(1), n_),
                    above = before(k, n_);
        const Rotation rotation =
            rotation_onto_first(select(is_first, a(row, row) - shift, a(row, above)),
                                select(is_first, a(next, row), a(next, above)));
        const Number begin = select(is_first, k, k - integer(1));
        for_all(n_, [&](const Index& j) {
          only_where(number_of(j) >= begin, [&] {
            rotate_rows(a, row, next, j, rotation);
            only_where(number_of(j) < k, [&] { a.put(next, j, literal(0, wide_)); });
          });
        });
        const Number end = minimum(k + integer(2), last);
        for_all(n_, [&](const Index& i) {
          only_where(number_of(i) <= end, [&] { rotate_columns(a, row, next, i, rotation); });
        });
        if (has_vectors_)
          for_all(n_, [&](const Index& i) { rotate_columns(z, row, next, i, rotation); });
        return Numbers{k + integer(1)};
      });
}

// --- QR steps with two shifts, of real matrices --------------------------------------------------

Number SchurForm::iterate_real(const Indices& batch, Number may_run) const {
  const MatrixIn a{matrices_, batch};
  const Sizes64 sizes{n_, n_};
  const Number size = sum(real_, n_ * n_, [&](const Index& place) {
    const Indices at = digits_of(place, sizes);
    return abs(a(at[0], at[1]));
  });
  const Number least = maximum(size * literal(epsilon * epsilon, real_), literal(0x1p-1022, real_));
  const auto is_small = [&](const Index& row, const Index& above) {
    const Number beside = abs(a(row, row)) + abs(a(above, above));
    return abs(a(row, above)) <= maximum(beside * literal(epsilon, real_), least);
  };
  const std::int64_t most_steps = 40 * n_;
  const Numbers end = repeated_while(
      {select(may_run, integer(n_ - 1), integer(0)), integer(0), integer(0)},
      [&](const Numbers& carried) {
        return (carried[0] > integer(0)) & (carried[2] <= integer(most_steps));
      },
      [&](const Numbers& carried) {
        const Number last = carried[0], first = last_row(n_, last, Wanted::small, is_small);
        const Number is_one = first == last, is_two = first == last - integer(1);
        only_where(is_one,
                   [&] { a.put(index_below(last, n_), before(last, n_), literal(0, real_)); });
        only_where(is_two, [&] { split(batch, last); });
        const Number is_more = !(is_one | is_two);
        if (n_ > 2) only_where(is_more, [&] { francis(batch, first, last, carried[1]); });
        return Numbers{last - select(is_one, integer(1), select(is_two, integer(2), integer(0))),
                       select(is_more, carried[1] + integer(1), integer(0)),
                       carried[2] + cast(is_more, DType::int64)};
      });
  return end[0] <= integer(0);
}

// Makes the last two rows triangular where their eigenvalues are real.
void SchurForm::split(const Indices& batch, Number last) const {
  const MatrixIn a{matrices_, batch}, z{vectors_, batch, true};
  const Index u = index_below(last, n_), p = before(last, n_);
  const Number zero = literal(0, real_), half = (a(p, p) - a(u, u)) * literal(0.5, real_);
  const Number beside = a(u, p), square = fma(half, half, beside * a(p, u));
  only_where(square >= zero, [&] {
    const Number root = sqrt(square);
    const Rotation rotation =
        rotation_onto_first(select(half >= zero, half + root, half - root), beside);
    for_all(n_, [&](const Index& j) {
      only_where(number_of(j) >= last - integer(1), [&] { rotate_rows(a, p, u, j, rotation); });
    });
    for_all(n_, [&](const Index& i) {
      only_where(number_of(i) <= last, [&] { rotate_columns(a, p, u, i, rotation); });
    });
    if (has_vectors_) for_all(n_, [&](const Index& i) { rotate_columns(z, p, u, i, rotation); });
    a.put(u, p, zero);
  });
  only_where(last > integer(1), [&] { a.put(p, before(last - integer(1), n_), zero); });
}

// Francis' step: Golub and Van Loan, "Matrix Computations", algorithm 7.5.1, from the last row on
// in which two small elements beside the diagonal leave nothing of the shifts above.
void SchurForm::francis(const Indices& batch, Number first, Number last, Number count) const {
  const MatrixIn a{matrices_, batch}, z{vectors_, batch, true};
  const auto constant = [&](double value) { return literal(value, real_); };
  const Index u = index_below(last, n_), p = before(last, n_), r = before(last - integer(1), n_);
  const Number beside = abs(a(u, p)) + abs(a(p, r));
  const Number is_exceptional = (count == integer(10)) | (count == integer(30));
  const Number exceptional = fma(constant(0.75), beside, a(u, u));
  const Number x = select(is_exceptional, exceptional, a(u, u)),
               y = select(is_exceptional, exceptional, a(p, p)),
               w = select(is_exceptional, constant(-0.4375) * beside * beside, a(u, p) * a(p, u));
  const auto column_at = [&](const Index& m) {
    const Index next = sum_of(m, {1}), after = sum_of(m, {2});
    const Number here = a(m, m), of_x = x - here, of_y = y - here;
    return std::array{(of_x * of_y - w) / a(next, m) + a(m, next),
                      a(next, next) - here - of_x - of_y, a(after, next)};
  };
  const Number found = combined(max_p, integer(0), n_ - 2, [&](const Index& m) {
    const Number row = number_of(m);
    const Index above = before(row, n_), next = sum_of(m, {1});
    const auto v = column_at(m);
    const Number left = abs(a(m, above)) * (abs(v[1]) + abs(v[2]));
    const Number right = v[0] * (abs(a(above, above)) + abs(a(m, m)) + abs(a(next, next)));
    const Number is_start =
        (row > first) & (row <= last - integer(2)) & (left < constant(epsilon) * right);
    return select(is_start, row, integer(0));
  });
  const Number begin = minimum(maximum(found, first), integer(n_ - 3));
  const auto start = column_at(index_below(begin, n_ - 2));
  repeated_while(
      {begin}, [&](const Numbers& carried) { return carried[0] < last; },
      [&](const Numbers& carried) {
        const Number k = carried[0], is_first = k == begin, has_third = k + integer(2) <= last;
        const Index row = index_below(k, n_), next = index_below(k + integer(1), n_),
                    third = index_below(minimum(k + integer(2), integer(n_ - 1)), n_),
                    above = before(k, n_);
        const auto of_column = [&](std::size_t i, const Index& at) {
          return select(is_first, start[i], a(at, above));
        };
        const Number v0 = of_column(0, row), v1 = of_column(1, next),
                     v2 = select(has_third, of_column(2, third), constant(0));
        // The reflection I - tau (1, f, g) (1, f, g)^T that makes v a multiple of the first axis.
        const Number sizes = abs(v0) + abs(v1) + abs(v2);
        const Number scale = select(sizes == constant(0), constant(1), sizes);
        const Number u0 = v0 / scale, u1 = v1 / scale, u2 = v2 / scale;
        const Number rest = fma(u1, u1, u2 * u2), is_none = rest <= constant(0x1p-1022);
        const Number length = sqrt(fma(u0, u0, rest));
        const Number beta = select(is_none, u0, select(u0 >= constant(0), -length, length));
        const Number gap = select(is_none, constant(1), u0 - beta);
        const Number f = select(is_none, constant(0), u1 / gap),
                     g = select(is_none, constant(0), u2 / gap),
                     tau = select(is_none, constant(0), (beta - u0) / beta);
        const Number left = select(is_first & (k == first), k, k - integer(1));
        for_all(n_, [&](const Index& j) {
          only_where(number_of(j) >= left, [&] {
            const Number b0 = a(row, j), b1 = a(next, j), b2 = a(third, j);
            const Number is_made = number_of(j) < k;
            const Number sum = tau * select(is_made, b0, fma(g, b2, fma(f, b1, b0)));
            a.put(row, j, select(is_made & !is_first, beta * scale, b0 - sum));
            a.put(next, j, select(is_made, constant(0), b1 - sum * f));
            only_where(has_third,
                       [&] { a.put(third, j, select(is_made, constant(0), b2 - sum * g)); });
          });
        });
        const auto reflect_row = [&](const MatrixIn& rows, const Index& i) {
          const Number b0 = rows(i, row), b1 = rows(i, next), b2 = rows(i, third);
          const Number sum = tau * fma(g, b2, fma(f, b1, b0));
          rows.put(i, row, b0 - sum);
          rows.put(i, next, b1 - sum * f);
          only_where(has_third, [&] { rows.put(i, third, b2 - sum * g); });
        };
        const Number end = minimum(k + integer(3), last);
        for_all(n_, [&](const Index& i) {
          only_where(number_of(i) <= end, [&] { reflect_row(a, i); });
        });
        if (has_vectors_) for_all(n_, [&](const Index& i) { reflect_row(z, i); });
        return Numbers{k + integer(1)};
      });
}

// A rotation of rows i and i + 1 makes each block of the real form triangular: see
// schur_solver.cpp.
void SchurForm::widen(const Indices& batch) const {
  const MatrixIn a{matrices_, batch}, v{vectors_, batch, true}, to{widened_, batch},
      to_z{widened_vectors_, batch, true};
  const VectorIn pair{pairs_, batch};
  const Number zero = literal(0, real_), none = complex_of(zero, zero);
  for_elements(n_, n_, [&](const Index& i, const Index& j) {
    const Number is_kept = number_of(i) <= number_of(j) + integer(1);
    to.put(i, j, complex_of(select(is_kept, a(i, j), zero), zero));
  });
  if (has_vectors_)
    for_elements(
        n_, n_, [&](const Index& j, const Index& i) { to_z.put(i, j, complex_of(v(i, j), zero)); });
  for_all(n_, [&](const Index& i) { pair.put(i, integer(0)); });
  if (n_ < 2) return;
  for_steps(n_ - 1, [&](const Index& step) {
    const Index i = sum_of({n_ - 2}, times(step, -1)), k = sum_of(i, {1});
    const Number below = a(k, i);
    only_where(below != zero, [&] {
      const Number center = a(k, k), half = (a(i, i) - center) * literal(0.5, real_),
                   product = a(i, k) * below;
      const Number scale = maximum(abs(half), sqrt(abs(product)));
      const Number is_none = scale == zero, divisor = select(is_none, literal(1, real_), scale);
      const Number share = half / divisor, square = fma(share, share, product / divisor / divisor);
      const Number root = scale * sqrt(abs(square)), is_pair = (square < zero) & !is_none;
      // The larger eigenvalue, in the sense of its imaginary part, less the last element.
      const Number shifted =
          select(is_none, none,
                 complex_of(select(is_pair, half, half + root), select(is_pair, root, zero)));
      const Rotation rotation = rotation_onto_first(shifted, complex_of(below, zero));
      for_all(n_, [&](const Index& j) {
        only_where(number_of(j) >= number_of(i), [&] { rotate_rows(to, i, k, j, rotation); });
      });
      for_all(n_, [&](const Index& row) {
        only_where(number_of(row) <= number_of(k),
                   [&] { rotate_columns(to, i, k, row, rotation); });
      });
      if (has_vectors_)
        for_all(n_, [&](const Index& row) { rotate_columns(to_z, i, k, row, rotation); });
      to.put(k, i, none);
      // The eigenvalues are a conjugate pair, to the bit.
      const Number first = to(i, i), second = to(k, k);
      const Number value = complex_of(center + real(shifted), imag(shifted));
      to.put(i, i, select(is_pair, value, complex_of(real(first), zero)));
      to.put(k, k, select(is_pair, conj(value), complex_of(real(second), zero)));
      pair.put(i, cast(is_pair, DType::int32));
      pair.put(k, select(is_pair, integer(2), integer(0)));
    });
  });
}

// --- schur and sqrtm -----------------------------------------------------------------------------

loops::Tensors emit_schur(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  const loops::Tensor x = w.in_memory(inputs[0]);
  const bool is_complex_form = equation.params.flag("complex");
  const DType narrow = x.aval.dtype, dtype = !is_complex_form || is_complex(narrow) ? narrow
                                             : narrow == DType::float32 ? DType::complex64
                                                                        : DType::complex128;
  // The signs of t follow from those of z.
  const SchurForm form(x, is_complex_form, SchurForm::Vectors::all);
  const std::int64_t n = form.size();
  const Shape& shape = form.batch_shape();
  const loops::Tensor of_t = make_stack(shape, {n, n}, dtype),
                      of_z = make_stack(shape, {n, n}, dtype),
                      phases = make_stack(shape, {n}, form.dtype());
  const Number unknown = literal(NAN, form.dtype());
  for_all(shape, [&](const Indices& batch) {
    const Number found = form.decompose(batch);
    const MatrixIn t = form.t(batch), z = form.z(batch), to_t{of_t, batch}, to_z{of_z, batch};
    const VectorIn phase{phases, batch};
    for_all(n, [&](const Index& j) {
      phase.put(j, phase_of(n, [&](const Index& i) { return z(i, j); }));
    });
    for_elements(n, n, [&](const Index& i, const Index& j) {
      to_t.put(i, j, select(found, t(i, j) * phase(j) * conj(phase(i)), unknown));
      to_z.put(i, j, select(found, z(i, j) * phase(j), unknown));
    });
  });
  if (!equation.params.flag("compute_vectors")) return {of_t};
  return {of_t, of_z};
}

// The root of the triangular form, diagonal by diagonal: Bjorck and Hammarling, "A Schur method for
// the square root of a matrix" (1983).
loops::Tensors emit_sqrtm(loops::Writer& w, const Equation& equation,
                          std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  const loops::Tensor x = w.in_memory(inputs[0]);
  const DType wide = DType::complex128,
              dtype = real_dtype_of(x.aval.dtype) == DType::float32 ? DType::complex64 : wide;
  const SchurForm form(x, true, SchurForm::Vectors::all);
  const std::int64_t n = form.size();
  const Shape& shape = form.batch_shape();
  const loops::Tensor roots = make_stack(shape, {n, n}, wide),
                      products = make_stack(shape, {n, n}, wide),
                      result = make_stack(shape, {n, n}, dtype);
  const Number zero = literal(0, wide);
  for_all(shape, [&](const Indices& batch) {
    const Number found = form.decompose(batch);
    const MatrixIn t = form.t(batch), z = form.z(batch), root{roots, batch},
                   product{products, batch}, to{result, batch};
    for_elements(n, n, [&](const Index& i, const Index& j) {
      root.put(i, j, select(number_of(i) == number_of(j), sqrt(t(i, j)), zero));
    });
    for_steps(n - 1, [&](const Index& step) {
      const Number distance = number_of(step) + integer(1);
      for_all(n, [&](const Index& i) {
        const Number column = number_of(i) + distance;
        only_where(column < integer(n), [&] {
          const Index j = index_below(minimum(column, integer(n - 1)), n);
          const Number between = sum_of_products(wide, n, [&](const Index& k) {
            const Number is_in = (number_of(k) > number_of(i)) & (number_of(k) < column);
            return std::array{select(is_in, root(i, k), zero), select(is_in, root(k, j), zero)};
          });
          const Number rest = t(i, j) - between, divisor = root(i, i) + root(j, j);
          root.put(i, j, select((rest == zero) & (divisor == zero), zero, rest / divisor));
        });
      });
    });
    for_elements(n, n, [&](const Index& i, const Index& j) {
      product.put(i, j, sum_of_products(wide, n, [&](const Index& k) {
                    return std::array{z(i, k), root(k, j)};
                  }));
    });
    for_elements(n, n, [&](const Index& i, const Index& j) {
      const Number element = sum_of_products(
          wide, n, [&](const Index& k) { return std::array{product(i, k), conj(z(j, k))}; });
      to.put(i, j, select(found, element, literal(NAN, wide)));
    });
  });
  return {result};
}

}  // namespace plait
