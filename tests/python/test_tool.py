"""The command line: what it prints, where, and its exit codes."""

# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
import zipfile

import pytest

import plait
import plait.numpy as jnp
from command_line import run


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rates = jnp.asarray([0.2, 0.1])

    def step(weights, x):
        return {"w": weights["w"] - rates[0] * jnp.sum(x), "b": weights["b"] * rates[1]}

    def predict(weights, x):
        return jnp.tanh(x @ weights["w"])

    weights = {"w": jnp.ones(3), "b": jnp.zeros(())}
    path = tmp_path_factory.mktemp("tool") / "model.plait"
    functions = {
        "step": (step, weights, jnp.ones((2, 3))),
        "predict": (predict, {"w": "3", "b": ""}, "n 3"),
    }
    plait.save(path, functions, meta={"task": "a test"}, licence="MIT")
    return path


def test_help_and_usage():
    assert run()[0] == 2 and run()[2].startswith("usage: plait VERB")
    code, out, err = run("--help")
    assert code == 0 and not err
    verbs = [line.split()[0] for line in out.splitlines() if line.startswith("  ")][:-1]
    assert {"info", "show", "check"} <= set(verbs)
    for verb in verbs:
        code, out, err = run(verb, "--help")
        assert code == 0 and out.startswith(f"usage: plait {verb} ") and not err
        assert run("help", verb)[1] == out
    assert run("--version")[1].split() == ["plait", plait.__version__]


@pytest.mark.parametrize(
    "words, says",
    [
        (["fly"], "no verb `fly`"),
        (["info"], "operands are missing"),
        (["info", "a", "b"], "too many operands, from `b` on"),
        (["show", "a", "--loud"], "no option --loud"),
        (["show", "a", "--sources=2"], "--sources takes no value"),
    ],
)
def test_words_that_make_no_command(words, says):
    code, out, err = run(*words)
    assert code == 2 and not out and says in err and "plait" in err


def test_programs_are_looked_into(model, tmp_path):
    code, out, err = run("summary", model, "--size", "n=4")
    assert code == 0 and not err and "live bytes" in out and "f32[4]" in out
    assert '"flops": 28,' in run("summary", model, "predict", "--size", "n=4", "--json")[1]
    code, out, err = run("summary", model, "predict")
    assert code == 1 and "the size n of entry predict has no number" in err
    assert run("summary", model, "--size", "n")[0] == 2
    assert "lax.tanh(" in run("code", model, "predict")[1]
    assert "plait::lax::tanh(" in run("code", model, "predict", "--cpp")[1]
    assert run("diff", model, model) == (0, "", "")
    other = tmp_path / "other.plait"
    predict = lambda weights, x: jnp.sin(x @ weights["w"])  # noqa: E731
    plait.save(other, {"predict": (predict, {"w": "3", "b": ""}, "n 3")})
    code, out, err = run("diff", model, other)
    assert code == 1 and not err and "- the entry step" in out
    assert "= tanh " in out and "= sin " in out
    assert "step" not in run("diff", model, other, "predict")[1]


def test_info(model):
    code, out, err = run("info", model)
    assert code == 0 and not err
    assert "2 entry points" in out and "licence: MIT" in out and "task: a test" in out
    assert "argument  weights['w']: f32[3]" in out and "argument  x: f32[n,3]" in out
    assert "result    result['b']: f32[]" in out and "sizes     n" in out


def test_show(model):
    text = str(plait.load(model).step.jaxpr)
    assert run("show", model, "step")[1].strip() == text.strip()
    assert text in run("show", model)[1]
    code, out, err = run("show", model, "fit")
    assert code == 1 and not out and "no entry 'fit'" in err and "step" in err


def test_check(model, tmp_path):
    code, out, err = run("check", model)
    assert code == 0 and "step" in out and "computes what it did" in out
    assert "no test vector" in out  # predict, which has named sizes
    broken = tmp_path / "broken.plait"
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b" mul ", b" add "))
    code, out, err = run("check", broken)
    assert code == 1 and "output 0 of step differs" in out
    broken.write_bytes(model.read_bytes()[:-40])
    code, out, err = run("check", broken)
    assert code == 1 and not out and "broken.plait" in err and "fix:" in err


def test_the_package_runs_it(model):
    command = [sys.executable, "-m", "plait", "info", str(model)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == run("info", model)[:2]
    assert subprocess.run(command[:-2], capture_output=True).returncode == 2


def test_conformance_says_what_a_backend_takes():
    code, out, err = run("conformance", "--backend", "reference", "add", "dot_general", "--kernels")
    assert code == 0 and not err
    assert out.splitlines()[-1].endswith("0 failed") and "add                     passed" in out
    assert run("conformance")[0] == 2 and "--backend" in run("conformance")[2]
    code, out, err = run("conformance", "--backend", "nobody")
    assert code == 1 and "there is no backend 'nobody'" in err and "reference" in err
    code, out, err = run("conformance", "--backend", "reference", "no_such")
    assert code == 1 and "there is no primitive 'no_such'" in err
    code, out, err = run("conformance", "--backend", "x", "--module", "/no/such.so")
    assert code == 1 and "cannot be loaded" in err
