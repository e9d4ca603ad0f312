"""Programs with loops that threads share, for test_shared_loops.py, which runs this file with several numbers of threads.

It prints a digest of every program's results. SPDX-License-Identifier: Apache-2.0
"""

import hashlib
import json

import numpy as np
import plait
import plait.numpy as jnp
from plait import lax

fori = lax.fori_loop
random = np.random.default_rng(5)


def numbers(*shape):
    return random.standard_normal(shape)


def heat(u):
    """Edges of rows and columns are loops of their own, and memories change places an odd number of times."""

    def step(i, u):
        inner = u[1:-1, 1:-1]
        laplacian = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
        return u.at[1:-1, 1:-1].add(0.1 * laplacian)

    return fori(0, 7, step, u)


def sizes_that_fill_no_vector(x, y):
    return fori(0, 3, lambda i, s: (s[1][::-1] * 0.5 + i, jnp.tanh(s[0]) - s[1]), (x, y))


def sums_of_rows(x):
    def step(i, x):
        shifted = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
        return shifted / jnp.sum(shifted, axis=1, keepdims=True) + 0.01 * x

    return fori(0, 3, step, x)


def sums_of_columns(x):
    return fori(0, 3, lambda i, x: x - 0.5 * jnp.sum(x * x, axis=0) / x.shape[0], x)


def transposed(x):
    return fori(0, 3, lambda i, x: x.T * 0.5 + x, x)


def in_a_while_loop_and_a_branch(x, scale):
    """Shares use numbers of several dtypes from the loops around them."""

    def step(state):
        x, scale, count = state
        is_odd = count % 2 == 1
        half = scale.astype(jnp.bfloat16) * 0.5

        def grown(x):
            return jnp.where(is_odd, x * scale, x + count) + half.astype(x.dtype)

        x = lax.cond(is_odd, grown, lambda x: jnp.sin(x[::-1]) - scale, x)
        return x, scale * 0.75, count + 1

    return lax.while_loop(lambda state: state[2] < 5, step, (x, scale, 0))[0]


def complex_numbers(x):
    return fori(0, 4, lambda i, z: z * z[::-1] * 0.25 + x * 1j, x + 0.5j * x)


def calls_between(x, w):
    return fori(0, 3, lambda i, x: jnp.tanh(jnp.sort(x, axis=1) @ w) + x, x)


def examples(x):
    def root(a):
        def step(state):
            y, steps = state
            return 0.5 * (y + a / y), steps + 1

        return lax.while_loop(lambda s: abs(s[0] * s[0] - a) > 1e-9 * a, step, (a, 0))[0]

    return fori(0, 2, lambda i, x: plait.vmap(root)(jnp.abs(x) + 1), x)


def checks_between(x, rows):
    return fori(0, 3, lambda i, x: jnp.sin(x[rows + i]) + x, x)


PROGRAMS = {
    heat: [numbers(201, 303)],
    sizes_that_fill_no_vector: [numbers(30011), numbers(30011)],
    sums_of_rows: [numbers(203, 301)],
    sums_of_columns: [numbers(301, 203)],
    transposed: [numbers(251, 251)],
    in_a_while_loop_and_a_branch: [numbers(30011).astype(np.float32), np.float32(0.7)],
    complex_numbers: [numbers(30011)],
    calls_between: [numbers(150, 150), 0.1 * numbers(150, 150)],
    examples: [numbers(20001)],
    checks_between: [numbers(30011), random.integers(0, 30000, 30011)],
}


def digests():
    found = {}
    for program, inputs in PROGRAMS.items():
        arguments = [jnp.asarray(x) for x in inputs]
        with plait.disable_jit():
            expected = plait.tree.leaves(program(*arguments))
        for wait in (False, True):
            jitted = plait.jit(program, wait=wait)
            results = [np.asarray(x) for x in plait.tree.leaves(jitted(*arguments))]
            for got, wanted in zip(results, expected, strict=True):
                np.testing.assert_allclose(got, np.asarray(wanted), rtol=1e-4, atol=1e-5)
            together = b"".join(result.tobytes() for result in results)
            found[f"{program.__name__} {wait}"] = hashlib.sha256(together).hexdigest()
        text = str(jitted.explain(*arguments))
        assert "llvm" not in text or "on threads" in text, text
    return found


if __name__ == "__main__":
    print(json.dumps(digests()))
