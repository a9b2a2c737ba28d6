import {axisX, button, clipText, cyclesText, font, frame, h, hatch, lastAtMost, panZoom, percentText, place, scale, select, selectionOf, surface, swatch, table, ticks, tip, unpack, watch, wholeText} from "./kernel.js";
import {drawBins, lanesOf, secondsText, share, tickTexts} from "./lanes.js";

const LEFT = 62, TOP = 8, BELOW = 42, WAIT_MS = 90;
const SHORT = {forward: "F", backward: "B", recompute: "R", update: "U"};

export const labelOf = (direction, microBatch) => `${SHORT[direction] ?? ""}${microBatch >= 0 ? microBatch : ""}`;

const laneHeight = (ipus) => Math.max(14, Math.min(58, Math.floor(420 / ipus)));

function draw(view, ctx, width, height, t) {
  const {data, at} = view, high = laneHeight(data.lanes.length), gap = high > 24 ? 8 : 3;
  const box = (view.box = {x: LEFT, y: TOP, w: width - LEFT - 14, h: data.lanes.length * (high + gap) - gap});
  const x = (view.x = scale(at.from, at.to, box.x, box.x + box.w)), bubble = hatch(ctx, "rising", t.line, t.muted, 0.5);
  data.lanes.forEach((ipu, i) => {
    const y = TOP + i * (high + gap);
    font(ctx, t, 12, 600);
    ctx.fillStyle = t.text;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillText(`IPU ${ipu}`, 8, y + high / 2);
    const from = Math.max(box.x, x(0)), to = Math.min(box.x + box.w, x(data.total_cycles));
    ctx.fillStyle = bubble;
    ctx.fillRect(from, y, to - from, high);
  });
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, 0, box.w, height);
  ctx.clip();
  const covers = data.from <= at.from && data.to >= at.to;
  for (const shown of covers ? [view] : [view.overview, view]) {
    shown.lanes.forEach((lane, i) => drawOther(view, shown, lane, ctx, TOP + i * (high + gap), high, t));
    drawBlocks(view, shown, ctx, high, gap, t);
  }
  ctx.restore();
  const marks = ticks(at.from, at.to, Math.min(10, box.w / 110)), texts = tickTexts(marks);
  axisX(ctx, t, box, x, marks, (value) => texts[marks.indexOf(value)], `cycles since the start (1,000 cycles are ${secondsText(1000, data.clock_hz)} at ${(data.clock_hz / 1e9).toFixed(2)} GHz)`);
}

// Work outside the stages (copies between IPUs, the host, updates) lies under the blocks, paler.
function drawOther(view, shown, lane, ctx, y, high, t) {
  const {x, at} = view, {data} = shown, paints = data.busy.map((cause) => hatch(ctx, cause.pattern, cause.colour, t.paper));
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, y, ctx.canvas.clientWidth, high);
  ctx.clip();
  drawBins(ctx, data, lane, {x, at, y, high, paints});
  for (let i = Math.max(0, lastAtMost(lane.start, at.from)); i < lane.start.length && lane.start[i] < at.to; i++) {
    ctx.fillStyle = paints[view.causes.get(lane.step[i])];
    ctx.fillRect(x(lane.start[i]), y, Math.max(0.5, x(lane.start[i] + lane.cycles[i]) - x(lane.start[i])), high);
  }
  ctx.restore();
}

function drawBlocks(view, shown, ctx, high, gap, t) {
  const {x, at} = view, {data, columns} = shown, chosen = view.selection.get("micro_batch");
  const paints = new Map();
  for (let i = 0; i < columns.block_start.length; i++) {
    const start = columns.block_start[i], end = start + columns.block_cycles[i];
    if (end < at.from || start > at.to) continue;
    const batch = columns.block_batch[i], direction = data.block_directions[columns.block_direction[i]];
    const colour = batch < 0 ? "#858d96" : data.batch_colours[batch % data.batch_colours.length], key = colour + direction.pattern;
    if (!paints.has(key)) paints.set(key, hatch(ctx, direction.pattern, colour, t.paper));
    const from = Math.max(-9, x(start)), wide = Math.max(0.7, Math.min(ctx.canvas.clientWidth + 9, x(end)) - from - (x(end) - x(start) > 3 ? 1 : 0));
    const y = TOP + columns.block_ipu[i] * (high + gap), other = chosen !== null && chosen !== undefined && chosen !== batch;
    ctx.fillStyle = t.paper;
    ctx.fillRect(from, y, wide, high);
    ctx.globalAlpha = other ? 0.28 : 1;
    ctx.fillStyle = paints.get(key);
    ctx.fillRect(from, y, wide, high);
    if (chosen === batch && !other) {
      ctx.strokeStyle = t.text;
      ctx.lineWidth = 2;
      ctx.strokeRect(from + 1, y + 1, Math.max(1, wide - 2), high - 2);
    }
    const text = labelOf(direction.name, batch);
    if (wide > 18 && high > 13) {
      font(ctx, t, 11, 600);
      const room = clipText(ctx, text, wide - 8), inner = ctx.measureText(room).width;
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillStyle = colour;
      ctx.fillRect(from + wide / 2 - inner / 2 - 3, y + high / 2 - 8, inner + 6, 16);
      ctx.fillStyle = "#fff";
      ctx.fillText(room, from + wide / 2, y + high / 2 + 0.5);
    }
    ctx.globalAlpha = 1;
  }
}

// The block under a place, or -1.
export function blockUnder({block_ipu: ipu, block_start: start, block_cycles: cycles}, lane, cycle) {
  for (let i = 0; i < start.length; i++) if (ipu[i] === lane && start[i] <= cycle && cycle < start[i] + cycles[i]) return i;
  return -1;
}

function under(view, px, py) {
  const high = laneHeight(view.data.lanes.length), gap = high > 24 ? 8 : 3, lane = Math.floor((py - TOP) / (high + gap));
  if (px < view.box.x || lane < 0 || lane >= view.data.lanes.length) return null;
  const cycle = view.x.invert(px), i = blockUnder(view.columns, lane, cycle);
  if (i >= 0) return {lane, i};
  const steps = view.lanes[lane], at = lastAtMost(steps.start, cycle), busy = at >= 0 && cycle < steps.start[at] + steps.cycles[at];
  return {lane, i, busy: busy ? view.data.busy[view.causes.get(steps.step[at])].label : steps.bins.length ? "work too short to be drawn, or a bubble" : "bubble: the IPU waits"};
}

function hover(view, show) {
  const {canvas} = view.ui;
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), found = under(view, px, py), {data, columns} = view;
    if (!found) return show();
    if (found.i < 0) return show(px, py, [`IPU ${found.lane}`, found.busy]);
    const {i} = found, batch = columns.block_batch[i];
    return show(px, py, [`Stage ${columns.block_stage[i]}, ${data.block_directions[columns.block_direction[i]].label}${batch < 0 ? "" : `, micro-batch ${batch}`}`,
      `${cyclesText(columns.block_cycles[i])} on IPU ${found.lane}`, `starts at cycle ${wholeText(columns.block_start[i])}`]);
  });
  canvas.addEventListener("pointerleave", () => show());
}

function pick(view, px, py) {
  const found = under(view, px, py), batch = found && found.i >= 0 ? view.columns.block_batch[found.i] : -1;
  const again = batch === view.selection.get("micro_batch");
  select(view.selection, {micro_batch: batch < 0 || again ? null : batch, ...(found ? {ipu: found.lane} : {})});
}

function idle(view) {
  const {data, at} = view, exact = data.visible[0] === at.from && data.visible[1] === at.to, whole = (at.to - at.from) * data.lanes.length || 1;
  if (exact) return {exact, whole, fraction: data.bubbles.fraction, rows: Object.entries(data.bubbles.by_cause)};
  const source = data.from <= at.from && data.to >= at.to ? view : view.overview;
  const busy = source.lanes.reduce((sum, lane) => sum + share(source.data, lane, (step) => view.causes.get(step), at.from, at.to).reduce((a, b) => a + b, 0), 0);
  return {exact, whole, fraction: Math.max(0, 1 - busy / whole), rows: [["idle", Math.max(0, whole - busy)]]};
}

function panel(view) {
  const {data, ui, at, columns} = view, {exact, whole, fraction, rows} = idle(view), chosen = view.selection.get("micro_batch");
  const text = `${exact || !view.live ? "" : "about "}${percentText(fraction)} of ${data.lanes.length} IPU${data.lanes.length > 1 ? "s" : ""} × ${cyclesText(at.to - at.from)} is waiting`;
  const mine = [...columns.block_batch.keys()].filter((i) => chosen !== null && chosen !== undefined && columns.block_batch[i] === chosen);
  const below = mine.length ? [h("h4", {text: `Micro-batch ${chosen}`}), h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": "Blocks of the micro-batch"}, table([
    {label: "IPU", number: true, text: (i) => String(columns.block_ipu[i])}, {label: "stage", number: true, text: (i) => String(columns.block_stage[i])},
    {label: "direction", text: (i) => data.block_directions[columns.block_direction[i]].label},
    {label: "starts at (cycles)", number: true, text: (i) => wholeText(columns.block_start[i])}, {label: "length (cycles)", number: true, text: (i) => wholeText(columns.block_cycles[i])},
  ], mine))] : [h("h4", {text: "Stages"}), table([
    {label: "stage", number: true, text: (row) => String(row.stage)}, {label: "IPU", number: true, text: (row) => String(row.ipu)},
    {label: "work (cycles)", number: true, text: (row) => wholeText(row.work), bar: (row) => row.work / (data.most_work || 1)},
    {label: "idle (cycles)", number: true, text: (row) => wholeText(row.idle_cycles)},
  ], data.stages), h("p", {text: "Click a block: its micro-batch lights up on every IPU."})];
  ui.panel.replaceChildren(h("h4", {text: "Bubbles"}), h("p", {text}), rows.length ? table([
    {label: "cause", text: ([cause]) => data.idle[cause]?.label ?? cause, mark: ([cause]) => data.idle[cause] ?? data.idle.idle_fill},
    {label: "cycles", number: true, text: ([, cycles]) => wholeText(cycles)}, {label: "share", number: true, text: ([, cycles]) => percentText(cycles / whole), bar: ([, cycles]) => cycles / whole},
  ], rows) : null, data.ideal && h("p", {text: data.ideal}), h("div", {class: "wb-about"}, ...below));
  if (mine.length) ui.announce(`Micro-batch ${chosen}: ${mine.length} blocks`);
}

function load(view, model) {
  const data = model.get("data"), columns = unpack(data.layout, model.get("buffer"));
  view.causes = new Map([...(view.causes ?? []), ...data.steps.id.map((id, i) => [id, data.steps.cause[i]])]);
  Object.assign(view, {data, columns, lanes: lanesOf(data, columns)});
  view.overview = data.from <= 0 && data.to >= data.total_cycles ? {data, columns, lanes: view.lanes} : view.overview ?? view;
}

function moved(view, model) {
  view.canvas?.redraw();
  clearTimeout(view.later);
  view.later = setTimeout(() => {
    panel(view);
    if (!view.live) return;
    model.set("window", [view.at.from, view.at.to]);
    model.save_changes();
  }, WAIT_MS);
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key], now = view.selection.get("micro_batch");
    if (event.key === "Escape") return select(view.selection, {micro_batch: null});
    if (!by) return view.zoom.key(event);
    const most = view.overview.columns.block_batch.reduce((a, b) => Math.max(a, b), -1);
    if (most >= 0) select(view.selection, {micro_batch: Math.max(0, Math.min(most, (now ?? (by > 0 ? -1 : most + 1)) + by))});
    return event.preventDefault();
  });
}

function furnish(view) {
  const {data, ui, columns} = view, high = laneHeight(data.lanes.length), grey = "#858d96";
  ui.say(data.sentence);
  ui.canvas.style.height = `${TOP + data.lanes.length * (high + (high > 24 ? 8 : 3)) + BELOW}px`;
  const used = new Set(view.overview.columns.block_direction), extra = data.busy.filter((_, c) => data.other.includes(c));
  const keys = [...data.block_directions.filter((_, i) => used.has(i)).map((key) => ({...key, colour: grey})), ...extra];
  ui.legend.replaceChildren(h("span", {class: "wb-key", text: "colour: micro-batch"}), ...keys.map((key) => h("span", {class: "wb-key"}, swatch(key), h("span", {text: key.label}))),
    h("span", {class: "wb-key"}, swatch({colour: "#d5d9de", pattern: "rising"}), h("span", {text: "bubble: the IPU waits"})),
    ...(data.too_many ? [h("span", {class: "wb-key", text: "too many blocks to draw: zoom in"})] : []));
  ui.setTable(() => table([
    {label: "IPU", number: true, text: (i) => String(columns.block_ipu[i])}, {label: "stage", number: true, text: (i) => String(columns.block_stage[i])},
    {label: "micro-batch", number: true, text: (i) => (columns.block_batch[i] < 0 ? "" : String(columns.block_batch[i]))},
    {label: "direction", text: (i) => data.block_directions[columns.block_direction[i]].label},
    {label: "starts at (cycles)", number: true, text: (i) => wholeText(columns.block_start[i])}, {label: "length (cycles)", number: true, text: (i) => wholeText(columns.block_cycles[i])},
  ], [...columns.block_start.keys()], {most: 300}));
  panel(view);
}

async function render({model, el}) {
  const view = {selection: await selectionOf(model), live: model.get("live"), at: {}};
  load(view, model);
  const {data} = view;
  Object.assign(view.at, {from: data.visible[0], to: data.visible[1]});
  const ui = (view.ui = frame(el, {title: "Pipeline", sentence: data.sentence, side: true}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.zoom = panZoom(ui.canvas, view.at, {span: () => [0, Math.max(1, data.total_cycles)], least: () => Math.min(20, data.total_cycles || 1), area: () => view.box,
    moved: () => moved(view, model), pick: (px, py) => pick(view, px, py)});
  ui.tools.replaceChildren(button("Show all", () => view.zoom.set(0, data.total_cycles), {title: "Key: Home"}));
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view);
  const offs = [watch(model, ["data"], () => { load(view, model); furnish(view); view.canvas.redraw(); }),
    watch(view.selection, ["micro_batch"], () => { panel(view); view.canvas.redraw(); })];
  return () => { clearTimeout(view.later); offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
