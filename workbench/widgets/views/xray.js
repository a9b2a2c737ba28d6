import {axisX, axisY, button, bytesText, chosenPlace, clipText, font, frame, h, hatch, isUnder, panZoom, place, scale, select, selectionOf, surface, swatch, table, textsApart, ticks, tip, unpack, watch, wholeText, thingsText} from "../kit/kernel.js";

const LEFT = 78, TOP = 14, BELOW = 42;

// Rectangles that cover a position, from the lowest address on.
export function covering({address, first, last}, position) {
  const found = [];
  for (let i = 0; i < address.length; i++) if (first[i] <= position && position <= last[i]) found.push(i);
  return found.sort((a, b) => address[a] - address[b]);
}

// The rectangle at a position and address; of several the one that was drawn last. -1 for none.
export function rectangleAt(columns, position, address) {
  for (let i = columns.address.length - 1; i >= 0; i--) {
    if (columns.first[i] <= position && position <= columns.last[i] && columns.address[i] <= address && address < columns.address[i] + columns.bytes[i]) return i;
  }
  return -1;
}

// The position at which most bytes are covered, the first of equals.
export function fullest({first, last, bytes}, positions) {
  const change = new Float64Array(positions + 1);
  for (let i = 0; i < first.length; i++) { change[first[i]] += bytes[i]; change[last[i] + 1] -= bytes[i]; }
  let best = 0, most = -1;
  for (let at = 0, sum = 0; at < positions; at++) {
    sum += change[at];
    if (sum > most) { most = sum; best = at; }
  }
  return best;
}

export const bytesAt = (columns, rows) => rows.reduce((sum, row) => sum + columns.bytes[row], 0);

function draw(view, ctx, width, height, t) {
  const {data, columns, at} = view;
  const box = (view.box = {x: LEFT, y: TOP, w: width - LEFT - 14, h: height - TOP - BELOW});
  const x = (view.x = scale(at.from, at.to, box.x, box.x + box.w)), y = (view.y = scale(view.low, view.high, box.y + box.h, box.y));
  const marks = ticks(view.low, view.high, box.h / 44, true), texts = textsApart(marks, bytesText);
  axisY(ctx, t, box, y, marks, (value) => texts[marks.indexOf(value)], `address on tile ${wholeText(data.tile)} of IPU ${data.ipu}`);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, box.y, box.w, box.h);
  ctx.clip();
  ctx.fillStyle = t.muted;
  ctx.globalAlpha = 0.14;
  for (const [from, to] of data.gaps) ctx.fillRect(box.x, y(to), box.w, y(from) - y(to));
  ctx.globalAlpha = 1;
  rectangles(view, ctx, box, t);
  border(data, ctx, box, y, t);
  cursor(view, ctx, box, t);
  ctx.restore();
  const shown = [...new Set(ticks(at.from, at.to, box.w / 90).map(Math.round))].filter((value) => value < data.positions);
  axisX(ctx, t, box, (value) => x(value + 0.5), shown, wholeText, `place in the program of IPU ${data.ipu} (its steps in order, loops once)`);
}

function rectangles(view, ctx, box, t) {
  const {data, columns, x, y, at, selection} = view, {address, bytes, first, last, kind} = columns;
  const chosen = selection.get("variable"), layer = selection.get("layer");
  font(ctx, t, 10.5);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (let i = 0; i < address.length; i++) {
    if (last[i] + 1 < at.from || first[i] > at.to || address[i] + bytes[i] < view.low || address[i] > view.high) continue;
    const left = x(first[i]), wide = Math.max(1, x(last[i] + 1) - left), top = y(address[i] + bytes[i]), high = Math.max(0.5, y(address[i]) - top);
    const {colour, pattern} = data.kinds[kind[i]];
    ctx.fillStyle = hatch(ctx, pattern, colour, t.paper);
    ctx.fillRect(left, top, wide, high);
    if (high > 3 && wide > 3) { ctx.strokeStyle = t.paper; ctx.lineWidth = 0.6; ctx.strokeRect(left, top, wide, high); }
    const mine = chosen !== null && chosen >= 0 ? columns.variable[i] === chosen : isUnder(data.layers[columns.layer[i]], layer);
    if (mine) { ctx.strokeStyle = t.text; ctx.lineWidth = 2; ctx.strokeRect(left + 1, top + 1, Math.max(1, wide - 2), Math.max(1, high - 2)); }
    const start = Math.max(left, box.x) + 4, room = Math.min(left + wide, box.x + box.w) - start - 4;
    if (high > 12 && room > 34) name(ctx, t, clipText(ctx, data.labels[columns.label[i]], room), start, top + high / 2);
  }
}

function name(ctx, t, text, x, y) {
  if (!text) return;
  ctx.globalAlpha = 0.8;
  ctx.fillStyle = t.paper;
  ctx.fillRect(x - 2, y - 7, ctx.measureText(text).width + 4, 14);
  ctx.globalAlpha = 1;
  ctx.fillStyle = t.text;
  ctx.fillText(text, x, y);
}

function border(data, ctx, box, y, t) {
  const middle = Math.round(y(data.regions[0].to));
  ctx.fillStyle = t.muted;
  for (let dash = box.x; dash < box.x + box.w; dash += 6) ctx.fillRect(dash, middle, 2, 1);
  ctx.fillStyle = t.bad;
  for (let dash = box.x; dash < box.x + box.w; dash += 12) ctx.fillRect(dash, Math.round(y(data.capacity_bytes)) - 1, 8, 2);
}

function cursor(view, ctx, box, t) {
  if (view.chosen < 0) return;
  const from = view.x(view.chosen), wide = view.x(view.chosen + 1) - from;
  ctx.fillStyle = t.accent;
  ctx.fillRect(Math.round(from + wide / 2) - 1, box.y, 2, box.h);
}

function panel(view) {
  const {data, columns, selection, ui} = view, at = view.chosen < 0 ? view.peak : view.chosen;
  const rows = covering(columns, at), most = rows.reduce((high, row) => Math.max(high, columns.bytes[row]), 1);
  const heading = `${at === view.peak ? "Peak: " : ""}${data.step_names[columns.step_name[at]]}`;
  const sum = bytesAt(columns, rows);
  const parts = `Step ${wholeText(columns.step[at])}, at place ${wholeText(at)}: ${bytesText(sum)} in ${thingsText(rows.length, "piece")} of memory on tile ${wholeText(data.tile)}`;
  rows.sort((a, b) => columns.bytes[b] - columns.bytes[a] || columns.address[a] - columns.address[b]);
  const list = table([
    {label: "what lies there", path: true, mark: (row) => data.kinds[columns.kind[row]], text: (row) => data.labels[columns.label[row]]},
    {label: "address", wide: "84px", number: true, as: "wb-roomy", text: (row) => wholeText(columns.address[row])},
    {label: "bytes", wide: "84px", number: true, text: (row) => wholeText(columns.bytes[row]), bar: (row) => columns.bytes[row] / most},
  ], rows, {fixed: true, chosen: (row) => columns.variable[row] >= 0 && columns.variable[row] === selection.get("variable"), pick: (row) => pickVariable(view, row)});
  ui.panel.replaceChildren(h("h4", {text: heading}), h("p", {text: parts}), h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": "What lies where"}, list));
  ui.announce(`${heading}: ${parts}`);
}

function pickVariable(view, row) {
  const {columns, data, selection} = view;
  select(selection, {variable: columns.variable[row] < 0 ? null : columns.variable[row], layer: data.layers[columns.layer[row]] || null});
}

function choose(view, position) {
  const {data, columns, at} = view, wide = at.to - at.from;
  view.chosen = Math.max(0, Math.min(data.positions - 1, position));
  if (view.chosen < at.from || view.chosen >= at.to) view.zoom.set(view.chosen - wide / 2, view.chosen + wide / 2);
  select(view.selection, {position: view.chosen, step: columns.step[view.chosen], ipu: data.ipu, tile: data.tile});
  panel(view);
  view.canvas.redraw();
}

function pick(view, px, py) {
  const position = Math.floor(view.x.invert(px)), row = rectangleAt(view.columns, position, view.y.invert(py));
  if (row >= 0) pickVariable(view, row);
  choose(view, position);
}

function load(view, model) {
  const before = view.data, data = (view.data = model.get("data"));
  const columns = (view.columns = unpack(data.layout, model.get("buffer")));
  let highest = data.with_gaps_bytes;
  for (let i = 0; i < columns.address.length; i++) highest = Math.max(highest, columns.address[i] + columns.bytes[i]);
  view.top = Math.max(1, highest > 0.35 * data.capacity_bytes ? Math.max(highest, data.capacity_bytes) : highest) * 1.03;
  view.peak = data.positions ? fullest(columns, data.positions) : -1;
  view.chosen = chosenPlace(view.selection, data.ipu, columns.step);
  Object.assign(view, {low: 0, high: view.top});
  // Of another tile the same program is shown: what was zoomed to stays.
  if (!before || before.ipu !== data.ipu) Object.assign(view.at, {from: 0, to: Math.max(1, data.positions)});
}

// Addresses are zoomed about their middle by { and }, moved by [ and ].
function upright(view, key) {
  const wide = view.high - view.low, middle = (view.high + view.low) / 2;
  const to = {"{": [middle - wide, middle + wide], "}": [middle - wide / 4, middle + wide / 4], "[": [view.low - wide / 5, view.high - wide / 5], "]": [view.low + wide / 5, view.high + wide / 5]}[key];
  if (!to) return false;
  const span = Math.min(view.top, Math.max(64, to[1] - to[0])), low = Math.min(view.top - span, Math.max(0, to[0]));
  Object.assign(view, {low, high: low + span});
  view.canvas.redraw();
  return true;
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
    if (by || event.key === "p") {
      choose(view, event.key === "p" || view.chosen < 0 ? view.peak : view.chosen + by);
      event.preventDefault();
    } else if (upright(view, event.key)) event.preventDefault();
    else if (event.key === "Home") { Object.assign(view, {low: 0, high: view.top}); view.zoom.key(event); view.canvas.redraw(); }
    else view.zoom.key(event);
  });
}

function hover(view, show) {
  const {ui} = view;
  ui.canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, ui.canvas), {data, columns, box} = view;
    const at = Math.floor(view.x.invert(px)), address = view.y.invert(py);
    if (px < box.x || py > box.y + box.h || at < 0 || at >= data.positions) return show();
    const row = rectangleAt(columns, at, address), where = `step ${wholeText(columns.step[at])}: ${data.step_names[columns.step_name[at]]}`;
    if (row < 0) return show(px, py, ["Free here", where]);
    const {[columns.label[row]]: label} = data.labels, end = columns.address[row] + columns.bytes[row];
    return show(px, py, [label, `${bytesText(columns.bytes[row])} at ${wholeText(columns.address[row])} to ${wholeText(end - 1)}, ${data.kinds[columns.kind[row]].label}`,
      columns.always[row] ? "always live" : `live at places ${wholeText(columns.first[row])} to ${wholeText(columns.last[row])}`,
      data.layers[columns.layer[row]] && `layer ${data.layers[columns.layer[row]]}`, where].filter(Boolean));
  });
  ui.canvas.addEventListener("pointerleave", () => show());
}

function furnish(view) {
  const {data, ui, columns} = view;
  ui.say(data.sentence);
  ui.tools.replaceChildren(
    button("Go to peak", () => choose(view, view.peak), {title: "Key: p"}),
    button("Addresses closer", () => upright(view, "}"), {title: "Key: } closer, { farther, [ and ] move"}),
    button("All", () => { Object.assign(view, {low: 0, high: view.top}); view.zoom.set(0, data.positions); view.canvas.redraw(); }, {title: "Key: Home"}));
  const used = [...new Set(columns.kind)];
  ui.legend.replaceChildren(...used.map((kind) => h("span", {class: "wb-key"}, swatch(data.kinds[kind]), h("span", {text: data.kinds[kind].label}))),
    h("span", {class: "wb-key", text: "shaded: gaps that nothing uses"}), h("span", {class: "wb-key", text: `dashed: end of the tile, ${bytesText(data.capacity_bytes)}; dotted: where interleaved memory begins`}));
  ui.setTable(() => table([
    {label: "what lies there", text: (row) => data.labels[columns.label[row]]}, {label: "kind", text: (row) => data.kinds[columns.kind[row]].label},
    {label: "layer", text: (row) => data.layers[columns.layer[row]]}, {label: "address", number: true, text: (row) => wholeText(columns.address[row])},
    {label: "bytes", number: true, text: (row) => wholeText(columns.bytes[row])}, {label: "first place", number: true, text: (row) => wholeText(columns.first[row])},
    {label: "last place", number: true, text: (row) => wholeText(columns.last[row])},
  ], [...columns.address.keys()], {most: 500, pick: (row) => pickVariable(view, row)}));
  panel(view);
}

async function render({model, el}) {
  const selection = await selectionOf(model), view = {selection, at: {from: 0, to: 1}};
  load(view, model);
  if (view.peak < 0) {
    el.replaceChildren(h("section", {class: "wb"}, h("p", {class: "wb-empty", text: "Nothing runs on this IPU, so nothing lies on its tiles."})));
    return undefined;
  }
  const ui = (view.ui = frame(el, {title: "X-ray", sentence: view.data.sentence, side: true, height: 420}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.zoom = panZoom(ui.canvas, view.at, {span: () => [0, Math.max(1, view.data.positions)], least: () => Math.min(4, view.data.positions),
    area: () => view.box, moved: () => view.canvas.redraw(), pick: (px, py) => pick(view, px, py)});
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view);
  const offs = [
    watch(model, ["data"], () => { load(view, model); furnish(view); view.canvas.redraw(); }),
    watch(selection, ["step", "position", "variable", "layer"], () => {
      view.chosen = chosenPlace(selection, view.data.ipu, view.columns.step);
      panel(view);
      view.canvas.redraw();
    }),
  ];
  return () => { offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
