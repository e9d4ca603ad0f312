"""jax.example_libraries.optimizers: optimisers as triples (init, update, get_params) over trees.

SPDX-License-Identifier: Apache-2.0
"""

import functools
from typing import Any, NamedTuple

import plait.numpy as np

from jax import _doors
from jax.tree_util import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten


class Optimizer(NamedTuple):
    """init_fn(params), update_fn(step, gradient, state), params_fn(state)."""

    init_fn: Any
    update_fn: Any
    params_fn: Any


class OptimizerState(NamedTuple):
    """A tuple of numbers' states for each leaf, and the structures of the parameters and of these tuples."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


class JoinPoint:
    """A leaf's state, as a leaf of the tree of parameters."""

    def __init__(self, subtree):
        self.subtree = subtree


def _register():
    from plait._plait import register_pytree_node

    register_pytree_node(
        OptimizerState,
        lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
        lambda data, children: OptimizerState(children[0], *data),
    )


_register()


def optimizer(make):
    """make(...) gives init, update and get_params of one array; the result works on trees of them."""

    @functools.wraps(make)
    def made(*args, **kwargs):
        init, update, get_params = make(*args, **kwargs)

        def of(states, structure):
            packed, subtrees = zip(*map(tree_flatten, states)) if states else ((), ())
            return OptimizerState(tuple(map(tuple, packed)), structure, tuple(subtrees))

        def states_of(state):
            return list(map(tree_unflatten, state.subtree_defs, state.packed_state))

        def tree_init(tree):
            leaves, structure = tree_flatten(tree)
            return of([init(np.asarray(leaf)) for leaf in leaves], structure)

        def tree_update(step, gradient, state):
            leaves, structure = tree_flatten(gradient)
            if structure != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter tree structure "
                    f"with which it was initialized: parameter tree {state.tree_def} and grad tree {structure}."
                )
            following = [update(step, g, s) for g, s in zip(leaves, states_of(state))]
            return of(following, structure)

        def tree_params(state):
            return tree_unflatten(state.tree_def, list(map(get_params, states_of(state))))

        return Optimizer(tree_init, tree_update, tree_params)

    return made


# --- Step sizes ----------------------------------------------------------------------------------


def constant(step_size):
    return lambda i: step_size


def exponential_decay(step_size, decay_steps, decay_rate):
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size, decay_steps, decay_rate, staircase=False):
    def schedule(i):
        steps = np.floor(i / decay_steps) if staircase else i / decay_steps
        return step_size / (1 + decay_rate * steps)

    return schedule


def polynomial_decay(step_size, decay_steps, final_step_size, power=1.0):
    def schedule(i):
        left = 1 - np.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries, values):
    boundaries, values = np.asarray(boundaries), np.asarray(values)
    if values.ndim != 1 or boundaries.ndim != 1 or values.size != boundaries.size + 1:
        raise ValueError(
            "piecewise_constant: values is one longer than boundaries, and both have one axis"
        )
    return lambda i: values[np.sum(i > boundaries)]


def make_schedule(scalar_or_schedule):
    """A function of the step, from one or from a number."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if np.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# --- Optimisers ----------------------------------------------------------------------------------


@optimizer
def sgd(step_size):
    """Gradient descent."""
    step_size = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - step_size(i) * g, lambda x: x


def _with_velocity(rule):
    """An optimiser with state (x, velocity)."""
    return lambda x: (x, np.zeros_like(x)), rule, lambda state: state[0]


@optimizer
def momentum(step_size, mass):
    """Gradient descent with momentum."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * velocity, velocity

    return _with_velocity(update)


@optimizer
def nesterov(step_size, mass):
    """Gradient descent with Nesterov's momentum."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - step_size(i) * (mass * velocity + g), velocity

    return _with_velocity(update)


@optimizer
def adagrad(step_size, momentum=0.9):
    """Duchi, Hazan and Singer 2011, Adaptive subgradient methods."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, squares, velocity = state
        squares = squares + np.square(g)
        scale = np.where(squares > 0, 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0)), 0.0)
        velocity = (1.0 - momentum) * (g * scale) + momentum * velocity
        return x - step_size(i) * velocity, squares, velocity

    return lambda x: (x, np.zeros_like(x), np.zeros_like(x)), update, lambda state: state[0]


@optimizer
def rmsprop(step_size, gamma=0.9, eps=1e-8):
    """Gradients divided by the root of their mean square."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, mean = state
        mean = mean * gamma + np.square(g) * (1.0 - gamma)
        return x - step_size(i) * g / np.sqrt(mean + eps), mean

    return _with_velocity(update)


@optimizer
def rmsprop_momentum(step_size, gamma=0.9, eps=1e-8, momentum=0.9):
    """rmsprop with momentum."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, mean, velocity = state
        mean = mean * gamma + np.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + step_size(i) * g / np.sqrt(mean + eps)
        return x - velocity, mean, velocity

    return lambda x: (x, np.zeros_like(x), np.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adam(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Kingma and Ba 2015, Adam."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, first, second = state
        first = (1 - b1) * g + b1 * first
        second = (1 - b2) * np.square(g) + b2 * second
        one, two = (
            first / (1 - np.asarray(b1, x.dtype) ** (i + 1)),
            second / (1 - np.asarray(b2, x.dtype) ** (i + 1)),
        )
        return x - step_size(i) * one / (np.sqrt(two) + eps), first, second

    return lambda x: (x, np.zeros_like(x), np.zeros_like(x)), update, lambda state: state[0]


@optimizer
def adamax(step_size, b1=0.9, b2=0.999, eps=1e-8):
    """Adam with the largest gradient in place of the mean square."""
    step_size = make_schedule(step_size)

    def update(i, g, state):
        x, first, largest = state
        first = (1 - b1) * g + b1 * first
        largest = np.maximum(b2 * largest, np.abs(g))
        scale = step_size(i) / (1 - np.asarray(b1, x.dtype) ** (i + 1))
        return x - scale * first / (largest + eps), first, largest

    return lambda x: (x, np.zeros_like(x), np.zeros_like(x)), update, lambda state: state[0]


# --- Gradients and states ------------------------------------------------------------------------


def l2_norm(tree):
    """The Euclidean norm of all numbers of a tree."""
    return np.sqrt(sum(np.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree, max_norm):
    """Gradients scaled down to a norm."""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: np.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


def unpack_optimizer_state(opt_state):
    """The state as a tree of the parameters, whose leaves hold the state of each."""
    states = map(tree_unflatten, opt_state.subtree_defs, opt_state.packed_state)
    return tree_unflatten(opt_state.tree_def, list(map(JoinPoint, states)))


def pack_optimizer_state(marked_pytree):
    """The reverse of unpack_optimizer_state."""
    points, structure = tree_flatten(marked_pytree)
    states = [point.subtree for point in points]
    packed = tuple(tuple(tree_leaves(state)) for state in states)
    return OptimizerState(packed, structure, tuple(map(tree_structure, states)))


sm3 = _doors.refused("jax.example_libraries.optimizers.sm3", "SM3; optax has it")
__getattr__ = _doors.lacking(__name__)
