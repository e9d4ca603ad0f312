// plait.scipy.optimize: BFGS and L-BFGS. Nocedal and Wright, Numerical optimization (2006),
// algorithms 6.1, 7.4 and 3.5; where rounding hides the decrease of the function, its slope decides
// (Hager and Zhang 2005, A new conjugate gradient method with guaranteed descent).
// SPDX-License-Identifier: Apache-2.0
#include <plait/control/control.h>
#include <plait/functions/numpy_linalg.h>
#include <plait/functions/scipy_optimize.h>
#include <plait/functions/scipy_sparse.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy::optimize {
namespace {

constexpr double sufficient_decrease = 1e-4, sufficient_flatness = 0.9;

struct ValueAndSlope {
  Array value, gradient;
};
using Objective = std::function<ValueAndSlope(const Array&)>;

Array number(double value, const Array& like) { return constant(value, like); }
Array either(const Array& condition, const Array& x, const Array& y) {
  return lax::select(condition, x, y);
}
Array both_hold(const Array& x, const Array& y) { return lax::bitwise_and(x, y); }
Array holds_not(const Array& x) { return lax::bitwise_not(x); }
Array as_vector(const Array& condition, const Array& like) {
  return plait::broadcast_to(condition, like.shape());
}
Array product(const Array& x, const Array& y) { return numpy::sum(lax::mul(x, y)); }

// --- The line search -----------------------------------------------------------------------------

// lo is the best step so far, with the value, slope and gradient there. Once zooming, the step that
// is looked for lies between lo and hi; before, beyond lo.
struct Search {
  Array step, lo, f_lo, d_lo, x_lo, g_lo, hi, f_hi, d_hi, is_zooming, is_done, count;
};

// The least point of the cubic through two values and slopes, or the middle where it is not well
// inside.
Array between(const Search& s) {
  const Array width = lax::sub(s.hi, s.lo),
              middle = lax::add(s.lo, lax::mul(width, number(0.5, width)));
  const Array f_hi = either(numpy::isfinite(s.f_hi), s.f_hi, s.f_lo);
  const Array d_hi = either(numpy::isfinite(s.d_hi), s.d_hi, s.d_lo);
  const Array is_empty = lax::eq(width, number(0, width));
  const Array safe_width = either(is_empty, number(1, width), width);
  const Array rise = lax::div(lax::sub(f_hi, s.f_lo), safe_width);
  const Array d1 = lax::sub(lax::add(s.d_lo, d_hi), lax::mul(rise, number(3, rise)));
  const Array square = lax::sub(lax::mul(d1, d1), lax::mul(s.d_lo, d_hi));
  const Array is_real = lax::gt(square, number(0, square));
  const Array root =
      lax::mul(numpy::sign(safe_width), lax::sqrt(either(is_real, square, number(1, square))));
  const Array divisor = lax::add(lax::sub(d_hi, s.d_lo), lax::add(root, root));
  const Array is_regular = both_hold(is_real, lax::ne(divisor, number(0, divisor)));
  const Array share =
      lax::div(lax::sub(lax::add(d_hi, root), d1), either(is_regular, divisor, number(1, divisor)));
  // 1 - share of the way from lo to hi.
  const Array is_inside =
      both_hold(lax::ge(share, number(0.1, share)), lax::le(share, number(0.9, share)));
  const Array cubic = lax::sub(s.hi, lax::mul(width, share));
  return either(both_hold(is_regular, is_inside), cubic, middle);
}

Search tried(const Objective& objective, const Array& x, const Array& direction, const Array& f0,
             const Array& d0, const Search& now) {
  const Array place = lax::add(x, numpy::multiply(now.step, direction));
  const auto [value, gradient] = objective(place);
  const Array slope = product(gradient, direction);
  // What rounding may add to the value.
  const double rounding = size_of(f0.dtype()) == 8 ? std::numeric_limits<double>::epsilon()
                                                   : double(std::numeric_limits<float>::epsilon());
  const Array slack = lax::mul(lax::abs(f0), number(4 * rounding, f0));
  const Array line =
      lax::add(f0, lax::mul(lax::mul(now.step, d0), number(sufficient_decrease, d0)));
  const Array is_near =
      both_hold(lax::le(value, lax::add(f0, slack)),
                lax::le(slope, lax::mul(d0, number(2 * sufficient_decrease - 1, d0))));
  const Array is_low = both_hold(lax::bitwise_or(lax::le(value, line), is_near),
                                 lax::le(value, lax::add(now.f_lo, slack)));
  const Array is_flat = both_hold(
      is_low, lax::le(lax::abs(slope), lax::mul(lax::abs(d0), number(sufficient_flatness, d0))));
  const Array ahead = either(now.is_zooming, lax::sub(now.hi, now.lo), number(1, now.hi));
  const Array turns = both_hold(is_low, lax::ge(lax::mul(slope, ahead), number(0, slope)));
  // hi becomes this step where it is too high, and lo where the slope points back to it.
  const auto next_hi = [&](const Array& here, const Array& lo, const Array& hi) {
    return either(is_low, either(turns, lo, hi), here);
  };
  const Array low_vector = as_vector(is_low, x);
  Search next{now.step,
              either(is_low, now.step, now.lo),
              either(is_low, value, now.f_lo),
              either(is_low, slope, now.d_lo),
              either(low_vector, place, now.x_lo),
              either(low_vector, gradient, now.g_lo),
              next_hi(now.step, now.lo, now.hi),
              next_hi(value, now.f_lo, now.f_hi),
              next_hi(slope, now.d_lo, now.d_hi),
              lax::bitwise_or(now.is_zooming, lax::bitwise_or(turns, holds_not(is_low))),
              is_flat,
              lax::add(now.count, number(1, now.count))};
  next.step = either(next.is_zooming, between(next), lax::add(now.step, now.step));
  return next;
}

// The step that satisfies the strong Wolfe conditions, or the best one found; 0 where there is
// none.
Search searched(const Objective& objective, const Array& x, const Array& direction,
                const ValueAndSlope& at, const Array& first_step, int limit) {
  const Array slope = product(at.gradient, direction), zero = number(0, first_step);
  const Array no = Array(false);
  const Search start{first_step,
                     zero,
                     at.value,
                     slope,
                     x,
                     at.gradient,
                     zero,
                     at.value,
                     slope,
                     no,
                     holds_not(lax::lt(slope, number(0, slope))),
                     Array::literal(0, DType::int32)};
  const auto goes_on = [&](const Search& now) {
    return both_hold(holds_not(now.is_done), lax::lt(now.count, number(limit, now.count)));
  };
  return lax::while_loop(
      goes_on,
      [&](const Search& now) { return tried(objective, x, direction, at.value, slope, now); },
      start);
}

// --- What is remembered of the curvature ---------------------------------------------------------

// Whether a step and the change of the gradient show a positive curvature, and its inverse.
struct Curvature {
  Array is_positive, inverse, scale;  // 1 / (s . y), (s . y) / (y . y)
  Curvature(const Array& s, const Array& y) {
    const Array along = product(s, y), square = product(y, y);
    is_positive = both_hold(lax::gt(along, number(0, along)), lax::gt(square, number(0, square)));
    const Array safe = either(is_positive, along, number(1, along));
    inverse = lax::div(number(1, safe), safe);
    scale = lax::div(safe, either(is_positive, square, number(1, square)));
  }
};

// A method: what it remembers, the direction that follows, and what a step adds.
struct Memory {
  virtual ~Memory() = default;
  virtual Arrays fresh() const = 0;
  virtual Array direction(const Arrays& memory, const Array& gradient) const = 0;
  virtual Arrays after(const Arrays& memory, const Array& is_fresh, const Array& s,
                       const Array& y) const = 0;
};

// The inverse of the matrix of second derivatives.
struct InverseHessian : Memory {
  explicit InverseHessian(const Array& x) : x_(x) {}
  Arrays fresh() const override { return {numpy::eye(x_.shape(0), {}, 0, x_.dtype())}; }
  Array direction(const Arrays& memory, const Array& gradient) const override {
    return lax::neg(numpy::matmul(memory[0], gradient));
  }
  Arrays after(const Arrays& memory, const Array& is_fresh, const Array& s,
               const Array& y) const override {
    const Curvature curvature(s, y);
    const Array scale = either(is_fresh, curvature.scale, number(1, curvature.scale));
    const Array h = numpy::multiply(memory[0], scale), hy = numpy::matmul(h, y);
    // (I - s y^T / (s . y)) H (I - y s^T / (s . y)) + s s^T / (s . y)
    const Array rho = curvature.inverse;
    const Array factor = lax::add(rho, lax::mul(lax::mul(rho, rho), product(y, hy)));
    const Array crossed = numpy::outer(hy, s);
    const Array next =
        lax::sub(lax::add(h, numpy::multiply(factor, numpy::outer(s, s))),
                 numpy::multiply(rho, lax::add(crossed, numpy::matrix_transpose(crossed))));
    return {lax::select(plait::broadcast_to(curvature.is_positive, h.shape()), next, memory[0])};
  }

 private:
  Array x_;
};

// The last steps s, changes y of the gradient, and 1 / (s . y), which is 0 where there is none yet;
// the newest last.
struct LastPairs : Memory {
  LastPairs(const Array& x, int count) : x_(x), count_(count) {}
  Arrays fresh() const override {
    const Array pairs = lax::full({count_, x_.shape(0)}, 0, x_.dtype());
    return {pairs, pairs, lax::full({count_}, 0, x_.dtype()), number(1, x_)};
  }
  Array direction(const Arrays& memory, const Array& gradient) const override {
    const auto row = [](const Array& rows, int i) { return lax::index_in_dim(rows, i, 0, false); };
    Array q = gradient;
    Arrays alpha;
    alpha.resize(std::size_t(count_));
    for (int i = count_ - 1; i >= 0; --i) {
      alpha[std::size_t(i)] = lax::mul(row(memory[2], i), product(row(memory[0], i), q));
      q = lax::sub(q, numpy::multiply(alpha[std::size_t(i)], row(memory[1], i)));
    }
    q = numpy::multiply(memory[3], q);
    for (int i = 0; i < count_; ++i) {
      const Array beta = lax::mul(row(memory[2], i), product(row(memory[1], i), q));
      q = lax::add(q, numpy::multiply(lax::sub(alpha[std::size_t(i)], beta), row(memory[0], i)));
    }
    return lax::neg(q);
  }
  Arrays after(const Arrays& memory, const Array&, const Array& s, const Array& y) const override {
    const Curvature curvature(s, y);
    const auto pushed = [&](const Array& rows, const Array& row) {
      const Array all =
          lax::concatenate({part(rows, 0, 1, count_), numpy::expand_dims(row, {0})}, 0);
      return lax::select(plait::broadcast_to(curvature.is_positive, rows.shape()), all, rows);
    };
    return {pushed(memory[0], s), pushed(memory[1], y), pushed(memory[2], curvature.inverse),
            either(curvature.is_positive, curvature.scale, memory[3])};
  }

 private:
  Array x_;
  int count_;
};

// --- The descent ---------------------------------------------------------------------------------

constexpr int running = -1, converged = 0, out_of_steps = 1, no_descent = 3;

struct Descent {
  Array x, value, gradient;
  Arrays memory;
  Array is_fresh, status, evaluations, steps;
};

Array status_of(int status) { return Array::literal(status, DType::int32); }

// fun as a program of x and the arrays that it captures.
struct Problem {
  Jaxpr jaxpr;
  Arrays captured;

  // The value and the gradient at a place, in its dtype and strong, as loops carry them.
  ValueAndSlope at(const Array& place) const {
    const Function on_all = [this](std::span<const Array> x) {
      Arrays inputs{x[0]};
      inputs.insert(inputs.end(), captured.begin(), captured.end());
      return eval_jaxpr(jaxpr, inputs);
    };
    const auto [outputs, gradients] =
        plait::flat::value_and_grad(on_all, Arrays{place}, {true}, {.transform = "minimize"});
    return {lax::convert_element_type(outputs[0], place.dtype()),
            lax::convert_element_type(gradients[0], place.dtype())};
  }
  // Where no transform and no tape sees what fun captured, nothing is differentiated.
  bool is_plain() const {
    return !Trace::current() && std::all_of(captured.begin(), captured.end(),
                                            [](const Array& x) { return x.node()->is_plain(); });
  }
  Problem without_derivatives() const {
    Problem constant{jaxpr, {}};
    for (const Array& x : captured) constant.captured.push_back(lax::stop_gradient(x));
    return constant;
  }
};

std::unique_ptr<const Memory> memory_of(const std::string& method, const Array& x, int maxcor) {
  if (method == "BFGS") return std::make_unique<InverseHessian>(x);
  if (method == "L-BFGS") return std::make_unique<LastPairs>(x, maxcor);
  throw ValueError("minimize: method is '" + method + "'", "choose 'BFGS' or 'L-BFGS'");
}

Descent descended(const Problem& problem, const Memory& memory, const Array& x, const Array& tol,
                  const MinimizeOptions& options) {
  const Objective objective = [&problem](const Array& place) { return problem.at(place); };
  const Array limit = options.maxiter ? Array::literal(double(*options.maxiter), DType::int32)
                                      : number_of(Dim(200) * x.shape(0), DType::int32);
  const auto is_small = [&](const Array& gradient) {
    const Array norm = std::isinf(options.norm) && options.norm > 0
                           ? numpy::max(lax::abs(gradient), {}, false, 0.0)
                           : numpy::linalg::norm(gradient, options.norm);
    return lax::lt(norm, astype(tol, norm.dtype()));
  };
  const auto step = [&](const Descent& now) -> Descent {
    const Array direction = memory.direction(now.memory, now.gradient);
    const Array length = lax::sqrt(product(now.gradient, now.gradient)), one = number(1, length);
    const Array first = either(now.is_fresh, lax::div(one, lax::max(length, one)), one);
    const Search found = searched(objective, now.x, direction, {now.value, now.gradient}, first,
                                  options.line_search_maxiter);
    const Array has_moved = lax::gt(found.lo, number(0, found.lo));
    const Array steps = lax::add(now.steps, number(1, now.steps));
    const Array status =
        either(both_hold(has_moved, is_small(found.g_lo)), status_of(converged),
               either(lax::bitwise_or(has_moved, holds_not(now.is_fresh)),
                      either(lax::ge(steps, limit), status_of(out_of_steps), status_of(running)),
                      status_of(no_descent)));
    // Without a lower value, what is remembered is wrong: the next direction is the gradient.
    const Arrays after = memory.after(now.memory, now.is_fresh, lax::sub(found.x_lo, now.x),
                                      lax::sub(found.g_lo, now.gradient));
    const Arrays forgotten = memory.fresh();
    Arrays remembered;
    for (std::size_t i = 0; i < after.size(); ++i)
      remembered.push_back(
          lax::select(plait::broadcast_to(has_moved, after[i].shape()), after[i], forgotten[i]));
    const Array evaluations = lax::add(now.evaluations, found.count);
    return {found.x_lo,           found.f_lo, found.g_lo,  remembered,
            holds_not(has_moved), status,     evaluations, steps};
  };
  const ValueAndSlope at = problem.at(x);
  const Array none = Array::literal(0, DType::int32), once = Array::literal(1, DType::int32);
  const Array status =
      either(is_small(at.gradient), status_of(converged),
             either(lax::le(limit, none), status_of(out_of_steps), status_of(running)));
  const Descent start{x, at.value, at.gradient, memory.fresh(), Array(true), status, once, none};
  return lax::while_loop([](const Descent& now) { return lax::eq(now.status, status_of(running)); },
                         step, start);
}

// The minimum x as the root of the gradient, which has derivatives: dx = -H^-1 d(gradient). H is a
// matrix where it is not large, and its products with vectors elsewhere.
Array with_derivatives(const Problem& problem, const Array& x) {
  constexpr std::int64_t largest = 512;
  const bool is_small = x.shape(0).is_constant() && x.shape(0).constant() <= largest;
  const Function gradient = [problem](std::span<const Array> x) -> Arrays {
    return {problem.at(x[0]).gradient};
  };
  const auto found = [](const Function&, std::span<const Array> x) {
    return Arrays(x.begin(), x.end());
  };
  const auto solve = [is_small](const Function& hessian, std::span<const Array> y) -> Arrays {
    if (is_small) {
      const Array identity = numpy::eye(y[0].shape(0), {}, 0, y[0].dtype());
      plait::flat::VmapOptions options;
      options.in_dims = {0};
      options.out_dims = [](std::size_t count) {
        return std::vector<std::optional<int>>(count, 0);
      };
      const Array rows = plait::flat::vmap(hessian, Arrays{identity}, options)[0];
      return {numpy::linalg::solve(rows, y[0])};  // it is symmetric
    }
    const double tol = size_of(y[0].dtype()) == 8 ? 1e-11 : 1e-6;
    return sparse::linalg::flat::solve(sparse::linalg::flat::Method::cg, hessian, y, {},
                                       {.tol = tol}, {});
  };
  return plait::flat::custom_root(gradient, Arrays{x}, found, solve, "minimize")[0];
}

}  // namespace

OptimizeResults minimize(const std::function<Array(const Array&)>& fun, Operand x0,
                         const std::string& method, const std::optional<Array>& tol,
                         const MinimizeOptions& options) {
  if (x0.ndim() != 1)
    throw ShapeError("minimize: x0 of shape (" + x0.shape().to_string() + ")",
                     "give a vector; numpy.ravel and flatten_util.ravel_pytree make one");
  const Array inexact = floating_only("minimize", x0);
  const Array x = lax::stop_gradient(lax::convert_element_type(inexact, inexact.dtype()));
  const Array bound = lax::stop_gradient(tol.value_or(options.gtol));
  if (bound.ndim() != 0)
    throw ShapeError("minimize: tol of shape (" + bound.shape().to_string() + ")", "give a number");
  if (options.line_search_maxiter < 1 || options.maxcor < 1)
    throw ValueError("minimize: line_search_maxiter is " +
                         std::to_string(options.line_search_maxiter) + " and maxcor " +
                         std::to_string(options.maxcor),
                     "give at least 1");
  const auto memory = memory_of(method, x, options.maxcor);
  const std::vector<Aval> avals{x.aval()};
  const Traced traced = make_jaxpr(
      [&](std::span<const Array> inputs) { return Arrays{fun(inputs[0])}; }, avals, "minimize");
  const Problem problem{traced.jaxpr, traced.captured};
  Descent end = descended(problem.without_derivatives(), *memory, x, bound, options);
  if (!problem.is_plain()) {
    end.x = with_derivatives(problem, end.x);
    const ValueAndSlope at = problem.at(end.x);
    end.value = at.value, end.gradient = at.gradient;
  }
  const std::optional<Array> inverse =
      method == "BFGS" ? std::optional(end.memory[0]) : std::nullopt;
  return {end.x,           lax::eq(end.status, status_of(converged)),
          end.status,      end.value,
          end.gradient,    inverse,
          end.evaluations, end.evaluations,
          end.steps};
}

}  // namespace scipy::optimize
}  // namespace plait
