"""The laws asked of backends from Python; tests/inspect plants flaws that they must find.

SPDX-License-Identifier: Apache-2.0
"""

from collections import Counter

import numpy as np
import pytest

import plait


def test_a_backend_is_asked_by_name():
    report = plait.conformance("reference", ["add", plait.lax.tanh], programs=False)
    assert report.backend == "reference" and report.passed()
    assert {row.primitive for row in report.rows} == {"add", "tanh"}
    add = [row for row in report.rows if row.primitive == "add"]
    assert all(row.state == "passed" and row.samples > 0 for row in add)
    assert {np.dtype(row.dtype) for row in add} >= {np.dtype("float32"), np.dtype("int32")}
    states = Counter(row.state for row in report.rows)
    assert f"{states['passed']} passed, {states['refused']} refused" in str(report)


def test_programs_are_asked_too():
    assert plait.conformance("reference", "sub").passed()


def test_what_is_not_there_is_named():
    with pytest.raises(plait.ValueError, match="no backend 'nobody'.*\n.*reference"):
        plait.conformance("nobody")
    with pytest.raises(plait.ValueError, match="no primitive 'no_such'"):
        plait.conformance("reference", ["no_such"])
    with pytest.raises(plait.ValueError, match="the module /no/such.so cannot be loaded"):
        plait.conformance("reference", modules="/no/such.so")
    with pytest.raises(plait.DtypeError, match="conformance: 3 is no text"):
        plait.conformance(3)
