"""Files of programs: what is kept, by which names; how classes come back; what stays when writing fails."""

# SPDX-License-Identifier: Apache-2.0
import collections
import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest

import plait
import plait.numpy as jnp

X = np.linspace(-1, 1, 12).reshape(3, 4)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.plait"


# --- Constants -------------------------------------------------------------------------------------

TABLE = np.arange(4.0)


class Model:
    def __init__(self):
        self.layers = [{"w": jnp.asarray(X.T)}, {"w": jnp.asarray(X)}]

    def __call__(self, x):
        for layer in self.layers:
            x = jnp.tanh(x @ layer["w"])
        return x * TABLE


def test_constants_are_named_by_where_they_are(path):
    bias = np.ones(4)
    model = Model()

    def f(x):
        return model(x) + bias + jnp.asarray([1.0, 2.0, 3.0, 4.0])

    plait.save(path, {"f": (f, X), "model": (model, X), "again": (lambda x: x + bias, X)})
    program = plait.load(path, verify=True)
    names = {name: set(entry.constants) for name, entry in program.entries.items()}
    layers = {"model.layers[0]['w']", "model.layers[1]['w']"}
    assert names["f"] == {*layers, "TABLE", "bias", "c4"}
    assert names["again"] == {"bias"}
    assert {name for name in names["model"] if ".layers[" in name} == names["model"] - {"TABLE"}
    doubled = program.f.with_constants({"bias": 2 * bias, "TABLE": 0 * TABLE})
    want = 2 * bias + np.arange(1.0, 5.0)
    assert np.array_equal(np.asarray(doubled(X)), np.broadcast_to(want, (3, 4)))
    with pytest.raises(
        plait.ValueError, match=r"(?s)no constant 'bais' in f.*its constants are model.layers"
    ):
        program.f.with_constants({"bais": bias})


def test_constants_are_left_out_and_given(path):
    weights = {"w": jnp.asarray(X.T), "b": np.ones(3)}

    def f(x):
        return x @ weights["w"] + weights["b"]

    plait.save(path, f, X, constants=False, test_vectors=False)
    assert path.stat().st_size < 1200
    with pytest.raises(plait.ValueError, match=r"without the constant weights\['[wb]'\], a f64"):
        plait.load(path)
    given = {"weights['w']": X.T, "weights['b']": np.zeros(3)}
    assert np.allclose(plait.load(path, constants=given)(X), X @ X.T, rtol=1e-15)
    with pytest.raises(
        plait.ShapeError, match=r"the constant weights\['b'\] is f64\[4\], and entry"
    ):
        plait.load(path, constants={**given, "weights['b']": np.zeros(4)})


def test_a_mapped_file_may_be_replaced_while_it_is_used(path):
    w = jnp.asarray(np.arange(100_000.0))
    plait.save(path, lambda x: jnp.sum(x * w), 1.0)
    f = plait.load(path)
    plait.save(path, lambda x: x, 1.0)
    assert float(f(2.0)) == 2 * np.arange(100_000.0).sum()


@pytest.mark.skipif(
    "PLAIT_TEST_LARGE" not in os.environ, reason="writes 2.4 GB: ./dev test --large"
)
def test_constants_of_more_than_two_gigabytes(path):
    w = np.zeros(300_000_000)
    w[-1] = 7
    plait.save(path, lambda x: w[-1:] * 0 + jnp.sum(jnp.asarray(w)[-2:]) * x, 2.0)
    for mapped in (True, False):
        f = plait.load(path, verify=True, map_memory=mapped)
        assert float(f(3.0)[0]) == 21


# --- Classes ---------------------------------------------------------------------------------------

State = collections.namedtuple("State", "step values")


@dataclasses.dataclass
class Weights:
    w: object
    b: object
    name: str = dataclasses.field(default="none", metadata={"static": True})

    def __post_init__(self):
        assert np.ndim(self.b) == 1


class Box:
    def __init__(self, content):
        self.content = content


plait.tree.register_pytree_node(Box, lambda box: ((box.content,), None), lambda _, c: Box(c[0]))


def classes(state, weights):
    moved = Weights(weights.w * 2, weights.b, "moved")
    return State(state.step + 1, [state.values]), Box(moved)


def test_records_come_back_as_named_tuples_or_as_given_classes(path):
    state, weights = State(np.int32(1), X), Weights(X, X[0])
    plait.save(path, classes, state, weights)
    state_type, box = plait.load(path)(state, weights)
    assert state_type._fields == ("step", "values") and type(state_type).__name__ == "State"
    assert type(state_type) is not State and type(box).__name__ == "Box"

    types = {"State": State, "Weights": Weights, "Box": Box}
    f = plait.load(path, types=types)
    new, box = f(state, weights)
    assert type(new) is State and int(new.step) == 2 and type(box) is Box
    assert type(box.content) is Weights and box.content.name == "none"
    assert np.array_equal(np.asarray(box.content.w), 2 * X)
    again, _ = f.classes.with_constants({})(state, weights)
    assert type(again) is State


def test_classes_that_do_not_fit_are_refused(path):
    plait.save(path, classes, State(np.int32(1), X), Weights(X, X[0]))
    Other = collections.namedtuple("State", "values step")
    with pytest.raises(
        plait.TreeError, match="State has the fields values, step, and the file step"
    ):
        plait.load(path, types={"State": Other})
    with pytest.raises(plait.TreeError, match="not registered"):
        plait.load(path, types={"Box": dict})
    # Fields stand for those of their names, whatever their order and class are.
    f = plait.load(path)
    same, swapped = (
        f(state, Weights(X, X[0])) for state in (State(np.int32(1), X), Other(X, np.int32(1)))
    )
    for one, other in zip(plait.tree.leaves(same), plait.tree.leaves(swapped)):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(plait.TreeError):
        f(collections.namedtuple("State", "steps values")(np.int32(1), X), Weights(X, X[0]))


# --- Functions of the saving process ---------------------------------------------------------------


def test_every_function_of_this_process_is_listed(path):
    def f(x):
        shape = plait.ShapeDtypeStruct((3, 4), np.float64)
        y = plait.host_call(np.sin, shape, x)
        return plait.jit(lambda y: plait.host_call(np.cos, shape, y))(y)

    with pytest.raises(plait.ValueError) as caught:
        plait.save(path, {"f": (f, X)})
    for part in ("entry f", "`sin` of host_call", "`cos` of host_call", "test_saved_files.py:"):
        assert part in str(caught.value)
    assert not path.exists()


def test_primitives_of_the_users_own_are_named_where_they_are_absent(path):
    code = (
        "import sys, numpy as np, plait\n"
        "def primitive(name):\n"
        "    p = plait.Primitive(name)\n"
        "    p.abstract(lambda x: x)\n"
        "    return p\n"
        "twice, thrice = primitive('my.twice'), primitive('my.thrice')\n"
        "plait.save(sys.argv[1], lambda x: thrice(twice(x)), np.ones(3), test_vectors=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with pytest.raises(plait.ValueError, match="my.twice a.*; nor are defined: my.thrice"):
        plait.load(path)


# --- Lines -----------------------------------------------------------------------------------------


def test_lines_scopes_and_transforms_are_kept(path):
    def loss(x):
        with plait.named_scope("body"):
            return jnp.sum(jnp.sin(x) * x)  # a line to be found

    plait.save(path, plait.grad(loss), X)
    text = plait.load(path).entries["loss"].jaxpr.with_lines()
    assert "test_saved_files.py" in text and "a line to be found" in text
    assert ", scope body" in text and ", under " in text
    assert os.path.dirname(__file__) not in text
    plait.save(path, plait.load(path), X)
    assert "a line to be found" in next(iter(plait.load(path).entries.values())).jaxpr.with_lines()


# --- Writing ---------------------------------------------------------------------------------------


def test_a_disk_that_fills_while_saving_leaves_the_old_file(path):
    plait.save(path, lambda x: x + 1, X)
    before = path.read_bytes()
    code = (
        "import resource, sys, numpy as np, plait\n"
        "w = np.random.default_rng(0).normal(size=200_000)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n"
        "try:\n"
        "    plait.save(sys.argv[1], lambda x: x * w, np.ones(200_000))\n"
        "except plait.FileError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"save: cannot write {path}: " in done.stdout and "with room for the file" in done.stdout
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_process_that_dies_while_saving_leaves_the_old_file(path):
    plait.save(path, lambda x: x + 1, X)
    code = (
        "import resource, signal, sys, numpy as np, plait\n"
        "w = np.random.default_rng(0).normal(size=200_000)\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))\n"
        "plait.save(sys.argv[1], lambda x: x * w, np.ones(200_000))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True)
    assert done.returncode < 0
    assert np.array_equal(np.asarray(plait.load(path, verify=True)(X)), X + 1)


def test_loading_allocates_nothing_that_the_program_would(path):
    plait.save(path, lambda x: jnp.sum(jnp.broadcast_to(x, (1 << 40, 1 << 10))), "f32[]")
    assert "1099511627776" in str(next(iter(plait.load(path).entries.values())).jaxpr)
