"""Declared constraints on named sizes: in traces, jit, mask and files.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp


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
    with pytest.raises(plait.ShapeError, match="needs 8\\*t_8 <= 512, and here that is 1024"):
        plait.instantiate(jaxpr, t=1024)
    with pytest.raises(plait.ShapeError, match=r'declare what makes .* constraints=\["n % 8'):
        plait.make_jaxpr(halves)("t")


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
    with pytest.raises(plait.ShapeError):
        plait.make_jaxpr(lambda x: f({"a": x}, ones(2)))("s")


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
