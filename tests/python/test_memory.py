"""The allocator from Python: what it holds, giving it back, its bound, and views that outlive arrays.

SPDX-License-Identifier: Apache-2.0
"""

import gc
import os

import numpy as np
import pytest

import plait
import plait.numpy as pnp

BIG = 3 << 20  # elements: 12 MiB, above what comes from huge pages
SLACK = 1 << 20  # a thread that compiles for earlier programs takes and gives back a little


def test_stats_follow_arrays():
    plait.clear_memory()
    before = plait.memory_stats()
    x = pnp.arange(BIG, dtype=np.float32)
    held = plait.memory_stats()
    assert held["bytes_in_use"] - before["bytes_in_use"] > 4 * BIG - SLACK
    del x
    gc.collect()
    after = plait.memory_stats()
    assert abs(after["bytes_in_use"] - before["bytes_in_use"]) < SLACK
    assert after["bytes_cached"] > before["bytes_cached"] + 4 * BIG - SLACK
    plait.clear_memory()
    assert plait.memory_stats()["bytes_cached"] < after["bytes_cached"] - 4 * BIG + SLACK


def test_a_large_result_takes_the_memory_of_one_that_is_gone():
    x = pnp.asarray(np.arange(BIG, dtype=np.float32))
    seen = set()
    for _ in range(6):
        y = x + x
        seen.add(np.asarray(y).__array_interface__["data"][0])
        assert float(y[3]) == 6
        del y
    assert len(seen) == 1


def test_numpys_view_of_a_result_outlives_the_result():
    x = pnp.asarray(np.arange(BIG, dtype=np.float32))
    view = np.asarray(x + 1.0)
    for _ in range(3):
        plait.clear_memory()
        assert float((x * 0.0)[5]) == 0
    np.testing.assert_array_equal(view, np.arange(1, BIG + 1, dtype=np.float32))


def test_the_cache_obeys_its_limit():
    before = plait.set_cache_limit(0)
    try:
        assert plait.memory_stats()["cache_limit"] == 0
        x = pnp.arange(BIG, dtype=np.float32)
        del x
        assert plait.memory_stats()["bytes_cached"] < 4 * BIG
    finally:
        assert plait.set_cache_limit(before) == 0
    assert plait.memory_stats()["cache_limit"] == before
    for wrong in (-1, 1.5, "much"):
        with pytest.raises(plait.Error):
            plait.set_cache_limit(wrong)
    assert plait.memory_stats()["cache_limit"] == before


def test_a_forked_child_allocates_and_frees():
    x = pnp.arange(BIG, dtype=np.float32)
    child = os.fork()
    if child == 0:
        y = x + x
        fine = float(y[7]) == 14
        del y
        plait.clear_memory()
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_explain_says_how_much_memory_a_call_takes():
    x = pnp.ones((1000,), np.float32)
    text = plait.jit(lambda x: pnp.sort(x) + 1.0).explain(x)
    assert "arena: " in text and "; with outputs: " in text
    total = int(text.split("; with outputs: ")[1].split()[0])
    assert 4000 <= total <= 8192
