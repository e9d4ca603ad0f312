// lu, det, cholesky and triangular_solve of matrices of any size: step after step, each of which
// updates what is left of the matrix, element by element.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/emit_matrices.h"

#include <plait/primitives/primitives.h>

#include <limits>

namespace plait {
namespace {

using namespace written;  // NOLINT

double most_finite(DType dtype) {
  return real_dtype_of(dtype) == DType::float32 ? double(std::numeric_limits<float>::max())
                                                : std::numeric_limits<double>::max();
}

// What pivots are compared by, as in LAPACK.
Number size_of_pivot(Number x) {
  return is_complex(x.dtype) ? abs(real(x)) + abs(imag(x)) : abs(x);
}

struct Factored {
  loops::Tensor matrices, pivots, order;
};

void eliminate(const MatrixIn& a, const VectorIn& pivots, const VectorIn& order, std::int64_t m,
               std::int64_t n, const Index& step) {
  const DType dtype = real_dtype_of(a.stack.aval.dtype);
  const Number j = number_of(step);
  const Number most = combined(max_p, literal(-1, dtype), m, [&](const Index& i) {
    return select(number_of(i) >= j, size_of_pivot(a(i, step)), literal(-1, dtype));
  });
  const Number found = combined(min_p, integer(m), m, [&](const Index& i) {
    const Number is_it = (number_of(i) >= j) & (size_of_pivot(a(i, step)) == most);
    return select(is_it, number_of(i), integer(m));
  });
  const Number pivot = select(found < integer(m), found, j);  // NaN equals nothing
  const Index row = index_below(pivot, m);
  pivots.put(step, pivot);
  const Number here = order(step), there = order(row);
  order.put(step, there);
  order.put(row, here);
  for_all(n, [&](const Index& column) {
    const Number x = a(step, column), y = a(row, column);
    a.put(step, column, y);
    a.put(row, column, x);
  });
  const Number divisor = a(step, step), has_any = most != literal(0, dtype);
  for_all(m, [&](const Index& i) {
    only_where((number_of(i) > j) & has_any, [&] { a.put(i, step, a(i, step) / divisor); });
  });
  for_all(m, [&](const Index& i) {
    only_where(number_of(i) > j, [&] {
      const Number factor = -a(i, step);
      for_all(n, [&](const Index& column) {
        only_where(number_of(column) > j,
                   [&] { a.put(i, column, fma(factor, a(step, column), a(i, column))); });
      });
    });
  });
}

Factored factor(const loops::Tensor& x) {
  const std::int64_t m = num_rows(x.aval), n = num_columns(x.aval), k = std::min(m, n);
  const Shape shape = batch_of(x.aval);
  const Factored factored{make_stack(shape, {m, n}, x.aval.dtype),
                          make_stack(shape, {k}, DType::int32),
                          make_stack(shape, {m}, DType::int32)};
  for_all(shape, [&](const Indices& batch) {
    const MatrixIn from{x, batch}, a{factored.matrices, batch};
    const VectorIn pivots{factored.pivots, batch}, order{factored.order, batch};
    for_elements(m, n, [&](const Index& i, const Index& j) { a.put(i, j, from(i, j)); });
    for_all(m, [&](const Index& i) { order.put(i, number_of(i)); });
    for_steps(k, [&](const Index& step) { eliminate(a, pivots, order, m, n, step); });
  });
  return factored;
}

}  // namespace

loops::Tensors emit_any_lu(const loops::Tensor& x) {
  const Factored factored = factor(x);
  return {factored.matrices, factored.pivots, factored.order};
}

loops::Tensor emit_any_det(const loops::Tensor& x) {
  const Factored factored = factor(x);
  const std::int64_t n = num_rows(x.aval);
  const DType dtype = x.aval.dtype;
  const loops::Tensor result = make(batch_of(x.aval), dtype);
  for_all(result.aval.shape, [&](const Indices& batch) {
    const MatrixIn a{factored.matrices, batch};
    const VectorIn pivots{factored.pivots, batch};
    put(result, batch, combined(mul_p, literal(1, dtype), n, [&](const Index& i) {
          const Number pivot = a(i, i);
          return select(pivots(i) == cast(number_of(i), DType::int32), pivot, -pivot);
        }));
  });
  return result;
}

loops::Tensor emit_any_cholesky(const loops::Tensor& x) {
  const std::int64_t n = num_rows(x.aval);
  const DType dtype = x.aval.dtype;
  const loops::Tensor work = make(x.aval.shape, dtype), result = make(x.aval.shape, dtype);
  for_all(batch_of(x.aval), [&](const Indices& batch) {
    const MatrixIn from{x, batch}, a{work, batch}, to{result, batch};
    for_elements(n, n, [&](const Index& i, const Index& j) { a.put(i, j, from(i, j)); });
    for_steps(n, [&](const Index& step) {
      const Number j = number_of(step), root = sqrt(real(a(step, step)));
      for_all(n, [&](const Index& i) {
        only_where(number_of(i) >= j, [&] {
          const Number below = a(i, step) / root;
          const Number diagonal =
              is_complex(dtype) ? complex_of(root, literal(0, root.dtype)) : root;
          a.put(i, step, select(number_of(i) == j, diagonal, below));
        });
      });
      for_all(n, [&](const Index& i) {
        only_where(number_of(i) > j, [&] {
          const Number factor = -a(i, step);
          for_all(n, [&](const Index& column) {
            only_where((number_of(column) > j) & (number_of(column) <= number_of(i)),
                       [&] { a.put(i, column, fma(factor, conj(a(column, step)), a(i, column))); });
          });
        });
      });
    });
    const Number yes = literal(1, DType::bool_);
    const Number is_definite = combined(and_p, yes, n, [&](const Index& i) {
      const Number root = real(a(i, i));
      return (root > literal(0, root.dtype)) & (root <= literal(most_finite(dtype), root.dtype));
    });
    for_elements(n, n, [&](const Index& i, const Index& j) {
      const Number element = select(is_definite, a(i, j), literal(NAN, dtype));
      to.put(i, j, select(number_of(j) <= number_of(i), element, literal(0, dtype)));
    });
  });
  return result;
}

// As solve_kernel in cholesky.cpp has it: l x = b, by transposing and by reversing the order of the
// unknowns. Right-hand sides are solved by groups of a few, which lie side by side in memory.
loops::Tensor emit_any_triangular_solve(const loops::Tensor& a, const loops::Tensor& b,
                                        const Params& params) {
  constexpr std::int64_t most_of_group = 32;
  const bool left = params.flag("left_side"), turned = params.flag("transpose_a") == left,
             reversed = params.flag("lower") == turned, conjugate = params.flag("conjugate_a"),
             unit = params.flag("unit_diagonal");
  const std::int64_t n = num_rows(a.aval), sides = left ? num_columns(b.aval) : num_rows(b.aval),
                     width = std::min(sides, most_of_group), groups = (sides + width - 1) / width;
  const Shape shape = batch_of(a.aval);
  const loops::Tensor solved = make_stack(shape, {groups, n, width}, a.aval.dtype),
                      result = make(b.aval.shape, b.aval.dtype);
  const auto unknown = [&](const Index& i) { return reversed ? sum_of({n - 1}, times(i, -1)) : i; };
  for_all(shape, [&](const Indices& batch) {
    const MatrixIn triangle{a, batch}, of_b{b, batch, !left}, of_result{result, batch, !left};
    const auto l = [&](const Index& i, const Index& j) {
      const Number element =
          turned ? triangle(unknown(j), unknown(i)) : triangle(unknown(i), unknown(j));
      return conjugate ? conj(element) : element;
    };
    for_all(groups, [&](const Index& group) {
      Indices of_group = batch;
      of_group.push_back(group);
      const MatrixIn x{solved, of_group};
      for_elements(n, width, [&](const Index& i, const Index& c) {
        const Index side = sum_of(times(group, width), c);
        const Number known = minimum(number_of(side), integer(sides - 1));
        x.put(i, c, of_b(unknown(i), sides % width > 0 ? index_below(known, sides) : side));
      });
      for_steps(n, [&](const Index& step) {
        if (!unit) {
          const Number divisor = l(step, step);
          for_all(width, [&](const Index& c) { x.put(step, c, x(step, c) / divisor); });
        }
        for_all(n, [&](const Index& i) {
          only_where(number_of(i) > number_of(step), [&] {
            const Number factor = -l(i, step);
            for_all(width, [&](const Index& c) { x.put(i, c, fma(factor, x(step, c), x(i, c))); });
          });
        });
      });
    });
    for_elements(n, sides, [&](const Index& i, const Index& side) {
      Indices of_group = batch;
      of_group.push_back(index_of(number_of(side) / integer(width)));
      const Index c = index_of(number_of(side) % integer(width));
      of_result.put(unknown(i), side, MatrixIn{solved, of_group}(i, c));
    });
  });
  return result;
}

}  // namespace plait
