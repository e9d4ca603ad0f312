// plait.optim: gradient descent, Adam, and functions of gradients; the catalogue of all optimisers.
// See optim.h.
// SPDX-License-Identifier: Apache-2.0
#include "functions/known_numbers.h"
#include "functions/optim/state.h"

namespace plait {
using namespace functions;             // NOLINT
using namespace functions::optimiser;  // NOLINT

namespace {

// 1 - b^count, once for each dtype.
class BiasCorrection {
 public:
  BiasCorrection(Array decay, Array count) : decay_(std::move(decay)), count_(std::move(count)) {}
  const Array& of(const Array& leaf) {
    Array& factor = factors_[int(leaf.dtype())];
    if (!factor.is_valid()) {
      // 16-bit floats cannot represent 0.999.
      const Array wide = constant(
          0, lax::full({}, 0,
                       size_of(leaf.dtype()) == 2 ? DType::float32 : real_dtype_of(leaf.dtype())));
      const Array power = lax::pow(in_dtype(decay_, wide), astype(count_, wide.dtype()));
      factor = lax::sub(Array::literal(1, wide.dtype()), power);
    }
    return factor;
  }

 private:
  Array decay_, count_, factors_[num_dtypes];
};

}  // namespace

void optimiser::require_structure(std::string_view function, const ArrayTree& tree,
                                  const ArrayTree& like, const char* what) {
  if (tree.structure == like.structure) return;
  throw TreeError(std::string(function) + ": the gradients have the structure " +
                      like.structure.to_string() + ", and " + what + " " +
                      tree.structure.to_string(),
                  "give trees of one structure; init makes the state from the parameters");
}

Array optimiser::in_dtype(const Array& number, const Array& leaf) {
  if (const std::optional<Literal> literal = number.as_literal())
    return Array::literal(cast(*literal, leaf.dtype(), false));
  return astype(number, leaf.dtype());
}

ArrayTree optimiser::zeros_like(const ArrayTree& params) {
  return map_leaves(params, [&](std::size_t i) {
    return numpy::zeros(params.leaves[i].shape(), params.leaves[i].dtype());
  });
}

Array optimiser::squared(const Array& x) {
  return is_complex(x.dtype()) ? lax::mul(x, numpy::conj(x)) : lax::mul(x, x);
}

Array optimiser::decayed(const Array& a, const Array& b, const Array& decay) {
  const Array d = in_dtype(decay, a);
  return lax::add(lax::mul(d, a), lax::mul(lax::sub(Array::literal(1, a.dtype()), d), b));
}

ArrayTree optimiser::decayed(const ArrayTree& moment, const ArrayTree& grads, const Array& decay) {
  return map_leaves(moment, [&](std::size_t i) {
    const Array& m = moment.leaves[i];
    return decayed(m, astype(grads.leaves[i], m.dtype()), decay);
  });
}

ArrayTree optimiser::decayed_square(const ArrayTree& moment, const ArrayTree& grads,
                                    const Array& decay) {
  return map_leaves(moment, [&](std::size_t i) {
    const Array& m = moment.leaves[i];
    return decayed(m, squared(astype(grads.leaves[i], m.dtype())), decay);
  });
}

ArrayTree optimiser::tuple_of(std::initializer_list<ArrayTree> parts) {
  std::vector<TreeDef> children;
  Arrays leaves;
  for (const ArrayTree& part : parts) {
    children.push_back(part.structure);
    leaves.insert(leaves.end(), part.leaves.begin(), part.leaves.end());
  }
  return {TreeDef::tuple(std::move(children)), std::move(leaves)};
}

ArrayTree optimiser::first_count() { return {TreeDef(), {lax::full({}, 0, DType::int32)}}; }

Counted optimiser::counted(std::string_view function, const ArrayTree& state,
                           const ArrayTree& grads, std::size_t num_trees) {
  const std::size_t n = grads.leaves.size();
  const bool fits = state.structure.kind() == TreeDef::Kind::tuple &&
                    state.structure.children().size() == num_trees + 1 &&
                    state.leaves.size() == num_trees * n + 1;
  if (!fits)
    throw TreeError(
        std::string(function) + ": the state has the structure " + state.structure.to_string(),
        "make the state with " + std::string(function) + "_init(params)");
  Counted parts{state.leaves[0], {}};
  for (std::size_t k = 0; k < num_trees; ++k) {
    const auto begin = state.leaves.begin() + std::ptrdiff_t(1 + k * n);
    parts.trees.push_back(
        {state.structure.children()[k + 1], Arrays(begin, begin + std::ptrdiff_t(n))});
    require_structure(function, parts.trees.back(), grads, "the state has");
  }
  return parts;
}

ArrayTree optimiser::Counted::next(std::initializer_list<ArrayTree> trees_after) const {
  ArrayTree result = tuple_of(trees_after);
  std::vector<TreeDef> children = result.structure.children();
  children.insert(children.begin(), TreeDef());
  result.leaves.insert(result.leaves.begin(), lax::add(count, constant(1, count)));
  return {TreeDef::tuple(std::move(children)), std::move(result.leaves)};
}

ArrayTree optimiser::adam_direction(const Counted& state, const ArrayTree& mu, const ArrayTree& nu,
                                    const optim::AdamOptions& options) {
  const Array count = lax::add(state.count, constant(1, state.count));
  BiasCorrection first(options.b1, count), second(options.b2, count);
  return map_leaves(mu, [&](std::size_t i) {
    const Array &m = mu.leaves[i], &v = nu.leaves[i];
    const Array mean = lax::div(m, astype(first.of(m), m.dtype())),
                square = lax::div(v, astype(second.of(v), v.dtype()));
    return lax::div(mean, lax::add(lax::sqrt(square), in_dtype(options.eps, v)));
  });
}

// Zero for integers.
ArrayTree optimiser::scaled_down(const ArrayTree& direction, const Array& learning_rate) {
  ArrayTree result{direction.structure, {}};
  for (const Array& d : direction.leaves)
    result.leaves.push_back(is_inexact(d.dtype())
                                ? Array(lax::mul(lax::neg(in_dtype(learning_rate, d)), d))
                                : lax::zeros_like(d.aval()));
  return result;
}

ArrayTree optim::add_decayed_weights(const ArrayTree& updates, const ArrayTree& params,
                                     const Array& weight_decay,
                                     const std::optional<ArrayTree>& mask) {
  require_structure("add_decayed_weights", params, updates, "the parameters have");
  if (mask) require_structure("add_decayed_weights", *mask, updates, "the mask has");
  return map_leaves(updates, [&](std::size_t i) -> Array {
    const Array& u = updates.leaves[i];
    const Array decay = lax::mul(in_dtype(weight_decay, u), astype(params.leaves[i], u.dtype()));
    if (!mask) return lax::add(u, decay);
    const Array chosen = truth(mask->leaves[i]);
    if (const std::optional<Literal> known = chosen.as_literal())
      return known->as_double() == 0 ? u : Array(lax::add(u, decay));
    return numpy::where(chosen, lax::add(u, decay), u);
  });
}

ArrayTree optim::sgd(const ArrayTree& grads, const SgdOptions& options) {
  return scaled_down(grads, options.learning_rate.at(options.count, "sgd"));
}

ArrayTree optim::momentum_init(const ArrayTree& params) {
  return tuple_of({first_count(), zeros_like(params)});
}

std::pair<ArrayTree, ArrayTree> optim::momentum(const ArrayTree& grads, const ArrayTree& state,
                                                const MomentumOptions& options) {
  const Counted parts = counted("momentum", state, grads, 1);
  auto traced = [&](const ArrayTree& trace) {
    return map_leaves(grads, [&](std::size_t i) {
      const Array& t = trace.leaves[i];
      return lax::add(lax::mul(in_dtype(options.decay, t), t), astype(grads.leaves[i], t.dtype()));
    });
  };
  const ArrayTree next = traced(parts.trees[0]);
  return {scaled_down(options.nesterov ? traced(next) : next,
                      options.learning_rate.at(parts.count, "momentum")),
          parts.next({next})};
}

ArrayTree optim::adam_init(const ArrayTree& params) {
  return tuple_of({first_count(), zeros_like(params), zeros_like(params)});
}
ArrayTree optim::adamw_init(const ArrayTree& params) { return adam_init(params); }

std::pair<ArrayTree, ArrayTree> optim::adam(const ArrayTree& grads, const ArrayTree& state,
                                            const AdamOptions& options) {
  const Counted parts = counted("adam", state, grads, 2);
  const ArrayTree mu = decayed(parts.trees[0], grads, options.b1);
  const ArrayTree nu = decayed_square(parts.trees[1], grads, options.b2);
  const ArrayTree direction = adam_direction(parts, mu, nu, options);
  return {scaled_down(direction, options.learning_rate.at(parts.count, "adam")),
          parts.next({mu, nu})};
}

std::pair<ArrayTree, ArrayTree> optim::adamw(const ArrayTree& grads, const ArrayTree& state,
                                             const ArrayTree& params, const AdamWOptions& options) {
  require_structure("adamw", params, grads, "the parameters have");
  const Counted parts = counted("adamw", state, grads, 2);
  const ArrayTree mu = decayed(parts.trees[0], grads, options.b1);
  const ArrayTree nu = decayed_square(parts.trees[1], grads, options.b2);
  const ArrayTree direction =
      add_decayed_weights(adam_direction(parts, mu, nu, {0.0, options.b1, options.b2, options.eps}),
                          params, options.weight_decay, options.mask);
  return {scaled_down(direction, options.learning_rate.at(parts.count, "adamw")),
          parts.next({mu, nu})};
}

ArrayTree optim::apply_updates(const ArrayTree& params, const ArrayTree& updates) {
  if (!(params.structure == updates.structure))
    throw TreeError("apply_updates: the parameters have the structure " +
                        params.structure.to_string() + ", and the updates " +
                        updates.structure.to_string(),
                    "give updates for these parameters");
  return map_leaves(params, [&](std::size_t i) {
    const Array& p = params.leaves[i];
    return lax::add(p, astype(updates.leaves[i], p.dtype()));
  });
}

Array optim::global_norm(const ArrayTree& tree) {
  Array total;
  for (const Array& leaf : tree.leaves) {
    if (!is_inexact(leaf.dtype())) continue;
    const Array x = is_complex(leaf.dtype())     ? lax::abs(leaf)
                    : size_of(leaf.dtype()) == 2 ? astype(leaf, DType::float32)
                                                 : leaf;
    const Array square = numpy::sum(lax::mul(x, x));
    total = total.is_valid() ? numpy::add(total, square) : square;
  }
  return total.is_valid() ? lax::sqrt(total) : lax::full({}, 0, default_float());
}

ArrayTree optim::clip_by_global_norm(const ArrayTree& grads, const Array& max_norm) {
  if (any_known<double>(max_norm, [](double most) { return !(most >= 0); }))
    throw ValueError("clip_by_global_norm: max_norm is negative or NaN", "give one >= 0");
  const Array norm = global_norm(grads), limit = in_dtype(max_norm, norm);
  // min(1, limit / norm), and 1 where both are 0.
  const Array inside = lax::le(norm, limit);
  const Array factor = lax::select(inside, constant(1, norm), lax::div(limit, norm));
  return map_leaves(grads, [&](std::size_t i) {
    const Array& g = grads.leaves[i];
    return lax::mul(g, astype(factor, g.dtype()));
  });
}

ArrayTree optim::clip(const ArrayTree& updates, const Array& max_delta) {
  return map_leaves(updates, [&](std::size_t i) {
    const Array& u = updates.leaves[i];
    const Array most = in_dtype(max_delta, u);
    return lax::clamp(lax::neg(most), u, most);
  });
}

// --- Loss scaling --------------------------------------------------------------------------------

optim::LossScale optim::loss_scale_init(const Array& initial) {
  return {astype(initial, DType::float32), lax::full({}, 0, DType::int32)};
}

Array optim::scale_loss(const Array& loss, const LossScale& state) {
  return lax::mul(loss, astype(state.scale, loss.dtype()));
}

std::tuple<ArrayTree, Array, optim::LossScale> optim::unscale(const ArrayTree& grads,
                                                              const LossScale& state,
                                                              const LossScaleOptions& options) {
  const Array &scale = state.scale, &steps = state.steps;
  Array is_finite(true);
  ArrayTree unscaled = map_leaves(grads, [&](std::size_t i) {
    const Array& g = grads.leaves[i];
    const Array finite = numpy::all(numpy::isfinite(g));
    is_finite = lax::bitwise_and(is_finite, finite);
    return lax::div(g, astype(scale, g.dtype()));
  });
  const Array next = lax::add(steps, constant(1, steps));
  const Array grows = lax::ge(next, in_dtype(options.growth_interval, steps));
  const Array factor = in_dtype(options.factor, scale);
  // A larger scale is rejected if it is not finite; a scale below 1 is of no use.
  const Array larger = lax::mul(scale, factor);
  const Array may_grow = lax::bitwise_and(grows, numpy::isfinite(larger));
  const Array grown = lax::select(may_grow, larger, scale);
  const Array quotient = lax::div(scale, factor);
  const Array smaller = lax::max(quotient, constant(1, scale));
  const Array none = constant(0, steps);
  const Array counted = lax::select(grows, none, next);
  return {std::move(unscaled),
          is_finite,
          {lax::select(is_finite, grown, smaller), lax::select(is_finite, counted, none)}};
}

namespace {

using MaybeTree = std::optional<ArrayTree>;

ArrayTree sgd_of(const ArrayTree& grads, const optim::Rate& learning_rate,
                 const std::optional<Array>& count) {
  return optim::sgd(grads, {learning_rate, count});
}
Pair momentum_of(const ArrayTree& grads, const ArrayTree& state, const MaybeTree&,
                 const optim::Rate& learning_rate, Array decay, bool nesterov) {
  return optim::momentum(grads, state, optim::MomentumOptions{learning_rate, decay, nesterov});
}
Pair adam_of(const ArrayTree& grads, const ArrayTree& state, const MaybeTree&,
             const optim::Rate& learning_rate, Array b1, Array b2, Array eps) {
  return optim::adam(grads, state, optim::AdamOptions{learning_rate, b1, b2, eps});
}
Pair adamw_of(const ArrayTree& grads, const ArrayTree& state, const ArrayTree& params,
              const optim::Rate& learning_rate, Array b1, Array b2, Array eps, Array weight_decay,
              const MaybeTree& mask) {
  return optim::adamw(grads, state, params, {learning_rate, b1, b2, eps, weight_decay, mask});
}
using One = ArrayTree (*)(const ArrayTree&);

// The state of loss scaling as a tuple (scale, steps), and back.
ArrayTree tree_of(const optim::LossScale& state) {
  return tuple_of({{TreeDef(), {state.scale}}, {TreeDef(), {state.steps}}});
}
optim::LossScale loss_scale_of(std::string_view function, const ArrayTree& state) {
  const Arrays& leaves = state.leaves;
  const bool fits = leaves.size() == 2 && leaves[0].ndim() == 0 && leaves[1].ndim() == 0 &&
                    leaves[0].dtype() == DType::float32 && leaves[1].dtype() == DType::int32;
  if (!fits)
    throw TreeError(std::string(function) + ": the state is no (scale, steps)",
                    "give what loss_scale_init or unscale returned");
  return {leaves[0], leaves[1]};
}
ArrayTree loss_scale_init(const Array& initial) { return tree_of(optim::loss_scale_init(initial)); }
Array scale_loss(const Array& loss, const ArrayTree& state) {
  return optim::scale_loss(loss, loss_scale_of("scale_loss", state));
}
std::tuple<ArrayTree, Array, ArrayTree> unscale(const ArrayTree& grads, const ArrayTree& state,
                                                Array growth_interval, Array factor) {
  const auto [unscaled, is_finite, next] =
      optim::unscale(grads, loss_scale_of("unscale", state), {growth_interval, factor});
  return {unscaled, is_finite, tree_of(next)};
}

[[maybe_unused]] const FunctionInfo* const optim_functions[] = {
    function("optim", "sgd(grads, learning_rate=1e-2, count=None)",
             "Updates -learning_rate g of plain gradient descent. It has no state: a schedule as "
             "learning_rate needs count, the number of steps so far.",
             &sgd_of),
    function("optim", "momentum_init(params)",
             "The state of momentum: (count, trace), zeros like the parameters.",
             static_cast<One>(&optim::momentum_init)),
    function("optim",
             "momentum(grads, state, params=None, learning_rate=1e-2, decay=0.9, nesterov=False)",
             "(updates, state): the trace becomes t = decay t + g, and updates are -learning_rate "
             "t, or with nesterov "
             "-learning_rate (g + decay t). params is not used.",
             &momentum_of),
    function("optim", "adam_init(params)",
             "The state of Adam: (count, mu, nu), zeros like the parameters.",
             static_cast<One>(&optim::adam_init)),
    function("optim",
             "adam(grads, state, params=None, learning_rate=1e-3, b1=0.9, b2=0.999, eps=1e-8)",
             "(updates, state) of Adam, with corrected bias; add the updates with apply_updates. "
             "params is not used. Kingma and Ba, "
             "2015.",
             &adam_of),
    function("optim", "adamw_init(params)", "The state of AdamW: that of Adam.",
             static_cast<One>(&optim::adamw_init)),
    function("optim",
             "adamw(grads, state, params, learning_rate=1e-3, b1=0.9, b2=0.999, eps=1e-8, "
             "weight_decay=1e-4, mask=None)",
             "(updates, state) of Adam with weight decay apart from the gradient, where mask, a "
             "tree of bools, is true. Loshchilov and Hutter, 2019.",
             &adamw_of),
    function("optim", "apply_updates(params, updates)",
             "params + updates, leaf by leaf, in the dtypes of params.",
             static_cast<ArrayTree (*)(const ArrayTree&, const ArrayTree&)>(&optim::apply_updates)),
    function(
        "optim", "add_decayed_weights(updates, params, weight_decay=0.0, mask=None)",
        "updates + weight_decay params, where mask, a tree of bools, is true: before sgd or "
        "momentum it is a penalty on the squares of the parameters.",
        +[](const ArrayTree& updates, const ArrayTree& params, Array weight_decay,
            const MaybeTree& mask) {
          return optim::add_decayed_weights(updates, params, weight_decay, mask);
        }),
    function("optim", "clip(updates, max_delta)",
             "Each element clipped to [-max_delta, max_delta].",
             static_cast<ArrayTree (*)(const ArrayTree&, const Array&)>(&optim::clip)),
    function("optim", "global_norm(tree)", "The root of the sum of the squares of all leaves.",
             static_cast<Array (*)(const ArrayTree&)>(&optim::global_norm)),
    function(
        "optim", "clip_by_global_norm(grads, max_norm)",
        "grads, scaled down where their global norm is above max_norm.",
        static_cast<ArrayTree (*)(const ArrayTree&, const Array&)>(&optim::clip_by_global_norm)),
    function("optim", "loss_scale_init(initial=32768.0)",
             "The state of loss scaling for float16: (scale, steps since it changed). Micikevicius "
             "et al., 2018.",
             &loss_scale_init),
    function("optim", "scale_loss(loss, state)",
             "loss times the scale: what is differentiated in its place.", &scale_loss),
    function(
        "optim", "unscale(grads, state, growth_interval=2000, factor=2.0)",
        "(grads, is_finite, state): gradients of the scaled loss divided by the scale, whether "
        "all are finite, and the next state: the scale is divided by factor where they are "
        "not (take no step then), and multiplied by it after growth_interval steps where "
        "they were.",
        &unscale),
};

}  // namespace
}  // namespace plait
