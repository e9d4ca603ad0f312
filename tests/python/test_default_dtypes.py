"""plait.default_dtypes: what it governs, what it leaves alone, and who sees it.

NumPy's own defaults are float64 and int64: with these, dtypes and values are NumPy's, over the tables of functions.

SPDX-License-Identifier: Apache-2.0
"""

import asyncio
import threading

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import default_dtypes, grad, jit, lax, nn, random, vmap
from test_numpy_breadth import OTHERS, SMOOTH, expected, ids

WIDE = {"float": "float64", "int": "int64"}
KEY = random.key(0)


def wide():
    return default_dtypes(**WIDE)


# What is made, the dtype outside of the scope, and inside it.
MADE = {
    "zeros": (lambda: pnp.zeros(2), "float32", "float64"),
    "arange": (lambda: pnp.arange(3), "int32", "int64"),
    "arange of floats": (lambda: pnp.arange(0.0, 1.0, 0.5), "float32", "float64"),
    "linspace": (lambda: pnp.linspace(0, 1, 3), "float32", "float64"),
    "eye": (lambda: pnp.eye(2), "float32", "float64"),
    "full": (lambda: pnp.full(2, 7), "int32", "int64"),
    "full of floats": (lambda: pnp.full(2, 7.0), "float32", "float64"),
    "full of complex": (lambda: pnp.full(2, 1j), "complex64", "complex128"),
    "list": (lambda: pnp.asarray([1, 2]), "int32", "int64"),
    "list of floats": (lambda: pnp.array([1.0, 2]), "float32", "float64"),
    "list of complex": (lambda: pnp.array([1j]), "complex64", "complex128"),
    "range": (lambda: pnp.asarray(range(3)), "int32", "int64"),
    "float": (lambda: pnp.ones(2, float), "float32", "float64"),
    "int": (lambda: pnp.ones(2, "int"), "int32", "int64"),
    "complex": (lambda: pnp.ones(2, complex), "complex64", "complex128"),
    "normal": (lambda: random.normal(KEY, (2,)), "float32", "float64"),
    "randint": (lambda: random.randint(KEY, (2,), 0, 9), "int32", "int64"),
    "sin of integers": (lambda: pnp.sin(pnp.ones(2, "int32")), "float32", "float64"),
    "quotient of integers": (lambda: pnp.ones(2, "int32") / 2, "float32", "float64"),
    "integers and a float": (lambda: pnp.ones(2, "int32") * 1.5, "float32", "float64"),
    "integers and a complex": (lambda: pnp.ones(2, "int32") * 1.5j, "complex64", "complex128"),
    "bools and an integer": (lambda: pnp.ones(2, bool) + 1, "int32", "int64"),
    "mean of integers": (lambda: pnp.mean(pnp.arange(3)), "float32", "float64"),
    "sum of small": (lambda: pnp.sum(pnp.ones(2, "int8")), "int32", "int64"),
    "sum of small unsigned": (lambda: pnp.sum(pnp.ones(2, "uint8")), "uint32", "uint64"),
    "argmax": (lambda: pnp.argmax(pnp.ones(2)), "int32", "int64"),
    "lax.argmax": (lambda: lax.argmax(pnp.ones(2), 0), "int32", "int64"),
    "argsort": (lambda: pnp.argsort(pnp.ones(2)), "int32", "int64"),
    "nonzero": (lambda: pnp.nonzero(pnp.ones(2))[0], "int32", "int64"),
    "count": (lambda: pnp.count_nonzero(pnp.ones(2)), "int32", "int64"),
    "searchsorted": (lambda: pnp.searchsorted(pnp.arange(3.0), 1.0), "int32", "int64"),
    "indices": (lambda: pnp.indices((2,)), "int32", "int64"),
    "one_hot": (lambda: nn.one_hot(pnp.arange(2), 3), "float32", "float64"),
    "relu of integers": (lambda: nn.sigmoid(pnp.arange(2)), "float32", "float64"),
    "loop": (lambda: lax.fori_loop(0, 3, lambda i, x: x + i, pnp.zeros(())), "float32", "float64"),
    # These are not governed: arrays keep their dtypes, and numbers yield to them.
    "float32 and a float": (lambda: pnp.ones(2, "float32") * 1.5, "float32", "float32"),
    "sin of float16": (lambda: pnp.sin(pnp.ones(2, "float16")), "float16", "float16"),
    "int8 and an integer": (lambda: pnp.ones(2, "int8") + 1, "int8", "int8"),
    "like": (lambda: pnp.zeros_like(pnp.ones(2, "float32")), "float32", "float32"),
    "NumPy's": (lambda: pnp.asarray(np.ones(2, np.float32)), "float32", "float32"),
    "named": (lambda: pnp.zeros(2, "float32"), "float32", "float32"),
    "sum": (lambda: pnp.sum(pnp.ones(2, "float32")), "float32", "float32"),
    "number": (lambda: pnp.asarray(2.0), "float64", "float64"),
}


@pytest.mark.parametrize("what", MADE)
def test_what_is_governed(what):
    make, narrow, broad = MADE[what]
    for make in (make, jit(make)):  # the same jitted function: it is traced for both
        assert make().dtype == narrow
        with wide():
            assert make().dtype == broad
        assert make().dtype == narrow


# plait's results have fixed dtypes where NumPy's have others: counts of exponents, and results of bits.
OTHER_DTYPES = {"frexp", "bitwise_count", "histogram", "histogram2d"}


@pytest.mark.parametrize("row", SMOOTH + OTHERS, ids=ids(SMOOTH + OTHERS))
def test_functions_are_numpys(row):
    name, args, kwargs = row
    wanted = expected(name, args, kwargs)
    if name == "polydiv":  # the remainder keeps the size of the dividend
        wanted = (wanted[0], np.pad(wanted[1], (4 - wanted[1].size, 0)))
    with wide():
        found = getattr(pnp, name)(*args, **kwargs)
    if not isinstance(wanted, (tuple, list)):
        wanted, found = [wanted], [found]
    for one, other in zip(found, wanted, strict=True):
        other = np.asarray(other)
        if name not in OTHER_DTYPES and isinstance(one, plait.Array):
            assert one.dtype == other.dtype
        tolerance = (
            2e-3 if other.dtype == np.float16 else 3e-6 if other.dtype == np.float32 else 1e-9
        )
        np.testing.assert_allclose(one, other, tolerance, tolerance, equal_nan=True)


def test_parts_are_chosen_alone_and_scopes_nest():
    def dtypes():
        return tuple(str(dtype) for dtype in (pnp.zeros(1).dtype, pnp.arange(1).dtype))

    with default_dtypes(float="float64"):
        assert dtypes() == ("float64", "int32")
        with default_dtypes(int=np.int64):
            assert dtypes() == ("float64", "int64")
            with default_dtypes(float="float32"):
                assert dtypes() == ("float32", "int64")
        assert dtypes() == ("float64", "int32")
    with pytest.raises(ZeroDivisionError), wide():
        raise ZeroDivisionError
    assert dtypes() == ("float32", "int32")


@pytest.mark.parametrize(
    "given", [{"float": "int32"}, {"float": "float16"}, {"int": "int8"}, {"int": "uint32"}]
)
def test_other_dtypes_are_refused(given):
    with pytest.raises(plait.ValueError, match="default_dtypes: the default (float|int) is"):
        default_dtypes(**given)


def test_transforms_and_their_programs():
    def f(x):
        return pnp.sum(pnp.sin(x * pnp.linspace(0, 1, 3)) / pnp.arange(1, 4))

    x = np.array([0.3, -0.2, 0.9])
    step = 1e-6
    wanted = [
        (np.sum(np.sin((x + d) * np.linspace(0, 1, 3)) / [1, 2, 3]) - np.sum(np.sin((x - d) * np.linspace(0, 1, 3)) / [1, 2, 3])) / (2 * step)
        for d in np.eye(3) * step
    ]  # fmt: skip
    with wide():
        for gradient in (grad(f), jit(grad(f)), grad(jit(f)), jit(grad(jit(f)))):
            np.testing.assert_allclose(gradient(x), wanted, rtol=1e-8)
        np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x]))[1], wanted, rtol=1e-8)
        jaxpr = str(plait.make_jaxpr(f)(x))
        assert "f64" in jaxpr and "f32" not in jaxpr
        hessian = plait.jacfwd(grad(lambda v: pnp.sum(nn.softmax(v) * pnp.arange(3))))(x)
        assert hessian.dtype == "float64"


def test_a_jitted_function_is_traced_once_for_each_pair():
    traces = []

    @jit
    def f(x):
        traces.append(None)
        return x + pnp.ones(3)

    for _ in range(2):
        assert f(pnp.zeros(3, "float32")).dtype == "float32"
        with wide():
            assert f(pnp.zeros(3, "float32")).dtype == "float64"
    assert len(traces) == 2
    with default_dtypes(float="float64"):
        f(pnp.zeros(3, "float32"))
    assert f.cache.last_miss == "other default dtypes around the call"


def test_other_threads_have_their_own():
    found = []
    with wide():
        thread = threading.Thread(target=lambda: found.append(pnp.zeros(1).dtype))
        thread.start(), thread.join()
    assert found == ["float32"]


def test_generators_and_coroutines_keep_it_to_themselves():
    @wide()
    def numbers():
        """Doc."""
        given = yield pnp.zeros(1).dtype
        assert given == "sent" and pnp.zeros(1).dtype == "float64"
        try:
            yield pnp.arange(1).dtype
        except ZeroDivisionError:
            yield pnp.ones(1).dtype
        return 5

    def outer():
        return (yield from numbers())

    generator = outer()
    assert next(generator) == "float64" and pnp.zeros(1).dtype == "float32"
    assert generator.send("sent") == "int64" and pnp.zeros(1).dtype == "float32"
    assert generator.throw(ZeroDivisionError()) == "float64" and pnp.zeros(1).dtype == "float32"
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == 5 and numbers.__name__ == "numbers" and numbers.__doc__ == "Doc."

    @wide()
    async def waits():
        before = pnp.zeros(1).dtype
        await asyncio.sleep(0)
        return before, pnp.zeros(1).dtype

    async def both():
        task = asyncio.create_task(waits())
        for _ in range(3):
            assert pnp.zeros(1).dtype == "float32"
            await asyncio.sleep(0)
        return await task

    assert asyncio.run(both()) == ("float64", "float64")


def test_a_decorated_function_and_scripts():
    @wide()
    def plain(n):
        return pnp.arange(n) * 0.5

    @plait.script
    def loop(n):
        x = pnp.zeros(())
        for i in range(n):
            if x < 3:
                x = x + i
        return x

    assert plain(3).dtype == "float64" and plain.__name__ == "plain"
    with wide():
        assert jit(loop)(pnp.asarray(5)).dtype == "float64"
    assert jit(loop)(pnp.asarray(5)).dtype == "float32"


def test_saved_programs_run_as_they_were_traced(tmp_path):
    def f(x):
        return x * pnp.arange(3) / 2

    with wide():
        plait.save(tmp_path / "f.plait", f, pnp.ones(3))
    loaded = plait.load(tmp_path / "f.plait")
    x = np.array([1.0, 2.0, 3.0])
    for scope in (wide(), default_dtypes()):
        with scope:
            assert loaded(x).dtype == "float64"
