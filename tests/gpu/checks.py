"""What a GPU does besides kernels: waiting, memory, streams, other libraries, errors, first results.

A line of JSON for each check. They run in one process, those last that a broken device would hurt.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import plait
import plait.numpy as pnp

IS_SMALL = "small" in sys.argv[1:]
DEVICE = "cuda:0"
CHECKS = []


class Skipped(Exception):
    pass


def check(function):
    CHECKS.append(function)
    return function


def there(array):
    return plait.asarray(np.asarray(array), device=DEVICE)


def expect(error, function):
    try:
        function()
    except error as found:
        return str(found)
    raise AssertionError(f"no {error.__name__}")


@check
def a_first_kernel():
    x = np.arange(1 << (10 if IS_SMALL else 20), dtype="f4")
    f = plait.jit(lambda x: pnp.sqrt(x) * 2 + 1)
    assert np.array_equal(np.asarray(f(there(x))), np.asarray(f(x)))


@check
def calls_return_before_their_work_is_done():
    side, steps = (16, 3) if IS_SMALL else (4096, 40)
    x = there(np.ones((side, side), "f4") / side)
    f = plait.jit(lambda x: [x := x @ x for _ in range(steps)][-1])
    plait.block_until_ready(f(x))
    begin = time.perf_counter()
    y = f(x)
    returned = time.perf_counter() - begin
    plait.block_until_ready(y)
    whole = time.perf_counter() - begin
    assert IS_SMALL or returned < whole / 4, (returned, whole)
    return {"returned_us": returned * 1e6, "whole_us": whole * 1e6}


@check
def a_captured_step_gives_what_the_first_call_gave():
    def step(w, x):
        return w - 0.1 * plait.grad(lambda w: pnp.mean(pnp.tanh(x @ w) ** 2))(w)

    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((8, 4)).astype("f4"), rng.standard_normal((16, 8)).astype("f4")
    jitted, on_device, on_host = plait.jit(step), there(w), w
    for _ in range(3 if IS_SMALL else 50):
        on_device, on_host = jitted(on_device, there(x)), np.asarray(step(on_host, x))
    assert np.allclose(np.asarray(on_device), on_host, rtol=1e-4, atol=1e-5)


@check
def two_threads_have_their_own_numbers():
    f = plait.jit(lambda x: pnp.cumsum(x * 2, 0))
    inputs = [np.full(500, i + 1.0, "f4") for i in range(2)]
    wrong = []

    def work(x):
        for _ in range(2 if IS_SMALL else 200):
            if not np.allclose(np.asarray(f(there(x))), np.cumsum(x * 2)):
                wrong.append(x[0])

    threads = [threading.Thread(target=work, args=(x,)) for x in inputs]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong, wrong


@check
def results_repeat_to_the_bit():
    x = there(np.random.default_rng(0).standard_normal(1 << (8 if IS_SMALL else 22), "f4"))
    f = plait.jit(lambda x: (pnp.sum(x), pnp.cumsum(x)[-1], pnp.max(x)))
    first = [np.asarray(v).tobytes() for v in f(x)]
    for _ in range(2 if IS_SMALL else 20):
        assert [np.asarray(v).tobytes() for v in f(x)] == first


def torch_of_device():
    try:
        import torch
    except ImportError:
        raise Skipped("PyTorch is not installed") from None
    if not torch.cuda.is_available():
        raise Skipped("PyTorch sees no device")
    return torch


@check
def arrays_go_to_torch_and_come_back_without_a_copy():
    torch = torch_of_device()
    x = there(np.arange(6, dtype="f4"))
    t = torch.from_dlpack(x)
    assert t.device.type == "cuda" and t.cpu().tolist() == np.asarray(x).tolist()
    back = plait.from_dlpack(t * 2)
    assert back.device == DEVICE and np.asarray(back).tolist() == (np.arange(6) * 2).tolist()


@check
def streams_of_torch_and_plait_wait_for_each_other():
    torch = torch_of_device()
    f = plait.jit(lambda x: x * 2 + 1)
    stream = torch.cuda.Stream()
    for i in range(200):
        with torch.cuda.stream(stream):
            t = torch.full((1 << 20,), float(i), device="cuda") + 1
            y = torch.from_dlpack(f(plait.from_dlpack(t))) + 1
            assert float(y[-1]) == (i + 1) * 2 + 2 and float(y[0]) == (i + 1) * 2 + 2


@check
def torch_goes_on_beside_plait():
    torch = torch_of_device()
    a = torch.randn(1000, 1000, device="cuda")
    want = (a @ a).sum().item()
    plait.block_until_ready(plait.jit(lambda x: x @ x)(there(np.ones((1000, 1000), "f4"))))
    assert (a @ a).sum().item() == want and torch.cuda.current_device() == 0


@check
def an_index_out_of_range_is_told_at_the_next_wait():
    x, i = there(np.arange(4, dtype="f4")), there(np.array([100]))
    f = plait.jit(lambda x, i: x[i])
    text = expect(plait.Error, lambda: np.asarray(f(x, i)))
    assert "100" in text, text
    assert np.asarray(f(x, there(np.array([2])))).tolist() == [2.0]
    return {"text": text[:300]}


@check
def memory_that_is_not_there_is_an_error_and_no_end():
    if IS_SMALL:
        raise Skipped("takes all memory of the device")
    held = []

    def take():
        for _ in range(1000):
            held.append(
                plait.block_until_ready(plait.jit(lambda x: x + 1)(there(np.ones(1, "f4"))))
            )
            held.append(pnp.zeros((1 << 30,), dtype="f4", device=DEVICE))

    text = expect(plait.Error, take)
    count = len(held)
    held.clear()
    plait.clear_memory()  # others want some
    assert np.asarray(there(np.ones(3)) + 1).tolist() == [2, 2, 2]
    return {"text": text[:400], "arrays": count}


@check
def a_fork_is_refused():
    code = (
        "import os, sys, numpy as np, plait\n"
        "x = plait.asarray(np.ones(3), device='cuda:0')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        np.asarray(x + 1)\n"
        "    except plait.Error:\n"
        "        os._exit(7)\n"
        "    os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "7", done.stdout + done.stderr[-500:]


FIRST = """
import sys, time, numpy as np
sys.path[:0] = sys.argv[1:3]
import contestants, rows_training
library = contestants.load("plait")
arrays = library.arrays(tuple(rows_training.network(int(sys.argv[3]))))
library.sync(arrays)
begin = time.perf_counter()
call = rows_training.train(library, *arrays)
library.sync(call())
print(time.perf_counter() - begin)
"""


@check
def a_first_result_cold_and_from_disk():
    """Of the MLP step: at most 1 s, and 0.15 s with what an earlier process left."""
    if IS_SMALL and "first" not in sys.argv[1:]:
        raise Skipped("the compiler of a rehearsal takes 20 s")
    here = os.path.dirname(os.path.abspath(__file__))
    words = [here, os.path.join(here, "..", "bench"), "16" if IS_SMALL else "128"]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for when in ("cold", "from disk"):
            done = subprocess.run(
                [sys.executable, "-c", FIRST, *words],
                capture_output=True,
                text=True,
                timeout=200,
                env={**os.environ, "PLAIT_CACHE_DIR": folder},
            )
            assert done.returncode == 0, done.stderr[-800:]
            found[when] = float(done.stdout)
    found["reached"] = found["cold"] <= 1 and found["from disk"] <= 0.15
    return found


def main():
    words = [word for word in sys.argv[1:] if word != "small"]
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        if words and not any(word in name for word in words):
            continue
        try:
            facts = {"state": "passed", **(function() or {})}
        except Skipped as skipped:
            facts = {"state": "skipped", "why": str(skipped)}
        except BaseException as error:
            facts = {"state": "failed", "why": f"{type(error).__name__}: {error}"[:1500]}
        print(json.dumps({"what": name, **facts}), flush=True)


main()
