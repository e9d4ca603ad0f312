// plait.optim: lion, rmsprop, adagrad, lamb, adafactor. See optim.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "functions/optim/state.h"

namespace plait {
using namespace functions;             // NOLINT
using namespace functions::optimiser;  // NOLINT

namespace {

// The root of the mean of the squares.
Array rms_of(const Array& x) { return lax::sqrt(numpy::real(numpy::mean(squared(x)))); }

Array like(const Array& number, const Array& x) { return astype(number, x.dtype()); }

// The two largest axes of an array that adafactor factors, the larger one last; none where the
// second is small.
std::optional<std::pair<int, int>> factored_axes(const Shape& shape, std::int64_t least) {
  if (shape.rank() < 2 || !shape.is_constant()) return std::nullopt;
  std::vector<int> order(std::size_t(shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return shape[a].constant() < shape[b].constant(); });
  const int second = order[order.size() - 2], largest = order.back();
  if (shape[second].constant() < least) return std::nullopt;
  return std::pair(second, largest);
}

Shape without(Shape shape, int axis) {
  shape.erase(axis);
  return shape;
}

}  // namespace

// --- Lion, RMSProp, Adagrad, LAMB ----------------------------------------------------------------

ArrayTree optim::lion_init(const ArrayTree& params) { return momentum_init(params); }

Pair optim::lion(const ArrayTree& grads, const ArrayTree& state, const ArrayTree& params,
                 const LionOptions& options) {
  require_structure("lion", params, grads, "the parameters have");
  const Counted parts = counted("lion", state, grads, 1);
  const ArrayTree mixed = decayed(parts.trees[0], grads, options.b1);
  ArrayTree direction =
      map_leaves(mixed, [&](std::size_t i) { return numpy::sign(mixed.leaves[i]); });
  direction = add_decayed_weights(direction, params, options.weight_decay, options.mask);
  return {scaled_down(direction, options.learning_rate.at(parts.count, "lion")),
          parts.next({decayed(parts.trees[0], grads, options.b2)})};
}

ArrayTree optim::rmsprop_init(const ArrayTree& params) { return momentum_init(params); }

Pair optim::rmsprop(const ArrayTree& grads, const ArrayTree& state, const RmspropOptions& options) {
  const Counted parts = counted("rmsprop", state, grads, 1);
  const ArrayTree nu = decayed_square(parts.trees[0], grads, options.decay);
  const ArrayTree direction = map_leaves(nu, [&](std::size_t i) {
    const Array& v = nu.leaves[i];
    const Array root = lax::sqrt(lax::add(v, in_dtype(options.eps, v)));
    return lax::div(astype(grads.leaves[i], v.dtype()), root);
  });
  return {scaled_down(direction, options.learning_rate.at(parts.count, "rmsprop")),
          parts.next({nu})};
}

ArrayTree optim::adagrad_init(const ArrayTree& params, const Array& initial_accumulator_value) {
  const ArrayTree sums = map_leaves(params, [&](std::size_t i) {
    const Array& p = params.leaves[i];
    return numpy::full(p.shape(), in_dtype(initial_accumulator_value, p), p.dtype());
  });
  return tuple_of({first_count(), sums});
}

Pair optim::adagrad(const ArrayTree& grads, const ArrayTree& state, const AdagradOptions& options) {
  const Counted parts = counted("adagrad", state, grads, 1);
  const ArrayTree& before = parts.trees[0];
  const ArrayTree sums = map_leaves(before, [&](std::size_t i) {
    const Array& sum = before.leaves[i];
    return lax::add(sum, squared(astype(grads.leaves[i], sum.dtype())));
  });
  const ArrayTree direction = map_leaves(sums, [&](std::size_t i) {
    const Array& sum = sums.leaves[i];
    const Array root = lax::sqrt(lax::add(sum, in_dtype(options.eps, sum)));
    // A sum of 0 has gradients of 0.
    const Array is_zero = lax::eq(sum, constant(0, sum));
    const Array safe = numpy::where(is_zero, constant(1, sum), root);
    return lax::div(astype(grads.leaves[i], sum.dtype()), safe);
  });
  return {scaled_down(direction, options.learning_rate.at(parts.count, "adagrad")),
          parts.next({sums})};
}

ArrayTree optim::lamb_init(const ArrayTree& params) { return adam_init(params); }

Pair optim::lamb(const ArrayTree& grads, const ArrayTree& state, const ArrayTree& params,
                 const LambOptions& options) {
  require_structure("lamb", params, grads, "the parameters have");
  const Counted parts = counted("lamb", state, grads, 2);
  const ArrayTree mu = decayed(parts.trees[0], grads, options.b1);
  const ArrayTree nu = decayed_square(parts.trees[1], grads, options.b2);
  const ArrayTree adam = adam_direction(parts, mu, nu, {0.0, options.b1, options.b2, options.eps});
  const ArrayTree updates = add_decayed_weights(adam, params, options.weight_decay, options.mask);
  const ArrayTree direction = map_leaves(updates, [&](std::size_t i) {
    const Array& u = updates.leaves[i];
    const Array length = global_norm({TreeDef(), {params.leaves[i]}}),
                step = global_norm({TreeDef(), {u}});
    const Array zero = constant(0, step);
    const Array one = lax::bitwise_or(lax::eq(like(length, step), zero), lax::eq(step, zero));
    const Array ratio = numpy::where(one, constant(1, step), lax::div(like(length, step), step));
    return lax::mul(u, like(ratio, u));
  });
  return {scaled_down(direction, options.learning_rate.at(parts.count, "lamb")),
          parts.next({mu, nu})};
}

// --- Adafactor -----------------------------------------------------------------------------------

ArrayTree optim::adafactor_init(const ArrayTree& params, std::int64_t min_dim_size_to_factor) {
  auto zeros = [&](const auto& shape_of) {
    return map_leaves(params, [&](std::size_t i) {
      const Shape& shape = params.leaves[i].shape();
      return numpy::zeros(shape_of(shape, factored_axes(shape, min_dim_size_to_factor)),
                          params.leaves[i].dtype());
    });
  };
  using Factored = std::optional<std::pair<int, int>>;
  return tuple_of(
      {first_count(), zeros([](const Shape& shape, const Factored& axes) {
         return axes ? without(shape, axes->second) : Shape{1};
       }),
       zeros([](const Shape& shape, const Factored& axes) {
         return axes ? without(shape, axes->first) : Shape{1};
       }),
       zeros([](const Shape& shape, const Factored& axes) { return axes ? Shape{1} : shape; })});
}

Pair optim::adafactor(const ArrayTree& grads, const ArrayTree& state, const ArrayTree& params,
                      const AdafactorOptions& options) {
  require_structure("adafactor", params, grads, "the parameters have");
  const Counted parts = counted("adafactor", state, grads, 3);
  const ArrayTree &rows = parts.trees[0], &columns = parts.trees[1], &whole = parts.trees[2];
  ArrayTree rows_after = rows, columns_after = columns, whole_after = whole;
  const ArrayTree scaled = map_leaves(grads, [&](std::size_t i) -> Array {
    const Array g = astype(grads.leaves[i], whole.leaves[i].dtype());
    // 1 - (count + 1)^-decay_rate
    const Array t = lax::add(astype(parts.count, g.dtype()), constant(1, g));
    const Array power = lax::pow(t, lax::neg(in_dtype(options.decay_rate, g)));
    const Array decay = lax::sub(constant(1, g), power);
    const Array square = lax::add(squared(g), in_dtype(options.eps, g));
    if (whole.leaves[i].shape() == g.shape()) {
      const Array v = decayed(whole.leaves[i], square, decay);
      whole_after.leaves[i] = v;
      return lax::mul(g, lax::rsqrt(v));
    }
    const auto axes = factored_axes(g.shape(), 1);
    if (!axes || !(rows.leaves[i].shape() == without(g.shape(), axes->second)))
      throw ShapeError("adafactor: the state has no moments for a gradient of shape (" +
                           g.shape().to_string() + ")",
                       "make the state with adafactor_init(params) of these parameters");
    const int second = axes->first, largest = axes->second;
    const Array row = decayed(rows.leaves[i], numpy::mean(square, largest), decay);
    const Array column = decayed(columns.leaves[i], numpy::mean(square, second), decay);
    rows_after.leaves[i] = row;
    columns_after.leaves[i] = column;
    const int reduced = second > largest ? second - 1 : second;
    const Array mean = numpy::mean(row, reduced, {}, true);
    const Array row_factor = lax::rsqrt(numpy::divide(row, mean));
    const Array along_rows = numpy::multiply(g, numpy::expand_dims(row_factor, {largest}));
    return numpy::multiply(along_rows, numpy::expand_dims(lax::rsqrt(column), {second}));
  });
  const Array learning_rate = options.learning_rate.at(parts.count, "adafactor");
  ArrayTree direction = map_leaves(scaled, [&](std::size_t i) -> Array {
    Array u = scaled.leaves[i];
    const Array one = constant(1, rms_of(u));
    const Array over = lax::div(rms_of(u), in_dtype(options.clipping_threshold, one));
    u = lax::div(u, like(lax::max(one, over), u));
    u = lax::mul(u, in_dtype(learning_rate, u));
    if (!options.multiply_by_parameter_scale) return u;
    const Array size = rms_of(astype(params.leaves[i], u.dtype()));
    return lax::mul(u, like(lax::max(size, constant(1e-3, size)), u));
  });
  direction = add_decayed_weights(direction, params, options.weight_decay, options.mask);
  return {scaled_down(direction, 1.0), parts.next({rows_after, columns_after, whole_after})};
}

namespace {

using MaybeTree = std::optional<ArrayTree>;

Pair lion_of(const ArrayTree& grads, const ArrayTree& state, const ArrayTree& params,
             const optim::Rate& learning_rate, Array b1, Array b2, Array weight_decay,
             const MaybeTree& mask) {
  return optim::lion(grads, state, params, {learning_rate, b1, b2, weight_decay, mask});
}
Pair rmsprop_of(const ArrayTree& grads, const ArrayTree& state, const MaybeTree&,
                const optim::Rate& learning_rate, Array decay, Array eps) {
  return optim::rmsprop(grads, state, optim::RmspropOptions{learning_rate, decay, eps});
}
Pair adagrad_of(const ArrayTree& grads, const ArrayTree& state, const MaybeTree&,
                const optim::Rate& learning_rate, Array eps) {
  return optim::adagrad(grads, state, optim::AdagradOptions{learning_rate, eps});
}
Pair lamb_of(const ArrayTree& grads, const ArrayTree& state, const ArrayTree& params,
             const optim::Rate& learning_rate, Array b1, Array b2, Array eps, Array weight_decay,
             const MaybeTree& mask) {
  return optim::lamb(grads, state, params, {learning_rate, b1, b2, eps, weight_decay, mask});
}
Pair adafactor_of(const ArrayTree& grads, const ArrayTree& state, const ArrayTree& params,
                  const optim::Rate& learning_rate, Array decay_rate,
                  bool multiply_by_parameter_scale, Array clipping_threshold, Array weight_decay,
                  Array eps, const MaybeTree& mask) {
  return optim::adafactor(grads, state, params,
                          {learning_rate, decay_rate, multiply_by_parameter_scale,
                           clipping_threshold, weight_decay, eps, mask});
}

using InitOf = ArrayTree (*)(const ArrayTree&);

[[maybe_unused]] const FunctionInfo* const adaptive_functions[] = {
    function("optim", "lion_init(params)", "The state of Lion: (count, mu).",
             static_cast<InitOf>(&optim::lion_init)),
    function("optim",
             "lion(grads, state, params, learning_rate=1e-4, b1=0.9, b2=0.99, weight_decay=1e-3, "
             "mask=None)",
             "(updates, state) of Lion: the sign of b1 mu + (1 - b1) g, with decoupled weight "
             "decay where mask, a tree of bools, is true. Chen et al., 2023.",
             &lion_of),
    function("optim", "rmsprop_init(params)", "The state of RMSProp: (count, nu).",
             static_cast<InitOf>(&optim::rmsprop_init)),
    function("optim", "rmsprop(grads, state, params=None, learning_rate=1e-3, decay=0.9, eps=1e-8)",
             "(updates, state) of RMSProp: g / sqrt(nu + eps), where nu becomes decay nu + (1 - "
             "decay) g^2. params is not used. Tieleman and Hinton, 2012.",
             &rmsprop_of),
    function("optim", "adagrad_init(params, initial_accumulator_value=0.1)",
             "The state of Adagrad: (count, the sum of squares so far).",
             static_cast<ArrayTree (*)(const ArrayTree&, const Array&)>(&optim::adagrad_init)),
    function("optim", "adagrad(grads, state, params=None, learning_rate=1e-2, eps=1e-7)",
             "(updates, state) of Adagrad: g / sqrt(sum of squares + eps). params is not used. "
             "Duchi et al., 2011.",
             &adagrad_of),
    function("optim", "lamb_init(params)", "The state of LAMB: that of Adam.",
             static_cast<InitOf>(&optim::lamb_init)),
    function("optim",
             "lamb(grads, state, params, learning_rate=1e-3, b1=0.9, b2=0.999, eps=1e-6, "
             "weight_decay=0.0, mask=None)",
             "(updates, state) of LAMB: AdamW's direction, in each leaf of the length of the "
             "parameters. mask, a tree of bools, says what decays. You et al., 2020.",
             &lamb_of),
    function("optim", "adafactor_init(params, min_dim_size_to_factor=128)",
             "The state of Adafactor: (count, rows, columns, whole). Moments are factored along "
             "the two largest axes where both have this size.",
             static_cast<ArrayTree (*)(const ArrayTree&, std::int64_t)>(&optim::adafactor_init)),
    function("optim",
             "adafactor(grads, state, params, learning_rate=1e-3, decay_rate=0.8, "
             "multiply_by_parameter_scale=True, clipping_threshold=1.0, weight_decay=0.0, "
             "eps=1e-30, mask=None)",
             "(updates, state) of Adafactor: g over the root of second moments that are a product "
             "of rows and columns, clipped at a root mean square of clipping_threshold and, with "
             "multiply_by_parameter_scale, in proportion to that of the parameters. mask says what "
             "decays. Shazeer and Stern, 2018.",
             &adafactor_of),
};

}  // namespace
}  // namespace plait
