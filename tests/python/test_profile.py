"""Profiles: where steps come from and what they do, counted another way. No times are compared.

SPDX-License-Identifier: Apache-2.0
"""

import json

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax, named_scope


def loss(params, x):
    with named_scope("hidden"):
        h = jnp.tanh(x @ params["w"])
    with named_scope("head"):
        return jnp.mean((h @ params["v"]) ** 2)


def arguments():
    return {"w": jnp.ones((64, 96)), "v": jnp.ones((96, 8))}, jnp.ones((128, 64))


@pytest.fixture(scope="module")
def of_gradient():
    return plait.profile(plait.grad(loss), *arguments(), runs=7)


def test_steps_do_the_work_that_the_program_has(of_gradient):
    data = json.loads(of_gradient.json())
    products = [step for step in data["steps"] if "dot_general" in step["name"]]
    forward = 2 * 128 * 64 * 96 + 2 * 128 * 96 * 8
    backward = (
        2 * 128 * 96 * 8 * 2 + 2 * 128 * 64 * 96
    )  # of head, both operands; of hidden, its weights
    flops = sum(step["flops"] for step in products)
    assert (
        forward + backward <= flops <= 1.2 * (forward + backward)
    )  # what is fused with them counts too
    assert data["runs"] == 7 and all(step["count"] == 1 for step in data["steps"])
    machine = data["machine"]
    assert machine["copy_bytes_per_second"] > 1e8 and machine["flops32_per_second"] > 1e9


def test_every_grouping_shares_the_same_time(of_gradient):
    data = json.loads(of_gradient.json())
    total = sum(step["seconds"] for step in data["steps"])
    assert total > 0 and data["seconds"] > 0
    for what in ("line", "scope", "transforms", "primitive", "backend"):
        sums = of_gradient.by(what)
        assert sum(sums.values()) == pytest.approx(total, rel=1e-6)
        assert list(sums.values()) == sorted(sums.values(), reverse=True)
    for step in data["steps"]:
        assert sum(e["seconds"] for e in step["equations"]) == pytest.approx(step["seconds"])


def test_time_goes_to_lines_scopes_and_transforms(of_gradient):
    assert {"hidden", "head"} <= set(of_gradient.by("scope"))
    assert any("transpose" in made for made in of_gradient.by("transforms"))
    lines = of_gradient.by("line")
    assert any("h = jnp.tanh(x @ params" in line and "test_profile.py" in line for line in lines)
    text = str(of_gradient)
    assert "GFLOP/s" in text and "hidden" in text and "in proportion to what each" in text


def test_bodies_of_loops_have_steps_of_their_own():
    many = (
        400_000  # added one by one beside a call: too much for one thread, so it runs step by step
    )
    order = jnp.asarray(np.random.default_rng(0).permutation(many).astype(np.int32))

    def f(x):
        def body(c, _):
            with named_scope("inside"):
                return jnp.sin(c).at[order].add(c) + jnp.cumsum(c), None

        return lax.scan(body, x, None, length=13)[0]

    data = json.loads(plait.profile(f, jnp.ones(many), runs=3).json())
    inner = [step for step in data["steps"] if step["parent"] is not None]
    assert inner and {step["count"] for step in inner} == {13}
    parents = {step["parent"] for step in inner}
    assert all("scan" in data["steps"][parent]["name"] for parent in parents)
    for parent in parents:
        own = data["steps"][parent]
        below = sum(step["total_seconds"] for step in inner if step["parent"] == parent)
        assert own["total_seconds"] == pytest.approx(own["seconds"] + below, rel=1e-6) or own["seconds"] == 0  # fmt: skip
    scopes = {e["source"]["scope"] for step in inner for e in step["equations"] if e["source"]}
    assert "inside" in scopes


def test_the_trace_nests(of_gradient, tmp_path):
    path = tmp_path / "trace.json"
    of_gradient.trace(path)
    events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
    call, steps = events[0], events[1:]
    assert len(steps) == len(json.loads(of_gradient.json())["steps"])
    end = 0
    for step in steps:  # one after the other, within the call
        assert step["ts"] >= end - 1e-3 and step["dur"] >= 0
        end = step["ts"] + step["dur"]
    assert end <= call["dur"] + 1e-3
    assert {step["args"]["scope"] for step in steps} & {"hidden", "head"}


def test_jitted_functions_captures_and_jaxprs_are_profiled():
    w = jnp.ones(8)
    assert plait.profile(plait.jit(lambda x: x * w), jnp.ones(8), runs=1).seconds > 0
    closed = plait.make_jaxpr(lambda x: x * w)(jnp.ones(8))
    assert plait.profile(closed, jnp.ones(8), runs=1).seconds > 0
    assert plait.profile(closed.jaxpr, jnp.ones(8), w, runs=1).seconds > 0
    assert plait.profile(lambda x: x, 1.0, runs=1).by("line") == {}


def test_results_are_not_changed_by_being_recorded():
    f = plait.jit(plait.grad(loss))
    before = f(*arguments())
    plait.profile(f, *arguments(), runs=1)
    after = f(*arguments())
    assert all((before[k] == after[k]).all() for k in before)


def test_bad_input_is_refused(of_gradient, tmp_path):
    with pytest.raises(plait.ValueError, match="nothing to run"):
        plait.profile(jnp.tanh, "n")
    with pytest.raises(plait.ValueError, match="runs"):
        plait.profile(jnp.tanh, 1.0, runs=0)
    with pytest.raises(plait.ValueError, match="by is"):
        of_gradient.by("moon")
    with pytest.raises(OSError, match="cannot write"):
        of_gradient.flame(tmp_path / "absent" / "flame.html")
    closed = plait.make_jaxpr(lambda x: x * 2)(jnp.ones(8))
    with pytest.raises(plait.ValueError, match="inputs"):
        plait.profile(closed, jnp.ones(8), jnp.ones(8))
    with pytest.raises(plait.ShapeError, match="input 0"):
        plait.profile(closed, jnp.ones(9))


def test_what_calls_of_the_host_run_is_part_of_them():
    def island(x):
        for n in range(2, 40):  # more programs than any cache keeps
            x = plait.jit(lambda y: jnp.sin(y) * n + jnp.sum(y))(x)
        return x

    def f(x):
        return plait.host_call(island, plait.ShapeDtypeStruct((5,), "float32"), x) + 1

    data = json.loads(plait.profile(f, jnp.ones(5), runs=3).json())
    names = [step["name"] for step in data["steps"]]
    assert any("host_call" in name for name in names) and data["seconds"] > 0
