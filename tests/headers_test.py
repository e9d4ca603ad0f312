"""Every public header compiles alone, as a user's first include, without a warning."""
# SPDX-License-Identifier: Apache-2.0

import concurrent.futures
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".cache/headers"  # the same each time, so that ccache knows the files again
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-I", "include"]


def compile_alone(header):
    """The compiler's complaint about a file that includes nothing but the header, twice."""
    source = FOLDER / (header.replace("/", "_") + ".cpp")
    source.write_text(f"#include <{header}>\n" * 2)
    command = ["g++", *FLAGS, "-c", str(source), "-o", str(source) + ".o"]
    if shutil.which("ccache"):
        command.insert(0, "ccache")
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stderr


def test_every_public_header_compiles_alone():
    headers = [str(path.relative_to(ROOT / "include")) for path in (ROOT / "include").rglob("*.h")]
    assert headers
    FOLDER.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        errors = pool.map(compile_alone, headers)
    problems = {header: error for header, error in zip(headers, errors) if error}
    assert not problems, "\n".join(f"{header}:\n{error}" for header, error in problems.items())
