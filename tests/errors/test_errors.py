"""Programs that are wrong, and the exact text that plait says of them.

A case is a file in tests/errors/python: the program, a line of dashes, and the error's type and text.
PLAIT_UPDATE=1 writes those anew that differ, which fail all the same; read them before committing.

SPDX-License-Identifier: Apache-2.0
"""

import os
import pathlib

import pytest

import plait

FOLDER = pathlib.Path(__file__).parent / "python"
RULE = "-" * 40 + "\n"


@pytest.mark.parametrize("case", sorted(path.stem for path in FOLDER.glob("*.txt")))
def test_error_text(case, tmp_path):
    path = FOLDER / f"{case}.txt"
    program, _, expected = path.read_text().partition(RULE)
    script = tmp_path / "train.py"
    script.write_text(program)
    with pytest.raises(plait.Error) as caught:
        exec(compile(program, script, "exec"), {"__name__": "train"})
    actual = f"{type(caught.value).__name__}: {caught.value}\n"
    if os.environ.get("PLAIT_UPDATE") and actual != expected:
        path.write_text(program + RULE + actual)
    assert actual == expected
    # Four parts: what, where, and a fix; the transforms where there are any.
    assert "train.py:" in actual and "\n  fix: " in actual
    # Nothing is left behind.
    assert not plait._plait.is_tracing()
    assert float(plait.numpy.asarray(1.0) + 1) == 2
