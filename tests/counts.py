"""Counts of the sources, and what compiling them costs: to be run before and after a change.

  ./dev run python tests/counts.py                       counts, in seconds
  ./dev run python tests/counts.py --compile             CPU seconds of compiling everything
  ./dev run python tests/counts.py --compile --only DIR  the same for the sources below a folder

Comments and blank lines count as lines, and as nothing else.

Compiling runs each command of compile_commands.json again, one at a time and without ccache; what
it writes is thrown away. User and system time of the compilers and assemblers count, so another
load of the machine changes little. Precompiled headers are made again, too, and those of the build
folder are used: build it first. Linking does not count.
"""

# SPDX-License-Identifier: Apache-2.0
import argparse
import collections
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

from layering_test import BUILD, LAYERS, ROOT, layer_of

FOLDERS = ["include", "lib", "transforms", "python/src", "python/plait"]  # of the library
WORDS = ["expm1", "scan", "while", "conv", "softmax"]
# Strings, characters and comments.
CPP = re.compile(
    r""" R"(\w*)\(.*?\)\1" | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])' | //[^\n]* | /\*.*?\*/ """,
    re.DOTALL | re.VERBOSE,
)
PYTHON = re.compile(
    r""" \"{3}.*?\"{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' | \#[^\n]* """,
    re.DOTALL | re.VERBOSE,
)
PRIMITIVE = re.compile(r'\bPrimitive (\w+_p)\s*\{\s*"(\w+)"')


def sources():
    """The text of each file of the library, by path relative to the root."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
    files = [path for path in paths if path.suffix in (".h", ".cpp", ".py")]
    return {str(path.relative_to(ROOT)): path.read_text() for path in files}


def code_of(path, text):
    """The text without comments."""
    is_comment = ("//", "/*", "#")
    pattern = PYTHON if path.endswith(".py") else CPP
    return pattern.sub(lambda match: "" if match[0].startswith(is_comment) else match[0], text)


def words_of(path, text):
    """The words that its code is made of, in names and strings: those of while_loop are `while` and
    `loop`. `while` alone is a keyword, or prose, unless a string begins with it: "while", "while: ".
    """

    def content_of(match):
        if match[0].startswith(("//", "/*", "#", '"""')):
            return " "
        first = re.match(r"""["'](\w+)["'(:.]""", match[0])
        return (f" {first[1]}_ " if first else " ") + re.sub(r"\\.", " ", match[0][1:-1]) + " "

    code = (PYTHON if path.endswith(".py") else CPP).sub(content_of, text)
    names = set(re.findall(r"[A-Za-z_]\w*", code)) - {"while", "While"}
    return {word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", name)}


def print_table(title, columns, rows):
    """rows: lists of a name and numbers."""
    print(f"\n{title:44}" + "".join(f"{column:>12}" for column in columns))
    for name, *numbers in rows:
        print(f"  {name:42}" + "".join(f"{number:>12,}" for number in numbers))


def print_comparisons(files):
    """Where code asks which primitive it has, instead of asking the primitive's rules."""
    codes = {path: code_of(path, text) for path, text in files.items() if not path.endswith(".py")}
    found = [pair for code in codes.values() for pair in PRIMITIVE.findall(code)]
    any_primitive, any_name = (r"\b(?:" + "|".join(sorted(names)) + r")\b" for names in zip(*found))
    kinds = {
        "x == foo_p, x != foo_p": rf"[!=]=\s*[&*]?(?:\w+::)*{any_primitive}|{any_primitive}\s*[!=]=",
        'x.name() == "foo" of primitives': rf'\bname\(\)\s*[!=]=\s*"{any_name}"',
        'x.name() == "foo" of others, backends': rf'\bname\(\)\s*[!=]=\s*"(?!{any_name}")',
        "&foo_p in lists": rf"(?<![!=]= )&{any_primitive}",
    }
    counts = {kind: [0, 0] for kind in kinds}
    for path, code in codes.items():
        for kind, pattern in kinds.items():
            is_in_llvm = path.startswith("lib/backends/llvm/")
            counts[kind][is_in_llvm] += len(re.findall(pattern, code))
    rows = [[kind, *numbers] for kind, numbers in counts.items()]
    print_table("Comparisons of primitives", ["elsewhere", "llvm"], rows)


def print_words(files):
    words = {path: words_of(path, text) for path, text in files.items()}
    rows = []
    for word in WORDS:
        naming = [path for path in files if word in words[path]]
        using = [path for path in naming if re.search(rf"\b{word}_p\b", code_of(path, files[path]))]
        rows.append([word, len(naming), len(set(map(os.path.dirname, naming))), len(using)])
    print_table("Files that name", ["files", "folders", "…_p"], rows)


def print_sizes(files):
    lines = {path: text.count("\n") for path, text in files.items()}
    folders, layers = collections.defaultdict(list), collections.defaultdict(list)
    for path, number in lines.items():
        folders[os.path.dirname(path)].append(number)
        layers[layer_of(path) or "/".join(path.split("/")[:2])].append(number)
    rows = [[folder, len(numbers), sum(numbers)] for folder, numbers in sorted(folders.items())]
    print_table("Folders", ["files", "lines"], rows)
    order = [layer for layer in LAYERS if layer in layers] + sorted(layers.keys() - set(LAYERS))
    rows = [[layer, len(layers[layer]), sum(layers[layer])] for layer in order]
    print_table("Layers, with the headers", ["files", "lines"], rows)
    near = [number for number in lines.values() if 450 <= number < 500]
    rows = [["all", len(lines), sum(lines.values())]]
    rows.append(["of 450 to 499 lines", len(near), sum(near)])
    print_table("Files", ["files", "lines"], rows)
    largest = sorted(lines.items(), key=lambda item: -item[1])[:12]
    print_table("Largest files", ["lines"], largest)


def compile_again(command, folder):
    """The CPU seconds of a command of compile_commands.json, of which nothing is kept."""
    words = shlex.split(command["command"])
    words = words[1:] if os.path.basename(words[0]) == "ccache" else words
    for option, name in (("-o", "out.o"), ("-MF", "out.d")):
        words[words.index(option) + 1] = os.path.join(folder, name)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        words, cwd=command["directory"], env={**os.environ, "CCACHE_DISABLE": "1"}, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def print_compile_times(only):
    root = json.loads((BUILD / "meson-info/meson-info.json").read_text())["directories"]["source"]
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        for command in json.loads((BUILD / "compile_commands.json").read_text()):
            path = os.path.normpath(os.path.join(command["directory"], command["file"]))
            source = os.path.relpath(path, root)
            if pathlib.PurePath(source).is_relative_to(only):
                print(f"\r{len(seconds) + 1} {source:70}", end="", file=sys.stderr, flush=True)
                seconds[command["output"], source] = compile_again(command, folder)
    print(f"\r{'':76}\r", end="", file=sys.stderr)
    folders = collections.defaultdict(list)
    for (_, source), time in seconds.items():
        folders[os.path.dirname(source)].append(time)
    rows = [[name, len(times), round(sum(times), 1)] for name, times in sorted(folders.items())]
    rows.append(["all", len(seconds), round(sum(seconds.values()), 1)])
    print_table("Compiling", ["files", "CPU seconds"], rows)
    slowest = sorted(seconds.items(), key=lambda item: -item[1])[:12]
    rows = [[source, round(time, 1)] for (_, source), time in slowest]
    print_table("Slowest files", ["CPU seconds"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Counts of the sources, and compile times.")
    parser.add_argument("--compile", action="store_true", help="time the compiler instead")
    parser.add_argument(
        "--only", default=".", metavar="DIR", help="of --compile: this folder alone"
    )
    args = parser.parse_args()
    if args.compile:
        print_compile_times(args.only)
    else:
        files = sources()
        print_comparisons(files)
        print_words(files)
        print_sizes(files)
