// Optimisers as pure functions over trees of arrays: gradients and a state give updates and the
// next state, and apply_updates adds updates to the parameters.
//
//   auto state = optim::adam_init(params);
//   auto [updates, next] = optim::adam(gradients, state, params, {.learning_rate = 1e-3});
//   params = optim::apply_updates(params, updates);
//
// In Python the options are keywords. Any C++ value that is a tree (values.h) may stand for a
// Tree<Array>; its state is then a struct. Leaves that are not floats stay as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>
#include <plait/trace/values.h>

namespace plait::optim {

using ArrayTree = Tree<Array>;

struct SgdOptions {
  Array learning_rate = 1e-2;
};
struct MomentumOptions {
  Array learning_rate = 1e-2, decay = 0.9;
  bool nesterov = false;
};
struct AdamOptions {
  Array learning_rate = 1e-3, b1 = 0.9, b2 = 0.999, eps = 1e-8;
};
struct AdamWOptions {
  Array learning_rate = 1e-3, b1 = 0.9, b2 = 0.999, eps = 1e-8, weight_decay = 1e-4;
};

// -learning_rate g.
ArrayTree sgd(const ArrayTree& grads, const SgdOptions& options = {});
// The state is the trace t <- decay t + g; updates are -learning_rate t, or with nesterov
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

// params + updates, in the dtypes of params.
ArrayTree apply_updates(const ArrayTree& params, const ArrayTree& updates);
// The square root of the sum of all squares, computed in float32 or wider.
Array global_norm(const ArrayTree& tree);
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
struct AdamState {
  Array count;
  P mu, nu;
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
// The state of Adam as a tuple of its parts, and back.
template <class P>
ArrayTree tree_of_state(const AdamState<P>& state) {
  return tree_of(std::tuple<Array, P, P>(state.count, state.mu, state.nu));
}
template <class P>
AdamState<P> state_of(const ArrayTree& tree) {
  auto [count, mu, nu] = value_of<std::tuple<Array, P, P>>(tree);
  return {std::move(count), std::move(mu), std::move(nu)};
}
}  // namespace detail

template <class P>
P sgd(const P& grads, const SgdOptions& options = {}) {
  return detail::value_of<P>(sgd(detail::tree_of(grads), options));
}
template <class P>
P momentum_init(const P& params) {
  return detail::value_of<P>(momentum_init(detail::tree_of(params)));
}
template <class P>
std::pair<P, P> momentum(const P& grads, const P& state, const MomentumOptions& options = {}) {
  auto [updates, next] = momentum(detail::tree_of(grads), detail::tree_of(state), options);
  return {detail::value_of<P>(updates), detail::value_of<P>(next)};
}
template <class P>
AdamState<P> adam_init(const P& params) {
  return detail::state_of<P>(adam_init(detail::tree_of(params)));
}
template <class P>
AdamState<P> adamw_init(const P& params) {
  return adam_init(params);
}
template <class P>
std::pair<P, AdamState<P>> adam(const P& grads, const AdamState<P>& state,
                                const AdamOptions& options = {}) {
  auto [updates, next] = adam(detail::tree_of(grads), detail::tree_of_state(state), options);
  return {detail::value_of<P>(updates), detail::state_of<P>(next)};
}
template <class P>
std::pair<P, AdamState<P>> adamw(const P& grads, const AdamState<P>& state, const P& params,
                                 const AdamWOptions& options = {}) {
  auto [updates, next] =
      adamw(detail::tree_of(grads), detail::tree_of_state(state), detail::tree_of(params), options);
  return {detail::value_of<P>(updates), detail::state_of<P>(next)};
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
