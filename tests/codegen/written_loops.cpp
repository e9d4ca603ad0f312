// Loops as people write them. What they are about is where values lie, sizes that fill no vector,
// orders of axes, dtypes, and indices that are computed.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/samples.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "loop_cases.h"

namespace plait::codegen {
namespace {

namespace np = numpy;

using In = std::span<const Array>;
using Slice = plait::Range;

// --- Inputs and abbreviations --------------------------------------------------------------------

unsigned seed = 0;

Array random(const Shape& shape, DType dtype = DType::float64) {
  return laws::converted(laws::normal_like({shape, DType::float64}, ++seed), dtype);
}
Array integers(std::int64_t below, const Shape& shape, DType dtype = DType::int32) {
  return laws::values_for({{shape, dtype}, Sample::Input::Values::indices, below}, ++seed);
}
template <class T>
Array vector(std::vector<T> values) {
  Buffer buffer = Buffer::empty(dtype_of<T>(), {std::int64_t(values.size())});
  std::copy(values.begin(), values.end(), static_cast<T*>(buffer.mutable_data()));
  return Array(buffer);
}
Array i32(std::int64_t value) { return Array::literal(double(value), DType::int32); }
Array cast(const Array& x, DType dtype) { return lax::convert_element_type(x, dtype); }

// body(i, carry) for i from `from` to `to` - 1.
Arrays loop(const Array& from, const Array& to,
            const std::function<Arrays(const Array& i, In carry)>& body, const Arrays& init) {
  return flat::fori_loop(from, to, [&](In in) { return body(in[0], in.subspan(1)); }, init, 1);
}
Arrays loop(std::int64_t from, std::int64_t to,
            const std::function<Arrays(const Array& i, In carry)>& body, const Arrays& init) {
  return loop(i32(from), i32(to), body, init);
}
Array gradient_of(const Function& f, In in) {
  const Function total = [&](In x) {
    const Array y = f(x)[0];
    return Arrays{np::sum(np::cos(y))};
  };
  std::vector<bool> wrt(in.size(), false);
  wrt[0] = true;
  return flat::value_and_grad(total, in, wrt).gradients[0];
}

// --- Numbers, one by one -------------------------------------------------------------------------

Arrays relaxation(In in) {
  const Array u = in[0], f = in[1];
  const std::int64_t n = u.shape(0).constant(), m = u.shape(1).constant();
  const auto row = [&](const Array& i, In carry) {
    return loop(1, m - 1,
                [&](const Array& j, In carry) {
                  const Array& u = carry[0];
                  const Array mean = 0.25 * (u[{i - 1, j}] + u[{i + 1, j}] + u[{i, j - 1}] +
                                             u[{i, j + 1}] - f[{i, j}]);
                  return Arrays{u.at({i, j}).set(mean)};
                },
                {carry[0]});
  };
  return loop(0, 3, [&](const Array&, In carry) { return loop(1, n - 1, row, {carry[0]}); }, {u});
}

// Each element of those before it, upwards and downwards.
Arrays recurrences(In in) {
  const std::int64_t n = in[0].shape(0).constant();
  const Arrays up = loop(2, n,
                         [](const Array& i, In carry) {
                           const Array& x = carry[0];
                           return Arrays{x.at(i).set(0.5 * x[i] + x[i - 1] - 0.25 * x[i - 2])};
                         },
                         {in[0]});
  return loop(
      1, n,
      [&](const Array& i, In carry) {
        const Array& x = carry[0];
        return Arrays{x.at(n - 1 - i).add(0.5 * x[n - i])};
      },
      up);
}

// Functions of several numbers of a step, of which some are made of others.
Arrays several_functions(In in) {
  return loop(0, 4,
              [](const Array& i, In carry) {
                const Array& x = carry[0];
                std::vector<Array> next;
                for (int k = 0; k < 5; ++k) {
                  const Array a = x[k], b = x[(k + 1) % 5];
                  const Array turned = lax::sin(a + i) * lax::cos(b) + lax::sin(lax::cos(a * b));
                  next.push_back(lax::tanh(turned) + lax::exp(-(a * a)) +
                                 lax::log(1.5 + b * b) * lax::atan2(a, 1.0 + b * b));
                }
                return Arrays{np::stack(next)};
              },
              {in[0]});
}

Arrays alignment(In in) {
  const Array s = in[0], t = in[1];
  const std::int64_t n = s.shape(0).constant(), m = t.shape(0).constant();
  return loop(0, n * m,
              [&](const Array& k, In carry) {
                const Array& h = carry[0];
                const Array i = np::floor_divide(k, m) + 1, j = np::remainder(k, m) + 1;
                const Array gain = np::where(np::equal(s[i - 1], t[j - 1]), 2, -1);
                const Array best = np::maximum(h[{i - 1, j - 1}] + gain,
                                               np::maximum(h[{i - 1, j}], h[{i, j - 1}]) - 1);
                return Arrays{h.at({i, j}).set(np::maximum(best, 0))};
              },
              {np::zeros({n + 1, m + 1}, DType::int32)});
}

Arrays sparse_rows(In in) {
  const Array row = in[0], column = in[1], value = in[2], x = in[3];
  return loop(0, row.shape(0).constant() - 1,
              [&](const Array& i, In carry) {
                const Array sum = loop(row[i], row[i + 1],
                                       [&](const Array& k, In carry) {
                                         return Arrays{carry[0] + value[k] * x[column[k]]};
                                       },
                                       {np::zeros({}, DType::float64)})[0];
                return Arrays{carry[0].at(i).set(sum)};
              },
              {np::zeros({row.shape(0) - Dim(1)}, DType::float64)});
}

Arrays old_value(In in) {
  return loop(0, 20,
              [](const Array& i, In carry) {
                const Array old = carry[0][i], x = carry[0].at(i).set(old * 2.0 + carry[1]);
                return Arrays{x, old + x[np::remainder(i + 3, 20)]};
              },
              {in[0], np::zeros({}, DType::float64)});
}
Arrays constant_and_carry(In in) {
  return loop(0, 12,
              [&](const Array& i, In carry) {
                return Arrays{carry[0].at(i).set(in[0][11 - i] + carry[0][i])};
              },
              {in[0]});
}
Arrays two_carries_from_one(In in) {
  return loop(0, 12,
              [](const Array& i, In carry) {
                return Arrays{carry[0].at(i).set(carry[1][11 - i]),
                              carry[1].at(i).set(-carry[0][i])};
              },
              {in[0], in[0]});
}
Arrays swapped_carries(In in) {
  return loop(0, 7,
              [](const Array& i, In carry) {
                return Arrays{carry[1].at(i).set(carry[0][i + 1]), carry[0]};
              },
              {in[0], in[1]});
}
Arrays rotated_numbers(In in) {
  return loop(0, 10, [&](const Array& i, In c) { return Arrays{c[1], c[2], c[0] + in[0][i]}; },
              {in[0][0], in[0][1], in[0][2]});
}

// Numbers that change places: none may be overwritten before it is read.
Arrays swapped_numbers(In in) {
  return loop(
      0, 9, [&](const Array& i, In c) { return Arrays{c[1], c[0], c[2] * 0.5 + c[0] * in[0][i]}; },
      {in[0][0], in[0][1], in[0][2]});
}

Arrays branch_that_returns_its_input(In in) {
  return loop(0, 30,
              [](const Array& i, In carry) {
                const Function change = [&](In x) -> Arrays {
                  return {x[0].at(i).set(-x[0][i]).at(np::remainder(i * 7, 30)).add(1.0)};
                };
                const Function keep = [](In x) -> Arrays { return {x[0]}; };
                return flat::cond(carry[0][i] > 0.0, {keep, change}, Arrays{carry[0]});
              },
              {in[0]});
}
Arrays branches_with_other_memory(In in) {
  return loop(0, 12,
              [&](const Array& i, In carry) {
                const std::vector<Function> branches = {
                    [](In x) -> Arrays { return {x[0]}; }, [](In x) -> Arrays { return {x[1]}; },
                    [&](In x) -> Arrays { return {x[0].at(i).set(x[1][i])}; }};
                const Array z =
                    flat::cond(in[1][i], branches, Arrays{carry[0], carry[1]}, "switch")[0];
                return Arrays{z, carry[1].at(2 * i).multiply(3.0)};
              },
              {in[0], np::flip(in[0])});
}

Arrays overlapping_windows(In in) {
  return loop(0, 30,
              [](const Array& i, In carry) {
                const Array window = lax::dynamic_slice(carry[0], {i}, {Dim(15)});
                return Arrays{lax::dynamic_update_slice(carry[0], window, {i + 1})};
              },
              {in[0]});
}
Arrays carry_stacked(In in) {
  const Function step = [](In in) -> Arrays {
    const Array i = np::remainder(in[1], 9), x = in[0].at(i).add(in[2]);
    return {x, in[1] + 2, x, x[i]};
  };
  const flat::Scanned done = flat::scan(step, Arrays{in[0], i32(0)}, Arrays{in[1]}, {{}, true});
  return concatenate(done.carry, done.ys);
}
Arrays insertion_sort(In in) {
  return loop(1, in[0].shape(0).constant(),
              [](const Array& i, In carry) {
                const Function goes_on = [](In s) -> Arrays {
                  const Array before = s[1][np::maximum(s[0] - 1, 0)];
                  return {(s[0] > 0) & (before > s[1][s[0]])};
                };
                const Function swap = [](In s) -> Arrays {
                  const Array a = s[1][s[0] - 1], b = s[1][s[0]];
                  return {s[0] - 1, s[1].at(s[0]).set(a).at(s[0] - 1).set(b)};
                };
                return Arrays{flat::while_loop(goes_on, swap, Arrays{i, carry[0]})[1]};
              },
              {in[0]});
}
Arrays negative_and_clipped(In in) {
  return loop(0, 5,
              [](const Array& i, In carry) {
                SubscriptOptions clip;
                clip.mode = lax::GatherScatterMode::clip;
                const Array value = carry[0].at({i * 3, 2}).get(clip);
                return Arrays{carry[0].at({-1 - i, i - 5}).set(value + 1.0)};
              },
              {in[0]});
}
Arrays flags(In in) {
  return loop(0, 12,
              [&](const Array& i, In carry) {
                const Array at = in[1][i], &f = carry[0];
                return Arrays{f.at(at).set(f[np::remainder(at + 1, 40)] ^ f[i])};
              },
              {in[0]});
}
Arrays products_of_neighbours(In in) {
  return loop(1, in[0].shape(0).constant(),
              [](const Array& i, In carry) {
                const Array& x = carry[0];
                return Arrays{x.at(i).set(x[i] * x[i - 1] + 0.5 * x[i])};
              },
              {in[0]});
}
Arrays loops_without_steps(In in) {
  return loop(0, 6,
              [](const Array& i, In carry) {
                return loop(i, i32(3),
                            [&](const Array& j, In carry) {
                              return Arrays{carry[0].at(j).add(carry[0][i])};
                            },
                            {carry[0]});
              },
              {in[0]});
}
Arrays tridiagonal(In in) {  // Thomas's algorithm
  const Array lower = in[0], main = 4.0 + in[1], upper = in[2], right = in[3];
  const std::int64_t n = right.shape(0).constant();
  const Arrays swept = loop(1, n,
                            [&](const Array& i, In carry) {
                              const Array w = lower[i] / carry[0][i - 1];
                              return Arrays{carry[0].at(i).set(main[i] - w * upper[i - 1]),
                                            carry[1].at(i).set(right[i] - w * carry[1][i - 1])};
                            },
                            {main, right});
  return loop(1, n,
              [&](const Array& k, In carry) {
                const Array i = n - 1 - k;
                const Array x = (swept[1][i] - upper[i] * carry[0][i + 1]) / swept[0][i];
                return Arrays{carry[0].at(i).set(x)};
              },
              {swept[1] / swept[0]});
}
Arrays filter(In in) {  // a 2x2 Kalman filter: arrays that are numbers
  const Array turn = vector<double>({1, 0.1, -0.05, 0.9});
  const Array f = lax::reshape(turn, {Dim(2), Dim(2)});
  const Function step = [&](In in) -> Arrays {
    const Array x = np::matmul(f, in[0]);
    const Array p = np::matmul(np::matmul(f, in[1]), np::matrix_transpose(f)) +
                    0.01 * np::eye(2, {}, 0, DType::float64);
    const Array gain = p[{Slice{}, 0}] / (p[{0, 0}] + 0.3), error = in[2] - x[0];
    return {x + gain * error, p - np::outer(gain, p[0]), error};
  };
  const flat::Scanned done = flat::scan(
      step, Arrays{np::zeros({2}, DType::float64), np::eye(2, {}, 0, DType::float64)}, in);
  return concatenate(done.carry, done.ys);
}

// --- Elementwise ---------------------------------------------------------------------------------

Arrays transcendental(In in) {
  return loop(0, 3,
              [](const Array&, In carry) {
                const Array x = carry[0];
                Array y = np::sin(x) + np::exp(-np::abs(x)) + np::log1p(x * x);
                y = y + np::tanh(x) * lax::erf(x) + np::sqrt(np::abs(x)) - np::cos(3.0 * x);
                y = y + np::arctan2(x, y) + np::power(np::abs(x) + 0.5, y) - np::expm1(0.1 * x);
                return Arrays{0.3 * y, carry[1] + lax::lgamma(np::abs(y) + 1.5) + np::floor(y)};
              },
              {in[0], in[0]});
}
Arrays arithmetic(In in) {  // of any dtype; NaN, zeros and both signs among floats
  return loop(
      0, 4,
      [](const Array&, In carry) {
        const Array &x = carry[0], &y = carry[1];
        const Array big = x > y;
        const Array a = np::where(big, x - y, x + x), b = np::maximum(x, y) * np::minimum(x, y);
        return Arrays{cast(a, x.dtype()), cast(np::where(big & (y > x * y), b, y), x.dtype())};
      },
      {in[0], in[1]});
}
Arrays division(In in) {
  return loop(0, 3,
              [](const Array&, In carry) {
                const Array &x = carry[0], &y = carry[1];
                const Array q = lax::div(x, y), r = lax::rem(x, y);
                return Arrays{q + 3 * r, y - r};
              },
              {in[0], in[1]});
}
Arrays bits(In in) {
  return loop(0, 3,
              [](const Array&, In carry) {
                const Array &x = carry[0], &y = carry[1];
                const Array few = lax::rem(y, cast(Array(70), y.dtype()));
                return Arrays{lax::shift_left(x, few) | (~y & lax::shift_right_logical(y, few)),
                              lax::shift_right_arithmetic(x, few) ^ lax::pow(x, few)};
              },
              {in[0], in[1]});
}
Arrays casts(In in) {
  return loop(
      0, 2,
      [](const Array&, In carry) {
        const Array x = carry[0];
        Array sum = x;
        for (const DType dtype : {DType::int8, DType::uint8, DType::int32, DType::uint64,
                                  DType::float16, DType::bfloat16, DType::float32, DType::bool_})
          sum = sum * 0.5 + cast(cast(x, dtype), DType::float64);
        const Array flipped =
            lax::bitcast_convert_type(lax::bitcast_convert_type(x, DType::int64) ^ 5, x.dtype());
        return Arrays{sum, carry[1] + flipped};
      },
      {in[0], in[0]});
}
Arrays swap_of_formulas(In in) {
  return loop(0, 3, [](const Array&, In carry) { return Arrays{carry[1] * 2.0, carry[0] + 1.0}; },
              {in[0], in[1]});
}
Arrays stencil(In in) {
  return loop(0, 4,
              [](const Array&, In carry) {
                const Array& x = carry[0];
                return Arrays{x.at(Slice{1, {}}).set(x[Slice{{}, -1}] + x[Slice{1, {}}])};
              },
              {in[0]});
}
Arrays heat(In in) {  // steps that exchange two arrays
  return loop(0, 5,
              [](const Array&, In carry) {
                const Array& x = carry[0];
                return Arrays{x + 0.1 * (np::roll(x, 1, {0}) + np::roll(x, -1, {0}) - 2.0 * x)};
              },
              {in[0]});
}
Arrays transposed(In in) {
  return loop(0, 3,
              [](const Array&, In carry) {
                return Arrays{np::matrix_transpose(carry[0]) + 0.5 * carry[0]};
              },
              {in[0]});
}
Arrays columns_and_rows(In in) {
  const Array x =
      loop(1, in[0].shape(1).constant(),
           [](const Array& j, In carry) {
             const Array& x = carry[0];
             const Array column = x[{Slice{}, j}];
             return Arrays{x.at({Slice{}, j}).set(x[{Slice{}, j - 1}] * 0.5 + np::sum(column))};
           },
           {in[0]})[0];
  return loop(1, in[0].shape(0).constant(),
              [](const Array& i, In carry) { return Arrays{carry[0].at(i).add(carry[0][i - 1])}; },
              {x});
}
Arrays outer_products(In in) {
  return loop(0, 6,
              [&](const Array& i, In carry) {
                return Arrays{carry[0] * 0.9 + np::outer(np::sin(in[0]), in[1]) * i};
              },
              {in[2]});
}
Arrays complex_steps(In in) {
  return loop(0, 4,
              [](const Array&, In carry) {
                const Array z = carry[0];
                const Array next = np::where(np::abs(z) > 1.0, z / (z + 2.0), z * z - 0.5 * z);
                return Arrays{np::conj(next) + np::exp(0.1 * z),
                              carry[1] + np::real(z) * np::imag(z) - np::abs(z)};
              },
              {in[0], np::real(in[0])});
}

// --- Reductions and products ---------------------------------------------------------------------

Arrays reductions(In in) {
  const auto all = [](const Array& x) {
    Arrays results{np::sum(x), np::max(x), np::min(x)};
    for (int axis = 0; axis < x.ndim(); ++axis)
      results.insert(results.end(), {np::sum(x, {axis}), np::prod(x, {axis}), np::max(x, {axis})});
    return results;
  };
  Arrays init{in[0]};
  for (const Array& result : all(in[0])) init.push_back(np::zeros_like(result));
  return loop(
      0, 3,
      [&](const Array&, In carry) {
        Arrays next{carry[0] + carry[0]};
        const Arrays results = all(carry[0]);
        for (std::size_t i = 0; i < results.size(); ++i) next.push_back(carry[i + 1] - results[i]);
        return next;
      },
      init);
}
Arrays positions(In in) {
  return loop(0, 4,
              [](const Array&, In carry) {
                const Array& x = carry[0];
                return Arrays{np::roll(x, 1, {0}) * 0.9, carry[1] * 3 + np::argmax(x, 0),
                              carry[2] * 3 + np::argmin(x)};
              },
              {in[0], np::zeros_like(np::argmax(in[0], 0)), np::zeros_like(np::argmin(in[0]))});
}
Arrays inner_products(In in) {
  return loop(0, 4,
              [&](const Array&, In carry) {
                return Arrays{carry[0] * 0.75, carry[1] + np::dot(carry[0], in[1])};
              },
              {in[0], np::zeros_like(np::dot(in[0], in[1]))});
}
Arrays matrix_and_vectors(In in) {
  return loop(0, 4,
              [&](const Array& i, In carry) {
                const Array y = np::matmul(in[0], carry[0]);
                return Arrays{np::matmul(y, in[0]) * 0.01 + in[0][i]};
              },
              {in[1]});
}
Arrays forward_substitution(In in) {
  const Array a = in[0] + 20.0 * np::eye(in[1].shape(0), {}, 0, DType::float64), b = in[1];
  const std::int64_t n = b.shape(0).constant();
  return loop(0, n,
              [&](const Array& i, In carry) {
                const Array known = lax::iota(DType::int32, {Dim(n)}, 0) < i;
                const Array s = np::sum(np::where(known, a[i] * carry[0], 0.0));
                return Arrays{carry[0].at(i).set((b[i] - s) / a[{i, i}])};
              },
              {np::zeros_like(b)});
}
Arrays softmax_rows(In in) {
  const Function step = [](In in) -> Arrays {
    const Array e = np::exp(in[1] - np::max(in[1]));
    return {in[0] + e, e / np::sum(e)};
  };
  const flat::Scanned done =
      flat::scan(step, Arrays{np::zeros({in[0].shape(1)}, DType::float64)}, in);
  return concatenate(done.carry, done.ys);
}
Arrays running(In in) {
  return loop(0, 3,
              [](const Array&, In carry) {
                const Array x = carry[0];
                return Arrays{lax::cumsum(x, 0) * 0.2, carry[1] + lax::cummax(x, 0, true),
                              carry[2] * 0.5 + lax::cumprod(x, 0)};
              },
              {in[0], in[0], in[0]});
}

// --- Parts of arrays -----------------------------------------------------------------------------

Arrays gathered_rows(In in) {
  return loop(0, 3,
              [&](const Array& i, In carry) {
                const Array &x = carry[0], &rows = in[1];
                SubscriptOptions fill;
                fill.fill_value = 0.25;
                const Array some = getitem(x, {rows + 3 * i}, fill);
                const Array others = np::take_along_axis(x, np::expand_dims(rows, {1}), 0);
                return Arrays{0.5 * x + x[rows] + some + others};
              },
              {in[0]});
}
Function scattered(UpdateKind kind, lax::GatherScatterMode mode) {
  return [=](In in) {
    return loop(0, 3,
                [&](const Array& k, In carry) {
                  SubscriptOptions options;
                  options.mode = mode;
                  return Arrays{update_item(carry[0], {in[1] + 3 * k}, in[2] * 0.5, kind, options) +
                                carry[0]};
                },
                {in[0]});
  };
}
Arrays pieces(In in) {
  return loop(
      0, 4,
      [](const Array& i, In carry) {
        const Array& x = carry[0];
        const Array y = np::roll(x, 1, {0}) + np::pad(x[Slice{1, -1}], {{2, 0}}, "constant", 1.5);
        const Array z =
            lax::reshape(lax::concatenate({y[Slice{3, {}}], y[Slice{{}, 3}]}, 0), {Dim(4), Dim(6)});
        const Array flat = lax::reshape(np::matrix_transpose(z) * 0.5, {Dim(24)});
        return Arrays{flat + np::sum(z[Slice{1, 3}]) * i + lax::rev(x, std::vector<int>{0})};
      },
      {in[0]});
}
Arrays sorted_steps(In in) {
  return loop(0, 3,
              [](const Array& i, In carry) {
                return Arrays{np::sort(carry[0]) * 0.5 + np::cos(carry[0] * i)};
              },
              {in[0]});
}
// By two keys, of which the second is of another dtype; each step sorts the other way.
Arrays sorted_few(In in) {
  return loop(0, 3,
              [&](const Array& i, In carry) {
                const int axis = carry[0].ndim() - 1;
                const Arrays up = lax::sort({carry[0], in[1], carry[0]}, axis, true, 2, false);
                const Arrays down = lax::sort({up[1] + i, up[2]}, 0, true, 1, true);
                return Arrays{down[1]};
              },
              {in[0]});
}
Arrays keys(In in) {
  return loop(0, 3,
              [](const Array& i, In carry) {
                const Array key = lax::random_fold(carry[0], cast(i, DType::uint32));
                return Arrays{key, carry[1] ^ lax::random_bits(key, {Dim(11)}, 32)};
              },
              {in[0], np::zeros({11}, DType::uint32)});
}

// --- Loops in each other, and for each example ---------------------------------------------------

Arrays branches_and_loops(In in) {
  return loop(0, 5,
              [](const Array& i, In carry) {
                const Array y0 = carry[1];
                const std::vector<Function> branches = {
                    [](In x) -> Arrays { return {x[0]}; },
                    [](In x) -> Arrays { return {x[0] + x[1]}; }};
                const Array x = flat::cond(carry[0][i] > 0.0, branches, Arrays{carry[0], y0})[0];
                const Array y =
                    loop(0, 3, [&](const Array&, In c) { return Arrays{c[0] * 0.5 + x}; }, {y0})[0];
                const Function large = [](In s) -> Arrays { return {np::sum(s[0] * s[0]) > 4.0}; };
                const Function halved = [](In s) -> Arrays { return {s[0] * 0.5, s[1] + s[0]}; };
                return flat::while_loop(large, halved, Arrays{x, y});
              },
              {in[0], in[1]});
}
Arrays each_example(const Function& one, In in) {
  flat::VmapOptions options;
  options.in_dims.assign(in.size(), 0);
  return flat::vmap(one, in, options);
}
Arrays roots(In in) {
  return each_example(
      [](In in) {
        const Array t = in[0];
        const Function goes_on = [&](In s) -> Arrays { return {s[1] - s[0] > 1e-6 * (1.0 + t)}; };
        const Function step = [&](In s) -> Arrays {
          const Array middle = (s[0] + s[1]) * 0.5, below = middle * middle * middle < t;
          return {np::where(below, middle, s[0]), np::where(below, s[1], middle), s[2] + 1};
        };
        return flat::while_loop(goes_on, step, Arrays{t * 0.0, 1.0 + t, i32(0)});
      },
      in);
}
Arrays own_ends(In in) {  // memories change places, for each example by itself
  return each_example(
      [](In in) {
        const Function goes_on = [](In s) -> Arrays { return {np::max(s[0]) > 0.2}; };
        const Function step = [](In s) -> Arrays {
          return {np::roll(s[0], 3) * 0.7, s[2], s[1] + s[0], s[3] + 1};
        };
        return flat::while_loop(goes_on, step, Arrays{in[0], in[0] * 0.0, in[0], i32(0)});
      },
      in);
}
Arrays collatz(In in) {
  return each_example(
      [](In in) {
        const Function goes_on = [](In s) -> Arrays { return {(s[0] > 1) & (s[1] < 60)}; };
        const Function step = [](In s) -> Arrays {
          const Array even = np::equal(np::remainder(s[0], 2), 0);
          return {np::where(even, np::floor_divide(s[0], 2), 3 * s[0] + 1), s[1] + 1};
        };
        return flat::while_loop(goes_on, step, Arrays{in[0], i32(0)});
      },
      in);
}
Arrays examples_in_a_loop(In in) {
  return loop(0, 3,
              [](const Array& i, In carry) {
                const Function goes_on = [](In s) -> Arrays { return {s[0] > 1.0}; };
                const Function step = [](In s) -> Arrays { return {s[0] / 3.0}; };
                const Array x = each_example(
                    [&](In in) { return flat::while_loop(goes_on, step, Arrays{in[0]}); },
                    Arrays{carry[0] * 5.0})[0];
                return Arrays{x + 0.1 * i};
              },
              {in[0]});
}
Arrays bounded_steps(In in) {  // an error where it does not end in time
  const Function goes_on = [](In s) -> Arrays { return {np::sum(s[0]) > 0.0}; };
  const Function step = [](In s) -> Arrays { return {s[0] - 1.0}; };
  return flat::while_loop(goes_on, step, in, {4});
}

// --- Indices outside -----------------------------------------------------------------------------

Arrays read_outside(In in) {
  return loop(0, 8, [&](const Array& i, In carry) { return Arrays{carry[0] + in[0][i * in[1]]}; },
              {np::zeros({}, DType::float64)});
}
Arrays written_outside(In in) {
  return loop(
      0, 8,
      [&](const Array& i, In carry) { return Arrays{carry[0].at(i + in[1]).set(carry[0][i])}; },
      {in[0]});
}
Arrays gathered_outside(In in) {
  return loop(0, 4, [&](const Array& i, In carry) { return Arrays{carry[0][in[1] + i] * 2.0}; },
              {in[0]});
}
Arrays scattered_outside(In in) {
  return loop(0, 4,
              [&](const Array& i, In carry) { return Arrays{carry[0].at(in[1] + i).add(1.5)}; },
              {in[0]});
}
Arrays read_in_a_branch(In in) {
  return loop(0, 9,
              [&](const Array& i, In carry) {
                const std::vector<Function> branches = {
                    [](In x) -> Arrays { return {x[0]}; },
                    [&](In x) -> Arrays { return {x[0] + in[0][2 * i]}; }};
                return flat::cond(np::equal(np::remainder(i, 3), 2), branches, Arrays{carry[0]});
              },
              {np::zeros({}, DType::float64)});
}

// --- All of them ---------------------------------------------------------------------------------

struct Adding {
  LoopCases all;
  void operator()(const std::string& name, const Function& f, const Arrays& inputs) {
    all.add(loops_of(name, f, inputs));
  }
  void gradient(const std::string& name, const Function& f, const Arrays& inputs) {
    (*this)("gradient of " + name, [&](In in) -> Arrays { return {gradient_of(f, in)}; }, inputs);
  }
};

void add_numbers(Adding& add) {
  add("relaxation", relaxation, {random({9, 7}), random({9, 7})});
  add("alignment", alignment, {integers(4, {11}), integers(4, {13})});
  add("sparse rows", sparse_rows,
      {vector<std::int32_t>({0, 2, 2, 5, 9, 14, 14, 20}), integers(30, {20}), random({20}),
       random({30})});
  add("old value", old_value, {random({20})});
  add("constant and carry", constant_and_carry, {random({12})});
  add("two carries from one", two_carries_from_one, {random({12})});
  add("swapped carries", swapped_carries, {random({12}), random({12})});
  add("rotated numbers", rotated_numbers, {random({12})});
  add("swapped numbers", swapped_numbers, {random({12})});
  add("branch that returns its input", branch_that_returns_its_input, {random({30})});
  add("branches with other memory", branches_with_other_memory, {random({30}), integers(3, {12})});
  add("overlapping windows", overlapping_windows, {random({40})});
  add("carry stacked", carry_stacked, {random({9}), random({25})});
  add("insertion sort", insertion_sort, {integers(100, {20})});
  add("negative and clipped", negative_and_clipped, {random({6, 5})});
  add("flags", flags, {random({40}) > 0.0, integers(40, {12})});
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::complex128})
    add("products of neighbours", products_of_neighbours, {random({15}, dtype)});
  add("loops without steps", loops_without_steps, {random({12})});
  add("tridiagonal", tridiagonal, {random({10}), random({10}), random({10}), random({10})});
  add("filter", filter, {random({12})});
}

void add_elementwise(Adding& add) {
  for (const DType dtype : {DType::float32, DType::float64, DType::float16})
    add("transcendental", transcendental, {random({19}, dtype)});
  for (const DType dtype :
       {DType::int8, DType::uint16, DType::int32, DType::uint64, DType::float32, DType::bfloat16})
    add("arithmetic", arithmetic, {integers(120, {21}, dtype), integers(120, {21}, dtype)});
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  add("arithmetic", arithmetic,
      {vector<double>({0.0, -0.0, nan, 1, -1, infinity, -infinity, 0.0, 2, nan}),
       vector<double>({-0.0, 0.0, 1, nan, -1, -infinity, infinity, nan, 0, nan})});
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  add("division", division,
      {vector<std::int64_t>({7, -7, 7, least, 5, 0}), vector<std::int64_t>({2, 2, -2, -1, 0, 0})});
  add("division", division,
      {vector<std::uint8_t>({7, 250, 7, 0}), vector<std::uint8_t>({2, 200, 0, 0})});
  add("division", division, {random({9}), random({9})});
  for (const DType dtype : {DType::int8, DType::int32, DType::uint32, DType::int64})
    add("bits", bits, {integers(100, {17}, dtype), integers(100, {17}, dtype)});
  add("casts", casts, {300.0 * random({12})});
  add("casts", casts, {vector<double>({nan, infinity, -infinity, 1e10, -0.0, 255.5, -1e19})});
}

void add_arrays(Adding& add) {
  for (const std::int64_t n : {9, 40}) {
    add("swap of formulas", swap_of_formulas, {random({n}), random({n})});
    add("stencil", stencil, {random({n})});
  }
  add("heat", heat, {random({21})});
  add("transposed", transposed, {random({7, 7})});
  add("columns and rows", columns_and_rows, {random({12, 9})});
  add("outer products", outer_products, {random({5}), random({11}), random({5, 11})});
  for (const DType dtype : {DType::complex64, DType::complex128})
    add("complex steps", complex_steps, {random({9}, dtype)});
}

void add_reductions(Adding& add) {
  add("reductions", reductions, {1.0 + 0.1 * random({13, 20})});
  add("reductions", reductions, {1.0 + 0.1 * random({37})});
  add("reductions", reductions, {1.0 + 0.1 * random({3, 700})});
  add("reductions", reductions, {cast(1.0 + 0.1 * random({4, 5, 6}), DType::float32)});
  add("reductions", reductions, {integers(9, {5, 11})});
  add("positions", positions, {np::round(random({12, 9}))});
  for (const std::int64_t n : {12, 40, 600})
    for (const DType dtype : {DType::float32, DType::float64})
      add("inner products", inner_products, {random({n}, dtype), random({n}, dtype)});
  add("matrix and vectors", matrix_and_vectors, {random({13, 33}), random({33})});
  add("forward substitution", forward_substitution, {random({17, 17}), random({17})});
  add("softmax rows", softmax_rows, {random({5, 21})});
  add("running", running, {random({10, 3})});
}

void add_parts(Adding& add) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  add("gathered rows", gathered_rows, {random({12, 7}), integers(12, {12})});
  for (const UpdateKind kind :
       {UpdateKind::set, UpdateKind::add, UpdateKind::multiply, UpdateKind::min, UpdateKind::max})
    add("scattered", scattered(kind, lax::GatherScatterMode::fill),
        {random({12, 10}), integers(12, {5}), random({5, 10})});
  add("scattered", scattered(UpdateKind::add, lax::GatherScatterMode::clip),
      {random({12}), integers(12, {5}), random({5})});
  add("pieces", pieces, {random({24})});
  add("sorted steps", sorted_steps, {random({14})});
  for (const Shape& shape : {Shape{2}, Shape{7}, Shape{5, 6}, Shape{2, 3, 4}})
    add("sorted few", sorted_few, {random(shape), integers(3, shape)});
  add("sorted few", sorted_few,
      {vector<double>({nan, 0.0, -0.0, -nan, infinity, -1, -infinity, nan}),
       integers(2, {8}, DType::uint8)});
  add("keys", keys, {vector<std::uint32_t>({17, 42})});
}

void add_nested(Adding& add) {
  add("branches and loops", branches_and_loops, {random({20}), random({20})});
  add("examples with own ends", own_ends, {np::abs(random({9, 80}))});
  add("examples with own ends, of few elements", own_ends, {np::abs(random({9, 20}))});
  add("roots", roots, {np::abs(10.0 * random({21}))});
  add("collatz", collatz, {integers(500, {37})});
  add("examples in a loop", examples_in_a_loop, {np::abs(10.0 * random({19}))});

  add.gradient("relaxation", relaxation, {0.5 * random({6, 5}), random({6, 5})});
  add.gradient("columns and rows", columns_and_rows, {0.1 * random({5, 6})});
  add.gradient("filter", filter, {random({6})});
  add.gradient("gathered rows", gathered_rows, {random({12, 7}), integers(12, {12})});
  add.gradient("matrix and vectors", matrix_and_vectors, {random({9, 12}), random({12})});
  add.gradient("softmax rows", softmax_rows, {random({5, 21})});
  add.gradient("branches and loops", branches_and_loops, {random({9}), random({9})});
}

void add_failing(Adding& add) {
  add("bounded steps", bounded_steps, {10.0 + 0.0 * random({3})});
  for (const std::int64_t step : {1, 2}) {
    add("read outside", read_outside, {random({12}), i32(step)});
    add("written outside", written_outside, {random({12}), i32(step * 4)});
  }
  add("gathered outside", gathered_outside, {random({8}), integers(8, {8})});
  add("scattered outside", scattered_outside, {random({8}), integers(8, {8})});
  add("read in a branch", read_in_a_branch, {random({10})});
}

void add_recurrences(Adding& add) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::float32, DType::float64})
    add("several functions", several_functions, {random({5}, dtype)});
  add("several functions", several_functions, {vector<double>({1e9, nan, -0.0, infinity, 1e300})});
  add("recurrences", recurrences, {random({17})});
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32})
    add("recurrences", recurrences, {random({9}, dtype)});
}

}  // namespace

LoopCases written_loops() {
  seed = 0;
  Adding add;
  for (const auto group : {add_numbers, add_elementwise, add_arrays, add_reductions, add_parts,
                           add_nested, add_failing, add_recurrences})
    group(add);
  return std::move(add.all);
}

LoopCases united_loops() {
  seed = 0;
  // There, and back through what was made on the way.
  const auto swept = [](In in) {
    const Function there = [](In in) {
      const Array next = in[0] * 0.5 + in[1];
      return Arrays{next, next};
    };
    const Function back = [](In in) {
      const Array next = in[1] - in[0] * in[1];
      return Arrays{next, next};
    };
    flat::ScanOptions backwards;
    backwards.reverse = true;
    const Arrays made = flat::scan(there, std::array{in[1]}, std::array{in[0]}, {}).ys;
    return flat::scan(back, std::array{in[1]}, made, backwards).ys;
  };
  LoopCases cases;
  for (const auto& [shape, dtype] : {std::pair(Shape({19, 50, 80}), DType::float64),
                                     std::pair(Shape({21, 6007}), DType::float32),
                                     std::pair(Shape({18, 5003}), DType::complex128)}) {
    const Array x = random(shape, dtype);
    const Arrays inputs{x, x[0] * 0.25};
    const Traced traced = make_jaxpr(swept, avals_of(inputs));
    LoopCase one{"swept " + shape.to_string(), traced.jaxpr, inputs, {}};
    one.lowered = compile_passes::loop_program(one.group);
    cases.loops.push_back(std::move(one));
  }
  return cases;
}

}  // namespace plait::codegen
