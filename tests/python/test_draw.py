"""Pictures of programs: what they show, counted another way, and the page in a browser.

SPDX-License-Identifier: Apache-2.0
"""

import html
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree

import numpy as np
import pytest

import plait
import plait.numpy as jnp
from plait import lax

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)  # fmt: skip
SCOPE, BODY, RUN, EQUATION, INPUT, OUTPUT = range(6)


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def loss(params, x):
    with plait.named_scope("encoder"):
        with plait.named_scope("hidden"):
            h = jnp.tanh(x @ params["w"])
        with plait.named_scope("head"):
            y = h @ params["v"]
    return jnp.mean(y**2)


def arguments():
    return {"w": jnp.ones((3, 5)), "v": jnp.ones((5, 2))}, jnp.ones((7, 3))


def chain(x):
    for _ in range(5000):
        x = jnp.tanh(x) * 1.5
    return x


APPLIES_BODY = ("call", "checkpoint", "composite", "custom_derivative")


def leaf_equations(jaxpr):
    """How many equations a picture has leaves for: all but those that hold programs, whose parts it has."""
    count = 0
    for equation in jaxpr.eqns:
        keys = ("body",) if equation.primitive in APPLIES_BODY else equation.params
        held = [equation.params[key] for key in keys]
        bodies = [b for p in held for b in (p if isinstance(p, tuple) else (p,)) if isinstance(b, plait.Jaxpr)]  # fmt: skip
        count += sum(map(leaf_equations, bodies)) if bodies else 1
    return count


@pytest.mark.parametrize("transform", [lambda f: f, plait.grad, lambda f: plait.jit(plait.grad(f))])
def test_every_equation_is_drawn_once_and_every_operand_is_an_edge(transform):
    program = plait.make_jaxpr(transform(loss))(*arguments()).jaxpr
    data = data_of(plait.draw(program))
    kinds = data["nodes"]["kind"]
    assert kinds.count(EQUATION) == leaf_equations(program) == data["nodes"]["count"][0]
    names = [data["strings"][i] for i, kind in zip(data["nodes"]["name"], kinds) if kind == INPUT]
    assert sum(":" not in name for name in names) == len(program.inputs)  # others are literals
    assert kinds.count(OUTPUT) == len(program.outputs)
    children = [i for box, layers, _ in data["layers"] for layer in layers for i in layer if i >= 0]
    assert sorted(children) == list(range(1, len(kinds)))  # each in one box, but for the outermost
    texts = [data["strings"][i] for i in data["nodes"]["text"]]
    readers = [data["edges"][e + 1] for e in range(0, len(data["edges"]), 4)]
    for node, kind in enumerate(kinds):
        if kind == EQUATION:
            operands = re.sub(r"\[.*\]", "", texts[node].partition(" = ")[2]).split()[1:]
            assert readers.count(node) == sum(":" not in operand for operand in operands)


def test_boxes_are_scopes_and_layers_go_down():
    data = data_of(plait.draw(plait.grad(loss), *arguments()))
    strings, nodes = data["strings"], data["nodes"]
    names = [strings[i] for i in nodes["name"]]
    for name in ("hidden", "head"):
        inside = [i for i, n in enumerate(names) if n == name]
        assert inside and {names[nodes["parent"][i]] for i in inside} == {"encoder"}
    made = {strings[nodes["type"][i]] for i, n in enumerate(names) if n == "encoder"}
    assert len(made) > 1  # forward, and what transforms made of it
    for _, layers, links in data["layers"]:
        layer_of = {item: number for number, layer in enumerate(layers) for item in layer}
        for start, end, is_routed in zip(*[iter(links)] * 3):
            if is_routed:
                assert layer_of[start] < layer_of[end]
                link = -1 - links.index(start) // 3
                between = {n for n, layer in enumerate(layers) if link in layer}
                assert not between or min(between) > 0


def test_figures_are_those_of_the_arrays():
    data = data_of(plait.draw(lambda x, y: jnp.tanh(x @ y), jnp.ones((4, 5)), jnp.ones((5, 6))))
    nodes, strings = data["nodes"], data["strings"]
    of = {strings[name]: i for i, name in enumerate(nodes["name"])}
    assert nodes["flops"][of["dot_general"]] == 2 * 4 * 5 * 6
    assert nodes["bytes"][of["tanh"]] == 4 * 6 * 4
    assert strings[nodes["name"][of["x"]]] == "x" and strings[nodes["type"][of["y"]]] == "f32[5,6]"
    file, line, *_, text = data["sources"][nodes["source"][of["tanh"]]]
    assert file == __file__ and "jnp.tanh(x @ y)" in text and line > 0


def test_loops_and_branches_hold_their_programs():
    def f(x):
        y, _ = lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)
        return lax.cond(x[0] > 0, jnp.cos, jnp.exp, y)

    data = data_of(plait.draw(f, jnp.ones(3)))
    names = [data["strings"][i] for i in data["nodes"]["name"]]
    assert {"scan", "cond", "body", "branch 0", "branch 1", "sin", "cos", "exp"} <= set(names)


def test_programs_that_call_each_other_twice_are_drawn_in_bounds():
    f = plait.jit(jnp.sin)
    for _ in range(18):  # 2^18 calls
        f = plait.jit(lambda x, g=f: g(g(x)))
    data = data_of(plait.draw(f, jnp.ones(3)))
    assert 1000 < len(data["nodes"]["kind"]) < 2**18


def test_named_sizes_and_programs_without_equations_are_drawn():
    assert "f32[n]" in data_of(plait.draw(lambda x: x + 1, "n"))["strings"]
    for page in (plait.draw(lambda x: x, 1.0), plait.draw(lambda: 2.0)):
        assert data_of(page)["nodes"]["count"] == [0] * len(data_of(page)["nodes"]["count"])


def test_texts_cannot_leave_their_place(tmp_path):
    name = "</script><b>&\"'\x01\udcff"
    page = plait.draw(lambda x: x + 1, 1.0, title=name.encode("utf-8", "replace").decode())
    assert page.count("</script>") == 2 and "<b>" not in page
    plait.draw(lambda x: x + 1, 1.0, title="<&>", path=tmp_path / "f.svg")
    xml.etree.ElementTree.parse(tmp_path / "f.svg")


def test_an_svg_shows_the_boxes_apart(tmp_path):
    path = tmp_path / "loss.svg"
    plait.draw(plait.grad(loss), *arguments(), path=path)
    root = xml.etree.ElementTree.parse(path).getroot()
    space = "{http://www.w3.org/2000/svg}"
    texts = [t.text for t in root.iter(space + "text")]
    assert "encoder" in texts and "f32[7,3]" in texts
    boxes = []
    for group in root.iter(space + "g"):
        rect = group.find(space + "rect").attrib
        boxes.append([float(rect[k]) for k in ("x", "y", "width", "height")])
    assert len(boxes) > 5

    def holds(a, b):
        return all(a[k] <= b[k] and a[k] + a[k + 2] >= b[k] + b[k + 2] for k in (0, 1))

    def apart(a, b):
        return any(a[k] + a[k + 2] <= b[k] or b[k] + b[k + 2] <= a[k] for k in (0, 1))

    assert all(apart(a, b) or holds(a, b) or holds(b, a) for a in boxes for b in boxes)


def test_bad_input_is_refused(tmp_path):
    with pytest.raises(plait.ValueError, match="color"):
        plait.draw(jnp.tanh, 1.0, color="pink")
    with pytest.raises(plait.ValueError, match="nothing to run"):
        plait.draw(jnp.tanh, "n", color="time")
    with pytest.raises(OSError, match="cannot write"):
        plait.draw(jnp.tanh, 1.0, path=tmp_path / "absent" / "f.html")


def test_times_and_backends_come_from_a_profile():
    profile = plait.profile(loss, *arguments(), runs=5)
    data = data_of(plait.draw(loss, *arguments(), color="time", profile=profile))
    total = sum(profile.by("primitive").values())
    assert np.isclose(data["nodes"]["seconds"][0], total, rtol=0.05)
    assert set(profile.by("backend")) == {data["strings"][i] for i in data["nodes"]["backend"]} - {
        ""
    }


# --- In a browser ----------------------------------------------------------------------------------


def opened(path, wish="", mark="<svg"):
    """The page as a browser shows it, as text."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed, in which the page could be opened")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900"]
    command += [f"--user-data-dir={path.parent / 'browser'}", "--dump-dom", f"file://{path}{wish}"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert mark in result.stdout, result.stderr
    return html.unescape(result.stdout)


def num_boxes(page):
    return int(re.search(r'data-boxes="(\d+)"', page)[1])


def test_large_programs_open_folded_and_unfold_where_one_looks(tmp_path):
    path = tmp_path / "chain.html"
    plait.draw(chain, jnp.ones(8), path=path)
    page = opened(path)
    assert num_boxes(page) <= 40 and "10000 equations" in page
    assert "313 KiB made" in page  # 10,000 times 8 float32
    page = opened(path, "#find=tanh&theme=dark")
    assert 40 < num_boxes(page) < 150
    panel = re.search(r"<aside.*?</aside>", page, re.S)[0]
    assert "tanh" in panel and "test_draw.py" in panel and "x = jnp.tanh(x) * 1.5" in panel
    assert 300 < num_boxes(opened(path, "#unfold")) <= 1500


def test_edges_carry_shapes_and_boxes_fold(tmp_path):
    path = tmp_path / "loss.html"
    plait.draw(plait.grad(loss), *arguments(), path=path)
    page = opened(path, "#unfold&color=bytes")
    labels = re.findall(r'class="label"[^>]*>([^<]*)', page)
    assert "f32[7,5]" in labels and "f32[7,3]" in labels
    assert page.count("▾ encoder") == 2 or page.count("▾ encoder") == 3


def test_flame_graphs_open(tmp_path):
    path = tmp_path / "flame.html"
    plait.profile(plait.grad(loss), *arguments(), runs=3).flame(path)
    page = opened(path, mark="data-boxes")
    assert num_boxes(page) > 5 and "encoder" in page and "transpose" in page


def test_paths_and_titles_of_any_kind(tmp_path):
    f = jnp.sin
    with pytest.raises(plait.DtypeError, match="draw: the path is 3 of type int"):
        plait.draw(f, 1.0, path=3)
    with pytest.raises(plait.ValueError, match="has a zero in it"):
        plait.draw(f, 1.0, path=f"{tmp_path}/a\0.html")
    with pytest.raises(plait.DtypeError, match="trace: the path is None"):
        plait.profile(f, 1.0, runs=1).trace(None)
    plait.draw(f, 1.0, path=str(tmp_path).encode() + b"/a.svg", title="\ud800")
    assert "\\ud800" in (tmp_path / "a.svg").read_text()


def test_a_saved_program_is_drawn_and_summed_up_without_arguments(tmp_path):
    plait.save(tmp_path / "f.plait", lambda x: jnp.sin(x) * 2, np.ones(3, np.float32))
    program = plait.load(tmp_path / "f.plait")
    (entry,) = program.entries.values()
    for target in (program, entry):
        assert "sin" in plait.draw(target)
        assert str(plait.summary(target).total) == str(plait.summary(entry.jaxpr).total)
