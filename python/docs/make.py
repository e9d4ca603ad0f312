"""Makes the documentation site: python make.py OUT [--prepare]; `./dev docs` calls it.

The pages are docs/*.md as they are, with the README in front; beside them, from the package and the
examples, the reference (reference.py), a page for each lesson, a page for each class of errors, and
tables of names. --prepare writes Sphinx's sources, in OUT/source, and stops there.

Sphinx, because the functions come from the catalogue at run time, where tools that read source files do
not see them; its search and index know functions, and need no server.

SPDX-License-Identifier: Apache-2.0
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import guides
import reference

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def version():
    return re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]


def prepare(source):
    """Writes Sphinx's sources; gives the counts of what the reference holds."""
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    shutil.copy(HERE / "conf.py", source)
    uses = collections.defaultdict(set)
    sections = guides.write_pages(source, uses)
    lessons = guides.write_lessons(source, uses)
    errors = guides.write_errors(source / "errors")
    tables = guides.write_tables(source)
    with tempfile.TemporaryDirectory() as scratch:  # examples may write files
        here = os.getcwd()
        os.chdir(scratch)
        try:
            counts = reference.write(source / "reference", uses)
        finally:
            os.chdir(here)
    sections["Reference"] = ["reference/plait", *tables]
    sections["Lessons"] = lessons
    sections["Errors"] = errors
    index = source / "index.md"
    trees = "".join(guides.toctree(title, pages) for title, pages in sections.items())
    index.write_text(index.read_text() + "\n" + trees)
    return counts


def main():
    arguments = [word for word in sys.argv[1:] if word != "--prepare"]
    out = pathlib.Path(arguments[0]).resolve()
    source, site = out / "source", out / "html"
    counts = prepare(source)
    for what, count in counts.items():
        print(f"{count:5} {what}")
    if "--prepare" in sys.argv:
        return 0
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-q",
        "-W",
        "--keep-going",
        "-j",
        "auto",
    ]
    env = dict(os.environ, PLAIT_DOCS_VERSION=version())
    status = subprocess.call([*command, "-d", out / "doctrees", source, site], env=env)
    if status == 0:
        print(f"{site / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
