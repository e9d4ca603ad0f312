"""The tape: gradients of eager programs, against grad (to the bit), finite differences, PyTorch's rules for what is
allowed, and NumPy's for writing.

SPDX-License-Identifier: Apache-2.0
"""

import itertools

import numpy as np
import plait
import plait.numpy as pnp
import pytest
from plait import grad, jit, lax, nn, vmap

rng = np.random.default_rng(0)


def floats(*shape, dtype="float32"):
    return rng.uniform(0.3, 1.2, shape).astype(dtype)


def bits(array):
    return np.asarray(array).tobytes()


def by_tape(f, *values):
    """The gradients of f by all arguments, a scalar function of arrays; of those it does not use, zeros."""
    variables = [plait.variable(value) for value in values]
    f(*variables).backward()
    return [pnp.zeros_like(v) if v.grad is None else v.grad for v in variables]


def by_differences(f, *values, step=1e-6):
    """Central differences in float64."""
    gradients = []
    for index, value in enumerate(values):
        gradient = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            sides = []
            for sign in (1, -1):
                moved = [v.copy() for v in values]
                moved[index][place] += sign * step
                sides.append(float(f(*map(pnp.asarray, moved))))
            gradient[place] = (sides[0] - sides[1]) / (2 * step)
        gradients.append(gradient)
    return gradients


def mlp(w, v, b, x):
    hidden = nn.relu(x @ w + b)
    return -pnp.mean(nn.log_softmax(hidden @ v)[:, 0])


def attention(q, k, v):
    weights = nn.softmax(q @ k.T / 2.0, axis=-1)
    return pnp.sum(nn.layer_norm(weights @ v) ** 3)


# Cotangents of shared values are sums of three and more, whose order matters to the bit.
def shared(x, y):
    z = x * y
    for _ in range(3):
        z = pnp.sin(z) * x + z / y - x * z
    return pnp.sum(z * z + x)


def indexed(x, y):
    z = x[1:, ::2] * y[0, 1:3] + pnp.concatenate([x, y])[2:4, :2]
    return pnp.sum(pnp.where(z > 0.5, z, z * z)) + pnp.max(x) + pnp.sum(x.T[[0, 2, 0]])


def many(x, y):
    parts = pnp.split(x, 2, axis=1)
    z = pnp.cumsum(parts[0], axis=0) * pnp.sort(parts[1], axis=0)
    return pnp.sum(pnp.tanh(z) ** 2.5) + pnp.linalg.norm(y) + pnp.sum(pnp.logaddexp(x, y))


PROGRAMS = {
    "mlp": (mlp, floats(5, 7), floats(7, 3), floats(7), floats(4, 5)),
    "attention": (attention, floats(6, 4), floats(6, 4), floats(6, 4)),
    "shared": (shared, floats(3, 4), floats(3, 4)),
    "indexed": (indexed, floats(3, 4), floats(3, 4)),
    "many": (many, floats(3, 4), floats(3, 4)),
    "scalar": (lambda x: x * x * x + x, floats()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_equal_those_of_grad_and_of_jit_of_grad_to_the_bit(name):
    f, *values = PROGRAMS[name]
    arrays = [pnp.asarray(value) for value in values]
    numbers = tuple(range(len(arrays)))
    ours = by_tape(f, *arrays)
    for gradients in (grad(f, numbers)(*arrays), jit(grad(f, numbers))(*arrays)):
        assert [bits(g) for g in ours] == [bits(g) for g in gradients]


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_of_finite_differences(name):
    f, *values = PROGRAMS[name]
    values = [np.asarray(value, "float64") for value in values]
    for ours, expected in zip(by_tape(f, *values), by_differences(f, *values)):
        np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-5, atol=1e-6)


# --- Values --------------------------------------------------------------------------------------


def test_values_on_the_tape_are_values():
    x = plait.variable(2.5)
    y = pnp.asarray([1.0, 2.0]) * x
    assert x.item() == 2.5 and float(x) == 2.5 and bool(x > 2)
    assert np.asarray(y).tolist() == [2.5, 5.0] and y.tolist() == [2.5, 5.0]
    assert [2, 3][int((y[0] > 3).item())] == 2
    assert "requires_grad=True" in repr(y) and str(y) == "[2.5 5. ]"
    assert x.requires_grad and y.requires_grad and not (y > 3).requires_grad
    assert not pnp.ones(2).requires_grad and pnp.ones(2).grad is None


def test_programs_branch_and_loop_on_values():
    x = plait.variable(np.float32(3))
    y = x
    while y < 100:
        y = y * x if int(y) % 2 else y + x
    y.backward()

    def f(x):
        y = x
        while y < 100:
            y = y * x if int(y) % 2 else y + x
        return y

    assert float(x.grad) == float(grad(f)(np.float32(3)))


def test_gradients_accumulate_until_they_are_reset():
    x = plait.variable(np.arange(3, dtype="f"))
    pnp.sum(x * 2).backward()
    pnp.sum(x * x).backward()
    assert x.grad.tolist() == [2, 4, 6]
    x.grad = None
    assert x.grad is None
    x.grad = np.ones(3, "f")
    pnp.sum(x).backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_cotangents_weigh_the_outputs():
    x = plait.variable(np.arange(3, dtype="f"))
    (x * x).backward(np.array([1, 10, 100], "f"))
    assert x.grad.tolist() == [0, 20, 400]


def test_no_grad_and_detach_record_nothing():
    x = plait.variable(np.ones(3, "f"))
    with plait.no_grad():
        y = x * 2
        z = x.reshape(3)
        with plait.no_grad():
            pass
        assert not (x + 1).requires_grad
    assert not y.requires_grad and not z.requires_grad and (x + 1).requires_grad

    @plait.no_grad()
    def f(x):
        return x * 3

    assert not f(x).requires_grad and f.__name__ == "f"
    pnp.sum(x * x.detach() * lax.stop_gradient(x)).backward()
    assert x.grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError), plait.no_grad():
        raise RuntimeError
    assert (x + 1).requires_grad


def test_integers_and_comparisons_carry_no_gradient():
    x = plait.variable(np.array([3.0, 1.0, 2.0], "f"))
    assert not pnp.argmax(x).requires_grad and not x.astype(int).requires_grad
    pnp.sum(x[pnp.argsort(x)] * pnp.arange(3)).backward()
    assert x.grad.tolist() == [2, 0, 1]


# --- Hooks ---------------------------------------------------------------------------------------


def test_hooks_see_the_whole_gradient_and_may_replace_it():
    x = plait.variable(np.float32(2))
    y = x * 3
    seen = []
    handle = y.register_hook(lambda g: seen.append(float(g)))
    other = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(("x", float(g))))
    (y * y + y).backward(retain_graph=True)  # dy = 13
    assert seen == [13.0, ("x", 390.0)] and float(x.grad) == 390
    handle.remove()
    handle.remove()
    other.remove()
    x.grad = None
    (y * y + y).backward()
    assert seen[2:] == [("x", 39.0)] and float(x.grad) == 39


def test_a_hook_on_a_value_that_passes_its_tangent_on_sees_its_own_gradient():
    x = plait.variable(np.float32(2))
    y = x + 1  # its linear equation is none: tangents of x and y are the same
    seen = []
    y.register_hook(lambda g: seen.append(float(g)))
    (x * 5 + y * 7).backward()
    assert seen == [7] and float(x.grad) == 12


def test_an_error_in_a_hook_changes_no_gradient():
    x, y = plait.variable(np.float32(2)), plait.variable(np.float32(3))

    def fail(g):
        raise KeyError("hook")

    handle = y.register_hook(fail)
    z = x * y
    with pytest.raises(KeyError):
        z.backward(retain_graph=True)
    assert x.grad is None and y.grad is None
    handle.remove()
    z.backward()
    assert float(x.grad) == 3 and float(y.grad) == 2


# --- Derivatives of derivatives ------------------------------------------------------------------


@pytest.mark.parametrize("jitted", [False, True])
def test_gradients_that_are_recorded_can_be_differentiated(jitted):
    def f(x):
        return pnp.sum(pnp.sin(x) * x**2 + pnp.exp(x) * pnp.tanh(x) / x)

    call = jit(f) if jitted else f
    value = floats(5, dtype="float64")
    x = plait.variable(value)
    call(x).backward(create_graph=True)
    first = x.grad
    x.grad = None
    pnp.sum(first * first).backward(create_graph=True)
    second = x.grad
    x.grad = None
    pnp.sum(second).backward()
    norm = lambda x: pnp.sum(grad(f)(x) ** 2)  # noqa: E731
    np.testing.assert_allclose(np.asarray(first), np.asarray(grad(f)(value)), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(second), np.asarray(grad(norm)(value)), rtol=1e-9)
    third = grad(lambda x: pnp.sum(grad(norm)(x)))(value)
    np.testing.assert_allclose(np.asarray(x.grad), np.asarray(third), rtol=1e-8)


def test_a_gradient_penalty_reaches_the_weights():
    w = plait.variable(floats(3, dtype="float64"))
    x = plait.variable(floats(3, dtype="float64"))

    def out(w, x):
        return pnp.sum(pnp.tanh(w * x) * w)

    out(w, x).backward(create_graph=True)
    penalty = pnp.sum(x.grad**2)
    w.grad = None
    penalty.backward()
    expected = grad(lambda w, x: pnp.sum(grad(out, 1)(w, x) ** 2))(w.detach(), x.detach())
    np.testing.assert_allclose(np.asarray(w.grad), np.asarray(expected), rtol=1e-10)


# --- Transforms ----------------------------------------------------------------------------------


def test_jitted_functions_are_recorded_as_one_operation():
    @jit
    def f(x, y):
        return pnp.sum(pnp.sin(x) * y), x + y

    x, y = plait.variable(floats(3)), pnp.asarray(floats(3))
    first, second = f(x, y)
    pnp.sum(first * second).backward()
    expected = grad(lambda x: pnp.sum(f(x, y)[0] * f(x, y)[1]))(x.detach())
    np.testing.assert_allclose(np.asarray(x.grad), np.asarray(expected), rtol=1e-6)
    with plait.no_grad():
        assert not f(x, y)[0].requires_grad


def test_variables_captured_by_jit_are_hidden_inputs():
    w = plait.variable(np.arange(3, dtype="f"))
    traces = []

    @jit
    def f(x):
        traces.append(1)
        return pnp.sum(w * w * x)

    f(pnp.ones(3)).backward()
    assert w.grad.tolist() == [0, 2, 4]
    with plait.no_grad():
        w += 1
    w.grad = None
    f(pnp.ones(3)).backward()
    assert w.grad.tolist() == [2, 4, 6] and len(traces) == 1


def test_transforms_of_functions_that_use_variables_are_recorded():
    w = plait.variable(floats(3, dtype="float64"))
    xs = floats(4, 3, dtype="float64")
    pnp.sum(vmap(lambda x: pnp.sum(pnp.sin(w * x)))(xs) ** 2).backward()
    expected = grad(lambda w: pnp.sum(vmap(lambda x: pnp.sum(pnp.sin(w * x)))(xs) ** 2))(w.detach())
    np.testing.assert_allclose(np.asarray(w.grad), np.asarray(expected), rtol=1e-12)
    # grad of a function that captures w: a derivative by x that is differentiated by w.
    w.grad = None
    pnp.sum(grad(lambda x: pnp.sum(pnp.sin(w * x)))(xs[0])).backward()
    np.testing.assert_allclose(
        np.asarray(w.grad),
        np.cos(np.asarray(w) * xs[0]) - np.asarray(w) * xs[0] * np.sin(np.asarray(w) * xs[0]),
    )
    # Applied to a variable, grad gives a value on its tape.
    w.grad = None
    pnp.sum(grad(lambda x: pnp.sum(x**3))(w)).backward()
    np.testing.assert_allclose(np.asarray(w.grad), 6 * np.asarray(w))
    w.grad = None
    _, tangent = plait.jvp(lambda x: pnp.sum(x**3), (w,), (w,))
    tangent.backward()
    np.testing.assert_allclose(np.asarray(w.grad), 9 * np.asarray(w) ** 2)


def test_checkpoints_and_remat_are_recorded():
    x = plait.variable(floats(3))
    f = plait.checkpoint(lambda x: pnp.sum(pnp.sin(pnp.sin(x))))
    f(x).backward()
    assert bits(x.grad) == bits(grad(f)(x.detach()))


@pytest.mark.parametrize("mapped", [False, True])
@pytest.mark.parametrize("jitted", [False, True])
def test_rules_of_the_user_are_used(jitted, mapped):
    @plait.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, g: (g * 100 * x,))

    @plait.custom_jvp
    def h(x):
        return x * 3

    h.defjvp(lambda p, t: (p[0] * 3, t[0] * 7 * p[0]))
    for call, factor in ((f, 100), (h, 7)):
        call = jit(call) if jitted else call
        call = vmap(call) if mapped else call
        x = plait.variable(np.array([1.0, 2.0], "f"))
        pnp.sum(call(x)).backward(create_graph=True)
        assert x.grad.tolist() == [factor, 2 * factor]
        first, x.grad = x.grad, None
        pnp.sum(first * first).backward()
        np.testing.assert_allclose(np.asarray(x.grad), 2 * factor**2 * np.array([1, 2]))


def test_rules_of_the_user_may_look_at_values():
    @plait.custom_vjp
    def f(x):
        return x if x > 0 else -x

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g if x > 0 else -g,))
    x = plait.variable(np.float32(-2))
    (f(x) * 3).backward()
    assert float(x.grad) == -3
    x.grad = None
    (f(x) ** 3).backward(create_graph=True)
    slope, x.grad = x.grad, None
    assert float(slope) == -12
    slope.backward()
    assert float(x.grad) == 12  # d²|x|³ = 6|x|


def test_functions_with_rules_cannot_capture_what_is_on_the_tape():
    w, x = plait.variable(np.float32(2)), plait.variable(np.float32(3))

    @plait.custom_vjp
    def f(x):
        return x * w

    f.defvjp(lambda x: (x * w, x), lambda x, g: (g,))
    for argument in (x, 3.0):
        with pytest.raises(TypeError, match="captures a value of type f32"):
            f(argument)


# --- Errors --------------------------------------------------------------------------------------


def refused(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, plait.Error) and text in message, message
    assert "\n  fix: " in message and "\n  test_tape.py:" in message, message


def write(array, key, value):
    array[key] = value


def test_errors_say_what_to_do():
    x = plait.variable(np.ones(3, "f"))
    y = x * x
    refused(lambda: y.backward(), ValueError, "only a scalar has a gradient")
    refused(lambda: y.backward(np.ones(2, "f")), ValueError, "cotangent has shape (2)")
    refused(lambda: y.backward(np.ones(3)), TypeError, "cotangent has dtype float64")
    refused(lambda: pnp.sum(pnp.ones(3)).backward(), ValueError, "is not on the tape")
    refused(lambda: plait.variable(3), TypeError, "has dtype int64")
    refused(lambda: plait.variable(1j), TypeError, "no real derivative")
    refused(lambda: write(x, 0, 1), ValueError, "a variable of type f32[3] was written to")
    refused(lambda: write(x[:2], 0, 1), ValueError, "a variable of type f32[3] was written to")
    refused(lambda: pnp.ones(3).register_hook(print), ValueError, "not on the tape")
    refused(lambda: y.register_hook(3), TypeError, "is no function")
    refused(lambda: setattr(x, "grad", np.ones(2, "f")), ValueError, "is no gradient")
    refused(lambda: setattr(y, "grad", np.ones(3, "f")), ValueError, "is no variable")
    total = pnp.sum(y)
    total.backward()
    refused(lambda: total.backward(), ValueError, "freed by an earlier backward")
    refused(lambda: jit(lambda z: plait.variable(z))(1.0), TypeError, "is traced")
    refused(lambda: jit(lambda z: (z.backward(), z)[1])(1.0), TypeError, "is traced")
    z = x * 2
    z.register_hook(lambda g: pnp.ones(5))
    refused(lambda: pnp.sum(z).backward(), ValueError, "a hook returned")


def test_what_a_trace_captures_cannot_be_written_to():
    outside = pnp.ones(3)

    def f(x):
        outside[0] = x
        return x

    refused(
        lambda: jit(f)(1.0), TypeError, "was made outside of the function is written to while jit"
    )
    refused(lambda: grad(f)(1.0), TypeError, "was made outside of the function is written to")
    refused(lambda: vmap(f)(pnp.ones(2)), TypeError, "was made outside of the function is written")
    assert outside.tolist() == [1, 1, 1]


def test_writing_cannot_change_the_type_of_a_variable():
    x = plait.variable(np.arange(3, dtype="f"))
    with plait.no_grad():
        with pytest.raises(TypeError, match="writing cannot change a dtype"):
            x += 1j
        with pytest.raises(ValueError, match="writing cannot change a shape"):
            x += pnp.ones((2, 3))
    with pytest.raises(TypeError, match="cannot be deleted"):
        del x[0]
    assert x.tolist() == [0, 1, 2]


def test_random_programs_agree_with_grad_to_the_bit():
    operations = [
        lambda a, b: a * b,
        lambda a, b: a + b,
        lambda a, b: a - b * 0.5,
        lambda a, b: pnp.sin(a) * b,
        lambda a, b: a / (2 + b * b),
        lambda a, b: pnp.maximum(a, b),
        lambda a, b: pnp.tanh(a) + a,
        lambda a, b: pnp.roll(a, 1) * b[::-1],
    ]
    for seed, size in itertools.product(range(15), (3, 70)):
        choose = np.random.default_rng(seed)
        plan = [
            (choose.integers(len(operations)), *choose.integers(100, size=2)) for _ in range(12)
        ]

        def program(x, y):
            values = [x, y]
            for operation, i, j in plan:
                values.append(
                    operations[operation](values[i % len(values)], values[j % len(values)])
                )
            return pnp.sum(values[-1] * values[-2] + values[-3])

        values = [pnp.asarray(choose.standard_normal(size).astype("f")) for _ in range(2)]
        ours = by_tape(program, *values)
        for theirs in (grad(program, (0, 1))(*values), jit(grad(program, (0, 1)))(*values)):
            assert [bits(g) for g in ours] == [bits(g) for g in theirs], seed
