// The page of a picture: places the boxes that are unfolded, draws them, and shows what is chosen.
//
// The order of boxes in their layers comes with the data (lib/inspect/draw_layers.cpp); what is
// done here, for what is shown alone, is giving them places.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const text = data.strings, nodes = data.nodes, total = nodes.parent.length;
const SCOPE = 0, BODY = 1, RUN = 2, EQUATION = 3, INPUT = 4, OUTPUT = 5;
const children = Array.from({ length: total }, () => []);
for (let i = 1; i < total; ++i) children[nodes.parent[i]].push(i);
const isLeaf = (i) => nodes.kind[i] >= EQUATION;
const nameOf = (i) => text[nodes.name[i]];
const open = new Uint8Array(total);
for (const i of data.open) open[i] = 1;
const linkOf = new Map();  // "from,to" -> [box, link]
data.layers.forEach(([box, , links]) => {
  for (let l = 0; l < links.length; l += 3)
    linkOf.set(links[l] + "," + links[l + 1], [box, l / 3, links[l + 2]]);
});
const layersOf = new Map(data.layers.map(([box, layers, links]) => [box, { layers, links }]));

const byId = (id) => document.getElementById(id);
const canvas = byId("canvas"), world = byId("world"), panel = byId("panel");
let color = data.color, chosen = -1, view = { x: 0, y: 0, scale: 1 };

// --- Numbers and texts ---------------------------------------------------------------------------

function scaled(value, units, base) {
  let unit = 0;
  while (value >= base * 0.9995 && unit + 1 < units.length) value /= base, ++unit;
  return (value >= 100 || (unit === 0 && value % 1 === 0) ? Math.round(value) : value.toPrecision(3)) + " " + units[unit];
}
const bytesText = (b) => scaled(b, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
const flopsText = (f) => scaled(f, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"], 1000);
const timeText = (s) => scaled(s * 1e9, ["ns", "µs", "ms", "s"], 1000);
const escaped = (t) => String(t).replace(/[&<>"']/g, (c) => "&#" + c.charCodeAt(0) + ";");
const counted = (n, what) => n + " " + what + (n === 1 ? "" : "s");
function cut(t, most) { return t.length > most ? t.slice(0, most - 1) + "…" : t; }

const brush = document.createElement("canvas").getContext("2d");
const widths = new Map();
function widthOf(t, font) {
  const key = font + t;
  let width = widths.get(key);
  if (width === undefined) {
    brush.font = font;
    widths.set(key, (width = brush.measureText(t).width));
  }
  return width;
}
const family = getComputedStyle(document.body).fontFamily;
const plain = "12.5px " + family, bold = "600 12.5px " + family, small = "11px " + family;

// What a box says: its name, and beside or below it the value it is coloured by.
function valueText(i) {
  if (color === "bytes" && nodes.bytes[i]) return bytesText(nodes.bytes[i]);
  if (color === "time" && nodes.seconds[i]) return timeText(nodes.seconds[i]);
  if (color === "backend" && isLeaf(i)) return text[nodes.backend[i]];
  return "";
}
function subText(i) {
  const parts = [];
  if (nodes.count[i]) parts.push(counted(nodes.count[i], "equation"));
  const value = valueText(i);
  if (value) parts.push(value);
  const type = text[nodes.type[i]];
  if (type && nodes.kind[i] === SCOPE) parts.push(type);
  return cut(parts.join(" · "), 44);
}

// --- Places --------------------------------------------------------------------------------------

const X = new Float64Array(total), Y = new Float64Array(total);  // within the box around it, then on the canvas
const W = new Float64Array(total), H = new Float64Array(total);
const places = new Map();  // of links: "from,to" -> [[x, top, bottom], ...] on the canvas
const gapX = 22, gapY = 42, margin = 16, head = 28;

function size(i) {
  if (isLeaf(i)) {
    const value = valueText(i);
    W[i] = widthOf(cut(nameOf(i), 40), plain) + (value ? widthOf(value, small) + 10 : 0) + 26;
    H[i] = 28;
  } else if (!open[i]) {
    W[i] = Math.max(widthOf(cut(nameOf(i), 40), bold) + 18, widthOf(subText(i), small)) + 28;
    H[i] = 46;
  } else {
    arrange(i);
  }
}

// The nearest numbers, in least squares, of which each is at least its distance beyond the last.
function spread(wanted, weights, distance) {
  const blocks = [];
  let offset = 0;
  wanted.forEach((x, i) => {
    if (i) offset += distance[i];
    let block = { sum: (x - offset) * weights[i], weight: weights[i], length: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight > block.sum / block.weight) {
      const last = blocks.pop();
      block = { sum: last.sum + block.sum, weight: last.weight + block.weight, length: last.length + block.length };
    }
    blocks.push(block);
  });
  const result = [];
  offset = 0;
  for (const block of blocks)
    for (let k = 0; k < block.length; ++k) {
      if (result.length) offset += distance[result.length];
      result.push(block.sum / block.weight + offset);
    }
  return result;
}

function arrange(box) {
  const { layers, links } = layersOf.get(box);
  const itemOf = new Map(), passing = new Map();
  const rows = layers.map((layer) => layer.map((shown) => {
    const item = { shown, w: 10, h: 0, x: 0, near: [[], []] };
    if (shown >= 0) {
      size(shown);
      item.w = W[shown], item.h = H[shown];
      itemOf.set(shown, item);
    } else {
      const list = passing.get(-1 - shown) || [];
      list.push(item);
      passing.set(-1 - shown, list);
    }
    return item;
  }));
  for (let l = 0; l < links.length; l += 3) {
    if (!links[l + 2]) continue;
    const chain = [itemOf.get(links[l]), ...(passing.get(l / 3) || []), itemOf.get(links[l + 1])];
    for (let k = 0; k + 1 < chain.length; ++k) {
      const weight = chain[k].shown < 0 && chain[k + 1].shown < 0 ? 6 : chain.length > 2 ? 1 : 3;
      chain[k].near[1].push([chain[k + 1], weight]);
      chain[k + 1].near[0].push([chain[k], weight]);
    }
  }
  const distances = rows.map((row) => row.map((item, i) => (i ? (row[i - 1].w + item.w) / 2 + gapX : 0)));
  rows.forEach((row, r) => {
    let x = 0;
    row.forEach((item, i) => (item.x = x += distances[r][i]));
    row.forEach((item) => (item.x -= x / 2));
  });
  const rounds = 8;
  for (let round = 0; round < rounds; ++round) {
    const isDown = round % 2 === 0, both = round >= rounds - 3;
    for (let k = 0; k < rows.length; ++k) {
      const r = isDown ? k : rows.length - 1 - k, row = rows[r];
      const wanted = [], weights = [];
      for (const item of row) {
        const near = both ? [...item.near[0], ...item.near[1]] : item.near[isDown ? 0 : 1];
        const weight = near.reduce((sum, [, w]) => sum + w, 0);
        wanted.push(weight ? near.reduce((sum, [other, w]) => sum + other.x * w, 0) / weight : item.x);
        weights.push(weight || 0.1);
      }
      spread(wanted, weights, distances[r]).forEach((x, i) => (row[i].x = x));
    }
  }
  let left = Infinity, right = -Infinity;
  for (const row of rows)
    for (const item of row) {
      left = Math.min(left, item.x - item.w / 2);
      right = Math.max(right, item.x + item.w / 2);
    }
  const isRoot = box === 0, title = isRoot ? 0 : Math.max(widthOf(cut(nameOf(box), 60), bold) + 36, widthOf(subText(box), small) + widthOf(cut(nameOf(box), 60), bold) + 50);
  const inner = rows.length ? right - left : 0, pad = Math.max(0, (title - inner) / 2) + margin;
  let y = isRoot ? margin : head + margin;
  for (const row of rows) {
    const height = Math.max(...row.map((item) => item.h));
    for (const item of row) {
      item.top = y, item.bottom = y + height, item.x += pad - left;
      if (item.shown >= 0) X[item.shown] = item.x - item.w / 2, Y[item.shown] = y + (height - item.h) / 2;
    }
    y += height + gapY;
  }
  for (const [l, list] of passing)
    places.set(links[3 * l] + "," + links[3 * l + 1], list.map((item) => [item.x, item.top, item.bottom]));
  W[box] = inner + 2 * pad;
  H[box] = y - (rows.length ? gapY : 0) + margin;
}

// --- What is shown -------------------------------------------------------------------------------

const shownAs = new Int32Array(total);  // itself, or the folded box that it is in
let shown = [], edges = [];

function place() {
  places.clear();
  size(0);
  shown = [];
  for (let i = 0; i < total; ++i) {
    const parent = nodes.parent[i];
    if (i && (shownAs[parent] !== parent || !open[parent])) {
      shownAs[i] = shownAs[parent];
      continue;
    }
    shownAs[i] = i;
    shown.push(i);
    if (i) X[i] += X[parent], Y[i] += Y[parent];
  }
  const merged = new Map();
  const flat = data.edges;
  for (let e = 0; e < flat.length; e += 4) {
    const from = shownAs[flat[e]], to = shownAs[flat[e + 1]];
    if (from === to) continue;
    const key = from * total + to, type = flat[e + 2];
    const edge = merged.get(key);
    if (!edge) merged.set(key, { from, to, type, arrays: new Set([flat[e] + "/" + type]), bytes: flat[e + 3] });
    else edge.arrays.add(flat[e] + "/" + type), (edge.bytes += flat[e + 3]);
  }
  edges = [...merged.values()];
  edges.forEach(route);
  const into = new Map();
  for (const edge of edges) into.set(edge.to, [...(into.get(edge.to) || []), edge]);
  for (const [to, list] of into) {
    list.sort((a, b) => a.points.at(-2)[0] - b.points.at(-2)[0]);
    const step = Math.min(16, W[to] / (list.length + 1));
    list.forEach((edge, k) => {
      const x = X[to] + W[to] / 2 + (k - (list.length - 1) / 2) * step;
      for (let p = edge.points.length - 1; p > edge.entry; --p) edge.points[p][0] = x;
    });
  }
}

function ancestors(i) {
  const list = [];
  for (; i >= 0; i = nodes.parent[i]) list.push(i);
  return list;
}

// The points of an edge: out of the boxes around its start, through its places, into those around its end.
function route(edge) {
  const out = ancestors(edge.from), into = ancestors(edge.to);
  while (out.length > 1 && into.length > 1 && out.at(-2) === into.at(-2)) out.pop(), into.pop();
  out.pop(), into.pop();
  const middle = (i) => X[i] + W[i] / 2, points = [];
  for (const i of out) points.push([middle(edge.from), Y[i] + H[i]]);
  const key = (out.at(-1) ?? edge.from) + "," + (into.at(-1) ?? edge.to), link = linkOf.get(key);
  edge.isFar = !link || !link[2];
  if (link) for (const [x, top, bottom] of places.get(key) || []) {
    const px = X[link[0]] + x, py = Y[link[0]];
    points.push([px, py + top], [px, py + bottom]);
  }
  edge.entry = points.length - 1;
  for (const i of into.reverse()) points.push([middle(edge.to), Y[i]]);
  if (points.length < 2) points.push([middle(edge.to), Y[edge.to]]);
  edge.points = points;
}

function pathOf(points) {
  let path = "";
  points.forEach(([x, y], k) => {
    if (!k) return void (path = `M${x.toFixed(1)} ${y.toFixed(1)}`);
    const [px, py] = points[k - 1], bend = Math.max(Math.abs(y - py) / 2, y < py ? 60 : 0);
    path += Math.abs(px - x) < 0.5 && y >= py ? `V${y.toFixed(1)}`
      : `C${px.toFixed(1)} ${(py + bend).toFixed(1)} ${x.toFixed(1)} ${(y - bend).toFixed(1)} ${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  return path;
}

// --- Colours -------------------------------------------------------------------------------------

const groups = ["product", "elementwise", "reduction", "movement", "control", "effect", "other"];
const backends = [...new Set(nodes.backend)].map((s) => text[s]).filter(Boolean).sort();
const backendColors = ["--product", "--elementwise", "--reduction", "--control", "--effect", "--other"];
const mostOf = (values) => values.reduce((most, v, i) => (isLeaf(i) && v > most ? v : most), 0);
const most = { bytes: mostOf(nodes.bytes), time: mostOf(nodes.seconds) };

function heatOf(i) {
  const values = color === "bytes" ? nodes.bytes : nodes.seconds, value = values[i];
  if (!value) return 0;
  const top = isLeaf(i) ? most[color] : values[0];
  const decades = 3;  // of bytes, which are told apart
  return color === "time" ? Math.sqrt(value / top) : Math.max(0.06, 1 + Math.log10(value / top) / decades);
}
function styleOf(i) {
  const isEnd = nodes.kind[i] === INPUT || nodes.kind[i] === OUTPUT;
  if (color === "kind" && text[nodes.group[i]] === "scope") return "--strip:var(--line)";
  if (color === "kind" || (isEnd && color !== "bytes")) return `--strip:var(--${text[nodes.group[i]]})`;
  if (color === "backend") {
    const at = backends.indexOf(text[nodes.backend[i]]);
    return `--strip:${at < 0 ? "transparent" : `var(${backendColors[at % backendColors.length]})`}`;
  }
  const heat = heatOf(i);
  return `--strip:transparent;--fill:color-mix(in srgb, var(--heat) ${Math.round(heat * 65)}%, var(--card))`;
}
function drawLegend() {
  const entry = (style, name) => `<span><i style="background:${style}"></i>${escaped(name)}</span>`;
  const used = new Set(shown.map((i) => text[nodes.group[i]]));
  byId("legend").innerHTML =
    color === "kind" ? groups.filter((g) => used.has(g)).map((g) => entry(`var(--${g})`, g)).join("")
    : color === "backend" ? backends.map((b, k) => entry(`var(${backendColors[k % backendColors.length]})`, b)).join("")
    : `<span>0 <i class="scale"></i> ${color === "bytes" ? bytesText(most.bytes) : timeText(most.time)} in one equation</span>`;
}

// --- Drawing -------------------------------------------------------------------------------------

function boxMarkup(i) {
  const x = X[i], y = Y[i], w = W[i], h = H[i], isOpen = open[i] && !isLeaf(i);
  const round = nodes.kind[i] === INPUT || nodes.kind[i] === OUTPUT ? 14 : isOpen ? 10 : 7;
  const rect = (dx, dy, extra) => `<rect x="${x + dx}" y="${y + dy}" width="${w}" height="${h}" rx="${round}" ${extra}/>`;
  let parts = rect(0, 0, isOpen ? 'class="open"' : "");
  const mid = x + w / 2;
  if (isLeaf(i)) {
    const value = valueText(i);
    parts += `<rect class="strip" x="${x + 6}" y="${y + 8}" width="4" height="12" rx="2"/>`;
    parts += `<text x="${x + 16}" y="${y + 18.5}">${escaped(cut(nameOf(i), 40))}</text>`;
    if (value) parts += `<text class="sub" x="${x + w - 10}" y="${y + 18}" text-anchor="end">${escaped(value)}</text>`;
  } else if (isOpen) {
    const name = cut(nameOf(i), 60);
    parts += `<text class="title" x="${x + 14}" y="${y + 20}">▾ ${escaped(name)}</text>`;
    parts += `<text class="sub" x="${x + 40 + widthOf(name, bold)}" y="${y + 20}">${escaped(subText(i))}</text>`;
  } else {
    parts += `<rect class="strip" x="${x + 6}" y="${y + 9}" width="4" height="${h - 18}" rx="2"/>`;
    parts += `<text class="title" x="${mid + 3}" y="${y + 20}" text-anchor="middle">▸ ${escaped(cut(nameOf(i), 40))}</text>`;
    parts += `<text class="sub" x="${mid + 3}" y="${y + 36}" text-anchor="middle">${escaped(subText(i))}</text>`;
  }
  const under = !isLeaf(i) && !isOpen
    ? `<rect class="under" x="${x + 4}" y="${y + 4}" width="${w}" height="${h}" rx="${round}"/>` : "";
  return under + `<g class="box${i === chosen ? " chosen" : ""}${color === "bytes" || color === "time" ? " hot" : ""}" data-node="${i}" style="${styleOf(i)}">${parts}</g>`;
}

function edgeLabels() {
  let markup = "";
  const from = new Map();
  for (const edge of edges) from.set(edge.from, [...(from.get(edge.from) || []), edge]);
  for (const list of from.values()) {
    const near = list.filter((edge) => !edge.isFar), types = new Set(list.flatMap((e) => [...e.arrays].map((a) => a.split("/")[1])));
    if (types.size === 1 && list.every((edge) => edge.arrays.size === 1)) {
      const [x, y] = list[0].points[0];
      markup += `<text class="label" x="${x + 5}" y="${y + 14}">${escaped(cut(text[list[0].type], 36))}</text>`;
      continue;
    }
    for (const edge of near) {
      const [x, y] = edge.points.at(-1);
      const label = edge.arrays.size === 1 ? text[edge.type] : counted(edge.arrays.size, "array");
      markup += `<text class="label" x="${x + 5}" y="${y - 9}">${escaped(cut(label, 36))}</text>`;
    }
  }
  return markup;
}

function draw() {
  const boxes = shown.slice(1), opened = boxes.filter((i) => open[i] && !isLeaf(i));
  const paths = edges.map((edge, k) => {
    const label = `${nameOf(edge.from)} → ${nameOf(edge.to)}: ` +
      (edge.arrays.size === 1 ? text[edge.type] : counted(edge.arrays.size, "array")) + ", " + bytesText(edge.bytes);
    return `<path d="${pathOf(edge.points)}" class="${edge.isFar ? "far" : ""}" data-edge="${k}" ` +
      `style="stroke-width:${(1 + Math.log10(1 + edge.bytes / 1024) / 4).toFixed(2)}px" marker-end="url(#arrow)"><title>${escaped(label)}</title></path>`;
  });
  world.innerHTML = opened.map(boxMarkup).join("") + paths.join("") +
    boxes.filter((i) => !open[i] || isLeaf(i)).map(boxMarkup).join("") + edgeLabels();
  heatEdges(chosen);
  drawLegend();
  canvas.dataset.boxes = boxes.length;
}

function heatEdges(i) {
  for (const path of world.querySelectorAll("path[data-edge]")) {
    const edge = edges[path.dataset.edge];
    path.classList.toggle("hot", i > 0 && (edge.from === i || edge.to === i));
  }
}

function setView() {
  world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
}
function fit() {
  const { width, height } = canvas.getBoundingClientRect();
  view.scale = Math.min(1.25, (width - 40) / W[0], (height - 40) / H[0]);
  const least = Math.min(0.55, (width - 40) / W[0]);  // what is long is read from its beginning
  const isLong = view.scale < least;
  view.scale = Math.max(view.scale, least, 0.05);
  view.x = (width - W[0] * view.scale) / 2;
  view.y = isLong ? 10 : (height - H[0] * view.scale) / 2;
  setView();
}
function center(i) {
  const { width, height } = canvas.getBoundingClientRect();
  view.scale = Math.max(view.scale, 0.9);
  view.x = width / 2 - (X[i] + W[i] / 2) * view.scale;
  view.y = height / 2 - (Y[i] + Math.min(H[i], height / 2) / 2) * view.scale;
  setView();
}
function redraw() { place(); draw(); }

// --- What users do -------------------------------------------------------------------------------

function toggle(i) {
  const before = [X[i], Y[i]];
  open[i] = open[i] ? 0 : 1;
  chosen = i;
  redraw();
  view.x += (before[0] - X[i]) * view.scale, view.y += (before[1] - Y[i]) * view.scale;
  setView();
  showPanel();
}
function reveal(i) {
  for (const box of ancestors(i).slice(1)) open[box] = 1;
  chosen = i;
  redraw();
  showPanel();
  center(i);
}
const mostBoxes = 1500;
function unfoldAll() {
  let boxes = 0;
  const queue = [0];
  for (let k = 0; k < queue.length; ++k) {
    const i = queue[k];
    if (isLeaf(i) || boxes + children[i].length > mostBoxes) continue;
    open[i] = 1;
    boxes += children[i].length;
    queue.push(...children[i]);
  }
  redraw();
  fit();
}
function foldAll() {
  open.fill(0);
  open[0] = 1;
  chosen = -1;
  redraw();
  fit();
  showPanel();
}

function matches(words) {
  const named = [], found = [], wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  for (let i = 1; i < total && named.length < 200 && wanted.length; ++i) {
    if (nodes.kind[i] === RUN) continue;
    const [file, , fun, scope, , line] = data.sources[nodes.source[i]] || ["", 0, "", "", "", ""];
    const all = [nameOf(i), text[nodes.type[i]], text[nodes.text[i]], file, fun, scope, line].join(" ").toLowerCase();
    if (!wanted.every((word) => all.includes(word))) continue;
    (nameOf(i).toLowerCase().includes(wanted[0]) ? named : found).push(i);
  }
  return [...named, ...found];
}

const nodeLink = (i) => `<a data-go="${i}">${escaped(cut(nameOf(i), 40))}</a>`;
function neighbours(i) {
  const reads = new Map(), readers = new Map(), inside = (j) => {
    for (; j > i; j = nodes.parent[j]);
    return j === i;
  };
  for (let e = 0; e < data.edges.length; e += 4) {
    const from = data.edges[e], to = data.edges[e + 1], a = inside(from), b = inside(to);
    if (a && !b) readers.set(to, data.edges[e + 2]);
    if (b && !a) reads.set(from, data.edges[e + 2]);
  }
  const list = (title, map) => !map.size ? "" : `<dt>${title}</dt><dd><ul>` +
    [...map].slice(0, 30).map(([j, type]) => `<li>${nodeLink(j)} <code>${escaped(text[type])}</code></li>`).join("") +
    (map.size > 30 ? `<li>and ${map.size - 30} more</li>` : "") + "</ul></dd>";
  return list("reads", reads) + list("read by", readers);
}
function showPanel() {
  const i = chosen;
  if (i < 1) return void (panel.innerHTML = "");
  const [file, line, fun, scope, transforms, code] = data.sources[nodes.source[i]] || ["", 0, "", "", "", ""];
  const row = (name, value) => (value ? `<dt>${name}</dt><dd>${value}</dd>` : "");
  const path = ancestors(i).slice(1, -1).reverse().map(nodeLink).join(" / ");
  panel.innerHTML = `<h2>${escaped(nameOf(i))}</h2>` +
    (text[nodes.text[i]] ? `<pre>${escaped(text[nodes.text[i]])}</pre>` : "") + "<dl>" +
    row("in", path) + row("type", escaped(text[nodes.type[i]])) +
    row("equations", nodes.count[i] > 1 && nodes.count[i]) +
    row("makes", nodes.bytes[i] && bytesText(nodes.bytes[i])) +
    row("work", nodes.flops[i] && flopsText(nodes.flops[i])) +
    row("time", nodes.seconds[i] && `${timeText(nodes.seconds[i])}, ${((100 * nodes.seconds[i]) / nodes.seconds[0]).toFixed(1)} %`) +
    row("backend", escaped(text[nodes.backend[i]])) + row("scope", escaped(scope)) +
    row("made by", escaped(transforms)) +
    row("line", file && `${escaped(file)}:${line}${fun ? " in " + escaped(fun) : ""}` + (code ? `<pre>${escaped(code)}</pre>` : "")) +
    neighbours(i) + "</dl>";
}

function setColor(next) {
  color = next;
  for (const button of byId("color").children) button.setAttribute("aria-pressed", button.value === color);
  redraw();
}

for (const name of ["kind", "bytes", "time", "backend"]) {
  const button = document.createElement("button");
  button.value = button.textContent = name;
  button.disabled = (name === "time" && !most.time) || (name === "backend" && !backends.length);
  if (button.disabled) button.title = "needs a profile";
  button.onclick = () => setColor(name);
  byId("color").append(button);
}
byId("fold").onclick = foldAll;
byId("unfold").onclick = unfoldAll;
byId("fit").onclick = fit;
byId("theme").onclick = () => {
  const root = document.documentElement, dark = root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
};

const search = byId("search"), results = byId("results");
let found = [], next = 0;
search.oninput = () => {
  found = matches(search.value), next = 0;
  results.innerHTML = found.slice(0, 60).map((i) =>
    `<li data-go="${i}">${escaped(nameOf(i))} <small>${escaped(text[nodes.type[i]])} ${escaped(nodes.parent[i] > 0 ? nameOf(nodes.parent[i]) : "")}</small></li>`).join("");
};
search.onkeydown = (event) => {
  if (event.key === "Enter" && found.length) reveal(found[next++ % found.length]);
  if (event.key === "Escape") search.value = results.innerHTML = "", search.blur();
};
document.addEventListener("click", (event) => {
  const go = event.target.closest("[data-go]");
  if (go) reveal(Number(go.dataset.go));
  if (!event.target.closest(".search")) results.innerHTML = "";
});
document.addEventListener("keydown", (event) => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") search.focus(), event.preventDefault();
  if (event.key === "f") fit();
});

let drag = null;
canvas.onpointerdown = (event) => {
  drag = { x: event.clientX, y: event.clientY, moved: false, target: event.target };
  canvas.setPointerCapture(event.pointerId);
};
canvas.onpointermove = (event) => {
  if (!drag) {
    const box = event.target.closest(".box");
    return heatEdges(box && !(open[box.dataset.node] && !isLeaf(box.dataset.node)) ? Number(box.dataset.node) : chosen);
  }
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.moved && Math.hypot(dx, dy) < 4) return;
  drag.moved = true, (drag.x += dx), (drag.y += dy), (view.x += dx), (view.y += dy);
  canvas.classList.add("moving");
  setView();
};
canvas.onpointerup = () => {
  canvas.classList.remove("moving");
  const { moved, target } = drag || { moved: true };
  drag = null;
  if (moved) return;
  const box = target.closest(".box"), i = box ? Number(box.dataset.node) : -1;
  if (i > 0 && !isLeaf(i)) return toggle(i);
  chosen = i;
  for (const other of world.querySelectorAll(".box")) other.classList.toggle("chosen", Number(other.dataset.node) === i);
  heatEdges(i);
  showPanel();
};
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (!event.ctrlKey && !event.metaKey && event.deltaMode === 0 && Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    view.x -= event.deltaX;
    return setView();
  }
  const { left, top } = canvas.getBoundingClientRect(), px = event.clientX - left, py = event.clientY - top;
  const factor = Math.min(Math.max(view.scale * Math.exp(-event.deltaY / 500), 0.03), 4) / view.scale;
  view.x = px - (px - view.x) * factor, view.y = py - (py - view.y) * factor, (view.scale *= factor);
  setView();
}, { passive: false });

byId("facts").textContent = [counted(nodes.count[0], "equation"), bytesText(nodes.bytes[0]) + " made",
  nodes.flops[0] && flopsText(nodes.flops[0]), nodes.seconds[0] && timeText(nodes.seconds[0]) + " a call"].filter(Boolean).join(" · ");
// step.html#find=tanh, #unfold, #color=bytes, #theme=dark: what the page shows when it is opened.
const wish = new URLSearchParams(location.hash.slice(1));
if (wish.has("theme")) document.documentElement.dataset.theme = wish.get("theme");
setColor(wish.get("color") || color);
if (wish.has("unfold")) unfoldAll();
fit();
if (wish.has("find")) {
  search.value = wish.get("find");
  found = matches(search.value);
  if (found.length) reveal(found[next++]);
}
