"""jraph: batching and padding of graphs, a graph network and a graph convolution, trained on a small problem.

SPDX-License-Identifier: Apache-2.0
"""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax

from report import report


def make_graph(seed, nodes, edges):
    rng = np.random.RandomState(seed)
    return jraph.GraphsTuple(
        nodes=jnp.asarray(rng.randn(nodes, 4), jnp.float32),
        edges=jnp.asarray(rng.randn(edges, 3), jnp.float32),
        senders=jnp.asarray(rng.randint(0, nodes, edges)),
        receivers=jnp.asarray(rng.randint(0, nodes, edges)),
        n_node=jnp.array([nodes]),
        n_edge=jnp.array([edges]),
        globals=jnp.asarray(rng.randn(1, 2), jnp.float32),
    )


graph = jraph.batch([make_graph(0, 5, 8), make_graph(1, 3, 4), make_graph(2, 6, 9)])
report("batch", graph)
padded = jraph.pad_with_graphs(graph, n_node=20, n_edge=30, n_graph=5)
report("pad", padded, jraph.get_node_padding_mask(padded), jraph.get_edge_padding_mask(padded))
report("unbatch", jraph.unbatch(graph))
report("unpad", jraph.unpad_with_graphs(padded))


def init_mlp(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"w": jax.random.normal(k, (m, n)) / jnp.sqrt(m), "b": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def mlp(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


keys = jax.random.split(jax.random.PRNGKey(0), 3)
params = {
    "edge": init_mlp(keys[0], [3 + 4 + 4 + 2, 16, 8]),
    "node": init_mlp(keys[1], [4 + 8 + 8 + 2, 16, 8]),
    "global": init_mlp(keys[2], [8 + 8 + 2, 16, 1]),
}


def network(params, graph):
    concatenated = jraph.concatenated_args
    return jraph.GraphNetwork(
        update_edge_fn=concatenated(lambda x: mlp(params["edge"], x)),
        update_node_fn=concatenated(lambda x: mlp(params["node"], x)),
        update_global_fn=concatenated(lambda x: mlp(params["global"], x)),
    )(graph)


report("network", network(params, graph).globals)
targets = jnp.array([[1.0], [-1.0], [0.5], [0.0], [0.0]])


def loss(params, graph):
    mask = jraph.get_graph_padding_mask(graph)
    out = network(params, graph).globals
    return jnp.sum(jnp.where(mask[:, None], (out - targets) ** 2, 0)) / jnp.sum(mask)


optimizer = optax.adam(1e-2)
state = optimizer.init(params)


@jax.jit
def step(params, state, graph):
    value, grads = jax.value_and_grad(loss)(params, graph)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, value


for i in range(50):
    params, state, value = step(params, state, padded)
    if i in (0, 10, 49):
        report(f"loss{i}", value)

weights = jax.random.normal(jax.random.PRNGKey(7), (4, 5))
convolve = jraph.GraphConvolution(lambda nodes: nodes @ weights, add_self_edges=True)
report("convolution", convolve(graph).nodes)
attention = jraph.GAT(
    attention_query_fn=lambda nodes: nodes @ weights,
    attention_logit_fn=lambda q, k, e: jnp.sum(q * k, -1, keepdims=True),
)
report("attention", attention(graph).nodes)
report("softmax", jraph.segment_softmax(graph.edges[:, 0], graph.receivers, 14))
report(
    "segments",
    jraph.segment_mean(graph.edges, graph.receivers, 14),
    jraph.segment_variance(graph.edges, graph.receivers, 14),
)
