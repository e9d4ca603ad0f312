"""Comparing scripted functions with Python itself.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
from plait import jit, script, tree


def helper(value):
    if value > 1.0:
        return value - 1.0
    return -value


def numbers(result):
    leaves = [np.asarray(leaf, float) for leaf in tree.leaves(result)]
    return np.concatenate([leaf.ravel() for leaf in leaves]) if leaves else []


def same(actual, expected):
    """Equal trees of numbers; NumPy's, Python's and plait's count alike."""
    np.testing.assert_allclose(numbers(actual), numbers(expected), rtol=1e-12, atol=1e-12)


def calls(function, cases, **options):
    """A function is the same scripted, on known values, and jitted, with every argument traced."""
    scripted = script(function)
    for case in cases:
        expected = function(*case)
        same(scripted(*case), expected)
        same(jit(scripted, **options)(*case), expected)
    return scripted
