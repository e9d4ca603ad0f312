"""Includes of the C++ sources, and symbols of the objects made of them, keep the layers.

base → ir → trace → rules → primitives → transforms → control → functions → rewriting → run
→ codegen → compile → backends → inspect → program → tool

A layer uses itself and layers to its left. Transforms, examples and what lies outside include only
public headers; vendor headers appear only in backends; compile names no backend.

The layer of a file is its folder; the headers that lie flat in include/plait are doors for users,
which nothing in a layer includes. Two tables name the pairs of files that point right all the same.
They may only shrink: an entry that is true no longer fails, too.
"""
# SPDX-License-Identifier: Apache-2.0

import collections
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLAIT_BUILD_DIR", ROOT / "build"))
LAYERS = ["base", "ir", "trace", "rules", "primitives", "transforms", "control", "functions"]
LAYERS += ["rewriting", "run", "codegen", "compile", "backends", "inspect", "program", "tool"]
KERNELS = "lib/backends/cuda/"  # texts in its folder device include each other as if installed
VENDOR = re.compile(r"oneapi/|dnnl|mkl|llvm|cuda|cudnn|cublas|nvrtc|nccl|mpi\.h")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
# A line of nm: the object, the symbol, what it is there. Lower case is local or undefined.
SYMBOL = re.compile(r"(.+?): (\S+) ([A-Za-z?])")
STRONG, WEAK = "TDBRGSC", "WVu"
# Includes that point right: the file, and what it includes.
INCLUDES = {}
# Symbols that point right: the file that uses them, the file that defines them, and their names in
# namespace plait.
SYMBOLS = {}


def layer_of(path):
    """The layer of a source file, given relative to the root; None for one that is of no layer."""
    parts = pathlib.PurePath(path).parts
    if parts[0] == "transforms":
        return "transforms"
    if parts[0] == "lib" and len(parts) > 2:
        return parts[1] if parts[1] in LAYERS else None
    if parts[:2] == ("include", "plait") and len(parts) > 3:
        return parts[2] if parts[2] in LAYERS else "unknown"
    return None


def is_door(path):
    """Whether this is a header for users, which includes what lies in the folders."""
    return re.fullmatch(r"include/plait/\w+\.h", path) is not None


def target_of(name, quoted, source):
    """The file of the project that an include names, relative to the root; None for any other."""
    if source.startswith(KERNELS) and (ROOT / KERNELS / "device" / name).exists():
        return f"{KERNELS}device/{name}"
    if name.startswith("plait/"):
        return f"include/{name}"
    if not quoted:
        return None
    beside = (ROOT / source).parent / name
    path = beside if beside.exists() else ROOT / "lib" / name
    return str(path.resolve().relative_to(ROOT)) if path.exists() else None


def problem_of(source, quoted, name):
    """What is wrong with an include, in words, or None."""
    layer, target = layer_of(source), target_of(name, quoted, source)
    if quoted and source.startswith(("include/", "transforms/")):
        return "only public headers, in angle brackets, may be included here"
    if target is None:
        if quoted:
            return "names no file of the project"
        if VENDOR.search(name) and layer not in (None, "backends"):
            return "vendor headers belong in lib/backends"
        return None
    if target.startswith("include/") and not (ROOT / target).exists():
        return "names no public header"
    if target.startswith("lib/") and source.startswith(("examples/", "tests/outside/")):
        return "only public headers may be included here"
    if layer is None:
        return None
    if is_door(target):
        return "a door for users: include the header that it stands for, in its folder"
    to = layer_of(target)
    if layer not in LAYERS or to not in LAYERS:
        return "a header of no layer: its folder is none of LAYERS in tests/layering_test.py"
    if LAYERS.index(to) > LAYERS.index(layer):
        return f"{layer} may not include {to}, which is to its right"
    return None


def sources():
    for top in ("include", "lib", "transforms", "examples", "tests/outside"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield str(path.relative_to(ROOT))


def test_layers_include_only_themselves_and_layers_to_their_left():
    problems, found = [], set()
    for source in sources():
        for number, line in enumerate((ROOT / source).read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                if problem := problem_of(source, match[1] == '"', match[2]):
                    target = target_of(match[2], match[1] == '"', source)
                    found.add((source, target))
                    if target not in INCLUDES.get(source, "").split():
                        problems.append(f"{source}:{number}: {line.strip()}: {problem}")
    for source, targets in INCLUDES.items():
        for target in targets.split():
            if (source, target) not in found:
                problems.append(f"{source} no longer includes {target} to its right: remove it")
    assert not problems, "INCLUDES of tests/layering_test.py:\n" + "\n".join(problems)


def objects_of(build):
    """The object files of the layers, by path in the build folder, and the source file of each."""
    root = json.loads((build / "meson-info/meson-info.json").read_text())["directories"]["source"]
    objects = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        path = os.path.join(command["directory"], command["file"])
        if unit := re.match(
            r'#include "((?:lib|transforms)/[^"]+)"\n', pathlib.Path(path).read_text()
        ):
            source = unit[1]  # files of one folder, compiled together
        else:
            source = os.path.relpath(path, root)
        if source.endswith(".cpp") and layer_of(source):
            objects[command["output"]] = source
    return objects


def pointing_right(listing, objects):
    """(using file, defining file, symbol) where only layers to the right of the user define it,
    from the lines of `nm -A --format=posix`. Weak symbols are those of inline functions, which
    whoever uses them may compile."""
    users, definers = collections.defaultdict(set), collections.defaultdict(dict)
    for name, symbol, kind in SYMBOL.findall(listing):
        if "plait" not in symbol:  # the C++ library's, a vendor's
            continue
        if kind == "U":
            users[symbol].add(objects[name])
        elif kind in STRONG + WEAK:
            definers[symbol][objects[name]] = kind
    found = set()
    for symbol in users.keys() & definers.keys():
        first = min(map(rank_of, definers[symbol]))
        for user in users[symbol]:
            if first > rank_of(user):
                kinds = definers[symbol].items()
                found |= {(user, definer, symbol) for definer, kind in kinds if kind in STRONG}
    return found


def rank_of(source):
    return LAYERS.index(layer_of(source))


def demangled(symbols):
    """How symbols are written in SYMBOLS: without parameters and namespace plait."""
    ran = subprocess.run(
        ["c++filt", "--no-params"], input="\n".join(symbols), capture_output=True, text=True
    )
    names = [name.removeprefix("plait::").replace(" ", "") for name in ran.stdout.splitlines()]
    return dict(zip(symbols, names, strict=True))


def test_symbols_are_those_of_layers_to_the_left():
    if not (BUILD / "compile_commands.json").exists():
        pytest.skip(f"no build in {BUILD}, whose objects would be read")
    objects = objects_of(BUILD)
    if missing := [name for name in objects if not (BUILD / name).exists()]:
        pytest.skip(f"the build in {BUILD} is not complete: there is no {missing[0]}")
    ran = subprocess.run(
        ["nm", "-A", "--format=posix", *objects], cwd=BUILD, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    pointing = pointing_right(ran.stdout, objects)
    names = demangled(sorted({symbol for _, _, symbol in pointing}))
    found = {(user, definer, names[symbol]) for user, definer, symbol in pointing}
    allowed = {
        (user, definer, name)
        for user, definers in SYMBOLS.items()
        for definer, names_of_pair in definers.items()
        for name in names_of_pair.split()
    }
    problems = [
        f"{user} ({layer_of(user)}) uses {name}, which {definer} ({layer_of(definer)}) defines"
        for user, definer, name in sorted(found - allowed)
    ]
    problems += [
        f"{user} no longer uses {name} of {definer} to its right: remove it"
        for user, definer, name in sorted(allowed - found)
    ]
    assert not problems, "SYMBOLS of tests/layering_test.py:\n" + "\n".join(problems)


def test_compile_names_no_backend():
    folders = [path.name for path in (ROOT / "lib/backends").glob("*") if path.is_dir()]
    backends = re.compile(
        r"\b("
        + "|".join(set(folders + ["onednn", "llvm", "cuda"]) - {"reference", *LAYERS})
        + r")\b|\"reference\"|backends/"
    )
    problems = []
    for path in sorted((ROOT / "lib/compile").rglob("*")) + sorted(
        (ROOT / "include/plait/compile").rglob("*")
    ):
        if path.suffix in (".h", ".cpp"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if backends.search(line.split("//")[0]):
                    problems.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not problems, "compile names a backend:\n" + "\n".join(problems)


@pytest.mark.parametrize(
    "source, quoted, name, problem",
    [
        ("lib/ir/print.cpp", False, "plait/base/dtype.h", None),
        ("lib/ir/print.cpp", False, "vector", None),
        ("include/plait/base/dtype.h", False, "plait/ir/aval.h", "to its right"),
        ("lib/ir/absent/x.cpp", False, "plait/trace/array.h", "ir may not include trace"),
        ("lib/primitives/movement/x.cpp", False, "plait/functions/numpy.h", "to its right"),
        ("lib/functions/nn/x.cpp", False, "plait/functions/numpy.h", None),
        ("lib/functions/nn/x.cpp", False, "plait/numpy.h", "a door for users"),
        ("transforms/vmap.cpp", True, "base/cgroup.h", "only public headers"),
        ("lib/primitives/x.cpp", False, "oneapi/dnnl/dnnl.hpp", "vendor headers"),
        ("lib/backends/onednn/x.cpp", False, "oneapi/dnnl/dnnl.hpp", None),
        ("lib/ir/print.cpp", False, "plait/absent.h", "no public header"),
        ("lib/ir/print.cpp", True, "absent.h", "no file of the project"),
    ],
)
def test_the_rules_themselves(source, quoted, name, problem):
    found = problem_of(source, quoted, name)
    assert (found is None) if problem is None else (problem in found)


@pytest.mark.parametrize(
    "kind, definer, is_found",
    [
        ("T", "lib/trace/b.cpp", True),
        ("R", "lib/trace/b.cpp", True),
        ("t", "lib/trace/b.cpp", False),  # local to b: another one is meant
        ("W", "lib/trace/b.cpp", False),  # an inline function, which whoever uses it may compile
        ("U", "lib/trace/b.cpp", False),
        ("T", "lib/ir/b.cpp", False),
        ("T", "lib/base/b.cpp", False),
    ],
)
def test_symbols_that_point_right_are_found(kind, definer, is_found):
    listing = (
        f"a.o: _ZN5plait1fEv U         \nb.o: _ZN5plait1fEv {kind} 0 8\na.o: _Znwm U         \n"
    )
    found = pointing_right(listing, {"a.o": "lib/ir/a.cpp", "b.o": definer})
    assert found == ({("lib/ir/a.cpp", definer, "_ZN5plait1fEv")} if is_found else set())


def test_what_a_layer_to_the_left_defines_too_does_not_point_right():
    listing = "a.o: plait_f U         \nb.o: plait_f W 0 8\nc.o: plait_f T 0 8\n"
    objects = {"a.o": "lib/ir/a.cpp", "b.o": "lib/base/b.cpp", "c.o": "lib/run/c.cpp"}
    assert not pointing_right(listing, objects)
