"""The README and every page of docs/: the examples run and print what the page says.

A page is a program in parts, which run in the order of the page and in one folder:

- Consecutive ```python blocks are one program; a block whose first statement is an import begins a new
  one. The ```text block after a block is what that block prints, or the error with which it ends.
- A ```cpp block is a whole program, compiled by the command that the README gives. The ```text block
  after it is what it prints.
- A ```c block is the file first.c, which commands after it compile.
- A ```console block holds commands, each after `$ `, and what they print.

Every other block is preceded by <!-- not run: the reason -->. A new page needs no new test: it is
found, and the README has to link to it.
"""

# SPDX-License-Identifier: Apache-2.0
import ast
import dataclasses
import operator
import pathlib
import re
import runpy
import subprocess
import sys

import pytest

import plait

ROOT = pathlib.Path(__file__).parent.parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
END = "---- end of a block ----"
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@dataclasses.dataclass
class Block:
    language: str
    code: str
    line: int  # of the page
    printed: str = ""  # the text block that follows
    why_not_run: str = ""


FENCE = re.compile(
    r"^(?P<why>[ ]*<!-- not run: .+? -->\n)?"
    r"(?P<in>[ ]*)```(?P<language>.*)\n(?P<code>(?:.*\n)*?)(?P=in)```\n",
    re.MULTILINE,
)


def blocks_of(page):
    """The blocks of a page, in order; a text block after one that runs is its `printed`."""
    text = page.read_text()
    blocks, end_before = [], -1
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("code")) + 1
        code = re.sub(f"^{found['in']}", "", found["code"], flags=re.MULTILINE)
        block = Block(found["language"], code, line, why_not_run=found["why"] or "")
        is_output = block.language == "text" and not text[end_before : found.start()].strip()
        if is_output and blocks and blocks[-1].language in ("python", "cpp"):
            blocks[-1].printed = code
        else:
            blocks.append(block)
        end_before = found.end()
    assert text.count("```") == 2 * len(FENCE.findall(text)), f"{page}: a block is not closed"
    return blocks


def begins_with_import(code):
    return isinstance(ast.parse(code).body[0], (ast.Import, ast.ImportFrom))


def programs_of(page):
    """The parts of a page that run, in order: (language, blocks)."""
    programs = []
    for block in blocks_of(page):
        if block.why_not_run:
            continue
        continues = block.language == "python" and not begins_with_import(block.code)
        if continues:
            last = next((p for p in reversed(programs) if p[0] == "python"), None)
            assert last, f"{page.name}:{block.line}: no block before this one begins with an import"
            assert last is programs[-1], f"{page.name}:{block.line}: its program has ended"
            last[1].append(block)
        else:
            programs.append((block.language, [block]))
    return programs


def run_python(blocks, folder, environment, where):
    (folder / "train.py").write_text(f"\nprint({END!r})\n".join(block.code for block in blocks))
    result = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment,
    )
    error = result.stderr[result.stderr.find("\nplait.") + 1 :] if result.returncode else ""
    printed = (result.stdout + error).split(END + "\n")
    for block, text in zip(blocks, printed):
        assert text == block.printed, f"{where}:{block.line}\n{result.stderr}"
    assert len(printed) == len(blocks), f"{where}:{blocks[0].line}\n{result.stderr}"
    assert (result.returncode != 0) == blocks[-1].printed.startswith("plait."), result.stderr


def run_cpp(blocks, folder, environment, where):
    (block,) = blocks
    (folder / "first.cpp").write_text(block.code)
    command = re.search(r"^(g\+\+ first.cpp .*) -o first$", README.read_text(), re.MULTILINE)[1]
    for words in (["sh", "-c", command + " -O0 -o first"], [folder / "first"]):
        result = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, f"{where}:{block.line}\n{result.stderr}"
    assert result.stdout == block.printed, f"{where}:{block.line}"


def write_c(blocks, folder, environment, where):
    (folder / "first.c").write_text(blocks[0].code)


def run_console(blocks, folder, environment, where):
    (block,) = blocks
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.code, re.MULTILINE)
    assert commands and block.code.startswith("$ "), f"{where}:{block.line}: no command"
    for command, printed in commands:
        result = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, f"{where}:{block.line}: {command}\n{result.stderr}"
        assert result.stdout == printed, f"{where}:{block.line}: {command}"


RUN = {"python": run_python, "cpp": run_cpp, "c": write_c, "console": run_console}


@each_page
def test_examples_print_what_the_page_says(page, with_installed, tmp_path):
    environment = dict(with_installed, MPLBACKEND="Agg", PYTHONUNBUFFERED="1")
    for language, blocks in programs_of(page):
        where = page.relative_to(ROOT)
        assert language in RUN, (
            f"{where}:{blocks[0].line}: a block of `{language}` does not run; say why above it: "
            "<!-- not run: the reason -->"
        )
        RUN[language](blocks, tmp_path, environment, where)
        for block in blocks:
            for name in re.findall(r'"([\w.]+\.(?:png|svg|html))"', block.code):
                size = (tmp_path / name).stat().st_size
                assert size > 5000, f"{where}:{block.line}: {name} holds no picture"


# --- What pages refer to -------------------------------------------------------------------------


def prose_of(page):
    return FENCE.sub("", page.read_text())


def anchors_of(page):
    """The names by which links reach the headings of a page, as GitHub and PyPI make them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", prose_of(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors_of(linked), target


@each_page
def test_paths_that_a_page_names_exist(page):
    tops = "lib|include|transforms|python|tests|examples|docs"
    for path in re.findall(rf"`((?:{tops})(?:/[\w./*-]*)?)`", prose_of(page)):
        assert list(ROOT.glob(path.rstrip("/"))), f"there is no {path}"


@each_page
def test_names_of_the_package_that_a_page_uses_exist(page):
    for name in re.findall(r"`plait\.(?!h`)(\w[\w.]*)", prose_of(page)):
        operator.attrgetter(name)(plait)


@each_page
def test_commands_of_dev_that_a_page_names_exist(page):
    usage = runpy.run_path(str(ROOT / "dev"))["__doc__"]
    for command in re.findall(r"\./dev (\w+)", page.read_text()):
        assert f"./dev {command}" in usage, command


def test_the_readme_leads_to_every_page():
    links = re.findall(r"\]\((docs/[^)#]+)", README.read_text())
    assert {ROOT / link for link in links} == set(PAGES) - {README}


def test_the_readme_says_what_a_newcomer_must_know():
    text = README.read_text()
    assert text.count("\n") <= 250  # what one reads in ten minutes
    for fact in ("Apache-2.0", "x86-64", "AVX2", "Python 3.11 to 3.14", "./dev demo", "./dev test"):
        assert fact in text
    version = re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]
    assert f"Version {version}" in text


def test_the_page_on_installing_says_how_to_go_back_and_every_variable():
    text = (ROOT / "docs" / "install.md").read_text()
    assert "pip uninstall plait" in text
    sources = [p for p in (ROOT / "lib").rglob("*.cpp")]
    read = {name for p in sources for name in re.findall(r'getenv\("(PLAIT_\w+)"', p.read_text())}
    assert len(read) >= 7
    for name in read - {"PLAIT_LLVM_EXPORT"}:  # which `plait compile` sets for itself
        assert f"`{name}`" in text, name


def test_the_page_of_lessons_names_every_example():
    text = (ROOT / "docs" / "lessons.md").read_text()
    examples = [p for p in (ROOT / "examples").iterdir() if p.suffix in (".py", ".cpp")]
    parts = {"data", "digits"}  # which others import
    for stem in {p.stem for p in examples} - parts:
        assert f"`{stem}`" in text, stem


def test_the_glossary_is_in_order():
    text = (ROOT / "docs" / "glossary.md").read_text()
    terms = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)[1:]
    terms = [term for term in terms if not term.startswith("-")]
    assert 35 <= len(terms) <= 80 and terms == sorted(terms, key=str.casefold)
