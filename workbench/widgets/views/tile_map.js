import {bytesText, choice, clipText, cyclesText, font, frame, h, place, selectionOf, shortText, surface, ticks, tip, unpack, watch} from "../kit/kernel.js";
import {chooseTile, ipuChoice, ipuOf, tileOf, tilePanel, tileTable, totals} from "../kit/tiles.js";

const TOP = 22, LEFT = 34, LEGEND = 62;

// Tile numbers run down the rows, column by column.
export const cellOf = ({rows}, tile) => ({column: Math.floor(tile / rows), row: tile % rows});

export function tileAt({rows, columns}, column, row, tiles) {
  const tile = column * rows + row;
  return column < 0 || row < 0 || column >= columns || row >= rows || tile >= tiles ? -1 : tile;
}

// Colour of a part between 0 and 1 on a list of "#rrggbb" stops.
export function rampColour(stops, part) {
  const place = Math.max(0, Math.min(1, part)) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(place));
  const channel = (stop, at) => parseInt(stops[stop].slice(at, at + 2), 16);
  const mixed = [1, 3, 5].map((at) => Math.round(channel(low, at) + (channel(low + 1, at) - channel(low, at)) * (place - low)));
  return `rgb(${mixed.join()})`;
}

// One number a tile of the chosen measure, and how it is written.
export function measured(view, ipu) {
  const {data, columns} = view, from = ipu * data.tiles;
  if (view.measure === "total") return {values: totals(view, ipu), text: bytesText, binary: true, label: `bytes ${data.measured}`};
  if (view.measure === "cycles") return {values: columns.cycles.subarray(from, from + data.tiles), text: cyclesText, label: "cycles busy in one call of the program"};
  if (view.measure === "variable") return {values: columns.variable.subarray(from, from + data.tiles), text: bytesText, binary: true, label: `bytes of ${data.variable}`};
  const start = (Number(view.measure) * data.ipus + ipu) * data.tiles;
  return {values: columns.bytes.subarray(start, start + data.tiles), text: bytesText, binary: true, label: `bytes of ${data.categories[Number(view.measure)].label}`};
}

function layout(view, width, height) {
  const {plan} = view.data, gap = plan.lanes > 1 ? 3 : 0, groups = Math.ceil(plan.columns / plan.lanes);
  const wide = (width - LEFT - 12 - (groups - 1) * gap) / plan.columns, high = (height - TOP - LEGEND - 8) / plan.rows;
  const cell = {w: Math.min(wide, high * 2.2, 64), h: Math.min(high, wide * 2.2, 64)};
  const group = plan.lanes * cell.w + gap;
  view.at = (tile) => {
    const {column, row} = cellOf(plan, tile);
    return {x: LEFT + column * cell.w + Math.floor(column / plan.lanes) * gap, y: TOP + row * cell.h, ...cell};
  };
  view.tileUnder = (px, py) => {
    const inside = (((px - LEFT) % group) + group) % group;
    const column = Math.floor((px - LEFT) / group) * plan.lanes + Math.floor(inside / cell.w);
    return inside >= plan.lanes * cell.w ? -1 : tileAt(plan, column, Math.floor((py - TOP) / cell.h), view.data.tiles);
  };
  return cell;
}

function draw(view, ctx, width, height, t) {
  const {data} = view, ipu = ipuOf(view), cell = layout(view, width, height), {values, text, label, binary} = measured(view, ipu);
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  if (view.fromZero) low = 0;
  const gap = cell.w > 5 ? 1 : 0.4;
  for (let tile = 0; tile < data.tiles; tile++) {
    const {x, y, w, h: tall} = view.at(tile);
    ctx.fillStyle = rampColour(data.ramp, high > low ? (values[tile] - low) / (high - low) : values[tile] ? 1 : 0);
    ctx.fillRect(x, y, w - gap, tall - gap);
  }
  names(view, ctx, t, cell);
  const chosen = view.at(tileOf(view));
  ctx.strokeStyle = t.paper;
  ctx.lineWidth = 4;
  ctx.strokeRect(chosen.x - 2, chosen.y - 2, chosen.w + 3, chosen.h + 3);
  ctx.strokeStyle = t.bad;
  ctx.lineWidth = 2;
  ctx.strokeRect(chosen.x - 2, chosen.y - 2, chosen.w + 3, chosen.h + 3);
  legend(view, ctx, t, {low, high, text, label, binary, y: TOP + data.plan.rows * cell.h + 10, w: Math.min(360, width - LEFT - 24)});
}

function names({data, at}, ctx, t, cell) {
  const {plan} = data;
  font(ctx, t, 10);
  ctx.fillStyle = t.muted;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  const every = Math.max(plan.lanes, Math.ceil(34 / cell.w));
  for (let column = 0; column < plan.columns; column += every) ctx.fillText(String(column * plan.rows), at(column * plan.rows).x, TOP - 4);
  ctx.save();
  ctx.translate(12, TOP + (plan.rows * cell.h) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = "center";
  ctx.fillText(plan.rows * cell.h > 200 ? "tiles, in number order down each column" : "tiles", 0, 6);
  ctx.restore();
  if (cell.w > 26 && cell.h > 16 && data.tiles <= 256) {
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    for (let tile = 0; tile < data.tiles; tile++) {
      const {x, y, w, h: tall} = at(tile);
      ctx.fillStyle = "#000";
      ctx.globalAlpha = 0.55;
      ctx.fillRect(x + 2, y + 2, 20, 13);
      ctx.globalAlpha = 1;
      ctx.fillStyle = "#fff";
      ctx.fillText(String(tile), x + 12, y + 9, Math.min(w, tall * 2));
    }
  }
}

function legend({data}, ctx, t, {low, high, text, label, binary, y, w}) {
  for (let x = 0; x < w; x++) {
    ctx.fillStyle = rampColour(data.ramp, x / w);
    ctx.fillRect(LEFT + x, y, 1.5, 10);
  }
  font(ctx, t);
  ctx.textBaseline = "top";
  ctx.fillStyle = t.muted;
  const same = !(high > low), marks = same ? [high] : [low, ...ticks(low, high, 3, binary).filter((v) => v > low + (high - low) * 0.18 && v < high - (high - low) * 0.18), high];
  marks.forEach((value, i) => {
    const part = same ? 1 : (value - low) / (high - low);
    ctx.textAlign = part < 0.05 ? "left" : part > 0.95 ? "right" : "center";
    ctx.fillText(shortText(text(value)), LEFT + part * w, y + 14);
    ctx.fillRect(LEFT + Math.min(w - 1, part * w), y + 8, 1, 5);
  });
  ctx.textAlign = "left";
  ctx.fillText(clipText(ctx, label, ctx.canvas.clientWidth - LEFT - 8), LEFT, y + 33);
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const {plan, tiles} = view.data, {column, row} = cellOf(plan, tileOf(view));
    const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    const goal = event.key === "Home" ? 0 : event.key === "End" ? tiles - 1 : by ? tileAt(plan, column + by[0], row + by[1], tiles) : -2;
    if (goal === -2) return;
    event.preventDefault();
    if (goal >= 0) chooseTile(view, goal);
  });
}

function hover(view, show) {
  const {canvas} = view.ui;
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), tile = view.tileUnder(px, py);
    if (tile < 0) return show();
    const {values, text, label} = measured(view, ipuOf(view));
    return show(px, py, [`Tile ${tile}: ${text(values[tile])}`, label]);
  });
  canvas.addEventListener("pointerleave", () => show());
  canvas.addEventListener("click", (event) => {
    const tile = view.tileUnder(...place(event, canvas));
    if (tile >= 0) chooseTile(view, tile);
    canvas.focus();
  });
}

function furnish(view, model) {
  const {data, columns} = view;
  view.ui.say(data.sentence);
  if (view.measure === "variable" && !data.variable) view.measure = "total";
  const entries = [["total", "all bytes"], ...(columns.cycles ? [["cycles", "cycles busy"]] : []),
    ...(data.variable ? [["variable", `variable ${data.variable}`]] : []), ...data.categories.map(({label}, c) => [String(c), label])];
  const scaleFrom = h("label", {class: "wb-choice"}, h("input", {type: "checkbox", onchange: (event) => { view.fromZero = event.target.checked; view.canvas.redraw(); }}), h("span", {text: "scale from zero"}));
  scaleFrom.firstChild.checked = view.fromZero;
  view.ui.tools.replaceChildren(...[choice("colour", entries, view.measure, (value) => { view.measure = value; furnish(view, model); view.canvas.redraw(); }), scaleFrom, ipuChoice(view)].filter(Boolean));
  view.ui.setTable(() => tileTable(view));
  const extra = columns.cycles ? [`${cyclesText(columns.cycles[ipuOf(view) * data.tiles + tileOf(view)])} busy in one call of the program`] : [];
  tilePanel(view, extra);
}

async function render({model, el}) {
  const view = {selection: await selectionOf(model), measure: "total", fromZero: false};
  const load = () => { view.data = model.get("data"); view.columns = unpack(view.data.layout, model.get("buffer")); };
  load();
  const ui = (view.ui = frame(el, {title: "Tile map", sentence: view.data.sentence, side: true, height: Math.min(380, TOP + LEGEND + 8 + 64 * view.data.plan.rows)}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  layout(view, 600, 380);
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view, model);
  const offs = [
    watch(model, ["data"], () => {
      const before = view.data.variable;
      load();
      if (view.data.variable && view.data.variable !== before) view.measure = "variable";
      furnish(view, model);
      view.canvas.redraw();
    }),
    watch(view.selection, ["tile", "ipu"], () => { furnish(view, model); view.canvas.redraw(); }),
  ];
  return () => { offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
