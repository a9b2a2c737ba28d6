import {axisX, axisY, bytesText, button, choice, frame, h, hatch, panZoom, place, scale, selectionOf, shortText, surface, swatch, table, ticks, tip, unpack, watch, wholeText} from "../kit/kernel.js";
import {chooseTile, ipuChoice, ipuOf, largestTile, startOf, tileOf, tilePanel} from "../kit/tiles.js";

const LEFT = 78, TOP = 16, BELOW = 42;

const ORDERS = {number: "by number", place: "row by row of the floor plan", fullest: "fullest first"};

// What bars are made of on an IPU: {paints, bytes: part after part, tiles of each}; nothing as long as the kernel has not answered.
export function seriesOf(view, ipu) {
  const {data, columns, split, asked} = view, cut = (all, count) => Array.from({length: count}, (_, part) => all.subarray(startOf(data, ipu, part), startOf(data, ipu, part) + data.tiles));
  if (split === "category") return {paints: data.categories, bytes: cut(columns.bytes, data.categories.length)};
  if (split === "liveness") return {paints: data.liveness, bytes: cut(columns.liveness, 2)};
  if (!asked || asked.name !== split || asked.ipu !== ipu) return {paints: [], bytes: []};
  return {paints: asked.paints, bytes: asked.paints.map((_, part) => asked.bytes.subarray(part * data.tiles, (part + 1) * data.tiles))};
}

// The sum over the parts that are not hidden, for each tile.
export function sumsOf({bytes}, tiles, hidden) {
  const sums = new Float64Array(tiles);
  bytes.forEach((values, part) => { if (!hidden.has(part)) for (let tile = 0; tile < tiles; tile++) sums[tile] += values[tile]; });
  return sums;
}

// Tiles from left to right.
export function orderOf(order, sums, rows) {
  const tiles = [...sums.keys()];
  if (order === "fullest") return tiles.sort((a, b) => sums[b] - sums[a] || a - b);
  return order === "place" ? tiles.sort((a, b) => rows[a] - rows[b] || a - b) : tiles;
}

// What is drawn now, worked out once for each choice.
function drawnNow(view) {
  const ipu = ipuOf(view), key = [view.split, view.order, ipu, [...view.hidden].join(), view.version].join("|");
  if (view.made?.key !== key) {
    const series = seriesOf(view, ipu), sums = sumsOf(series, view.data.tiles, view.hidden), order = orderOf(view.order, sums, view.columns.row), at = new Int32Array(order.length);
    order.forEach((tile, place) => { at[tile] = place; });
    view.made = {key, ipu, series, sums, order, at, placed: order.map((tile) => sums[tile])};
  }
  return view.made;
}

// The tile drawn in each pixel column: the fullest of those that fall into it.
export function columnsOf(sums, from, to, width) {
  const found = [], each = (to - from) / width;
  if (each <= 1) {
    for (let tile = Math.floor(from); tile < Math.min(sums.length, Math.ceil(to)); tile++) found.push([tile, tile, tile + 1]);
    return found;
  }
  for (let pixel = 0; pixel < width; pixel++) {
    const first = Math.max(0, Math.floor(from + pixel * each)), last = Math.min(sums.length, Math.ceil(from + (pixel + 1) * each));
    let best = first;
    for (let tile = first + 1; tile < last; tile++) if (sums[tile] > sums[best]) best = tile;
    if (best < sums.length) found.push([best, from + pixel * each, from + (pixel + 1) * each]);
  }
  return found;
}

function draw(view, ctx, width, height, t) {
  const {data, at, hidden} = view, {ipu, series, sums, order, at: placeOf, placed} = drawnNow(view);
  const box = (view.box = {x: LEFT, y: TOP, w: width - LEFT - 14, h: height - TOP - BELOW});
  const x = (view.x = scale(at.from, at.to, box.x, box.x + box.w));
  const most = sums.reduce((a, b) => Math.max(a, b), 0), drawn = most > 0.35 * data.capacity_bytes;
  const top = (drawn ? Math.max(most, data.capacity_bytes) : most || 1) * 1.08, y = scale(0, top, box.y + box.h, box.y);
  axisY(ctx, t, box, y, ticks(0, top, box.h / 44, true), (value) => shortText(bytesText(value)), "bytes per tile");
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, box.y - 10, box.w, box.h + 10);
  ctx.clip();
  const bars = columnsOf(placed, at.from, at.to, Math.floor(box.w)), base = new Float64Array(bars.length);
  series.paints.forEach((painted, part) => {
    if (hidden.has(part)) return;
    ctx.fillStyle = hatch(ctx, painted.pattern, painted.colour, t.paper);
    bars.forEach(([place, left, right], i) => {
      const bytes = series.bytes[part][order[place]], low = base[i];
      if (!bytes) return;
      const x0 = x(left), wide = x(right) - x0;
      ctx.fillRect(x0, y(low + bytes), Math.max(0.7, wide - (wide > 4 ? 1 : 0)), y(low) - y(low + bytes) + (wide > 4 ? 0 : 0.3));
      base[i] = low + bytes;
    });
  });
  capacity(view, ctx, box, y, t, drawn);
  const tile = tileOf(view), centre = x(placeOf[tile] + 0.5);
  ctx.fillStyle = t.accent;
  ctx.beginPath();
  ctx.moveTo(centre - 6, box.y - 9);
  ctx.lineTo(centre + 6, box.y - 9);
  ctx.lineTo(centre, box.y);
  ctx.fill();
  ctx.globalAlpha = 0.6;
  ctx.fillRect(centre - 0.5, box.y, 1, Math.max(0, y(sums[tile]) - box.y));
  ctx.restore();
  const shown = [...new Set(ticks(at.from, at.to, Math.min(box.w / 90, at.to - at.from)).map(Math.round))].filter((value) => value < data.tiles);
  axisX(ctx, t, box, (value) => x(value + 0.5), shown, wholeText, view.order === "number" ? `tile of IPU ${ipu}` : `tiles of IPU ${ipu}, ${ORDERS[view.order]}`);
  if (!series.paints.length) {
    ctx.fillStyle = t.muted;
    ctx.textAlign = "center";
    ctx.fillText(view.split === "variables" ? "Choose variables in any view, or by Go to…: each is added here." : "…", box.x + box.w / 2, box.y + box.h / 2);
  }
}

function capacity({data}, ctx, box, y, t, drawn) {
  ctx.font = `600 11px ${t.font}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  if (!drawn) {
    ctx.fillStyle = t.muted;
    ctx.fillText(`capacity ${bytesText(data.capacity_bytes)}, far above`, box.x + box.w - 4, box.y + 12);
    return;
  }
  const level = Math.round(y(data.capacity_bytes));
  ctx.fillStyle = t.bad;
  for (let dash = box.x; dash < box.x + box.w; dash += 12) ctx.fillRect(dash, level - 1, 8, 2);
  const text = `capacity ${bytesText(data.capacity_bytes)}`, wide = ctx.measureText(text).width;
  ctx.globalAlpha = 0.85;
  ctx.fillStyle = t.paper;
  ctx.fillRect(box.x + box.w - wide - 8, level - 19, wide + 8, 16);
  ctx.globalAlpha = 1;
  ctx.fillStyle = t.bad;
  ctx.fillText(text, box.x + box.w - 4, level - 4);
}

function legend(view) {
  const {ui, hidden} = view, {series} = drawnNow(view);
  ui.legend.replaceChildren(...series.paints.map((painted, part) => {
    const key = h("button", {type: "button", class: "wb-key", "aria-pressed": String(!hidden.has(part)), title: "show or hide", onclick: () => {
      if (!hidden.delete(part)) hidden.add(part);
      key.setAttribute("aria-pressed", String(!hidden.has(part)));
      view.canvas.redraw();
    }}, swatch(painted), h("span", {text: painted.label}));
    return key;
  }));
}

function hover(view, show) {
  const {canvas} = view.ui;
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), at = Math.floor(view.x.invert(px));
    if (px < view.box.x || at < 0 || at >= view.data.tiles) return show();
    const {series, order} = drawnNow(view), tile = order[at], bytes = series.bytes.map((values) => values[tile]), sum = bytes.reduce((a, b) => a + b, 0);
    const rows = bytes.map((_, c) => c).filter((c) => bytes[c]).sort((a, b) => bytes[b] - bytes[a]).slice(0, 4);
    return show(px, py, [`Tile ${wholeText(tile)}: ${bytesText(sum)}`, ...rows.map((c) => `${series.paints[c].label} ${bytesText(bytes[c])}`)]);
  });
  canvas.addEventListener("pointerleave", () => show());
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -64, PageDown: 64}[event.key];
    if (!by) return view.zoom.key(event);
    const {order, at} = drawnNow(view), to = Math.max(0, Math.min(view.data.tiles - 1, at[tileOf(view)] + by)), wide = view.at.to - view.at.from;
    if (to < view.at.from || to >= view.at.to) view.zoom.set(to - wide / 2, to + wide / 2);
    chooseTile(view, order[to]);
    return event.preventDefault();
  });
}

// A split that the kernel works out is asked for when it is chosen, and again for another IPU or another variable.
function ask(view) {
  const {data, split} = view;
  if (!view.live || !data.asked_for.includes(split) || (split === "variables" && !view.variables.length)) return;
  view.model.send({split, ipu: ipuOf(view), variables: view.variables, asked: (view.number += 1)});
}

function hears(view, message, buffers) {
  if (!message?.split || message.asked !== view.number) return;
  view.asked = {...message.split, bytes: unpack(message.split.layout, buffers[0]).bytes};
  view.version += 1;
  furnish(view);
  view.canvas.redraw();
}

function split(view, name) {
  view.split = name;
  view.hidden.clear();
  ask(view);
  furnish(view);
  view.canvas.redraw();
}

// A variable that is chosen anywhere joins those that are shown, the latest last.
function joins(view) {
  const variable = view.selection.get("variable") ?? null;
  if (variable === null || view.variables.includes(variable)) return;
  view.variables = [...view.variables, variable].slice(-view.data.most);
  if (view.split === "variables") ask(view);
}

function load(view, model) {
  view.data = model.get("data");
  view.columns = unpack(view.data.layout, model.get("buffer"));
  Object.assign(view, {asked: null, version: view.version + 1});
  Object.assign(view.at, {from: 0, to: view.data.tiles});
}

// What is drawn, in one sentence: the report's own of its categories, else the same of the parts that are chosen.
export function said(view) {
  const {data, split} = view, ipu = ipuOf(view);
  if (split === "category") return data.sentences[data.held.indexOf(ipu)];
  const {series} = drawnNow(view), sums = sumsOf(series, data.tiles, new Set()), head = `Modelled memory of IPU ${ipu} by ${data.splits[split]}`;
  if (!series.paints.length) return split === "variables" ? `${head}: none yet` : head;
  const best = largestTile(sums), whole = sums.reduce((a, b) => a + b, 0);
  const parts = series.paints.map(({label}, part) => [label, series.bytes[part].reduce((a, b) => a + b, 0)]).sort((a, b) => b[1] - a[1]).slice(0, 2);
  return `${head}: tile ${wholeText(best)} is fullest with ${bytesText(sums[best])} of ${bytesText(data.capacity_bytes)}, the average is ${bytesText(whole / data.tiles)}; of ${bytesText(whole)} in all the largest ${parts.length > 1 ? "parts are" : "part is"} ${parts.map(([label, size]) => `${label} ${bytesText(size)}`).join(" and ")}`;
}

function furnish(view) {
  view.ui.say(said(view));
  const offered = Object.entries(view.data.splits).filter(([name]) => view.live || !view.data.asked_for.includes(name));
  view.ui.tools.replaceChildren(...[choice("by", offered, view.split, (name) => split(view, name)), choice("tiles", Object.entries(ORDERS), view.order, (name) => { view.order = name; view.canvas.redraw(); }),
    view.split === "variables" && view.variables.length > 0 && button("None of them", () => { view.variables = []; view.asked = null; view.version += 1; furnish(view); view.canvas.redraw(); }), ipuChoice(view)].filter(Boolean));
  legend(view);
  view.ui.setTable(() => listed(view));
  tilePanel(view);
}

function listed(view) {
  const {series, sums, ipu} = drawnNow(view);
  return table([{label: "tile", number: true, text: wholeText}, {label: "together (bytes)", number: true, text: (tile) => wholeText(sums[tile])},
    ...series.paints.map(({label}, part) => ({label: `${label} (bytes)`, number: true, text: (tile) => wholeText(series.bytes[part][tile])}))],
  [...sums.keys()].sort((a, b) => sums[b] - sums[a]), {caption: `Tiles of IPU ${ipu}, by ${view.data.splits[view.split]}; fullest first`, most: 100, pick: (tile) => chooseTile(view, tile), chosen: (tile) => tile === view.selection.get("tile")});
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), live: model.get("live"), hidden: new Set(), at: {}, split: "category", order: "number", variables: [], asked: null, number: 0, version: 0};
  load(view, model);
  const ui = (view.ui = frame(el, {title: "Memory", sentence: view.data.sentence, side: true, height: 340}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.zoom = panZoom(ui.canvas, view.at, {span: () => [0, view.data.tiles], least: () => Math.min(4, view.data.tiles), area: () => view.box,
    moved: () => view.canvas.redraw(), pick: (px) => {
      const reach = Math.max(0, view.x.invert(px)), wide = view.x(1) - view.x(0), {placed, order} = drawnNow(view);
      const column = wide < 1 ? columnsOf(placed, view.at.from, view.at.to, Math.floor(view.box.w))[Math.floor(px - view.box.x)] : null;
      chooseTile(view, order[Math.min(order.length - 1, column ? column[0] : Math.floor(reach))]);
    }});
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view);
  const offs = [
    watch(model, ["data"], () => { load(view, model); furnish(view); view.canvas.redraw(); }),
    watch(view.selection, ["tile", "ipu"], () => { if (view.asked && view.asked.ipu !== ipuOf(view)) ask(view); furnish(view); view.canvas.redraw(); }),
    watch(view.selection, ["variable"], () => { joins(view); furnish(view); }),
  ];
  joins(view);
  const arrived = (message, buffers) => hears(view, message, buffers);
  model.on?.("msg:custom", arrived);
  return () => { model.off?.("msg:custom", arrived); offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
