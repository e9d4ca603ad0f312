"""Lesson 20: a sweep of learning rates on a cluster that somebody else schedules: Dask, here two workers of this machine.

Each trial is a program of its own, so nothing of plait's meshes is needed: a task makes its keys, traces, compiles and
returns numbers. With Ray it is the same function under `@ray.remote`. Where a trial itself is to run on several ranks,
start it by `plait run` or `srun` (train.slurm).

    pip install dask distributed
    python examples/20_sweep.py
"""

# SPDX-License-Identifier: Apache-2.0
import sys

import plait
import plait.numpy as jnp
from plait import lax, random

STEPS = 200


def trial(rate, seed):
    """The loss of a small regression after some steps of gradient descent."""
    keys = random.split(random.key(seed), 3)
    x = random.normal(keys[0], (64, 8))
    y = jnp.tanh(x @ random.normal(keys[1], (8,)))

    def loss(weights):
        return jnp.mean(jnp.square(jnp.tanh(x @ weights) - y))

    @plait.jit
    def trained(weights):
        return lax.fori_loop(0, STEPS, lambda _, w: w - rate * plait.grad(loss)(w), weights)

    return rate, seed, float(loss(trained(random.normal(keys[2], (8,)))))


def main():
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("skipped: Dask is not installed: pip install dask distributed")
        return
    settings = [(rate, seed) for rate in (0.01, 0.1, 0.5, 1.0) for seed in range(3)]
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        workers = len(client.scheduler_info()["workers"])
        results = client.gather(client.map(lambda pair: trial(*pair), settings))
    print(f"{len(results)} trials on {workers} workers")
    for rate in sorted({rate for rate, _, _ in results}):
        losses = [loss for each, _, loss in results if each == rate]
        print(f"rate {rate}: mean loss {sum(losses) / len(losses):.5f}")
    here = [trial(*pair) for pair in settings[:2]]
    print("the same bits as in this process:", here == list(results[:2]))


if __name__ == "__main__":
    sys.exit(main())
