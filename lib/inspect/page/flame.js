// The page of a flame graph: the time of a call, from its scopes, lines or steps down to equations.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const flame = byId("flame"), foot = byId("foot"), search = byId("search");
const escaped = (t) => String(t).replace(/[&<>"']/g, (c) => "&#" + c.charCodeAt(0) + ";");

function timeText(seconds) {
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]])
    if (seconds >= size) return (seconds / size).toPrecision(3) + " " + unit;
  return Math.round(seconds * 1e9) + " ns";
}

const parts = [];
for (let i = 0; i < data.parts.length; i += 7) {
  const [seconds, step, scope, transforms, fun, line, primitive] = data.parts.slice(i, i + 7);
  parts.push({ seconds, step, scope: data.strings[scope], transforms: data.strings[transforms],
    fun: data.strings[fun], line: data.strings[line], primitive: data.strings[primitive] });
}
function stepsOf(step) {
  const path = [];
  for (; step >= 0; step = data.steps[step][1]) path.unshift(`${data.steps[step][0]}  [${data.steps[step][2]}] ${data.steps[step][3]}`);
  return path;
}
const scopesOf = (part) => (part.scope ? part.scope.split("/") : []);
const last = (part) => [part.line || "(no line)", part.primitive];
const views = {
  scopes: (part) => [...(part.transforms ? [part.transforms] : []), ...scopesOf(part), ...last(part)],
  lines: (part) => [part.fun || "(no function)", ...last(part)],
  steps: (part) => [...stepsOf(part.step), ...last(part)],
};

let view = "scopes", root = null, focus = null;
function build() {
  root = { name: document.title, seconds: 0, inner: new Map(), outer: null, depth: 0 };
  for (const part of parts) {
    let node = root;
    node.seconds += part.seconds;
    for (const name of views[view](part)) {
      let next = node.inner.get(name);
      if (!next) node.inner.set(name, (next = { name, seconds: 0, inner: new Map(), outer: node, depth: node.depth + 1 }));
      next.seconds += part.seconds;
      node = next;
    }
  }
  const beside = data.seconds - root.seconds;
  if (beside > 0) {
    root.inner.set("besides", { name: "besides steps: memory, calls", seconds: beside, inner: new Map(), outer: root, depth: 1 });
    root.seconds = data.seconds;
  }
  focus = root;
  draw();
}
function hueOf(name) {
  let hash = 0;
  for (const c of name) hash = (hash * 31 + c.codePointAt(0)) % 997;
  return 18 + (hash % 40);
}
let drawn = [];
function draw() {
  const width = flame.clientWidth, wanted = search.value.toLowerCase();
  const markup = [];
  let deepest = 0;
  drawn = [];
  const add = (node, x, w, extra) => {
    if (w < 0.6) return;
    deepest = Math.max(deepest, node.depth);
    const isFound = wanted && node.name.toLowerCase().includes(wanted);
    markup.push(`<div class="${w < 24 ? "sliver" : ""} ${extra} ${isFound ? "found" : ""}" data-at="${drawn.length}" style="left:${x}px;top:${node.depth * 24}px;width:${w}px;--hue:${hueOf(node.name)}">` +
      (w < 24 ? "" : escaped(node.name) + " · " + timeText(node.seconds)) + "</div>");
    drawn.push(node);
  };
  for (let node = focus.outer; node; node = node.outer) add(node, 0, width, "around");
  const below = (node, x, w) => {
    add(node, x, w, "");
    for (const inner of [...node.inner.values()].sort((a, b) => b.seconds - a.seconds)) {
      const part = node.seconds ? (w * inner.seconds) / node.seconds : 0;
      below(inner, x, part);
      x += part;
    }
  };
  below(focus, 0, width);
  flame.innerHTML = markup.join("");
  flame.style.height = (deepest + 1) * 24 + "px";
  flame.dataset.boxes = drawn.length;
}
flame.onclick = (event) => {
  const box = event.target.closest("[data-at]");
  if (box) focus = drawn[box.dataset.at], draw();
};
flame.onmousemove = (event) => {
  const box = event.target.closest("[data-at]");
  if (!box) return;
  const node = drawn[box.dataset.at];
  foot.textContent = `${node.name}\n${timeText(node.seconds)}, ${((100 * node.seconds) / data.seconds).toFixed(1)} % of a call`;
};
search.oninput = draw;
addEventListener("resize", draw);
for (const name of Object.keys(views)) {
  const button = document.createElement("button");
  button.value = button.textContent = name;
  button.onclick = () => {
    view = name;
    for (const other of byId("by").children) other.setAttribute("aria-pressed", other.value === view);
    build();
  };
  byId("by").append(button);
}
byId("facts").textContent = `${timeText(data.seconds)} a call, median of ${data.runs}; time of fused steps is shared by cost`;
foot.textContent = "Click a box to see it alone.";
byId("by").children[0].click();
