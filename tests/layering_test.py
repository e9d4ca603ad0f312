"""The includes of the C++ sources keep the layers.

base → ir → trace → ops → transforms → compile → backends → run → inspect → program → tool

A layer includes itself and layers to its left. Transforms, examples and what lies outside include only
public headers; vendor headers appear only in backends; compile names no backend.
"""
# SPDX-License-Identifier: Apache-2.0

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ["base", "ir", "trace", "ops", "transforms", "compile", "backends", "run"]
LAYERS += ["inspect", "program", "tool"]
# The public headers that stand outside a layer's folder, and the layer each belongs to.
HEADERS = {
    "values.h": "trace",
    "rules.h": "trace",
    "staged.h": "trace",
    "sizes.h": "trace",
    "constraints.h": "trace",
    "subscript.h": "ops",
    "narrow.h": "ops",
    "widening.h": "ops",
    "kernels.h": "ops",
    "families.h": "ops",
    "rewrite.h": "transforms",
    "ops.h": "ops",
    "ops_indexing.h": "ops",
    "ops_order.h": "ops",
    "ops_linalg.h": "ops",
    "linear_solve.h": "ops",
    "catalogue.h": "ops",
    "arguments.h": "ops",
    "composites.h": "ops",
    "host_call.h": "ops",
    "check.h": "ops",
    "cost.h": "ops",
    "guard.h": "ops",
    "ops_control.h": "ops",
    "numpy.h": "ops",
    "numpy_array.h": "ops",
    "numpy_shape.h": "ops",
    "standard.h": "ops",
    "numpy_linalg.h": "ops",
    "scipy.h": "ops",
    "scipy_linalg.h": "ops",
    "lax.h": "ops",
    "nn.h": "ops",
    "random.h": "ops",
    "optim.h": "ops",
    "transforms.h": "transforms",
    "jvp_interpreter.h": "transforms",
    "api.h": "transforms",
    "custom.h": "transforms",
    "autocast.h": "transforms",
    "implicit.h": "transforms",
    "bodies.h": "transforms",
    "prune.h": "transforms",
    "laned.h": "transforms",
    "control.h": "transforms",
    "where.h": "transforms",
    "inspect.h": "inspect",
    "tape.h": "transforms",
    "tape_nodes.h": "transforms",
    "specs.h": "transforms",
    "run.h": "run",
    "sized.h": "run",
    "samples.h": "inspect",
    "tolerance.h": "inspect",
    "conformance.h": "inspect",
    "wait.h": "trace",
    "first_nan.h": "run",
    "profile.h": "inspect",
    "draw.h": "inspect",
    "program.h": "program",
    "edit.h": "transforms",
    "patterns.h": "transforms",
    "plait.h": "program",
}
VENDOR = re.compile(r"oneapi/|dnnl|mkl|llvm|cuda|cudnn|cublas|nvrtc|nccl|mpi\.h")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    """The layer of a source file, given relative to the root; None for what the layers do not concern."""
    parts = pathlib.PurePath(path).parts
    if parts[0] == "transforms":
        return "transforms"
    if parts[0] == "lib" and len(parts) > 2:
        return parts[1] if parts[1] in LAYERS else None
    if parts[:2] == ("include", "plait"):
        return parts[2] if parts[2] in LAYERS else HEADERS.get(parts[2], "unknown")
    return None


def target_of(name, quoted, source):
    """The file of the project that an include names, relative to the root; None for any other header."""
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
    to = layer_of(target)
    if layer not in LAYERS or to not in LAYERS:
        return "a header of no layer; name its layer in HEADERS of tests/layering_test.py"
    if LAYERS.index(to) > LAYERS.index(layer):
        return f"{layer} may not include {to}, which is to its right"
    return None


def sources():
    for top in ("include", "lib", "transforms", "examples", "tests/outside"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in (".h", ".cpp"):
                yield str(path.relative_to(ROOT))


def test_layers_include_only_themselves_and_layers_to_their_left():
    problems = []
    for source in sources():
        for number, line in enumerate((ROOT / source).read_text().splitlines(), 1):
            if match := INCLUDE.match(line):
                if problem := problem_of(source, match[1] == '"', match[2]):
                    problems.append(f"{source}:{number}: {line.strip()}: {problem}")
    assert not problems, "\n" + "\n".join(problems)


def test_compile_names_no_backend():
    folders = [path.name for path in (ROOT / "lib/backends").glob("*") if path.is_dir()]
    backends = re.compile(
        r"\b("
        + "|".join(set(folders + ["onednn", "llvm", "cuda"]) - {"reference"})
        + r")\b|backends/"
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
        ("transforms/vmap.cpp", True, "base/cgroup.h", "only public headers"),
        ("lib/ops/x.cpp", False, "oneapi/dnnl/dnnl.hpp", "vendor headers"),
        ("lib/backends/onednn/x.cpp", False, "oneapi/dnnl/dnnl.hpp", None),
        ("lib/ir/print.cpp", False, "plait/absent.h", "no public header"),
        ("lib/ir/print.cpp", True, "absent.h", "no file of the project"),
    ],
)
def test_the_rules_themselves(source, quoted, name, problem):
    found = problem_of(source, quoted, name)
    assert (found is None) if problem is None else (problem in found)
