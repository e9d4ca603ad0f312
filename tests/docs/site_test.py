"""The documentation site: what is on it, that its examples run and its links lead somewhere, and a look at it.

Its sources are made here as ./dev docs makes them. The site itself needs Sphinx: where ./dev docs has made
it, its links are followed too, and a browser opens it.

SPDX-License-Identifier: Apache-2.0
"""

import html
import html.parser
import operator
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import pytest

import plait

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs" / "html"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    out = tmp_path_factory.mktemp("docs")
    command = [sys.executable, ROOT / "python" / "docs" / "make.py", out, "--prepare"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out / "source", dict(
        reversed(line.split(None, 1)) for line in result.stdout.splitlines()
    )


def test_every_public_function_has_an_entry_and_an_example_that_runs(source):
    pages, counts = source
    functions, examples = int(counts["functions"]), int(counts["with an example"])
    without = [what for what, count in counts.items() if count == "no"]  # written.py takes one
    assert functions > 1000 and examples == functions, without
    text = (pages / "reference" / "plait.numpy.rst").read_text()
    for name in plait.numpy.__all__:
        if callable(getattr(plait.numpy, name)) and not hasattr(
            getattr(plait.numpy, name), "__path__"
        ):
            assert f"plait.numpy.{name}" in text, name
    entry = text[text.index(".. py:function:: plait.numpy.sinh(x)") :].split(".. py:function::")[1]
    for part in (
        "hyperbolic sine",
        ":param x: array",
        ">>> jnp.sinh(jnp.array([0.25, 0.5, 0.75]))",
        "0.2526",
    ):
        assert part in entry, entry


def test_every_class_of_errors_has_a_page_with_what_where_and_fix(source):
    pages, _ = source
    classes = [
        n for n, t in vars(plait).items() if isinstance(t, type) and issubclass(t, plait.Error)
    ]
    for name in classes:
        text = (pages / "errors" / f"{name}.rst").read_text()
        assert f"``{name}``" in text
    text = (pages / "errors" / "ShapeError.rst").read_text()
    assert text.count("train.py:") > 20 and text.count("fix: ") > 20
    cases = len(list((ROOT / "tests" / "errors" / "python").glob("*.txt")))
    assert cases == sum(
        (pages / "errors" / f"{name}.rst").read_text().count(f"\n   plait.{name}: ")
        for name in classes
    )


def test_lessons_and_tables_of_names_are_there(source):
    pages, _ = source
    for path in (ROOT / "examples").glob("*.py"):
        assert f"/{path.name}" in (pages / "examples" / f"{path.stem}.md").read_text()
    numpy = (pages / "names_of_numpy.md").read_text()
    assert "{py:obj}`plait.numpy.sin`" in numpy and "| `numpy.busday_count` | — |" in numpy
    assert "[`plait.lax`](reference/plait.lax.rst)" in (pages / "names_of_jax.md").read_text()
    index = (pages / "index.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        assert f"\n{page.stem}\n" in index, page


def test_names_of_the_migration_tables_exist():
    text = (ROOT / "docs" / "coming_from.md").read_text()
    table = text[text.index("### Names of PyTorch") :]
    modules = {
        "jnp": plait.numpy,
        "lax": plait.lax,
        "nn": plait.nn,
        "random": plait.random,
        "optim": plait.optim,
    }
    rows = re.findall(r"^\| .+ \| (.+) \|$", table, re.M)[2:]
    names = [
        name for row in rows for name in re.findall(r"`((?:jnp|lax|nn|random|optim)\.[\w.]+)`", row)
    ]
    assert len(names) > 60
    for name in names:
        prefix, _, rest = name.partition(".")
        operator.attrgetter(rest)(modules[prefix])


# --- The site that ./dev docs made ------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.names.add(attributes.get("id"))
        self.links += [v for k, v in attributes.items() if k in ("href", "src") and v]


@pytest.fixture(scope="module")
def site():
    if not (SITE / "index.html").exists():
        pytest.skip("no site is made: ./dev docs makes it")
    return SITE


def test_links_of_the_site_lead_somewhere(site):
    pages = {
        path: Page(path.read_text()) for path in site.rglob("*.html") if "_static" not in path.parts
    }
    assert len(pages) > 100
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if "://" in target or target.startswith(("data:", "mailto:")):
                continue
            target = urllib.parse.unquote(target.partition("?")[0])
            linked = (path.parent / target).resolve() if target else path
            assert linked.exists(), f"{path.name}: {link}"
            if anchor and linked in pages:
                assert urllib.parse.unquote(anchor) in pages[linked].names, f"{path.name}: {link}"


def opened(site, page, tmp_path, *options):
    if BROWSER is None:
        pytest.skip("no Chromium is installed, in which the page could be opened")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]
    command += [f"--user-data-dir={tmp_path / 'browser'}", "--virtual-time-budget=10000", *options]
    result = subprocess.run(
        [*command, f"file://{site}/{page}"], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return html.unescape(result.stdout)


def test_a_browser_shows_it_and_its_search_finds_functions(site, tmp_path):
    shown = opened(site, "reference/plait.numpy.html", tmp_path, "--dump-dom")
    assert 'id="plait.numpy.sinh"' in shown and "The hyperbolic sine" in shown
    found = opened(site, "search.html?q=fori_loop", tmp_path, "--dump-dom")
    assert "reference/plait.lax.html#plait.lax.fori_loop" in found
