"""plait.lax's and plait.scipy.special's special functions: true values of 50 digits (special_values.json), SciPy's, derivatives.

SPDX-License-Identifier: Apache-2.0
"""

import json
import pathlib

import numpy as np
import plait
import pytest
import scipy.special
from plait import lax
from plait.scipy import special

VALUES = json.loads((pathlib.Path(__file__).parent / "special_values.json").read_text())
rng = np.random.default_rng(5)
X = np.r_[rng.normal(size=30) * 3, 0, -0.0, 1, -1, 2, np.inf, -np.inf, np.nan, 30]
P = np.r_[10 ** rng.uniform(-3, 2, 35), 0, 1, np.inf, np.nan]  # positive, and the edges
Q = np.r_[10 ** rng.uniform(-3, 2, 35), 0.5, 2, 3, 1]
U = np.r_[rng.uniform(size=30), 0, 1, -0.1, 1.1, np.nan, 1e-30]


def check(result, expected, tolerance):
    np.testing.assert_allclose(np.asarray(result), expected, rtol=tolerance, atol=1e-300)


@pytest.mark.parametrize("name", VALUES)
def test_primitives_have_the_true_values(name):
    *arguments, expected = np.array(VALUES[name]).T
    check(getattr(lax, name)(*arguments), expected, 1e-13)
    check(plait.jit(getattr(lax, name))(*arguments), expected, 1e-13)
    if name == "ndtri":
        arguments, expected = [arguments[0][1:]], expected[1:]  # 1e-300 is no float32
    # The value at the float32 numbers: an argument's rounding is none of the function's.
    narrow = [a.astype(np.float32) for a in arguments]
    wide = np.asarray(getattr(lax, name)(*[a.astype(np.float64) for a in narrow]))
    seen = np.abs(wide) > 1e-37
    check(np.asarray(getattr(lax, name)(*narrow))[seen], wide[seen], 2e-6)


ONE = {
    "erf": X, "erfc": X, "erfcx": X, "erfinv": U, "ndtr": X, "log_ndtr": 10 * X, "ndtri": U, "expit": X, "logit": U, "entr": X,
    "gamma": X, "gammasgn": X, "loggamma": X, "digamma": P, "i0": X, "i0e": X, "i1": X, "i1e": X, "expi": X, "exp1": P,
    "factorial": P, "zeta": abs(X) + 1.01, "spence": P[:-2],
}  # fmt: skip
LAMBDAS = np.where(np.arange(Q.size) % 4, Q, 0)
TWO = {
    "xlogy": (X, Q), "xlog1py": (X, Q), "rel_entr": (P, Q), "kl_div": (P, Q), "boxcox": (P, LAMBDAS), "boxcox1p": (P, LAMBDAS),
    "gammainc": (Q, P), "gammaincc": (Q, P), "poch": (Q, Q[::-1]), "comb": (np.floor(3 * Q), np.floor(Q[::-1])),
    "beta": (Q, Q[::-1]), "betaln": (Q, Q[::-1]), "zeta": (Q + 1, Q[::-1]),
}  # fmt: skip


@pytest.mark.parametrize("name, arguments", [(n, (a,)) for n, a in ONE.items()] + [*TWO.items()])
def test_functions_are_scipys(name, arguments):
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(*arguments)
    check(getattr(special, name)(*arguments), expected, 2e-11)
    assert getattr(special, name)(*[np.ones(1, np.int32) + 1] * len(arguments)).dtype == np.float32


def test_other_functions_are_scipys():
    x = np.abs(X[:30])
    check(special.polygamma(3, x), scipy.special.polygamma(3, x), 1e-13)
    check(special.expn(3, x), scipy.special.expn(3, x), 1e-13)
    check(special.multigammaln(x + 2, 3), scipy.special.multigammaln(x + 2, 3), 1e-13)
    check(special.betainc(2.5, x, U[:30]), scipy.special.betainc(2.5, x, U[:30]), 1e-12)
    orders = np.stack([scipy.special.jv(n, x) for n in range(5)])
    np.testing.assert_allclose(special.bessel_jn(x, v=4), orders, atol=1e-13)
    np.testing.assert_array_equal(special.bessel_jn(np.zeros(1), v=2).ravel(), [1, 0, 0])
    for name in ("fresnel", "sici"):
        for result, expected in zip(getattr(special, name)(x), getattr(scipy.special, name)(x)):
            check(result, expected, 1e-12)
    z = (X[:30] + 1j * X[29::-1]) * 10.0 ** np.arange(-1.5, 1.5, 0.1)
    z = z[np.abs(z.imag) < 20]
    error = np.asarray(special.wofz(z)) / scipy.special.wofz(z) - 1
    assert np.abs(error).max() < 1e-12 and special.wofz(np.float32(1)).dtype == np.complex64
    n = rng.integers(0, 12, 30)
    m = np.array([rng.integers(-k - 1, k + 2) for k in n])
    theta, phi = rng.uniform(-4, 6, 30), rng.uniform(-6, 6, 30)
    harmonics = special.sph_harm_y(n, m, theta, phi)
    np.testing.assert_allclose(harmonics, scipy.special.sph_harm_y(n, m, theta, phi), atol=1e-13)
    jitted = plait.jit(lambda *x: special.sph_harm_y(*x, n_max=12))(n, m, theta, phi)
    np.testing.assert_allclose(jitted, harmonics, atol=1e-13)
    check(special.bernoulli(14), scipy.special.bernoulli(14), 2e-7)
    n, k = np.arange(6.0)[:, None], np.arange(5.0)
    check(special.comb(n, k, repetition=True), scipy.special.comb(n, k, repetition=True), 1e-12)
    for wrong in (
        lambda: special.factorial(3.0, exact=True),
        lambda: special.bessel_jn(1.0, v=60),
        lambda: special.multigammaln(2.0, 0),
    ):
        with pytest.raises(ValueError, match="(?s)fix: "):
            wrong()


SMOOTH = {
    "digamma": (special.digamma, [0.3, 5.0]), "erfc": (special.erfc, [-1.0, 2.0]), "erfcx": (special.erfcx, [-1.0, 30.0]),
    "log_ndtr": (special.log_ndtr, [-50.0, -1.0, 0.0, 4.0]), "ndtri": (special.ndtri, [0.01, 0.7]),
    "gammainc in a": (lambda a: special.gammainc(a, 2.0), [0.5, 3.0, 300.0]),
    "gammaincc in x": (lambda x: special.gammaincc(2.5, x), [0.5, 30.0]),
    "betainc": (lambda x: special.betainc(2.5, 0.7, x), [0.2, 0.9]), "zeta": (lambda q: special.zeta(2.5, q), [0.7, 9.0]),
    "i0e": (special.i0e, [-1.0, 9.0]), "i1e": (special.i1e, [-1.0, 9.0]), "i1": (special.i1, [0.0, 2.0]),
    "bessel_jn": (lambda z: special.bessel_jn(z, v=3)[3], [0.0, 2.0]), "expi": (special.expi, [-1.0, 2.0, 50.0]),
    "dawsn": (special.dawsn, [0.0, 2.0]), "fresnel": (lambda x: sum(special.fresnel(x)), [0.0, -2.0]),
    "sici": (lambda x: special.sici(x)[0], [0.005, 5.0]), "owens_t in h": (lambda h: special.owens_t(h, 0.7), [-1.0, 0.0]),
    "owens_t in a": (lambda a: special.owens_t(0.7, a), [-2.0, 0.5]),
    "hyp1f1": (lambda x: special.hyp1f1(1.5, 2.5, x), [-3.0, 2.0]),
    "hyp2f1": (lambda x: special.hyp2f1(0.5, 1.5, 2.7, x), [-3.0, 0.5]),
    "wofz": (lambda x: plait.numpy.imag(special.wofz(x * (1 + 2j))), [0.5, -0.7]),
    "exp1": (special.exp1, [0.3, 3.0]), "spence": (special.spence, [0.2, 1.0, 3.0]), "gamma": (special.gamma, [-1.5, 3.0]),
    "random_gamma_grad": (lambda x: lax.random_gamma_grad(1.7, x), [0.3, 4.0]), "entr": (special.entr, [0.3]),
    "igamma_grad_a": (lambda x: lax.igamma_grad_a(1.7, x), [0.3, 4.0]), "boxcox": (lambda p: special.boxcox(2.0, p), [0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_differences(name):
    function, points = SMOOTH[name]
    for x in np.array(points):
        for f in (function, plait.grad(function)):
            h = 1e-5 * max(1, abs(x))
            slope = (np.asarray(f(x + h)) - np.asarray(f(x - h))) / (2 * h)
            if f is not function and name == "gammainc in a":
                with pytest.raises(plait.MissingRuleError, match="igamma_grad_a"):
                    plait.grad(f)(x)
                continue
            scale = 1 + abs(slope) + abs(float(f(x)))
            assert abs(float(plait.grad(f)(x)) - slope) < 1e-6 * scale, (name, x)


def test_derivatives_at_edges():
    for f, x, slope in [
        (lambda x: special.xlogy(x, 2.0), 0.0, np.log(2.0)), (lambda x: special.xlogy(x, 0.0), 0.0, 0.0),
        (lambda y: special.xlogy(0.0, y), 0.0, 0.0), (lambda y: special.xlog1py(0.0, y), -1.0, 0.0),
        (special.log_ndtr, -1e4, 1e4 + 1e-4), (special.log_ndtr, 1e4, 0.0), (special.ndtr, 1e3, 0.0),
        (lambda p: special.rel_entr(p, 1.0), 0.0, 0.0), (lambda x: special.gammainc(1.0, x), 0.0, 1.0),
        (lambda x: special.betainc(1.0, 1.0, x), 0.0, 1.0), (special.i1e, 0.0, 0.5), (special.i0e, 0.0, 0.0),
    ]:  # fmt: skip
        np.testing.assert_allclose(plait.grad(f)(np.float64(x)), slope, rtol=1e-9)
    for f in (
        lambda a: special.betainc(a, 2.0, 0.3),
        lambda s: special.zeta(s, 2.0),
        lambda b: special.hyp1f1(2.0, b, 1.0),
    ):
        with pytest.raises(plait.MissingRuleError, match="stop_gradient"):
            plait.grad(f)(2.0)


def test_bessel_functions_have_every_derivative_at_0():
    """Where exp(|x|), by which they could be made of the scaled ones, has a kink."""
    for f, expected in ((special.i0, [1, 0, 1 / 2, 0, 3 / 8]), (special.i1, [0, 1 / 2, 0, 3 / 8])):
        for value in expected:
            np.testing.assert_allclose(f(0.0), value, rtol=1e-12, atol=1e-12)
            f = plait.grad(f)
