"""The scoreboard's own workings, with rows made up for it: checks, turns, targets, limits, reports."""

import math
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import plait.numpy as pnp
import pytest

BENCH = Path(__file__).parent.parent / "bench"
sys.path.insert(0, str(BENCH))
import contest as contests  # noqa: E402
import libraries  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402

FAKE = """
import os
import numpy as np
from libraries import jitted
from rows import Row, Work, best_peer

def plus(number):
    return lambda library, x: lambda: library.numpy(x) + number

def dying(library, x):
    os._exit(3)

COMMON = {"inputs": lambda: (np.ones(4, np.float32),), "reference": lambda x: x + 1}
ROWS = [
    Row("fake/right", "x + 1", best_peer(), calls={"*": jitted(lambda xp, x: x + 1)}, **COMMON),
    Row("fake/wrong", "x + 1", calls={"plait": plus(1), "numpy": plus(2)}, **COMMON),
    Row("fake/variants", "", calls={"numpy": lambda *a: {"a": plus(2)(*a), "b": plus(1)(*a)}}, **COMMON),
    Row("fake/raises", "", calls={"numpy": lambda library, x: lambda: 1 / 0}, **COMMON),
    Row("fake/dies", "", calls={"numpy": dying}, **COMMON),
    Row("fake/cold", "", calls={"plait": plus(1)}, cold=True, **COMMON),
    Row("fake/cold-wrong", "", calls={"numpy": plus(2)}, cold=True, **COMMON),
    Row("fake/grown", "", calls={"numpy": plus(1)}, cold=True, cached=True, unit="B", **COMMON),
]
"""


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """What the rows above come to."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "rows_fake.py").write_text(FAKE)
    sys.path.insert(0, str(folder))
    patch = pytest.MonkeyPatch()
    patch.setenv("PYTHONPATH", str(folder), prepend=":")
    contest = contests.Contest(
        ["plait", "numpy"],
        repeats=2,
        turn=0.001,
        limit=60,
        folder=str(folder / "out"),
        families=("rows_fake",),
    )
    try:
        return {row.name: contest.measure(row) for row in rows.all_rows(("rows_fake",))}
    finally:
        contest.close()
        patch.undo()
        sys.path.remove(str(folder))


def test_right_results_are_timed_in_turns(entries):
    for name in ("plait", "numpy"):
        entry = entries["fake/right"][name]
        assert entry.status == "ok" and entry.error == 0
        assert len(entry.values) == 2 and all(0 < value < 1 for value in entry.values)


def test_wrong_results_are_not_timed(entries):
    assert entries["fake/wrong"]["plait"].status == "ok"
    wrong = entries["fake/wrong"]["numpy"]
    assert wrong.status == "wrong" and not wrong.values
    assert wrong.notes[""].startswith("WRONG: differs by 5.0e-01")


def test_the_fastest_right_variant_counts(entries):
    entry = entries["fake/variants"]["numpy"]
    assert entry.status == "ok" and entry.variant == "b" and entry.notes["a"].startswith("WRONG")


def test_failures_are_said_and_end_nothing_else(entries):
    raised, died = entries["fake/raises"]["numpy"], entries["fake/dies"]["numpy"]
    assert raised.status == "failed" and "ZeroDivisionError" in raised.notes[""]
    assert died.status == "failed" and "status 3" in died.notes[""]
    assert entries["fake/cold"]["plait"].status == "ok"


def test_first_calls_in_new_processes(entries):
    cold, wrong = entries["fake/cold"]["plait"], entries["fake/cold-wrong"]["numpy"]
    assert cold.status == "ok" and len(cold.values) == 2 and cold.error == 0
    assert wrong.status == "wrong" and not wrong.values and "differs" in wrong.notes[""]
    grown = entries["fake/grown"]["numpy"]
    assert grown.status == "ok" and len(grown.values) == 2 and all(v >= 0 for v in grown.values)


def test_differences_from_the_reference():
    assert rows.difference([np.ones(2)], [np.ones(2)]) == 0
    assert rows.difference({"a": 3.0}, [2.0]) == pytest.approx(0.5)
    assert rows.difference([np.float32(0.5)], [0.0]) == pytest.approx(0.5)
    assert rows.difference([np.array([1, math.nan])], [np.ones(2)]) == math.inf
    with pytest.raises(ValueError, match="shape"):
        rows.difference([np.ones(2)], [np.ones(3)])
    with pytest.raises(ValueError, match="2 results"):
        rows.difference([1, 2], [1])


def test_one_wrong_element_of_many_is_found():
    """A norm hides it: of a million elements one that is wrong by its own size."""
    reference = np.random.default_rng(0).standard_normal(1 << 20)
    result = reference.copy()
    result[777] += 3.0
    row = rows.Row("fake/row", "what", tolerance=1e-2)
    assert rows.difference(result, reference) < row.tolerance
    assert rows.outlier(result, reference) > 0.5
    assert rows.wrong(row, result, reference)[1].startswith("WRONG: an element differs")
    assert rows.wrong(row, reference, reference) == (0, None)
    assert rows.outlier([np.array([1, math.nan])], [np.ones(2)]) == math.inf
    assert rows.outlier([np.zeros(2)], [np.zeros(2)]) == 0
    with pytest.raises(ValueError, match="no result"):
        rows.difference([], [])


def test_samples_reach_from_the_first_element_to_the_last():
    assert rows.spread(np.arange(1000), 4).tolist() == [0, 333, 666, 999]
    assert rows.spread(np.arange(6).reshape(3, 2), 2).tolist() == [[0, 1], [4, 5]]


def test_no_reference_is_zero_throughout():
    """What is compared with zeros alone may have lost everything on the way."""
    for row in rows.all_rows():
        if not row.name.startswith(("first/chain", "length/", "tape/", "eager/")):
            continue
        wanted = row.reference(*rows.wide(tuple(row.sample(*row.inputs()))))
        assert any(np.abs(np.asarray(leaf)).max() > 1e-3 for leaf in rows.leaves(wanted)), row.name


RATES = {"fma32": 1e9, "fma64": 5e8, "product16": 4e9, "copy": 1e10, "call": 1e-8}


def test_limits_are_the_most_that_any_part_needs():
    assert rows.Work().seconds(RATES) is None
    assert rows.Work(flops=2e9, bytes=1e10).seconds(RATES) == 2
    assert rows.Work(flops=2e9, bytes=3e10, flops64=1e9).seconds(RATES) == 3
    assert rows.Work(flops16=4e9).seconds(RATES) == 1
    assert rows.Work(calls=3).seconds(RATES) == pytest.approx(3e-8)


def test_targets():
    figures = rows.Figures({"jax": 2.0, "numpy": 4.0}, 1.0, {"a/b": 5.0})
    nothing = rows.Figures()
    cases = [
        (rows.microseconds(3), 3e-6, 3e-6),
        (rows.best_peer(0.5), 1.0, None),
        (rows.peer("numpy"), 4.0, None),
        (rows.of_limit(0.8), 1.25, None),
        (rows.of_row("a/b", 1.3), 6.5, None),
        (rows.both(rows.best_peer(), rows.at_most(3, "3")), 2.0, 3),
        (rows.either(rows.peer("numpy"), rows.at_most(3, "3")), 4.0, 3),
        (rows.NOTHING, None, None),
    ]
    for target, known, unknown in cases:
        assert target.allowed(figures) == (known if known is None else pytest.approx(known))
        assert target.allowed(nothing) == unknown
    assert rows.both(rows.best_peer(), rows.of_limit(0.9)).text == "≤ best peer and ≥ 90% of limit"


def judged(reach=rows.NOTHING, work=rows.Work(), per=1, **values):
    row = rows.Row("fake/row", "what", reach, work=work, per=per)
    found = {name: contests.Entry("ok", value) for name, value in values.items()}
    record = contests.record_of(row, found)
    contests.judge(row, record, RATES, {})
    return record


def test_verdicts_take_medians_and_the_better_allocator():
    values = {"plait": [3.0, 1.0, 2.0], "jax": [6.0], "jax+": [4.0], "numpy": [9.0]}
    record = judged(rows.best_peer(), rows.Work(bytes=2e10), per=2, **values)
    assert record["plait"] == 2 and record["peers"] == {"jax": 4, "numpy": 9}
    assert record["ratio"] == 0.5 and record["passes"] and record["distance"] == 0.5
    assert record["limit"] == 1 and record["of_limit"] == 2
    assert record["entries"]["plait"]["least"] == 1
    assert judged(rows.best_peer(0.25), **values)["passes"] is False
    alone = judged(rows.best_peer(), plait=[1.0])
    assert alone["passes"] is None and alone["ratio"] is None
    assert judged(rows.best_peer(), plait=[], numpy=[1.0])["passes"] is None


def scoreboard():
    over = judged(rows.at_most(1e-6, "1 µs"), plait=[2e-6], numpy=[1e-6])
    over["entries"]["jax"] = {"status": "wrong", "notes": {"": "differs"}}
    ok = judged(rows.at_most(1e-6, "1 µs"), plait=[5e-7], numpy=[1e-6])
    return {
        "rows": {"fake/over": over, "fake/ok": ok},
        "versions": {"plait": "0", "jax": "1", "torch": "2", "numpy": "3"},
    }


def test_the_scoreboard_as_text_and_json(tmp_path):
    path = str(tmp_path / "scoreboard.json")
    assert report.read(path) == {"rows": {}}
    report.write(scoreboard(), path)
    assert report.read(path) == scoreboard()
    text = report.board(scoreboard())
    first = next(line for line in text.splitlines() if line.startswith("fake/over"))
    assert first.split()[1:8] == ["2", "µs", "WRONG", "—", "1", "µs", "2.00"]
    assert "OVER ≤ 1 µs" in first and "1 of 2 rows" in text
    assert "fake/over: jax wrong: differs" in text
    assert report.farthest(scoreboard()["rows"]) == [(2.0, "fake/over")]


def test_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    report.plot(scoreboard(), tmp_path / "scoreboard.png")
    assert (tmp_path / "scoreboard.png").read_bytes().startswith(b"\x89PNG")


def test_amounts():
    assert [report.amount(value) for value in (2.5, 0.0123, 4.56e-7, 0.99999, None)] == [
        "2.5 s",
        "12.3 ms",
        "456 ns",
        "1000 ms",
        "—",
    ]
    assert report.amount(64e6, "B") == "64 MB"


def test_every_row_is_whole():
    every = rows.all_rows()
    assert len({row.name for row in every}) == len(every) > 80
    known = {*libraries.NAMES, "*", "jaxlike", "torchlike"}
    for row in every:
        assert "/" in row.name and row.what and row.unit in "sB"
        assert (row.measure is None) == bool(row.calls) and set(row.calls) <= known
        assert row.measure or row.reference
    named = {row.name for row in every}
    wanted = rows.Figures(rows=dict.fromkeys(named, 1.0), peers={"numpy": 1.0, "jax": 1.0}, limit=1)
    assert all(row.reach.allowed(wanted) for row in every if row.reach is not rows.NOTHING)


def test_the_calls_of_the_namespace_name_every_function_and_give_numpys_results():
    import namespace
    import namespace_cases

    text = " ".join(namespace_cases.CASES)
    for module, prefix in ((pnp, "np."), (pnp.linalg, "np.linalg."), (pnp.fft, "np.fft.")):
        for name in dir(module):
            value = getattr(module, name)
            if name.startswith("_") or isinstance(value, type) or not callable(value):
                continue
            is_named = re.search(rf"{re.escape(prefix + name)}\b", text)
            assert is_named or name in namespace_cases.UNTIMED, prefix + name
    values, libraries = namespace_cases.inputs(1000), namespace.Libraries(["eager"])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in namespace_cases.CASES:
            function = namespace_cases.function_of(case)
            chosen = [values[letter] for letter in namespace_cases.letters(case)]
            result = libraries.eager(function, chosen)()
            assert not namespace.differs(case, result, function(np, *chosen)), case
