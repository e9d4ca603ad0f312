"""haiku: transformed functions, an MLP in training, state, convolutions, recurrence.

SPDX-License-Identifier: Apache-2.0
"""

import haiku as hk
import jax
import jax.numpy as jnp
import optax

from report import report


def forward(x):
    return hk.nets.MLP([16, 8, 3])(x)


x = jax.random.normal(jax.random.PRNGKey(1), (10, 4))
labels = jnp.arange(10) % 3
network = hk.without_apply_rng(hk.transform(forward))
params = network.init(jax.random.PRNGKey(0), x)
report("init", params)
report("apply", network.apply(params, x))


def loss_fn(params, x, labels):
    return optax.softmax_cross_entropy_with_integer_labels(network.apply(params, x), labels).mean()


optimizer = optax.adam(1e-2)
state = optimizer.init(params)


@jax.jit
def step(params, state, x, labels):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, labels)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


for i in range(30):
    params, state, loss = step(params, state, x, labels)
    if i in (0, 29):
        report(f"loss{i}", loss)


def convolutional(images, is_training):
    h = hk.Conv2D(8, 3)(images)
    h = hk.BatchNorm(True, True, 0.9)(h, is_training)
    h = jax.nn.relu(h)
    h = hk.MaxPool(2, 2, "SAME")(h)
    h = hk.Flatten()(h)
    h = hk.dropout(hk.next_rng_key(), 0.5, h) if is_training else h
    return hk.Linear(5)(h)


images = jax.random.normal(jax.random.PRNGKey(2), (4, 8, 8, 3))
with_state = hk.transform_with_state(convolutional)
params, state = with_state.init(jax.random.PRNGKey(0), images, True)
apply = jax.jit(with_state.apply, static_argnums=4)
report("conv", apply(params, state, jax.random.PRNGKey(3), images, True))
report("conv_eval", apply(params, state, None, images, False))

sequence = jax.random.normal(jax.random.PRNGKey(4), (5, 2, 8))


def recurrent(xs):
    core = hk.LSTM(6)
    return hk.dynamic_unroll(core, xs, core.initial_state(2))


lstm = hk.without_apply_rng(hk.transform(recurrent))
params = lstm.init(jax.random.PRNGKey(5), sequence)
report("lstm", lstm.apply(params, sequence))


def attention(x):
    return hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling(1.0))(x, x, x)


transformed = hk.without_apply_rng(hk.transform(attention))
params = transformed.init(jax.random.PRNGKey(6), sequence)
report("attention", jax.jit(transformed.apply)(params, sequence))


class Counter(hk.Module):
    def __call__(self):
        counter = hk.get_state("counter", [], init=jnp.zeros)
        hk.set_state("counter", counter + 1)
        return counter


counting = hk.without_apply_rng(hk.transform_with_state(lambda: Counter()()))
params, state = counting.init(None)
for _ in range(3):
    value, state = counting.apply(params, state)
report("state", value, state)
