"""Bad input of every kind: each gets an error of the right class with its parts, and nothing is harmed.

The exact texts of the important ones are in tests/errors/python.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes
import gc
import re
import threading

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import _plait, grad, jit, make_jaxpr, mask, vmap

BUILTIN = (TypeError, ValueError, NotImplementedError, IndexError, MemoryError)


def refused(call, kind=BUILTIN, text=""):
    """The error that a call makes: plait's own, of a builtin class, saying what, where and the fix."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert isinstance(caught.value, plait.Error), (type(caught.value), message)
    assert isinstance(caught.value, BUILTIN) and not isinstance(caught.value, plait.InternalError)
    assert "\n  test_bad_input.py:" in message and "\n  fix: " in message, message
    assert re.search(text, message), message
    assert not _plait.is_tracing()
    return message


def raising(*args, **kwargs):
    raise RuntimeError("hostile")


def hostile(**methods):
    return type("Hostile", (), methods)()


x = jnp.ones((2, 3))
huge = 1 << 40

CALLS = {
    # sizes
    "negative": lambda: jnp.zeros(-1),
    "overflow": lambda: jnp.zeros((huge, huge)),
    "overflow beside zero": lambda: jnp.zeros((huge, huge, 0)),
    "overflow of broadcast": lambda: jnp.broadcast_to(jnp.ones(1), (huge, huge)),
    "overflow of tile": lambda: jnp.tile(jnp.ones(3), 1 << 60),
    "beyond 62 bits": lambda: jnp.zeros(1 << 62),
    "beyond 64 bits": lambda: jnp.zeros(1 << 70),
    "beyond memory": lambda: jnp.zeros(1 << 50) + 1,
    "rank": lambda: jnp.zeros((1,) * 65),
    "sizes that cancel": lambda: jnp.reshape(jnp.ones(4), (-2, -2)),
    "float size": lambda: jnp.zeros(2.5),
    "bool size": lambda: jnp.zeros(True),
    "endless arange": lambda: jnp.arange(float("inf")),
    "sections": lambda: jnp.array_split(jnp.ones(5), huge),
    "zero sections": lambda: jnp.split(jnp.ones(5), 0),
    "long range": lambda: jnp.asarray(range(1 << 60)),
    "longer range": lambda: jnp.asarray(range(1 << 100)),
    "struct": lambda: plait.ShapeDtypeStruct((-3,), "float32"),
    "struct of None": lambda: plait.ShapeDtypeStruct(None, "float32"),
    # axes
    "axis": lambda: jnp.sum(x, axis=2),
    "axis of 2**32": lambda: jnp.sum(x, axis=1 << 32),
    "axis of 2**40": lambda: jnp.sort(x, axis=huge),
    "axis of 2**70": lambda: jnp.sum(x, axis=1 << 70),
    "least axis": lambda: jnp.sum(x, axis=-(1 << 63)),
    "bool axis": lambda: jnp.sum(x, axis=True),
    "nan axis": lambda: jnp.sum(x, axis=float("nan")),
    "axis twice": lambda: jnp.sum(x, axis=(0, -2)),
    "transpose": lambda: jnp.transpose(x, (0,)),
    "transpose in lax": lambda: plait.lax.transpose(x, (0,)),
    "broadcast without axes": lambda: plait.lax.broadcast_in_dim(jnp.ones(3), (3,), ()),
    "contraction": lambda: plait.lax.dot_general(x, x, (((-1,), (-1,)), ((), ()))),
    "contraction twice": lambda: plait.lax.dot_general(x, x, (((1, 1), (1, 1)), ((), ()))),
    # dtypes and values
    "text": lambda: jnp.sum("abc"),
    "text array": lambda: jnp.asarray(np.array(["a"])),
    "objects": lambda: jnp.asarray(np.array([object(), None])),
    "dates": lambda: jnp.asarray(np.array(["2020-01-01"], dtype="datetime64")),
    "record": lambda: jnp.asarray(np.zeros(3, dtype=[("a", "f4")])),
    "ragged": lambda: jnp.asarray([[1], [2, 3]]),
    "no dtype": lambda: jnp.zeros(3, dtype="bogus"),
    "bools do not subtract": lambda: jnp.array([True]) - jnp.array([True]),
    "integer of 65 bits": lambda: jnp.asarray(1 << 64),
    "300 as uint8": lambda: jnp.ones(1, dtype="uint8") + 300,
    "-1 as uint64": lambda: jnp.ones(1, dtype="uint64") + -1,
    "2**40 as int32": lambda: jnp.ones(1, dtype="int32") * huge,
    "300 in full": lambda: jnp.full(3, 300, dtype="uint8"),
    "300 in a list": lambda: jnp.asarray([1, 300], dtype="uint8"),
    "300 set": lambda: jnp.ones(3, dtype="uint8").at[0].set(300),
    "complex set": lambda: jnp.ones(3).at[0].set(1j),
    "contains itself": lambda: jnp.asarray((lambda a: a.append(a) or a)([])),
    # in-place writes and indices
    "write of another shape": lambda: x.__setitem__(0, jnp.ones(5)),
    "write of another dtype": lambda: jnp.arange(3).__setitem__(0, 0.5),
    "write to a diagonal": lambda: jnp.ones((2, 2)).diagonal().__setitem__(0, 1),
    "delete": lambda: x.__delitem__(0),
    "index": lambda: x[5],
    "float index": lambda: x[0.5],
    "values at": lambda: x.at[0].set(jnp.ones(5)),
    "constructor": lambda: plait.Array(),
    # transforms
    "no function": lambda: grad(3),
    "argnums": lambda: grad(lambda x: x, argnums=None)(1.0),
    "argnums of 2**70": lambda: grad(lambda x: x, argnums=1 << 70)(1.0),
    "in_axes of 2**40": lambda: vmap(lambda x: x, in_axes=huge)(x),
    "in_axes of 2**32": lambda: vmap(lambda x: x, in_axes=1 << 32)(x),
    "in_axes of text": lambda: vmap(lambda x: x, in_axes="a")(x),
    "out_axes of text": lambda: vmap(lambda x: x, out_axes="a")(x),
    "out_axes of 2**40": lambda: vmap(lambda x: x, out_axes=huge)(x),
    "chunk": lambda: vmap(lambda x: x, chunk="a")(x),
    "static_argnums": lambda: jit(lambda x: x, static_argnums="a"),
    "static_argnums beyond": lambda: jit(lambda x: x, static_argnums=5),
    "static_argnames": lambda: jit(lambda x: x, static_argnames="y"),
    "static_argnames of int": lambda: jit(lambda x: x, static_argnames=3),
    "if": lambda: jit(lambda x: x if x > 0 else -x)(1.0),
    "if under vmap": lambda: vmap(lambda x: x if x > 0 else -x)(jnp.ones(3)),
    "float": lambda: jit(float)(1.0),
    "index by traced": lambda: jit(lambda i: [1, 2][i])(1),
    "pickled tracer": lambda: jit(lambda x: x.__reduce__())(1.0),
    "text leaf": lambda: grad(lambda t: t["a"])({"a": "b"}),
    "object leaf": lambda: jit(lambda t: t)([object()]),
    "surrogate key": lambda: grad(lambda t: 1.0)({"\ud800": object()}),
    "null key": lambda: grad(lambda t: 1.0)({"\0": object()}),
    "generator": lambda: jit(lambda: (i for i in range(3)))(),
    "spec": lambda: make_jaxpr(lambda x: x)("n n ?"),
    "deep spec": lambda: make_jaxpr(lambda x: x)("(" * 100_000),
    "null spec": lambda: make_jaxpr(lambda x: x)("\0"),
    "power of a size": lambda: make_jaxpr(lambda x: x.shape[0] ** -1)("n"),
    "instantiate": lambda: plait.instantiate(make_jaxpr(lambda x: x)("n"), n=-4),
    "instantiate nothing": lambda: plait.instantiate(3, n=4),
    "in_shapes": lambda: mask(lambda x: x, 5)(jnp.ones(3), n=2),
    "mask size": lambda: mask(lambda x: x, "n")(jnp.ones(3), n=1 << 70),
    "ragged of nothing": lambda: plait.ragged(3),
    "rules": lambda: plait.rules(3),
    "policy": lambda: plait.checkpoint(lambda x: x, policy=3),
    "policy's answer": lambda: grad(plait.checkpoint(jnp.sin, policy=lambda *a: "x"))(1.0),
    "no capsule": lambda: plait.from_dlpack(3),
    # hostile objects
    "no repr": lambda: jnp.asarray(hostile(__repr__=raising)),
    "surrogate repr": lambda: jnp.asarray(hostile(__repr__=lambda s: "\ud800")),
    "null repr": lambda: jnp.asarray(hostile(__repr__=lambda s: "a\0b")),
    "no attributes": lambda: jnp.asarray(hostile(__getattr__=raising)),
    "no index": lambda: x[hostile(__index__=raising)],
    "huge index": lambda: jnp.zeros(hostile(__index__=lambda s: 1 << 200)),
    "no hash": lambda: jit(lambda x: 1, static_argnums=0)(hostile(__hash__=raising)),
    "no jaxpr": lambda: _plait.parse_jaxpr("{ lambda"),
}


@pytest.mark.parametrize("name", CALLS)
def test_bad_input_is_refused_in_words(name, unharmed):
    refused(CALLS[name])
    unharmed()


TRANSFORMS = {
    "grad": lambda f: grad(f)(1.0),
    "jit": lambda f: jit(f)(1.0),
    "vmap": lambda f: vmap(f)(jnp.ones(3)),
    "mask": lambda f: mask(f, "n")(jnp.ones(3), n=2),
    "make_jaxpr": lambda f: make_jaxpr(f)("n"),
    "jvp": lambda f: plait.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: plait.linearize(f, 1.0),
    "checkpoint": lambda f: grad(plait.checkpoint(f))(1.0),
    "nested": lambda f: jit(vmap(grad(f)))(jnp.ones(3)),
}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, StopIteration, SystemExit])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_an_exception_of_the_function_passes_and_leaves_nothing_behind(name, error, unharmed):
    def function(x):
        jnp.sin(x)
        raise error("mine")

    with pytest.raises(error, match="mine"):
        TRANSFORMS[name](function)
    unharmed()


LEAKS = {
    "jit": lambda f: jit(f)(1.0),
    "grad": lambda f: grad(f)(1.0),
    "vmap": lambda f: vmap(f)(jnp.ones(3)),
    "mask": lambda f: mask(f, "n")(jnp.ones(3), n=2),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leaked_tracer_is_refused_wherever_it_is_used(name, unharmed):
    kept = []
    with pytest.raises(plait.TracerError, match=r"`kept\[0\]` holds a traced value"):
        LEAKS[name](lambda x: kept.append(x) or jnp.sum(x))
    for use in (
        lambda: kept[0] + 1,
        lambda: float(kept[0]),
        lambda: np.asarray(kept[0]),
        lambda: jit(lambda y: y + kept[0])(1.0),
        lambda: jit(lambda y: y)(kept[0]),
        lambda: grad(lambda y: jnp.sum(y * kept[0]))(1.0),
    ):
        refused(use, plait.TracerError, "trace had ended\n  made at test_bad_input.py:")
    assert "ended" in repr(kept[0])
    unharmed()


def test_a_size_has_no_value_outside_its_program(unharmed):
    kept = []
    make_jaxpr(lambda x: kept.append(x.shape[0]) or x)("n")
    refused(lambda: jnp.zeros(kept[0]), plait.TracerError, "the size n")
    unharmed()


def test_a_tracer_stays_in_its_thread():
    messages = []

    def function(x):
        def use():
            try:
                x + 1
            except plait.TracerError as error:
                messages.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return x

    jit(function)(1.0)
    grad(function)(1.0)
    assert len(messages) == 2 and "a traced value" in messages[0]


def test_operators_of_bools_are_numpys():
    a, b = np.array([True, True, False]), np.array([True, False, False])
    for left, right in ((a, b), (a, True), (False, b)):
        for operator in ("__add__", "__mul__"):
            x, y = np.asarray(left), np.asarray(right)
            wanted = getattr(x, operator)(y)
            got = getattr(jnp.asarray(left), operator)(jnp.asarray(right))
            assert got.dtype == wanted.dtype and np.array_equal(got, wanted)
            traced = jit(lambda p, q: getattr(p, operator)(q))(
                jnp.asarray(left), jnp.asarray(right)
            )
            assert np.array_equal(traced, wanted)
    assert np.array_equal(jnp.add(a, b), np.add(a, b))
    for call in (lambda: jnp.array(a) - jnp.array(b), lambda: jnp.subtract(a, b)):
        refused(call, TypeError, "bools do not subtract")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integers_that_a_dtype_cannot_hold_are_refused_or_compared_as_numbers(dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, 0, 1, info.max], dtype)
    for number in (-1, 0, 127, 128, 255, 300, -129, 1 << 31, -(1 << 40), (1 << 63) - 1, 1 << 63):
        fits = info.min <= number <= info.max
        if fits:
            with np.errstate(over="ignore"):
                assert np.array_equal(
                    jnp.asarray(values) + number, values + np.dtype(dtype).type(number)
                )
        else:
            with pytest.raises(OverflowError):
                values + number
            refused(
                lambda: jnp.asarray(values) + number, ValueError, f"{number} does not fit {dtype}"
            )
            refused(
                lambda: number * jnp.asarray(values), ValueError, f"{number} does not fit {dtype}"
            )
        for compare in ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"):
            wanted = getattr(values, compare)(number)
            assert np.array_equal(getattr(jnp.asarray(values), compare)(number), wanted)
            assert np.array_equal(jit(lambda v: getattr(v, compare)(number))(values), wanted)


def test_what_identities_return_unchanged_is_checked_all_the_same():
    for call in (
        lambda: jnp.transpose(x, (0,)),
        lambda: jit(lambda x: plait.lax.transpose(x, (0,)))(x),
        lambda: make_jaxpr(lambda x: plait.lax.broadcast_in_dim(x, (3,), ()))("3"),
    ):
        refused(call, ValueError)


# --- Rules of users ------------------------------------------------------------------------------

names = iter(range(1000))


def primitive(**kinds):
    made = plait.Primitive(f"bad_input_{next(names)}")
    rules = {"abstract": lambda a: a, "eval": lambda a: a, **kinds}
    for kind, rule in rules.items():
        if kind != "eval" or "decompose" not in rules:
            getattr(made, kind)(rule)
    return made


GARBAGE = [None, 3, "text", object(), [], [1, 2, 3], {}, np.zeros(7)]
RULES = {
    "abstract": lambda p: p(jnp.ones(3)),
    "eval": lambda p: p(jnp.ones(3)),
    "jvp": lambda p: plait.jvp(p, (jnp.ones(3),), (jnp.ones(3),)),
    "transpose": lambda p: plait.linear_transpose(p, jnp.ones(3))(jnp.ones(3)),
    "batch": lambda p: vmap(p)(jnp.ones(3)),
    "mask": lambda p: mask(p, "n")(jnp.ones(3), n=2),
    "decompose": lambda p: jit(p)(jnp.ones(3)),
}


@pytest.mark.parametrize("kind", RULES)
def test_rules_that_return_garbage_or_take_other_arguments(kind, unharmed):
    for value in GARBAGE:
        rule = {kind: lambda *arguments, value=value: value}
        try:
            RULES[kind](primitive(**rule))
        except plait.Error as error:
            assert isinstance(error, BUILTIN) and "fix: " in str(error), (value, error)
        unharmed()
    with pytest.raises(TypeError):
        RULES[kind](primitive(**{kind: lambda: None}))
    with pytest.raises(RuntimeError, match="hostile"):
        RULES[kind](primitive(**{kind: raising}))
    unharmed()


@pytest.mark.parametrize("value", GARBAGE, ids=range(len(GARBAGE)))
def test_custom_derivatives_that_return_garbage(value, unharmed):
    @plait.custom_jvp
    def f(x):
        return jnp.sin(x)

    @plait.custom_vjp
    def g(x):
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: value)
    g.defvjp(lambda x: (jnp.sin(x), x), lambda residuals, ct: value)
    for call in (lambda: plait.jvp(f, (1.0,), (1.0,)), lambda: grad(g)(1.0)):
        try:
            call()
        except plait.Error as error:
            assert isinstance(error, BUILTIN) and "fix: " in str(error), error
        unharmed()


# --- Hostile objects -----------------------------------------------------------------------------


def test_exceptions_of_users_objects_pass_unchanged(unharmed):
    for call in (
        lambda: jnp.asarray(hostile(__array__=raising)),
        lambda: jit(lambda x: x)(hostile(__array__=raising)),
        lambda: jnp.zeros(hostile(__index__=raising)),
        lambda: plait.from_dlpack(hostile(__dlpack__=raising)),
        lambda: jnp.ones(3) == hostile(__eq__=raising),
        lambda: plait.tree.map(raising, [1]),
    ):
        with pytest.raises(RuntimeError, match="hostile"):
            call()
        unharmed()


def test_a_cache_that_is_cleared_while_it_is_searched():
    class Key:
        def __eq__(self, other):
            f.clear_cache()
            gc.collect()
            return True

        def __hash__(self):
            return 1

        def __repr__(self):
            f.clear_cache()
            return "Key()"

    f = jit(lambda key, x: x + 1, static_argnums=0)
    for _ in range(5):
        assert float(f(Key(), 1.0)) == 2
        repr(f.cache)


def test_containers_that_change_while_they_are_flattened(unharmed):
    class Node:
        pass

    box = [Node(), [object() for _ in range(50)]]

    def flatten(node):
        box[1].clear()
        del box[1:]
        return (), None

    plait.tree.register_pytree_node(Node, flatten, lambda aux, children: Node())
    assert plait.tree.leaves(box) == []
    unharmed()


def test_values_of_classes_that_only_plait_makes():
    for cls in (plait.Jaxpr, plait.TreeDef, plait.Size, plait.Array):
        with pytest.raises(TypeError):
            cls()
        with pytest.raises(TypeError):
            cls.__new__(cls)
    with pytest.raises(TypeError):
        type("Mine", (plait.Array,), {})


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
        ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


numbers = (ctypes.c_float * 64)(*range(64))


def capsule(shape=(3,), strides=None, **fields):
    def row(values):
        return ctypes.cast((ctypes.c_int64 * 8)(*values), ctypes.POINTER(ctypes.c_int64))

    values = dict(data=ctypes.addressof(numbers), device_type=1, code=2, bits=32, lanes=1)
    tensor = DLTensor(**{**values, "ndim": len(shape), "shape": row(shape), **fields})
    if strides:
        tensor.strides = row(strides)
    capsule.kept.append(tensor)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(tensor), b"dltensor", None)


capsule.kept = []


def test_dlpack_tensors_that_no_library_means(unharmed):
    assert plait.from_dlpack(capsule()).tolist() == [0, 1, 2]
    assert plait.from_dlpack(capsule(strides=(-1,), byte_offset=8)).tolist() == [2, 1, 0]
    for fields in (
        {"ndim": -1}, {"ndim": 1_000_000}, {"shape": (-3,)}, {"shape": (1 << 62, 4)},
        {"strides": (1 << 62,)}, {"data": None}, {"bits": 31}, {"code": 99}, {"lanes": 4},
        {"byte_offset": 1}, {"data": None, "shape": (0, -1)},
    ):  # fmt: skip
        tensor = capsule(**fields)
        refused(lambda: plait.from_dlpack(tensor))
    tensor = capsule()
    capsule.kept[-1].shape = None
    refused(lambda: plait.from_dlpack(tensor))
    with pytest.raises(plait.BackendError, match="no device"):
        plait.from_dlpack(np.ones(3), device="cuda")
    used = capsule()
    plait.from_dlpack(used)
    refused(lambda: plait.from_dlpack(used), TypeError, "used before")
    unharmed()
