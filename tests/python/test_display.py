"""What notebooks show: arrays, programs, profiles and progress as HTML and SVG; and names that are misspelled.

SPDX-License-Identifier: Apache-2.0
"""

import html.parser
import importlib
import re
import sys
import types
import xml.etree.ElementTree

import ml_dtypes
import numpy as np
import plait
import plait.numpy as jnp
import pytest
from plait import _display


class Balanced(html.parser.HTMLParser):
    """Asserts that every element is closed, and keeps the cells of tables."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.pages = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.pages += [value for name, value in attributes if name == "srcdoc"]
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        pass  # of SVG

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def shown(thing):
    return Balanced(thing._repr_html_())


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64", ml_dtypes.bfloat16])
def test_arrays_are_tables_of_their_values(dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    cells = shown(jnp.asarray(values)).cells
    got = [
        complex(c) if "j" in c else {"True": 1, "False": 0}.get(c) or float(c.replace("False", "0"))
        for c in cells
    ]
    assert np.allclose(got, values.astype(complex).ravel())
    assert np.dtype(dtype).name in jnp.asarray(values)._repr_html_()


def test_long_arrays_are_cut_and_others_are_left_to_their_text():
    cells = shown(jnp.arange(1000)).cells
    assert cells == ["0", "1", "2", "3", "4", "⋮", "995", "996", "997", "998", "999"]
    assert len(shown(jnp.zeros((50, 50))).cells) == 11 * 11
    for x in (jnp.ones(()), jnp.ones((2, 2, 2)), jnp.ones((0, 3))):
        assert x._repr_html_() is None
    seen = []
    plait.jit(lambda x: seen.append(x._repr_html_()) or x)(jnp.ones(3))
    assert seen == [None]


def loss(w, x):
    with plait.named_scope("hidden"):
        h = jnp.tanh(x @ w)
    return jnp.sum(jnp.where(h > 0, h, 0.0))


def test_programs_are_shown_in_colours_with_their_picture():
    closed = plait.make_jaxpr(plait.grad(loss))(jnp.ones((3, 2)), jnp.ones((4, 3)))
    for thing in (closed, closed.jaxpr):
        text = thing._repr_html_()
        head = re.sub(r"<[^>]+>", "", text[: text.index("<details>")])
        assert html.unescape(head) == str(closed.jaxpr)
        picture = xml.etree.ElementTree.fromstring(thing._repr_svg_())
        assert picture.tag.endswith("svg") and "tanh" in thing._repr_svg_()
        shown(thing)


def test_large_programs_have_no_picture():
    def chain(x):
        for _ in range(_display.LARGEST_PICTURE + 1):
            x = jnp.sin(x)
        return x

    jaxpr = plait.make_jaxpr(chain)(1.0)
    assert jaxpr._repr_svg_() is None and "<svg" not in jaxpr._repr_html_()


def test_tables_and_pages_of_programs():
    w, x = jnp.ones((3, 2)), jnp.ones((4, 3))
    cells = shown(plait.summary(loss, w, x)).cells
    assert "\u2003hidden" in cells and "f32[4,2]" in cells
    difference = shown(plait.diff(jnp.sin, jnp.cos, x))
    assert not difference.pages
    profile = plait.profile(loss, w, x, runs=3)
    (flame,) = shown(profile).pages
    assert flame.startswith("<!doctype html>") and "hidden" in flame
    page = plait.draw(loss, w, x)
    assert shown(page).pages == [str(page)] and isinstance(page, str)
    assert "backends" in shown(plait.info()).cells
    shown(plait.rules("tanh"))


def test_progress_is_a_bar_below_the_cell(monkeypatch):
    log = []

    class Handle:
        def update(self, content):
            log.append(content)

    def display(content, display_id):
        log.append(content)
        return Handle()

    fake = types.ModuleType("IPython")
    fake.display = types.ModuleType("IPython.display")
    fake.display.HTML, fake.display.display = str, display
    fake.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake.display)
    assert _display.is_notebook()
    plait.set_progress("bar", after=0)
    try:
        plait.jit(lambda x: jnp.sin(x) + 1)(jnp.ones(5))
        plait.vmap(jnp.sin, chunk=1)(jnp.ones(64)) if "chunk" in str(plait.vmap.__doc__) else None
    finally:
        plait.set_progress("line")
    bars = _display.NotebookBars()
    start = len(log)
    bars("compiling <f>", 1, 4, 2.0, False)
    bars("compiling <f>", 4, 4, 3.0, True)
    assert "compiling &lt;f&gt;" in log[start] and 'max="4"' in log[start] and log[start + 1] == ""
    assert not bars.displays


MISSPELT = {
    "plait": "grads", "plait.numpy": "sine", "plait.lax": "scann", "plait.nn": "rellu", "plait.scipy": "stat",
    "plait.scipy.stats.norm": "logpfd", "plait.tree_util": "tree_mapp", "plait.dtypes": "result_typ",
    "plait.flatten_util": "ravel_pytre", "plait.debug": "prin", "plait.nn.initializers": "glorot_norml",
}  # fmt: skip


@pytest.mark.parametrize("module", MISSPELT)
def test_modules_suggest_names_and_complete_them(module):
    part = importlib.import_module(module)
    with pytest.raises(AttributeError, match="did you mean"):
        getattr(part, MISSPELT[module])
    assert set(part.__all__) <= set(dir(part))
