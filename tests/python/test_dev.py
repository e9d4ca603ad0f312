"""./dev test counts what ran, once, and no suite passes by saying nothing.

SPDX-License-Identifier: Apache-2.0
"""

import importlib.machinery
import importlib.util
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def dev():
    loader = importlib.machinery.SourceFileLoader("plait_dev", str(ROOT / "dev"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("plait_dev", loader))
    keep, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = keep
    return module


def counted(dev, tmp_path, text, status=0, counts=None):
    """What a test program that prints this comes to."""
    program = tmp_path / "test_suite"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
    program.chmod(0o755)
    counts = dev.Counts() if counts is None else counts
    dev.test_programs({"suite": str(program)}, "release", counts)
    return counts


def summary(passed, failed, skipped=0):
    return (
        f"[doctest] test cases: {passed + failed:3} | {passed} passed | {failed} failed | {skipped} skipped\n"
        "[doctest] assertions:  9 |  9 passed | 0 failed |"
    )


def test_a_program_that_prints_no_summary_has_failed(dev, tmp_path):
    counts = counted(dev, tmp_path, "hello")
    assert (counts.passed, counts.failed) == (0, 1)
    assert "without a summary" in counts.failures[0]


def test_a_program_without_cases_has_failed(dev, tmp_path):
    assert counted(dev, tmp_path, summary(0, 0)).failed == 1


def test_a_program_that_dies_after_its_cases_has_failed(dev, tmp_path):
    counts = counted(dev, tmp_path, summary(7, 0), status=11)
    assert (counts.passed, counts.failed) == (7, 1)


def test_cases_that_skip_are_no_passes(dev, tmp_path):
    counts = counted(dev, tmp_path, summary(7, 0, 3))
    assert (counts.passed, counts.failed, counts.skipped) == (7, 0, 3)
    assert str(counts) == "7 passed, 0 failed, 3 skipped"


def test_skips_can_be_forbidden(dev, tmp_path):
    counts = counted(dev, tmp_path, summary(7, 0, 3), counts=dev.Counts(may_skip=False))
    assert counts.failed == 1 and "suite: 3 cases skipped" in counts.failures[0]


def test_a_case_that_runs_again_counts_once_but_may_fail_again(dev, tmp_path):
    counts = counted(dev, tmp_path, summary(7, 0))
    counts.is_again = True
    counted(dev, tmp_path, summary(6, 1), status=1, counts=counts)
    assert (counts.passed, counts.failed, counts.repeated) == (7, 1, 6)


REPORT = """<testsuites><testsuite tests="4" failures="1" errors="0" skipped="2">
<testcase classname="a" name="good"/>
<testcase classname="a" name="bad"><failure message="no">text</failure></testcase>
<testcase classname="a" name="large"><skipped message="writes 2.4 GB: ./dev test --large"/></testcase>
<testcase classname="a" name="lacking"><skipped message="libLLVM is not installed"/></testcase>
</testsuite></testsuites>"""


def test_skips_of_python_tests_are_forbidden_but_those_of_large_ones(dev, tmp_path):
    path = tmp_path / "pytest.xml"
    path.write_text(REPORT)
    counts = dev.Counts()
    assert dev.add_report(path, counts) == 1
    assert (counts.passed, counts.failed, counts.skipped) == (1, 1, 2)
    strict = dev.Counts(may_skip=False)
    dev.add_report(path, strict)
    assert strict.failed == 2
    assert [line for line in strict.failures if "lacking: skipped: libLLVM" in line]


def test_continuous_integration_forbids_skips_and_reads_the_counts(dev):
    text = (ROOT / ".ci" / "run").read_text()
    assert "./dev test --no-skips" in text and "PLAIT_REQUIRE_LLVM=1" in text
    pattern = re.search(r"grep -E '([^']+)'", text)[1]
    counts = dev.Counts()
    counts.add(5, 0)
    assert re.search(pattern, str(counts))
    counts.add(0, 2, 3)
    assert re.search(pattern, str(counts)) and str(counts) == "5 passed, 2 failed, 3 skipped"


def test_conformance_compares_with_the_known_failures(dev, capsys):
    cases = [
        {"nodeid": "array_api_tests/test_a.py::test_%d" % i, "outcome": outcome}
        for i, outcome in enumerate(["passed", "failed", "passed", "skipped"])
    ]
    assert dev.compare_conformance(cases, ["test_a.py::test_1", "test_a.py::test_2"]) == 0
    told = capsys.readouterr().out
    assert "2 passed, 1 failed, 1 skipped by the suite, of 4" in told and "and passed:" in told
    assert "test_2" in told and "test_1" not in told
    assert dev.compare_conformance(cases, []) == 1 and "test_1" in capsys.readouterr().out
    known = [
        line.partition(" ")[0]
        for line in (ROOT / dev.KNOWN_FAILURES).read_text().splitlines()
        if line and not line.startswith("#")
    ]
    page = (ROOT / "docs" / "array_api.md").read_text()
    for name in known:  # each is explained
        assert name.partition("::")[2] in page, name


def test_conformance_says_what_to_get(dev, monkeypatch, capsys):
    monkeypatch.delenv("ARRAY_API_TESTS", raising=False)
    with pytest.raises(SystemExit):
        dev.conformance([])
    assert "git clone --recurse-submodules" in capsys.readouterr().err


def test_wheel_takes_interpreters_that_plait_supports(dev, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(dev, "prepare", lambda: pytest.fail("it builds before it has looked"))
    old = tmp_path / "python2"
    old.write_text("#!/bin/sh\necho 2 7\n")
    old.chmod(0o755)
    for name, text in (
        ("nothing_of_this_name", "is no Python that runs"),
        ("/bin/true", "is no Python that runs"),
        (str(old), "is Python 2.7; plait needs Python 3.11"),
    ):
        with pytest.raises(SystemExit):
            dev.wheel([name])
        assert text in capsys.readouterr().err
