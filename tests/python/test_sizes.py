"""Named sizes from Python: specs, instantiate, and ragged values.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp


def test_make_jaxpr_of_specs_binds_sizes():
    text = str(plait.make_jaxpr(lambda x, w: x @ w)("n d", "d k"))
    assert text.startswith("{ lambda n d k ; a:f32[n,d] b:f32[d,k] . let")
    text = str(plait.make_jaxpr(lambda x: x + 1)("i32[2*n+1]"))
    assert text.startswith("{ lambda n ; a:i32[2*n+1] . let")


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x @ x.T).sum(),
        lambda x: x.mean(axis=0),
        lambda x: x.reshape(-1),
        lambda x: x[1:] * x.shape[0],
        lambda x: pnp.arange(x.shape[0]) * x.shape[1],
        lambda x: pnp.sort(x, axis=0),
        lambda x: pnp.cumsum(x, axis=0),
        lambda x: pnp.concatenate([x, x]),
        lambda x: plait.nn.softmax(x),
        plait.grad(lambda x: pnp.tanh(x).mean()),
        plait.vmap(lambda x: pnp.exp(x).sum()),
        plait.jit(lambda x: x * 2 + x.shape[0]),
    ],
)
def test_instantiate_is_tracing_at_the_numbers(function):
    named = plait.make_jaxpr(function)("n d")
    numbers = plait.make_jaxpr(function)(np.ones((4, 3), np.float32))
    assert str(plait.instantiate(named, n=4, d=3)) == str(numbers)


def test_a_size_decides_nothing_in_an_if():
    def f(x):
        return x if x.shape[0] > 3 else -x

    with pytest.raises(Exception) as caught:
        plait.make_jaxpr(f)("n")
    assert "n" in str(caught.value)


def test_ragged_round_trip():
    rows = [np.full((n, 2), n, np.float32) for n in (2, 0, 3)]
    ragged = plait.ragged(rows)
    assert ragged.data.shape == (3, 3, 2)
    np.testing.assert_array_equal(ragged.lengths, [2, 0, 3])
    assert len(ragged) == 3
    for row, back in zip(rows, ragged):
        np.testing.assert_array_equal(row, back)
    assert plait.ragged(rows, length=8).data.shape == (3, 8, 2)
    total = plait.vmap(lambda x, n: plait.mask(lambda x: x.sum(), "n d")(x, n=n))
    np.testing.assert_array_equal(total(ragged.data, ragged.lengths), [8, 0, 18])


def test_ragged_errors():
    with pytest.raises(ValueError, match="there are no arrays"):
        plait.ragged([])
    with pytest.raises(ValueError, match="array 1 shape"):
        plait.ragged([np.ones((2, 3)), np.ones((2, 4))])
