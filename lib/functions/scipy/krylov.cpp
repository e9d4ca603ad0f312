// plait.scipy.sparse.linalg: Krylov solvers, over vectors of all unknowns. Hestenes and Stiefel
// 1952, Methods of conjugate gradients for solving linear systems; van der Vorst 1992, Bi-CGSTAB;
// Saad and Schultz 1986, GMRES.
// SPDX-License-Identifier: Apache-2.0
#include <plait/control/control.h>
#include <plait/functions/scipy_sparse.h>
#include <plait/primitives/linalg.h>

#include <cmath>
#include <limits>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy::sparse::linalg {
namespace {

// The unknowns: several arrays as one vector.
class Unknowns {
 public:
  explicit Unknowns(std::span<const Array> arrays) {
    Arrays all(arrays.begin(), arrays.end());
    promote_dtypes(all, "solve");
    dtype_ = to_inexact(all[0]).dtype();
    for (const Array& array : arrays) {
      avals_.push_back(array.aval());
      size_ = size_ + array.shape().num_elements();
    }
  }
  Dim size() const { return size_; }
  DType dtype() const { return dtype_; }
  Array joined(std::span<const Array> arrays) const {
    Arrays parts;
    for (const Array& array : arrays)
      parts.push_back(lax::convert_element_type(raveled(array), dtype_));
    return parts.size() == 1 ? parts[0] : lax::concatenate(parts, 0);
  }
  Arrays split(const Array& vector) const {
    Arrays arrays;
    Dim begin = 0;
    for (const Aval& aval : avals_) {
      const Dim end = begin + aval.shape.num_elements();
      Array values = avals_.size() == 1 ? vector : part(vector, 0, begin, end);
      if (is_complex(dtype_) && !is_complex(aval.dtype)) values = lax::real(values);
      arrays.push_back(lax::reshape(lax::convert_element_type(values, aval.dtype), aval.shape));
      begin = end;
    }
    return arrays;
  }

 private:
  std::vector<Aval> avals_;
  Dim size_ = 0;
  DType dtype_;
};

using Operator = std::function<Array(const Array&)>;

// A system of equations for vectors, and when its solution is good enough.
struct System {
  Operator apply, precondition;
  Array b, x0, bound, maxiter;
  int restart;

  DType real() const { return real_dtype_of(b.dtype()); }
  Array goes_on(const Array& norm, const Array& count) const {
    return lax::bitwise_and(lax::gt(norm, bound), numpy::less(count, maxiter));
  }
};

Array norm_of(const Array& x) {
  return lax::sqrt(numpy::sum(
      is_complex(x.dtype()) ? lax::add(numpy::square(lax::real(x)), numpy::square(lax::imag(x)))
                            : numpy::square(x)));
}
Array inner(const Array& x, const Array& y) { return numpy::vdot(x, y); }
Array real_inner(const Array& x, const Array& y) { return numpy::real(inner(x, y)); }
Array one_more(const Array& count) { return lax::add(count, constant(1, count)); }
Array no_steps() { return Array::literal(0, DType::int32); }
// x / y, and 0 where y is 0.
Array safe_divide(const Array& x, const Array& y) {
  const Array is_zero = lax::eq(y, constant(0, y));
  return numpy::where(is_zero, constant(0, y), numpy::divide(x, numpy::where(is_zero, 1, y)));
}

// --- Conjugate gradients -------------------------------------------------------------------------

struct GradientStep {
  Array x, residual, direction, gamma, norm, count;  // gamma = residual . M residual
};

Array by_conjugate_gradients(const System& system) {
  const Array residual = lax::sub(system.b, system.apply(system.x0));
  const Array direction = system.precondition(residual);
  const auto goes_on = [&](const GradientStep& now) { return system.goes_on(now.norm, now.count); };
  const auto step = [&](const GradientStep& now) -> GradientStep {
    const Array image = system.apply(now.direction);
    const Array alpha = safe_divide(now.gamma, real_inner(now.direction, image));
    const Array residual = numpy::subtract(now.residual, numpy::multiply(alpha, image));
    const Array preconditioned = system.precondition(residual);
    const Array gamma = real_inner(residual, preconditioned);
    const Array beta = safe_divide(gamma, now.gamma);
    return {numpy::add(now.x, numpy::multiply(alpha, now.direction)),
            residual,
            numpy::add(preconditioned, numpy::multiply(beta, now.direction)),
            gamma,
            norm_of(residual),
            one_more(now.count)};
  };
  const GradientStep start{system.x0,         residual,  direction, real_inner(residual, direction),
                           norm_of(residual), no_steps()};
  return lax::while_loop(goes_on, step, start).x;
}

// --- Stabilised biconjugate gradients ------------------------------------------------------------

struct BiconjugateStep {
  Array x, residual, direction, image, alpha, omega, rho, norm, count;
};

Array by_biconjugate_gradients(const System& system) {
  const Array residual = lax::sub(system.b, system.apply(system.x0)), shadow = residual;
  const auto goes_on = [&](const BiconjugateStep& now) {
    return system.goes_on(now.norm, now.count);
  };
  const auto step = [&](const BiconjugateStep& now) -> BiconjugateStep {
    const Array rho = inner(shadow, now.residual);
    const Array beta =
        numpy::multiply(safe_divide(rho, now.rho), safe_divide(now.alpha, now.omega));
    const Array direction = numpy::add(
        now.residual,
        numpy::multiply(beta,
                        numpy::subtract(now.direction, numpy::multiply(now.omega, now.image))));
    const Array toward = system.precondition(direction), image = system.apply(toward);
    const Array alpha = safe_divide(rho, inner(shadow, image));
    const Array half = numpy::subtract(now.residual, numpy::multiply(alpha, image));
    const Array onward = system.precondition(half), second = system.apply(onward);
    const Array omega = safe_divide(inner(second, half), inner(second, second));
    const Array next = numpy::subtract(half, numpy::multiply(omega, second));
    const Array x = numpy::add(
        now.x, numpy::add(numpy::multiply(alpha, toward), numpy::multiply(omega, onward)));
    return {x, next, direction, image, alpha, omega, rho, norm_of(next), one_more(now.count)};
  };
  const Array zeros = lax::zeros_like(residual.aval()), one = constant(1, residual);
  const BiconjugateStep start{system.x0, residual,          zeros,     zeros, one, one,
                              one,       norm_of(residual), no_steps()};
  return lax::while_loop(goes_on, step, start).x;
}

// --- Generalised minimal residuals ---------------------------------------------------------------

// An orthonormal basis as rows, and the factors of its Hessenberg matrix: rotations times that is
// the upper triangle.
struct Basis {
  Array rows, triangle, rotations, norm, count;
};

Array is_at(const Array& vector, const Array& place) {
  return lax::eq(counting(vector.shape(0), DType::int32), place);
}
Array with_row(const Array& rows, const Array& row, const Array& place) {
  return lax::dynamic_update_index_in_dim(rows, row, place, 0);
}
Array row_at(const Array& rows, const Array& place) {
  return lax::dynamic_index_in_dim(rows, place, 0, false);
}

// One step of Arnoldi, orthogonalised twice, and the rotation that keeps the matrix triangular.
Basis one_more_row(const System& system, const Basis& now, const Array& length) {
  const Array k = now.count, next = one_more(k);
  const Array product = system.apply(system.precondition(row_at(now.rows, k)));
  const Array conjugates = numpy::conj(now.rows);
  Array rest = product;
  std::optional<Array> along;
  for (int pass = 0; pass < 2; ++pass) {
    const Array parts = numpy::matmul(conjugates, rest);
    rest = lax::sub(rest, numpy::matmul(parts, now.rows));
    along = along ? lax::add(*along, parts) : parts;
  }
  // Below rounding there is no new direction: the solution lies in the basis.
  const double rounding = system.real() == DType::float64
                              ? std::numeric_limits<double>::epsilon()
                              : double(std::numeric_limits<float>::epsilon());
  const Array left = norm_of(rest);
  const Array height =
      numpy::where(numpy::less(left, numpy::multiply(norm_of(product), 4 * rounding)), 0.0, left);
  const Array row = safe_divide(rest, astype(height, rest.dtype()));
  const Array column = numpy::where(is_at(*along, next), height, *along);
  const Array turned = numpy::matmul(now.rotations, column);
  // [conj(a), b; -b, a] / r turns (a, b) into (r, 0).
  const Array above = row_at(turned, k);
  const Array radius = norm_of(numpy::stack({above, astype(height, above.dtype())}));
  const Array is_singular = lax::eq(radius, constant(0, radius));
  const Array r = numpy::where(is_singular, 1.0, radius);
  const Array a = numpy::where(is_singular, 1.0, numpy::divide(above, r)),
              b = numpy::divide(height, r);
  const Array upper = row_at(now.rotations, k), lower = row_at(now.rotations, next);
  Array rotations =
      with_row(now.rotations,
               numpy::add(numpy::multiply(numpy::conj(a), upper), numpy::multiply(b, lower)), k);
  const Array below = numpy::subtract(numpy::multiply(a, lower), numpy::multiply(b, upper));
  rotations = with_row(rotations, below, next);
  const Array places = counting(turned.shape(0), DType::int32);
  // A column of nothing counts for nothing.
  const Array diagonal = numpy::where(is_singular, INFINITY, radius);
  const Array triangular = numpy::where(
      is_at(turned, k), diagonal, numpy::where(lax::lt(places, k), turned, constant(0, turned)));
  const Array top = part(triangular, 0, 0, triangular.shape(0) - 1);
  return {with_row(now.rows, row, next), lax::dynamic_update_index_in_dim(now.triangle, top, k, 1),
          rotations, lax::mul(length, norm_of(lax::index_in_dim(below, 0, 0, true))), next};
}

struct Restart {
  Array x, residual, norm, count;
};

Array by_minimal_residuals(const System& system) {
  const Dim n = system.b.shape(0);
  const Dim size = n.is_constant() ? minimum(n, Dim(system.restart)) : Dim(system.restart);
  const Array steps = number_of(size, DType::int32);
  const auto goes_on = [&](const Restart& now) { return system.goes_on(now.norm, now.count); };
  const auto cycle = [&](const Restart& now) -> Restart {
    const DType dtype = system.b.dtype();
    const Array first = safe_divide(now.residual, astype(now.norm, dtype));
    const Array rows = with_row(lax::full({size + 1, n}, 0, dtype), first, no_steps());
    const Basis start{rows, numpy::eye(size, {}, 0, dtype), numpy::eye(size + 1, {}, 0, dtype),
                      now.norm, no_steps()};
    const Basis basis = lax::while_loop(
        [&](const Basis& b) {
          return lax::bitwise_and(lax::gt(b.norm, system.bound), lax::lt(b.count, steps));
        },
        [&](const Basis& b) -> Basis { return one_more_row(system, b, now.norm); }, start);
    const Array target = numpy::multiply(
        now.norm, lax::index_in_dim(part(basis.rotations, 0, 0, size), 0, 1, false));
    const Array used = numpy::where(lax::lt(counting(size, DType::int32), basis.count), target,
                                    constant(0, target));
    const Array weights = lax::reshape(
        lax::linalg::triangular_solve(basis.triangle, lax::reshape(used, {size, 1}), true), {size});
    const Array move = numpy::matmul(weights, part(basis.rows, 0, 0, size));
    const Array x = lax::add(now.x, system.precondition(move));
    const Array residual = lax::sub(system.b, system.apply(x));
    return {x, residual, norm_of(residual), one_more(now.count)};
  };
  const Array residual = lax::sub(system.b, system.apply(system.x0));
  return lax::while_loop(goes_on, cycle,
                         Restart{system.x0, residual, norm_of(residual), no_steps()})
      .x;
}

}  // namespace

Arrays flat::solve(Method method, const Function& A, std::span<const Array> b,
                   std::span<const Array> x0, const SolverOptions& options, const Function& M) {
  if (b.empty()) return {};
  if (options.restart < 1)
    throw ValueError("gmres: restart is " + std::to_string(options.restart), "give at least 1");
  Arrays rhs;
  bool is_real = true;
  for (const Array& array : b) {
    rhs.push_back(to_inexact(array));
    is_real &= !is_complex(rhs.back().dtype());
  }
  if (!x0.empty() && x0.size() != b.size())
    throw TreeError("x0 and b have different structures", "give a tree like b, or None");
  for (std::size_t i = 0; i < x0.size(); ++i)
    if (!(x0[i].shape() == b[i].shape()))
      throw ShapeError("x0 of shape (" + x0[i].shape().to_string() + ") for b of shape (" +
                           b[i].shape().to_string() + ")",
                       "give arrays of the same shapes");
  const Unknowns unknowns(rhs);
  if (unknowns.size() == Dim(0)) return rhs;
  const auto solver = [&](bool uses_start) -> plait::flat::Solver {
    return [&, uses_start](const Function& matvec, std::span<const Array> y) -> Arrays {
      const auto on_vectors = [&unknowns](const Function& function) -> Operator {
        return [&unknowns, &function](const Array& vector) {
          return unknowns.joined(function(unknowns.split(vector)));
        };
      };
      System system;
      system.apply = on_vectors(matvec);
      system.precondition = M ? on_vectors(M) : [](const Array& x) { return x; };
      system.b = unknowns.joined(y);
      system.x0 = uses_start && !x0.empty()
                      ? unknowns.joined(x0)
                      : lax::zeros_like(Aval{system.b.shape(), unknowns.dtype()});
      system.bound =
          numpy::maximum(numpy::multiply(astype(options.tol, system.real()), norm_of(system.b)),
                         astype(options.atol, system.real()));
      system.maxiter =
          options.maxiter.value_or(number_of(Dim(10) * system.b.shape(0), DType::int32));
      system.restart = options.restart;
      const Array x = method == Method::cg         ? by_conjugate_gradients(system)
                      : method == Method::bicgstab ? by_biconjugate_gradients(system)
                                                   : by_minimal_residuals(system);
      return unknowns.split(x);
    };
  };
  // A Hermitian system is its own transpose where it is real.
  return plait::flat::custom_linear_solve(A, rhs, solver(true), solver(false),
                                          method == Method::cg && is_real);
}

}  // namespace scipy::sparse::linalg
}  // namespace plait
