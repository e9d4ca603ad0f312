"""plait.rules() and plait.info(): what is printed, and that no built-in primitive lacks a rule.

SPDX-License-Identifier: Apache-2.0
"""

import subprocess
import sys

import pytest

import plait

# Other tests add primitives, so these run in a process of their own.
HOLES = """
import plait
matrix = plait.rules()
assert len(matrix) > 60
for name, cells in matrix.items():
    for kind, (state, file, line) in cells.items():
        if kind not in ("transpose", "decompose"):
            assert state != "missing", (name, kind)
        assert state != "rule" or (file.endswith((".cpp", ".py")) and line > 0), (name, kind, file, line)
        assert not state.startswith("refused") or len(state) > len("refused: "), (name, kind)
# Facts that a block states beside the rules of transforms.
for kind in ("cost", "autocast", "spelling", "group", "speculate", "motion"):
    for name, state, file, line in plait.rules(kind):
        assert state != "missing", (name, kind)
# Facts about some primitives: what holds programs, what shows elements of its operand, what commutes.
for kind in ("bodies", "prune", "steps", "diverge"):
    stated = {name for name, state, file, line in plait.rules(kind) if state != "missing"}
    assert {"call", "cond", "scan", "while", "lanes", "masked", "linear_solve"} <= stated, kind
shown = {name for name, state, file, line in plait.rules("put") if state == "rule"}
assert {"reshape", "transpose", "broadcast_in_dim", "rev", "slice", "split", "real", "imag"} <= shown
assert {"add", "cmp"} <= {name for name, state, file, line in plait.rules("commute") if state == "rule"}
# A linear primitive has a rule by which it is transposed; so does what jvp writes into linear programs.
for name in ("add", "neg", "mul", "dot_general", "reduce", "gather", "transpose", "reshape", "call", "masked"):
    assert matrix[name]["transpose"][0] != "missing", name
print(repr(matrix))
"""


def test_no_rule_is_missing():
    result = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    header, *lines = result.stdout.splitlines()
    assert header.split() == "primitive abstract eval jvp transpose batch mask decompose".split()
    (add,) = [line for line in lines if line.startswith("add ")]
    assert "binary.cpp:" in add and "family elementwise" in add
    assert "missing" not in result.stdout


def test_one_kind_and_one_primitive():
    rows = {row[0]: row for row in plait.rules("mask")}
    assert rows["dot_general"][1] == "rule" and rows["dot_general"][3] > 0
    assert plait.rules(plait.mask) == plait.rules("mask")
    assert plait.rules(plait.vmap) == plait.rules("batch")
    assert plait.rules(plait.grad) == plait.rules("transpose")
    for sin in ("sin", plait.lax.sin):
        kinds = {row[0]: row for row in plait.rules(sin)}
        assert kinds["jvp"][1] == "rule" and "unary.cpp:" in repr(plait.rules(sin))
    assert "lib/primitives/" in repr(plait.rules("jvp"))
    with pytest.raises(
        plait.ValueError, match="no kind of rule, primitive or backend named 'sine'"
    ):
        plait.rules("sine")


def test_info():
    facts = plait.info()
    assert facts["version"] == plait.__version__ and facts["threads"] >= 1
    assert "reference" in facts["backends"]
    for name in ("PLAIT_LOG", "PLAIT_THREADS", "PLAIT_CACHE_DIR", "PLAIT_MAX_ISA"):
        assert name in facts and name in repr(facts)


def test_reprs():
    x = plait.numpy.asarray(plait.numpy.ones(3))

    @plait.jit
    def f(x):
        return x + 1

    assert repr(x) == "Array([1., 1., 1.], dtype=float32)"
    assert repr(f) == "<jitted f, 0 traces>"
    f(x)
    assert repr(f) == "<jitted f, 1 trace>"
    assert repr(f.cache).splitlines()[0] == "1 trace, 0 hits, 1 miss"
    line = sys._getframe().f_lineno + 1
    assert repr(plait.custom_jvp(lambda x: x)) == f"<custom_jvp <lambda:{line}>>"
    assert str(plait.make_jaxpr(f)(x)).startswith("{ lambda")
    assert repr(plait.ShapeDtypeStruct((3,), "float32")) == "f32[3]"
    texts = []
    plait.grad(lambda x: texts.append(repr(x)) or x.sum())(x)
    assert texts == ["Traced<f32[3] in linearize>"]


def test_a_backend_says_what_it_takes():
    takes = {name: state for name, state, *_ in plait.rules("reference")}
    assert takes["sin"] == takes["dot_general"] == "kernel"
    assert takes["cond"].startswith("control: ")


# A user's own primitive has no samples, by which a backend is tried: that is said, and hides nothing.
OWN = """
import plait
own = plait.Primitive("unsampled")
own.abstract(lambda x: x)
takes = {name: state for name, state, *_ in plait.rules("reference")}
print(takes["unsampled"], takes["sin"], sep="|")
"""


def test_a_primitive_without_samples_is_named():
    result = subprocess.run([sys.executable, "-c", OWN], capture_output=True, text=True)
    assert result.stdout.strip() == "`unsampled` has no samples rule: float64|kernel", result.stderr
