"""A pass: a program split by named scope into stages that run on threads of their own, with queues between.

The equations of a scope are a stage; a list of equations is a function that binds one after the other, so jit
compiles it. While one batch is in the last stage, the next is in the one before, and so on; plait lets go of the
interpreter lock where the work is worth it.
"""

# SPDX-License-Identifier: Apache-2.0
import graphlib
import queue
import threading
from typing import NamedTuple

import plait
import plait.numpy as jnp

END = object()


class Stage(NamedTuple):
    name: str
    equations: list
    inputs: list  # names of the vars that it is given
    outputs: list  # and of those that it hands on: what later stages need

    def __call__(self, arrays):
        values = dict(zip(self.inputs, arrays))
        for equation in self.equations:
            given = [
                values.get(atom, atom) if isinstance(atom, str) else atom
                for atom in equation.inputs
            ]
            values.update(zip(equation.outputs, equation.bind(*given)))
        return [values[name] for name in self.outputs]


def names_in(atoms):
    return {atom for atom in atoms if isinstance(atom, str)}


def group(equations):
    """Pairs of an outermost scope and its equations, so that each needs only what is before it.

    An equation in no scope is with the last of those that it needs. ValueError for scopes that need each other.
    """
    scopes_of, needed = (
        {},
        {},
    )  # of a var: the scopes that it comes from; of a scope: those that it needs
    for equation in equations:
        scope = equation.source.scope.partition("/")[0]
        before = set().union(*(scopes_of.get(name, ()) for name in names_in(equation.inputs)))
        if scope:
            needed.setdefault(scope, set()).update(before - {scope})
        scopes_of |= dict.fromkeys(equation.outputs, {scope} if scope else before)
    try:
        order = [*graphlib.TopologicalSorter(needed).static_order()] or [""]
    except graphlib.CycleError as error:
        around = " needs ".join(f"`{scope}`" for scope in error.args[1][::-1])
        raise ValueError(f"scope {around}: give them one name, and they are one stage") from None
    members = {scope: [] for scope in order}
    for equation in equations:
        scopes = set().union(*(scopes_of[name] for name in equation.outputs))
        members[max(scopes, key=order.index, default=order[0])].append(equation)
    return members.items()


def split(jaxpr):
    """The stages of a program, in order."""
    groups = [*group(jaxpr.eqns)]
    outputs = sorted(names_in(jaxpr.outputs))
    stages = []
    for name, equations in reversed(
        groups
    ):  # what a stage must be given follows from what comes after it
        made = names_in(v for equation in equations for v in equation.outputs)
        used = names_in(v for equation in equations for v in equation.inputs)
        inputs = sorted((used | set(outputs)) - made)
        stages.append(Stage(name, equations, inputs, outputs))
        outputs = inputs
    return stages[::-1]


def work(function, source, results):
    """What the thread of a stage does; an exception takes the place of a result, to the end of the line."""
    while (item := source.get()) is not END:
        try:
            results.put(item if isinstance(item, Exception) else function(item))
        except Exception as error:
            results.put(error)
    results.put(END)


def feed(batches, first, target):
    try:
        for batch in batches:
            target.put(first(batch))
    except Exception as error:
        target.put(error)
    target.put(END)


def pipelined(f, example, depth=2):
    """A function of many batches like example that yields f of each, in order; depth batches wait at each stage."""
    closed = plait.make_jaxpr(f)(example)
    stages = split(closed.jaxpr)
    compiled = [plait.jit(stage) for stage in stages]

    def entered(batch):
        values = dict(zip(closed.jaxpr.inputs, [*plait.tree.leaves(batch), *closed.consts]))
        return [values[name] for name in stages[0].inputs]

    def left(arrays):
        values = dict(zip(stages[-1].outputs, arrays))
        outputs = [values[v] if isinstance(v, str) else v for v in closed.jaxpr.outputs]
        return plait.tree.unflatten(closed.out_tree, outputs)

    def run(batches):
        queues = [queue.Queue(depth) for _ in range(len(stages) + 1)]
        jobs = [(feed, (batches, entered, queues[0]))]
        jobs += [(work, job) for job in zip(compiled, queues, queues[1:])]
        for target, arguments in jobs:
            threading.Thread(target=target, args=arguments, daemon=True).start()
        while (item := queues[-1].get()) is not END:
            if isinstance(item, Exception):
                raise item
            yield left(item)

    run.stages = stages
    return run


def network(x):
    w = jnp.sin(jnp.reshape(jnp.arange(64.0), (8, 8)))
    with plait.named_scope("encoder"):
        hidden = jnp.tanh(x @ w)
        with plait.named_scope("gate"):
            hidden = hidden * plait.nn.sigmoid(hidden @ w)
    skipped = hidden * 2
    with plait.named_scope("decoder"):
        out = jnp.tanh(hidden @ w.T) + skipped
    with plait.named_scope("head"):
        return {"mean": jnp.mean(out, axis=1), "most": jnp.max(out, axis=1)}


if __name__ == "__main__":
    batches = [jnp.cos(jnp.reshape(jnp.arange(24.0) + i, (3, 8))) for i in range(8)]
    run = pipelined(network, batches[0])
    for stage in run.stages:
        counts = f"{len(stage.equations):2} equations, {len(stage.inputs)} arrays in, {len(stage.outputs)} out"
        print(f"{stage.name:<8} {counts}")
    plain = plait.jit(network)
    for i, result in enumerate(run(batches)):
        same = all(bool((result[key] == plain(batches[i])[key]).all()) for key in result)
        print(f"batch {i}: mean {float(result['mean'][0]):.4f}, as without stages: {same}")
