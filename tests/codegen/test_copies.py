"""What the steps of loops copy, and why: explain names the reason, and most of what could be copied is not.

An old value read after a write, operands that are two things at once, carries that change places, and what a branch or a
choice leaves as it is. Each program also gives the numbers of its loop run step by step.
"""

import re

import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import lax

fori, where = lax.fori_loop, jnp.where
x, y = np.arange(100.0), np.arange(100.0) ** 2
long_x, long_y = np.arange(3000.0) / 7, np.arange(3000.0) ** 2 / 1000  # too long for registers


def notes_of(program, *inputs, wait, **options):
    """The notes about copies, with lines counted from that of the program; checks its numbers."""
    with plait.disable_jit():
        expected = plait.tree.leaves(program(*map(jnp.asarray, inputs)))
    jitted = plait.jit(program, wait=wait, **options)
    text = str(jitted.explain(*map(jnp.asarray, inputs)))
    for got, wanted in zip(
        plait.tree.leaves(jitted(*map(jnp.asarray, inputs))), expected, strict=True
    ):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
    assert "one loop program" in text, text
    first = program.__code__.co_firstlineno
    notes = re.findall(r"copies (.*? at each step: [^;\]]*)", text)
    return [re.sub(r"line (\d+)", lambda m: f"line +{int(m[1]) - first}", n) for n in notes]


both = pytest.mark.parametrize("wait", [False, True])


@both
def test_an_old_value_is_read_before_the_write(wait):
    def program(u):
        def step(i, s):
            u, total = s
            v = u.at[i].set(1.0)
            return v.at[i + 1].set(u[3] + i), total + u[i] * v[0] + u.sum()

        return fori(0, 50, step, (u, 0.0))

    assert notes_of(program, x, wait=wait) == []


@both
def test_an_old_array_is_read_where_the_new_one_says(wait):
    def program(u):
        def step(i, u):
            v = u.at[i].set(1.0)
            j = v.sum().astype(jnp.int32) % 100
            return v.at[j].add(u[j])

        return fori(0, 50, step, u)

    assert notes_of(program, x, wait=wait) == [
        "f64[100] at each step: line +4 reads what line +2 overwrites"
    ]


@both
def test_an_operand_that_is_constant_and_first_carry(wait):
    def program(u):
        return fori(0, 50, lambda i, v: v.at[i].set(u[i] + v[i + 1]), u)

    assert notes_of(program, x, wait=wait) == []  # once, before the loop


@both
def test_one_first_value_of_two_carries(wait):
    def program(u):
        def step(i, s):
            return s[0].at[i].set(1.0), s[1].at[i].add(2.0)

        return fori(0, 50, step, (u, u))

    assert notes_of(program, x, wait=wait) == []


@both
def test_carries_that_are_swapped_change_places(wait):
    def program(u, v):
        return fori(0, 5, lambda i, s: (s[1].at[i].set(0.0), s[0].at[i].set(1.0)), (u, v))

    assert notes_of(program, x, y, wait=wait) == []


@both
def test_carries_that_go_round(wait):
    def program(u, v, w):
        return fori(0, 5, lambda i, s: (s[1], s[2].at[i].set(0.0), s[0]), (u, v, w))

    assert notes_of(program, x, y, x + y, wait=wait) == [
        "f64[100] at each step: what it reads is written at the same time",
        "f64[100] at each step: the next value is another carry",
    ]


@both
def test_a_carry_passes_through_nested_loops(wait):
    def program(u):
        return fori(0, 5, lambda i, u: fori(0, 6, lambda j, u: u.at[i + j].add(1.0), u), u)

    assert notes_of(program, x, wait=wait) == []


@both
def test_a_branch_returns_its_input(wait):
    def program(u):
        def step(i, u):
            return lax.cond(i > 2, lambda u: u, lambda u: u.at[i].set(3.0), u)

        return fori(0, 5, step, u)

    assert notes_of(program, x, wait=wait) == []


@both
def test_a_branch_computes_over_its_input_or_returns_it(wait):
    def program(u):
        def step(i, u):
            return lax.cond(
                u[i] > 5, lambda u: where(jnp.arange(u.size) % 3 == i, u[7], u), lambda u: u, u
            )

        return fori(0, 50, step, u)

    assert notes_of(program, long_x, wait=wait) == []


@both
@pytest.mark.parametrize(
    "one, other",
    [
        (lambda u, v: (v, u), lambda u, v: (u, v)),
        (lambda u, v: (u, u), lambda u, v: (v, v)),
        (lambda u, v: (u + v, u), lambda u, v: (u, u)),
        (lambda u, v: (u[::-1], u * v), lambda u, v: (u, v)),
        (lambda u, v: (v + 1, u), lambda u, v: (u, v * 2)),
        (lambda u, v: (u.at[3].set(v[4]), u + v), lambda u, v: (v, u.at[5].add(1.0))),
    ],
)
def test_alternatives_that_give_what_others_read(one, other, wait):
    def program(u, v):
        def step(i, s):
            u, v = s
            u, v = lax.cond(i % 3 == 0, one, other, u, v)
            return v - 0.5 * u[3:4], u

        return fori(0, 10, step, (u, v))

    notes_of(program, long_x, long_y, wait=wait)

    def once(u, v):
        def step(i, s):
            u, v, w = s
            a, b = lax.cond(i % 3 == 0, one, other, u, v)
            return u, b, w + a * b[7]

        return fori(0, 10, step, (u, v, u))

    notes_of(once, long_x, long_y, wait=wait)


@both
def test_a_branch_returns_another_array(wait):
    def program(u, w):
        def step(i, u):
            return lax.cond(i > 2, lambda u: u.at[i].set(1.0), lambda u: w.at[i].set(0.0), u)

        return fori(0, 5, step, u)

    assert notes_of(program, x, y, wait=wait) == [
        "f64[100] at each step: line +2 overwrites an operand",
        "f64[100] at each step: alternatives give other arrays",
    ]


@both
def test_a_choice_between_an_update_and_the_array_masks_its_stores(wait):
    def program(u, w, k):
        def step(i, u):
            u = where(i % 2 == 0, u.at[i].set(3.0), u)
            u = where(u[i] > 4, u, u.at[k].add(0.5))
            u = where(i % 5 == 0, u.at[i].mul(w[i % 7]), u)
            return where(i % 3 == 1, lax.dynamic_update_slice(u, w, (i,)), u)

        return fori(0, 50, step, u)

    k = np.array([3, 99, 3, 0, 17, 17, 5, 1, 2, 8, 3], np.int32)
    assert notes_of(program, x, y[:30], k, wait=wait) == []
    assert notes_of(program, x, y[:30], k[:1], wait=wait) == []


@both
def test_a_choice_raises_what_the_update_does(wait):
    def program(u):
        return fori(0, 50, lambda i, u: where(i < 0, u.at[i + 51].set(3.0), u), u)

    jitted = plait.jit(program, wait=wait)
    with pytest.raises(IndexError, match="100"):
        jitted(jnp.asarray(x)[:100])


@both
def test_a_choice_that_something_else_reads_is_made_of_a_copy(wait):
    def program(u):
        def step(i, u):
            v = u.at[i].set(3.0)
            w = where(i % 2 == 0, v, u)
            return w + v

        return fori(0, 50, step, u)

    assert notes_of(program, x, wait=wait) == [
        "f64[100] at each step: line +3 reads what line +2 overwrites"
    ]


@both
def test_a_carry_is_stacked(wait):
    def program(u):
        def step(u, i):
            v = u.at[i].set(1.0)
            return v, v

        return lax.scan(step, u, jnp.arange(5))

    assert notes_of(program, x, wait=wait) == [
        "f64[100] at each step: every step has its part of the result"
    ]


@both
def test_a_donated_array(wait):
    def program(u):
        return fori(0, 50, lambda i, u: u.at[i].set(3.0), u)

    assert notes_of(program, x, wait=wait, donate_argnums=0) == []
