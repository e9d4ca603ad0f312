"""Devices: where arrays live, what moves by itself, and what a device gives: the numbers of the CPU.

The device is the stand-in of tests/standin, whose memory faults when the host reads it.
"""

# SPDX-License-Identifier: Apache-2.0

import ctypes
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import plait
import plait.numpy as pnp

BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", "build")).resolve()
MODULE = BUILD / "tests" / "plait_standin.so"

DEVICES = ["standin:0", "delayed:1"]
each_device = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(scope="module", autouse=True)
def module():
    return ctypes.CDLL(str(MODULE))


def there(x, device="standin:0"):
    return plait.device_put(np.asarray(x, "f4"), device)


X = np.arange(6, dtype="f4").reshape(2, 3) / 7
W = np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4)


def test_devices_have_names():
    names = plait.devices()
    assert names == ["cpu:0", "standin:0", "standin:1", "delayed:0", "delayed:1"]
    assert [one.platform for one in names][:2] == ["cpu", "standin"] and names[2].id == 1
    assert plait.devices("delayed") == ["delayed:0", "delayed:1"]
    assert names[1].device_kind == "a stand-in for tests" and names[0].device_kind == "cpu"
    with pytest.raises(
        plait.BackendError, match="(?s)there is no device cuda\n.*the devices are: cpu:0, standin:0"
    ):
        plait.devices("cuda")


@each_device
def test_arrays_go_and_come_back(device):
    x = plait.device_put({"a": X, "b": (1.5, np.arange(4))}, device)
    assert x["a"].device == device == x["b"][0].device
    np.testing.assert_array_equal(np.asarray(x["a"]), X)
    assert plait.device_get(x)["b"][0] == 1.5
    back = plait.device_put(x["a"], "cpu")
    assert back.device == "cpu:0" and np.asarray(back).tolist() == X.tolist()
    assert x["a"].to_device(device) is x["a"]
    assert pnp.asarray(X, device=device).device == device
    assert pnp.zeros((2, 3), device=device).device == device
    assert pnp.zeros_like(x["a"]).device == device
    assert repr(x["a"]) == repr(pnp.asarray(X)) and x["a"].tolist() == X.tolist()
    assert x["a"][1, 2].item() == X[1, 2] and float(x["a"].sum()) == pytest.approx(X.sum())
    assert pickle.loads(pickle.dumps(x["a"])).tolist() == X.tolist()
    assert memoryview(x["a"]).tolist() == X.tolist()
    assert np.from_dlpack(x["a"]).tolist() == X.tolist()


@each_device
def test_operations_run_where_their_operands_are(device):
    x = there(X, device)
    for result in (x + 1, 2.0 * x, x @ there(W, device), pnp.where(x > 0.2, x, -1.0), x.T, x[0]):
        assert result.device == device
    np.testing.assert_array_equal(np.asarray(x * pnp.arange(3.0)), X * np.arange(3, dtype="f4"))
    assert (x[:, pnp.arange(2)]).tolist() == X[:, :2].tolist()
    assert x[x > 0.2].tolist() == X[X > 0.2].tolist()
    x[0] = 5.0
    assert x.device == device and x.tolist()[0] == [5.0] * 3


def test_two_devices_are_an_error_that_names_both():
    with pytest.raises(plait.BackendError) as raised:
        there(X) + pnp.asarray(X)
    text = str(raised.value)
    assert text.startswith(
        "add: its operands lie on two devices: argument 0, f32[2,3], on standin:0, and argument 1, f32[2,3], on cpu:0\n"
    )
    assert text.endswith('fix: move one of them: device_put(x, "standin:0")')
    with pytest.raises(plait.BackendError, match="f: its operands lie on two devices"):

        @plait.jit
        def f(a, b):
            return a * b

        f(there(X), pnp.asarray(X))
    with pytest.raises(plait.BackendError, match="on standin:0, and argument 1.*on standin:1"):
        there(X) + there(X, "standin:1")


@each_device
def test_transforms_give_what_they_give_on_the_cpu(device):
    def loss(w, x):
        return pnp.mean(pnp.tanh(x @ w) ** 2)

    def both(f, *arguments):
        wanted = f(*map(pnp.asarray, arguments))
        for g in (f, plait.jit(f)):
            got = g(*(there(one, device) for one in arguments))
            assert got.device == device
            np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-6, atol=1e-7)

    both(plait.grad(loss), W, X)
    both(lambda x: plait.vmap(lambda row: pnp.cumsum(row) * row.max())(x), X)
    both(plait.hessian(lambda x: pnp.sum(x**3)), X[0])
    both(lambda x: plait.lax.scan(lambda c, v: (c * 0.5 + v, c), x[0, 0], x[0])[1], X)
    both(lambda x: plait.lax.fori_loop(0, 5, lambda i, v: v.at[i % 2].add(1.0), x), X)
    both(lambda x: plait.lax.while_loop(lambda v: v.sum() < 9, lambda v: v + 1, x), X)
    both(
        lambda x: plait.vmap(
            lambda v: plait.lax.while_loop(lambda u: u[0] < 2, lambda u: u + 0.5, v)
        )(x),
        X,
    )
    both(lambda x: plait.vmap(lambda v: plait.lax.cond(v[0] > 0.1, pnp.sin, pnp.cos, v))(x), X)
    both(plait.grad(lambda x: pnp.sum(plait.lax.fori_loop(0, 3, lambda i, v: v * v + 0.1, x))), X)


def test_a_jitted_function_runs_where_its_arguments_are():
    traces = []

    @plait.jit
    def f(x):
        traces.append(1)
        return x @ W + 1  # W is a constant of the function

    assert f(X).device == "cpu:0" and f(there(X)).device == "standin:0"
    assert f(there(X, "delayed:0")).device == "delayed:0" and len(traces) == 1
    assert "  standin  " in f.explain(there(X)) and "  standin  " not in f.explain(X)
    with pytest.raises(plait.BackendError, match="a program for cpu:0 puts a value on standin:0"):
        plait.jit(lambda x: plait.device_put(x, "standin:0") + 1)(X)


def test_the_derivative_of_a_move_goes_back():
    x = pnp.asarray(X)
    gradient = plait.grad(lambda x: pnp.sum(plait.device_put(x, "standin:0") ** 2))(x)
    assert gradient.device == "cpu:0"
    np.testing.assert_allclose(np.asarray(gradient), 2 * X)
    y = plait.vmap(lambda row: plait.device_put(row, "standin:0") * 2)(x)
    assert y.device == "standin:0" and y.tolist() == (2 * X).tolist()


def test_the_default_device():
    with plait.default_device("standin:1"):
        assert (
            pnp.zeros(3).device == "standin:1"
            and plait.random.normal(plait.random.key(0), (2,)).device == "standin:1"
        )
        assert plait.jit(lambda: pnp.arange(3) * 2)().device == "standin:1"
        with plait.default_device("cpu"):
            assert (pnp.arange(3) + 1).device == "cpu:0"
    assert pnp.zeros(3).device == "cpu:0"
    # Numbers alone move; they were never put anywhere.
    with plait.default_device("standin:1"):
        free = pnp.arange(3.0)
    assert (free + there(X)).device == "standin:0"


@each_device
def test_random_numbers_are_those_of_the_cpu(device):
    key = plait.random.key(3)
    with plait.default_device(device):
        drawn = plait.random.normal(plait.random.key(3), (5,))
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(plait.random.normal(key, (5,))))


@each_device
def test_the_tape_records_there(device):
    w = plait.variable(there(W, device))
    loss = pnp.sum(pnp.tanh(there(X, device) @ w))
    loss.backward()
    assert w.grad.device == device
    wanted = plait.grad(lambda w: pnp.sum(pnp.tanh(pnp.asarray(X) @ w)))(pnp.asarray(W))
    np.testing.assert_allclose(np.asarray(w.grad), np.asarray(wanted), rtol=1e-6)


@each_device
def test_errors_come_at_the_next_wait(device):
    x = there(np.arange(4), device)
    bad = pnp.take(x, plait.device_put(np.int32(9), device)) * 2
    with pytest.raises(IndexError, match="9"):
        plait.block_until_ready(bad)
    plait.block_until_ready(x)
    assert float(pnp.take(x, plait.device_put(np.int32(2), device))) == 2


@each_device
def test_what_belongs_to_the_host_runs_there(device, capsys):
    def f(x):
        plait.debug.print("x is {}", x)
        plait.check(pnp.all(x >= 0), "x is {}", x)
        return plait.host_call(lambda v: np.sqrt(v), x, x)

    x = there([4.0, 9.0], device)
    assert plait.jit(f)(x).tolist() == [2.0, 3.0] and "x is [4. 9.]" in capsys.readouterr().out
    with pytest.raises(plait.ValueError, match=r"x is \[-1.0, 4.0\]"):
        plait.jit(f)(there([-1.0, 4.0], device))


def test_programs_are_saved_and_run_there(tmp_path):
    plait.save(tmp_path / "f.plait", lambda x: x @ W, X)
    program = plait.load(tmp_path / "f.plait")
    result = program(there(X))
    assert result.device == "standin:0"
    np.testing.assert_allclose(np.asarray(result), X @ W, rtol=1e-6)


def test_a_profile_and_the_first_nan():
    measured = plait.profile(lambda x: pnp.sum(pnp.sin(x) @ W), there(X))
    assert list(measured.by("backend")) == ["standin"] and measured.seconds > 0
    found = plait.first_nan(lambda x: pnp.log(x) * 2, there([1.0, -1.0]))
    assert found is not None and "log" in str(found)


def test_conformance_on_a_device():
    report = plait.conformance(
        "standin", ["add", "sort", "dot_general"], modules=MODULE, device="delayed:1"
    )
    assert report.passed() and {row.state for row in report.rows} == {"passed"}
    with pytest.raises(plait.BackendError, match="there is no device nowhere"):
        plait.conformance("standin", device="nowhere")


def test_a_forked_child_is_refused():
    code = (
        "import ctypes, os, plait, numpy as np\n"
        f"ctypes.CDLL({str(MODULE)!r})\n"
        "x = plait.device_put(np.ones(3, 'f4'), 'standin:0')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        x + 1\n"
        "    except plait.BackendError as error:\n"
        "        os._exit(0 if 'child of a fork' in str(error) else 2)\n"
        "    os._exit(1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert (x + 1).tolist() == [2, 2, 2]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
