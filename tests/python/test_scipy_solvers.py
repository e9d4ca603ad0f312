"""scipy.sparse.linalg, optimize, ndimage, integrate and cluster beside SciPy's, with derivatives and bad input.

SPDX-License-Identifier: Apache-2.0
"""

import itertools

import numpy as np
import plait
import plait.numpy as pnp
import pytest
import scipy.cluster.vq
import scipy.interpolate
import scipy.ndimage
import scipy.optimize
from plait import grad, hessian, jit, jvp, vmap
from plait.scipy.cluster.vq import vq
from plait.scipy.integrate import trapezoid
from plait.scipy.interpolate import RegularGridInterpolator, interpn
from plait.scipy.ndimage import map_coordinates
from plait.scipy.optimize import minimize
from plait.scipy.sparse import linalg as psl

RANDOM = np.random.default_rng(0)
N = 12


def system(dtype="f8", hermitian=False):
    a = RANDOM.normal(size=(N, N))
    if dtype[0] == "c":
        a = a + 1j * RANDOM.normal(size=(N, N))
    a = a @ a.conj().T / N + np.eye(N) if hermitian else a / 3 + 3 * np.eye(N)
    return a.astype(dtype), RANDOM.normal(size=N).astype(dtype)


# --- Linear systems -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype, limit", [("f4", 1e-4), ("f8", 1e-9), ("c8", 1e-4), ("c16", 1e-9)])
@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_solutions(name, dtype, limit):
    solve = getattr(psl, name)
    a, b = system(dtype, name == "cg")
    expected = np.linalg.solve(a, b)
    tol = 1e-6 if dtype in ("f4", "c8") else 1e-11
    near = np.linalg.inv(a + 0.1 * np.eye(N, dtype=dtype))
    for option in ({}, {"x0": expected * 0.9}, {"M": lambda r: near @ r}, {"M": near}, {"atol": 1e-12}):  # fmt: skip
        x, info = solve(a, b, tol=tol, **option)
        assert info == (0 if name == "gmres" else None) and x.dtype == b.dtype
        np.testing.assert_allclose(x, expected, limit, limit)
    np.testing.assert_allclose(jit(lambda b: solve(lambda v: a @ v, b, tol=tol)[0])(b), expected, limit, limit)  # fmt: skip
    batch = np.stack([b, 2 * b, b[::-1]])
    x = vmap(lambda b: solve(a, b, tol=tol)[0])(batch)
    np.testing.assert_allclose(x, np.linalg.solve(a, batch.T).T, limit, 2 * limit)


@pytest.mark.parametrize("name", ["cg", "bicgstab", "gmres"])
def test_derivatives_of_solutions(name):
    solve = getattr(psl, name)
    a, b = system("f8", name == "cg")
    weights = RANDOM.normal(size=N)

    def loss(a, b):
        return pnp.sum(weights * solve(lambda v: a @ v, b, tol=1e-13)[0])

    x, adjoint = np.linalg.solve(a, b), np.linalg.solve(a.T, weights)
    for transformed in (grad(loss, (0, 1)), jit(grad(loss, (0, 1)))):
        for got, expected in zip(transformed(a, b), (-np.outer(adjoint, x), adjoint)):
            np.testing.assert_allclose(got, expected, 1e-8, 1e-9)
    da, db = system()
    _, slope = jvp(loss, (a, b), (da, db))
    np.testing.assert_allclose(slope, adjoint @ (db - da @ x), 1e-8)


def test_trees_and_restarts():
    a, b = system()
    tree = {"first": b[:5], "rest": (b[5:].reshape(7, 1),)}

    def product(v):
        y = a @ pnp.concatenate([v["first"], v["rest"][0].ravel()])
        return {"first": y[:5], "rest": (y[5:].reshape(7, 1),)}

    for name in ("bicgstab", "gmres"):
        x, _ = getattr(psl, name)(product, tree, tol=1e-12)
        found = np.concatenate([x["first"], np.ravel(x["rest"][0])])
        np.testing.assert_allclose(found, np.linalg.solve(a, b), 1e-9, 1e-9)
    for restart, method in itertools.product((1, 3, 50), ("batched", "incremental")):
        x, _ = psl.gmres(a, b, tol=1e-10, restart=restart, solve_method=method)
        np.testing.assert_allclose(a @ np.asarray(x), b, 0, 1e-8)
    # One step of cg is one of steepest descent; a right-hand side of zeros needs none.
    s, b = system(hermitian=True)
    np.testing.assert_allclose(psl.cg(s, b, maxiter=1)[0], b * (b @ b) / (b @ s @ b), 1e-10)
    for name in ("cg", "bicgstab", "gmres"):
        assert (np.asarray(getattr(psl, name)(s, 0 * b)[0]) == 0).all()
        # A system whose Krylov space ends early.
        x, _ = getattr(psl, name)([[2.0, 0.0], [0.0, 2.0]], np.ones(2, "f4"))
        np.testing.assert_allclose(x, 0.5)
        assert getattr(psl, name)(np.eye(2), np.ones(2, "f4"))[0].dtype == np.float64
        x, _ = getattr(psl, name)([[2.0, 0.0], [0.0, 4.0]], [1.0, 1.0])
        np.testing.assert_allclose(x, [0.5, 0.25], 1e-6)
        assert getattr(psl, name)(np.eye(0), np.ones(0))[0].shape == (0,)
        assert (np.asarray(getattr(psl, name)(np.zeros((2, 2)), np.ones(2))[0]) == 0).all()


def test_bad_systems():
    for call, text in (
        (lambda: psl.cg(np.ones((2, 3)), np.ones(2)), r"A of shape \(2, 3\)"),
        (lambda: psl.cg(np.eye(2), np.ones(2), np.ones(3)), "x0 of shape"),
        (lambda: psl.cg(lambda x: x, np.ones(2), [np.ones(2)]), "x0 gives a tree of structure"),
        (lambda: psl.cg("matrix", np.ones(2)), "A is 'matrix'"),
        (lambda: psl.bicgstab(lambda v: v[:1], np.ones(2)), "the system is square"),
        (lambda: psl.gmres(np.eye(2), np.ones(2), restart=0), "restart is 0"),
        (lambda: psl.gmres(np.eye(2), np.ones(2), solve_method="x"), "solve_method is 'x'"),
    ):
        with pytest.raises(plait.Error, match=text):
            call()


# --- Minimisation ---------------------------------------------------------------------------------


def rosenbrock(x):
    return pnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def eggholder(x):
    return pnp.log1p(pnp.sum((x - 1.5) ** 2)) + pnp.sum(pnp.cosh(0.1 * x))


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("f, x0", [(rosenbrock, [0.0] * 4), (rosenbrock, [-1.2, 1.0]), (himmelblau, [1.0, 1.0]),
                                   (eggholder, [3.0, -4.0, 0.5])])  # fmt: skip
def test_minima(f, x0, dtype, method):
    x0 = np.array(x0, dtype)
    found = minimize(f, x0, method=method, tol=1e-5 if dtype == "f8" else 2e-3)
    expected = scipy.optimize.minimize(lambda x: float(f(x)), x0.astype("f8"), jac=lambda x: np.asarray(grad(f)(x)), tol=1e-9)  # fmt: skip
    assert found.success and found.status == 0 and found.x.dtype == x0.dtype
    np.testing.assert_allclose(found.x, expected.x, atol=1e-5 if dtype == "f8" else 2e-3)
    np.testing.assert_allclose(found.fun, f(found.x), 1e-6)
    np.testing.assert_allclose(found.jac, grad(f)(found.x), 1e-5, 1e-6)
    assert 0 < found.nit <= found.nfev == found.njev < 150
    assert (found.hess_inv is None) == (method == "L-BFGS")


def test_minima_under_transforms():
    def nearest(a, x0):
        return minimize(lambda x, a: pnp.sum((x - a) ** 2 * pnp.arange(1.0, 4)) + pnp.sum(x**4), x0, (a,), tol=1e-10).x  # fmt: skip

    starts, places = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(5, 3))
    batch = vmap(nearest)(places, starts)
    np.testing.assert_allclose(batch, [nearest(a, x) for a, x in zip(places, starts)], 1e-7, 1e-8)
    a, x0 = places[0], starts[0]
    np.testing.assert_allclose(jit(nearest)(a, x0), batch[0], 1e-7, 1e-8)
    # By the implicit function theorem dx/da = -(d2f/dx2)^-1 d2f/dx da.
    x = np.asarray(batch[0])
    expected = np.diag(2 * np.arange(1.0, 4) / (2 * np.arange(1.0, 4) + 12 * x**2))
    for jacobian in (plait.jacrev, plait.jacfwd):
        np.testing.assert_allclose(jacobian(nearest)(a, x0), expected, 1e-7, 1e-8)
        np.testing.assert_allclose(jit(jacobian(nearest))(a, x0), expected, 1e-7, 1e-8)
    np.testing.assert_allclose(vmap(plait.jacrev(nearest))(places, starts)[0], expected, 1e-7, 1e-8)
    assert (np.asarray(grad(lambda x0: pnp.sum(nearest(a, x0)))(x0)) == 0).all()

    def least(scale, method):
        f = lambda x: pnp.sum((x - scale) ** 2 * (1 + pnp.arange(3.0))) + pnp.sum(x) ** 4  # noqa: E731
        return minimize(f, x0, method=method, tol=1e-10).fun

    for method in ("BFGS", "L-BFGS"):  # second derivatives too
        step = 1e-4
        slope = (grad(least)(0.7 + step, method) - grad(least)(0.7 - step, method)) / (2 * step)
        np.testing.assert_allclose(grad(grad(least))(0.7, method), slope, 1e-5)
    # Where the matrix of second derivatives is large, by its products with vectors.
    a = np.linspace(-1, 1, 600)
    many = lambda a: minimize(lambda x: pnp.sum((x - a) ** 2) + pnp.sum(x**4), 0 * a, method="L-BFGS", tol=1e-9).x  # noqa: E731  # fmt: skip
    slopes = 2 / (2 + 12 * np.asarray(many(a)) ** 2)
    np.testing.assert_allclose(grad(lambda a: pnp.sum(many(a)))(a), slopes, 1e-7)
    found = minimize(rosenbrock, np.zeros(2), tol=1e-9)
    np.testing.assert_allclose(found.hess_inv, np.linalg.inv(hessian(rosenbrock)(found.x)), 0.1)


def test_how_minimisation_ends():
    assert minimize(rosenbrock, np.ones(3)).nit == 0
    tol = jit(lambda tol: minimize(rosenbrock, np.zeros(2), tol=tol))
    assert tol(1.0).nit < tol(1e-6).nit
    early = minimize(rosenbrock, np.zeros(4), options={"maxiter": 3})
    assert (early.status, early.nit, bool(early.success)) == (1, 3, False)
    coarse = minimize(rosenbrock, np.zeros(4), options={"gtol": 1.0, "norm": 2})
    assert np.linalg.norm(coarse.jac) < 1 and coarse.nit < minimize(rosenbrock, np.zeros(4)).nit
    kink = minimize(lambda x: pnp.sum(pnp.abs(x)) + pnp.sum(x), np.array([0.5]), tol=0.0)
    assert kink.status != 0
    assert minimize(lambda x: pnp.sum(x) * np.nan, np.ones(2)).status == 3
    # Where the function is not defined, steps turn back.
    log = minimize(lambda x: pnp.sum(x - pnp.log(x)), np.array([5.0, 0.1]))
    np.testing.assert_allclose(log.x, 1, 1e-4)


def test_bad_minimisation():
    for call, text in (
        (lambda: minimize(rosenbrock, np.ones((2, 2))), r"x0 of shape \(2,2\)"),
        (lambda: minimize(rosenbrock, np.ones(2) * 1j), "is complex"),
        (lambda: minimize(lambda x: x, np.ones(2)), "minimize"),
        (lambda: minimize(rosenbrock, np.ones(2), method="Newton"), "method is 'Newton'"),
        (lambda: minimize(rosenbrock, np.ones(2), options={"speed": 1}), "no option 'speed'"),
        (lambda: minimize(rosenbrock, np.ones(2), args=3), "args is 3"),
        (lambda: minimize(3, np.ones(2)), "is no function"),
        (lambda: minimize(rosenbrock, np.ones(2), options=[1]), "options is"),
        (lambda: minimize(rosenbrock, np.ones(2), options={"maxiter": "a"}), "maxiter is 'a'"),
        (lambda: minimize(rosenbrock, np.ones(2), tol=np.ones(2)), "tol of shape"),
    ):
        with pytest.raises(plait.Error, match=text):
            call()


# --- Interpolation, integrals, codes --------------------------------------------------------------

MODES = {"constant": "grid-constant", "wrap": "grid-wrap", "nearest": "nearest", "mirror": "mirror", "reflect": "reflect"}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i4"])
def test_map_coordinates(dtype, mode):
    x = (10 * RANDOM.normal(size=(4, 5))).astype(dtype)
    places = RANDOM.uniform(-12, 15, size=(2, 3, 70))
    for order in (0, 1):
        expected = scipy.ndimage.map_coordinates(x.astype("c16") if dtype == "c16" else x.astype("f8"), places, order=order,
                                                 mode=MODES[mode], cval=-1 if dtype == "i4" else -1.5)  # fmt: skip
        got = map_coordinates(x, list(places), order, mode, -1.5)
        assert got.dtype == x.dtype
        if dtype == "i4":  # half numbers apart
            expected = np.rint(expected)
            assert np.mean(np.abs(np.asarray(got) - expected) > 0) < 0.02
        else:
            np.testing.assert_allclose(got, expected, 1e-4 if dtype == "f4" else 1e-10, 1e-5 if dtype == "f4" else 1e-10)  # fmt: skip
    one = map_coordinates(x[:1, :1], places, 1, mode, 2)
    assert one.shape == (3, 70)


def test_derivatives_of_map_coordinates():
    x, places = RANDOM.normal(size=(4, 5)), RANDOM.uniform(-2, 6, size=(2, 9))
    weights, step = RANDOM.normal(size=9), 1e-6
    for mode in MODES:

        def loss(x, places):
            return pnp.sum(map_coordinates(x, places, 1, mode, 0.5) * weights)

        dx, dp = grad(loss, (0, 1))(x, places)
        tx, tp = RANDOM.normal(size=x.shape), RANDOM.normal(size=places.shape)
        slope = (loss(x + step * tx, places + step * tp) - loss(x - step * tx, places - step * tp)) / (2 * step)  # fmt: skip
        np.testing.assert_allclose(np.sum(dx * tx) + np.sum(dp * tp), slope, 1e-6, 1e-7)
        batch = vmap(lambda p: map_coordinates(x, p, 1, mode))(np.stack([places, places + 0.5]))
        np.testing.assert_allclose(batch[1], map_coordinates(x, places + 0.5, 1, mode), 1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_grids(dtype):
    limit = 1e-5 if dtype == "f4" else 1e-12
    grid = [np.sort(RANDOM.normal(size=n)).astype(dtype.replace("c16", "f8")) for n in (5, 7)]
    values = RANDOM.normal(size=(5, 7, 2)).astype(dtype)
    xi = RANDOM.normal(size=(40, 3, 2)).astype(grid[0].dtype)
    for method, fill in itertools.product(("linear", "nearest"), (np.nan, 2.5, None)):
        theirs = scipy.interpolate.RegularGridInterpolator(grid, values, method, False, fill)
        ours = RegularGridInterpolator(grid, values, method, False, fill)
        assert ours(xi).dtype == values.dtype
        np.testing.assert_allclose(ours(xi), theirs(xi), limit, 30 * limit)
        np.testing.assert_allclose(ours((xi[..., 0], 0.0)), theirs((xi[..., 0], 0.0)), limit, 30 * limit)  # fmt: skip
    if dtype == "f8":
        inside, tangent, step = xi * 0.1, RANDOM.normal(size=xi.shape), 1e-7
        loss = lambda x: pnp.sum(interpn(grid, values, x) ** 2)  # noqa: E731
        slope = (loss(inside + step * tangent) - loss(inside - step * tangent)) / (2 * step)
        np.testing.assert_allclose(np.sum(grad(loss)(inside) * tangent), slope, 1e-5)
        np.testing.assert_allclose(vmap(lambda x: interpn(grid, values, x))(inside), interpn(grid, values, inside))  # fmt: skip


def test_integrals_and_codes():
    x, y = np.sort(RANDOM.normal(size=9)), RANDOM.normal(size=(3, 9))
    np.testing.assert_allclose(trapezoid(y, x), np.trapezoid(y, x), 1e-12)
    points, codes = RANDOM.normal(size=(50, 3)), RANDOM.normal(size=(7, 3))
    for got, expected in zip(vq(points, codes), scipy.cluster.vq.vq(points, codes)):
        np.testing.assert_allclose(got, expected, 1e-10)
    for got, expected in zip(vq(points[:, 0], codes[:, 0]), scipy.cluster.vq.vq(points[:, 0], codes[:, 0])):  # fmt: skip
        np.testing.assert_allclose(got, expected, 1e-10)
    code, distance = vq(points, codes)
    gradient = grad(lambda p: pnp.sum(vq(p, codes)[1]))(points)
    np.testing.assert_allclose(gradient, (points - codes[np.asarray(code)]) / np.asarray(distance)[:, None], 1e-9)  # fmt: skip


def test_bad_interpolation():
    x, place = np.ones((3, 3)), [np.zeros(2), np.zeros(2)]
    for call, text in (
        (lambda: map_coordinates(x, place, 3), "order is 3"),
        (lambda: map_coordinates(x, place, 1, "around"), "mode is 'around'"),
        (lambda: map_coordinates(x, place[:1], 1), "1 arrays of coordinates for an input of 2 axes"),
        (lambda: map_coordinates(np.ones((0, 3)), place, 1), r"an input of shape \(0,3\)"),
        (lambda: map_coordinates(x, [np.zeros(2), np.zeros(3)], 1), "map_coordinates"),
        (lambda: vq(np.ones((2, 3)), np.ones((2, 2))), r"a code book of shape \(2,2\)"),
        (lambda: interpn([np.arange(3.0)], np.ones(2), np.zeros((1, 1))), "a point for each value"),
        (lambda: interpn([np.arange(3.0)], np.ones(3), np.zeros((1, 2))), r"places of shape \(1,2\)"),
        (lambda: interpn([np.arange(3.0)], np.ones(3), np.zeros((1, 1)), "cubic"), "method is 'cubic'"),
        (lambda: interpn([np.arange(3.0)], np.ones(3), -np.ones((1, 1)), bounds_error=True), "outside of the grid"),
    ):  # fmt: skip
        with pytest.raises(plait.Error, match=text):
            call()
