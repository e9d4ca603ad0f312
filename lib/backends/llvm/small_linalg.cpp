// See small_linalg.h.
// SPDX-License-Identifier: Apache-2.0
#include "small_linalg.h"

#include <plait/primitives/linalg.h>
#include <plait/primitives/primitives.h>

#include <algorithm>

#include "primitives/linalg/small_factors.h"

namespace plait::llvm {
namespace {

std::int64_t rows_of(const Sizes64& shape) { return shape[shape.size() - 2]; }
std::int64_t columns_of(const Sizes64& shape) { return shape.back(); }

template <class T>
using Lanes = std::vector<Lane<T>>;

// A matrix of an array, by the place of its batch.
template <class T>
Lanes<T> load(const Small& array, const Sizes64& batch) {
  Lanes<T> lanes;
  for_each_index({rows_of(array.shape), columns_of(array.shape)}, -1, [&](const Sizes64& place) {
    Sizes64 index = batch;
    index.push_back(place[0]);
    index.push_back(place[1]);
    lanes.push_back(Lane<T>::of(array.at(index).v));
  });
  return lanes;
}
template <class T>
void store(const Lanes<T>& lanes, Small& array, const Sizes64& batch) {
  std::size_t next = 0;
  for_each_index({rows_of(array.shape), columns_of(array.shape)}, -1, [&](const Sizes64& place) {
    Sizes64 index = batch;
    index.push_back(place[0]);
    index.push_back(place[1]);
    array.at(index) = {lanes[next++].v, array.dtype};
  });
}

// Numbers of rows, which are integers.
template <class T>
void store_numbers(const Lanes<T>& lanes, DType dtype, Small& array, const Sizes64& batch) {
  const Equation conversion{&cast_p, {}, {{"dtype", array.dtype}, {"weak", false}}, {}, {}};
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    Sizes64 index = batch;
    index.push_back(std::int64_t(i));
    const Register number{lanes[i].v, dtype};
    array.at(index) = lower(conversion, std::span(&number, 1), array.dtype);
  }
}

template <class T>
void lower_lu(const Small& x, const Sizes64& batch, std::vector<Small>& results) {
  const std::int64_t m = rows_of(x.shape), n = columns_of(x.shape);
  Lanes<T> a = load<T>(x, batch), pivots(std::size_t(std::min(m, n))), order((std::size_t(m)));
  small::lu<T>(small::Elements<Lane<T>>{a.data(), n, 1}, pivots.data(), order.data(), m, n);
  store<T>(a, results[0], batch);
  store_numbers<T>(pivots, x.dtype, results[1], batch);
  store_numbers<T>(order, x.dtype, results[2], batch);
}

template <class T>
void lower_cholesky(const Small& x, const Sizes64& batch, std::vector<Small>& results) {
  const std::int64_t n = rows_of(x.shape);
  Lanes<T> a = load<T>(x, batch), l((std::size_t(n * n)));
  small::cholesky<T>(small::Elements<Lane<T>>{a.data(), n, 1}, l.data(), n);
  store<T>(l, results[0], batch);
}

// As solve_kernel in lib/primitives/linalg/cholesky.cpp has it.
template <class T>
void lower_solve(const Params& params, const Small& x, const Small& y, const Sizes64& batch,
                 std::vector<Small>& results) {
  const bool left = params.flag("left_side"), turned = params.flag("transpose_a") == left,
             reversed = params.flag("lower") == turned;
  const std::int64_t n = rows_of(x.shape), m = left ? columns_of(y.shape) : rows_of(y.shape),
                     columns = columns_of(y.shape);
  Lanes<T> a = load<T>(x, batch), b = load<T>(y, batch), result(b.size());
  auto with = [&](small::Elements<Lane<T>> elements, bool is_transposed) {
    if (is_transposed) elements = elements.transposed();
    return reversed ? elements.rows_reversed(n) : elements;
  };
  small::Elements<Lane<T>> l = with({a.data(), n, 1}, turned);
  if (reversed) l = l.transposed().rows_reversed(n).transposed();
  small::System<T, Lane<T>>{
      l, with({b.data(), columns, 1}, !left), with({result.data(), columns, 1}, !left), n,
      m, params.flag("unit_diagonal")}
      .solve();
  store<T>(result, results[0], batch);
}

}  // namespace

bool is_factorization(const Equation& equation) {
  return *equation.primitive == lu_p || *equation.primitive == cholesky_p ||
         *equation.primitive == triangular_solve_p;
}

std::string factorization_refusal(std::span<const Aval> inputs, const Equation& equation) {
  const bool is_solve = *equation.primitive == triangular_solve_p;
  const std::string name = "`" + std::string(equation.primitive->name()) + "`";
  if (inputs.size() != (is_solve ? 2u : 1u)) return name + " of padded matrices";
  const DType dtype = inputs[0].dtype;
  if (dtype != DType::float32 && dtype != DType::float64)
    return name + " of " + std::string(name_of(dtype));
  const std::int64_t most = *equation.primitive == lu_p ? small::largest_lu : small::largest;
  for (const Aval& aval : inputs)
    for (int axis = aval.rank() - 2; axis < aval.rank(); ++axis)
      if (aval.shape[axis] == Dim(0) || aval.shape[axis].constant() > most)
        return name + " of large matrices";
  return "";
}

double factorization_weight(const Equation& equation, std::span<const Aval> inputs) {
  const Sizes64 shape = inputs[0].shape.to_sizes();
  const double m = double(rows_of(shape)), n = double(columns_of(shape)), least = std::min(m, n);
  if (*equation.primitive == lu_p) return least * m * (2 * n + 8);
  if (*equation.primitive == cholesky_p) return n * n * n / 3 + 8 * n * n;
  const Sizes64 rhs = inputs[1].shape.to_sizes();
  const double sides = double(rows_of(rhs) * columns_of(rhs)) / n;
  return sides * n * (n + 8);
}

std::vector<Small> lower_factorization(const Equation& equation,
                                       std::span<const Small* const> inputs,
                                       std::span<const Aval> outputs, std::span<const int> axes) {
  std::vector<Small> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) results.emplace_back(outputs[i], axes[i]);
  const Small& x = *inputs[0];
  const Sizes64 batches(x.shape.begin(), x.shape.end() - 2);
  auto lower_all = [&](auto element) {
    using T = decltype(element);
    for_each_index(batches, x.axis, [&](const Sizes64& batch) {
      if (*equation.primitive == lu_p) return lower_lu<T>(x, batch, results);
      if (*equation.primitive == cholesky_p) return lower_cholesky<T>(x, batch, results);
      lower_solve<T>(equation.params, x, *inputs[1], batch, results);
    });
  };
  if (x.dtype == DType::float32)
    lower_all(float{});
  else
    lower_all(double{});
  return results;
}

}  // namespace plait::llvm
