import {axisX, axisY, countText, font, frame, h, isUnder, percentText, place, scale, select, selectionOf, shortText, surface, swatch, tip, unpack, watch, wholeText} from "../kit/kernel.js";
import {grid} from "../kit/grid.js";

const BOX = {x: 84, y: 16, right: 16, below: 44};

// Powers of ten that hold all positive, finite numbers, with room: [low, high] as exponents.
export function decades(values, endless = Infinity) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (value > 0 && value < endless) { low = Math.min(low, Math.log10(value)); high = Math.max(high, Math.log10(value)); }
  return low > high ? [0, 1] : [low - 0.2, high + 0.2];
}

// The point nearest to a place, within 14 pixels; -1 for none.
export function nearest(points, px, py) {
  let best = -1, least = 14 * 14;
  points.forEach(([x, y], i) => { const far = (x - px) ** 2 + (y - py) ** 2; if (far < least) { least = far; best = i; } });
  return best;
}

const whole = ([low, high]) => Array.from({length: Math.max(0, Math.floor(high) - Math.ceil(low) + 1)}, (_, i) => Math.ceil(low) + i);
const powerText = (exponent) => (exponent < 0 ? shortText((10 ** exponent).toFixed(-exponent)) : shortText(countText(10 ** exponent)));

// Of places for a word, [x, y, wide, high], the first with fewest points in it or near.
export function freest(places, points, near = 9) {
  const covered = ([x, y, wide, high]) => points.filter(([px, py]) => px > x - near && px < x + wide + near && py > y - near && py < y + high + near).length;
  return places.reduce((best, place) => (covered(place) < covered(best) ? place : best));
}

// Names a line where the fewest points lie, over them: `places` are corners at which it may stand.
function nameLine(ctx, t, {points, text, colour, places}) {
  const wide = ctx.measureText(text).width, [x, y] = freest(places.map(([left, top, right]) => [right === undefined ? left : right - wide, top, wide, 12]), points);
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.lineJoin = "round";
  ctx.lineWidth = 3;
  ctx.strokeStyle = t.paper;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y);
}

// From the middle of a stretch to its ends.
const ALONG = [0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82, 0.1, 0.9];

function draw(view, ctx, width, height, t) {
  const {data, columns} = view, {exchange, host} = data.ceilings, peaks = Object.entries(data.peaks), compute = Math.max(...peaks.map(([, peak]) => peak)), box = {x: BOX.x, y: BOX.y, w: width - BOX.x - BOX.right, h: height - BOX.y - BOX.below};
  const ridge = compute / exchange, across = decades([...columns.intensity, ridge / 10, ridge * 10], data.endless), up = decades([...columns.rate, compute * 1.2, compute / 100]);
  const x = scale(...across, box.x, box.x + box.w - 24), y = scale(...up, box.y + box.h, box.y), edge = box.x + box.w - 10;
  axisY(ctx, t, box, y, whole(up), powerText, "FLOP/s of one IPU");
  axisX(ctx, t, box, x, whole(across), powerText, "FLOP per exchanged byte; at the right edge: nothing is exchanged");
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, box.y, box.w, box.h);
  ctx.clip();
  const names = [];
  for (const [slope, colour, dash, text] of [[exchange, t.bad, [], "exchange"], [host, t.muted, [5, 4], "host"]]) {
    const from = across[0], corner = Math.log10(compute / slope);
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.6;
    ctx.setLineDash(dash);
    ctx.beginPath();
    ctx.moveTo(x(from), y(Math.log10(slope) + from));
    ctx.lineTo(x(corner), y(Math.log10(compute)));
    ctx.stroke();
    // A float32 product never passes the lower of two ceilings.
    if (slope === exchange) for (const [, peak] of peaks) { ctx.beginPath(); ctx.moveTo(x(Math.log10(peak / exchange)), y(Math.log10(peak))); ctx.lineTo(box.x + box.w, y(Math.log10(peak))); ctx.stroke(); }
    const begin = Math.max(from, up[0] - Math.log10(slope)), end = Math.min(slope === exchange ? Math.log10(Math.min(...peaks.map(([, peak]) => peak)) / slope) - 0.2 : corner, across[1]);
    const spots = ALONG.map((part) => begin + (end - begin) * part).map((at) => [x(at) + 8, y(Math.log10(slope) + at) + 6]);
    names.push({text, colour, places: spots});
  }
  ctx.setLineDash([]);
  for (const [type, peak] of peaks) names.push({text: `compute in ${type}`, colour: t.bad, places: [0, 60, 120].map((by) => [0, y(Math.log10(peak)) + 5, box.x + box.w - 6 - by])});
  view.points = Array.from(columns.rate, (rate, i) => [columns.intensity[i] >= data.endless ? edge : x(Math.log10(columns.intensity[i])), y(Math.log10(rate))]);
  const layer = view.selection.get("layer"), most = columns.flops.reduce((a, b) => Math.max(a, b), 1);
  view.points.forEach(([px, py], i) => {
    const radius = 2.5 + 5 * Math.sqrt(columns.flops[i] / most), mine = i === view.chosen || isUnder(data.strings[columns.layer[i]], layer);
    ctx.globalAlpha = mine ? 1 : 0.6;
    ctx.fillStyle = data.directions[columns.direction[i]].colour;
    ctx.beginPath();
    if (columns.exchange[i]) ctx.arc(px, py, radius, 0, 2 * Math.PI);
    else ctx.rect(px - radius, py - radius, 2 * radius, 2 * radius);
    ctx.fill();
    if (mine) { ctx.strokeStyle = t.text; ctx.lineWidth = 2; ctx.stroke(); }
  });
  ctx.globalAlpha = 1;
  font(ctx, t, 11);
  for (const name of names) nameLine(ctx, t, {points: view.points, ...name});
  ctx.restore();
}

const typeOf = ({data, columns}, i) => data.strings[columns.type[i]];
const nameOf = ({data, columns}, i) => data.strings[columns.name[i]];
const lines = (view, i, {columns, data} = view) => [`${countText(columns.rate[i])} FLOP/s, ${percentText(columns.rate[i] / columns.ceiling[i])} of its ceiling, ${percentText(columns.rate[i] / data.peaks[typeOf(view, i)])} of the ${typeOf(view, i)} peak`,
  `${countText(columns.flops[i])} FLOP, ${wholeText(columns.exchanged_bytes[i])} bytes exchanged: under the ceiling of ${columns.exchange[i] ? "exchange" : "compute"}`];

function choose(view, i) {
  const {data, columns, ui} = view;
  if (!(i >= 0 && i < columns.rate.length)) return;
  view.chosen = i;
  select(view.selection, {layer: data.strings[columns.layer[i]] || null});
  ui.panel.firstChild.textContent = nameOf(view, i);
  ui.panel.children[1].textContent = lines(view, i).join("; ");
  ui.announce(`${nameOf(view, i)}: ${lines(view, i).join("; ")}`);
  view.list.refresh();
  view.canvas.redraw();
}

async function render({model, el}) {
  const view = {selection: await selectionOf(model), data: model.get("data"), chosen: -1, points: []}, {data} = view;
  view.columns = unpack(data.layout, model.get("buffer"));
  const {columns} = view, ui = (view.ui = frame(el, {title: "Roofline", sentence: data.sentence, side: true, height: 400})), order = [...columns.rate.keys()].sort((a, b) => columns.flops[b] - columns.flops[a]);
  view.list = grid({label: "Operators under their ceilings", rows: order, high: 290, sort: {column: 1, down: true}, chosen: (i) => i === view.chosen, pick: (i) => choose(view, i),
    columns: [{label: "operator", wide: "52%", text: (i) => nameOf(view, i)}, {label: "FLOP", number: true, value: (i) => columns.flops[i], text: (i) => countText(columns.flops[i])},
      {label: "of ceiling", number: true, value: (i) => columns.rate[i] / columns.ceiling[i], text: (i) => percentText(columns.rate[i] / columns.ceiling[i])}]});
  ui.panel.replaceChildren(h("h4", {text: "Choose a point or a row"}), h("p", {text: "The larger a point, the more work; circles lie under the ceiling of exchange, squares under that of compute."}), view.list.root);
  ui.legend.replaceChildren(...data.directions.map((paint) => h("span", {class: "wb-key"}, swatch({...paint, pattern: ""}), h("span", {text: paint.label}))));
  ui.setTable(() => grid({label: "Points", rows: order, columns: [{label: "operator", wide: "30%", text: (i) => nameOf(view, i)}, ...["flops", "exchanged_bytes", "intensity", "rate", "ceiling"].map((name) => ({label: name.replaceAll("_", " "), number: true, value: (i) => columns[name][i],
    text: (i) => (columns[name][i] >= data.endless ? "∞" : columns[name][i] < 1000 ? shortText(columns[name][i].toFixed(2)) : wholeText(columns[name][i]))})), {label: "ceiling of", text: (i) => (columns.exchange[i] ? "exchange" : "compute")}], sort: {column: 1, down: true}}).root);
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  const show = tip(ui.plot);
  ui.canvas.addEventListener("pointermove", (event) => { const [px, py] = place(event, ui.canvas), i = nearest(view.points, px, py); if (i < 0) show(); else show(px, py, [nameOf(view, i), ...lines(view, i)]); });
  ui.canvas.addEventListener("pointerleave", () => show());
  ui.canvas.addEventListener("click", (event) => { ui.canvas.focus(); choose(view, nearest(view.points, ...place(event, ui.canvas))); });
  ui.canvas.addEventListener("keydown", (event) => {
    const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!by || !order.length) return;
    event.preventDefault();
    choose(view, order[Math.max(0, Math.min(order.length - 1, order.indexOf(view.chosen) + by))]);
  });
  const off = watch(view.selection, ["layer"], () => view.canvas.redraw());
  return () => { off(); view.canvas.dispose(); };
}

export default {render};
