"""flax linen: an MLP and a convolutional network with batch normalisation and dropout, recurrent cells, attention.

SPDX-License-Identifier: Apache-2.0
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state

from report import report


class MLP(nn.Module):
    features: tuple

    @nn.compact
    def __call__(self, x):
        for size in self.features[:-1]:
            x = nn.relu(nn.Dense(size)(x))
        return nn.Dense(self.features[-1])(x)


model = MLP((16, 8, 3))
x = jax.random.normal(jax.random.PRNGKey(1), (10, 4))
labels = jnp.arange(10) % 3
variables = model.init(jax.random.PRNGKey(0), x)
report("init", variables)
report("apply", model.apply(variables, x), jax.jit(model.apply)(variables, x))

state = train_state.TrainState.create(
    apply_fn=model.apply, params=variables["params"], tx=optax.adam(1e-2)
)


@jax.jit
def step(state, x, labels):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


for i in range(30):
    state, loss = step(state, x, labels)
    if i in (0, 29):
        report(f"loss{i}", loss)


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(8, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train)(x)
        x = nn.relu(x)
        x = nn.avg_pool(x, window_shape=(2, 2), strides=(2, 2))
        x = nn.Conv(4, (3, 3), strides=2)(x)
        x = nn.max_pool(nn.gelu(x), (2, 2))
        x = x.reshape((x.shape[0], -1))
        x = nn.Dropout(0.5, deterministic=not train)(x)
        return nn.Dense(10)(nn.LayerNorm()(x))


cnn = CNN()
images = jax.random.normal(jax.random.PRNGKey(2), (4, 16, 16, 3))
variables = cnn.init(
    {"params": jax.random.PRNGKey(0), "dropout": jax.random.PRNGKey(1)}, images, train=False
)
report("cnn", cnn.apply(variables, images, train=False))


@jax.jit
def cnn_loss(params, stats, images, key):
    out, changed = cnn.apply(
        {"params": params, "batch_stats": stats},
        images,
        train=True,
        mutable=["batch_stats"],
        rngs={"dropout": key},
    )
    return jnp.mean(out**2), changed["batch_stats"]


report(
    "cnn_grad",
    jax.value_and_grad(cnn_loss, has_aux=True)(
        variables["params"], variables["batch_stats"], images, jax.random.PRNGKey(3)
    ),
)
sequence = jax.random.normal(jax.random.PRNGKey(4), (2, 5, 8))
attention = nn.MultiHeadDotProductAttention(num_heads=2)
report("attention", attention.init_with_output(jax.random.PRNGKey(5), sequence, sequence))
report("lstm", nn.RNN(nn.OptimizedLSTMCell(6)).init_with_output(jax.random.PRNGKey(6), sequence))
report("gru", nn.RNN(nn.GRUCell(6)).init_with_output(jax.random.PRNGKey(7), sequence))
report("embed", nn.Embed(7, 3).init_with_output(jax.random.PRNGKey(8), jnp.array([1, 5])))
report("groupnorm", nn.GroupNorm(2).init_with_output(jax.random.PRNGKey(9), sequence))
report(
    "transpose", nn.ConvTranspose(3, (3,), (2,)).init_with_output(jax.random.PRNGKey(10), sequence)
)
Mapped = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=0)
report("nn_vmap", Mapped(3).init_with_output(jax.random.PRNGKey(11), sequence[0]))
Scanned = nn.scan(
    nn.OptimizedLSTMCell,
    variable_broadcast="params",
    split_rngs={"params": False},
    in_axes=1,
    out_axes=1,
)
cell = Scanned(6)
carry = nn.OptimizedLSTMCell(6, parent=None).initialize_carry(
    jax.random.PRNGKey(12), sequence[:, 0].shape
)
report("nn_scan", cell.init_with_output(jax.random.PRNGKey(13), carry, sequence))
report("remat", nn.remat(MLP)((4, 2)).init_with_output(jax.random.PRNGKey(14), x))
report("tabulate", len(model.tabulate(jax.random.PRNGKey(0), x)) > 100)
