"""The reference as reStructuredText: a page for each public module, an entry for each name, from docstrings.

Entries are objects of Sphinx's Python domain, so the search, the index and other projects' links find them.

SPDX-License-Identifier: Apache-2.0
"""

import ast
import collections
import inspect
import re
import types
import typing

import plait
from examples import IMPORTS, example_of

FIELD = re.compile(r"^  (\w+): (.+)$")


def modules():
    """{path: module} of the public modules: plait, and what its __all__ leads to."""
    found = {"plait": plait}
    queue = collections.deque(found)
    while queue:
        path = queue.popleft()
        for name in [*getattr(found[path], "__all__", []), *dir(found[path])]:
            part = getattr(found[path], name, None)
            inner = f"{path}.{name}"
            is_public = isinstance(part, types.ModuleType) and not name.startswith("_")
            if (
                is_public
                and part.__name__ == inner
                and inner not in found
                and hasattr(part, "__all__")
            ):
                found[inner] = part
                queue.append(inner)
    return dict(sorted(found.items()))


def names_of(module):
    """The public names that are no modules, as the catalogue orders them in text: sorted, capitals first."""
    return [
        name
        for name in sorted(dict.fromkeys(module.__all__))
        if not isinstance(getattr(module, name), types.ModuleType)
    ]


def escaped(text):
    """Plain text of a docstring as reStructuredText; `code` stays code."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(
        f"`{part}`" if part.startswith("`") and part.endswith("`") and len(part) > 2
        else re.sub(r"([\\*|_`])", r"\\\1", part)
        for part in parts
    )  # fmt: skip


def indented(text, by="   "):
    return "\n".join(by + line if line else "" for line in text.splitlines())


def literal(code, language):
    return f".. code-block:: {language}\n\n{indented(code)}\n"


def body_of(doc, name):
    """The text of a docstring: prose, parameters as fields, examples as code."""
    blocks = re.split(r"\n\s*\n", inspect.cleandoc(doc or ""))
    out = []
    for block in blocks:
        lines = block.splitlines() or [""]
        if block.startswith("SPDX-") or (
            block == lines[0] and block.startswith(f"{name}(") and block.endswith(")")
        ):
            continue
        if block.startswith(">>>"):
            out.append(literal(block, "pycon"))
        elif block.startswith(("Parameters:", "Gives:")):
            fields = []
            for line in lines:
                field = FIELD.match(line)
                if field:
                    fields.append(f":param {field[1]}: {escaped(field[2])}")
                elif line.startswith("Gives:"):
                    fields.append(f":returns: {escaped(line[6:].strip())}")
            out.append("\n".join(fields) + "\n")
        elif any(line.startswith("  ") for line in lines):
            out.append(literal(block, "text"))
        else:
            out.append(escaped(" ".join(lines)) + "\n")
    return "\n".join(out)


def signature_of(thing):
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        found = re.match(
            r"\w+(\(.*?\))(?: -> .*)?$", (thing.__doc__ or "").strip().partition("\n")[0]
        )
        return found[1] if found else "(…)"
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)
    text = re.sub(r"<[^<>]*?([\w.]+)(?: object)? at 0x[0-9a-f]+>", r"\1", text)
    return re.sub(r"<class '([\w.]+)'>", r"\1", text)


def uses_of(path, uses):
    places = uses.get(path)
    if not places:
        return ""
    links = [f":doc:`{title} <{page}>`" for title, page in sorted(places)[:8]]
    return "Used in: " + ", ".join(links) + ".\n"


def entry_of(path, thing, uses, counts):
    """The entry of a function, class or constant."""
    name = path.rpartition(".")[2]
    counts["names"] += 1
    if (getattr(thing, "__module__", None) or "").split(".")[0] in ("numpy", "ml_dtypes"):
        return f".. py:data:: {path}\n\n   The same as ``{thing.__module__}.{getattr(thing, '__name__', name)}``.\n"
    if inspect.isclass(thing):
        return class_entry(path, thing, uses)
    if not callable(thing) or typing.get_origin(thing):
        return f".. py:data:: {path}\n   :no-index-entry:\n\n   ``{str(thing)[:80]!r}``\n"
    body = body_of(thing.__doc__, name)
    example = example_of(path, thing)
    counts["functions"] += 1
    counts["with an example"] += example is not None
    if example:
        body += "\n" + literal(example, "pycon")
    else:
        print(f"   no example of {path}")
    body += "\n" + uses_of(path, uses)
    return f".. py:function:: {path}{signature_of(thing)}\n\n{indented(body)}\n"


def class_entry(path, thing, uses):
    is_error = issubclass(thing, plait.Error)
    name = path.rpartition(".")[2]
    kind = "exception" if is_error else "class"
    head = f".. py:{kind}:: {path}\n\n{indented(body_of(thing.__doc__, name))}\n"
    if is_error:
        return head + f"   See :doc:`its page </errors/{name}>`.\n"
    head += "\n" + indented(uses_of(path, uses)) + "\n"
    for member in sorted(vars(thing)):
        attribute = inspect.getattr_static(thing, member)
        doc = getattr(attribute, "__doc__", None)
        if member.startswith("_") or not isinstance(doc, str):
            continue
        doc = doc if not doc.startswith("Alias for field number") else ""
        attribute = getattr(attribute, "__func__", attribute)
        if callable(attribute) and not isinstance(attribute, type):
            signature = re.sub(r"^\(\$?self(, )?", "(", signature_of(attribute))
            text = f".. py:method:: {member}{signature}\n\n{indented(body_of(doc, member))}\n"
        else:
            text = f".. py:attribute:: {member}\n\n{indented(body_of(doc, member))}\n"
        head += "\n" + indented(text) + "\n"
    return head


def page_of(path, module, parts, uses, counts):
    title = path
    text = f"{title}\n{'=' * len(title)}\n\n{body_of(module.__doc__, path)}\n"
    if parts:
        text += (
            ".. toctree::\n   :maxdepth: 1\n\n" + "".join(f"   {part}\n" for part in parts) + "\n"
        )
    names = names_of(module)
    if names:
        text += ":py:obj:`" + "` :py:obj:`".join(f"{n} <{path}.{n}>" for n in names) + "`\n\n"
        text += f"Examples begin with\n\n{literal(IMPORTS.strip(), 'python')}\n"
    return text + "\n".join(
        entry_of(f"{path}.{name}", getattr(module, name), uses, counts) for name in names
    )


def write(folder, uses):
    """Writes the pages of the reference; gives the counts of what they hold."""
    folder.mkdir(parents=True, exist_ok=True)
    counts = collections.Counter()
    found = modules()
    for path, module in found.items():
        parts = [p for p in found if p.rpartition(".")[0] == path]
        (folder / f"{path}.rst").write_text(page_of(path, module, parts, uses, counts))
    return counts


# --- Where names are used ---------------------------------------------------------------------------


def uses_in(code, title, page, uses):
    """Adds to uses, {path: {(title, page)}}, the public names that code says by its imports."""
    try:
        body = ast.parse(code)
    except SyntaxError:
        return
    names = {}
    for node in ast.walk(body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "plait":
                    names[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else "plait"
                    )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "plait":
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(body):
        parts, inner = [], node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in names:
            uses[".".join([names[inner.id], *reversed(parts)])].add((title, page))


def known():
    """Every path that has an entry."""
    return {f"{path}.{name}" for path, module in modules().items() for name in names_of(module)}
