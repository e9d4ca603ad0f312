"""The interpreters under examples/ against results that are found in another way.

SPDX-License-Identifier: Apache-2.0
"""

import importlib.util
import math
import pathlib
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import plait
import plait.numpy as pnp

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"


def example(stem):
    spec = importlib.util.spec_from_file_location(stem, EXAMPLES / f"{stem}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


new_transform, jet, laplacian, sparse, stages, debugger = map(
    example,
    ("new_transform", "jet", "forward_laplacian", "sparse_jacobian", "stages", "debugger"),
)
X = np.float64([[0.3, 0.7, 1.1], [0.5, 1.3, 0.2]])
W = np.sin(np.arange(12.0)).reshape(3, 4)


def test_an_interval_holds_all_that_its_points_give():
    rng = np.random.default_rng(0)
    f = lambda x, y: pnp.tanh(x * y + -x) * (x + 0.5)  # noqa: E731
    centres = rng.normal(size=(2, 50))
    radii = rng.uniform(0, 0.5, size=(2, 50))
    low, high = new_transform.interval(f)(*zip(centres - radii, centres + radii))
    for _ in range(20):
        x, y = centres + radii * rng.uniform(-1, 1, size=(2, 50))
        value = np.tanh(x * y - x) * (x + 0.5)
        assert (np.asarray(low) - 1e-12 <= value).all() and (
            value <= np.asarray(high) + 1e-12
        ).all()


def nested_derivatives(f, x, direction, order):
    """Derivatives of f along a line, by jvp of jvp of ..."""
    along = lambda t: f(x + t * direction)  # noqa: E731
    results = []
    for _ in range(order + 1):
        results.append(np.asarray(along(np.float64(0))))
        along = (lambda g: lambda t: plait.jvp(g, (t,), (np.float64(1),))[1])(along)
    return results


FUNCTIONS = {
    "arithmetic": lambda x: x * x / (1 + x) - 2 * x + 1 / x,
    "exp": lambda x: pnp.exp(-x * x) + pnp.expm1(x),
    "log": lambda x: pnp.log(x) * pnp.log1p(x * x),
    "sin": lambda x: pnp.sin(x * x) * pnp.cos(x),
    "tanh": lambda x: pnp.tanh(3 * x),
    "sqrt": lambda x: pnp.sqrt(1 + x * x),
    "erf": lambda x: plait.scipy.special.erf(x * x),
    "integer powers": lambda x: x**3 + x**-2 + (x - X) ** 4,
    "powers": lambda x: x**2.5 + 2.0**x + x**x,
    "matmul": lambda x: pnp.tanh(x @ W) @ W.T,
    "product of two": lambda x: x @ x.T,
    "reductions": lambda x: pnp.sum(x * x, axis=1) / pnp.max(x) + pnp.mean(x, 1),
    "products": lambda x: pnp.prod(pnp.sin(x), axis=1) * pnp.prod(x),
    "movement": lambda x: pnp.concatenate([x[:, ::-1], pnp.pad(x.T, 1)[1:3, 1:4] * x[0, 1]]),
    "indexing": lambda x: pnp.square(x).at[0].add(x[1] ** 3)[:, [0, 2, 2]],
    "sorting": lambda x: pnp.sort(x * x, axis=1) * pnp.cumsum(x, axis=1),
    "composites": lambda x: plait.nn.softmax(x) + plait.nn.gelu(x) + plait.nn.sigmoid(x),
    "branches": lambda x: pnp.where(x > 0.6, x * x, pnp.sin(x)),
    "calls": plait.jit(lambda x: plait.checkpoint(pnp.sin)(x) * x),
    "norms": lambda x: pnp.var(x, axis=1) * pnp.linalg.norm(x),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_jet_is_nested_jvp(f):
    direction = np.cos(np.arange(6.0)).reshape(2, 3)
    zero = np.zeros_like(X)
    value, series = jet.jet(f, (X,), ([direction, zero, zero, zero],))
    for mine, nested in zip([value, *series], nested_derivatives(f, X, direction, 4)):
        np.testing.assert_allclose(np.asarray(mine), nested, rtol=1e-9, atol=1e-9)


def test_jet_of_a_curve_that_bends():
    # sin of t + t^2 at 0.4 + t + t^2, by the chain rule of Faa di Bruno.
    x = np.float64(0.4)
    value, (first, second, third) = jet.jet(
        pnp.sin, (x,), ([np.float64(1), np.float64(2), np.float64(0)],)
    )
    s, c = math.sin(0.4), math.cos(0.4)
    assert np.allclose([value, first, second, third], [s, c, 2 * c - s, -6 * s - c])


def test_jet_composes():
    def third(x):
        return jet.derivatives(lambda x: pnp.exp(2 * x), x, 3)[3]

    xs = np.float64([0.1, 0.2])
    np.testing.assert_allclose(np.asarray(plait.vmap(third)(xs)), 8 * np.exp(2 * xs))
    np.testing.assert_allclose(
        np.asarray(plait.jit(plait.vmap(plait.grad(third)))(xs)), 16 * np.exp(2 * xs)
    )


def test_jet_says_what_it_has_no_rule_for():
    with pytest.raises(plait.MissingRuleError, match="`lgamma` has no jet rule for these"):
        jet.jet(plait.lax.lgamma, (np.float64(1),), ([np.float64(1)],))


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_forward_laplacian_is_the_trace_of_the_hessian(f):
    value, slope, laplace = laplacian.forward_laplacian(f)(pnp.asarray(X))
    np.testing.assert_allclose(np.asarray(value), np.asarray(f(X)), rtol=1e-12)
    np.testing.assert_allclose(
        np.asarray(slope), np.asarray(plait.jacfwd(f)(X)), rtol=1e-9, atol=1e-12
    )
    hessian = np.asarray(plait.hessian(f)(X)).reshape(*np.shape(value), 6, 6)
    np.testing.assert_allclose(
        np.asarray(laplace), np.trace(hessian, axis1=-2, axis2=-1), rtol=1e-9, atol=1e-9
    )


def test_forward_laplacian_of_a_harmonic_function():
    # The potential of a charge is harmonic away from it.
    potential = lambda x: 1 / pnp.linalg.norm(x)  # noqa: E731
    points = np.random.default_rng(1).normal(size=(5, 3))
    _, _, laplace = plait.jit(plait.vmap(laplacian.forward_laplacian(potential)))(points)
    np.testing.assert_allclose(np.asarray(laplace), np.zeros(5), atol=1e-9)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_sparse_jacobian_is_the_dense_one(f):
    x = pnp.asarray(X)
    dense = np.asarray(plait.jacfwd(f)(x)).reshape(-1, 6)
    where = sparse.pattern(f, x)
    assert not dense[~where].any()
    np.testing.assert_allclose(np.asarray(sparse.sparse_jacobian(f, x)(x)), dense, rtol=1e-12)


TRIDIAGONAL = np.eye(9) + np.eye(9, k=1) - np.eye(9, k=-1)
SHAPES = {
    "elementwise": (lambda x: pnp.sin(x) * x, 1),
    "neighbours": (sparse.burgers, 3),
    "a ring": (lambda x: x * pnp.roll(x, 1), 3),  # of an odd number of columns
    "a banded matrix": (lambda x: TRIDIAGONAL @ x, 3),
    "blocks": (lambda x: pnp.sum(x.reshape(3, 3) ** 2, axis=1), 3),
    "reversed": (lambda x: x[::-1] ** 2, 1),
    "every third": (lambda x: x[::3], 1),
    "known places": (lambda x: x[np.array([4, 4, 0])], 1),
    "places that values decide": (lambda x: x[pnp.argmax(x)], 9),
    "a running sum": (pnp.cumsum, 9),
    "a constant": (lambda x: pnp.ones(3), 1),
    "a stopped gradient": (lambda x: plait.stop_gradient(x) * 2, 1),
}


@pytest.mark.parametrize("f, passes", SHAPES.values(), ids=SHAPES)
def test_passes_of_sparse_jacobians(f, passes):
    x = pnp.asarray(np.sin(np.arange(9.0)) + 2)
    jacobian = sparse.sparse_jacobian(f, x)
    np.testing.assert_allclose(
        np.asarray(jacobian(x)), np.asarray(plait.jacfwd(f)(x)).reshape(-1, 9)
    )
    assert jacobian.passes == passes


def test_colours_keep_columns_apart_that_meet():
    where = np.random.default_rng(2).random((30, 40)) < 0.05
    colour = sparse.colours(where)
    for number in range(colour.max() + 1):
        assert where[:, colour == number].sum(axis=1).max() <= 1
    assert colour.max() + 1 <= 12


def printed(stem):
    command = [sys.executable, EXAMPLES / f"{stem}.py"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_sparse_jacobian_prints():
    lines = printed("sparse_jacobian")
    band = ["".join(".#"[abs(i - j) <= 1] for j in range(12)) for i in range(12)]
    assert lines[:12] == band and lines[12] == "colours 0 1 2 0 1 2 0 1 2 0 1 2"
    assert float(lines[13].split()[-1]) < 1e-6
    assert lines[14:] == ["100 columns in 3 passes", "300 columns in 3 passes"]


def test_stages_give_what_the_function_gives():
    batches = [np.float32(np.cos(np.arange(24.0) + i)).reshape(3, 8) for i in range(20)]
    run = stages.pipelined(stages.network, batches[0])
    assert [stage.name for stage in run.stages] == ["encoder", "decoder", "head"]
    results = list(run(iter(batches)))
    assert len(results) == 20
    for batch, result in zip(batches, results):
        expected = stages.network(pnp.asarray(batch))
        for key, value in expected.items():
            np.testing.assert_allclose(np.asarray(result[key]), np.asarray(value), rtol=1e-6)


def test_stages_run_on_threads_of_their_own():
    seen = {}

    def noting(name):
        def note(x):
            seen[name] = threading.current_thread().ident
            return x

        return lambda x: plait.host_call(note, x, x)

    def f(x):
        for name in ("first", "second", "third"):
            with plait.named_scope(name):
                x = noting(name)(pnp.sin(x))
        return x

    x = np.float64([1, 2])
    results = list(stages.pipelined(f, x)([x] * 5))
    assert len({*seen.values(), threading.current_thread().ident}) == 4
    np.testing.assert_allclose(np.asarray(results[-1]), np.sin(np.sin(np.sin(x))))


def test_stages_in_the_order_that_values_need():
    def f(x, scale=pnp.asarray(np.float64(3))):
        with plait.named_scope("early"):
            a = pnp.sin(x) * scale
        with plait.named_scope("late"):
            b = pnp.exp(scale) - a  # its first equation needs nothing of the other scope
        return b, x, 1.0

    x = np.float64([1, 2])
    run = stages.pipelined(f, x)
    assert [stage.name for stage in run.stages] == ["early", "late"]
    ((b, same, one),) = run([x])
    np.testing.assert_allclose(np.asarray(b), np.exp(3) - 3 * np.sin(x))
    assert same.tolist() == [1, 2] and float(one) == 1


def test_stages_of_a_program_without_scopes():
    run = stages.pipelined(lambda x: x * 2, 1.0)
    assert [float(y) for y in run([1.0, 2.0])] == [2, 4] and len(run.stages) == 1


def test_scopes_that_need_each_other_are_no_stages():
    def f(x):
        with plait.named_scope("a"):
            x = pnp.sin(x)
        with plait.named_scope("b"):
            x = pnp.cos(x)
        with plait.named_scope("a"):
            return pnp.exp(x)

    with pytest.raises(ValueError, match="scope `[ab]` needs `[ab]` needs `[ab]`: give them one"):
        stages.pipelined(f, 1.0)


def test_an_error_goes_through_the_stages():
    def batches():
        yield pnp.ones((3, 8))
        raise RuntimeError("no more")

    run = stages.pipelined(stages.network, pnp.ones((3, 8)))
    results = run(batches())
    assert set(next(results)) == {"mean", "most"}
    with pytest.raises(RuntimeError, match="no more"):
        next(results)
    with pytest.raises(plait.Error):
        list(run([pnp.ones((3, 7))]))


def session(f, *args, commands):
    lines = []
    result = debugger.debug(f, commands, lines.append)(*args)
    return result, lines


def wave(x):
    with plait.named_scope("model"):
        y = pnp.sin(x)
        with plait.named_scope("inner"):
            y = pnp.exp(y)  # a line to stop at
    return y * 2


def test_the_debugger_computes_what_the_function_does():
    for f in (wave, plait.grad(wave), plait.jit(lambda x: {"y": plait.nn.sigmoid(x * x)})):
        x = np.float64(0.3)
        for commands in ([], ["quit"], ["step"] * 50, ["into"] * 50, ["continue"]):
            result, _ = session(f, x, commands=commands)
            expected = f(x)
            for a, b in zip(plait.tree.leaves(result), plait.tree.leaves(expected)):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


def line_of(text):
    source = pathlib.Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(source, 1) if line.endswith(text))


@pytest.mark.parametrize(
    "place", ["exp", "model/inner", str(line_of("# a line to stop at")), None], ids=str
)
def test_the_debugger_stops_at_primitives_scopes_and_lines(place):
    place = place or f"test_worked_examples.py:{line_of('# a line to stop at')}"
    for f in (wave, plait.jit(wave)):
        _, lines = session(f, 0.5, commands=[f"break {place}", "continue", "p b", "where", "quit"])
        stops = [line for line in lines if line.startswith("->")]
        assert len(stops) == 2 and "= exp b" in stops[1]
        assert lines[lines.index(stops[1]) + 1].endswith("y = pnp.exp(y)  # a line to stop at")
        value = next(line for line in lines if line.startswith("b = "))
        assert float(value[4:]) == pytest.approx(math.sin(0.5), rel=1e-6)
        assert "scope model/inner; made by tracing" in lines[-1]


def test_the_debugger_in_a_program_that_transforms_made():
    commands = ["break cos", "continue", "where", "quit"]
    _, lines = session(plait.grad(wave), 0.5, commands=commands)
    assert "y = pnp.sin(x)" in lines[-1] and "scope model; made by" in lines[-1]


def test_the_debugger_steps_and_lists():
    _, lines = session(wave, 0.5, commands=["step", "list", "p a + 1", "p nonsense", "?", "q"])
    assert [line.split()[-2] for line in lines if line.startswith("->")] == ["sin", "exp", "exp"]
    assert "a + 1 = 1.5" in lines
    assert any(line.startswith("NameError") for line in lines)
    assert any(line.startswith("break WHERE") for line in lines)


def test_what_the_debugger_prints():
    text = "\n".join(printed("debugger"))
    assert "(plait) print a\na = [[0.28842226 0.28842226]\n [0.         0.        ]]" in text
    assert "-inf       -inf" in text and "made by tracing" in text and text.endswith("loss nan")


def test_what_stages_prints():
    lines = printed("stages")
    assert [line.split()[0] for line in lines[:3]] == ["encoder", "decoder", "head"]
    assert len(lines) == 11 and all(line.endswith("as without stages: True") for line in lines[3:])


@pytest.mark.parametrize("stem", ["jet", "forward_laplacian"])
def test_both_ways_print_the_same_numbers(stem):
    pairs = [line.split(", ") for line in printed(stem) if " by jet" in line or "hessian" in line]
    assert len(pairs) == (12 if stem == "jet" else 1)
    for pair in pairs:
        one, other = (re.search(r"-?\d+\.\d+", text)[0] for text in pair)
        assert float(one) == pytest.approx(float(other), rel=1e-4)
