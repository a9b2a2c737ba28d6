import {axisX, bytesText, button, cyclesText, font, frame, h, hatch, panZoom, percentText, place, scale, surface, swatch, table, tip, unpack, wholeText} from "../kit/kernel.js";
import {drawBins, secondsText, timeTicks} from "../kit/lanes.js";

const LEFT = 168, TOP = 6, BELOW = 42, GAP = 16;

// Height of an IPU's lane, and where each schedule's lanes stand: [{y, high}].
export function placesOf(schedules) {
  const lane = Math.max(4, Math.min(18, Math.floor(96 / Math.max(1, ...schedules.map(({ipus}) => ipus)))));
  let y = TOP;
  const places = schedules.map(({ipus}) => {
    const here = {y, high: Math.max(34, ipus * lane)};
    y += here.high + GAP;
    return here;
  });
  return {lane, places, bottom: y - GAP};
}

// Cycles by cause of all IPUs of a schedule as rows, the most first, and how they compare: [cause, cycles, share].
export function spentOf({spent, total_cycles: total, ipus}) {
  return Object.entries(spent).map(([cause, cycles]) => [cause, cycles, cycles / (total * ipus || 1)]).sort((a, b) => b[1] - a[1]);
}

// The lanes' bins of schedules as drawn: those of each, one IPU after the other.
export function lanesOf({schedules, bins, busy}, columns) {
  const free = new Float32Array(bins).fill(1); // nothing but bins is drawn
  return schedules.map((schedule, i) => {
    const data = {from: 0, to: schedule.total_cycles, bins, busy}, each = bins * busy.length;
    return {data, lanes: Array.from({length: schedule.ipus}, (_, ipu) => ({bins: columns[`bins${i}`].subarray(ipu * each, (ipu + 1) * each), free}))};
  });
}

const best = (schedules) => schedules.findIndex((each) => each.best);

function draw(view, ctx, width, height, t) {
  const {data, at, drawn} = view, {lane, places, bottom} = (view.spots = placesOf(data.schedules));
  const box = (view.box = {x: LEFT, y: TOP, w: width - LEFT - 16, h: bottom - TOP}), x = (view.x = scale(at.from, at.to, box.x, box.x + box.w));
  const paints = data.busy.map((cause) => hatch(ctx, cause.pattern, cause.colour, t.paper));
  data.schedules.forEach((schedule, i) => {
    const {y} = places[i], first = Math.max(box.x, x(0)), last = Math.min(box.x + box.w, x(schedule.total_cycles));
    if (i === view.chosen) { ctx.fillStyle = t.accent; ctx.fillRect(0, y, 3, places[i].high); }
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    font(ctx, t, 12, 600);
    ctx.fillStyle = t.text;
    ctx.fillText(schedule.title, 10, y + 1, LEFT - 20);
    font(ctx, t, 11);
    ctx.fillStyle = schedule.fits ? t.muted : t.bad;
    ctx.fillText(`${cyclesText(schedule.total_cycles)}${schedule.fits ? "" : ", does not fit"}`, 10, y + 18, LEFT - 20);
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.x, y, box.w, places[i].high);
    ctx.clip();
    drawn[i].lanes.forEach((each, ipu) => {
      const top = y + ipu * lane, high = lane - (lane > 6 ? 2 : 1);
      ctx.fillStyle = t.line;
      ctx.globalAlpha = 0.6;
      ctx.fillRect(first, top, Math.max(0, last - first), high);
      ctx.globalAlpha = 1;
      drawBins(ctx, drawn[i].data, each, {x, at: {from: Math.max(0, at.from), to: Math.min(schedule.total_cycles, at.to)}, y: top, high, paints});
    });
    ctx.restore();
    ctx.fillStyle = t.text;
    if (x(schedule.total_cycles) <= box.x + box.w + 1) ctx.fillRect(x(schedule.total_cycles), y - 2, 1.5, places[i].high + 2);
  });
  const [marks, text] = timeTicks(at.from, at.to, box.w);
  axisX(ctx, t, box, x, marks, text, `cycles since the start, one axis for all (1,000 cycles are ${secondsText(1000, data.clock_hz)})`);
}

function under(view, px, py) {
  const i = view.spots.places.findIndex(({y, high}) => py >= y - GAP / 2 && py < y + high + GAP / 2);
  return i < 0 ? null : {i, ipu: Math.floor((py - view.spots.places[i].y) / view.spots.lane), cycle: view.x.invert(px)};
}

function panel(view) {
  const {data, ui} = view, schedule = data.schedules[view.chosen], first = data.schedules[best(data.schedules)] ?? schedule;
  ui.panel.replaceChildren(h("h4", {text: schedule.title}), h("p", {text: `${cyclesText(schedule.total_cycles)}, ${(schedule.total_cycles / (first.total_cycles || 1)).toFixed(2)} × the time of ${first.title}`}),
    h("p", {text: `${percentText(schedule.bubble)} of the time idle; fullest tile ${bytesText(schedule.max_tile_bytes)}${schedule.fits ? "" : ", which does not fit"}; stash ${bytesText(schedule.stash_bytes)}`}),
    table([{label: "cause", as: "wb-words", text: ([cause]) => data.causes[cause].label, mark: ([cause]) => data.causes[cause]}, {label: "cycles of all IPUs", number: true, text: ([, cycles]) => wholeText(cycles)}, {label: "share", number: true, text: ([, , share]) => percentText(share), bar: ([, , share]) => share}], spentOf(schedule)),
    ...data.refused.map(({title, problem}) => h("p", {text: `${title}: ${problem}`})), h("p", {text: "Keys: ↑ ↓ a schedule, ← → pan, + − zoom, Home all."}));
  ui.announce(`${schedule.title}: ${cyclesText(schedule.total_cycles)}, ${percentText(schedule.bubble)} idle`);
}

function choose(view, i) {
  view.chosen = Math.max(0, Math.min(view.data.schedules.length - 1, i));
  panel(view);
  view.canvas.redraw();
}

function hear(view, show) {
  const {canvas} = view.ui;
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), found = under(view, px, py), schedule = found && view.data.schedules[found.i];
    if (!schedule || px < view.box.x || found.ipu < 0 || found.ipu >= schedule.ipus || found.cycle > schedule.total_cycles) return show();
    const {bins, busy} = view.data, bin = Math.min(bins - 1, Math.floor((found.cycle / schedule.total_cycles) * bins)), parts = busy.map(({label}, c) => [label, view.drawn[found.i].lanes[found.ipu].bins[bin * busy.length + c] / 255]).filter(([, part]) => part > 0.004);
    const idle = 1 - parts.reduce((sum, [, part]) => sum + part, 0);
    return show(px, py, [`${schedule.title}, IPU ${found.ipu}`, `about cycle ${wholeText(found.cycle)}`, ...parts.map(([label, part]) => `${label} ${percentText(part)}`), ...(idle > 0.004 ? [`idle ${percentText(idle)}`] : [])]);
  });
  canvas.addEventListener("pointerleave", () => show());
  canvas.addEventListener("keydown", (event) => {
    const by = {ArrowUp: -1, ArrowDown: 1}[event.key], pan = {ArrowLeft: -0.15, ArrowRight: 0.15}[event.key], wide = view.at.to - view.at.from;
    if (by) choose(view, view.chosen + by);
    else if (pan) view.zoom.set(view.at.from + pan * wide, view.at.to + pan * wide);
    else return view.zoom.key(event);
    return event.preventDefault();
  });
}

function furnish(view) {
  const {data, ui} = view, seen = new Set(data.schedules.flatMap(({spent}) => Object.keys(spent)));
  ui.say(data.sentence);
  ui.legend.replaceChildren(...Object.entries(data.causes).filter(([cause]) => seen.has(cause)).map(([, key]) => h("span", {class: "wb-key"}, swatch(key), h("span", {text: key.label}))));
  ui.setTable(() => table([{label: "schedule", text: (row) => row.title}, {label: "fits", text: (row) => (row.fits ? "yes" : "no")}, {label: "cycles of a call", number: true, text: (row) => wholeText(row.total_cycles)}, {label: "idle", number: true, text: (row) => percentText(row.bubble)},
    {label: "fullest tile (bytes)", number: true, text: (row) => wholeText(row.max_tile_bytes)}, {label: "stash (bytes)", number: true, text: (row) => wholeText(row.stash_bytes)}, ...Object.entries(data.causes).filter(([cause]) => seen.has(cause)).map(([cause, {label}]) => ({label: `${label} (cycles)`, number: true, text: (row) => wholeText(row.spent[cause] ?? 0)}))],
  data.schedules, {pick: (row) => choose(view, data.schedules.indexOf(row)), chosen: (row) => data.schedules.indexOf(row) === view.chosen}));
}

async function render({model, el}) {
  const data = model.get("data"), longest = Math.max(1, ...data.schedules.map(({total_cycles: total}) => total));
  const view = {data, drawn: lanesOf(data, unpack(data.layout, model.get("buffer"))), at: {from: 0, to: longest * 1.01}, chosen: Math.max(0, best(data.schedules))};
  const ui = (view.ui = frame(el, {title: "Schedules", sentence: data.sentence, side: true, height: placesOf(data.schedules).bottom + BELOW}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.spots = placesOf(data.schedules);
  view.zoom = panZoom(ui.canvas, view.at, {span: () => [0, longest * 1.01], least: () => longest / 100, area: () => view.box, moved: () => view.canvas.redraw(), pick: (px, py) => { const found = under(view, px, py); if (found) choose(view, found.i); }});
  ui.tools.replaceChildren(button("−", () => view.zoom.step(1 / 0.6), {title: "Zoom out, key: -", "aria-label": "Zoom out"}), button("+", () => view.zoom.step(0.6), {title: "Zoom in, key: +", "aria-label": "Zoom in"}), button("Show all", () => view.zoom.set(0, longest * 1.01), {title: "Key: Home"}));
  hear(view, tip(ui.plot));
  furnish(view);
  panel(view);
  return () => view.canvas.dispose();
}

export default {render};
