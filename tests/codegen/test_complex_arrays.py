"""Complex numbers outside of loops, in generated code: beside NumPy, and to the bits of eager calls."""

import numpy as np
import plait
import plait.numpy as jnp
import pytest

random = np.random.default_rng(5)


def numbers(*shape, dtype=np.complex128):
    return (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)


CASES = {
    "arithmetic": lambda np, x, y: (x * y + np.conj(x) / (y + 2)) * 1j - 3,
    "parts": lambda np, x, y: np.abs(x) ** 2 + x.real * y.imag,
    "choices": lambda np, x, y: np.where((x.real > 0) & (x != y), x, np.conj(y)) ** 3,
    "sums of rows": lambda np, x, y: np.sum(x * y, 1),
    "sums of columns": lambda np, x, y: np.sum(x * np.conj(y), 0),
    "sums of all": lambda np, x, y: np.sum(x - y),
    "centred rows": lambda np, x, y: x - np.mean(y, 1, keepdims=True),
    "rows of length one": lambda np, x, y: (
        x / np.sqrt(np.sum(np.abs(x) ** 2, 1, keepdims=True)) * y[0]
    ),
    "movement": lambda np, x, y: np.concatenate([x[:, ::-1], 2j * y], 0)[1:50],
    "edges": lambda np, x, y: np.pad(x, 1)[2:, 1:-1] + np.roll(y, 3, 1) * 1j,
    "products of few": lambda np, x, y: np.prod(x[:, :4], 1),
    "products of rows": lambda np, x, y: np.prod(x[:, :20], 1) * np.prod(y[:3, :9]),
    "pairs": lambda np, x, y: np.stack([x + y, x - y], 1).reshape(-1),
}


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(40, 24), (3, 5), (200, 130), (1, 17)])
@pytest.mark.parametrize("name", CASES)
def test_is_what_numpy_gives(name, shape, dtype):
    program = CASES[name]
    inputs = [numbers(*shape, dtype=dtype) for _ in range(2)]
    expected = program(np, *inputs)
    arrays = [jnp.asarray(x) for x in inputs]
    with plait.disable_jit():
        eager = np.asarray(program(jnp, *arrays))
    size = np.abs(expected).max()
    np.testing.assert_allclose(eager, expected, rtol=0, atol=size * 50 * np.finfo(dtype).eps)
    for wait in (False, True):
        got = np.asarray(plait.jit(lambda *x: program(jnp, *x), wait=wait)(*arrays))
        assert got.dtype == eager.dtype
        np.testing.assert_array_equal(got, eager)


def test_it_is_generated_code():
    x = jnp.asarray(numbers(64, 64))
    text = str(plait.jit(lambda x: (x * x + 1j) / 2, wait=True).explain(x))
    if " llvm " not in text:
        pytest.skip("llvm is not installed")
    assert "fused: mul add div" in text and "one loop program" in text, text
    text = str(plait.jit(lambda x: jnp.exp(x), wait=True).explain(x))
    assert "`exp` of complex numbers" in text, text


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_real_parts_beyond_integers_saturate(dtype):
    limits = np.iinfo(dtype)
    x = np.array([1e300 - 1j, -1e300 + 2j, np.nan, 3.7 + 9j, -0.5])
    expected = [limits.max, limits.min, 0, 3, 0]
    for wait in (False, True):
        cast = plait.jit(lambda x: x.astype(dtype), wait=wait)
        np.testing.assert_array_equal(np.asarray(cast(jnp.asarray(x))), np.array(expected, dtype))
