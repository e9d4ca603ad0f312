"""Saved programs: what is loaded does what was saved, under every transform."""

# SPDX-License-Identifier: Apache-2.0
import collections
import dataclasses
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import plait
import plait.numpy as jnp

rng = np.random.default_rng(0)
P = {"w": rng.normal(size=(4, 3)), "b": rng.normal(size=3)}
X = rng.normal(size=(5, 4))


def predict(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


def loss(params, x):
    return jnp.mean(predict(params, x) ** 2)


def step(params, x):
    value, slope = plait.value_and_grad(loss)(params, x)
    return {k: params[k] - 0.1 * slope[k] for k in params}, value


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.plait"


def equal(a, b):
    a, b = plait.tree.leaves(a), plait.tree.leaves(b)
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert np.array_equal(np.asarray(x), np.asarray(y), equal_nan=True)


def test_a_loaded_function_is_an_ordinary_function(path):
    plait.save(path, predict, P, X)
    f = plait.load(path, verify=True)
    equal(f(P, X), predict(P, X))
    equal(f(params=P, x=X), predict(P, X))
    equal(plait.jit(f.predict)(P, X), predict(P, X))
    equal(
        plait.grad(lambda p: jnp.sum(f(p, X)))(P), plait.grad(lambda p: jnp.sum(predict(p, X)))(P)
    )
    many = np.stack([X, 2 * X])
    equal(plait.vmap(f.predict, (None, 0))(P, many), plait.vmap(predict, (None, 0))(P, many))
    hessian = plait.hessian(lambda b: jnp.sum(f({**P, "b": b}, X)))(P["b"])
    equal(hessian, plait.hessian(lambda b: jnp.sum(predict({**P, "b": b}, X)))(P["b"]))


def test_entries_with_gradients_continue_a_training(path):
    plait.save(path, {"train_step": (step, P, X), "predict": (predict, P, X)}, meta={"by": "us"})
    p = plait.load(path)
    assert list(p) == ["predict", "train_step"] and p.meta == {"by": "us"}
    ours, theirs = P, P
    for _ in range(3):
        ours, value = p.train_step(ours, X)
        theirs, wanted = step(theirs, X)
        equal((ours, value), (theirs, wanted))


def test_a_program_keeps_its_constants_and_takes_others(path):
    w = jnp.asarray(P["w"])
    plait.save(path, lambda x: x @ w, X)
    f = plait.load(path)
    equal(f(X), X @ P["w"])
    entry = next(iter(plait.load(path).entries.values()))
    (name,) = entry.constants
    equal(entry.with_constants({name: 2 * w})(X), X @ (2 * P["w"]))
    plait.save(path, lambda x: x @ w, X, constants=False, test_vectors=False)
    with pytest.raises(plait.ValueError, match="saved without the constant"):
        plait.load(path)
    equal(plait.load(path, constants={name: w})(X), X @ P["w"])


def test_sizes_stay_names(path):
    plait.save(path, predict, {"w": "f64[4 3]", "b": "f64[3]"}, "f64[n 4]")
    f = plait.load(path)
    for n in (0, 1, 7):
        x = rng.normal(size=(n, 4))
        np.testing.assert_allclose(f(P, x), np.tanh(x @ P["w"] + P["b"]), rtol=1e-12)
    with pytest.raises(plait.ShapeError, match=r"argument x is f64\[5,3\]"):
        f(P, np.ones((5, 3)))


Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Weights:
    w: object
    b: object


def test_trees_keep_their_fields(path):
    def f(weights, pair, rest):
        return Pair(weights.w * pair.left, {"sum": pair.right + weights.b, "rest": [rest[0], None]})

    arguments = Weights(X, X + 1), Pair(X, 2.0 * X), (X,)
    plait.save(path, f, *arguments)
    result, wanted = plait.load(path)(*arguments), f(*arguments)
    assert type(result).__name__ == "Pair" and result._fields == ("left", "right")
    assert result.right["rest"][1] is None
    equal(result.left, wanted.left)
    equal(result.right["sum"], wanted.right["sum"])
    with pytest.raises(plait.TreeError, match="was given"):
        plait.load(path)(*arguments[:2], [])


def test_control_flow_and_random_numbers_are_saved(path):
    def walk(key, x):
        def body(carry, k):
            carry = carry + plait.random.normal(k, (3,))
            return carry, jnp.sum(carry)

        return plait.lax.scan(body, x, plait.random.split(key, 6))

    key = plait.random.key(3)
    plait.save(path, walk, key, np.zeros(3, np.float32))
    equal(
        plait.load(path, verify=True)(key, np.zeros(3, np.float32)),
        walk(key, np.zeros(3, np.float32)),
    )


def test_functions_of_this_process_are_refused(path):
    def f(x):
        return plait.host_call(np.sin, plait.ShapeDtypeStruct((5, 4), np.float64), x)

    with pytest.raises(plait.ValueError, match="calls functions of this process: .*sin"):
        plait.save(path, f, X)
    assert not path.exists()


def test_bad_files_are_errors(path, tmp_path):
    with pytest.raises(plait.FileError, match="cannot read"):
        plait.load(tmp_path / "absent.plait")
    with pytest.raises(OSError, match="cannot write"):
        plait.save(tmp_path / "no" / "folder.plait", predict, P, X)
    path.write_bytes(b"PK\3\4 and then nothing")
    with pytest.raises(plait.ValueError, match="no zip archive"):
        plait.load(path)
    plait.save(path, predict, P, X)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}

    def rewritten(name, change):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, data in members.items():
                archive.writestr(member, change(data) if member == name else data)

    rewritten("entries/predict.jaxpr", lambda text: text.replace(b"tanh", b"tahn"))
    with pytest.raises(plait.ValueError, match=r"entries/predict.jaxpr: .*line 5.*tahn"):
        plait.load(path)
    rewritten("manifest.json", lambda text: text.replace(b'"format": 3', b'"format": 99'))
    with pytest.raises(plait.ValueError, match="format 99, and this plait reads formats up to 3"):
        plait.load(path)
    rewritten("examples/predict.safetensors", lambda data: data[:-8] + b"\0" * 8)
    plait.load(path)
    with pytest.raises(plait.ValueError, match="verify: output 0 of predict differs"):
        plait.load(path, verify=True)
    rewritten("constants.safetensors", lambda data: data)  # packed by another program
    equal(plait.load(path, verify=True)(P, X), predict(P, X))


def test_keys_that_are_no_text_are_refused(path):
    with pytest.raises(plait.TreeError, match="the dict key 0 is no text"):
        plait.save(path, lambda d: d[0], {0: X})


def test_another_process_loads_it(path):
    plait.save(path, {"train_step": (step, P, X)})
    code = (
        "import sys, numpy as np, plait\n"
        "p = plait.load(sys.argv[1], verify=True)\n"
        "print(len(p), p.train_step)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert result.stdout == "1 train_step(params, x)\n"


WRONG_SAVES = {
    "save: the path is 3 of type int": lambda path: plait.save(3, predict, P, X),
    "has a zero in it": lambda path: plait.save(f"{path}\0.txt", predict, P, X),
    "the name of an entry is 3 of type int": lambda path: plait.save(path, {3: (predict, P, X)}),
    r"meta is \[1\] of type list": lambda path: plait.save(path, predict, P, X, meta=[1]),
    "licence is 3 of type int": lambda path: plait.save(path, predict, P, X, licence=3),
    "constants is 'no' of type str": lambda path: plait.save(path, predict, P, X, constants="no"),
    "save: the path is None": lambda path: plait.save(None, predict, P, X),
}
WRONG_LOADS = {
    "load: the path is 3 of type int": lambda path: plait.load(3),
    "verify is 'yes' of type str": lambda path: plait.load(path, verify="yes"),
    "constants is .* of type list": lambda path: plait.load(path, constants=[X]),
    "constants is {0: .* of type dict": lambda path: plait.load(path, constants={0: X}),
    "a constant nope was given": lambda path: plait.load(path, constants={"nope": X}),
    "with_constants: constants is": lambda path: plait.load(path)["f"].with_constants([X]),
}


@pytest.mark.parametrize("message", [*WRONG_SAVES, *WRONG_LOADS])
def test_wrong_arguments_are_refused_in_words(path, message):
    plait.save(path, {"f": (predict, P, X)})
    call = WRONG_SAVES.get(message) or WRONG_LOADS[message]
    with pytest.raises(plait.Error, match=message):
        call(path)
    assert len(plait.load(path)) == 1


def test_paths_and_texts_of_any_kind(tmp_path):
    path = str(tmp_path).encode() + b"/model-\xff.plait"
    plait.save(path, predict, P, X, meta={"\ud800": "\udfff", 1: 2})
    assert plait.load(path).meta == {"\\ud800": "\\udfff", "1": "2"}
