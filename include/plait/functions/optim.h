// Optimisers as pure functions over trees of arrays: gradients and a state give updates and the
// next state, and apply_updates adds updates to the parameters.
//
//   auto state = optim::adam_init(params);
//   auto [updates, next] = optim::adam(gradients, state, params, {.learning_rate = 1e-3});
//   params = optim::apply_updates(params, updates);
//
// A learning rate is a number or a schedule (optim_schedules.h). In Python the options are
// keywords. Any C++ value that is a tree (values.h) may stand for a Tree<Array>; its state is then
// a struct. Leaves that are not floats stay as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/optim_schedules.h>
#include <plait/trace/trace.h>
#include <plait/trace/values.h>

namespace plait::optim {

using ArrayTree = Tree<Array>;

struct SgdOptions {
  Rate learning_rate = 1e-2;
  std::optional<Array> count = {};  // the steps so far, for a schedule
};
struct MomentumOptions {
  Rate learning_rate = 1e-2;
  Array decay = 0.9;
  bool nesterov = false;
};
struct AdamOptions {
  Rate learning_rate = 1e-3;
  Array b1 = 0.9, b2 = 0.999, eps = 1e-8;
};
// mask: a tree of bools, of the structure of the parameters, that says which of them decay.
struct AdamWOptions {
  Rate learning_rate = 1e-3;
  Array b1 = 0.9, b2 = 0.999, eps = 1e-8, weight_decay = 1e-4;
  std::optional<ArrayTree> mask = {};
};
struct LionOptions {
  Rate learning_rate = 1e-4;
  Array b1 = 0.9, b2 = 0.99, weight_decay = 1e-3;
  std::optional<ArrayTree> mask = {};
};
struct RmspropOptions {
  Rate learning_rate = 1e-3;
  Array decay = 0.9, eps = 1e-8;
};
struct AdagradOptions {
  Rate learning_rate = 1e-2;
  Array eps = 1e-7;
};
struct LambOptions {
  Rate learning_rate = 1e-3;
  Array b1 = 0.9, b2 = 0.999, eps = 1e-6, weight_decay = 0.0;
  std::optional<ArrayTree> mask = {};
};
struct AdafactorOptions {
  Rate learning_rate = 1e-3;
  Array decay_rate = 0.8;
  bool multiply_by_parameter_scale = true;
  Array clipping_threshold = 1.0, weight_decay = 0.0, eps = 1e-30;
  std::optional<ArrayTree> mask = {};
};

// -learning_rate g.
ArrayTree sgd(const ArrayTree& grads, const SgdOptions& options = {});
// The state is (count, t), where t <- decay t + g; updates are -learning_rate t, or with nesterov
// -learning_rate (g + decay t).
ArrayTree momentum_init(const ArrayTree& params);
std::pair<ArrayTree, ArrayTree> momentum(const ArrayTree& grads, const ArrayTree& state,
                                         const MomentumOptions& options = {});
// Adam (Kingma and Ba, 2015). The state is (count, mu, nu).
ArrayTree adam_init(const ArrayTree& params);
std::pair<ArrayTree, ArrayTree> adam(const ArrayTree& grads, const ArrayTree& state,
                                     const AdamOptions& options = {});
// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
ArrayTree adamw_init(const ArrayTree& params);
std::pair<ArrayTree, ArrayTree> adamw(const ArrayTree& grads, const ArrayTree& state,
                                      const ArrayTree& params, const AdamWOptions& options = {});
// The sign of b1 mu + (1 - b1) g (Chen et al., 2023). The state is (count, mu).
ArrayTree lion_init(const ArrayTree& params);
std::pair<ArrayTree, ArrayTree> lion(const ArrayTree& grads, const ArrayTree& state,
                                     const ArrayTree& params, const LionOptions& options = {});
// g / sqrt(nu + eps) (Tieleman and Hinton, 2012). The state is (count, nu).
ArrayTree rmsprop_init(const ArrayTree& params);
std::pair<ArrayTree, ArrayTree> rmsprop(const ArrayTree& grads, const ArrayTree& state,
                                        const RmspropOptions& options = {});
// g / sqrt(sum + eps) (Duchi et al., 2011). The state is (count, sum of the squares).
ArrayTree adagrad_init(const ArrayTree& params, const Array& initial_accumulator_value = 0.1);
std::pair<ArrayTree, ArrayTree> adagrad(const ArrayTree& grads, const ArrayTree& state,
                                        const AdagradOptions& options = {});
// AdamW's direction, in each leaf of the length of the parameters (You et al., 2020).
ArrayTree lamb_init(const ArrayTree& params);
std::pair<ArrayTree, ArrayTree> lamb(const ArrayTree& grads, const ArrayTree& state,
                                     const ArrayTree& params, const LambOptions& options = {});
// Second moments as products of rows and columns along the two largest axes, where both are of some
// size (Shazeer and Stern, 2018). The state is (count, rows, columns, whole), with an array of one
// zero in place of what a leaf has not.
ArrayTree adafactor_init(const ArrayTree& params, std::int64_t min_dim_size_to_factor = 128);
std::pair<ArrayTree, ArrayTree> adafactor(const ArrayTree& grads, const ArrayTree& state,
                                          const ArrayTree& params,
                                          const AdafactorOptions& options = {});

// updates + weight_decay params, where the mask is true.
ArrayTree add_decayed_weights(const ArrayTree& updates, const ArrayTree& params,
                              const Array& weight_decay = 0.0,
                              const std::optional<ArrayTree>& mask = {});
// params + updates, in the dtypes of params.
ArrayTree apply_updates(const ArrayTree& params, const ArrayTree& updates);
// The square root of the sum of all squares, computed in float32 or wider.
Array global_norm(const ArrayTree& tree);
// Each element clipped to [-max_delta, max_delta].
ArrayTree clip(const ArrayTree& updates, const Array& max_delta);
// Gradients scaled down so that their global norm is at most max_norm.
ArrayTree clip_by_global_norm(const ArrayTree& grads, const Array& max_norm);

// Loss scaling for float16 (Micikevicius et al., 2018). The loss is multiplied by a scale, so that
// small gradients do not underflow to 0, and the gradients are divided by it. The state is the
// float32 scale, and the int32 number of steps since it changed.
struct LossScale {
  Array scale, steps;
};
struct LossScaleOptions {
  Array growth_interval = 2000, factor = 2.0;
};
LossScale loss_scale_init(const Array& initial = 32768.0);
Array scale_loss(const Array& loss, const LossScale& state);
// Unscales the gradients of a scaled loss. Returns them, whether all are finite, and the next
// state. Where they are not finite, no step should be taken and the scale is divided by factor;
// after growth_interval finite steps it is multiplied by factor.
std::tuple<ArrayTree, Array, LossScale> unscale(const ArrayTree& grads, const LossScale& state,
                                                const LossScaleOptions& options = {});

// --- Over C++ values -----------------------------------------------------------------------------

template <class P>
struct MomentumState {
  Array count;
  P moment;
};
template <class P>
struct AdamState {
  Array count;
  P mu, nu;
};
template <class P>
struct AdafactorState {
  Array count;
  P rows, columns, whole;
};

namespace detail {
template <class P>
ArrayTree tree_of(const P& value) {
  ArrayTree tree;
  tree.structure = flatten(value, tree.leaves);
  return tree;
}
template <class P>
P value_of(const ArrayTree& tree) {
  return unflatten<P>(tree.structure, tree.leaves);
}
// A state as a tuple of its parts, and back.
template <class P>
ArrayTree tree_of(const MomentumState<P>& state) {
  return tree_of(std::tuple<Array, P>(state.count, state.moment));
}
template <class P>
ArrayTree tree_of(const AdamState<P>& state) {
  return tree_of(std::tuple<Array, P, P>(state.count, state.mu, state.nu));
}
template <class P>
ArrayTree tree_of(const AdafactorState<P>& state) {
  return tree_of(std::tuple<Array, P, P, P>(state.count, state.rows, state.columns, state.whole));
}
template <class P>
MomentumState<P> momentum_state(const ArrayTree& tree) {
  auto [count, moment] = value_of<std::tuple<Array, P>>(tree);
  return {std::move(count), std::move(moment)};
}
template <class P>
AdamState<P> adam_state(const ArrayTree& tree) {
  auto [count, mu, nu] = value_of<std::tuple<Array, P, P>>(tree);
  return {std::move(count), std::move(mu), std::move(nu)};
}
template <class P>
AdafactorState<P> adafactor_state(const ArrayTree& tree) {
  auto [count, rows, columns, whole] = value_of<std::tuple<Array, P, P, P>>(tree);
  return {std::move(count), std::move(rows), std::move(columns), std::move(whole)};
}
}  // namespace detail

template <class P>
P sgd(const P& grads, const SgdOptions& options = {}) {
  return detail::value_of<P>(sgd(detail::tree_of(grads), options));
}
template <class P>
MomentumState<P> momentum_init(const P& params) {
  return detail::momentum_state<P>(momentum_init(detail::tree_of(params)));
}
template <class P>
std::pair<P, MomentumState<P>> momentum(const P& grads, const MomentumState<P>& state,
                                        const MomentumOptions& options = {}) {
  auto [updates, next] = momentum(detail::tree_of(grads), detail::tree_of(state), options);
  return {detail::value_of<P>(updates), detail::momentum_state<P>(next)};
}
template <class P>
AdamState<P> adam_init(const P& params) {
  return detail::adam_state<P>(adam_init(detail::tree_of(params)));
}
template <class P>
AdamState<P> adamw_init(const P& params) {
  return adam_init(params);
}
template <class P>
std::pair<P, AdamState<P>> adam(const P& grads, const AdamState<P>& state,
                                const AdamOptions& options = {}) {
  auto [updates, next] = adam(detail::tree_of(grads), detail::tree_of(state), options);
  return {detail::value_of<P>(updates), detail::adam_state<P>(next)};
}
template <class P>
std::pair<P, AdamState<P>> adamw(const P& grads, const AdamState<P>& state, const P& params,
                                 const AdamWOptions& options = {}) {
  auto [updates, next] =
      adamw(detail::tree_of(grads), detail::tree_of(state), detail::tree_of(params), options);
  return {detail::value_of<P>(updates), detail::adam_state<P>(next)};
}
template <class P>
MomentumState<P> lion_init(const P& params) {
  return momentum_init(params);
}
template <class P>
std::pair<P, MomentumState<P>> lion(const P& grads, const MomentumState<P>& state, const P& params,
                                    const LionOptions& options = {}) {
  auto [updates, next] =
      lion(detail::tree_of(grads), detail::tree_of(state), detail::tree_of(params), options);
  return {detail::value_of<P>(updates), detail::momentum_state<P>(next)};
}
template <class P>
MomentumState<P> rmsprop_init(const P& params) {
  return momentum_init(params);
}
template <class P>
std::pair<P, MomentumState<P>> rmsprop(const P& grads, const MomentumState<P>& state,
                                       const RmspropOptions& options = {}) {
  auto [updates, next] = rmsprop(detail::tree_of(grads), detail::tree_of(state), options);
  return {detail::value_of<P>(updates), detail::momentum_state<P>(next)};
}
template <class P>
MomentumState<P> adagrad_init(const P& params, const Array& initial_accumulator_value = 0.1) {
  return detail::momentum_state<P>(
      adagrad_init(detail::tree_of(params), initial_accumulator_value));
}
template <class P>
std::pair<P, MomentumState<P>> adagrad(const P& grads, const MomentumState<P>& state,
                                       const AdagradOptions& options = {}) {
  auto [updates, next] = adagrad(detail::tree_of(grads), detail::tree_of(state), options);
  return {detail::value_of<P>(updates), detail::momentum_state<P>(next)};
}
template <class P>
AdamState<P> lamb_init(const P& params) {
  return adam_init(params);
}
template <class P>
std::pair<P, AdamState<P>> lamb(const P& grads, const AdamState<P>& state, const P& params,
                                const LambOptions& options = {}) {
  auto [updates, next] =
      lamb(detail::tree_of(grads), detail::tree_of(state), detail::tree_of(params), options);
  return {detail::value_of<P>(updates), detail::adam_state<P>(next)};
}
template <class P>
AdafactorState<P> adafactor_init(const P& params, std::int64_t min_dim_size_to_factor = 128) {
  return detail::adafactor_state<P>(
      adafactor_init(detail::tree_of(params), min_dim_size_to_factor));
}
template <class P>
std::pair<P, AdafactorState<P>> adafactor(const P& grads, const AdafactorState<P>& state,
                                          const P& params, const AdafactorOptions& options = {}) {
  auto [updates, next] =
      adafactor(detail::tree_of(grads), detail::tree_of(state), detail::tree_of(params), options);
  return {detail::value_of<P>(updates), detail::adafactor_state<P>(next)};
}
template <class P>
P add_decayed_weights(const P& updates, const P& params, const Array& weight_decay = 0.0,
                      const std::optional<ArrayTree>& mask = {}) {
  return detail::value_of<P>(
      add_decayed_weights(detail::tree_of(updates), detail::tree_of(params), weight_decay, mask));
}
template <class P>
P clip(const P& updates, const Array& max_delta) {
  return detail::value_of<P>(clip(detail::tree_of(updates), max_delta));
}
template <class P>
P apply_updates(const P& params, const P& updates) {
  return detail::value_of<P>(apply_updates(detail::tree_of(params), detail::tree_of(updates)));
}
template <class P>
Array global_norm(const P& tree) {
  return global_norm(detail::tree_of(tree));
}
template <class P>
P clip_by_global_norm(const P& grads, const Array& max_norm) {
  return detail::value_of<P>(clip_by_global_norm(detail::tree_of(grads), max_norm));
}

template <class P>
std::tuple<P, Array, LossScale> unscale(const P& grads, const LossScale& state,
                                        const LossScaleOptions& options = {}) {
  auto [unscaled, is_finite, next] = unscale(detail::tree_of(grads), state, options);
  return {detail::value_of<P>(unscaled), is_finite, next};
}

}  // namespace plait::optim
