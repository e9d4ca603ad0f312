"""chex: dataclasses as trees, assertions on arrays and trees, and variants of tests.

SPDX-License-Identifier: Apache-2.0
"""

import chex
import jax
import jax.numpy as jnp

from report import report


@chex.dataclass
class Parameters:
    weights: chex.ArrayDevice
    bias: chex.ArrayDevice


@chex.dataclass(frozen=True)
class State:
    step: int
    parameters: Parameters


parameters = Parameters(weights=jnp.ones((2, 2)), bias=jnp.zeros(2))
state = State(step=jnp.asarray(0), parameters=parameters)
report("dataclass", jax.tree_util.tree_map(lambda x: x + 1, state))
report("replace", parameters.replace(bias=jnp.ones(2)))
report("grad", jax.grad(lambda p: jnp.sum(p.weights**2) + jnp.sum(p.bias))(parameters))

passed = []


def check(name, good, bad):
    good()
    try:
        bad()
    except (AssertionError, ValueError, TypeError):
        passed.append(1.0)
    else:
        passed.append(0.0)


x, y = jnp.ones((3, 4)), jnp.ones((3, 5))
check("shape", lambda: chex.assert_shape(x, (3, 4)), lambda: chex.assert_shape(x, (4, 3)))
check("wild", lambda: chex.assert_shape(x, (None, 4)), lambda: chex.assert_shape([x, y], (3, 4)))
check("rank", lambda: chex.assert_rank([x, y], 2), lambda: chex.assert_rank(x, 1))
check("type", lambda: chex.assert_type(x, float), lambda: chex.assert_type(x, int))
check(
    "type2", lambda: chex.assert_type(x, jnp.float32), lambda: chex.assert_type(jnp.array(1), float)
)
check(
    "equal_shape", lambda: chex.assert_equal_shape([x, x]), lambda: chex.assert_equal_shape([x, y])
)
check(
    "prefix",
    lambda: chex.assert_equal_shape_prefix([x, y], 1),
    lambda: chex.assert_equal_shape_prefix([x, y], 2),
)
check(
    "axis", lambda: chex.assert_axis_dimension(x, 1, 4), lambda: chex.assert_axis_dimension(x, 0, 4)
)
check(
    "close",
    lambda: chex.assert_trees_all_close({"a": x}, {"a": x}),
    lambda: chex.assert_trees_all_close({"a": x}, {"a": x + 1}),
)
check(
    "same",
    lambda: chex.assert_trees_all_equal([x], [x]),
    lambda: chex.assert_trees_all_equal([x], [x * 2]),
)
check(
    "structs",
    lambda: chex.assert_trees_all_equal_structs([x], [y]),
    lambda: chex.assert_trees_all_equal_structs([x], (x,)),
)
check(
    "shapes",
    lambda: chex.assert_trees_all_equal_shapes([x], [x]),
    lambda: chex.assert_trees_all_equal_shapes([x], [y]),
)
check(
    "dtypes",
    lambda: chex.assert_trees_all_equal_dtypes([x], [y]),
    lambda: chex.assert_trees_all_equal_dtypes([x], [jnp.arange(3)]),
)
check(
    "finite", lambda: chex.assert_tree_all_finite([x]), lambda: chex.assert_tree_all_finite([x / 0])
)
check("scalar", lambda: chex.assert_scalar(1.0), lambda: chex.assert_scalar(x))
check(
    "positive", lambda: chex.assert_scalar_positive(0.5), lambda: chex.assert_scalar_positive(-0.5)
)
check(
    "numerical",
    lambda: chex.assert_numerical_grads(lambda v: jnp.sum(jnp.sin(v)), (jnp.ones(3),), 1),
    lambda: chex.assert_rank(x, 5),
)
check(
    "is_broadcastable",
    lambda: chex.assert_is_broadcastable((1, 4), (3, 4)),
    lambda: chex.assert_is_broadcastable((2, 4), (3, 4)),
)
report("assertions", passed)


@chex.assert_max_traces(n=1)
def traced(v):
    return v * 2


jitted = jax.jit(traced)
report("traces", jitted(x), jitted(x + 1))
report("tracer", jax.jit(lambda v: v if isinstance(v, jax.core.Tracer) else v * 0)(x))
with chex.fake_jit():
    report("fake_jit", jax.jit(lambda v: v + 1)(x))
