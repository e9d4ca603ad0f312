"""optax: gradient descent, Adam with schedules, and a chain of transformations, on a linear regression.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
import optax

from report import report

key = jax.random.PRNGKey(42)
key, noise_key, x_key = jax.random.split(key, 3)
true_w = jnp.array([0.5, -2.0, 1.5])
xs = jax.random.normal(x_key, (128, 3))
ys = xs @ true_w + 0.1 * jax.random.normal(noise_key, (128,))


def loss_fn(params, x, y):
    prediction = x @ params["w"] + params["b"]
    return jnp.mean(optax.l2_loss(prediction, y))


def train(optimizer, steps=200):
    params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    for _ in range(steps):
        params, state, loss = step(params, state, xs, ys)
    return params, loss


optimizers = {
    "sgd": optax.sgd(0.1),
    "momentum": optax.sgd(0.05, momentum=0.9, nesterov=True),
    "adam": optax.adam(1e-1),
    "adamw": optax.adamw(optax.cosine_decay_schedule(1e-1, 200), weight_decay=1e-3),
    "rmsprop": optax.rmsprop(1e-2),
    "lion": optax.lion(1e-2),
    "adagrad": optax.adagrad(0.3),
    "lamb": optax.lamb(1e-2),
    "adabelief": optax.adabelief(1e-1),
    "adafactor": optax.adafactor(1e-1),
    "warmup": optax.adam(optax.warmup_cosine_decay_schedule(0.0, 0.1, 20, 200, 1e-3)),
    "chain": optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.scale_by_adam(),
        optax.add_decayed_weights(1e-4),
        optax.scale(-0.1),
    ),
    "lookahead_free": optax.inject_hyperparams(optax.adam)(learning_rate=0.1),
    "apply_every": optax.chain(optax.apply_every(4), optax.sgd(0.1)),
    "masked": optax.masked(optax.sgd(0.1), {"w": True, "b": False}),
    "multi": optax.multi_transform(
        {"a": optax.adam(0.1), "b": optax.sgd(0.1)}, {"w": "a", "b": "b"}
    ),
    "finite": optax.apply_if_finite(optax.sgd(0.1), 3),
    "ema": optax.chain(optax.sgd(0.1), optax.ema(0.9)),
}
for name, optimizer in optimizers.items():
    params, loss = train(optimizer)
    report(name, loss, params)

# L-BFGS with a line search.
solver = optax.lbfgs()
params = {"w": jnp.zeros(3), "b": jnp.zeros(())}
state = solver.init(params)
fun = lambda p: loss_fn(p, xs, ys)  # noqa: E731
value_and_grad = optax.value_and_grad_from_state(fun)
for _ in range(10):
    value, grad = value_and_grad(params, state=state)
    updates, state = solver.update(grad, state, params, value=value, grad=grad, value_fn=fun)
    params = optax.apply_updates(params, updates)
report("lbfgs", fun(params), params)

# Losses and schedules.
logits = jax.random.normal(jax.random.PRNGKey(1), (8, 5))
labels = jnp.arange(8) % 5
report("softmax_ce", optax.softmax_cross_entropy_with_integer_labels(logits, labels))
report("sigmoid_ce", optax.sigmoid_binary_cross_entropy(logits, jax.nn.one_hot(labels, 5)))
report("huber", optax.huber_loss(logits, jnp.zeros_like(logits)))
report("cosine", optax.cosine_similarity(logits, jnp.flip(logits, 1)))
report(
    "ctc",
    optax.ctc_loss(
        logits[None], jnp.zeros((1, 8)), labels[None, :4], jnp.zeros((1, 4)), blank_id=0
    ),
)
for name, schedule in {
    "linear": optax.linear_schedule(1.0, 0.0, 100),
    "exponential": optax.exponential_decay(1.0, 10, 0.9),
    "piecewise": optax.piecewise_constant_schedule(1.0, {10: 0.5, 50: 0.1}),
    "one_cycle": optax.cosine_onecycle_schedule(100, 1.0),
    "join": optax.join_schedules(
        [optax.constant_schedule(1.0), optax.linear_schedule(1.0, 0.0, 50)], [10]
    ),
}.items():
    report(name, jnp.array([schedule(jnp.asarray(i)) for i in (0, 5, 20, 60, 99)]))
