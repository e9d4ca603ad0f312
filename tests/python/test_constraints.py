"""Declared constraints on named sizes: in traces, jit, mask and files.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import plait
import plait.numpy as pnp
import pytest


def halves(x):
    return x.reshape(x.shape[0] // 8, 8).sum(1)


def ones(*shape):
    return np.ones(shape, np.float32)


DECLARED = ["t % 8 == 0", "0 < t <= 512"]


def test_a_multiple_makes_reshape_fit_and_is_part_of_the_text():
    jaxpr = plait.make_jaxpr(halves, constraints=DECLARED)("t")
    text = str(jaxpr)
    assert text.startswith("{ lambda t_8 ; a:f32[8*t_8] where 1<=8*t_8, 8*t_8<=512 . let")
    for t in (8, 24, 512):
        assert str(plait.instantiate(jaxpr, t=t)) == str(plait.make_jaxpr(halves)(ones(t)))
    np.testing.assert_array_equal(jaxpr(ones(16)), [8, 8])
    with pytest.raises(plait.ShapeError, match="t is 12, and the program needs t % 8 == 0"):
        plait.instantiate(jaxpr, t=12)
    with pytest.raises(plait.ShapeError, match="needs t <= 512, and here that is 1024"):
        plait.instantiate(jaxpr, t=1024)


def patches(x):
    h, w, c = x.shape
    x = x.reshape(h // 4, 4, w // 4, 4, c).transpose(0, 2, 1, 3, 4)
    return x.reshape(-1, 16 * c)


# What tracing needs of sizes is found out: the programs are those of the constraints.
@pytest.mark.parametrize(
    "function, specs, needed, given",
    [
        (halves, ("t",), ["t % 8 == 0"], ()),
        (halves, ("t",), ["t % 24 == 0"], ["t % 6 == 0"]),
        (lambda x: x.reshape(-1, 8), ("t 2",), ["t % 4 == 0"], ()),
        (lambda x: x.reshape(-1, 4, x.shape[1]), ("t d",), ["t % 4 == 0"], ()),
        (lambda x: pnp.split(x, 6, axis=1)[2], ("3 2*t",), ["t % 3 == 0"], ()),
        (lambda x: pnp.split(x, 2)[0] + x.reshape(3, -1)[0].sum(), ("t",), ["t % 6 == 0"], ()),
        (patches, ("h w 3",), ["h % 4 == 0", "w % 4 == 0"], ()),
        (lambda x, y: halves(x) + y[: x.shape[0] // 8], ("t", "t"), ["t % 8 == 0"], ()),
        (
            lambda q, k: plait.nn.dot_product_attention(q, k, k),
            ("b t h 8", "b t 4 8"),
            ["h % 4 == 0"],
            (),
        ),
        (lambda x: plait.vmap(halves)(x).sum(), ("3 t",), ["t % 8 == 0"], ()),
        (lambda x: plait.grad(lambda x: (halves(x) ** 2).sum())(x), ("t",), ["t % 8 == 0"], ()),
        (lambda x: plait.jit(halves)(x), ("t",), ["t % 8 == 0"], ()),
    ],
)
def test_tracing_finds_out_which_sizes_are_multiples(function, specs, needed, given):
    found = plait.make_jaxpr(function, constraints=given)(*specs)
    assert str(found) == str(plait.make_jaxpr(function, constraints=needed)(*specs))


def test_multiples_that_were_found_are_checked_at_the_call(tmp_path):
    plait.save(tmp_path / "f.plait", halves, "t")
    for f in (plait.jit(halves, sizes="t"), plait.load(tmp_path / "f.plait").halves):
        np.testing.assert_array_equal(f(ones(16)), [8, 8])
        with pytest.raises(
            plait.ShapeError, match="argument x, axis 0 has size 12, where t, a multiple of 8, is"
        ):
            f(ones(12))
        # A program around it needs what it needs.
        outer = plait.make_jaxpr(lambda x, f=f: f(x))("s")
        assert str(outer).startswith("{ lambda s_8 ; a:f32[8*s_8]")
    masked = plait.mask(halves, "n")
    np.testing.assert_array_equal(masked(ones(32), n=16), [8, 8, 0, 0])
    np.testing.assert_array_equal(
        plait.vmap(masked)(ones(2, 32), n=np.int32([8, 16])), [[8, 0, 0, 0], [8, 8, 0, 0]]
    )
    with pytest.raises(plait.ShapeError, match="needs n % 8 == 0"):
        masked(ones(32), n=12)


def test_what_no_multiple_mends_is_an_error():
    # Either size would do.
    with pytest.raises(plait.ShapeError, match=r"\(t,d\) has d\*t elements"):
        plait.make_jaxpr(lambda x: x.reshape(-1, 8))("t d")
    with pytest.raises(plait.ShapeError, match=r'declare what makes .* constraints=\["n % 8'):
        plait.make_jaxpr(lambda x: x.reshape(3, x.shape[0]))("t")

    # A function that catches the error goes on without the multiple.
    def tries(x):
        try:
            return halves(x)
        except plait.ShapeError:
            return x

    assert "t_8" not in str(plait.make_jaxpr(tries)("t"))


# The factor of what a multiple is in programs, t_8, is nothing that errors speak of.
@pytest.mark.parametrize("constraints", [(), ["t % 8 == 0"]])
def test_errors_speak_of_the_sizes_that_were_named(constraints):
    for function, message in (
        (lambda x: halves(x) + pnp.ones(3), r"\(t//8\) and \(3\)"),
        (lambda x: x.reshape(-1, 8) + x, r"\(t//8,8\) and \(t\)"),
        (lambda x: x.reshape(-1, 8).reshape(7), "holds 7"),
        (lambda x: pnp.stack([pnp.tile(x, 2).reshape(-1, 8).ravel(), x]), r"\(2\*t\)"),
    ):
        with pytest.raises(plait.ShapeError, match=message) as caught:
            plait.make_jaxpr(function, constraints=constraints)("t")
        assert "t_8" not in str(caught.value)


def test_orders_decide_what_the_function_asks():
    def f(x, y):
        if x.shape[0] > 3 and y.shape[0] <= x.shape[0] and 2 * y.shape[0] < 2 * x.shape[0] + 1:
            return x[2:]
        return y

    jaxpr = plait.make_jaxpr(f, constraints=["n >= 4", "m <= n"])("n", "m")
    assert "where 4<=n, m<=n . let" in str(jaxpr)  # and no 2<=n of the slice, which they imply
    assert str(plait.instantiate(jaxpr, n=5, m=2)) == str(plait.make_jaxpr(f)(ones(5), ones(2)))
    with pytest.raises(plait.TracerError, match="depends on the sizes"):
        plait.make_jaxpr(f, constraints=["n >= 3", "m <= n"])("n", "m")
    # What the trace itself had to decide is a constraint too.
    assert "where 1<=n" in str(plait.make_jaxpr(lambda x: pnp.argmax(x))("n"))


def test_orders_make_slices_of_known_sizes():
    jaxpr = plait.make_jaxpr(lambda x: x - x[:1], constraints=["n > 0"])("n 2")
    np.testing.assert_array_equal(jaxpr(ones(3, 2)), 0 * ones(3, 2))
    with pytest.raises(plait.ShapeError, match="do not broadcast"):
        plait.make_jaxpr(lambda x: x - x[:1])("n 2")


def test_facts_end_with_the_trace():
    plait.make_jaxpr(lambda x: x[2:], constraints=["n >= 4"])("n")
    assert "where 2<=n" in str(plait.make_jaxpr(lambda x: plait.lax.slice(x, (2,), x.shape))("n"))


@pytest.mark.parametrize(
    "text, message",
    [
        ("t >", "is no size"),
        ("t != 0", r'"!=" at position 2'),
        ("t", "it compares nothing"),
        ("t < 0", "no sizes satisfy it"),
        ("z > 0", "the size z, which no spec names"),
        (3, "constraints holds 3"),
        ("t + 4611686018427387904 > 0", "overflow|no size|fits?"),
    ],
)
def test_bad_constraints(text, message):
    with pytest.raises(Exception, match=message):
        plait.make_jaxpr(halves, constraints=[text])("t")


def test_sizes_that_overflow_are_an_error():
    cube = plait.make_jaxpr(lambda x: pnp.broadcast_to(x[:, None, None], (x.shape[0],) * 3))("n")
    with pytest.raises(plait.ShapeError, match="more elements than memory|overflows 62 bits"):
        plait.instantiate(cube, n=2**40)
    with pytest.raises((plait.ShapeError, plait.ValueError), match="62 bits|overflow"):
        plait.make_jaxpr(lambda x: x)("4611686018427387904*n")


def test_jit_checks_each_call_and_names_argument_and_axis():
    f = plait.jit(lambda p, y: halves(p["a"]) + y.sum(), sizes=({"a": "t"}, "m"),
                  constraints=[*DECLARED, "m <= t"])  # fmt: skip
    np.testing.assert_array_equal(f({"a": ones(16)}, ones(2)), [10, 10])
    for _ in range(2):
        for t, m, message in (
            (12, 2, r"jit: argument p\['a'\], axis 0 has size 12, where t, a multiple of 8, is needed"),
            (1024, 2, r"jit: t <= 512 is needed, where t is 1024 in argument p\['a'\], axis 0"),
            (8, 9, r"jit: m <= t is needed, where m is 9 in argument y, axis 0, and t is 8 in argument p\['a'\], axis 0"),
        ):  # fmt: skip
            with pytest.raises(plait.ShapeError, match=message):
                f({"a": ones(t)}, ones(m))
    assert len(f.cache) == 1
    grads = plait.grad(lambda x: f({"a": x}, ones(2)).sum())(ones(16))
    np.testing.assert_array_equal(grads, ones(16))
    batched = plait.vmap(lambda x: f({"a": x}, ones(2)))(ones(3, 16))
    assert batched.shape == (3, 2)
    # Inside another program of named sizes they pass on to it.
    outer = plait.make_jaxpr(lambda x: f({"a": x}, ones(2)), constraints=["s % 16 == 0"])("s")
    assert "16*s_16<=512" in str(outer)
    inner = plait.make_jaxpr(lambda x: f({"a": x}, ones(2)))("s")
    assert "8*s_8<=512" in str(inner)


def test_mask_checks_every_example():
    m = plait.mask(halves, "n", constraints=["n % 8 == 0", "n >= 8"])
    np.testing.assert_array_equal(m(ones(32), n=16), [8, 8, 0, 0])
    lengths = np.int32([8, 24])
    batch = plait.vmap(m)(ones(2, 32), n=lengths)
    np.testing.assert_array_equal(batch, [[8, 0, 0, 0], [8, 8, 8, 0]])
    slope = plait.grad(lambda x: plait.vmap(m)(x, n=lengths).sum())(ones(2, 32))
    np.testing.assert_array_equal(slope, np.arange(32) < lengths[:, None])
    with pytest.raises(
        plait.ShapeError, match="needs n % 8 == 0, and here that is 1 == 0 in example 1"
    ):
        plait.vmap(m)(ones(2, 32), n=np.int32([8, 9]))
    with pytest.raises(plait.ShapeError, match="mask: the function needs"):
        m(ones(32), n=0)


def test_files_keep_constraints(tmp_path):
    path = tmp_path / "f.plait"
    plait.save(path, halves, "t", constraints=DECLARED)
    entry = plait.load(path).halves
    assert "where 1<=8*t_8, 8*t_8<=512" in str(entry.jaxpr) and entry.sizes == ("f32[8*t_8]",)
    np.testing.assert_array_equal(entry(ones(24)), [8, 8, 8])
    with pytest.raises(
        plait.ShapeError, match="argument x, axis 0 has size 12, where t, a multiple"
    ):
        entry(ones(12))
    with pytest.raises(plait.ShapeError, match="t <= 512 is needed, where t is 1024 in argument x"):
        entry(ones(1024))
    np.testing.assert_array_equal(plait.jit(entry, buckets=True)(ones(24)), [8, 8, 8])
