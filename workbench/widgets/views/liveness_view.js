import {axisX, axisY, button, bytesText, choice, chosenPlace, clipText, font, frame, groupByPath, h, hatch, isUnder, panZoom, place, scale, select, selectionOf, shortText, surface, swatch, table, ticks, tip, unpack, watch, wholeText, thingsText} from "../kit/kernel.js";
import {chooseStretch, drawLanes, furnishLanes, laneKey, tipOf, under} from "./liveness_lanes.js";

const NOTHING = "Nothing runs on this IPU, so nothing is live.";
const LEFT = 78, TOP = 14, BANDS = 40, BELOW = 42;

// Highest point of `values` within [first, last]; the leftmost of equals.
export function highest(values, first, last) {
  let best = first;
  for (let i = first + 1; i <= last; i++) if (values[i] > values[best]) best = i;
  return best;
}

// Runs of equal values: [[first, last, value], ...].
export function runs(values, first, last) {
  const found = [];
  for (let i = first; i <= last; i++) {
    const open = found[found.length - 1];
    if (open && open[2] === values[i]) open[1] = i;
    else found.push([i, i, values[i]]);
  }
  return found;
}

// What is live at a position: rows of the variable table, largest first.
export function liveAt(columns, position) {
  const {interval_variable: variable, interval_first: first, interval_last: last, variable_bytes: bytes} = columns;
  const rows = new Set();
  for (let i = 0; i < variable.length; i++) if (first[i] <= position && position <= last[i]) rows.add(variable[i]);
  return [...rows].sort((a, b) => bytes[b] - bytes[a] || a - b);
}

// Small programs on a large tile would be a line at the bottom; the capacity is then named, not drawn.
export function ceiling(most, capacity) {
  const drawn = capacity > 0 && most > 0.35 * capacity;
  return {drawn, top: (drawn ? Math.max(most, capacity) : most || capacity || 1) * 1.08};
}

function draw(view, ctx, width, height, t) {
  if (view.data.lanes) return drawLanes(view, ctx, width, height, t);
  const {data, columns, at} = view, {live, step} = columns;
  view.box = {x: LEFT, y: TOP, w: width - LEFT - 14, h: height - TOP - BANDS - BELOW};
  view.x = scale(at.from, at.to, LEFT, width - 14);
  if (!live.length) {
    font(ctx, t, 12);
    ctx.fillStyle = t.muted;
    return ctx.fillText(NOTHING, LEFT, TOP + 20);
  }
  const {box, x} = view;
  const most = view.most, {drawn, top} = ceiling(most, data.capacity_bytes);
  const y = scale(0, top, box.y + box.h, box.y);
  axisY(ctx, t, box, y, ticks(0, top, box.h / 44, true), (value) => shortText(bytesText(value)), `bytes ${data.per}`);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, box.y - 8, box.w, box.h + BANDS + 8);
  ctx.clip();
  const first = Math.max(0, Math.floor(at.from)), last = Math.min(live.length - 1, Math.ceil(at.to) - 1);
  const column = Math.max(1, Math.floor((last - first + 1) / box.w));
  area(ctx, {x, y, first, last, column, base: () => 0, height: () => data.always_live_bytes}, t, data.colours.always);
  area(ctx, {x, y, first, last, column, base: () => data.always_live_bytes,
    height: (i) => data.always_live_bytes + live[highest(live, i, Math.min(last, i + column - 1))]}, t, data.colours.live);
  if (columns.fullest) outline(ctx, {x, y, first, last, column, values: columns.fullest}, t);
  lifetime(view, ctx, box, t);
  bands(view, ctx, box, first, last, t);
  if (drawn) {
    ctx.fillStyle = t.bad;
    for (let dash = box.x; dash < box.x + box.w; dash += 12) ctx.fillRect(dash, Math.round(y(data.capacity_bytes)) - 1, 8, 2);
    label(ctx, t, `capacity ${bytesText(data.capacity_bytes)}`, box.x + box.w - 6, y(data.capacity_bytes) - 9, "right", t.bad);
  }
  peak(view, ctx, box, y, t);
  cursor(view, ctx, box, t);
  ctx.restore();
  const stop = Math.max(1, (at.to - at.from) / Math.max(1, ticks(0, 1, box.w / 90).length));
  const shown = [...new Set(ticks(at.from, at.to, Math.min(box.w / 90, (at.to - at.from) / Math.min(1, stop))).map(Math.round))];
  return axisX(ctx, t, {...box, h: box.h + BANDS}, (value) => x(value + 0.5), shown.filter((value) => value < step.length), wholeText, `place in the program of IPU ${data.ipu} (its steps in order, loops once)`);
}

function area(ctx, {x, y, first, last, column, base, height}, t, style) {
  ctx.fillStyle = hatch(ctx, style.pattern, style.colour, t.paper, 0.3);
  ctx.beginPath();
  ctx.moveTo(x(first), y(base(first)));
  for (let i = first; i <= last; i += column) {
    ctx.lineTo(x(i), y(height(i)));
    ctx.lineTo(x(Math.min(last + 1, i + column)), y(height(i)));
  }
  ctx.lineTo(x(last + 1), y(base(last)));
  ctx.fill();
}

function outline(ctx, {x, y, first, last, column, values}, t) {
  ctx.strokeStyle = t.muted;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let i = first; i <= last; i += column) {
    const level = y(values[highest(values, i, Math.min(last, i + column - 1))]);
    ctx.lineTo(x(i), level);
    ctx.lineTo(x(Math.min(last + 1, i + column)), level);
  }
  ctx.stroke();
}

export function label(ctx, t, text, x, y, align, colour) {
  font(ctx, t, 11, 600);
  ctx.textAlign = align;
  ctx.textBaseline = "middle";
  const width = ctx.measureText(text).width, left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
  ctx.globalAlpha = 0.85;
  ctx.fillStyle = t.paper;
  ctx.fillRect(left - 4, y - 8, width + 8, 16);
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y);
}

function lifetime(view, ctx, box, t) {
  const {columns, selection, x} = view, row = view.rowOf.get(selection.get("variable"));
  if (row === undefined) return;
  ctx.fillStyle = t.accent;
  for (let i = 0; i < columns.interval_variable.length; i++) {
    if (columns.interval_variable[i] !== row) continue;
    const from = x(columns.interval_first[i]), wide = Math.max(2, x(columns.interval_last[i] + 1) - from);
    ctx.globalAlpha = 0.16;
    ctx.fillRect(from, box.y, wide, box.h);
    ctx.globalAlpha = 1;
    ctx.fillRect(from, box.y + box.h - 4, wide, 4);
    ctx.fillRect(from, box.y, 1, box.h);
    ctx.fillRect(from + wide - 1, box.y, 1, box.h);
  }
}

function bands(view, ctx, box, first, last, t) {
  const {data, columns, selection, x} = view;
  runs(columns.direction, first, last).forEach(([from, to, index]) => {
    const {colour, pattern} = data.directions[index];
    ctx.fillStyle = hatch(ctx, pattern, colour, t.paper);
    ctx.fillRect(x(from), box.y + box.h + 5, Math.max(1, x(to + 1) - x(from) - (x(to + 1) - x(from) > 3 ? 1 : 0)), 9);
  });
  const chosen = selection.get("layer");
  font(ctx, t, 10.5);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const stretches = runs(columns.layer, first, last).filter(([, , index]) => data.layers[index]).map(([from, to, index]) => [from, to + 1, data.layers[index]]);
  groupByPath(stretches, box.w / 30, Math.max(1, 3 * (x.invert(1) - x.invert(0)))).forEach(([from, to, name], i) => {
    const left = x(from), wide = x(to) - left;
    ctx.globalAlpha = i % 2 ? 0.16 : 0.28;
    ctx.fillStyle = t.muted;
    ctx.fillRect(left, box.y + box.h + 17, Math.max(0.5, wide - (wide > 3 ? 1 : 0)), 18);
    ctx.globalAlpha = 1;
    ctx.fillStyle = t.text;
    const start = Math.max(left, box.x);
    if (wide > 26) ctx.fillText(clipText(ctx, name, left + wide - start - 8), start + 4, box.y + box.h + 26.5);
  });
  ctx.fillStyle = t.accent;
  for (const [from, to, name] of stretches) if (isUnder(name, chosen)) ctx.fillRect(x(from), box.y + box.h + 31, Math.max(1.5, x(to) - x(from)), 4);
}

function peak(view, ctx, box, y, t) {
  const {data, columns, x} = view, at = view.peak, level = y(data.always_live_bytes + columns.live[at]);
  const px = x(at + 0.5);
  if (px < box.x || px > box.x + box.w) return;
  ctx.fillStyle = t.text;
  ctx.beginPath();
  ctx.arc(px, level, 3.5, 0, 7);
  ctx.fill();
  const text = `peak ${bytesText(data.always_live_bytes + columns.live[at])}`;
  label(ctx, t, text, px > box.x + box.w - 110 ? px - 8 : px + 8, level < box.y + 14 ? level + 14 : level - 10, px > box.x + box.w - 110 ? "right" : "left", t.text);
}

function cursor(view, ctx, box, t) {
  if (view.chosen < 0) return;
  const from = view.x(view.chosen), wide = view.x(view.chosen + 1) - from;
  ctx.fillStyle = t.accent;
  ctx.globalAlpha = 0.25;
  ctx.fillRect(from, box.y, Math.max(1, wide), box.h);
  ctx.globalAlpha = 1;
  ctx.fillRect(Math.round(from + wide / 2) - 1, box.y - 6, 2, box.h + 6);
}

function panel(view) {
  const {data, columns, selection, ui} = view;
  if (view.peak < 0) { ui.panel.replaceChildren(h("p", {text: NOTHING})); return; }
  const at = view.chosen < 0 ? view.peak : view.chosen;
  const rows = liveAt(columns, at), most = columns.variable_bytes[rows[0]] || 1;
  const sum = data.always_live_bytes + columns.live[at];
  const names = data.variables;
  const heading = `${at === view.peak ? "Peak: " : ""}${data.names[columns.name[at]]}`;
  const parts = `Step ${wholeText(columns.step[at])}, at place ${wholeText(at)}: ${bytesText(sum)} live ${data.per}: ${bytesText(data.always_live_bytes)} always, ${bytesText(columns.live[at])} in ${thingsText(rows.length, "variable")} that come${rows.length === 1 ? "s and goes" : " and go"}`;
  const list = table([
    {label: "variable", path: true, mark: (row) => data.kinds[names.kind[row]], text: (row) => names.name[row]},
    {label: "kind", wide: "104px", as: "wb-roomy", text: (row) => data.kinds[names.kind[row]].label},
    {label: "bytes", wide: "84px", number: true, text: (row) => wholeText(columns.variable_bytes[row]), bar: (row) => columns.variable_bytes[row] / most},
  ], rows, {
    fixed: true,
    chosen: (row) => names.id[row] === selection.get("variable"),
    pick: (row) => select(selection, {variable: names.id[row], layer: data.layers[names.layer[row]] || null}),
  });
  ui.panel.replaceChildren(h("h4", {text: heading}), h("p", {text: parts}), h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": "Live variables"}, list));
  ui.announce(`${heading}: ${parts}`);
}

// What is chosen comes into view, wherever it was chosen, with as many places in view as before.
export function bring({chosen, at, zoom}) {
  const wide = at.to - at.from;
  if (chosen >= 0 && (chosen < at.from || chosen >= at.to)) zoom.set(chosen - wide / 2, chosen + wide / 2);
}

function choose(view, position) {
  if (view.peak < 0) return;
  view.chosen = Math.max(0, Math.min(view.columns.live.length - 1, position));
  const {data, columns} = view;
  bring(view);
  select(view.selection, {position: view.chosen, step: columns.step[view.chosen], ipu: data.ipu, layer: data.layers[columns.layer[view.chosen]] || null});
  panel(view);
  view.canvas.redraw();
}

// A click means the highest step under the finger: with many steps a pixel, the peak is still hit exactly.
function pick(view, px, py) {
  if (view.data.lanes) return chooseStretch(view, under(view, px, py));
  const reach = 4, last = view.columns.live.length - 1;
  const from = Math.max(0, Math.floor(view.x.invert(px - reach))), to = Math.min(last, Math.floor(view.x.invert(px + reach)));
  const exact = Math.max(0, Math.min(last, Math.floor(view.x.invert(px))));
  const narrow = view.x(1) - view.x(0) >= 2 * reach;
  const nearPeak = view.peak >= from && view.peak <= to;
  return choose(view, nearPeak && !narrow ? view.peak : narrow ? exact : highest(view.columns.live, Math.min(from, last), Math.max(to, 0)));
}

function load(view, model) {
  const before = view.data, data = (view.data = model.get("data"));
  const columns = (view.columns = unpack(data.layout, model.get("buffer")));
  if (data.lanes) { view.peak = view.chosen = -1; Object.assign(view.at, {from: 0, to: 1}); return; }
  view.chosen = chosenPlace(view.selection, data.ipu, columns.step);
  view.rowOf = new Map(data.variables.id.map((id, row) => [id, row]));
  view.peak = columns.live.length ? highest(columns.live, 0, columns.live.length - 1) : -1;
  view.most = columns.live.length ? Math.max(data.always_live_bytes + columns.live[view.peak], columns.fullest ? columns.fullest[highest(columns.fullest, 0, columns.live.length - 1)] : 0) : 0;
  // Of another tile, or of all, the same program is shown: what was zoomed to stays.
  if (!before || before.lanes || before.ipu !== data.ipu) Object.assign(view.at, {from: 0, to: Math.max(1, columns.live.length)});
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    if (view.data.lanes) { laneKey(view, event); return; }
    const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
    if (by || event.key === "p") {
      choose(view, event.key === "p" || view.chosen < 0 ? view.peak : view.chosen + by);
      event.preventDefault();
    } else view.zoom.key(event);
  });
}

function hover(view, show) {
  const {ui} = view;
  ui.canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, ui.canvas), {data, columns} = view;
    if (data.lanes) { const stretch = view.x ? under(view, px, py) : -1; return stretch < 0 ? show() : show(px, py, tipOf(view, stretch)); }
    const at = Math.floor(view.x.invert(px));
    if (px < view.box.x || at < 0 || at >= columns.live.length) return show();
    return show(px, py, [data.names[columns.name[at]], `step ${wholeText(columns.step[at])}, at place ${wholeText(at)}`,
      `${bytesText(data.always_live_bytes + columns.live[at])} live ${data.per}`,
      data.layers[columns.layer[at]] && `layer ${data.layers[columns.layer[at]]}, ${data.directions[columns.direction[at]].label}`].filter(Boolean));
  });
  ui.canvas.addEventListener("pointerleave", () => show());
}

function furnish(view, model) {
  const {data, ui, columns} = view;
  const scopes = [["tile", "one tile"], ["ipu", "whole IPU"], ...(data.ipus > 1 ? [["ipus", "all IPUs"]] : [])];
  const over = model.get("live") && choice("over", scopes, model.get("mode"), (mode) => { model.set("mode", mode); model.save_changes(); });
  if (data.lanes) { furnishLanes(view, over); return; }
  ui.say(data.sentence);
  ui.tools.replaceChildren(...[
    over,
    model.get("live") && data.ipus > 1 && choice("IPU", [...Array(data.ipus).keys()].map((i) => [String(i), `IPU ${i}`]), String(data.ipu), (ipu) => select(view.selection, {ipu: Number(ipu), tile: null, position: null})),
    button("Go to peak", () => choose(view, view.peak), {title: "Key: p"}),
  ].filter(Boolean));
  const used = new Set(columns.direction);
  const keys = [data.colours.always, data.colours.live, ...data.directions.filter((_, i) => used.has(i))];
  ui.legend.replaceChildren(...keys.map((key) => h("span", {class: "wb-key"}, swatch(key), h("span", {text: key.label}))),
    ...(columns.fullest ? [h("span", {class: "wb-key", text: "— the fullest tile at each step"})] : []),
    ...(ceiling(view.most, data.capacity_bytes).drawn || !data.capacity_bytes ? [] : [h("span", {class: "wb-key", text: `capacity ${bytesText(data.capacity_bytes)}, far above`})]));
  ui.setTable(() => table([
    {label: "place", number: true, text: (i) => wholeText(i)}, {label: "step", number: true, text: (i) => wholeText(columns.step[i])}, {label: "name", text: (i) => data.names[columns.name[i]]},
    {label: "layer", text: (i) => data.layers[columns.layer[i]]}, {label: "direction", text: (i) => data.directions[columns.direction[i]].label},
    {label: "always live (bytes)", number: true, text: () => wholeText(data.always_live_bytes)},
    {label: "come and go (bytes)", number: true, text: (i) => wholeText(columns.live[i])},
  ], [...columns.live.keys()], {most: 500, pick: (i) => choose(view, i)}));
  panel(view);
}

async function render({model, el}) {
  const selection = await selectionOf(model);
  const view = {selection, at: {from: 0, to: 1}, measure: "live", row: 0};
  load(view, model);
  if (view.peak < 0 && !view.data.lanes) {
    el.replaceChildren(h("section", {class: "wb"}, h("p", {class: "wb-empty", text: NOTHING})));
    return undefined;
  }
  const ui = (view.ui = frame(el, {title: "Liveness", sentence: view.data.sentence, side: true, height: 360}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.zoom = panZoom(ui.canvas, view.at, {span: () => (view.data.lanes ? [0, 1] : [0, Math.max(1, view.columns.live.length)]), least: () => (view.data.lanes ? 1 : Math.min(4, view.columns.live.length)),
    area: () => view.box ?? {x: LEFT, w: 100}, moved: () => view.canvas.redraw(), pick: (px, py) => pick(view, px, py)});
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view, model);
  const offs = [
    watch(model, ["data"], () => { load(view, model); furnish(view, model); view.canvas.redraw(); }),
    watch(selection, ["ipu", "step", "position", "variable", "layer"], () => {
      if (view.data.lanes) { furnish(view, model); view.canvas.redraw(); return; }
      const before = view.chosen;
      view.chosen = chosenPlace(selection, view.data.ipu, view.columns.step);
      if (view.chosen !== before) bring(view);
      panel(view);
      view.canvas.redraw();
    }),
  ];
  return () => { offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
