"""Lesson 20: a sweep of learning rates on a cluster that somebody else schedules: Dask or Ray, with two workers here.

Each trial is a program of its own, so nothing of plait's meshes is needed: a task makes its keys, traces, compiles and
returns numbers. A cluster that runs already is named by its address, `Client("scheduler:8786")` or
`ray.init(address="auto")`; all else stays. Where a trial itself is to run on several ranks, start it by `plait run` or
`srun` (train.slurm).

    pip install dask distributed
    python examples/20_sweep.py
    pip install ray
    python examples/20_sweep.py ray
"""

# SPDX-License-Identifier: Apache-2.0
import sys

import plait
import plait.numpy as jnp
from plait import lax, random

STEPS = 200


def trial(setting):
    """The loss of a small regression after some steps of gradient descent."""
    rate, seed = setting
    keys = random.split(random.key(seed), 3)
    x = random.normal(keys[0], (64, 8))
    y = jnp.tanh(x @ random.normal(keys[1], (8,)))

    def loss(weights):
        return jnp.mean(jnp.square(jnp.tanh(x @ weights) - y))

    @plait.jit
    def trained(weights):
        return lax.fori_loop(0, STEPS, lambda _, w: w - rate * plait.grad(loss)(w), weights)

    return rate, seed, float(loss(trained(random.normal(keys[2], (8,)))))


def by_dask(settings):
    """(the number of workers, the results in order)."""
    from distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        workers = client.scheduler_info()["workers"]
        return len(workers), client.gather(client.map(trial, settings))


def by_ray(settings):
    import ray

    with ray.init(num_cpus=2, include_dashboard=False):
        task = ray.remote(trial)  # of one core each, so there is a worker for each core
        workers = int(ray.cluster_resources()["CPU"])
        return workers, ray.get([task.remote(setting) for setting in settings])


SCHEDULERS = {
    "dask": ("Dask", by_dask, "dask distributed"),
    "ray": ("Ray", by_ray, "ray"),
}


def main(words):
    name, run, packages = SCHEDULERS[words[0] if words else "dask"]
    settings = [(rate, seed) for rate in (0.01, 0.1, 0.5, 1.0) for seed in range(3)]
    try:
        workers, results = run(settings)
    except ImportError:
        print(f"skipped: {name} is not installed: pip install {packages}")
        return
    print(f"{len(results)} trials on {workers} workers of {name}")
    for rate in sorted({rate for rate, _, _ in results}):
        losses = [loss for each, _, loss in results if each == rate]
        print(f"rate {rate}: mean loss {sum(losses) / len(losses):.5f}")
    here = [trial(setting) for setting in settings[:2]]
    print("the same bits as in this process:", here == list(results[:2]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
