"""equinox: modules, filtered transforms, partition and combine, an MLP and a convolutional network in training.

SPDX-License-Identifier: Apache-2.0
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax

from report import report


class Linear(eqx.Module):
    weight: jax.Array
    bias: jax.Array
    name: str = eqx.field(static=True)

    def __init__(self, inputs, outputs, key):
        wkey, bkey = jr.split(key)
        self.weight = jr.normal(wkey, (outputs, inputs))
        self.bias = jr.normal(bkey, (outputs,))
        self.name = "linear"

    def __call__(self, x):
        return self.weight @ x + self.bias


layer = Linear(3, 2, jr.PRNGKey(0))
xs, ys = jr.normal(jr.PRNGKey(1), (20, 3)), jr.normal(jr.PRNGKey(2), (20, 2))


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss(model, x, y):
    return jnp.mean((y - jax.vmap(model)(x)) ** 2)


report("module", loss(layer, xs, ys))

model = eqx.nn.MLP(3, 2, 16, 2, key=jr.PRNGKey(3))
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def step(model, state, x, y):
    value, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((y - jax.vmap(m)(x)) ** 2))(model)
    updates, state = optimizer.update(grads, state, model)
    return eqx.apply_updates(model, updates), state, value


for i in range(40):
    model, state, value = step(model, state, xs, ys)
    if i in (0, 39):
        report(f"mlp{i}", value)

dynamic, static = eqx.partition(model, eqx.is_array)
report("partition", dynamic, jax.vmap(eqx.combine(dynamic, static))(xs))
report("tree_at", eqx.tree_at(lambda m: m.bias, layer, jnp.zeros(2)))
report("equal", eqx.tree_equal(layer, layer), eqx.tree_equal(layer, Linear(3, 2, jr.PRNGKey(9))))
report("filter_vmap", eqx.filter_vmap(lambda k: Linear(3, 2, k))(jr.split(jr.PRNGKey(4), 5)))
report("filter_jvp", eqx.filter_jvp(lambda x: jnp.sin(x), (xs,), (ys @ jnp.ones((2, 3)),)))


class Network(eqx.Module):
    layers: list

    def __init__(self, key):
        keys = jr.split(key, 3)
        self.layers = [
            eqx.nn.Conv2d(1, 4, 3, key=keys[0]),
            eqx.nn.MaxPool2d(2, 2),
            jax.nn.relu,
            jnp.ravel,
            eqx.nn.Linear(4 * 7 * 7, 8, key=keys[1]),
            jax.nn.sigmoid,
            eqx.nn.LayerNorm(8),
            eqx.nn.Linear(8, 3, key=keys[2]),
            jax.nn.log_softmax,
        ]

    def __call__(self, x):
        for each in self.layers:
            x = each(x)
        return x


network = Network(jr.PRNGKey(5))
images = jr.normal(jr.PRNGKey(6), (4, 1, 16, 16))
report("network", jax.vmap(network)(images))
report("network_grad", eqx.filter_grad(lambda m: -jnp.mean(jax.vmap(m)(images)[:, 0]))(network))

attention = eqx.nn.MultiheadAttention(2, 8, key=jr.PRNGKey(7))
sequence = jr.normal(jr.PRNGKey(8), (5, 8))
report("attention", attention(sequence, sequence, sequence))
cell = eqx.nn.GRUCell(8, 6, key=jr.PRNGKey(9))
report("gru", jax.lax.scan(lambda h, x: (cell(x, h), h), jnp.zeros(6), sequence))
lstm = eqx.nn.LSTMCell(8, 6, key=jr.PRNGKey(10))
report(
    "lstm", jax.lax.scan(lambda h, x: (lstm(x, h), h[0]), (jnp.zeros(6), jnp.zeros(6)), sequence)
)
report("dropout", eqx.nn.Dropout(0.5)(sequence, key=jr.PRNGKey(11)))
report("embedding", eqx.nn.Embedding(7, 3, key=jr.PRNGKey(12))(jnp.array(4)))
norm, norm_state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(8, axis_name="batch", mode="batch")
report("checked", eqx.filter_jit(lambda x: eqx.error_if(x, x.sum() > 1e9, "large"))(sequence))
report(
    "while", eqx.internal.while_loop(lambda v: v < 100, lambda v: v * 2, jnp.array(1.0), kind="lax")
)
report(
    "checkpointed",
    jax.grad(
        lambda a: eqx.internal.while_loop(
            lambda v: v < 100, lambda v: v * a, jnp.array(1.0), kind="checkpointed", max_steps=64
        )
    )(3.0),
)
