import {bytesText, button, choice, clipText, countText, cyclesText, font, frame, h, isUnder, percentText, place, select, selectionOf, surface, tip, unpack, watch, wholeText, letGo} from "../kit/kernel.js";
import {grid} from "../kit/grid.js";

const ROW = 30;
const MEASURES = {cycles: ["cycles", cyclesText], bytes: ["variable_bytes", bytesText], code: ["code_bytes", bytesText]};
const NAMES = {cycles: "cycles of all executions", bytes: "bytes of variables", code: "bytes of code (what operators share counts for each)"};

// A tree of layers by the parts of their names, [{name, layer, value}]; a part that leads to one thing alone is joined to it.
export function treeOf(layers) {
  const root = {path: "", children: new Map(), value: 0, layer: null};
  for (const {name, value} of layers) {
    if (!(value > 0)) continue;
    let node = root, path = "";
    root.value += value;
    for (const part of (name || "(no layer)").split(/(?=[/_])/)) {
      path += part;
      if (!node.children.has(part)) node.children.set(part, {path, children: new Map(), value: 0, layer: null});
      node = node.children.get(part);
      node.value += value;
    }
    node.own = value;
    node.layer = name;
  }
  const close = (node) => {
    let children = [...node.children.values()];
    while (children.length === 1 && node.layer === null && node !== root) { Object.assign(node, children[0]); children = [...node.children.values()]; }
    if (children.length && node.layer !== null) children.push({path: node.path, children: new Map(), value: node.own, layer: node.layer, own: node.own});
    node.children = children.map(close).sort((a, b) => b.value - a.value);
    for (const child of node.children) child.short = child.path.slice(node.path.length).replace(/^[/_]/, "") || "itself";
    return node;
  };
  return close(root);
}

// Boxes of a tree below one of its nodes, [{node, depth, from, to}] with places between 0 and 1; the node itself is the first.
export function boxesOf(node, deepest = 7) {
  const found = [];
  const walk = (each, depth, from, to) => {
    found.push({node: each, depth, from, to});
    let at = from;
    if (depth < deepest) for (const child of each.children) { const next = at + ((to - from) * child.value) / (each.value || 1); walk(child, depth + 1, at, next); at = next; }
  };
  walk(node, 0, 0, 1);
  return found;
}

// Layers that a node stands for.
export const layersOf = (node) => (node.children.length ? node.children.flatMap(layersOf) : node.layer === null ? [] : [node.layer]);

const textOf = (view, table, column, row) => view.data.strings[view.columns[`${table}_${column}`][row]];
const numberOf = (view, table, column, row) => view.columns[`${table}_${column}`][row];

function build(view) {
  const [column] = MEASURES[view.measure], rows = view.data.tables.layers.rows;
  view.tree = treeOf(Array.from({length: rows}, (_, i) => ({name: textOf(view, "layers", "layer", i), value: numberOf(view, "layers", column, i)})));
  view.trail = [view.tree];
  view.at = 0;
}

const node = (view) => view.trail.at(-1);

function draw(view, ctx, width, height, t) {
  view.boxes = boxesOf(node(view), Math.floor(height / ROW) - 1);
  const chosen = view.selection.get("layer"), groups = new Map();
  font(ctx, t, 11.5);
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  view.boxes.forEach((box, i) => {
    const x = box.from * width, wide = (box.to - box.from) * width, y = box.depth * ROW;
    if (box.depth === 1) groups.set(box.node, groups.size);
    if (box.depth >= 1) box.hue = box.depth === 1 ? groups.get(box.node) : view.boxes.slice(0, i).findLast((other) => other.depth === box.depth - 1)?.hue;
    if (wide < 0.4) return;
    ctx.fillStyle = box.depth ? view.data.hues[box.hue % view.data.hues.length] : t.muted;
    ctx.globalAlpha = box.depth ? Math.max(0.3, 0.62 - 0.08 * box.depth) : 0.22;
    ctx.fillRect(x, y, Math.max(0.6, wide - 1), ROW - 2);
    ctx.globalAlpha = 1;
    const mine = chosen !== null && box.node.layer !== null && isUnder(box.node.layer, chosen);
    if (i === view.at || mine) { ctx.strokeStyle = i === view.at ? t.accent : t.text; ctx.lineWidth = 2; ctx.strokeRect(x + 1, y + 1, Math.max(1, wide - 3), ROW - 4); }
    ctx.fillStyle = t.text;
    if (wide > 26) ctx.fillText(clipText(ctx, labelOf(view, box), wide - 10), x + 5, y + ROW / 2 - 1);
  });
}

const labelOf = (view, {node: each, depth}) => `${depth > 1 ? each.short : each.path || "all layers"}  ${MEASURES[view.measure][1](each.value)}`;

function move(view, key) {
  const here = view.boxes[view.at] ?? view.boxes[0], level = view.boxes.filter((box) => box.depth === here.depth).sort((a, b) => a.from - b.from);
  const goal = {ArrowRight: () => level[level.indexOf(here) + 1], ArrowLeft: () => level[level.indexOf(here) - 1], ArrowDown: () => view.boxes.find((box) => box.depth === here.depth + 1 && box.from >= here.from - 1e-9 && box.to <= here.to + 1e-9),
    ArrowUp: () => view.boxes.find((box) => box.depth === here.depth - 1 && box.from <= here.from + 1e-9 && box.to >= here.to - 1e-9)}[key];
  if (!goal) return false;
  view.at = Math.max(0, view.boxes.indexOf(goal() ?? here));
  view.canvas.redraw();
  view.ui.announce(labelOf(view, view.boxes[view.at]));
  return true;
}

function use(view, box) {
  if (!box) return;
  const whole = box.node === node(view);
  if (whole && view.trail.length > 1) view.trail.pop();
  else if (box.node.children.length && !whole) view.trail.push(box.node);
  const shown = whole ? node(view) : box.node, layers = shown === view.tree ? null : new Set(layersOf(shown));
  view.at = 0;
  view.only = layers;
  select(view.selection, {layer: !layers ? null : shown.layer ?? shown.path.replace(/^\(no layer\)$/, "") ?? null});
  listed(view);
  view.canvas.redraw();
  view.ui.announce(labelOf(view, {node: shown, depth: 1}));
}

function whole(view) {
  Object.assign(view, {trail: [view.tree], at: 0, only: null, row: null});
  listed(view);
  view.canvas.redraw();
}

// Lets go of all that is chosen, and of the layer that is gone into; says whether anything was.
export function leave(view) {
  const inside = view.trail.length > 1 || view.only !== null;
  const chosen = letGo(view.selection);
  if (inside || chosen) whole(view);
  return inside || chosen;
}

const FORMS = {utilisation: percentText, flops: countText};

function listed(view) {
  const {data, table} = view, {texts, numbers, rows} = data.tables[table], widths = {name: "28%", layer: table === "layers" ? "24%" : "16%", direction: "84px", op: "14%"};
  const columns = [...texts.filter((label) => label !== "plan").map((label) => ({label, wide: widths[label], text: (row) => (row === null ? "" : textOf(view, table, label, row) || (label === "layer" ? "(no layer)" : ""))})),
    ...numbers.map((label) => ({label: label.replace("temporary_bytes", "temp. bytes").replaceAll("_", " "), number: true, sum: label !== "utilisation", value: (row) => numberOf(view, table, label, row), text: (row, sum) => (FORMS[label] ?? wholeText)(row === null ? sum : numberOf(view, table, label, row))}))];
  const all = [...Array(rows).keys()], mine = view.only ? all.filter((row) => view.only.has(textOf(view, table, "layer", row))) : all;
  const groups = table === "operators" ? ["layer", "direction", "op"].map((name) => ({name, of: (row) => textOf(view, table, name, row)})) : [];
  const choose = choice("rows", [["operators", "operators"], ["layers", "layers"]], table, (value) => { view.table = value; listed(view); });
  view.grid = grid({label: table === "operators" ? "Operators" : "Layers", columns, rows: mine, groups, high: 360, sort: {column: columns.findIndex(({label}) => label === "cycles"), down: true}, tools: [choose],
    total: (found) => cyclesText(found.reduce((sum, row) => sum + numberOf(view, table, "cycles", row), 0)), chosen: (row) => row === view.row || (view.row === null && isUnder(textOf(view, table, "layer", row), view.selection.get("layer"))), pick: (row) => pick(view, row)});
  view.list.replaceChildren(rows ? view.grid.root : h("div", {}, choose, h("p", {class: "wb-empty", text: "No operators: the program was written by hand, or its profile has none."})));
  view.grid.refresh();
}

function pick(view, row) {
  const layer = textOf(view, view.table, "layer", row);
  view.row = row;
  select(view.selection, {layer: layer || null});
  const plan = view.table === "operators" ? textOf(view, "operators", "plan", row) : "";
  view.said.textContent = plan ? `${textOf(view, "operators", "name", row)}: ${plan}` : "";
  view.grid.refresh();
}

function furnish(view) {
  const {ui} = view;
  ui.say(view.data.sentence);
  ui.tools.replaceChildren(choice("size", Object.entries(NAMES), view.measure, (value) => { view.measure = value; build(view); furnish(view); }),
    button("All layers", () => { select(view.selection, {layer: null}); whole(view); }, {title: "Key: Home"}));
  ui.setTable(() => h("p", {text: "The table above is the data table: sort it by its heads, search, or group it."}));
  listed(view);
  view.canvas.redraw();
}

function hear(view, show) {
  const {canvas} = view.ui, under = (event) => {
    const [px, py] = place(event, canvas), part = px / canvas.clientWidth, depth = Math.floor(py / ROW);
    return [px, py, view.boxes?.find((box) => box.depth === depth && box.from <= part && part < box.to)];
  };
  canvas.addEventListener("pointermove", (event) => {
    const [px, py, box] = under(event);
    if (!box) return show();
    return show(px, py, [box.node.path || "all layers", `${MEASURES[view.measure][1](box.node.value)}, ${percentText(box.node.value / (view.tree.value || 1))} of ${NAMES[view.measure]}`, box.node.children.length ? "click: into it" : "click: its operators"]);
  });
  canvas.addEventListener("pointerleave", () => show());
  canvas.addEventListener("click", (event) => { canvas.focus(); use(view, under(event)[2]); });
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter") use(view, view.boxes[view.at]);
    else if (event.key === "Escape") { if (!leave(view)) return; }
    else if (event.key === "Backspace") use(view, view.boxes[0]);
    else if (event.key === "Home") view.ui.tools.querySelector("button").click();
    else if (!move(view, event.key)) return;
    event.preventDefault();
  });
}

async function render({model, el}) {
  const view = {selection: await selectionOf(model), data: model.get("data"), measure: "cycles", table: "operators", only: null, row: null};
  view.columns = unpack(view.data.layout, model.get("buffer"));
  if (!view.data.tables.operators.rows) view.table = "layers";
  const ui = (view.ui = frame(el, {title: "Operations", sentence: view.data.sentence, height: 6 * ROW}));
  view.list = h("div", {class: "wb-listed"});
  view.said = h("p", {class: "wb-plan"});
  ui.root.insertBefore(view.list, ui.root.querySelector("details"));
  ui.root.insertBefore(view.said, ui.root.querySelector("details"));
  build(view);
  view.boxes = boxesOf(view.tree);
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  hear(view, tip(ui.plot));
  furnish(view);
  const off = watch(view.selection, ["layer"], () => { view.grid?.refresh(); view.canvas.redraw(); });
  return () => { off(); view.canvas.dispose(); };
}

export default {render};
