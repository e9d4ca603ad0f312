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
        plait.BackendError, match="(?s)there is no device tpu\n.*the devices are: cpu:0, standin:0"
    ):
        plait.devices("tpu")


def test_devices_count_their_memory():
    host, device = plait.devices()[:2]
    before = device.memory_stats()
    held = [there(np.ones(1 << 20)), there(np.ones(1 << 20))]
    after = device.memory_stats()
    assert after["bytes_in_use"] == before["bytes_in_use"] + (8 << 20)
    assert after["num_allocs"] == before["num_allocs"] + 2
    assert after["peak_bytes_in_use"] >= after["bytes_in_use"] <= after["pool_bytes"]
    assert after["bytes_limit"] == 1 << 31 and after["largest_alloc_size"] >= 4 << 20
    del held
    assert host.memory_stats()["bytes_in_use"] == plait.memory_stats()["bytes_in_use"]
    plait.clear_memory()


def test_a_lack_of_memory_names_who_holds_it():
    held = [there(np.ones(1 << 20)) for _ in range(3)]

    @plait.jit
    def grow(x):
        return pnp.broadcast_to(x, (1000, 1 << 20)) + 1.0  # jit lets other threads run meanwhile

    with pytest.raises(plait.MemoryError) as raised:
        grow(held[0])
    text = str(raised.value)
    assert "cannot allocate 4194304000 bytes on standin:0, where " in text, text
    assert "3 x 4194304 bytes: test_devices.py:" in text, text
    del held


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
    assert np.from_dlpack(x["a"], device="cpu").tolist() == X.tolist()
    assert plait.asarray(X, device=device).device == device
    assert plait.asarray(x["a"], device="cpu").tolist() == X.tolist()


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


def test_what_numpy_and_lists_hold_goes_where_the_other_operand_is():
    x = there(X)
    results = {
        "operator": (x + X, X + X),
        "reflected": (X - x, X - X),
        "function": (pnp.add(x, X.tolist()), X + X),
        "index": (x[np.array([1, 0])], X[[1, 0]]),
        "list": (x[[1, 1]], X[[1, 1]]),
        "where": (pnp.where(X > 2, x, 0), np.where(X > 2, X, 0)),
        "many": (pnp.concatenate([x, X]), np.concatenate([X, X])),
    }
    for name, (found, expected) in results.items():
        assert found.device == "standin:0", name
        np.testing.assert_array_equal(np.asarray(found), expected)


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


def test_a_jitted_function_may_put_values_on_other_devices():
    @plait.jit
    def f(x, w):
        h = pnp.tanh(x @ w)
        return plait.device_put(h, "standin:0") * 2, plait.device_put(h, "cpu").sum(), h

    x = pnp.asarray(X)
    w = pnp.asarray(W)
    doubled, total, h = f(x, w)
    assert (doubled.device, total.device, h.device) == ("standin:0", "cpu:0", "cpu:0")
    np.testing.assert_array_equal(np.asarray(doubled), 2 * np.asarray(h))
    assert "copied to standin:0" in f.explain(x, w)

    # Activations wait on the host until the backward pass wants them.
    def loss(w, x):
        h = pnp.tanh(x @ w)
        h = plait.device_put(plait.device_put(h, "cpu"), "standin:0")
        return pnp.mean(h**2)

    wanted = plait.grad(lambda w, x: pnp.mean(pnp.tanh(x @ w) ** 2))(w, x)
    got = plait.jit(plait.grad(loss))(there(W), there(X))
    assert got.device == "standin:0"
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=1e-6)

    with pytest.raises(plait.BackendError, match="add: its operands lie on two devices") as error:
        plait.jit(lambda x: plait.device_put(x, "standin:0") + x)(x)
    assert "test_devices.py" in str(error.value)


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
def test_what_failed_says_so_whenever_it_is_read(device):
    x, good = there(np.arange(4), device), plait.device_put(np.int32(2), device)
    bad = pnp.take(x, plait.device_put(np.int32(9), device))
    derived = [bad * 2, plait.jit(lambda v: v.sum() + 1)(bad)]
    fine = pnp.take(x, good)
    for _ in range(2):
        for one in [bad, *derived, bad]:
            with pytest.raises(IndexError, match="9"):
                np.asarray(one)
        with pytest.raises(IndexError, match="9"):
            plait.block_until_ready(bad)
        with pytest.raises(IndexError, match="9"):
            plait.jit(lambda v: plait.debug.print("{}", v))(bad)
        assert float(fine) == 2 and x.tolist() == [0, 1, 2, 3]
    assert float(pnp.take(x, good) + fine) == 4


@each_device
def test_a_failure_before_a_step_of_the_host_is_told_there(device):
    seen = []

    def f(x, i):
        y = pnp.take(x, i)
        return plait.host_call(lambda v: seen.append(v) or v, y, y)

    x = there(np.arange(4), device)
    with pytest.raises(IndexError, match="9"):
        plait.jit(f)(x, plait.device_put(np.int32(9), device))
    assert seen == [] and x.tolist() == [0, 1, 2, 3]
    with pytest.raises(IndexError, match="9"):  # behind the last such step
        plait.block_until_ready(
            plait.jit(lambda x, i: pnp.take(f(x, 0) + x, i))(
                x, plait.device_put(np.int32(9), device)
            )
        )
    plait.block_until_ready(x)


@each_device
def test_a_loop_that_failed_says_so_whenever_its_result_is_read(device):
    x = there(np.arange(4), device)
    i = plait.device_put(np.arange(7, 12, dtype="i4"), device)
    total = plait.jit(
        lambda x, i: plait.lax.fori_loop(0, 5, lambda k, c: c + pnp.take(x, i[k]), 0.0)
    )(x, i)
    for _ in range(3):
        with pytest.raises(IndexError):
            float(total)


def test_errors_name_the_line_and_the_transforms_of_the_call():
    def text_on(device):
        x = plait.device_put(np.arange(4, dtype="f4"), device)
        i = plait.device_put(np.int32(9), device)
        with pytest.raises(IndexError) as raised:
            result = plait.vmap(lambda x: pnp.take(x, i) * 2)(x[None])
            plait.vmap(lambda x: np.asarray(result))(x)  # another transform, and another line
        return str(raised.value)

    text = text_on("cpu")
    assert "pnp.take(x, i) * 2" in text and "\n  while applying vmap(<lambda" in text
    assert text_on("standin:0") == text == text_on("delayed:1")


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


# --- jit on a device ---


@each_device
def test_jit_takes_a_device(device):
    traces = []

    @plait.jit(device=device, static_argnames="n")
    def f(x, scale=1.0, n=2):
        traces.append(1)
        return x @ W * scale + n

    wanted = X @ W * 0.5 + 2
    for x in (X, there(X, device)):
        result = f(x, 0.5)
        assert result.device == device
        np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-6)
    assert len(traces) == 1 and f(X, 0.5, n=3).device == device and len(traces) == 2
    # Numbers and arrays of numbers alone, also those of another current device, go there.
    with plait.default_device("standin:1"):
        free = pnp.ones((2, 3))
    assert free.device == "standin:1" and f(free).device == device
    assert f(pnp.ones((2, 3))).device == device
    assert plait.jit(lambda: pnp.arange(3.0), device=device)().device == device
    assert (
        plait.jit(lambda t: t["a"] + t["b"][0], device=device)({"a": X, "b": (2, 1)}).device
        == device
    )
    assert "  standin  " in f.explain(X) and f.lower(X).compile()(X).device == device
    counting = plait.jit(lambda x, n: x * len(range(n)), device=device, static_argnums=1)
    with plait.disable_jit():
        assert counting(X, 3).device == device and counting(X, n=3).tolist() == (X * 3).tolist()


def test_jit_with_a_device_refuses_arrays_of_another():
    f = plait.jit(lambda x, p: x + p["w"], device="standin")
    with pytest.raises(plait.BackendError) as raised:
        f(there(X), {"w": pnp.asarray(X)})
    text = str(raised.value)
    assert (
        "argument p['w'], f32[2,3], lies on cpu:0, and jit was given device=\"standin:0\"" in text
    )
    assert text.endswith('fix: move it: device_put(x, "standin:0"), or leave out device')
    with pytest.raises(plait.BackendError, match="argument x, .* lies on standin:1"):
        f(there(X, "standin:1"), {"w": X})
    on_host = plait.jit(lambda x: x + 1, device="cpu")
    assert on_host(X).device == "cpu:0"
    with pytest.raises(plait.BackendError, match="lies on delayed:0"):
        on_host(there(X, "delayed"))
    with pytest.raises(plait.BackendError, match="there is no device tpu:3"):
        plait.jit(lambda x: x, device="tpu:3")


@each_device
def test_jit_with_a_device_under_transforms(device):
    f = plait.jit(lambda x: pnp.sum(pnp.tanh(x @ W)), device=device)
    wanted = plait.grad(lambda x: pnp.sum(pnp.tanh(x @ W)))(pnp.asarray(X))
    np.testing.assert_allclose(np.asarray(plait.grad(f)(there(X, device))), wanted, rtol=1e-6)
    # What moves there moves back.
    free = pnp.ones((2, 3))
    gradient = plait.grad(f)(free)
    assert plait.vmap(f)(there(X, device)).device == device
    np.testing.assert_allclose(
        np.asarray(gradient), plait.grad(lambda x: pnp.sum(pnp.tanh(x @ W)))(free), rtol=1e-6
    )
    assert plait.jit(lambda x: f(x) * 2)(there(X, device)).device == device
    # Within a function that runs elsewhere, it puts its arguments there.
    within = plait.jit(lambda x: f(x) * 2)(pnp.asarray(X))
    assert within.device == device
    np.testing.assert_allclose(float(within), 2 * float(f(X)), rtol=1e-6)


@each_device
def test_jit_with_named_sizes_on_a_device(device):
    for options in ({}, {"buckets": True}, {"bound": {"b": 8}}):
        for f in (
            plait.jit(lambda x, y: (x * 2).sum(0) + y, sizes=("b 3", None), **options),
            plait.jit(
                lambda x, y: (x * 2).sum(0) + y, sizes=("b 3", None), device=device, **options
            ),
        ):
            for b in (1, 3, 5):
                result = f(there(np.ones((b, 3)), device), 1.0)
                assert result.device == device and result.tolist() == [2 * b + 1] * 3


@each_device
def test_jit_with_a_device_donates(device):
    step = plait.jit(lambda x, g: x - 0.1 * g, device=device, donate_argnums=0)
    x = there(X, device)
    y = step(x, X)
    assert y.device == device
    np.testing.assert_allclose(np.asarray(y), X - 0.1 * X, rtol=1e-6)
    with pytest.raises(plait.ValueError, match="donated"):
        x.tolist()
    kept = np.ones((2, 3), "f4")
    assert step(kept, X).device == device and kept.tolist() == np.ones((2, 3)).tolist()


# --- DLPack ---


class Foreign:
    """An array of another library, on memory of plait's, that keeps what it was asked for."""

    def __init__(self, array, stream=None):
        self.array, self.asked, self.stream = array, [], stream

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **arguments):
        self.asked.append(arguments)
        return self.array.__dlpack__(**arguments)


class Old(Foreign):
    def __dlpack__(self, stream=None):
        return super().__dlpack__(stream=stream)


@each_device
def test_dlpack_shares_memory_on_a_device(device):
    x = there(X, device)
    number = {"standin:0": (12, 0), "delayed:1": (16, 1)}[device]
    assert x.__dlpack_device__() == number
    for kind in (Foreign, Old):
        for y in (x * 2, (x * 2).T, (x * 2)[:, 1:]):
            foreign = kind(y)
            taken = plait.from_dlpack(foreign)
            assert taken.device == device and (taken + 1).tolist() == (y + 1).tolist()
            assert isinstance(foreign.asked[0]["stream"], int)
    # It is not written to, and it stays as long as it is used.
    owner = x + 0
    taken = plait.from_dlpack(Foreign(owner))
    result = plait.jit(lambda v: v * 3, donate_argnums=0)(taken)
    assert owner.tolist() == X.tolist() and result.tolist() == (X * 3).tolist()
    results = []
    for i in range(20):
        results.append(plait.from_dlpack(Foreign(x + i)) * 2)
    for i, result in enumerate(results):
        np.testing.assert_array_equal(np.asarray(result), (X + np.float32(i)) * 2)


@each_device
def test_dlpack_streams(device):
    x = there(X, device) + 1
    for stream in (None, -1, 1, 2, 12345):
        taken = plait.from_dlpack(x.__dlpack__(stream=stream, max_version=(1, 1)))
        assert taken.device == device and taken.tolist() == (X + 1).tolist()
    with pytest.raises(plait.ValueError, match="stream=0"):
        x.__dlpack__(stream=0)
    with pytest.raises(TypeError):
        x.__dlpack__(stream="main")
    bad = pnp.take(x, plait.device_put(np.int32(9), device))
    with pytest.raises(IndexError, match="9"):
        bad.__dlpack__()  # which waits


@each_device
def test_dlpack_between_a_device_and_the_host(device):
    x = there(X, device)
    for copy in (None, True):
        taken = plait.from_dlpack(x.__dlpack__(dl_device=(1, 0), copy=copy))
        assert taken.device == "cpu:0" and taken.tolist() == X.tolist()
        assert plait.from_dlpack(Foreign(x), device="cpu", copy=copy).device == "cpu:0"
        assert plait.from_dlpack(x, device=(1, 0), copy=copy).device == "cpu:0"
        assert plait.from_dlpack(X.copy(), device=device, copy=copy).tolist() == X.tolist()
    with pytest.raises(BufferError, match="wanted on the host without a copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(ValueError, match="without a copy"):
        plait.from_dlpack(Foreign(x), device="cpu", copy=False)
    with pytest.raises(BufferError, match=f"on {device}, and it is wanted on cuda:1"):
        x.__dlpack__(dl_device=(2, 1))
    copied = plait.from_dlpack(Foreign(x), copy=True)
    assert copied.device == device and copied.tolist() == X.tolist()
    assert plait.from_dlpack(x) is x and plait.from_dlpack(x, copy=True) is not x
    assert plait.from_dlpack(x, copy=False) is x


def test_dlpack_of_devices_that_are_not_there():
    class Elsewhere(Foreign):
        def __dlpack_device__(self):
            return (10, 3)

        def __dlpack__(self, **arguments):
            assert arguments["dl_device"] == (1, 0)
            return super().__dlpack__(max_version=(1, 0))

    with pytest.raises(BufferError) as raised:
        plait.from_dlpack(Elsewhere(pnp.asarray(X)))
    text = str(raised.value)
    assert "the array is on rocm:3, which plait does not have here" in text
    assert (
        'fix: give device="cpu" for a copy on the host; the devices are: cpu:0, standin:0' in text
    )
    assert plait.from_dlpack(Elsewhere(pnp.asarray(X)), device="cpu").tolist() == X.tolist()
    with pytest.raises(plait.BackendError, match="there is no device metal:0"):
        plait.from_dlpack(X, device=(8, 0))


# --- What there is ---


def test_info_says_which_devices_there_are():
    line = plait.info()["devices"]
    assert line.startswith("cpu:0, standin:0 (a stand-in for tests), standin:1")
    if not any(one.platform == "cuda" for one in plait.devices()):
        for name, reason in plait._plait.missing_backends():
            if name == "cuda":
                assert line.endswith(f"; cuda: {reason}")


@each_device
def test_elements_and_views_of_large_arrays(device):
    host = np.arange(64 * 32, dtype="f4").reshape(64, 32)
    x = there(host, device)
    element = x[3, 5]
    assert element.device == device and float(element) == host[3, 5]
    assert float(x[0, 0] + x[-1, -1]) == host[-1, -1]
    row = x[7]
    x[7, 2] = 100.0
    x[9] += 1.0
    host[7, 2] = 100.0
    host[9] += 1.0
    np.testing.assert_array_equal(np.asarray(x), host)
    np.testing.assert_array_equal(np.asarray(row), host[7])
    assert float(element) == host[3, 5]
    x[::2, 1:3] *= 2.0
    host[::2, 1:3] *= 2.0
    np.testing.assert_array_equal(np.asarray(x), host)
