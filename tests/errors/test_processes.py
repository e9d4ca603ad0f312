"""The ends of memory and of processes, forks, threads, signals and cycles, around programs of plait."""

# SPDX-License-Identifier: Apache-2.0
import gc
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import _plait, grad, jit, make_jaxpr, mask, vmap


def program(text, **environment):
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def test_out_of_memory_is_an_error_and_no_end():
    output = program("""
        import resource
        import numpy as np
        import plait, plait.numpy as jnp
        from plait import grad, jit, vmap
        jit(lambda x: x + 1)(jnp.ones(10))
        grad(lambda x: jnp.sum(x @ x))(jnp.ones((4, 4)))
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20),) * 2)
        calls = [
            lambda: jnp.ones(1 << 33) + 1,
            lambda: jit(lambda x: jnp.outer(x, x).sum() * jnp.outer(x, x))(jnp.ones(1 << 14)),
            lambda: jnp.sort(jnp.arange(40 << 20)),
            lambda: grad(lambda x: jnp.sum(jnp.outer(x, x) ** 2))(jnp.ones(1 << 14)),
            lambda: vmap(lambda x: jnp.ones(1 << 16) * x)(jnp.ones(1 << 14)),
            lambda: [jnp.ones(1 << 20) + i for i in range(1000)],
        ]
        for call in calls:
            try:
                call()
                print("no error")
            except plait.MemoryError as error:
                assert isinstance(error, MemoryError) and "fix: " in str(error)
                print("refused")
        assert float(jit(lambda x: (x @ x))(jnp.ones(10))) == 10
    """)
    assert output.split("\n")[:-1] == ["refused"] * 6, output


def test_the_interpreter_ends_while_arrays_threads_and_traces_live():
    output = program("""
        import atexit, gc, threading, time
        import plait, plait.numpy as jnp
        from plait import grad, jit
        kept = []
        try:
            jit(lambda x: kept.append(x) or x)(1.0)
        except plait.TracerError:
            pass
        p = plait.Primitive("at_the_end")
        p.abstract(lambda a: a)
        p.eval(lambda a: a + 1)
        f = jit(lambda x: p(x))
        class Late:
            def __del__(self):
                jnp.ones(3) + 1
        late, itself = Late(), []
        itself.append((itself, f, jnp.ones(3)))
        atexit.register(lambda: print(float(f(1.0)), float(jnp.ones(3).sum())))
        def busy():
            while True:
                jnp.sum(jnp.ones(100) + 1)
        for _ in range(3):
            threading.Thread(target=busy, daemon=True).start()
        time.sleep(0.2)
    """)
    assert "2.0 3.0" in output and "Fatal" not in output


def test_the_interpreter_ends_while_loops_are_compiled():
    for _ in range(8):
        text = """
            import plait, plait.numpy as jnp
            def loss(w, x):
                for layer in w:
                    x = jnp.tanh(x @ layer)
                return jnp.mean((x - 1) ** 2)
            w = [jnp.ones((64, 64)) * 0.01 for _ in range(3)]
            for size in range(200, 1000, 200):
                x = jnp.ones((size, 64))
                step = plait.jit(plait.value_and_grad(loss))
                for _ in range(12):
                    value, slope = step(w, x)
                    w = [a - 0.1 * b for a, b in zip(w, slope)]
        """
        program(text, PLAIT_CACHE_DIR="0")  # so that there is something to compile


def test_a_forked_child_computes():
    f = jit(lambda x: jnp.sum(jnp.tanh(x @ x)))
    big = jnp.ones((200, 200))
    wanted = float(f(big))
    child = os.fork()
    if child == 0:
        try:
            good = float(f(big)) == wanted and float(grad(lambda x: x * x)(3.0)) == 6
            os._exit(0 if good else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0 and float(f(big)) == wanted


def test_eight_threads_use_arrays_and_one_jitted_function(unharmed, at_once):
    w = jnp.asarray(np.linspace(-1, 1, 64, dtype="float32").reshape(8, 8))
    f = jit(lambda x: jnp.sum(jnp.tanh(x @ w)))

    def work(seed):
        choose = random.Random(seed)
        for i in range(25):
            x = np.random.default_rng(i).random((choose.choice([1, 3, 7]), 8), "float32")
            wanted = np.tanh(x @ np.asarray(w)).sum()
            assert abs(float(f(x)) - wanted) < 1e-4
            assert np.allclose(grad(lambda z: jnp.sum(z * z))(jnp.asarray(x)), 2 * x)
            assert np.allclose(jit(lambda z: z + seed)(x), x + seed)
            assert float(mask(jnp.sum, "n")(jnp.arange(5.0), n=i % 6)) == sum(range(i % 6))
            with pytest.raises(plait.ShapeError):
                jnp.asarray(x) @ jnp.ones(3)
            if i % 10 == 0:
                f.clear_cache()
            repr(f.cache)

    at_once([lambda seed=seed: work(seed) for seed in range(8)])
    unharmed()


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(),
    reason="signals go to the main thread",
)
def test_interrupts_at_any_moment(unharmed):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    choose = random.Random(0)
    f = jit(lambda x: jnp.sum(jnp.tanh(x) @ x.T))
    count = 0
    try:
        while count < 200:
            try:
                signal.setitimer(signal.ITIMER_REAL, choose.random() * 0.003 + 0.0001)
                for n in range(3, 10_000):
                    x = jnp.ones((3 + n % 3, 4))
                    f(x)
                    vmap(grad(lambda r: jnp.sum(r * r)))(x)
                    make_jaxpr(lambda a: a @ a.T)("n d")
            except KeyboardInterrupt:
                count += 1
            assert not _plait.is_tracing()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    unharmed()


def test_cycles_through_jitted_methods_are_collected():
    import weakref

    class Model:
        def __init__(self):
            self.w, self.run = jnp.ones(3), jit(self.apply)

        def apply(self, x):
            return x + self.w

    model = Model()
    model.run(jnp.ones(3))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
