// cholesky and triangular_solve.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <Eigen/Cholesky>

#include "primitives/linalg/cost.h"
#include "primitives/linalg/emit_factors.h"
#include "primitives/linalg/matrices.h"
#include "primitives/linalg/small_factors.h"
#include "primitives/linalg/small_matrices.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using namespace matrices;  // NOLINT
using Values = Sample::Input::Values;

bool is_small(std::int64_t n, std::int64_t m) {
  return std::min(n, m) > 0 && std::max(n, m) <= small::largest;
}

template <class T>
void cholesky_kernel(std::span<const View> inputs, const View& out) {
  const MatrixBatch batch(inputs[0]);
  if constexpr (std::is_floating_point_v<T>)
    if (is_small(batch.rows(), batch.rows()) && inputs.size() == 1)
      return small_cholesky<T>(inputs[0], out);
  const RealSizes sizes(inputs, 1);
  const double n3 = std::pow(double(batch.rows()), 3);
  for_matrices(batch.count(), n3 / 3, [&](std::int64_t begin, std::int64_t end) {
    Matrix<T> l;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = sizes.at(0, i, batch.rows());
      batch.load<T>(i, n, n, l);
      if (n > 0) {
        const Eigen::LLT<Eigen::Ref<Matrix<T>>> llt(l);
        if (llt.info() != Eigen::Success || !l.diagonal().allFinite())
          l.setConstant(not_a_number<T>());
      }
      l.template triangularView<Eigen::StrictlyUpper>().setZero();
      store<T>(l, out, i);
    }
  });
}

// dL = L Phi(L^-1 dA L^-H), Phi the lower triangle with half the diagonal: Murray, "Differentiation
// of the Cholesky decomposition" (2016), equation 8.
Tangents cholesky_jvp(const Array&, const Array& dx, std::span<const Array> outputs,
                      const Params&) {
  const Array& l = outputs[0];
  const Array right =
      lax::linalg::triangular_solve(l, hermitian_of(dx, true), false, true, true, true);
  const Array both = lax::linalg::triangular_solve(l, right, true, true);
  return {matmul(l, half_lower(both))};
}

// --- triangular_solve ----------------------------------------------------------------------------

struct Triangular {
  bool left, lower, transpose, conjugate, unit;
  explicit Triangular(const Params& params)
      : left(params.flag("left_side")),
        lower(params.flag("lower")),
        transpose(params.flag("transpose_a")),
        conjugate(params.flag("conjugate_a")),
        unit(params.flag("unit_diagonal")) {}
};

// A system l x = b of n unknowns, in memory, and where its results go.
template <class T>
struct TriangularSystem {
  tiles::Strided<const T> l, b;
  tiles::Strided<T> x;
  std::int64_t n, num_sides;
  bool conjugate, unit;

  // The right-hand sides are divided among threads, by as many as the first-level cache holds.
  void solve() const {
    using Tiles = tiles::Tiles<T>;
    constexpr std::int64_t near_bytes = 24 << 10, worth_a_thread = 1 << 16;
    Tiles triangle(n, n), inverses(unit ? 0 : n, 1);
    const auto element = [system = *this](std::int64_t i, std::int64_t j) -> T {
      if constexpr (Tiles::is_complex)
        if (system.conjugate) return std::conj(system.l(i, j));
      return system.l(i, j);
    };
    triangle.fill_lower(n, element);
    if (!unit)
      for (std::int64_t i = 0; i < n; ++i) inverses.set(i, 0, T(1) / element(i, i));
    const std::int64_t groups = near_bytes / (n * std::int64_t(sizeof(T)) * Tiles::group),
                       strip = std::max<std::int64_t>(1, groups) * Tiles::group;
    parallel_for((num_sides + strip - 1) / strip,
                 std::max<std::int64_t>(1, worth_a_thread / (n * n * strip)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t j = begin * strip; j < end * strip; j += strip)
                     solve(triangle, unit ? nullptr : &inverses, j, std::min(strip, num_sides - j));
                 });
  }

 private:
  void solve(const tiles::Tiles<T>& triangle, const tiles::Tiles<T>* inverses, std::int64_t first,
             std::int64_t count) const {
    const auto sides = b.columns_from(first);
    const auto results = x.columns_from(first);
    tiles::Tiles<T> values(n, count);
    values.fill(n, 0, count, sides);
    tiles::solve_lower(triangle, n, inverses, values);
    values.for_elements(
        n, count, [results](std::int64_t i, std::int64_t j, T value) { results(i, j) = value; });
  }
};

// Every case is reduced to l x = b, by transposing and by reversing the order of the unknowns.
template <class T>
void solve_kernel(std::span<const View> inputs, const View& out, const Triangular& kind) {
  const MatrixBatch a_batch(inputs[0]), b_batch(inputs[1]);
  const RealSizes sizes(inputs, 2);
  const double n = double(a_batch.rows());
  const std::int64_t num_sides = kind.left ? b_batch.columns() : b_batch.rows();
  const bool turned = kind.transpose == kind.left;  // op(a), or for X op(a) its transpose
  const bool reversed = kind.lower == turned;       // the triangle to be solved is the upper one
  if constexpr (std::is_floating_point_v<T>)
    if (is_small(a_batch.rows(), num_sides) && inputs.size() == 2)
      return small_triangular_solve<T>(inputs[0], inputs[1], out,
                                       {kind.left, turned, reversed, kind.unit});
  const std::int64_t item = b_batch.rows() * b_batch.columns();
  for_matrices(
      a_batch.count(), n * n * double(num_sides), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t size = sizes.at(0, i, a_batch.rows());
          T* const results = out.as<T>() + i * item;
          if (size < a_batch.rows()) std::fill_n(results, item, T(0));
          if (size == 0) continue;
          TriangularSystem<T> system{
              a_batch.at<T>(i), b_batch.at<T>(i), {results, b_batch.columns(), 1}, size, num_sides,
              kind.conjugate,   kind.unit};
          if (turned) system.l = system.l.transposed();
          if (!kind.left) {
            system.b = system.b.transposed();
            system.x = system.x.transposed();
          }
          if (reversed) {
            system.l = system.l.rows_reversed(size).transposed().rows_reversed(size);
            system.l = system.l.transposed();
            system.b = system.b.rows_reversed(size);
            system.x = system.x.rows_reversed(size);
          }
          system.solve();
        }
      });
}

Array solved(const Array& a, const Array& b, const Params& params) {
  return bind(triangular_solve_p, {a, b}, params);
}

// op(a) x = b: dx = op(a)^-1 (db - op(da) x), for the triangle of da.
Tangents solve_jvp(std::span<const Array> primals, std::span<const Tangent> tangents,
                   std::span<const Array> outputs, const Params& params) {
  if (primals.size() != 2) throw InternalError("triangular_solve: differentiated after masking");
  const Triangular kind(params);
  Tangent rhs = tangents[1];
  if (!tangents[0].is_zero()) {
    const int k = kind.unit ? 1 : 0;
    Array da = kind.lower ? lower(tangents[0].array(), -k) : upper(tangents[0].array(), k);
    if (kind.transpose) da = transposed(da);
    if (kind.conjugate && is_complex(da.dtype())) da = transposed(adjoint(da));
    const Array moved = kind.left ? matmul(da, outputs[0]) : matmul(outputs[0], da);
    rhs = add_tangents(rhs, lax::neg(moved));
  }
  return {solved(primals[0], rhs.array(), params)};
}

Tangents solve_transpose(std::span<const Tangent> cotangents,
                         std::span<const TransposeInput> inputs, const Params& params) {
  if (inputs[0].is_linear())
    throw InternalError("triangular_solve: it is not linear in the triangular matrix");
  const Params other = params.with("transpose_a", !params.flag("transpose_a"));
  return {Tangent(inputs[0].aval()), solved(inputs[0].known(), cotangents[0].array(), other)};
}

// An unbatched matrix: the examples become more columns (or rows) of one right-hand side.
std::vector<Batched> solve_batch(Dim size, std::span<const Batched> inputs, const Params& params) {
  if (inputs[0].dim || inputs.size() != 2)
    return batch_matrices(triangular_solve_p)(size, inputs, params);
  const bool left = params.flag("left_side");
  const Array front = batch_to_front(inputs[1], size);
  const int rank = front.ndim() - 1, beside = left ? rank : rank - 1;
  std::vector<int> order;  // the batch axis before the free axis
  for (int i = 1; i <= rank; ++i) {
    if (i == beside) order.push_back(0);
    order.push_back(i);
  }
  const Array moved = lax::transpose(front, order);
  Shape merged = example_aval(inputs[1]).shape;
  merged[beside - 1] = size * merged[beside - 1];
  const Array x = solved(inputs[0].array, lax::reshape(moved, merged), params);
  return {{lax::reshape(x, moved.shape()), beside - 1}};
}

std::vector<Aval> solve_aval(std::span<const Aval> inputs, const Params& params) {
  const Triangular kind(params);
  require_matrices("triangular_solve", inputs, 2);
  const Aval &a = inputs[0], &b = inputs[1];
  require_square("triangular_solve", a);
  if (a.dtype != b.dtype)
    throw DtypeError("triangular_solve: operands have dtypes " + std::string(name_of(a.dtype)) +
                         " and " + std::string(name_of(b.dtype)),
                     "convert one with astype, or use plait.scipy.linalg.solve_triangular");
  Shape wanted = a.shape;
  if (wanted.rank() == b.rank())
    wanted[b.rank() - (kind.left ? 1 : 2)] = b.shape[b.rank() - (kind.left ? 1 : 2)];
  if (!(wanted == b.shape))
    throw ShapeError("triangular_solve: matrices of shape (" + a.shape.to_string() +
                         ") and right-hand sides of shape (" + b.shape.to_string() + ") do not fit",
                     std::string("give b the batch axes of a, and as many ") +
                         (kind.left ? "rows" : "columns") + " as a has");
  return {{b.shape, b.dtype}};
}

}  // namespace

constinit const Primitive cholesky_p{"cholesky"};
static const auto cholesky_def =
    define(
        cholesky_p,
        "The lower triangular L of A = L L^H, for stacks of matrices of which the lower triangle "
        "is read; NaN where a matrix is not positive definite.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_matrices("cholesky", inputs);
          require_square("cholesky", inputs[0]);
          return std::vector<Aval>{{inputs[0].shape, inputs[0].dtype}};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          visit_element(inputs[0].dtype, [&](auto element) {
            cholesky_kernel<decltype(element)>(inputs, outputs[0]);
          });
        })
        .rule<Emit>(emit_cholesky)
        .rule<Cost>(cost::of_matrices(
            [](const cost::MatrixSizes& x, const Params&) { return x.rows * x.rows * x.rows / 3; }))
        .rule<Autocast>(Autocast::full)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          if (w.equation.inputs.size() != 1) return {};
          return w.call("linalg.cholesky", {w.operand(0), w.truth(false)});
        })
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(matrix_jvp(cholesky_p, cholesky_jvp))
        .rule<Batch>(batch_matrices(cholesky_p))
        .rule<Mask>(mask_leading(cholesky_p, {1}))
        .rule<Samples>([] {  // of positive definite matrices; the laws make larger ones
          auto sample = [](Shape shape) {
            return Sample{{{{shape, DType::float64}, Values::positive}}, {}};
          };
          return std::vector<Sample>{sample({1, 1}), sample({2, 1, 1}), sample({0, 0})};
        });
Array lax::linalg::cholesky(Operand x, bool symmetrize_input) {
  if (!symmetrize_input) return bind(cholesky_p, {x});
  const Aval aval = x.aval();
  require_matrices("cholesky", std::span(&aval, 1));
  require_square("cholesky", aval);
  return bind(cholesky_p, {symmetrized(x)});
}

constinit const Primitive triangular_solve_p{"triangular_solve"};
static const auto triangular_solve_def =
    define(triangular_solve_p,
           "X of op(a) X = b, or of X op(a) = b, for stacks of triangular matrices a, of which the "
           "other triangle is not read.")
        .operands_at_least(2)
        .rule<Abstract>(solve_aval)
        .rule<Eval>(
            [](std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
              visit_element(inputs[0].dtype, [&](auto element) {
                solve_kernel<decltype(element)>(inputs, outputs[0], Triangular(params));
              });
            })
        .rule<Emit>(emit_triangular_solve)
        .rule<Cost>(cost::arithmetic([](cost::Avals inputs, cost::Avals, const Params&) {
          const cost::MatrixSizes a(inputs[0]);
          return cost::multiply_add(inputs[0].dtype) / 2 * a.rows * elements_of(inputs[1]);
        }))
        .rule<Autocast>(Autocast::full)
        .rule<Spelling>([](const EquationWriter& w) -> spelling::Text {
          if (w.equation.inputs.size() != 2) return {};
          return w.call("linalg.triangular_solve",
                        {w.operand(0), w.operand(1), w.flag("left_side"), w.flag("lower"),
                         w.flag("transpose_a"), w.flag("conjugate_a"), w.flag("unit_diagonal")});
        })
        .rule<PictureGroup>(PictureGroup::product)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(solve_jvp)
        .rule<Transpose>(solve_transpose)
        .rule<Batch>(solve_batch)
        .rule<Mask>(mask_leading(triangular_solve_p, {1}))
        .rule<Samples>([] {
          auto sample = [](Shape a, Shape b, bool left, bool lower, bool transpose, bool unit) {
            return Sample{{{{a, DType::float64}, Values::positive}, {{b, DType::float64}}},
                          {{"left_side", left},
                           {"lower", lower},
                           {"transpose_a", transpose},
                           {"conjugate_a", false},
                           {"unit_diagonal", unit}}};
          };
          return std::vector<Sample>{sample({3, 3}, {3, 2}, true, true, false, false),
                                     sample({3, 3}, {3, 2}, true, true, true, true),
                                     sample({3, 3}, {2, 3}, false, false, true, false),
                                     sample({2, 3, 3}, {2, 3, 2}, true, false, false, false),
                                     sample({2, 2, 2}, {2, 3, 2}, false, true, false, true),
                                     sample({0, 0}, {0, 2}, true, true, false, false)};
        });
Array lax::linalg::triangular_solve(Operand a, Operand b, bool left_side, bool lower,
                                    bool transpose_a, bool conjugate_a, bool unit_diagonal) {
  return bind(triangular_solve_p, {a, b},
              {{"left_side", left_side},
               {"lower", lower},
               {"transpose_a", transpose_a},
               {"conjugate_a", conjugate_a},
               {"unit_diagonal", unit_diagonal}});
}

}  // namespace plait
