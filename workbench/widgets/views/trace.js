import {axisX, button, bytesText, clipText, cyclesText, font, frame, groupByPath, h, hatch, isUnder, lastAtMost, panZoom, percentText, place, scale, select, selectionOf, surface, swatch, table, ticks, tip, unpack, watch, wholeText, within} from "../kit/kernel.js";
import {causeCycles, drawBins, lanesOf, secondsText, tickTexts} from "../kit/lanes.js";

const LEFT = 62, TOP = 8, BELOW = 42, BANDS = 150;
const WAIT_MS = 90;

function geometry(view, width) {
  const ipus = view.data.lanes.length;
  const sizes = ipus > 6 ? {phase: 16, direction: 4, layer: 0, gap: 6} : {phase: ipus > 2 ? 34 : 64, direction: 8, layer: 18, gap: 14};
  const lane = sizes.phase + sizes.direction + sizes.layer + sizes.gap + 4;
  const bands = view.data.bands ? BANDS : 0;
  return {...sizes, lane, bands, height: TOP + ipus * lane + bands + BELOW, box: {x: LEFT, y: TOP, w: width - LEFT - 14, h: ipus * lane + bands - 8}};
}

function draw(view, ctx, width, height, t) {
  const sizes = geometry(view, width), {box} = sizes, {at} = view;
  view.box = box;
  const x = (view.x = scale(at.from, at.to, box.x, box.x + box.w));
  view.data.lanes.forEach((ipu, i) => {
    const y = TOP + i * sizes.lane;
    font(ctx, t, 12, 600);
    ctx.fillStyle = t.text;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillText(`IPU ${ipu}`, 8, y + sizes.phase / 2);
    if (sizes.layer) {
      font(ctx, t, 11);
      ctx.fillStyle = t.muted;
      ctx.fillText("layer", 8, y + sizes.phase + sizes.direction + 4 + sizes.layer / 2);
    }
    ctx.fillStyle = t.line;
    ctx.globalAlpha = 0.45;
    ctx.fillRect(box.x, y, box.w, sizes.phase);
    ctx.globalAlpha = 1;
  });
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, 0, box.w, height);
  ctx.clip();
  const covers = view.data.from <= at.from && view.data.to >= at.to;
  for (const shown of covers ? [view] : [view.overview, view]) {
    const from = Math.max(x(shown.data.from), box.x), to = Math.min(x(shown.data.to), box.x + box.w);
    if (shown === view && !covers) ctx.clearRect(from, 0, Math.max(0, to - from), box.h + TOP);
    shown.lanes.forEach((lane, i) => drawLane(view, shown, lane, ctx, TOP + i * sizes.lane, sizes, t));
  }
  if (sizes.bands) drawBands(view, ctx, TOP + view.data.lanes.length * sizes.lane, t);
  ctx.restore();
  const marks = ticks(at.from, at.to, Math.min(10, box.w / 110)), texts = tickTexts(marks);
  const clock = view.data.clock_hz;
  axisX(ctx, t, box, x, marks, (value) => texts[marks.indexOf(value)], `cycles since the start (1,000 cycles are ${secondsText(1000, clock)} at ${(clock / 1e9).toFixed(2)} GHz)`);
}

// Left edge and width in pixels, cut a little outside the canvas.
function across({x}, ctx, start, end) {
  const from = Math.max(-9, x(start));
  return [from, Math.min(ctx.canvas.clientWidth + 9, x(end)) - from];
}

function drawLane(view, shown, lane, ctx, y, sizes, t) {
  const {x} = view, {data} = shown;
  const paints = data.busy.map((cause) => hatch(ctx, cause.pattern, cause.colour, t.paper));
  drawBins(ctx, data, lane, {x, at: view.at, y, high: sizes.phase, paints});
  const first = Math.max(0, lastAtMost(lane.start, view.at.from)), chosen = view.selection.get("step"), batch = view.selection.get("micro_batch") ?? null, many = new Set(view.selection.get("steps"));
  for (let i = first; i < lane.start.length && lane.start[i] < view.at.to; i++) {
    const [from, wide] = across(view, ctx, lane.start[i], lane.start[i] + lane.cycles[i]);
    const info = shown.info.get(lane.step[i]);
    const lit = many.has(lane.step[i]);
    ctx.globalAlpha = (batch === null || lane.batch?.[i] === batch) && (lit || !many.size) ? 1 : 0.25;
    ctx.fillStyle = paints[info.cause];
    ctx.fillRect(from, y, Math.max(0.6, wide - (wide > 4 ? 1 : 0)), sizes.phase);
    if (wide > 44 && sizes.phase > 20) caption(ctx, t, within(info.name, info.layer), Math.max(from, view.box.x) + 5, y + sizes.phase / 2, from + wide - Math.max(from, view.box.x) - 10, data.busy[info.cause].colour);
    if (lane.step[i] === chosen || lit) {
      ctx.strokeStyle = t.text;
      ctx.lineWidth = lit ? 1 : 2;
      ctx.strokeRect(from, y - 1, Math.max(2, wide - 1), sizes.phase + 2);
    }
  }
  ctx.globalAlpha = 1;
  drawLayers(view, shown, lane, ctx, y + sizes.phase + 2, sizes, t);
}

function caption(ctx, t, text, x, y, room, ground) {
  font(ctx, t, 11);
  const shown = clipText(ctx, text, room);
  if (!shown) return;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillStyle = ground;
  ctx.fillRect(x - 3, y - 8, ctx.measureText(shown).width + 6, 16);
  ctx.fillStyle = "#fff";
  ctx.fillText(shown, x, y + 0.5);
}

function drawLayers(view, shown, lane, ctx, y, sizes, t) {
  const {x} = view, {data} = shown, chosen = view.selection.get("layer");
  const first = Math.max(0, lastAtMost(lane.layerStart, view.at.from));
  font(ctx, t, 10.5);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  const stretches = [];
  for (let i = first; i < lane.layerStart.length && lane.layerStart[i] < view.at.to; i++) {
    const end = lane.layerStart[i] + lane.layerCycles[i], [from, wide] = across(view, ctx, lane.layerStart[i], end);
    const direction = data.directions[lane.direction[i]], name = data.layers[lane.layer[i]];
    ctx.fillStyle = hatch(ctx, direction.pattern, direction.colour, t.paper);
    ctx.fillRect(from, y, Math.max(0.6, wide - (wide > 3 ? 1 : 0)), sizes.direction);
    if (sizes.layer && name) stretches.push([lane.layerStart[i], end, name]);
  }
  const pixel = x.invert(1) - x.invert(0);
  groupByPath(stretches, view.box.w / 30, 3 * pixel).forEach(([first, last, name], i) => {
    const [from, wide] = across(view, ctx, first, last);
    ctx.globalAlpha = 0.14 + 0.12 * (i % 2);
    ctx.fillStyle = t.muted;
    ctx.fillRect(from, y + sizes.direction + 2, Math.max(0.6, wide - (wide > 3 ? 1 : 0)), sizes.layer);
    ctx.globalAlpha = 1;
    ctx.fillStyle = t.text;
    const start = Math.max(from, view.box.x);
    if (wide > 24) ctx.fillText(clipText(ctx, name, from + wide - start - 8), start + 4, y + sizes.direction + 2.5 + sizes.layer / 2);
  });
  ctx.fillStyle = t.accent;
  for (const [first, last, name] of stretches) {
    if (!isUnder(name, chosen)) continue;
    const [from, wide] = across(view, ctx, first, last);
    ctx.fillRect(from, y + sizes.direction + sizes.layer - 1, Math.max(1.5, wide), 3);
  }
}

// Every tile's own cycles inside the steps in view; what is left of a step is waiting for the slowest tile.
function drawBands(view, ctx, y, t) {
  const {data, columns, x} = view, high = BANDS - 34, row = high / data.tiles;
  font(ctx, t, 11);
  ctx.fillStyle = t.muted;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.fillText(`each of the ${wholeText(data.tiles)} tiles of IPU ${data.bands.ipu}, tile 0 on top; blank is waiting for the slowest`, view.box.x, y);
  for (let i = 0; i < columns.band_low.length; i++) {
    const from = x(columns.band_start[i]), wide = x(columns.band_start[i] + columns.band_cycles[i]) - from, cause = data.busy[columns.band_cause[i]];
    ctx.fillStyle = hatch(ctx, cause.pattern, cause.colour, t.paper);
    ctx.fillRect(from, y + 18 + columns.band_low[i] * row, Math.max(0.6, wide), Math.max(0.5, (columns.band_high[i] - columns.band_low[i] + 1) * row));
  }
  const tile = view.selection.get("tile");
  if (tile === null || tile === undefined) return;
  ctx.fillStyle = t.text;
  ctx.fillRect(view.box.x, y + 17.5 + (tile + 0.5) * row, view.box.w, 1);
}

function blockAt(view, px, py) {
  const sizes = geometry(view, view.ui.canvas.clientWidth), row = Math.floor((py - TOP) / sizes.lane), lane = view.lanes[row];
  if (!lane || px < view.box.x) return null;
  const cycle = view.x.invert(px), i = lastAtMost(lane.start, cycle), inside = py - TOP - row * sizes.lane;
  const layer = lastAtMost(lane.layerStart, cycle), inLayer = layer >= 0 && cycle < lane.layerStart[layer] + lane.layerCycles[layer];
  const found = {lane, cycle, layer: inLayer ? view.data.layers[lane.layer[layer]] : "", direction: inLayer ? view.data.directions[lane.direction[layer]].label : "", onLayer: inside > sizes.phase + sizes.direction};
  const reach = 2 * (view.x.invert(1) - view.x.invert(0));
  return i >= 0 && cycle < lane.start[i] + Math.max(lane.cycles[i], reach) ? {...found, i, info: infoOf(view, lane, i)} : found;
}

// What a block is: of a step in a shared body, with the name, layer and direction that it runs for here.
function infoOf({data, info}, lane, i) {
  const own = info.get(lane.step[i]), at = lastAtMost(lane.layerStart, lane.start[i]);
  if (at < 0) return own;
  const layer = data.layers[lane.layer[at]], direction = data.directions[lane.direction[at]].label;
  const word = own.layer ? within(own.name, own.layer) : own.name;
  return {...own, layer, direction, name: layer === own.layer ? own.name : layer && own.layer ? `${layer}/${word}` : word};
}

function about(view, block) {
  const {info, lane, i} = block, {data} = view;
  return [`${data.busy[info.cause].label}: ${cyclesText(info.cycles)}, ${secondsText(info.cycles, data.clock_hz)}`, `starts at cycle ${wholeText(lane.start[i])}`,
    lane.batch?.[i] >= 0 && `micro-batch ${lane.batch[i]}`, info.layer && `layer ${info.layer}${info.direction ? `, ${info.direction}` : ""}`, info.active > 0 && `${wholeText(info.active)} tiles active, tile balance ${percentText(info.balance)}`,
    (info.sent > 0 || info.received > 0) && `${bytesText(info.sent)} sent, ${bytesText(info.received)} received`].filter(Boolean);
}

function pick(view, px, py) {
  const block = blockAt(view, px, py);
  if (!block) return;
  if (block.onLayer || block.i === undefined) {
    if (block.layer) select(view.selection, {layer: block.layer, ipu: block.lane.ipu});
    return;
  }
  view.block = block;
  select(view.selection, {step: block.lane.step[block.i], ipu: block.lane.ipu, layer: block.info.layer || null, position: null});
}

function hover(view, show) {
  const {canvas} = view.ui;
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), block = blockAt(view, px, py);
    if (!block) return show();
    if (block.i !== undefined && !block.onLayer) return show(px, py, [block.info.name, ...about(view, block)]);
    if (!block.layer) return show();
    return show(px, py, [block.layer, block.direction, block.onLayer ? "" : "many short steps: zoom in"].filter(Boolean));
  });
  canvas.addEventListener("pointerleave", () => show());
}

// Cycles by cause of the visible range, all IPUs together; exact when the kernel has answered for this range.
function proportions(view) {
  const {data, at} = view, exact = data.visible[0] === at.from && data.visible[1] === at.to, source = data.from <= at.from && data.to >= at.to ? view : view.overview;
  const rows = new Map();
  if (exact) Object.entries(data.proportions).forEach(([cause, cycles]) => rows.set(cause, cycles));
  else {
    source.lanes.forEach((lane) => causeCycles(source.data, lane, (step) => source.info.get(step).cause, at.from, at.to)
      .forEach((cycles, c) => rows.set(data.busy_names[c], (rows.get(data.busy_names[c]) ?? 0) + cycles)));
    const idle = (at.to - at.from) * data.lanes.length - [...rows.values()].reduce((a, b) => a + b, 0);
    if (idle > 0.5) rows.set("idle", idle);
  }
  return {exact, rows: [...rows].filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1])};
}

function panel(view) {
  const {data, ui, at} = view, {exact, rows} = proportions(view), whole = (at.to - at.from) * data.lanes.length || 1;
  const step = view.selection.get("step"), info = view.info.get(step) ?? view.overview.info.get(step), block = view.block;
  const range = at.from === 0 && at.to === data.total_cycles ? "The whole program" : `Cycles ${wholeText(at.from)} to ${wholeText(at.to)}`;
  const said = `${cyclesText(at.to - at.from)} (${secondsText(at.to - at.from, data.clock_hz)})${data.lanes.length > 1 ? ` on ${data.lanes.length} IPUs` : ""}${exact || !view.live ? "" : ", about"}`;
  const chosen = info && [h("h4", {text: info.name}), ...(block && block.lane.step[block.i] === step ? about(view, block) : [`${data.busy[info.cause].label}: ${cyclesText(info.cycles)}`]).map((text) => h("p", {text}))];
  ui.panel.replaceChildren(h("h4", {text: range}), h("p", {text: said}), table([
    {label: "cause", text: ([cause]) => data.paints[cause]?.label ?? cause, mark: ([cause]) => data.paints[cause] ?? data.paints.idle_wait_stage},
    {label: "cycles", number: true, text: ([, cycles]) => wholeText(cycles)},
    {label: "share", number: true, text: ([, cycles]) => percentText(cycles / whole), bar: ([, cycles]) => cycles / whole},
  ], rows), h("div", {class: "wb-about"}, ...(chosen || [h("p", {text: "Click a block for its numbers. Zoom in until single tiles are drawn."})])));
}

function load(view, model) {
  const data = model.get("data"), columns = unpack(data.layout, model.get("buffer")), steps = data.steps;
  const info = new Map(steps.id.map((id, i) => [id, {name: data.names[steps.name[i]], layer: data.layers[steps.layer[i]], direction: data.directions[steps.direction[i]].label,
    cause: steps.cause[i], cycles: steps.cycles[i], sent: steps.sent[i], received: steps.received[i], active: steps.active[i], balance: steps.balance[i]}]));
  Object.assign(view, {data, columns, info, lanes: lanesOf(data, columns)});
  view.overview = data.from <= 0 && data.to >= data.total_cycles ? {data, columns, info, lanes: view.lanes} : view.overview ?? view;
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
    const by = {ArrowLeft: -0.15, ArrowRight: 0.15, PageUp: -0.9, PageDown: 0.9}[event.key];
    if (!by) return view.zoom.key(event);
    const wide = view.at.to - view.at.from;
    view.zoom.set(view.at.from + by * wide, view.at.to + by * wide);
    return event.preventDefault();
  });
}

function furnish(view) {
  const {data, ui} = view, {height} = geometry(view, 900);
  ui.say(data.sentence);
  ui.canvas.style.height = `${height}px`;
  const directions = data.directions.filter((_, i) => view.lanes.some((lane) => lane.direction.includes(i)));
  const seen = view.overview.data.by_cause;
  ui.legend.replaceChildren(...[...data.busy.filter((_, c) => seen[data.busy_names[c]]), ...directions].map((key) => h("span", {class: "wb-key"}, swatch(key), h("span", {text: key.label}))));
  ui.setTable(() => table([
    {label: "IPU", number: true, text: ([ipu]) => String(ipu)}, {label: "step", text: ([, , info]) => info.name}, {label: "layer", text: ([, , info]) => info.layer},
    {label: "cause", text: ([, , info]) => data.busy[info.cause].label}, {label: "starts at (cycles)", number: true, text: ([, start]) => wholeText(start)},
    {label: "length (cycles)", number: true, text: ([, , info]) => wholeText(info.cycles)},
  ], view.lanes.flatMap((lane) => [...lane.start].map((start, i) => [lane.ipu, start, infoOf(view, lane, i)])), {caption: "The blocks in view that are long enough to be drawn", most: 300}));
  panel(view);
}

async function render({model, el}) {
  const view = {selection: await selectionOf(model), live: model.get("live"), at: {}};
  load(view, model);
  const {data} = view;
  Object.assign(view.at, {from: data.visible[0], to: data.visible[1]});
  if (!data.total_cycles) {
    el.replaceChildren(h("section", {class: "wb"}, h("p", {class: "wb-empty", text: "Nothing takes time in this program."})));
    return undefined;
  }
  const ui = (view.ui = frame(el, {title: "Trace", sentence: data.sentence, side: true}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.zoom = panZoom(ui.canvas, view.at, {span: () => [0, data.total_cycles], least: () => Math.min(20, data.total_cycles), area: () => view.box,
    moved: () => moved(view, model), pick: (px, py) => pick(view, px, py)});
  ui.tools.replaceChildren(button("−", () => view.zoom.step(1 / 0.6), {title: "Zoom out, key: -", "aria-label": "Zoom out"}),
    button("+", () => view.zoom.step(0.6), {title: "Zoom in, key: +", "aria-label": "Zoom in"}),
    button("Show all", () => view.zoom.set(0, data.total_cycles), {title: "Key: Home"}));
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view);
  const offs = [watch(model, ["data"], () => { load(view, model); furnish(view); view.canvas.redraw(); }),
    watch(view.selection, ["step", "steps", "layer", "tile", "micro_batch"], () => { panel(view); view.canvas.redraw(); })];
  return () => { clearTimeout(view.later); offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
