"""The verbs of the command line that look at files, write them again, and measure."""

# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from command_line import BUILD, ROOT, run


VERBS = (
    "info show code check summary diff draw run profile bench strip upgrade compile conformance completions"
).split()


def save(path, scale=2.0, power=2):
    scales = jnp.asarray(np.float32([scale, 3]))

    def total(x):
        with plait.named_scope("inner"):
            y = x * scales[:1]
        return jnp.sum(y**power)

    functions = {"total": (total, jnp.arange(4.0)), "any": (total, "n")}
    plait.save(path, functions, meta={"task": "a test"}, licence="MIT")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save(tmp_path_factory.mktemp("verbs") / "model.plait")


# --- Looking -------------------------------------------------------------------------------------


def test_summary(model):
    code, out, err = run("summary", model, "total")
    assert code == 0 and not err
    assert out == str(plait.summary(plait.load(model).total)) and "inner" in out
    assert tuple(out.splitlines()[2].split()[:2]) == ("total", "f32[]")
    code, out, err = run("summary", model)
    assert (
        code == 1
        and not out
        and "the size n of entry any has no number" in err
        and "--size n=32" in err
    )
    code, out, err = run("summary", model, "--size", "n=4", "--json")
    tables = json.loads(out)
    assert code == 0 and set(tables) == {"any", "total"} and tables["any"] == tables["total"]
    assert run("summary", model, "--size", "m=4")[0] == 1
    assert run("summary", model, "--size", "n<=4")[0] == 2


def test_diff(model, tmp_path):
    code, out, err = run("diff", model, model)
    assert (code, out, err) == (0, "", "")
    code, out, err = run("diff", model, save(tmp_path / "cubes.plait", power=3), "total")
    assert code == 1 and out.startswith("total:\n") and not err
    code, out, err = run("diff", model, save(tmp_path / "scaled.plait", scale=5.0))
    assert code == 1 and out.count("has other values") == 2
    plait.save(tmp_path / "other.plait", {"total": (lambda x: x, 1.0)})
    code, out, err = run("diff", model, tmp_path / "other.plait")
    assert code == 1 and "any:\n- the entry any\n" in out


def test_draw(model, tmp_path):
    for name, begin in (("page.html", "<!"), ("picture.svg", "<svg")):
        path = tmp_path / name
        assert run("draw", model, "total", "-o", path) == (0, "", "")
        text = path.read_text()
        assert text.lower().lstrip().startswith(begin) and "inner" in text
    assert run("draw", model, "any", "-o", tmp_path / "named.html")[0] == 0
    assert run("draw", model, "any", "-o", tmp_path / "n.svg", "--size", "n=8")[0] == 0
    assert "f32[8]" in (tmp_path / "n.svg").read_text()
    assert run("draw", model, "total", "--color", "time", "-o", tmp_path / "time.html")[0] == 0
    code, _, err = run("draw", model, "total", "--color", "red", "-o", tmp_path / "red.html")
    assert code == 2 and "kind, bytes, time and backend" in err
    assert run("draw", model, "total")[0] == 2
    assert run("draw", model, "total", "-o", "/nowhere/page.html")[0] == 1


def test_profile(model, tmp_path):
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3]))
    trace, flame = tmp_path / "trace.json", tmp_path / "flame.html"
    words = ["profile", model, "any", "--inputs", tmp_path / "x.npy", "--repeat", "7", "--json"]
    code, out, err = run(*words, "--trace", trace, "--flame", flame)
    assert code == 0 and not err and json.loads(out)
    assert json.loads(trace.read_text()) and "<" in flame.read_text()
    code, out, err = run("profile", model, "total", "--repeat", "5")
    assert code == 0 and "total" in out and "test vector" in err
    assert run("profile", model, "any")[0] == 1
    assert run("profile", model, "total", "--repeat", "0")[0] == 2


def test_bench(model, tmp_path):
    code, out, err = run("bench", model, "total", "--repeat", "3", "--threads", "1")
    assert code == 0 and not err
    first, *tiers = out.splitlines()
    assert re.match(r"total: \d+ equations, 1 thread, on its test vector$", first)
    assert [line.split(" median ")[0].strip() for line in tiers] == ["first tier", "last tier"]
    number = r"[\d.e+]+ (ns|us|ms|s)"
    line = (
        rf"  (first|last) tier +median {number}, least {number}, of 3 calls; compiled in {number}$"
    )
    assert all(re.match(line, tier) for tier in tiers)
    np.save(tmp_path / "x.npy", np.float32([1, 2, 3]))
    out = run("bench", model, "any", "--repeat", "1", "--inputs", tmp_path / "x.npy")[1]
    assert out.startswith("any: ") and "test vector" not in out
    assert run("bench", model, "total", "--repeat", "0")[0] == 2


# --- Writing files again -------------------------------------------------------------------------


def test_strip(model, tmp_path):
    small = tmp_path / "small.plait"
    code, out, err = run("strip", model, "-o", small, "--test-vectors", "--sources", "--meta")
    assert code == 0 and not err and out.startswith(f"{small}: ")
    old, new = plait.load(model), plait.load(small)
    assert new.licence == "MIT" and new.meta == {} and str(new.total.jaxpr) == str(old.total.jaxpr)
    assert float(new.total(np.float32([0, 1, 2, 3]))) == float(old.total(np.float32([0, 1, 2, 3])))
    assert small.stat().st_size < model.stat().st_size
    assert "no test vector" in run("check", small, "total")[1]
    assert "test_tool_verbs" in run("show", model, "--sources")[1]
    assert "test_tool_verbs" not in run("show", small, "--sources")[1]


def test_files_saved_without_lines(tmp_path):
    plait.save(tmp_path / "f.plait", jnp.sin, jnp.ones(2), sources=False)
    assert "#" not in run("show", tmp_path / "f.plait", "--sources")[1]
    with pytest.raises(TypeError, match="sources is 1 of type int"):
        plait.save(tmp_path / "g.plait", jnp.sin, jnp.ones(2), sources=1)


def test_strip_of_constants(model, tmp_path):
    bare = tmp_path / "bare.plait"
    assert run("strip", model, "-o", bare, "--constants")[0] == 0
    code, _, err = run("run", bare, "total")
    assert code == 1 and "was saved without the constant" in err
    constants = plait.load(model).total.constants
    np.savez(tmp_path / "constants.npz", **{k: np.asarray(v) for k, v in constants.items()})
    words = ["total", "--constants", tmp_path / "constants.npz"]
    assert run("run", bare, *words) == run("run", model, "total")


def test_a_file_without_constants_is_looked_into(model, tmp_path):
    bare = tmp_path / "bare.plait"
    assert run("strip", model, "-o", bare, "--constants")[0] == 0
    for verb in ("show", "summary", "code"):
        assert run(verb, bare, "total") == run(verb, model, "total")
    assert "which the file does not hold" in run("info", bare)[1]
    assert "which the file does not hold" not in run("info", model)[1]
    pages = [tmp_path / "bare.svg", tmp_path / "model.svg"]
    for path, page in zip((bare, model), pages):
        assert run("draw", path, "total", "-o", page) == (0, "", "")
    assert pages[0].read_text() == pages[1].read_text()
    assert run("draw", bare, "total", "-o", pages[0], "--color", "time")[0] == 1


def test_strip_of_a_file_onto_itself(model, tmp_path):
    path = tmp_path / "model.plait"
    shutil.copy(model, path)
    assert run("strip", path, "-o", path, "--meta")[0] == 0
    assert run("check", path)[0] == 0 and plait.load(path).meta == {}
    assert run("strip", path, "-o", path)[0] == 2
    assert run("strip", path, "--meta")[0] == 2


@pytest.mark.parametrize("name", ["control", "structures", "training"])
def test_upgrade_of_the_first_format(name, tmp_path):
    old = ROOT / "tests" / "golden" / "format_1" / f"{name}.plait"
    path = tmp_path / "new.plait"
    code, out, err = run("upgrade", old, "-o", path)
    assert code == 0 and not err and re.match(rf"{path}: format \d+, from 1\n$", out)
    assert run("check", path)[0] == 0
    assert run("diff", old, path)[0] == 0
    code, out, err = run("upgrade", path)
    assert code == 0 and "the newest" in out


def test_upgrade_needs_constants(tmp_path):
    old = ROOT / "tests" / "golden" / "format_1" / "bare.plait"
    code, out, err = run("upgrade", old, "-o", tmp_path / "new.plait")
    assert code == 1 and not out and "was saved without the constant" in err
    assert not (tmp_path / "new.plait").exists()


def test_upgrade_takes_the_place_of_the_old_file(tmp_path):
    path = tmp_path / "model.plait"
    shutil.copy(ROOT / "tests" / "golden" / "format_1" / "training.plait", path)
    wanted = run("show", path)
    assert run("upgrade", path)[0] == 0 and run("show", path) == wanted
    path.write_bytes(path.read_bytes()[:-9])
    damaged = path.read_bytes()
    assert run("upgrade", path)[0] == 1 and path.read_bytes() == damaged


# --- Completions and help ------------------------------------------------------------------------


def complete(*words):
    """What bash offers for the last of the words."""
    script = f"""source <("{BUILD}/lib/tool/plait" completions bash)
        COMP_WORDS=(plait {" ".join(map(str, words))}); COMP_CWORD={len(words)}
        _plait; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.split()


def test_completions_of_bash(tmp_path):
    assert complete("ru") == ["run"]
    assert {"show", "strip", "summary"} == set(complete("s"))
    assert complete("help", "up") == ["upgrade"]
    assert complete("show", "--s") == ["--sources"]
    (tmp_path / "model.plait").touch()
    assert complete("run", tmp_path / "mod") == [str(tmp_path / "model.plait")]


def test_completions_of_fish(tmp_path):
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    (tmp_path / "plait.fish").write_text(run("completions", "fish")[1])

    def complete(line):
        words = ["fish", "--no-config", "-c", f"source plait.fish; complete -C '{line}'"]
        environment = {**os.environ, "HOME": str(tmp_path)}
        out = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
        return {each.split("\t")[0] for each in out.stdout.splitlines()}

    assert complete("plait ru") == {"run"}
    assert complete("plait s") == {"show", "strip", "summary"}
    assert complete("plait help up") == {"upgrade"}
    assert complete("plait show --s") == {"--sources"}
    (tmp_path / "model.plait").touch()
    assert complete("plait run mod") == {"model.plait"}


def test_completions_of_zsh(tmp_path):
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    (tmp_path / "_plait").write_text(run("completions", "zsh")[1])
    # What the completion system would be told to offer, at the first completion and the next one.
    stubs = "_describe() print -l -- ${(P)2}; _arguments() print -l -- $@; compdef() print -- $@\n"

    def complete(*words, before="fpath=(. $fpath); autoload -Uz _plait", times=1):
        script = f"{stubs}{before}\nwords=({' '.join(words)}); CURRENT={len(words)}\n"
        command = ["zsh", "-f", "-c", script + "_plait\n" * times]
        out = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert out.returncode == 0 and not out.stderr
        return out.stdout.splitlines()

    first = complete("plait", "s")
    assert [line.split(":")[0] for line in first] == [*VERBS, "help"]
    assert complete("plait", "s", times=2) == first * 2
    assert complete("plait", "help", "s") == first
    assert any(line.startswith("*--sources[") for line in complete("plait", "show", "--"))
    assert complete("plait", "s", before="source ./_plait") == ["_plait plait", *first]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_verb_and_option(shell):
    code, out, err = run("completions", shell)
    assert code == 0 and not err
    for verb in VERBS:
        assert re.search(rf"\b{verb}\b", out)
        for option in re.findall(r"^  (--?[\w-]+)", run("help", verb)[1], re.MULTILINE):
            assert option.lstrip("-") in out
    if shutil.which(shell):
        result = subprocess.run([shell, "-n"], input=out, text=True, capture_output=True)
        assert result.returncode == 0 and not result.stderr
    assert run("completions", "csh")[0] == 2


def test_help_has_every_verb():
    listed = [line.split()[0] for line in run("help")[1].splitlines() if line.startswith("  ")]
    assert listed[:-1] == VERBS
    for verb in VERBS:
        assert all(len(line) <= 100 for line in run("help", verb)[1].splitlines())


@pytest.mark.parametrize(
    "words, says",
    [
        (["shwo"], "did you mean `show`?"),
        (["sumary", "a"], "did you mean `summary`?"),
        (["run", "a", "--input", "b"], "did you mean `--inputs`?"),
        (["help", "prfile"], "did you mean `profile`?"),
        (["run", "a", "--threads", "two"], "--threads needs a whole number"),
    ],
)
def test_words_that_are_nearly_a_command(words, says):
    code, out, err = run(*words)
    assert code in (1, 2) and not out and says in err and "fix:" in err
