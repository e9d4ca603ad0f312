"""Products, large and in batches of small ones; batches of small linear systems."""

# SPDX-License-Identifier: Apache-2.0

import numpy as np
from libraries import jitted
from rows import Row, Work, best_peer, both, of_limit
from rows_attention import rounded, valued

# --- Products --------------------------------------------------------------------------------------

SIZE, MANY, SMALL = 1024, 65536, 8


def square(dtype):
    rng = np.random.default_rng(0)
    pair = (rng.standard_normal((SIZE, SIZE), dtype=np.float32) for _ in range(2))
    return tuple(rounded(a, dtype) for a in pair)


def square_row(dtype):
    flops = 2 * SIZE**3
    wide = dtype == "f32"
    return Row(
        f"matmul/1024-{dtype}",
        f"1024³, {dtype}",
        best_peer(),
        lambda: square(dtype),
        lambda x, y: x @ y,
        calls={"*" if wide else "jaxlike": jitted(product), "torchlike": jitted(product)},
        tolerance=1e-4 if wide else 1e-2,
        work=Work(flops=flops) if wide else Work(flops16=flops),
    )


def product(xp, x, y):
    return x @ y


def many():
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal((MANY, SMALL, SMALL), dtype=np.float32) for _ in range(2))


# --- Linear systems --------------------------------------------------------------------------------

SYSTEMS = 16384


def systems():
    """Positive definite matrices and right sides."""
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(SYSTEMS, SMALL, SMALL))
    a = factor @ factor.transpose(0, 2, 1) + 4 * np.eye(SMALL)
    return a, rng.normal(size=(SYSTEMS, SMALL))


def solve(library, a, b):
    """By Cholesky's factor: half of the sum of squares of the solutions, and its gradients."""
    if library.kind == "jaxlike":
        triangular = library.module.scipy.linalg.solve_triangular
        cholesky = library.xp.linalg.cholesky
        if library.name == "jax":
            triangular = jax_triangular(library)

        def value(moved):
            a, b = moved
            lower = cholesky(a)
            half = triangular(lower, b[..., None], lower=True)
            x = triangular(lower, half, trans=1, lower=True)
            return 0.5 * (x * x).sum()

    else:
        torch = library.module

        def value(moved):
            a, b = moved
            x = torch.cholesky_solve(b[..., None], torch.linalg.cholesky(a))
            return 0.5 * (x * x).sum()

    return valued(library, value, [a, b])


def jax_triangular(library):
    """jax.scipy.linalg.solve_triangular with batches."""

    def solve(a, b, trans=0, lower=False):
        return library.lax.linalg.triangular_solve(
            a, b, left_side=True, lower=lower, transpose_a=bool(trans)
        )

    return solve


def solve_reference(a, b):
    x = np.linalg.solve(a, b[..., None])
    by_b = np.linalg.solve(a, x)
    return 0.5 * (x * x).sum(), (-by_b @ x.transpose(0, 2, 1), by_b[..., 0])


def symmetric(result):
    """Gradients by symmetric matrices differ by what is antisymmetric."""
    value, (by_a, by_b) = result
    return value, (0.5 * (by_a + by_a.transpose(0, 2, 1)), by_b)


def solve_wanted(a, b):
    return symmetric(solve_reference(a, b))


ROWS = [
    square_row("f32"),
    square_row("bf16"),
    Row(
        "small/matmul-8",
        "f32[65536,8,8] products",
        both(of_limit(0.6), best_peer()),
        many,
        np.matmul,
        calls={"*": jitted(product)},
        work=Work(bytes=3 * 4 * MANY * SMALL**2, flops=2 * MANY * SMALL**3),
        fresh=True,
    ),
    Row(
        "small/cholesky-8",
        "Cholesky and solve, f64[16384,8,8], value and gradient",
        best_peer(),
        systems,
        solve_wanted,
        calls={"jaxlike": solve, "torchlike": solve},
        pick=symmetric,
        tolerance=1e-9,
        x64=True,
        work=Work(
            bytes=2 * 8 * SYSTEMS * (SMALL**2 + SMALL),
            flops64=SYSTEMS * (SMALL**3 / 3 + 6 * SMALL**2 + 2 * SMALL**2),
        ),
        fresh=True,
    ),
]
