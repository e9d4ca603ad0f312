"""NumPy's functions on plait's arrays: __array_ufunc__ and __array_function__, traced and differentiated too.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp

VALUES = np.linspace(0.5, 3.0, 12).reshape(3, 4)
X = pnp.asarray(VALUES)
SQUARE = VALUES[:, :3] + 2 * np.eye(3)

# Calls of NumPy as programs spell them, with arguments by place and by NumPy's own names.
CALLS = """
np.sin(x)
np.add(x, y)
np.add(y, x)
np.add(x, 1)
np.true_divide(1, x)
np.power(x, 2)
np.arctan2(x, y)
np.maximum(x, y)
np.logical_not(x > 1)
np.exp(x, dtype=np.float32)
np.add(x, y, casting="same_kind", order="K")
np.add.reduce(x)
np.add.reduce(x, axis=1, keepdims=True)
np.multiply.accumulate(x, axis=1)
np.subtract.outer(x[0], y[1])
np.matmul(x, y.T)
np.sum(x, axis=0)
np.mean(x, 1, keepdims=True)
np.std(x, ddof=1)
np.clip(x, 1.0, 2.0)
np.clip(x, a_min=1.0, a_max=None)
np.concatenate([x, y], axis=1)
np.concatenate((x, y), 0, dtype=np.float32)
np.stack([x, y])
np.vstack([x, y])
np.where(x > 1, x, y)
np.where(x > 1, x, 0.0)
np.zeros_like(x)
np.zeros_like(x, np.int32, "K", True, (2, 3))
np.full_like(x, 7, dtype=np.int32)
np.linspace(x[0, 0], 4.0, 5)
np.transpose(x, (1, 0))
np.reshape(x, (4, 3), order="F")
np.reshape(x, (2, -1))
np.expand_dims(x, 0)
np.squeeze(x[None], axis=0)
np.broadcast_to(x, (2, 3, 4))
np.split(x, 2, axis=1)[1]
np.take(x, [0, 2], axis=0)
np.take_along_axis(x, np.argsort(x, axis=0), axis=0)
np.sort(x, -1, None, None)
np.argmax(x, 1)
np.cumsum(x, 1)
np.diff(x, axis=0)
np.dot(x, y.T)
np.einsum("ij,ij->i", x, y)
np.tensordot(x, y, axes=([0, 1], [0, 1]))
np.linalg.norm(x)
np.linalg.norm(x, ord=1, axis=1)
np.linalg.det(s)
np.linalg.solve(s, s.T)
np.linalg.svd(s, compute_uv=False)
np.outer(x[0], y[0])
np.interp(1.2, x[0], y[1])
np.median(x, axis=1)
np.allclose(x, x + 1e-12)
np.pad(x, ((1, 0), (0, 2)))
np.roll(x, 1, 0)
np.tile(x, (2, 1))
np.repeat(x, 2, axis=1)
np.meshgrid(x[0], y[:, 0], indexing="ij")[0]
np.nan_to_num(x)
np.trace(s)
np.triu(s, 1)
np.real(x)
np.shape(x)
np.result_type(x, np.int8)
y @ x.T + s
y[0] / x - 2 ** x
y[0] > x
np.float64(2) * x
np.zeros(4, np.float64, like=x)
"""
CALLS = CALLS.strip().splitlines()


def call(text, x, s):
    return eval(text, {"np": np, "x": x, "y": VALUES[::-1], "s": s})


@pytest.mark.parametrize("text", CALLS)
def test_functions_of_numpy_are_those_of_plait(text):
    expected = call(text, VALUES, SQUARE)
    result = call(text, X, pnp.asarray(SQUARE))
    if not isinstance(expected, (tuple, np.dtype)):
        assert isinstance(result, plait.Array) or np.ndim(expected) == 0
        assert result.dtype == np.asarray(expected).dtype or np.asarray(expected).dtype == np.int64
    if isinstance(expected, (tuple, np.dtype)):
        assert result == expected
        return
    np.testing.assert_allclose(np.asarray(result), expected, rtol=2e-6)
    traced = plait.jit(lambda x, s: pnp.asarray(call(text, x, s)))(X, pnp.asarray(SQUARE))
    np.testing.assert_allclose(np.asarray(traced), expected, rtol=2e-6)


def test_programs_written_for_numpy_are_differentiated():
    def loss(w):
        hidden = np.tanh(np.dot(VALUES, w))
        total = np.zeros(())
        for row in hidden:
            total = total + np.sum(np.where(row > 0, row, 0.1 * row) ** 2)
        return np.log1p(total) + np.linalg.norm(np.concatenate([w, w])) - np.max(w)

    w = np.array([0.3, -0.2, 0.5, 0.1])
    step = 1e-6 * np.eye(4)
    expected = [(loss(w + d) - loss(w - d)) / 2e-6 for d in step]
    for grad in (plait.grad(loss), plait.jit(plait.grad(loss)), plait.grad(plait.jit(loss))):
        np.testing.assert_allclose(np.asarray(grad(w)), expected, rtol=1e-6)
    rows = plait.vmap(lambda row: np.sum(row) / np.sqrt(row[0]))(X)
    np.testing.assert_allclose(np.asarray(rows), VALUES.sum(1) / np.sqrt(VALUES[:, 0]), rtol=1e-12)


def test_memory_of_numpy_is_written_and_that_of_plait_is_not():
    out = np.zeros((3, 4))
    assert np.add(X, 1, out=out) is out and np.sum(X, axis=0, out=out[0]) is not None
    np.testing.assert_allclose(out[1:], (VALUES + 1)[1:])
    np.testing.assert_allclose(out[0], VALUES.sum(0))
    again = out
    again += X
    assert again is out
    np.testing.assert_allclose(out[1:], (2 * VALUES + 1)[1:])
    np.copyto(out, X)
    np.add.at(out, 0, X[0])
    np.testing.assert_allclose(out[0], 2 * VALUES[0])
    refused = [
        (lambda: np.add(X, 1, out=pnp.zeros((3, 4))), "'out' is an array of plait"),
        (lambda: np.sum(X, axis=0, out=pnp.zeros(4)), "'out' is an array of plait"),
        (lambda: np.add.at(X, 0, 1.0), "would write to an array of plait"),
        (lambda: np.copyto(X, 0.0), r"would write.*\n.*\n?.*x\[\.\.\.\] = values"),
        (lambda: np.fill_diagonal(X, 0), "would write to an array of plait"),
        (lambda: np.add(X, 1, where=VALUES > 1), "(?s)'where' is given.*np.where"),
        (lambda: np.matmul(X, X.T, axes=[(0, 1), (0, 1), (0, 1)]), "'axes' is given"),
        (lambda: np.equal(X, 1, dtype=np.float64), "dtype is float64"),
        (lambda: np.sort(X, order="a"), "order"),
        (lambda: plait.jit(lambda x: np.add(x, 1, out=np.zeros((3, 4))))(X), "(?s)memory of NumPy.*leave 'out' out"),
        (lambda: plait.jit(lambda x: np.copyto(np.zeros((3, 4)), x))(X), "np.copyto"),
    ]  # fmt: skip
    for refuse, text in refused:
        with pytest.raises(plait.UserError, match=text):
            refuse()


def test_in_place_operators_of_numpys_arrays_take_traced_results():
    def f(x):
        total = np.zeros(4)
        for row in x:
            total += row * row
        return total.sum()

    np.testing.assert_allclose(np.asarray(plait.jit(plait.grad(f))(X)), 2 * VALUES)
    np.testing.assert_allclose(np.asarray(plait.grad(f)(X)), 2 * VALUES)


def test_what_plait_lacks_is_numpys_for_known_values_and_named_for_traced_ones():
    assert np.array2string(X[0, :2], precision=2) == "[0.5  0.73]"
    assert not np.shares_memory(X, np.zeros(3)) and np.may_share_memory(
        np.asarray(X), np.asarray(X)
    )
    ours = np.frompyfunc(lambda a: a + 1.0, 1, 1)
    np.testing.assert_array_equal(ours(X).astype(float), VALUES + 1)
    for name, function in (("the ufunc", ours), ("np.array2string", np.array2string)):
        for transform in (plait.jit, plait.grad):
            with pytest.raises(plait.TracerError, match=f"(?s){name}.*no such function.*host_call"):
                transform(lambda x: pnp.sum(pnp.asarray(function(x))))(X)


def test_arrays_of_other_libraries_have_their_turn():
    class Theirs(np.ndarray):
        pass

    class Foreign:
        __array_ufunc__ = None

        def __array_function__(self, function, types, args, kwargs):
            return "theirs"

        def __radd__(self, other):
            return "added"

    assert np.concatenate([X, Foreign()]) == "theirs"
    assert np.ones(2) + Foreign() == "added"
    assert isinstance(np.add(X, VALUES.view(Theirs)), plait.Array)
