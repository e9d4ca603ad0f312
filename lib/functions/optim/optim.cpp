// plait.optim: optimisers over trees. See optim.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/optim.h>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using optim::ArrayTree;

void require_structure(std::string_view function, const ArrayTree& tree, const ArrayTree& like,
                       const char* what) {
  if (tree.structure == like.structure) return;
  throw TreeError(std::string(function) + ": the gradients have the structure " +
                      like.structure.to_string() + ", and " + what + " " +
                      tree.structure.to_string(),
                  "give trees of one structure; init makes the state from the parameters");
}

// A tree whose leaf i is leaf(i); leaves that are not floats stay as they are.
template <class Leaf>
ArrayTree map_leaves(const ArrayTree& tree, const Leaf& leaf) {
  ArrayTree result{tree.structure, {}};
  for (std::size_t i = 0; i < tree.leaves.size(); ++i)
    result.leaves.push_back(is_inexact(tree.leaves[i].dtype()) ? leaf(i) : tree.leaves[i]);
  return result;
}

// An option's number in the dtype of a leaf.
Array in_dtype(const Array& number, const Array& leaf) {
  if (const std::optional<Literal> literal = number.as_literal())
    return Array::literal(cast(*literal, leaf.dtype(), false));
  return astype(number, leaf.dtype());
}

ArrayTree zeros_like(const ArrayTree& params) {
  return map_leaves(params, [&](std::size_t i) {
    return numpy::zeros(params.leaves[i].shape(), params.leaves[i].dtype());
  });
}

ArrayTree tuple_of(std::initializer_list<ArrayTree> parts) {
  std::vector<TreeDef> children;
  Arrays leaves;
  for (const ArrayTree& part : parts) {
    children.push_back(part.structure);
    leaves.insert(leaves.end(), part.leaves.begin(), part.leaves.end());
  }
  return {TreeDef::tuple(std::move(children)), std::move(leaves)};
}

struct AdamMoments {
  Array count;
  ArrayTree mu, nu;
};
AdamMoments moments_of(std::string_view function, const ArrayTree& state, const ArrayTree& grads) {
  const std::size_t n = grads.leaves.size();
  const bool fits = state.structure.kind() == TreeDef::Kind::tuple &&
                    state.structure.children().size() == 3 && state.leaves.size() == 2 * n + 1;
  if (!fits)
    throw TreeError(
        std::string(function) + ": the state has the structure " + state.structure.to_string(),
        "make the state with " + std::string(function) + "_init(params)");
  AdamMoments moments{
      state.leaves[0], {state.structure.children()[1], {}}, {state.structure.children()[2], {}}};
  moments.mu.leaves.assign(state.leaves.begin() + 1, state.leaves.begin() + 1 + n);
  moments.nu.leaves.assign(state.leaves.begin() + 1 + n, state.leaves.end());
  require_structure(function, moments.mu, grads, "the state has");
  require_structure(function, moments.nu, grads, "the state has");
  return moments;
}

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

// decay a + (1 - decay) b
Array decayed(const Array& a, const Array& b, const Array& decay) {
  const Array d = in_dtype(decay, a);
  return lax::add(lax::mul(d, a), lax::mul(lax::sub(Array::literal(1, a.dtype()), d), b));
}

// Adam's direction before the learning rate: the bias-corrected mean over the square root of the
// bias-corrected mean square.
ArrayTree adam_direction(const ArrayTree& grads, AdamMoments& moments,
                         const optim::AdamOptions& options) {
  moments.count = lax::add(moments.count, constant(1, moments.count));
  moments.mu = map_leaves(moments.mu, [&](std::size_t i) {
    return decayed(moments.mu.leaves[i], astype(grads.leaves[i], moments.mu.leaves[i].dtype()),
                   options.b1);
  });
  moments.nu = map_leaves(moments.nu, [&](std::size_t i) {
    const Array g = astype(grads.leaves[i], moments.nu.leaves[i].dtype());
    const Array square = is_complex(g.dtype()) ? lax::mul(g, numpy::conj(g)) : lax::mul(g, g);
    return decayed(moments.nu.leaves[i], square, options.b2);
  });
  BiasCorrection first(options.b1, moments.count), second(options.b2, moments.count);
  return map_leaves(moments.mu, [&](std::size_t i) {
    const Array &mu = moments.mu.leaves[i], &nu = moments.nu.leaves[i];
    const Array mean = lax::div(mu, astype(first.of(mu), mu.dtype())),
                square = lax::div(nu, astype(second.of(nu), nu.dtype()));
    return lax::div(mean, lax::add(lax::sqrt(square), in_dtype(options.eps, nu)));
  });
}

ArrayTree state_of(const AdamMoments& moments) {
  return tuple_of({{TreeDef(), {moments.count}}, moments.mu, moments.nu});
}

// -learning_rate d; zero for integers.
ArrayTree scaled_down(const ArrayTree& direction, const Array& learning_rate) {
  ArrayTree result{direction.structure, {}};
  for (const Array& d : direction.leaves)
    result.leaves.push_back(is_inexact(d.dtype())
                                ? Array(lax::mul(lax::neg(in_dtype(learning_rate, d)), d))
                                : lax::zeros_like(d.aval()));
  return result;
}

}  // namespace

ArrayTree optim::sgd(const ArrayTree& grads, const SgdOptions& options) {
  return scaled_down(grads, options.learning_rate);
}

ArrayTree optim::momentum_init(const ArrayTree& params) { return zeros_like(params); }

std::pair<ArrayTree, ArrayTree> optim::momentum(const ArrayTree& grads, const ArrayTree& state,
                                                const MomentumOptions& options) {
  require_structure("momentum", state, grads, "the state has");
  auto traced = [&](const ArrayTree& trace) {
    return map_leaves(grads, [&](std::size_t i) {
      const Array& t = trace.leaves[i];
      return lax::add(lax::mul(in_dtype(options.decay, t), t), astype(grads.leaves[i], t.dtype()));
    });
  };
  const ArrayTree next = traced(state);
  return {scaled_down(options.nesterov ? traced(next) : next, options.learning_rate), next};
}

ArrayTree optim::adam_init(const ArrayTree& params) {
  return tuple_of(
      {{TreeDef(), {lax::full({}, 0, DType::int32)}}, zeros_like(params), zeros_like(params)});
}
ArrayTree optim::adamw_init(const ArrayTree& params) { return adam_init(params); }

std::pair<ArrayTree, ArrayTree> optim::adam(const ArrayTree& grads, const ArrayTree& state,
                                            const AdamOptions& options) {
  AdamMoments moments = moments_of("adam", state, grads);
  const ArrayTree direction = adam_direction(grads, moments, options);
  return {scaled_down(direction, options.learning_rate), state_of(moments)};
}

std::pair<ArrayTree, ArrayTree> optim::adamw(const ArrayTree& grads, const ArrayTree& state,
                                             const ArrayTree& params, const AdamWOptions& options) {
  require_structure("adamw", params, grads, "the parameters have");
  AdamMoments moments = moments_of("adamw", state, grads);
  const ArrayTree direction =
      adam_direction(grads, moments, {options.learning_rate, options.b1, options.b2, options.eps});
  const ArrayTree decayed = map_leaves(direction, [&](std::size_t i) {
    const Array& d = direction.leaves[i];
    return lax::add(
        d, lax::mul(in_dtype(options.weight_decay, d), astype(params.leaves[i], d.dtype())));
  });
  return {scaled_down(decayed, options.learning_rate), state_of(moments)};
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
  const Array norm = global_norm(grads), limit = in_dtype(max_norm, norm);
  // min(1, limit / norm), and 1 where both are 0.
  const Array inside = lax::le(norm, limit);
  const Array factor = lax::select(inside, constant(1, norm), lax::div(limit, norm));
  return map_leaves(grads, [&](std::size_t i) {
    const Array& g = grads.leaves[i];
    return lax::mul(g, astype(factor, g.dtype()));
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

using Pair = std::pair<ArrayTree, ArrayTree>;

ArrayTree sgd_of(const ArrayTree& grads, Array learning_rate) {
  return optim::sgd(grads, {learning_rate});
}
Pair momentum_of(const ArrayTree& grads, const ArrayTree& state, const std::optional<ArrayTree>&,
                 Array learning_rate, Array decay, bool nesterov) {
  return optim::momentum(grads, state, {learning_rate, decay, nesterov});
}
Pair adam_of(const ArrayTree& grads, const ArrayTree& state, const std::optional<ArrayTree>&,
             Array learning_rate, Array b1, Array b2, Array eps) {
  return optim::adam(grads, state, optim::AdamOptions{learning_rate, b1, b2, eps});
}
Pair adamw_of(const ArrayTree& grads, const ArrayTree& state, const ArrayTree& params,
              Array learning_rate, Array b1, Array b2, Array eps, Array weight_decay) {
  return optim::adamw(grads, state, params, {learning_rate, b1, b2, eps, weight_decay});
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
    function("optim", "sgd(grads, learning_rate=1e-2)",
             "Updates -learning_rate g of plain gradient descent.", &sgd_of),
    function("optim", "momentum_init(params)", "The state of momentum: zeros like the parameters.",
             static_cast<One>(&optim::momentum_init)),
    function("optim",
             "momentum(grads, state, params=None, learning_rate=1e-2, decay=0.9, nesterov=False)",
             "(updates, state): the state becomes t = decay t + g, and updates are -learning_rate "
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
             "weight_decay=1e-4)",
             "(updates, state) of Adam with weight decay apart from the gradient. Loshchilov and "
             "Hutter, 2019.",
             &adamw_of),
    function("optim", "apply_updates(params, updates)",
             "params + updates, leaf by leaf, in the dtypes of params.",
             static_cast<ArrayTree (*)(const ArrayTree&, const ArrayTree&)>(&optim::apply_updates)),
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
