// An interpreter: value, Jacobian and Laplacian of a function in one pass.
//
// What flows is (x, J, L): a value, its derivatives by each of the n inputs, stacked, and the sum
// of its second derivatives. A constant has none. The Laplacian of y = f(x) is f'(x) L + the sum
// over i of f''(x)(J_i, J_i), so what is linear needs f' alone, what is bilinear one product more,
// and a function of each element the sum of J_i^2.
// Li et al., "Forward Laplacian", arXiv:2307.08214. Prints the same as its twin,
// forward_laplacian.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>
#include <plait/rules.h>

#include <algorithm>
#include <cstdio>

using namespace plait;
namespace jnp = plait::numpy;
using Unary = std::function<Array(Array)>;

struct Second {  // the rule kind is also the value that flows
  Array value;
  std::optional<Array> jacobian, laplacian;  // (n, shape of the value), shape of the value
  static constexpr auto name = "laplace";
  using Rule = std::function<Second(std::span<const Second>, const Equation&)>;
  static RuleTable<Second>& table() {
    static auto* table = new RuleTable<Second>;
    return *table;
  }
};

bool is_one_of(const Equation& equation, std::span<const Primitive* const> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const Primitive* p) { return *equation.primitive == *p; });
}

bool is_linear(const Equation& equation) {
  static const Primitive* const linear[] = {
      &neg_p,    &add_p,     &sub_p,    &reshape_p, &transpose_p,     &broadcast_in_dim_p,
      &slice_p,  &pad_p,     &rev_p,    &split_p,   &concatenate_p,   &dynamic_slice_p,
      &gather_p, &scatter_p, &reduce_p, &sort_p,    &reduce_window_p, &dynamic_update_slice_p,
      &select_p, &cast_p,    &abs_p,    &max_p,     &min_p,           &cumreduce_p};
  if (equation.params.find("kind"))  // of reductions and scatter
    for (const char* kind : {"prod", "mul"})
      if (equation.params.text("kind") == kind) return false;
  return is_one_of(equation, linear);
}

struct LaplaceInterpreter : Decomposing<Second> {
  using Value = Second;
  Value lift(const Array& constant) { return {constant, {}, {}}; }

  std::vector<Value> process(const Equation& equation, std::span<const Second> inputs) {
    const bool constant = std::none_of(inputs.begin(), inputs.end(),
                                       [](const Second& x) { return x.jacobian.has_value(); });
    if (!constant && Second::table().find(*equation.primitive))
      return {rule_of(equation)(inputs, equation)};
    Arrays values, jacobians, laplacians;
    for (const Second& x : inputs) values.push_back(x.value);
    std::vector<Second> outputs;
    bool moves = false;  // comparisons and such do not
    for (const Array& y : Arrays(bind(*equation.primitive, values, equation.params))) {
      outputs.push_back({y, {}, {}});
      moves |= !constant && is_differentiable(y.aval());
    }
    if (!moves) return outputs;
    if (!is_linear(equation)) rule_of(equation);  // throws: there is none
    // f' of the Laplacians, and of the derivatives by each input; constants have neither.
    std::vector<std::size_t> moving;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].jacobian) moving.push_back(i);
    const Function push = [&](std::span<const Array> directions) {
      Tangents tangents;
      for (const Array& value : values) tangents.push_back(Tangent(tangent_aval(value.aval())));
      for (std::size_t i = 0; i < moving.size(); ++i) tangents[moving[i]] = directions[i];
      const Function f = [&](std::span<const Array> arrays) -> Arrays {
        return bind(*equation.primitive, arrays, equation.params);
      };
      Arrays pushed;
      for (const Tangent& tangent : flat::jvp(f, values, tangents).tangents)
        pushed.push_back(tangent.instantiate());
      return pushed;
    };
    for (std::size_t i : moving) {
      jacobians.push_back(*inputs[i].jacobian);
      laplacians.push_back(*inputs[i].laplacian);
    }
    flat::VmapOptions each;
    each.in_dims.assign(moving.size(), 0);
    each.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, 0); };
    jacobians = flat::vmap(push, jacobians, each);
    laplacians = push(laplacians);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      outputs[i] = {outputs[i].value, jacobians[i], laplacians[i]};
    return outputs;
  }
};

// y = f(x) for each element: L y = f' L x + f'' times the sum of J_i^2.
Second of_elements(std::span<const Second> in, const Equation& equation) {
  const Second& x = in[0];
  const Unary f = [&](Array x) -> Array { return bind(*equation.primitive, {x}, equation.params); };
  const auto ones = std::tuple<Array>(jnp::ones_like(x.value));
  const Unary slope = [&](Array x) { return jvp(f)({x}, ones).second; };
  const auto [first, second] = jvp(slope)({x.value}, ones);
  const Array squares = jnp::sum(jnp::square(*x.jacobian), 0);
  return {f(x.value), first * *x.jacobian, first * *x.laplacian + second * squares};
}

// y = f(a, b), linear in each: L y = f(L a, b) + f(a, L b) + 2 times the sum of f(J_i a, J_i b).
Second of_products(std::span<const Second> in, const Equation& equation) {
  const Second &x = in[0], &y = in[1];
  using Binary = std::function<Array(Array, Array)>;
  const Binary f = [&](Array x, Array y) -> Array {
    return bind(*equation.primitive, {x, y}, equation.params);
  };
  Second result{f(x.value, y.value), {}, {}};
  auto add = [](std::optional<Array>& sum, const Array& term) { sum = sum ? *sum + term : term; };
  if (x.jacobian) {
    add(result.jacobian, vmap(f, {0, std::nullopt})(*x.jacobian, y.value));
    add(result.laplacian, f(*x.laplacian, y.value));
  }
  if (y.jacobian) {
    add(result.jacobian, vmap(f, {std::nullopt, 0})(x.value, *y.jacobian));
    add(result.laplacian, f(x.value, *y.laplacian));
  }
  if (x.jacobian && y.jacobian)
    add(result.laplacian, 2.0 * jnp::sum(vmap(f)(*x.jacobian, *y.jacobian), 0));
  return result;
}

Second of_quotients(std::span<const Second> in, const Equation&) {
  const auto quotient = [](const Array& x, const Array& y) -> Array {
    return x * lax::integer_pow(y, -1);
  };
  const Jaxpr jaxpr = make_jaxpr(quotient, in[0].value, in[1].value).jaxpr;
  return interpret(LaplaceInterpreter{}, jaxpr, {in[0], in[1]})[0];
}

static const auto laplace_rules = [] {
  Rules<Second> rules;
  for (const Primitive* p : {&exp_p, &expm1_p, &log_p, &log1p_p, &sqrt_p, &sin_p, &cos_p, &tanh_p,
                             &erf_p, &lgamma_p, &integer_pow_p})
    rules.on(*p, of_elements);
  for (const Primitive* p : {&mul_p, &dot_general_p, &conv_p}) rules.on(*p, of_products);
  return rules.on(div_p, of_quotients);
}();

// f(x), its derivatives (n, shape of f(x)) and its Laplacian.
Second forward_laplacian(const Unary& f, const Array& x) {
  const int n = int(x.aval().shape.num_elements().constant());
  Shape stacked = x.shape();
  stacked.insert(0, n);
  const Array directions = jnp::reshape(jnp::eye(n), stacked);
  const Second input{x, directions, jnp::zeros_like(x)};
  return interpret(LaplaceInterpreter{}, make_jaxpr(f, x).jaxpr, {input})[0];
}

// The logarithm of a wave function of three electrons.
Array log_psi(const Array& x) {
  const Array between = jnp::reshape(x, {3, 1, 3}) - jnp::reshape(x, {1, 3, 3});
  const Array distances = jnp::sqrt(jnp::sum(jnp::square(between), 2) + jnp::eye(3));
  return -jnp::sum(jnp::square(x)) / 2.0 + jnp::sum(jnp::tanh(distances)) / 4.0;
}

// The energy of exp(f) in a harmonic trap: -(L f + |f'|^2) / 2 + |x|^2 / 2.
Array local_energy(const Array& x) {
  const Second y = forward_laplacian(log_psi, x);
  const Array kinetic = *y.laplacian + jnp::sum(jnp::square(*y.jacobian));
  return -kinetic / 2.0 + jnp::sum(jnp::square(x)) / 2.0;
}

int main() {
  const Array x = jnp::reshape(jnp::sin(jnp::arange(9.0)), {3, 3});
  const Second y = forward_laplacian(log_psi, x);
  std::printf("value %.5f, |slope|^2 %.5f\n", y.value.item<double>(),
              jnp::sum(jnp::square(*y.jacobian)).item<double>());
  const Array hessian = jnp::reshape(plait::hessian(Unary(log_psi))(x), {9, 9});
  std::printf("laplacian %.5f, trace of the hessian %.5f\n", y.laplacian->item<double>(),
              jnp::trace(hessian).item<double>());
  const Array walkers = jnp::reshape(jnp::sin(jnp::arange(36.0)), {4, 3, 3});
  const Array energies = jit(vmap(Unary(local_energy)))(walkers);
  std::printf("local energies");
  for (int i = 0; i < 4; ++i) std::printf(" %.4f", jnp::take(energies, i).item<double>());
  const Array force = grad(Unary(local_energy))(x);
  std::printf("\nand their gradient: %.4f\n",
              jnp::sqrt(jnp::sum(jnp::square(force))).item<double>());
}
