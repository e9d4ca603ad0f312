// An interpreter: Taylor mode, all derivatives along a curve in one pass.
//
// What flows is the list of Taylor coefficients of x(t) = x0 + x1 t + x2 t^2 + ...; a constant has
// one. Rules are the recurrences of Griewank and Walther, "Evaluating Derivatives", chapter 13.
// Prints the same as its twin, jet.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>
#include <plait/rules.h>

#include <algorithm>
#include <cstdio>

using namespace plait;
namespace jnp = plait::numpy;

using Series = std::vector<Array>;
using SeriesList = std::vector<Series>;

struct Taylor {  // the rule kind
  static constexpr auto name = "jet";
  using Rule = std::function<Series(std::span<const Series>, const Params&)>;
  static RuleTable<Taylor>& table() {
    static auto* table = new RuleTable<Taylor>;
    return *table;
  }
};

// What is linear in its inputs, or is so nearly everywhere, acts on each coefficient by itself.
bool is_linear(const Equation& equation) {
  static const Primitive* const linear[] = {
      &neg_p,    &add_p,     &sub_p,    &reshape_p, &transpose_p,   &broadcast_in_dim_p,
      &slice_p,  &pad_p,     &rev_p,    &split_p,   &concatenate_p, &dynamic_slice_p,
      &gather_p, &scatter_p, &reduce_p, &sort_p,    &cumreduce_p,   &dynamic_update_slice_p,
      &select_p, &cast_p,    &abs_p,    &max_p,     &min_p,         &reduce_window_p};
  if (equation.params.find("kind"))  // of reductions and scatter
    for (const char* kind : {"prod", "mul"})
      if (equation.params.text("kind") == kind) return false;
  return std::any_of(std::begin(linear), std::end(linear),
                     [&](const Primitive* p) { return *equation.primitive == *p; });
}

struct TaylorInterpreter : Decomposing<Taylor> {
  using Value = Series;
  Value lift(const Array& constant) { return {constant}; }

  std::vector<Value> process(const Equation& equation, std::span<const Series> inputs) {
    Arrays primals;
    std::size_t order = 1;
    for (const Series& x : inputs) primals.push_back(x[0]), order = std::max(order, x.size());
    if (order > 1 && Taylor::table().find(*equation.primitive))
      return {rule_of(equation)(inputs, equation.params)};
    const Function function = [&](std::span<const Array> arrays) -> Arrays {
      return bind(*equation.primitive, arrays, equation.params);
    };
    SeriesList outputs;
    bool varies = false;
    for (const Array& y : function(primals)) {
      outputs.push_back({y});
      varies |= order > 1 && is_differentiable(y.aval());
    }
    if (!varies) return outputs;
    if (!is_linear(equation)) rule_of(equation);  // throws: there is none
    for (std::size_t k = 1; k < order; ++k) {
      Tangents tangents;
      for (const Series& x : inputs)
        tangents.push_back(k < x.size() ? Tangent(x[k]) : Tangent(tangent_aval(x[0].aval())));
      const Differentiated pushed = flat::jvp(function, primals, tangents);
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (is_differentiable(outputs[i][0].aval()))
          outputs[i].push_back(pushed.tangents[i].instantiate());
    }
    return outputs;
  }
};

using Multiply = std::function<Array(const Array&, const Array&)>;
const Multiply times = [](const Array& x, const Array& y) -> Array { return x * y; };

// The sum over j = first .. k of x_j y_(k-j).
Array terms(const Series& x, const Series& y, std::size_t k, const Multiply& multiply = times,
            std::size_t first = 0) {
  std::optional<Array> sum;
  for (std::size_t j = first; j <= k && j < x.size(); ++j) {
    if (k - j >= y.size()) continue;
    const Array term = multiply(x[j], y[k - j]);
    sum = sum ? *sum + term : term;
  }
  return sum.value_or(0.0);
}

Series product(const Series& x, const Series& y, const Multiply& multiply = times) {
  Series z;
  for (std::size_t k = 0; k < std::max(x.size(), y.size()); ++k)
    z.push_back(terms(x, y, k, multiply));
  return z;
}

// z with z y = x: z_k = (x_k - sum of y_j z_(k-j), j = 1 .. k) / y_0.
Series quotient(const Series& x, const Series& y) {
  Series z;
  for (std::size_t k = 0; k < std::max(x.size(), y.size()); ++k)
    z.push_back(((k < x.size() ? x[k] : Array(0.0)) - terms(y, z, k, times, 1)) / y[0]);
  return z;
}

Series scaled(const Array& factor, Series x) {
  for (Array& c : x) c = factor * c;
  return x;
}

// The series y with dy/dt = slope(x, y) dx/dt, for each start: k y_k = sum of j x_j slope_(k-j).
using Slopes = std::function<SeriesList(const Series& x, const SeriesList& ys)>;
SeriesList solve(const Series& x, const Arrays& starts, const Slopes& slopes) {
  Series velocity;
  for (std::size_t j = 0; j < x.size(); ++j) velocity.push_back(double(j) * x[j]);
  SeriesList ys;
  for (const Array& start : starts) ys.push_back({start});
  for (std::size_t k = 1; k < x.size(); ++k) {
    const SeriesList at = slopes(Series(x.begin(), x.begin() + std::ptrdiff_t(k)), ys);
    for (std::size_t i = 0; i < ys.size(); ++i)
      ys[i].push_back(terms(velocity, at[i], k, times, 1) / double(k));
  }
  return ys;
}

// y = f(x) where f' is given as a series of those of x and y.
using Slope = Series (*)(const Series& x, const Series& y);
Taylor::Rule elementwise(const Primitive& f, Slope slope) {
  return [&f, slope](std::span<const Series> in, const Params& params) {
    const Array start = bind(f, {in[0][0]}, params);
    return solve(in[0], {start}, [&](const Series& x, const SeriesList& ys) {
      return SeriesList{slope(x, ys[0])};
    })[0];
  };
}

SeriesList sine_and_cosine(const Series& x) {
  return solve(x, {lax::sin(x[0]), lax::cos(x[0])}, [](const Series&, const SeriesList& ys) {
    return SeriesList{ys[1], scaled(-1.0, ys[0])};
  });
}

static const auto taylor_rules =
    rules<Taylor>()
        .on(mul_p, [](auto in, auto&) { return product(in[0], in[1]); })
        .on(div_p, [](auto in, auto&) { return quotient(in[0], in[1]); })
        .on(dot_general_p,
            [](auto in, auto& params) {
              return product(in[0], in[1], [&](const Array& x, const Array& y) -> Array {
                return bind(dot_general_p, {x, y}, params);
              });
            })
        .on(exp_p, elementwise(exp_p, [](auto&, auto& y) { return y; }))
        .on(log_p, elementwise(log_p, [](auto& x, auto&) { return quotient({1.0}, x); }))
        .on(tanh_p, elementwise(tanh_p,
                                [](auto&, auto& y) {  // tanh' = 1 - tanh^2
                                  Series slope = scaled(-1.0, product(y, y));
                                  slope[0] = 1.0 + slope[0];
                                  return slope;
                                }))
        .on(sin_p, [](auto in, auto&) { return sine_and_cosine(in[0])[0]; })
        .on(cos_p, [](auto in, auto&) { return sine_and_cosine(in[0])[1]; })
        .on(pow_p,
            [](auto in, auto&) {  // (x^p)' = p x^p / x
              const Series& p = in[1];
              if (p.size() > 1)
                throw MissingRuleError("jet: a power that varies", "write exp(y * log(x))");
              return solve(in[0], {lax::pow(in[0][0], p[0])}, [&](auto& x, auto& ys) {
                return SeriesList{scaled(p[0], quotient(ys[0], x))};
              })[0];
            })
        .on(integer_pow_p, [](auto in, auto& params) {
          Series result = {1.0};
          for (auto i = std::abs(params.integer("y")); i > 0; --i) result = product(result, in[0]);
          return params.integer("y") >= 0 ? result : quotient({1.0}, result);
        });

// f and its derivatives at a number, up to an order.
using Scalar = std::function<Array(Array)>;
Series derivatives(const Scalar& f, const Array& x, int order) {
  Series curve = {x, jnp::ones_like(x)};
  while (int(curve.size()) <= order) curve.push_back(jnp::zeros_like(x));
  Series result = interpret(TaylorInterpreter{}, make_jaxpr(f, x).jaxpr, {curve})[0];
  double factorial = 1;
  for (int k = 1; k <= order; ++k) result[k] = result[k] * (factorial *= k);
  return result;
}

Array f(const Array& x) { return jnp::tanh(jnp::sin(x) * jnp::exp(x)) / (1.0 + jnp::square(x)); }

// A network along a line: products, sums, powers and what moves elements.
Array network(const Array& t) {
  const Array w = jnp::reshape(jnp::sin(jnp::arange(12.0)), {3, 4});
  const Array x = jnp::concatenate({jnp::stack({t, 1.0 - t}), jnp::cos(jnp::reshape(t, {1}))});
  return jnp::log(1.0 + jnp::sum(jnp::power(jnp::exp(jnp::matmul(x, w)), 1.5)));
}

int main() {
  const Array x = jnp::full({}, 0.5, DType::float64);
  for (const auto& function : {Scalar(f), Scalar(network)}) {
    const Series by_jet = derivatives(function, x, 5);
    Scalar nested = function;
    for (int order = 0; order <= 5; ++order) {
      std::printf("order %d: %11.4f by jet, %11.4f by nested grad\n", order,
                  by_jet[order].item<double>(), nested(x).item<double>());
      nested = grad(nested);
    }
  }
}
