"""Stages of jit under JAX's names, jit switched off, and copies of functions, structures and jaxprs.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax


@plait.jit
def doubled(x):
    return x * 2


@dataclasses.dataclass
class Pair:
    first: object
    second: object


def test_a_program_is_traced_lowered_and_compiled():
    @plait.jit
    def f(w, x):
        return {"y": x @ w}

    w, x = np.ones((3, 4), np.float32), np.ones((2, 3), np.float32)
    traced = f.trace(w, x)
    assert "dot_general" in str(traced.jaxpr) and traced.out_info["y"].shape == (2, 4)
    lowered = f.lower(w, plait.ShapeDtypeStruct((2, 3), np.float32))
    assert lowered.as_text() == str(f.jaxpr_for(w, x)) == traced.lower().as_text()
    compiled = lowered.compile()
    assert compiled(w, x)["y"].tolist() == [[3.0] * 4] * 2
    # 2 * 2 * 3 * 4 operations on 12 + 6 numbers that give 8.
    assert compiled.cost_analysis() == {"flops": 48.0, "bytes accessed": 4.0 * (12 + 6 + 8)}
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 4 * (12 + 6) and memory.output_size_in_bytes == 4 * 8
    assert memory.temp_size_in_bytes >= 0 and memory.peak_memory_in_bytes >= 4 * 8
    with pytest.raises(plait.DtypeError, match="compiled for"):
        compiled(w, x[:1])
    assert f.cache.misses == 1


def test_jit_is_switched_off_within_a_context():
    seen = []

    @plait.jit
    def f(x):
        seen.append(x)
        return x + 1 if x > 0 else x

    with plait.disable_jit():
        assert float(f(pnp.asarray(1.0))) == 2.0
        assert float(seen[0]) == 1.0
        with plait.disable_jit(False), pytest.raises(plait.TracerError):
            f(pnp.asarray(1.0))
    with pytest.raises(plait.TracerError):
        f(pnp.asarray(1.0))


def test_loops_are_python_loops_where_jit_is_switched_off():
    seen = []

    def noted(x):
        seen.append(float(x))
        return x

    def program(x):
        carry, ys = lax.scan(lambda c, v: (noted(c + v), c * v), x, pnp.arange(4.0), reverse=True)
        carry = lax.fori_loop(1, 3, lambda i, c: noted(c * i), carry)
        carry = lax.while_loop(lambda c: c < 100, lambda c: noted(2 * c), carry)
        carry = lax.cond(carry > 3, lambda c: noted(c - 1), lambda c: c, carry)
        return carry, ys, lax.map(lambda v: noted(v) * 2, ys)

    with plait.disable_jit():
        found = program(pnp.asarray(1.0))
        slope = plait.grad(lambda x: program(x)[0])(1.0)
    assert seen[:4] == [4.0, 6.0, 7.0, 7.0]
    assert seen[4:14] == [7.0, 14.0, 28.0, 56.0, 112.0, 111.0, 0.0, 6.0, 8.0, 3.0]
    np.testing.assert_array_equal(found[1], [0, 6, 8, 3])
    np.testing.assert_array_equal(found[2], [0, 12, 16, 6])
    assert float(found[0]) == 111.0 and float(slope) == 16.0
    with plait.disable_jit(), pytest.raises(plait.ValueError, match="max_steps"):
        lax.while_loop(lambda c: c < 100, lambda c: c + 1, pnp.asarray(0), max_steps=7)
    with plait.disable_jit():  # which examples go on is not known
        ends = plait.vmap(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * 2, x))
        np.testing.assert_array_equal(ends(pnp.array([1.0, 3.0, 20.0])), [16, 12, 20])


def test_jitted_functions_are_copied_and_pickled_by_reference():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert copy.deepcopy({"f": doubled})["f"] is doubled and copy.copy(doubled) is doubled
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(plait.jit(lambda x: x))


@pytest.mark.parametrize(
    "tree", [1.0, None, (1, [2, None], {"b": 3, "a": ()}), Pair(1, {"x": (2, 3)})], ids=repr
)
def test_structures_are_copied_and_pickled(tree):
    structure = plait.tree.structure(tree)
    for other in (
        pickle.loads(pickle.dumps(structure)),
        copy.deepcopy(structure),
        copy.copy(structure),
    ):
        assert other == structure and hash(other) == hash(structure)
        leaves = plait.tree.leaves(tree)
        assert other.unflatten(leaves) == tree


def test_structures_tell_their_nodes_and_compose():
    inner, outer = plait.tree.structure((0, 0)), plait.tree.structure({"a": 0, "b": [0]})
    assert outer.node_data() == (dict, ["a", "b"]) and inner.node_data() == (tuple, None)
    assert plait.tree.structure(1).node_data() is None
    assert outer.compose(inner).unflatten(range(4)) == {"a": (0, 1), "b": [(2, 3)]}
    assert plait.tree.treedef_tuple([inner, outer]).unflatten(range(4)) == (
        (0, 1),
        {"a": 2, "b": [3]},
    )
    assert plait.tree.treedef_is_leaf(plait.tree.structure(1))
    assert not plait.tree.treedef_is_leaf(plait.tree.structure(None))
    assert plait.tree.treedef_children(outer) == [
        plait.tree.structure(0),
        plait.tree.structure([0]),
    ]
    assert plait.tree.all_leaves([1, 2]) and not plait.tree.all_leaves([1, (2,)])
    seen = []
    total = outer.walk(
        lambda parts, data: seen.append(data[0]) or sum(parts), lambda v: 2 * v, [3, 4]
    )
    assert total == 14 and seen == [list, dict]
    with pytest.raises(plait.TreeError, match="walk: 1 leaves for a tree of 2"):
        outer.walk(lambda parts, data: 0, None, [1])


def test_jaxprs_are_parsed_copied_and_pickled():
    jaxpr = plait.make_jaxpr(lambda x: pnp.sin(x) + plait.lax.cond(x[0] > 0, pnp.sum, pnp.max, x))(
        np.float32([1, 2])
    )
    program = jaxpr.jaxpr
    for other in (
        plait.parse_jaxpr(str(program)),
        pickle.loads(pickle.dumps(program)),
        copy.deepcopy(program),
        pickle.loads(pickle.dumps(jaxpr)).jaxpr,
    ):
        assert str(other) == str(program)
        (result,) = other(np.float32([1, 2]))
        np.testing.assert_allclose(np.asarray(result), np.sin([1, 2]) + 3, rtol=1e-6)
    with pytest.raises(plait.ValueError, match="line"):
        plait.parse_jaxpr("{ lambda a:f32[2] . nonsense }")
    with pytest.raises(plait.DtypeError, match="parse_jaxpr: 3 is no text"):
        plait.parse_jaxpr(3)
    host = plait.make_jaxpr(lambda x: plait.host_call(np.sin, x, x))(np.float32(1))
    with pytest.raises(plait.ValueError, match="functions of this process"):
        pickle.dumps(host.jaxpr)


def test_the_function_that_vjp_gives_leaves_and_enters_jit():
    @plait.jit
    def forward(w, x):
        return plait.vjp(lambda w, x: {"y": pnp.sin(x @ w["w"])}, w, x)

    @plait.jit
    def backward(pull, cotangent):
        return pull({"y": cotangent})

    w, x = np.float32([[1, 2], [3, 4]]), np.float32([[0.5, -1]])
    value, pull = forward({"w": w}, x)
    cotangent = np.float32([[1, 10]])
    np.testing.assert_allclose(np.asarray(value["y"]), np.sin(x @ w), rtol=1e-6)
    assert all(isinstance(leaf, plait.Array) for leaf in plait.tree.leaves(pull))
    inside = cotangent * np.cos(x @ w)
    for run in (pull, lambda c: backward(pull, c["y"])):
        of_w, of_x = run({"y": cotangent})
        np.testing.assert_allclose(np.asarray(of_w["w"]), x.T @ inside, rtol=1e-5)
        np.testing.assert_allclose(np.asarray(of_x), inside @ w.T, rtol=1e-5)
    with pytest.raises(plait.TreeError, match="vjp: the cotangents have the structure"):
        pull(cotangent)
    forward({"w": w}, x * 2)
    assert forward.cache.misses == 1
