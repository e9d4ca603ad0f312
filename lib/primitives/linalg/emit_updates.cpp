// tridiagonal_solve, cholesky_update, pivoted_order and triangular_sylvester, as their kernels have
// them.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include "primitives/linalg/emit_reflections.h"
#include "primitives/linalg/emit_wide.h"

namespace plait {
namespace {

using namespace written;  // NOLINT

// --- tridiagonal_solve ---------------------------------------------------------------------------

struct Bands {
  loops::Tensor diagonal, above, second, factors, exchanged;
};

// The elimination: what is left of each row, the factor of its step, and whether rows i and i + 1
// have changed places.
void eliminate(const VectorIn& below, const VectorIn& diagonal, const VectorIn& above,
               const Bands& bands, const Indices& batch, std::int64_t n) {
  const DType dtype = bands.diagonal.aval.dtype;
  const Number zero = literal(0, dtype);
  const VectorIn to_diagonal{bands.diagonal, batch}, to_above{bands.above, batch},
      to_second{bands.second, batch}, factors{bands.factors, batch},
      exchanged{bands.exchanged, batch};
  const Numbers last = repeated(
      n - 1, {cast(diagonal({0}), dtype), cast(above({0}), dtype)},
      [&](const Index& i, const Numbers& row) {
        const Index next = sum_of(i, {1});
        const Number is_last = number_of(next) == integer(n - 1);
        const Number lower = cast(below(next), dtype), middle = cast(diagonal(next), dtype),
                     upper = select(is_last, zero, cast(above(next), dtype));
        const Number moves = abs(lower) > abs(row[0]);
        const Number pivot = select(moves, lower, row[0]), rest = select(moves, row[0], lower),
                     beside = select(moves, middle, row[1]), other = select(moves, row[1], middle),
                     far = select(moves, upper, zero), left = select(moves, zero, upper);
        const Number is_none = rest == zero, factor = rest / pivot;
        to_diagonal.put(i, pivot);
        to_above.put(i, beside);
        to_second.put(i, far);
        factors.put(i, select(is_none, zero, factor));
        exchanged.put(i, moves);
        return Numbers{select(is_none, other, other - factor * beside),
                       select(is_none, left, left - factor * far)};
      });
  to_diagonal.put({n - 1}, last[0]);
  to_above.put({n - 1}, zero);
  to_second.put({n - 1}, zero);
}

// One right-hand side, forwards and backwards.
void substitute(const Bands& bands, const Indices& batch, const MatrixIn& b, const MatrixIn& work,
                const MatrixIn& x, const Index& column, std::int64_t n) {
  const DType dtype = bands.diagonal.aval.dtype;
  const Number zero = literal(0, dtype);
  const VectorIn diagonal{bands.diagonal, batch}, above{bands.above, batch},
      second{bands.second, batch}, factors{bands.factors, batch}, exchanged{bands.exchanged, batch};
  const Numbers last =
      repeated(n - 1, {cast(b({0}, column), dtype)}, [&](const Index& i, const Numbers& carried) {
        const Number next = cast(b(sum_of(i, {1}), column), dtype), factor = factors(i),
                     moves = exchanged(i);
        const Number here = select(moves, next, carried[0]),
                     below = select(moves, carried[0], next);
        work.put(i, column, here);
        return Numbers{select(factor == zero, below, below - factor * here)};
      });
  work.put({n - 1}, column, last[0]);
  repeated(n, {zero, zero}, [&](const Index& step, const Numbers& behind) {
    const Index i = sum_of({n - 1}, times(step, -1));
    const Number rest = work(i, column) - above(i) * behind[0] - second(i) * behind[1];
    const Number found = rest / diagonal(i);
    x.put(i, column, found);
    return Numbers{found, behind[0]};
  });
}

// --- cholesky_update -----------------------------------------------------------------------------

Number length_of(Number a, Number b) {
  const Number first = abs(a), second = abs(b), most = maximum(first, second);
  const Number none = literal(0, most.dtype), x = first / most, y = second / most;
  return select(most == none, none, most * sqrt(fma(x, x, y * y)));
}

}  // namespace

loops::Tensors emit_tridiagonal_solve(loops::Writer& w, const Equation& equation,
                                      std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 4);
  const Writing writing(w, equation.source);
  const loops::Tensor b = w.in_memory(inputs[0]), dl = w.in_memory(inputs[1]),
                      d = w.in_memory(inputs[2]), du = w.in_memory(inputs[3]);
  const std::int64_t n = num_rows(b.aval), columns = num_columns(b.aval);
  const Shape shape = batch_of(b.aval);
  const DType wide = wide_dtype_of(b.aval.dtype);
  const auto bands_of = [&](DType dtype) { return make_stack(shape, {n}, dtype); };
  const Bands bands{bands_of(wide), bands_of(wide), bands_of(wide), bands_of(wide),
                    bands_of(DType::bool_)};
  const loops::Tensor work = make_stack(shape, {n, columns}, wide),
                      x = make_stack(shape, {n, columns}, b.aval.dtype);
  for_all(shape, [&](const Indices& batch) {
    eliminate({dl, batch}, {d, batch}, {du, batch}, bands, batch, n);
    for_all(columns, [&](const Index& column) {
      substitute(bands, batch, {b, batch}, {work, batch}, {x, batch}, column, n);
    });
  });
  return {x};
}

loops::Tensors emit_cholesky_update(loops::Writer& w, const Equation& equation,
                                    std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 2);
  const Writing writing(w, equation.source);
  const loops::Tensor factors = w.in_memory(inputs[0]), vectors = w.in_memory(inputs[1]);
  const std::int64_t n = num_rows(factors.aval);
  const Shape shape = batch_of(factors.aval);
  const DType dtype = factors.aval.dtype, wide = wide_dtype_of(dtype);
  const loops::Tensor rows = make_stack(shape, {n, n}, wide), row = make_stack(shape, {n}, wide),
                      result = make_stack(shape, {n, n}, dtype);
  for_all(shape, [&](const Indices& batch) {
    const MatrixIn from{factors, batch}, r{rows, batch}, to{result, batch};
    const VectorIn given{vectors, batch}, x{row, batch};
    for_elements(n, n, [&](const Index& i, const Index& j) {
      r.put(i, j, select(number_of(i) <= number_of(j), cast(from(i, j), wide), literal(0, wide)));
    });
    for_all(n, [&](const Index& i) { x.put(i, conj(cast(given(i), wide))); });
    for_steps(n, [&](const Index& i) {
      const Number a = r(i, i), b = x(i), length = length_of(a, b);
      const Number turns = !(length == literal(0, length.dtype));
      const Number of_a = a / length, of_b = b / length;
      for_all(n, [&](const Index& j) {
        only_where(turns & (number_of(j) >= number_of(i)), [&] {
          const Number above = r(i, j), below = x(j);
          r.put(i, j, conj(of_a) * above + conj(of_b) * below);
          x.put(j, of_a * below - of_b * above);
        });
      });
    });
    for_elements(n, n, [&](const Index& i, const Index& j) { to.put(i, j, r(i, j)); });
  });
  return {result};
}

// Lengths of what is left of columns are brought up to date as LAPACK's geqp3 does: Drmac and
// Bujanovic, "On the failure of rank-revealing QR factorization software" (2008).
loops::Tensors emit_pivoted_order(loops::Writer& w, const Equation& equation,
                                  std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  const loops::Tensor given = w.in_memory(inputs[0]);
  const std::int64_t m = num_rows(given.aval), n = num_columns(given.aval), steps = std::min(m, n);
  const Shape shape = batch_of(given.aval);
  const DType wide = wide_dtype_of(given.aval.dtype), of_parts = real_dtype_of(wide);
  const loops::Tensor columns = make_stack(shape, {n, m}, wide),
                      taus = make_stack(shape, {steps}, wide),
                      known = make_stack(shape, {n}, of_parts),
                      exact = make_stack(shape, {n}, of_parts),
                      places = make_stack(shape, {n}, DType::int32),
                      result = make_stack(shape, {n}, DType::int32);
  for_all(shape, [&](const Indices& batch) {
    const MatrixIn from{given, batch}, x{columns, batch, true};
    const VectorIn tau{taus, batch}, lengths{known, batch}, lengths_before{exact, batch},
        order{places, batch}, to{result, batch};
    const auto constant = [&](double value) { return literal(value, of_parts); };
    const auto length_from = [&](const Index& j, Number first) {
      return sqrt(sum(of_parts, m, [&](const Index& i) {
        return select(number_of(i) >= first, squared_size(x(i, j)), constant(0));
      }));
    };
    const Extent extent = extent_of(
        m, n, wide, [&](const Index& i, const Index& j) { return cast(from(i, j), wide); });
    for_elements(n, m, [&](const Index& j, const Index& i) {
      x.put(i, j, cast(from(i, j), wide) / extent.scale);
    });
    for_all(n, [&](const Index& j) {
      const Number length = length_from(j, integer(0));
      lengths.put(j, length);
      lengths_before.put(j, length);
      order.put(j, number_of(j));
    });
    for_steps(steps, [&](const Index& step) {
      const Number k = number_of(step);
      const Number most = combined(max_p, constant(-1), n, [&](const Index& j) {
        return select(number_of(j) >= k, lengths(j), constant(-1));
      });
      const Number found = combined(min_p, integer(n), n, [&](const Index& j) {
        return select((number_of(j) >= k) & (lengths(j) == most), number_of(j), integer(n));
      });
      const Index chosen = index_below(select(found < integer(n), found, k), n);
      for_all(m, [&](const Index& i) {
        const Number here = x(i, step), there = x(i, chosen);
        x.put(i, step, there);
        x.put(i, chosen, here);
      });
      const auto exchange = [&](const VectorIn& vector) {
        const Number here = vector(step), there = vector(chosen);
        vector.put(step, there);
        vector.put(chosen, here);
      };
      exchange(lengths);
      exchange(lengths_before);
      exchange(order);
      make_reflection(x, step, m, tau);
      reflect(x, step, tau(step), x, m, n, k + integer(1));
      for_all(n, [&](const Index& j) {
        const Number length = lengths(j), before = lengths_before(j);
        only_where((number_of(j) > k) & (length > constant(0)), [&] {
          const Number ratio = abs(x(step, j)) / length;
          const Number left = maximum((constant(1) + ratio) * (constant(1) - ratio), constant(0));
          const Number share = length / before, of_rounding = left * (share * share);
          const Number is_lost = of_rounding <= constant(0x1p-26);
          only_where(is_lost, [&] {
            const Number anew = length_from(j, k + integer(1));
            lengths.put(j, anew);
            lengths_before.put(j, anew);
          });
          only_where(!is_lost, [&] { lengths.put(j, length * sqrt(left)); });
        });
      });
    });
    for_all(n, [&](const Index& j) {
      to.put(j, select(extent.is_finite, cast(order(j), DType::int64), number_of(j)));
    });
  });
  return {result};
}

// The element (i, j) needs those below it and those to the left of it: elements on a diagonal are
// independent of each other.
loops::Tensors emit_triangular_sylvester(loops::Writer& w, const Equation& equation,
                                         std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 3);
  const Writing writing(w, equation.source);
  const loops::Tensor c = w.in_memory(inputs[0]), t = w.in_memory(inputs[1]),
                      s = w.in_memory(inputs[2]);
  const std::int64_t m = num_rows(c.aval), n = num_columns(c.aval),
                     part = equation.params.integer("part");
  const Shape shape = batch_of(c.aval);
  const DType dtype = c.aval.dtype;
  const loops::Tensor result = make_stack(shape, {m, n}, dtype);
  const Number zero = literal(0, dtype);
  for_all(shape, [&](const Indices& batch) {
    const MatrixIn of_c{c, batch}, of_t{t, batch}, of_s{s, batch}, x{result, batch};
    for_elements(m, n, [&](const Index& i, const Index& j) { x.put(i, j, zero); });
    for_steps(m + n - 1, [&](const Index& step) {
      for_all(m, [&](const Index& i) {
        const Number row = number_of(i), column = number_of(step) - (integer(m - 1) - row);
        Number is_here = (column >= integer(0)) & (column < integer(n));
        if (part < 0) is_here = is_here & (row > column);
        if (part > 0) is_here = is_here & (row < column);
        only_where(is_here, [&] {
          const Index j = index_below(minimum(maximum(column, integer(0)), integer(n - 1)), n);
          const Number below = sum_of_products(dtype, m, [&](const Index& k) {
            Number is_in = number_of(k) > row;
            if (part > 0) is_in = is_in & (number_of(k) < column);
            return std::array{select(is_in, of_t(i, k), zero), select(is_in, x(k, j), zero)};
          });
          const Number left = sum_of_products(dtype, n, [&](const Index& k) {
            const Number is_in = number_of(k) < column;
            return std::array{select(is_in, x(i, k), zero), select(is_in, of_s(k, j), zero)};
          });
          const Number divisor = of_t(i, i) + of_s(j, j);
          const Number found = (of_c(i, j) - left - below) / divisor;
          x.put(i, j, part == 0 ? found : select(divisor == zero, zero, found));
        });
      });
    });
  });
  return {result};
}

}  // namespace plait
