"""NumPy, DLPack, the buffer protocol, functions of the catalogue as Python objects.

SPDX-License-Identifier: Apache-2.0
"""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import plait
import plait.numpy as pnp


def test_buffer_protocol():
    x = pnp.asarray(np.arange(6, dtype=np.int16).reshape(2, 3))
    view = memoryview(x)
    assert (
        view.readonly
        and view.format == "h"
        and view.shape == (2, 3)
        and view.tolist() == [[0, 1, 2], [3, 4, 5]]
    )
    assert bytes(x) == np.arange(6, dtype=np.int16).tobytes()
    with pytest.raises(TypeError):
        view[0, 0] = 1


def test_dlpack_shares_memory():
    x = pnp.asarray(np.arange(6.0))
    y = np.from_dlpack(x)
    assert np.shares_memory(y, np.asarray(x))
    z = np.arange(6.0)
    w = plait.from_dlpack(z)
    assert np.shares_memory(np.asarray(w), z) and w.tolist() == z.tolist()
    del z
    assert w.tolist() == list(range(6))
    with pytest.raises(plait.DtypeError):
        plait.from_dlpack("text")
    assert x.__dlpack_device__() == (1, 0)


def test_numpy_functions_take_arrays():
    x = pnp.asarray(np.float32([1, 2, 3]))
    assert np.mean(np.asarray(x)) == 2
    assert np.array(x, dtype=np.float64).dtype == np.float64
    copied = np.array(x, copy=True)
    copied[0] = 9
    assert x.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(x, [1, 2, 3])


def test_traced_values_do_not_become_numpy_arrays():
    with pytest.raises(plait.TracerError):
        plait.jit(lambda x: np.asarray(x))(np.float32([1]))
    with pytest.raises(plait.TracerError, match="lose the derivative"):
        plait.grad(lambda x: x * float(np.asarray(x)))(3.0)
    assert plait.grad(lambda x: x * float(np.asarray(plait.stop_gradient(x))))(3.0) == 3


def test_catalogued_functions_are_ordinary_objects():
    function = pnp.sum
    assert (
        function.__name__ == "sum"
        and function.__module__ == "plait.numpy"
        and "sum(" in function.__doc__
    )
    assert list(inspect.signature(function).parameters)[0] in ("a", "x")
    assert pickle.loads(pickle.dumps(function)) is function
    assert repr(function) == "<function plait.numpy.sum>"
    assert callable(function) and function is plait.numpy.sum


def test_wrong_calls_of_functions():
    x = np.float32([1])
    with pytest.raises(TypeError, match="there is no argument 'nonsense'"):
        pnp.sum(x, nonsense=1)
    with pytest.raises(TypeError, match="is missing"):
        pnp.sum()
    with pytest.raises(TypeError, match="given twice"):
        pnp.sum(x, **{list(inspect.signature(pnp.sum).parameters)[0]: x})
    with pytest.raises(TypeError, match="positional"):
        pnp.sum(x, 0, None, False, 1, 2, 3, 4, 5, 6)


def test_errors_are_the_builtin_ones_too():
    for error, bases in {
        plait.ShapeError: (ValueError, TypeError), plait.ValueError: (ValueError,), plait.IndexError: (IndexError,),
        plait.DtypeError: (TypeError,), plait.TreeError: (ValueError, TypeError), plait.TracerError: (TypeError,),
        plait.MissingRuleError: (NotImplementedError,), plait.MemoryError: (MemoryError,), plait.BackendError: (RuntimeError,),
        plait.InternalError: (RuntimeError,),
    }.items():  # fmt: skip
        assert issubclass(error, (plait.Error, *bases)) and all(
            issubclass(error, base) for base in bases
        )


def test_memory_that_cannot_be_had():
    with pytest.raises(plait.MemoryError):
        pnp.zeros((1 << 45,), np.float64) + 1
    assert float(pnp.asarray(1.0) + 1) == 2


def test_info():
    facts = plait.info()
    assert (
        facts["version"] == plait.__version__
        and "PLAIT_THREADS" in facts
        and "version" in repr(facts)
    )


def test_importing_is_quiet():
    done = subprocess.run(
        [sys.executable, "-c", "import plait"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "" and done.stderr == ""


def test_an_array_for_numpy_is_traced_now_or_of_a_trace_that_has_ended():
    kept, said = [], []

    def leak(x):
        kept.append(x)
        return x + 1

    def convert_both(x):
        for array in (kept[0], x):
            with pytest.raises(plait.TracerError) as error:
                np.asarray(array)
            said.append(error.value.problem)
        return x

    with pytest.raises(plait.TracerError):
        plait.vmap(leak)(np.ones(3))
    plait.jit(convert_both)(np.ones(3))
    assert said[0].startswith("a traced value of type f64[] was used after its trace had ended")
    assert said[1].startswith("a traced array was given to NumPy or another library: the value of")
