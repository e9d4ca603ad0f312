"""Pages of the site that are no reference: docs/*.md, lessons, errors, tables of names.

SPDX-License-Identifier: Apache-2.0
"""

import ast
import os
import pathlib
import re

import numpy as np
import plait
import plait.numpy as jnp
from reference import body_of, known, uses_in

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def toctree(title, pages):
    listed = "\n".join(pages)
    return f"```{{toctree}}\n:hidden:\n:caption: {title}\n:maxdepth: 1\n\n{listed}\n```\n\n"


def title_of(text):
    return re.search(r"^# (.+)$", text, re.M)[1].replace("`", "")


# --- docs/*.md --------------------------------------------------------------------------------------


def write_pages(source, uses):
    """Copies the README as the first page, and docs; gives {section of the README: pages}."""
    pages = {"index": ROOT / "README.md"}
    pages |= {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}
    places = {path.resolve(): f"{name}.md" for name, path in pages.items()}
    for name, path in pages.items():
        text = path.read_text()
        for code in re.findall(r"```python\n(.*?)```", text, re.S):
            uses_in(code, title_of(text), f"/{name}", uses)

        def moved(found, folder=path.parent):
            target, anchor = found[1], found[2] or ""
            if "://" in target:
                return found[0]
            linked = places.get((folder / target).resolve())
            return f"]({linked}{anchor})" if linked else f"]({target}{anchor})"

        (source / f"{name}.md").write_text(LINK.sub(moved, text))
    sections, title = {}, None
    for line in (ROOT / "README.md").read_text().splitlines():
        heading = re.match(r"\*\*(.+)\*\*$", line)
        title = heading[1] if heading else title
        linked = re.match(r"\| \[.+?\]\(docs/(\w+)\.md\)", line)
        if title and linked:
            sections.setdefault(title, []).append(linked[1])
    return sections


# --- Lessons ----------------------------------------------------------------------------------------


def write_lessons(source, uses):
    """A page for each example: what it says of itself, its Python, and its twin in C++."""
    folder = source / "examples"
    folder.mkdir()
    stems = sorted(
        {path.stem for path in (ROOT / "examples").glob("*.*") if path.suffix in (".py", ".cpp")}
    )
    pages = []
    for stem in stems:
        python, cpp = (ROOT / "examples" / f"{stem}{end}" for end in (".py", ".cpp"))
        text = f"# {stem}\n\n"
        if python.exists():
            code = python.read_text()
            doc = ast.get_docstring(ast.parse(code)) or ""
            text += re.sub(r"SPDX-\S+ \S+", "", doc).strip() + "\n\n"
            uses_in(code, stem, f"/examples/{stem}", uses)
        for path, language in ((python, "python"), (cpp, "cpp")):
            if path.exists():
                relative = os.path.relpath(path, folder)
                text += f"`examples/{path.name}`:\n\n```{{literalinclude}} {relative}\n:language: {language}\n```\n\n"
        (folder / f"{stem}.md").write_text(text)
        pages.append(f"examples/{stem}")
    return pages


# --- Errors -----------------------------------------------------------------------------------------


def write_errors(folder):
    """A page for each class of errors: who may catch it as what, and every program of the tests that raises it."""
    folder.mkdir()
    classes = {
        name: thing
        for name, thing in vars(plait).items()
        if isinstance(thing, type) and issubclass(thing, plait.Error)
    }
    cases = {}
    for path in sorted((ROOT / "tests" / "errors" / "python").glob("*.txt")):
        program, _, text = path.read_text().partition("-" * 40 + "\n")
        kind, _, message = text.partition(": ")
        cases.setdefault(kind, []).append((path.stem.replace("_", " "), program, message))
    for name, thing in classes.items():
        bases = [base.__name__ for base in thing.__mro__[1:] if base not in (BaseException, object)]
        below = [other for other, each in classes.items() if thing in each.__bases__]
        text = f"{name}\n{'=' * len(name)}\n\n{body_of(thing.__doc__, name)}\n"
        text += f"Caught as {', '.join(f'``{base}``' for base in [name, *bases])}.\n\n"
        if below:
            text += "Below it: " + ", ".join(f":doc:`{other}`" for other in sorted(below)) + ".\n\n"
        own = cases.get(name, [])
        if own:
            text += "What it says, of programs that are wrong: what, where, under which transforms, and the fix.\n\n"
        for title, program, message in own:
            block = "".join(
                f"   {line}\n" if line else "\n" for line in program.strip().splitlines()
            )
            said = "".join(
                f"   {line}\n" for line in f"plait.{name}: {message}".strip().splitlines()
            )
            text += f"{title}\n{'-' * len(title)}\n\n.. code-block:: python\n\n{block}\n.. code-block:: text\n\n{said}\n"
        (folder / f"{name}.rst").write_text(text)
    return [f"errors/{name}" for name in sorted(classes)]


# --- Names of other libraries -----------------------------------------------------------------------


def linked(path, entries):
    return f"{{py:obj}}`{path}`" if path in entries else f"`{path}`"


def write_tables(source):
    """Where the names of NumPy and of JAX are in plait."""
    entries = known()
    write_numpy(source / "names_of_numpy.md", entries)
    write_jax(source / "names_of_jax.md", entries)
    return ["names_of_numpy", "names_of_jax"]


def write_numpy(path, entries):
    rows = []
    for prefix, theirs, ours in (("numpy", np, jnp), ("numpy.linalg", np.linalg, jnp.linalg), ("numpy.fft", np.fft, jnp.fft)):  # fmt: skip
        names = [name for name in sorted(dir(theirs)) if not name.startswith("_")]
        for name in names:
            thing = getattr(theirs, name, None)
            is_function = callable(thing) and not isinstance(thing, type)
            if is_function and not (prefix == "numpy" and name in ("test",)):
                there = hasattr(ours, name)
                rows.append(
                    (
                        f"{prefix}.{name}",
                        linked(f"plait.{prefix}.{name}", entries) if there else "—",
                    )
                )
    missing = sum(place == "—" for _, place in rows)
    text = (
        "# NumPy's names\n\n"
        f"Of {len(rows)} functions of NumPy {np.__version__}, its `linalg` and `fft`, plait has {len(rows) - missing} "
        "under the same name. [Coming from NumPy](coming_from.md#from-numpy) says what differs.\n\n"
        "| in NumPy | in plait |\n| --- | --- |\n"
    )
    path.write_text(text + "".join(f"| `{name}` | {place} |\n" for name, place in rows))


def write_jax(path, entries):
    """JAX's names as plait.compat.jax lists them, read as text: its packages are imported only when asked for."""
    folder = ROOT / "python" / "plait" / "compat" / "jax" / "jax"
    modules = {
        "jax": "plait", "jax.numpy": "plait.numpy", "jax.numpy.linalg": "plait.numpy.linalg", "jax.numpy.fft": "plait.numpy.fft",
        "jax.lax": "plait.lax", "jax.lax.linalg": "plait.lax.linalg", "jax.nn": "plait.nn",
        "jax.nn.initializers": "plait.nn.initializers", "jax.random": "plait.random", "jax.ops": "plait.ops",
        "jax.image": "plait.image", "jax.tree": "plait.tree", "jax.tree_util": "plait.tree_util", "jax.debug": "plait.debug",
        "jax.flatten_util": "plait.flatten_util", "jax.scipy.linalg": "plait.scipy.linalg",
        "jax.scipy.special": "plait.scipy.special", "jax.scipy.stats": "plait.scipy.stats", "jax.scipy.fft": "plait.scipy.fft",
    }  # fmt: skip
    text = (
        "# JAX's names\n\n"
        "Modules have JAX's names below `plait`, and functions JAX's names and argument order. "
        "[Coming from JAX](coming_from.md#from-jax) says what differs, and "
        "[Libraries written for JAX](jax_libraries.md) how programs that import `jax` run unchanged.\n\n"
        "| in JAX | in plait | functions there |\n| --- | --- | --- |\n"
    )
    for theirs, ours in modules.items():
        inside = sorted(e.rpartition(".")[2] for e in entries if e.rpartition(".")[0] == ours)
        inside = [name for name in inside if name[0].islower()]
        text += f"| `{theirs}` | [`{ours}`](reference/{ours}.rst) | {len(inside)} |\n"
    parts = (
        sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.py"))
        if folder.exists()
        else []
    )
    names = [
        "jax." + part.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for part in parts
    ]
    names = [name for name in names if not any(word.startswith("_") for word in name.split("."))]
    text += (
        "\nModules that programs may import when [plait stands in for JAX](jax_libraries.md):\n\n"
    )
    text += ", ".join(f"`{name}`" for name in names) + ".\n"
    path.write_text(text)
