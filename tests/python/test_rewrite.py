"""Rewriting by rules, passes, pipelines: against NumPy, and under random nestings of transforms.

SPDX-License-Identifier: Apache-2.0
"""

import random

import numpy as np
import pytest

import plait
import plait.numpy as jnp

X = np.array([[0.5, -1.0, 2.0], [0.1, 0.2, -0.3]], np.float32)
log_exp = plait.rewrite(lambda x: jnp.log(jnp.exp(x)), lambda x: x, name="log_exp")


def names(f, *args):
    jaxpr = f if isinstance(f, plait.Jaxpr) else plait.make_jaxpr(f)(*(args or (X,))).jaxpr
    return [equation.primitive for equation in plait.walk(jaxpr)]


def test_a_pattern_matches_any_shape_and_dtype():
    for value in (X, X[0], np.float64(0.5), np.ones((2, 3, 4, 5), np.float64)):
        assert names(log_exp(lambda x: jnp.log(jnp.exp(x)) * 2), value) == ["mul"]
    assert names(log_exp(lambda x: jnp.exp(jnp.log(x)))) == ["log", "exp"]
    assert log_exp.statistics.matches == 0
    sized = plait.make_jaxpr(log_exp(lambda x: jnp.log(jnp.exp(x)) + 1))("n d").jaxpr
    assert names(sized) == ["add"]


def test_it_matches_modulo_order_and_repeated_arguments_are_equal_values():
    square = plait.rewrite(lambda x, y: x * x + y, lambda x, y: y - x)
    assert names(square(lambda a, b: b + a * a), X, X) == ["sub"]
    assert names(square(lambda a, b: b + a * b), X, X) == ["mul", "add"]
    both = plait.rewrite(lambda a, b: a * jnp.exp(b) + 2 * a, lambda a, b: a - b)
    f = lambda p, q: 2 * p + jnp.exp(q) * p  # noqa: E731
    assert names(both(f), X, X) == ["sub"]
    np.testing.assert_array_equal(both(f)(X, 2 * X), X - 2 * X)
    np.testing.assert_array_equal(both(lambda p, q: f(q, p))(X, 2 * X), 2 * X - X)


def test_arguments_match_numbers_and_numbers_match_themselves():
    halve = plait.rewrite(lambda x: x * 2.0, lambda x: x)
    assert names(halve(lambda x: x * 2.0 + x * 3.0)) == ["mul", "add"]
    scale = plait.rewrite(lambda x, c: jnp.exp(x) * c, lambda x, c: x + c)
    np.testing.assert_allclose(scale(lambda x: jnp.exp(x) * 5.0)(X), X + 5, rtol=1e-6)
    seen = []
    where = lambda m: seen.append(m) or float(m.values[1]) > 4  # noqa: E731
    rule = plait.rewrite(lambda x, c: jnp.exp(x) * c, lambda x, c: x + c, where)
    assert names(rule(lambda x: jnp.exp(x) * 5.0 + jnp.exp(x + 1) * 3.0)).count("exp") == 1
    (match, *_) = seen
    assert match.primitives == ["exp", "mul"] and match.avals[0].shape == (2, 3)
    assert match.params[0] == {} and match.source.file == __file__


def test_values_with_other_users_are_left():
    def f(x):
        e = jnp.exp(x)
        return jnp.log(e), e

    assert names(log_exp(f)) == names(f)
    assert names(log_exp(lambda x: (jnp.log(jnp.exp(x)), jnp.exp(x)))) == ["exp"]
    root = plait.rewrite(lambda x: jnp.log(jnp.exp(x)), lambda x: -x)
    twice = lambda x: (lambda y: y * y + y)(jnp.log(jnp.exp(x)))  # noqa: E731
    np.testing.assert_allclose(root(twice)(X), X * X - X, rtol=1e-6)


def test_patterns_with_several_results():
    both = plait.rewrite(
        lambda x: (jnp.sin(x), jnp.cos(x)), lambda x: (x + 1, x + 2), name="sincos"
    )
    f = lambda x: jnp.sin(x * 3) * jnp.cos(x * 3)  # noqa: E731
    # x * 3 is written twice: it is one value only where it is computed once
    assert both(plait.make_jaxpr(f)(X).jaxpr) == plait.make_jaxpr(f)(X).jaxpr
    g = lambda x: (lambda y: jnp.sin(y) * jnp.cos(y) + jnp.exp(y))(x * 3)  # noqa: E731
    y = X * 3
    np.testing.assert_allclose(both(g)(X), (y + 1) * (y + 2) + np.exp(y), rtol=1e-5)
    assert both.statistics.matches == 1
    # cos of a value that depends on the sine: the two cannot be computed together
    chained = plait.rewrite(lambda x, y: (jnp.sin(x), jnp.cos(x + y)), lambda x, y: (x, y))
    h = lambda x: jnp.cos(x + jnp.sin(x))  # noqa: E731
    assert names(chained(h)) == names(h)


def test_bodies_of_calls_loops_and_branches_are_entered_when_asked():
    inner = plait.jit(lambda x: jnp.log(jnp.exp(x)))

    def f(x):
        x = inner(x)
        x = plait.lax.fori_loop(0, 3, lambda i, c: jnp.log(jnp.exp(c)) + 1, x)
        return plait.lax.cond(x.sum() > 0, lambda v: jnp.log(jnp.exp(v)), lambda v: -v, x)

    assert "exp" not in names(log_exp(f))
    shallow = plait.rewrite(lambda x: jnp.log(jnp.exp(x)), lambda x: x, nested=False)
    assert names(shallow(f)) == names(f)
    np.testing.assert_allclose(log_exp(f)(X), f(X), rtol=1e-5, atol=1e-5)


def test_rules_are_applied_until_nothing_changes_and_in_order():
    nested = lambda x: jnp.log(jnp.exp(jnp.log(jnp.exp(jnp.log(jnp.exp(x))))))  # noqa: E731
    assert names(log_exp(lambda x: nested(x) + 1)) == ["add"]
    cascade = plait.rewrite(
        [
            plait.Rule(lambda x: jnp.sin(x), lambda x: jnp.cos(x), name="first"),
            plait.Rule(lambda x: jnp.sin(x), lambda x: jnp.tanh(x), name="never"),
            plait.Rule(lambda x: jnp.cos(x), lambda x: jnp.exp(x), name="second"),
        ]
    )
    assert names(cascade(lambda x: jnp.sin(x) + 1)) == ["exp", "add"]
    assert [p.matches for p in cascade.statistics.parts] == [1, 0, 1]
    once = plait.rewrite(lambda x: jnp.sin(x), lambda x: jnp.sin(jnp.sin(x)), repeat=False)
    assert names(once(lambda x: jnp.sin(x))) == ["sin", "sin"]
    with pytest.raises(plait.ValueError, match="without end"):
        plait.rewrite(lambda x: jnp.sin(x), lambda x: jnp.sin(jnp.sin(x)))(jnp.sin)(X)


def test_parameters_of_any_value():
    def conv(x, w, stride):
        return plait.lax.conv_general_dilated(x, w, (stride, stride), "SAME")

    rule = plait.rewrite(
        lambda x, w, s: conv(x, w, 1) * s,
        lambda x, w, s: conv(x, w * s, 1),
        where=lambda m: m.avals[2].shape == (),
        any_params="conv",
        like=("n c h w", "o c kh kw", ""),
        verify=True,
    )
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 8, 8)), rng.normal(size=(4, 3, 3, 3))
    for stride in (1, 2, 3):
        f = lambda x, w: conv(x, w, stride) * 0.5  # noqa: E731
        assert names(rule(f), x, w)[-1] == "conv"
        np.testing.assert_allclose(rule(f)(x, w), f(x, w), rtol=1e-12)


def test_broadcasting_patterns_match_at_their_own_ranks():
    shift = plait.rewrite(lambda x, s, b: (x * s) + b, lambda x, s, b: x - s - b)
    s, b = X[0], X[1]
    np.testing.assert_allclose(shift(lambda x, s, b: x * s + b)(X, s, b), X - s - b, rtol=1e-6)
    mean = plait.rewrite(lambda x: jnp.mean(x, axis=-1), lambda x: jnp.max(x, axis=-1))
    for value in (X, X[0], np.ones((2, 3, 4), np.float32)):
        np.testing.assert_array_equal(mean(lambda x: jnp.mean(x, axis=-1))(value), value.max(-1))
    assert "reduce" in names(mean(lambda x: jnp.mean(x, axis=0)))
    dot = plait.rewrite(lambda a, b, c: (a @ b) @ c, lambda a, b, c: a @ (b @ c))
    a, b, c = np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))
    jaxpr = plait.make_jaxpr(dot(lambda a, b, c: (a @ b) @ c))(a, b, c).jaxpr
    assert jaxpr.eqns[0].out_avals[0].shape == (3, 5)


@pytest.mark.parametrize(
    "pattern, replacement, words",
    [
        (lambda x: x, lambda x: x, "is an argument"),
        (lambda x: 1.0, lambda x: x, "is an argument or a number"),
        (lambda x, y: jnp.sin(x), lambda x, y: x, "does not use argument 1"),
        (lambda x, y: (jnp.sin(x), jnp.cos(y)), lambda x, y: (x, y), "share no argument"),
        (lambda x: jnp.sin(x), lambda x: x.sum(), r"f32\[\].*f32\[2,3\]"),
        (lambda x: jnp.sin(x), lambda x: (x, x), "where the pattern gives"),
        (lambda x: jnp.sin(x), lambda x: x + X, "no argument of it"),
    ],
)
def test_what_is_no_rule_is_refused(pattern, replacement, words):
    with pytest.raises(plait.ValueError, match=words):
        plait.rewrite(pattern, replacement)(lambda x: jnp.sin(x) + jnp.cos(x))(X)


def test_wrong_arguments_of_rewrite():
    with pytest.raises(plait.TreeError, match="takes 1"):
        plait.rewrite(lambda x: jnp.sin(x), lambda x, y: x)
    with pytest.raises(plait.TreeError, match="not known"):
        plait.rewrite(lambda *x: jnp.sin(x[0]), lambda *x: x[0])
    with pytest.raises(plait.ValueError, match="no primitive"):
        plait.rewrite(lambda x: jnp.sin(x), lambda x: x, any_params="sine")
    with pytest.raises(plait.DtypeError, match="no rule"):
        plait.rewrite([lambda x: x])
    with pytest.raises(plait.DtypeError, match="True or False"):
        plait.rewrite(lambda x: jnp.sin(x), lambda x: x, lambda m: None)(jnp.sin)(X)
    with pytest.raises(plait.TracerError, match="while applying .*rewrite"):
        plait.rewrite(lambda x: np.asarray(x) * 1, lambda x: x)(jnp.sin)(X)
    with pytest.raises(NameError):
        plait.rewrite(lambda x: jnp.sin(undefined(x)), lambda x: x)(jnp.sin)(X)  # noqa: F821


def test_verify_shows_both_values():
    right = plait.rewrite(
        lambda x, y: jnp.log(jnp.exp(x) * jnp.exp(y)), lambda x, y: x + y, verify=True
    )
    assert names(right(lambda x, y: jnp.log(jnp.exp(x) * jnp.exp(y))), X, X) == ["add"]
    wrong = plait.rewrite(
        lambda x: jnp.sqrt(x * x), lambda x: x, name="root_of_square", verify=True
    )
    with pytest.raises(
        plait.ValueError, match=r"`root_of_square`.*f64\[2,3\].*is .* by the pattern and -"
    ):
        wrong(lambda x: jnp.sqrt(x * x))(X)
    positive = plait.rewrite(lambda x: jnp.sqrt(x * x), lambda x: x, verify=(0.0, 4.0))
    assert names(positive(lambda x: jnp.sqrt(x * x))) == []
    # a number that the rule is asked about keeps its value
    power = plait.rewrite(
        lambda x, c: jnp.exp(x) ** c,
        lambda x, c: jnp.exp(x),
        lambda m: m.values[1] == 1,
        verify=True,
    )
    power(lambda x: jnp.exp(x) ** 1.0)(X)


def test_passes_are_checked():
    keep = plait.apply_pass(lambda jaxpr: jaxpr, name="keep")
    assert names(keep(jnp.sin)) == ["sin"]

    @plait.apply_pass
    def drop_inputs(jaxpr):
        builder = plait.Builder()
        return builder.close(1.0)

    with pytest.raises(plait.ValueError, match="`drop_inputs` made a program with other inputs"):
        drop_inputs(jnp.sin)(X)
    with pytest.raises(plait.TreeError, match="returned None"):
        plait.apply_pass(lambda jaxpr: None)(jnp.sin)(X)


def test_passes_are_verified_on_random_numbers():
    def swap(primitive, by):
        return lambda jaxpr: plait.rebuild(
            jaxpr, lambda b, e, *i: b.add(by, *i) if e.primitive == primitive else None
        )

    f = lambda x: jnp.abs(x) + jnp.tanh(x @ x.T).sum()  # noqa: E731
    same = plait.apply_pass(swap("exp", "log"), name="same", verify=True)
    np.testing.assert_allclose(same(f)(X), f(X), rtol=1e-6)
    wrong = plait.apply_pass(swap("abs", "neg"), name="wrong", verify=True)
    with pytest.raises(plait.ValueError, match=r"`wrong` changes results.* before and .* after"):
        wrong(f)(X)
    positive = plait.pipeline(log_exp, swap("abs", "neg"), verify=(-3.0, 0.0))
    positive(f)(X)
    sized = plait.make_jaxpr(lambda x: jnp.abs(x).sum(axis=1))("n d").jaxpr
    with pytest.raises(plait.ValueError, match="changes results"):
        wrong(sized)
    loud = plait.apply_pass(swap("abs", "neg"), verify=True)
    with pytest.raises(plait.ValueError, match="effects"):
        loud(lambda x: plait.debug.print("x") or jnp.abs(x))(X)
    with pytest.raises(plait.DtypeError, match="verify is 'yes'"):
        plait.rewrite(lambda x: jnp.sin(x), lambda x: x, verify="yes")


def test_pipelines_tell_what_they_did():
    both = plait.pipeline(
        log_exp, lambda jaxpr: plait.rebuild(jaxpr, lambda b, e, *i: None), name="tidy"
    )
    f = lambda x: jnp.log(jnp.exp(x)) + jnp.log(jnp.exp(x * 2))  # noqa: E731
    np.testing.assert_allclose(both(f)(X), X * 3, rtol=1e-6)
    statistics = both.statistics
    assert (statistics.equations_before, statistics.equations_after) == (6, 2)
    assert statistics.matches == 2 and len(statistics.parts) == 2
    lines = str(statistics).splitlines()
    assert lines[0].split() == ["pass", "equations", "after", "matches", "time"]
    assert lines[1].startswith("tidy") and lines[2].startswith("  rewrite(log_exp)")


def softsign(x):
    return jnp.log(jnp.exp(jnp.sin(x))) + x * 0.5


@pytest.mark.parametrize("seed", range(24))
def test_under_random_nestings_of_transforms(seed):
    """A rule that keeps values changes no transform of a function, wherever it stands among them."""
    rng = random.Random(seed)
    wrappers = {
        "rewrite": log_exp,
        "jit": plait.jit,
        "vmap": plait.vmap,
        "grad": lambda f: plait.grad(lambda x: jnp.sum(f(x))),
        "checkpoint": plait.checkpoint,
        "jvp": lambda f: lambda x: plait.jvp(f, (x,), (jnp.ones_like(x),))[1],
        "mask": lambda f: lambda x: plait.mask(f, " ".join("nmk"[: x.ndim]))(
            x, **dict(zip("nmk", map(int, x.shape)))
        ),
    }
    stack = rng.sample(list(wrappers), 3)
    stack.insert(rng.randrange(4), "rewrite")
    x = np.random.default_rng(seed).normal(size=(2, 3, 2)).astype(np.float64)
    f = g = softsign
    for name in reversed(stack):
        f = wrappers[name](f)
        g = g if name == "rewrite" else wrappers[name](g)
    np.testing.assert_allclose(f(x), g(x), rtol=1e-9, atol=1e-12)


def test_loaded_programs_are_rewritten_and_saved_again(tmp_path):
    weights = np.ones((3, 3), np.float32) * 0.1

    def predict(x):
        return jnp.log(jnp.exp(x @ weights))

    plait.save(tmp_path / "a.plait", {"any": (predict, "n 3"), "two": (predict, X)})
    loaded = plait.load(tmp_path / "a.plait")
    smaller = log_exp(loaded)
    assert "exp" in names(loaded.any) and "exp" not in names(smaller.any)
    assert list(smaller.any.constants) == list(loaded.any.constants)
    smaller.verify()
    plait.save(tmp_path / "b.plait", {"predict": (smaller.any, "n 3")})
    again = plait.load(tmp_path / "b.plait").predict
    assert "exp" not in names(again)
    np.testing.assert_allclose(again(X), X @ weights, rtol=1e-5)
    np.testing.assert_allclose(log_exp(again.jaxpr)(X, weights)[0], X @ weights, rtol=1e-5)
    both = log_exp(lambda x: jnp.log(jnp.exp(loaded.two(x))))  # a transform of what calls it
    assert "exp" not in names(both)
    wrong = plait.rewrite(lambda x: jnp.log(jnp.exp(x)), lambda x: x + 1)(loaded.two)
    with pytest.raises(plait.ValueError, match="two"):
        wrong.verify()
    with pytest.raises(plait.ShapeError, match="other inputs or outputs"):
        loaded.two.with_jaxpr(loaded.any.jaxpr)


def random_rewrite_program(seed):
    """Equations over sums and products of a few values, some of which are 0 and 1."""
    rng = random.Random(seed)

    def f(x, y):
        values = [x, y]
        for _ in range(30):
            a, b = rng.choice(values), rng.choice(values)
            kind = rng.randrange(5)
            values.append([a + b, a * b, a + 0.0, 1.0 * a, -(-a)][kind])
            if len(values) > 6:
                values.pop(0)
        return sum(values)

    return f


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_keep_their_values(seed):
    algebra = plait.rewrite(
        [
            plait.Rule(lambda x: x + 0.0, lambda x: x),
            plait.Rule(lambda x: x * 1.0, lambda x: x),
            plait.Rule(lambda x: -(-x), lambda x: x),
            plait.Rule(lambda a, b, c: a * b + a * c, lambda a, b, c: a * (b + c)),
        ],
        verify=True,
    )
    x, y = np.random.default_rng(seed).uniform(0.1, 0.9, size=(2, 4))
    expected = random_rewrite_program(seed)(x, y)
    np.testing.assert_allclose(algebra(random_rewrite_program(seed))(x, y), expected, rtol=1e-9)
    if algebra.statistics.matches:
        assert algebra.statistics.equations_after < algebra.statistics.equations_before


def piece_of(jaxpr, rng):
    """A program of some equations of another, which nothing else needs, and how many there are.

    Its inputs are the values that it is cut off at; operands of sums and products change places.
    """
    uses, (root,) = plait.Uses(jaxpr), rng.sample(list(jaxpr.eqns), 1)
    chosen, open_ = [root], [root]
    while open_:
        for var in open_.pop().inputs:
            definition = uses.definition_of(var) if isinstance(var, str) else None
            if definition is None or rng.random() < 0.3 or uses.is_output(var):
                continue
            outputs = [list(e.outputs) for e in chosen]
            if list(definition.outputs) not in outputs and all(
                list(user.outputs) in outputs for user in uses.users_of(var)
            ):
                chosen.append(definition)
                open_.append(definition)
    order = [list(e.outputs) for e in jaxpr.eqns]
    chosen.sort(key=lambda e: order.index(list(e.outputs)))
    builder, values = plait.Builder(), {}
    for equation in chosen:
        for var in equation.inputs:
            if isinstance(var, str) and var not in values:
                values[var] = builder.input(var.aval)
        inputs = [values.get(v, v) if isinstance(v, str) else v for v in equation.inputs]
        if equation.primitive in ("add", "mul") and rng.random() < 0.5:
            inputs.reverse()
        values.update(zip(equation.outputs, builder.add(equation, *inputs)))
    return builder.close(values[root.outputs[0]]), len(chosen)


@pytest.mark.parametrize("seed", range(10))
def test_a_piece_of_a_program_is_found_in_it(seed):
    rng = random.Random(seed)
    x, y = np.random.default_rng(seed).uniform(0.5, 1.5, size=(2, 3, 3))

    def f(x, y):
        values = [x, y, x[0], 0.5 * y[:, 0]]
        for _ in range(25):
            a, b = rng.choice(values), rng.choice(values)
            kind = rng.randrange(8)
            values.append(
                [
                    a + b,
                    a * b,
                    jnp.sin(a),
                    jnp.tanh(a) - b,
                    jnp.sum(jnp.atleast_1d(a), -1),
                    a / 2,
                    jnp.maximum(a, b),
                    -a,
                ][kind]
            )
        return values[-6:]

    jaxpr = plait.make_jaxpr(f)(x, y).jaxpr
    for _ in range(4):
        piece, size = piece_of(jaxpr, rng)
        count = len(piece.inputs)
        pattern = eval(
            f"lambda {', '.join(f'v{i}' for i in range(count))}: piece({', '.join(f'v{i}' for i in range(count))})[0]",
            {"piece": piece},
        )
        seen = []
        rule = plait.rewrite(
            pattern, pattern, lambda match: seen.append(match) or True, repeat=False
        )
        found = rule(jaxpr)
        assert any(len(match.primitives) == size for match in seen), (piece, jaxpr)
        for a, b in zip(found(x, y), jaxpr(x, y)):
            np.testing.assert_allclose(a, b, rtol=1e-9)
