"""What no array can be made of, and what does not fit: a clear error or the right answer, never a crash.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp

X = pnp.asarray([1.0, 2.0, 3.0])
UNALIGNED = np.ndarray(3, np.float64, bytes(25), 1)
FIELDS = np.array([(1.5, 1), (2.5, 2)], dtype=[("a", "f4"), ("b", "i1")])
FROZEN = np.arange(2000.0)
FROZEN.flags.writeable = False
MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])

# Values that NumPy lays out in unusual ways, and what they are.
RIGHT = [
    (np.array([1, -2], ">i2"), [1, -2]),
    (np.array([1.5, np.inf], ">f8"), [1.5, np.inf]),
    (np.array([1 + 2j], ">c8"), [1 + 2j]),
    (UNALIGNED, [0, 0, 0]),
    (FIELDS["a"], [1.5, 2.5]),
    (np.arange(6.0).reshape(2, 3)[::-1, ::-2], [[5, 3], [2, 0]]),
    (np.lib.stride_tricks.as_strided(np.arange(2.0), (3, 2), (0, 8)), [[0, 1]] * 3),
    (FROZEN[::-500], [1999, 1499, 999, 499]),
    (memoryview(np.arange(3)[::-1]), [2, 1, 0]),
    (bytearray(b"ab"), [97, 98]),
    (np.ma.masked_array([1.0, 2.0], mask=False), [1, 2]),
    (np.ones((1,) * 64), np.ones((1,) * 64)),
    (np.zeros((3, 0, 2)), np.zeros((3, 0, 2))),
]


@pytest.mark.parametrize("values, expected", RIGHT, ids=range(len(RIGHT)))
def test_memory_of_any_layout(values, expected):
    for array in (pnp.asarray(values), plait.jit(lambda x: x + 0)(pnp.asarray(values))):
        np.testing.assert_array_equal(np.asarray(array), expected)


# What is refused, and the words of the error.
REFUSED = """
pnp.asarray(np.array([1, None], object)) | no array of numbers: its dtype is object
pnp.asarray(np.array(["a", "b"])) | no array of numbers: its dtype is <U1
pnp.asarray(["a", "b"]) | asarray: 'a' of type str is no array of numbers
pnp.asarray([1, None]) | asarray: None of type NoneType
pnp.asarray(b"ab") | no array of numbers
pnp.asarray({1: 2}) | no array of numbers
pnp.asarray(iter([1])) | no array of numbers
pnp.asarray(np.array(["2020-01-01"], "M8[D]")) | its dtype is datetime64
pnp.asarray(np.zeros(2, np.longdouble)) | its dtype is float128
pnp.asarray(FIELDS) | no array of numbers
pnp.asarray(MASKED) | masked elements.*filled
pnp.asarray([[1, 2], [3]]) | does not have the shape of an array.*equally long
pnp.asarray([np.zeros(2), np.zeros(3)]) | does not have the shape of an array
pnp.asarray([X, [1, 2]]) | shapes \\(3\\) and \\(2\\)
pnp.asarray(10**30) | does not fit 64 bits
pnp.asarray([2**63, -1]) | does not fit 64 bits
pnp.asarray(300, dtype=np.uint8) | 300 does not fit uint8
pnp.asarray([1], dtype="S3") | no dtype that plait has
X + np.array([1, None, 2], object) | its dtype is object
np.array([1, None, 2], object) + X | its dtype is object
X["a"] | indexed with 'a'
X[np.array([0], object)] | its dtype is object
X[2**70] | does not fit
X[1.0] | index with integers
pnp.zeros((2**40, 2**40)) | more elements than memory can ever hold
pnp.zeros((2**45,)) | cannot allocate
pnp.zeros((2**62,)) | size overflows
pnp.zeros((-1,)) | negative size
pnp.broadcast_to(1.0, (2**40, 2**30)) | more elements
pnp.tile(X, 2**62) | overflows
pnp.repeat(X, 2**61) | overflows
pnp.pad(X, 2**62) | overflows
pnp.eye(2**33) | more elements
pnp.arange(2**60) | more elements
pnp.arange(1e30) | elements
pnp.linspace(0, 1, 2**60) | more elements
pnp.ones((2,) * 65) | at most 64 axes
X.reshape(2**40, 2**40) | overflows
X.sum(axis=2**40) | too large
plait.random.normal(plait.random.key(0), (2**40, 2**40)) | overflows
plait.random.uniform(3) | a key is uint32\\[2\\]
plait.random.uniform(pnp.ones(2)) | a key is uint32\\[2\\]
plait.from_dlpack("a") | no __dlpack__
plait.from_dlpack(UNALIGNED) | not aligned.*copy the array first
plait.from_dlpack(np.ones(2), device="cuda:7") | no device cuda:7
X.__dlpack__(dl_device=(2, 0)) | wanted on cuda:0
X.__dlpack__(max_version="a") | max_version is 'a'
X.__dlpack__(stream=3) | no stream
X.to_device("tpu") | no device tpu
"""


@pytest.mark.parametrize("case", REFUSED.strip().splitlines())
def test_what_does_not_fit_is_refused_in_words(case):
    call, _, text = case.rpartition(" | ")
    with pytest.raises(plait.Error, match="(?s)" + text) as caught:
        eval(call)
    assert "fix: " in str(caught.value)


def test_a_capsule_is_taken_once_and_a_foreign_error_passes():
    capsule = X.__dlpack__()
    plait.from_dlpack(capsule)
    with pytest.raises(plait.DtypeError, match="used before"):
        plait.from_dlpack(capsule)
    for array in (np.array(["a"]), np.array([1], ">i4")):
        with pytest.raises(BufferError):
            plait.from_dlpack(array)
