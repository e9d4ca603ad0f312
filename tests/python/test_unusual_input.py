"""What no array can be made of, and what does not fit: a clear error or the right answer, never a crash.

The calls are text, and use every name that is imported here.

SPDX-License-Identifier: Apache-2.0
"""

import fractions  # noqa: F401

import numpy as np
import pytest
import scipy.sparse as scipy_sparse

import plait
import plait.numpy as pnp
from plait import nn, random, scipy, sparse  # noqa: F401

X = pnp.asarray([1.0, 2.0, 3.0])
UNALIGNED = np.ndarray(3, np.float64, bytes(25), 1)
FIELDS = np.array([(1.5, 1), (2.5, 2)], dtype=[("a", "f4"), ("b", "i1")])
FROZEN = np.arange(2000.0)
FROZEN.flags.writeable = False
KEY = plait.random.key(0)
SPARSE = sparse.BCOO.fromdense(X)
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
pnp.zeros((2**40, 2**40)) | more elements than memory can ever hold|overflows
pnp.zeros((2**45,)) | cannot allocate
pnp.zeros((2**62,)) | size overflows
pnp.zeros((-1,)) | negative size
pnp.broadcast_to(1.0, (2**40, 2**30)) | more elements
pnp.tile(X, 2**62) | overflows
pnp.repeat(X, 2**61) | overflows
pnp.pad(X, 2**62) | overflows
pnp.eye(2**33) | more elements|cannot allocate|overflows
pnp.arange(2**60) | more elements
pnp.arange(1e30) | elements
pnp.linspace(0, 1, 2**60) | more elements
pnp.ones((2,) * 65) | at most 64 axes|overflows
X.reshape(2**40, 2**40) | overflows
X.sum(axis=2**40) | too large
plait.random.normal(plait.random.key(0), (2**40, 2**40)) | overflows
plait.random.uniform(3) | a key is
plait.random.uniform(pnp.ones(2)) | a key is
plait.from_dlpack("a") | no __dlpack__
plait.from_dlpack(UNALIGNED) | not aligned.*copy the array first
plait.from_dlpack(np.ones(2), device="cuda:7") | no device cuda:7
X.__dlpack__(dl_device=(2, 0)) | wanted on cuda:0
X.__dlpack__(max_version="a") | max_version is 'a'
X.__dlpack__(stream=3) | no stream
X.to_device("tpu") | no device tpu
pnp.asarray(fractions.Fraction(1, 3)) | convert it with float
pnp.asarray(SPARSE) | call its todense
pnp.arange(0, 1, 1e-300) | over 10\\^15 elements
pnp.percentile(X, 101) | not from 0 to 100
pnp.quantile(X, [0.5, np.nan]) | not from 0 to 1
pnp.histogram(X, bins=0) | 0 bins
pnp.histogram(X, bins=2.5) | give an integer
pnp.histogram(X, bins=[3, 2, 1]) | do not rise
pnp.histogram(X, range=(1, 0)) | lower end first
pnp.histogram(X / 0) | drop what is not finite
pnp.digitize(X, [3, 1, 2]) | neither rise nor fall
pnp.unravel_index(-1, (3, 4)) | outside of an array of shape
pnp.fft.fftn(X, s=(2, 2)) | 2 sizes for an array of 1 axes
pnp.polyfit([], [], 1) | no points
pnp.repeat(X, [1, 2]) | 2 counts for 3 elements
pnp.bincount(pnp.array([1]), minlength=-1) | minlength is -1
pnp.trapezoid(X, X[:2]) | a place for each element
plait.optim.clip_by_global_norm({"w": X}, -1.0) | max_norm is negative
pnp.vectorize(3) | is no function
random.randint(KEY, (2,), 0, 2**40) | maxval does not fit int32
random.choice(KEY, 3, (2,), p=-X) | negative
scipy.stats.mode(X[:0]) | of no elements
scipy.stats.gaussian_kde(X[:1]) | one point
scipy.interpolate.interpn((-X,), X, X[:, None]) | do not rise
scipy.interpolate.RegularGridInterpolator((X,), X[:2]) | a point for each value
sparse.BCOO.fromdense(X, nse=2) | 3 elements are not zero
sparse.BCOO((X, X[:, None]), shape=(4,)) | indices of dtype float32
SPARSE @ SPARSE | two sparse arrays
SPARSE + 1 | call todense first
sparse.BCOO(X, shape=(3,)) | give \\(data, indices\\)
sparse.eye(-1) | negative size
1 - SPARSE | call todense first
nn.Conv2d(3, 4, 0, key=KEY) | kernel_size is 0
nn.Conv2d(3, 4, 3, stride=(1, 0), key=KEY) | stride is 0
nn.Conv2d(3, 4, 3, padding="foo", key=KEY) | padding is 'foo'
nn.LSTMCell(3, 4, key=KEY)(X, pnp.ones(4)) | give \\(h, c\\)
nn.MLP(2, 1, 8, -1, key=KEY) | depth is -1
nn.BatchNorm(3)(X, None, training=True) | begin with norm.init_state
nn.MultiHeadAttention(2, 4, key=KEY)(pnp.ones((3, 4)), cache=3) | begin with init_cache
nn.Dropout("a") | rate is 'a'
nn.partition({"w": X}, "w") | a tree of bools
nn.Sequential(nn.relu) | give a list of them
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


def test_numbers_keep_their_64_bits_and_halves_their_side():
    x = np.linspace(0, 1, 12)
    for q in ([0.1, 0.9], [[0.3], [0.7]], (0.25, 1)):
        np.testing.assert_allclose(pnp.quantile(x, q), np.quantile(x, q), rtol=1e-15)
    np.testing.assert_allclose(pnp.percentile(x, [10, 90]), np.percentile(x, [10, 90]), rtol=1e-15)
    below = np.nextafter(np.float32(0.5), np.float32(0))
    assert scipy.ndimage.map_coordinates(pnp.array([0, 1]), [pnp.array([below])], 1).tolist() == [0]
    assert scipy.ndimage.map_coordinates(pnp.array([0, 1]), [pnp.array([below])], 0).tolist() == [0]
    assert pnp.linalg.cond(np.zeros((2, 2))) == np.inf  # as NumPy has it
    assert np.isnan(pnp.cov(np.zeros(0))) and np.isnan(pnp.cov(np.ones(1)))
    matrix = scipy_sparse.csr_array(np.diag([1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(sparse.BCOO.from_scipy_sparse(matrix).todense(), matrix.toarray())
