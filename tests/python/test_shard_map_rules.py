"""shard_map around programs that have rules of their own: values and derivatives are those of the undivided program."""

# SPDX-License-Identifier: Apache-2.0
import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import P, grad, jit, lax, mask, shard_map, vmap
from plait.scipy.sparse.linalg import cg

MESH = plait.mesh((2,), ("d",))
W = pnp.asarray([1.0, 2.0, 3.0])
X = pnp.asarray(np.random.default_rng(0).normal(size=(4, 3)))
A = pnp.eye(3) * 3 + 0.1
LENGTHS = pnp.asarray([2, 3])


@plait.custom_vjp
def custom(w, x):
    return pnp.sum(x @ pnp.tanh(w))


def backwards(kept, g):
    w, x = kept
    return g * (x * (1 - pnp.tanh(w) ** 2)).sum(0), g * pnp.tanh(w) * pnp.ones_like(x)


custom.defvjp(lambda w, x: (custom(w, x), (w, x)), backwards)


def recurrent(w, x):
    return pnp.sum(lax.scan(lambda s, now: (pnp.tanh(s + now * w[0]), s), 0.0, x)[1])


CASES = {
    "solve": lambda w, x: pnp.sum(vmap(lambda row: pnp.linalg.solve(A * w, row))(x)),
    "cg": lambda w, x: pnp.sum(vmap(lambda row: cg(lambda v: A @ v * w.sum(), row * w)[0])(x)),
    "custom_vjp": custom,
    "checkpoint": lambda w, x: plait.checkpoint(lambda w: pnp.sum(pnp.tanh(x @ w)))(w),
    "loop": lambda w, x: pnp.sum(lax.fori_loop(0, 3, lambda i, s: s * w + x[i % 2], x[0])),
    "cond": lambda w, x: lax.cond(
        pnp.sum(x) > 0, lambda: pnp.sum(x @ w), lambda: pnp.sum(pnp.sin(x @ w))
    ),
    "mask": lambda w, x: pnp.sum(
        vmap(mask(recurrent, in_shapes=(None, "n")), in_axes=(None, 0))(w, x, n=LENGTHS)
    ),
    "mask captures": lambda w, x: pnp.sum(
        vmap(mask(lambda row: recurrent(w, row) * x[0, 0], in_shapes=("n",)))(x, n=LENGTHS)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_what_places_share(name):
    f = CASES[name]
    divided = shard_map(lambda w, x: lax.psum(f(w, x), "d"), MESH, (P(), P("d")), P())

    def undivided(w, x):
        return f(w, x[:2]) + f(w, x[2:])

    for what in (lambda f: f, grad, lambda f: grad(f, argnums=1)):
        for wrap in (lambda f: f, jit):
            found = np.asarray(wrap(what(divided))(W, X))
            np.testing.assert_allclose(
                found, np.asarray(what(undivided)(W, X)), rtol=1e-4, atol=1e-6
            )

    def squares(f):
        return grad(lambda w: pnp.sum(grad(f)(w, X) ** 2))(W)

    found, expected = np.asarray(squares(divided)), np.asarray(squares(undivided))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-5)


def test_places_do_not_communicate_inside_of_a_mask():
    f = mask(lambda x: lax.psum(pnp.sum(x), "d"), in_shapes=("n",))
    with pytest.raises(plait.ValueError, match="mask: places of a mesh communicate"):
        shard_map(lambda x: f(x, n=2), MESH, P("d"), P())(pnp.arange(6.0))
