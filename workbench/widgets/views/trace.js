import {axisX, button, bytesText, clipText, cyclesText, font, frame, h, hatch, isUnder, lastAtMost, panZoom, percentText, place, scale, select, selectionOf, shortText, surface, swatch, table, textLines, tip, unpack, watch, wholeText, within, thingsText} from "../kit/kernel.js";
import {causeCycles, drawBins, lanesOf, secondsText, timeTicks} from "../kit/lanes.js";
import {gripOf, placeGrips} from "../kit/marks.js";
import {LEVEL, MAP, drags, drawLevels, drawMap, drawMarks, edgeNear, levelsOf, nextOf, rangeOf} from "./trace_parts.js";

const LEFT = 62, TOP = MAP + 24, BELOW = 42, BANDS = 150, LINE = 14, SAID = 2 * LINE + 4, MOST = 640, FEW = 6;
const WAIT_MS = 50;

// Many lanes are scrolled between the small picture and the axis, which stay: the drawing is never higher than MOST.
export function geometry(view, width) {
  const ipus = view.data.lanes.length;
  const levels = ipus > FEW ? 0 : ipus > 2 ? 1 : 3;
  const sizes = ipus > FEW ? {phase: 16, direction: 4, gap: 6} : {phase: ipus > 2 ? 34 : 64, direction: 8, gap: 14};
  Object.assign(sizes, {levels, layer: levels * LEVEL});
  const low = sizes.phase + sizes.direction + sizes.layer + sizes.gap + 4;
  // Of few IPUs the drawing is as high as its lanes and what is said of tiles, and grows with these; of many a place is kept for them.
  const tiles = view.data.bands || (view.live && ipus > FEW) ? BANDS : view.live ? SAID : 0;
  const height = Math.min(TOP + ipus * low + tiles + BELOW, MOST), left = height - TOP - ipus * low - BELOW;
  // Of thin lanes some, or all as higher ones, have that place until tiles are drawn there; the lines that are said of it stay.
  const lent = tiles && !view.data.bands && ipus > FEW, more = lent ? Math.max(0, Math.floor((left - SAID) / ipus)) : 0, lane = low + more;
  sizes.phase += more;
  const bands = lent ? Math.max(left - more * ipus, SAID) : view.data.bands || left === tiles ? tiles : Math.max(left, SAID);
  const room = height - TOP - bands - BELOW, hidden = Math.max(0, ipus * lane - room);
  return {...sizes, lane, tiles, all: height + hidden, height, room, seen: Math.min(ipus, Math.floor(room / lane)), scrolled: Math.min(hidden, view.lanesAt?.scrollTop ?? 0), box: {x: LEFT, y: TOP, w: width - LEFT - 14, h: room + bands - 8}};
}

// How far lanes have to be scrolled so that one of them is seen whole.
export const scrolledTo = ({scrolled, lane, room}, place) => Math.max((place + 1) * lane - room, Math.min(place * lane, scrolled));

function draw(view, ctx, width, height, t) {
  const sizes = geometry(view, width), {box} = sizes, {at} = view;
  view.box = box;
  const x = (view.x = scale(at.from, at.to, box.x, box.x + box.w));
  const laneTop = (i) => TOP - sizes.scrolled + i * sizes.lane;
  const onLanes = (left, paint) => { ctx.save(); ctx.beginPath(); ctx.rect(left, TOP - 2, box.x + box.w - left, sizes.room - 6); ctx.clip(); paint(); ctx.restore(); };
  onLanes(0, () => view.data.lanes.forEach((ipu, i) => {
    const y = laneTop(i);
    font(ctx, t, 12, 600);
    ctx.fillStyle = t.text;
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    ctx.fillText(`IPU ${ipu}`, 8, y + sizes.phase / 2);
    if (sizes.layer) {
      font(ctx, t, 11);
      ctx.fillStyle = t.muted;
      ctx.fillText("layers", 8, y + sizes.phase + sizes.direction + 4 + LEVEL / 2);
    }
    ctx.fillStyle = t.line;
    ctx.globalAlpha = 0.45;
    ctx.fillRect(box.x, y, box.w, sizes.phase);
    ctx.globalAlpha = 1;
  }));
  if (sizes.all > sizes.height) {
    font(ctx, t, 11);
    ctx.fillStyle = t.muted;
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    [`${sizes.seen} of ${view.data.lanes.length}`, "↕ scroll"].forEach((text, i) => ctx.fillText(text, 8, TOP + sizes.room + LINE * i));
  }
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, 0, box.w, height);
  ctx.clip();
  const covers = view.data.from <= at.from && view.data.to >= at.to;
  for (const shown of covers ? [view] : [view.overview, view]) {
    const from = Math.max(x(shown.data.from), box.x), to = Math.min(x(shown.data.to), box.x + box.w);
    if (shown === view && !covers) ctx.clearRect(from, 0, Math.max(0, to - from), box.h + TOP);
    onLanes(box.x, () => shown.lanes.forEach((lane, i) => { if (laneTop(i) > TOP - sizes.lane && laneTop(i) < TOP + sizes.room) drawLane(view, shown, lane, ctx, laneTop(i), sizes, t); }));
  }
  if (sizes.tiles) drawBands(view, ctx, TOP + sizes.room, t);
  drawMarks(view, ctx, t, MAP + 4, box.y + box.h);
  if (view.stretch) { ctx.fillStyle = t.accent; ctx.fillRect(x(view.stretch[0]), TOP - 6, Math.max(3, x(view.stretch[1]) - x(view.stretch[0])), 3); }
  ctx.restore();
  drawMap(view, ctx, MAP, t);
  placeGrips(view, view.data.total_cycles);
  const [marks, text] = timeTicks(at.from, at.to, box.w);
  const clock = view.data.clock_hz;
  axisX(ctx, t, box, x, marks, text, `cycles since the start (1,000 cycles are ${secondsText(1000, clock)} at ${(clock / 1e9).toFixed(2)} GHz)`);
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
  if (sizes.levels) drawLevels(view, levelsOf(stretches, sizes.levels, view.box.w / 14, 3 * pixel), ctx, y + sizes.direction + 2, (first, last) => across(view, ctx, first, last), t);
  ctx.fillStyle = t.accent;
  for (const [first, last, name] of stretches) {
    if (!isUnder(name, chosen)) continue;
    const [from, wide] = across(view, ctx, first, last);
    ctx.fillRect(from, y + sizes.direction + sizes.layer + 1, Math.max(1.5, wide), 3);
  }
}

// Every tile's own cycles inside the steps in view; what is left of a step is waiting for the slowest tile.
function drawBands(view, ctx, y, t) {
  const {data, columns, x} = view, said = data.bands
    ? `${data.tiles === 1 ? "the tile" : `each of the ${wholeText(data.tiles)} tiles`} of IPU ${data.bands.ipu}${data.tiles === 1 ? "" : ", tile 0 on top"}; blank is waiting for the slowest`
    : `Zoom in to ${data.most_steps} steps or fewer: here is then drawn how long each tile of IPU ${data.tiles_of} is busy in each.`;
  font(ctx, t, 11);
  ctx.fillStyle = t.muted;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  const lines = textLines(ctx, said, view.box.w), top = y + 4 + LINE * lines.length, row = (BANDS - 20 - LINE * lines.length) / data.tiles;
  lines.forEach((line, i) => ctx.fillText(line, view.box.x, y + LINE * i));
  if (!data.bands) return;
  for (let i = 0; i < columns.band_low.length; i++) {
    const from = x(columns.band_start[i]), wide = x(columns.band_start[i] + columns.band_cycles[i]) - from, cause = data.busy[columns.band_cause[i]];
    ctx.fillStyle = hatch(ctx, cause.pattern, cause.colour, t.paper);
    ctx.fillRect(from, top + columns.band_low[i] * row, Math.max(0.6, wide), Math.max(0.5, (columns.band_high[i] - columns.band_low[i] + 1) * row));
  }
  const tile = view.selection.get("tile");
  if (tile === null || tile === undefined) return;
  ctx.fillStyle = t.text;
  ctx.fillRect(view.box.x, top - 0.5 + (tile + 0.5) * row, view.box.w, 1);
}

function blockAt(view, px, py) {
  const sizes = geometry(view, view.ui.canvas.clientWidth), down = py - TOP + sizes.scrolled, row = Math.floor(down / sizes.lane), lane = view.lanes[row];
  if (!lane || px < view.box.x || py > TOP + sizes.room || (sizes.scrolled && py < TOP)) return null;
  const cycle = view.x.invert(px), i = lastAtMost(lane.start, cycle), inside = down - row * sizes.lane;
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
    lane.batch?.[i] >= 0 && `micro-batch ${lane.batch[i]}`, info.layer && `layer ${info.layer}${info.direction ? `, ${info.direction}` : ""}`, info.active > 0 && `${wholeText(info.active)} of ${thingsText(data.tiles, "tile")} active, tile balance among them ${percentText(info.balance)}`,
    (info.sent > 0 || info.received > 0) && `${bytesText(info.sent)} sent, ${bytesText(info.received)} received`].filter(Boolean);
}

// What is chosen here is in sight, or is gone to.
function choose(view, what) {
  view.own = true;
  select(view.selection, what);
  view.own = false;
}

function pick(view, px, py) {
  const block = blockAt(view, px, py);
  if (!block) return;
  if (block.onLayer || block.i === undefined) {
    if (block.layer) select(view.selection, {layer: block.layer, ipu: block.lane.ipu});
    return;
  }
  view.block = block;
  choose(view, {step: block.lane.step[block.i], ipu: block.lane.ipu, layer: block.info.layer || null, position: null});
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

// How even the chosen IPU's compute is; only active tiles count, which one of a thousand may be, so it says how many.
export function balanceText({tiles, tiles_of: ipu}, {balance, active}) {
  if (!active) return `No compute on IPU ${ipu}`;
  const whole = Number.isInteger(active), count = active < 100 ? shortText(active.toFixed(1)) : wholeText(active);
  return `Tile balance of compute on IPU ${ipu}: ${percentText(balance)} among its active tiles, ${whole ? "" : "on average "}${count} of ${wholeText(tiles)}`;
}

// Cycles by cause of a range, all IPUs together, and the tile balance of the chosen IPU's compute; exact when the kernel has answered for it.
function proportions(view, from, to) {
  const {data} = view, told = [view.told, {range: data.visible, proportions: data.proportions, balance: data.balance, active: data.active}].find((each) => each?.range[0] === from && each.range[1] === to);
  if (told) return {exact: true, balance: balanceText(data, told), rows: Object.entries(told.proportions).filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1])};
  const source = data.from <= from && data.to >= to ? view : view.overview, rows = new Map();
  source.lanes.forEach((lane) => causeCycles(source.data, lane, (step) => source.info.get(step).cause, from, to)
    .forEach((cycles, c) => rows.set(data.busy_names[c], (rows.get(data.busy_names[c]) ?? 0) + cycles)));
  const idle = (to - from) * data.lanes.length - [...rows.values()].reduce((a, b) => a + b, 0);
  if (idle > 0.5) rows.set("idle", idle);
  return {exact: false, balance: null, rows: [...rows].filter(([, cycles]) => cycles > 0).sort((a, b) => b[1] - a[1])};
}

function shares(view, title, from, to) {
  const {data} = view, {exact, balance, rows} = proportions(view, from, to), whole = (to - from) * data.lanes.length || 1;
  const said = `${cyclesText(to - from)} (${secondsText(to - from, data.clock_hz)})${data.lanes.length > 1 ? ` on ${data.lanes.length} IPUs` : ""}${exact || !view.live ? "" : ", about"}`;
  return [h("h4", {text: title}), h("p", {text: said}), balance === null ? null : h("p", {text: balance}), table([
    {label: "cause", as: "wb-words", text: ([cause]) => data.paints[cause]?.label ?? cause, mark: ([cause]) => data.paints[cause] ?? data.paints.idle_wait_stage},
    {label: "cycles", number: true, text: ([, cycles]) => wholeText(cycles)},
    {label: "share", number: true, text: ([, cycles]) => percentText(cycles / whole), bar: ([, cycles]) => cycles / whole},
  ], rows)].filter(Boolean);
}

function panel(view) {
  const {data, ui, at} = view, step = view.selection.get("step"), info = view.info.get(step) ?? view.overview.info.get(step), block = view.block;
  const range = at.from === 0 && at.to === data.total_cycles ? "The whole program" : `Cycles ${wholeText(at.from)} to ${wholeText(at.to)}`;
  const chosen = info && [h("h4", {text: info.name}), ...(block && block.lane.step[block.i] === step ? about(view, block) : [`${data.busy[info.cause].label}: ${cyclesText(info.cycles)}`]).map((text) => h("p", {text}))];
  const [from, to] = view.marks ? rangeOf(...view.marks, data.total_cycles) : [at.from, at.to], most = data.dearest[0]?.total ?? 1;
  ui.panel.replaceChildren(...shares(view, view.marks ? `A to B: cycles ${wholeText(from)} to ${wholeText(to)}` : range, from, to),
    view.marks ? h("div", {class: "wb-tools"}, button("Zoom to the markers", () => view.zoom.set(from, to))) : "",
    h("div", {class: "wb-about"}, ...(chosen || [h("p", {text: "Click a block for its numbers; drag to pan, with Shift to measure a range. Keys: T markers, [ and ] the layer's previous and next place, D the dearest step."})])),
    data.dearest.length ? h("div", {class: "wb-scroll wb-dearest", tabindex: 0, role: "region", "aria-label": "Dearest steps"}, table([
      {label: "dearest steps", path: true, mark: (row) => data.busy[row.cause], text: (row) => row.name}, {label: "times", number: true, as: "wb-roomy", wide: "64px", text: (row) => wholeText(row.times)}, {label: "cycles of all", number: true, wide: "108px", text: (row) => wholeText(row.total), bar: (row) => row.total / most},
    ], data.dearest, {fixed: true, pick: (row) => toStep(view, row), chosen: (row) => row.step === step})) : "");
  keepTall(view);
}

// A part in view has fewer causes than the whole: the panel stays as high as it was at this width, so that nothing below jumps.
function keepTall(view) {
  const {panel} = view.ui, wide = panel.clientWidth;
  if (view.wide !== wide) { Object.assign(view, {wide, tall: 0}); panel.style.minHeight = ""; }
  view.tall = Math.max(view.tall, Math.ceil(panel.getBoundingClientRect().height));
  panel.style.minHeight = `${view.tall}px`;
}

// The next execution of a step behind what is in view, or its first: the kernel knows where, a stored page what it holds.
function toStep(view, row) {
  view.block = null;
  choose(view, {step: row.step, layer: row.layer || null, ipu: row.ipu, position: null});
  if (view.live) view.model.send({step: row.step, ipu: row.ipu, asked: (view.asked = (view.asked ?? 0) + 1)});
  else for (const {start, cycles, step} of view.lanes) { const i = step.indexOf(row.step); if (i >= 0) return show(view, start[i], start[i] + cycles[i]); }
  return undefined;
}

function bringLane(view) {
  const lane = view.data.lanes.indexOf(view.selection.get("ipu")), sizes = geometry(view, 900);
  if (lane >= 0 && sizes.all > sizes.height) view.lanesAt.scrollTop = scrolledTo(sizes, lane);
}

// A step that is chosen elsewhere comes into view, with as many cycles in view as before.
function bring(view) {
  const {data, selection} = view, ipu = selection.get("ipu") ?? null, lane = data.lanes.indexOf(ipu);
  const step = selection.get("step") ?? null, {from, to} = view.at;
  if (view.own || step === null || (from <= 0 && to >= data.total_cycles)) return;
  const lanes = lane < 0 ? view.lanes : [view.lanes[lane]], blocks = lanes.flatMap(({start, cycles, step: of}) => [...start.keys()].filter((i) => of[i] === step).map((i) => [start[i], start[i] + cycles[i]]));
  if (blocks.some(([first, last]) => first < to && last > from)) return;
  if (view.live) view.model.send({step, ipu, asked: (view.asked = (view.asked ?? 0) + 1), window: rangeOf(from, to, data.total_cycles)});
  else if (blocks.length) into(view, ...(blocks.find(([first]) => first >= from) ?? blocks[0]));
}

function into(view, first, last) {
  const at = windowAround(view.at, first, last);
  if (at) view.zoom.set(...at);
}

// The window of the same width around a stretch; null where a part of it is in view.
export function windowAround({from, to}, first, last) {
  if (first < to && last > from) return null;
  const middle = (first + Math.min(last, first + to - from)) / 2, half = (to - from) / 2;
  return [middle - half, middle + half];
}

// A stretch in the middle of the picture, with as much again on either side, unless it is seen well already.
function show(view, from, to) {
  const wide = view.at.to - view.at.from, seen = from >= view.at.from && to <= view.at.to && to - from > wide / 40;
  if (seen) view.canvas.redraw();
  else view.zoom.set(from - (to - from), to + (to - from));
}

function toLayer(view, by) {
  const layer = view.selection.get("layer"), {at, overview} = view, here = view.stretch && view.stretch[0] < at.to && view.stretch[1] > at.from ? view.stretch : by > 0 ? [at.from - 1, at.from] : [at.to, at.to];
  if (!layer) { view.ui.announce("Choose a layer first"); return; }
  const near = nextOf(view.lanes, view.data.layers, layer, here[0], by), far = nextOf(overview.lanes, overview.data.layers, layer, here[0], by);
  const found = near && far ? (by > 0 === near[0] <= far[0] ? near : far) : near ?? far;
  if (!found) { view.ui.announce(`${layer} is not ${by > 0 ? "later" : "earlier"} in the program`); return; }
  view.stretch = found;
  show(view, ...found);
  view.ui.announce(`${layer}, cycles ${wholeText(found[0])} to ${wholeText(found[1])}`);
}

function setMarks(view, marks) {
  view.marks = marks && marks.map((mark) => Math.max(0, Math.min(view.data.total_cycles, Math.round(mark))));
  view.toggle.setAttribute("aria-pressed", Boolean(marks));
  view.canvas.redraw();
  clearTimeout(view.measured);
  view.measured = null;
  if (!marks) return panel(view);
  view.measured = setTimeout(() => measured(view), WAIT_MS);
  return undefined;
}

function measured(view) {
  view.measured = null;
  panel(view);
  if (view.live && view.marks) view.model.send({range: rangeOf(...view.marks, view.data.total_cycles)});
}

const toggleMarks = (view) => setMarks(view, view.marks ? null : [view.at.from + (view.at.to - view.at.from) / 3, view.at.to - (view.at.to - view.at.from) / 3]);

function hears(view, message) {
  if (message?.told) { view.told = message.told; panel(view); } else if (message?.place && message.asked === view.asked) (message.window ? into : show)(view, ...message.place);
}

function load(view, model) {
  const data = model.get("data"), columns = unpack(data.layout, model.get("buffer")), steps = data.steps;
  const info = new Map(steps.id.map((id, i) => [id, {name: data.names[steps.name[i]], layer: data.layers[steps.layer[i]], direction: data.directions[steps.direction[i]].label,
    cause: steps.cause[i], cycles: steps.cycles[i], sent: steps.sent[i], received: steps.received[i], active: steps.active[i], balance: steps.balance[i]}]));
  Object.assign(view, {data, columns, info, lanes: lanesOf(data, columns)});
  const before = view.overview;
  view.overview = data.from <= 0 && data.to >= data.total_cycles ? {data, columns, info, lanes: view.lanes} : view.overview ?? view;
  if (view.overview !== before) view.drawn = null; // the small picture is of another program, or of finer parts
}

function moved(view, model) {
  view.canvas?.redraw();
  clearTimeout(view.later);
  view.later = setTimeout(() => arrived(view, model), WAIT_MS);
}

function arrived(view, model) {
  view.later = null;
  panel(view);
  if (!view.live) return;
  model.set("window", [view.at.from, view.at.to]);
  model.save_changes();
}

// A released drag is told at once: on a slow machine the panel would still say where it was on the way.
function settle(view, model) {
  const {later, measured: measuring} = view;
  clearTimeout(later);
  clearTimeout(measuring);
  if (later) arrived(view, model);
  if (measuring) measured(view);
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -0.15, ArrowRight: 0.15, PageUp: -0.9, PageDown: 0.9}[event.key], plain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const own = plain && {"[": () => toLayer(view, -1), "]": () => toLayer(view, 1), t: () => toggleMarks(view), d: () => view.data.dearest.length && toStep(view, view.data.dearest[0])}[event.key.toLowerCase()];
    if (own) { own(); return event.preventDefault(); }
    const down = {ArrowUp: -1, ArrowDown: 1}[event.key], {all, height, lane} = geometry(view, 900);
    if (down && all > height) { view.lanesAt.scrollTop += down * lane; return event.preventDefault(); }
    if (!by) return view.zoom.key(event);
    const wide = view.at.to - view.at.from;
    view.zoom.set(view.at.from + by * wide, view.at.to + by * wide);
    return event.preventDefault();
  });
}

function furnish(view) {
  const {data, ui} = view, {all, height} = geometry(view, 900);
  ui.say(data.sentence);
  ui.canvas.style.height = view.lanesAt.style.height = `${height}px`;
  ui.canvas.parentNode.style.height = `${all}px`;
  // Once tiles were drawn, what is below stays where it is: at their edge it would go up and down with every turn of a wheel.
  view.high = Math.max(height, view.high ?? 0);
  ui.plot.style.minHeight = `${view.high}px`;
  view.lanesAt.classList.toggle("wb-lanes", all > height);
  const directions = data.directions.filter((_, i) => view.lanes.some((lane) => lane.direction.includes(i)));
  const seen = view.overview.data.by_cause;
  ui.legend.replaceChildren(...[...data.busy.filter((_, c) => seen[data.busy_names[c]]), ...directions].map((key) => h("span", {class: "wb-key"}, swatch(key), h("span", {text: key.label}))),
    ...Object.keys(seen).filter((cause) => !data.busy_names.includes(cause)).map((cause) => h("span", {class: "wb-key", text: `${data.paints[cause].label} (blank)`})));
  ui.setTable(() => table([
    {label: "IPU", number: true, text: ([ipu]) => String(ipu)}, {label: "step", text: ([, , info]) => info.name}, {label: "layer", text: ([, , info]) => info.layer},
    {label: "cause", text: ([, , info]) => data.busy[info.cause].label}, {label: "starts at (cycles)", number: true, text: ([, start]) => wholeText(start)},
    {label: "length (cycles)", number: true, text: ([, , info]) => wholeText(info.cycles)},
  ], view.lanes.flatMap((lane) => [...lane.start].map((start, i) => [lane.ipu, start, infoOf(view, lane, i)])), {caption: "The blocks in view that are long enough to be drawn", most: 300}));
  panel(view);
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), live: model.get("live"), at: {}, marks: null, grips: []};
  load(view, model);
  const {data} = view;
  Object.assign(view.at, {from: data.visible[0], to: data.visible[1]});
  if (!data.total_cycles) {
    el.replaceChildren(h("section", {class: "wb"}, h("p", {class: "wb-empty", text: "Nothing takes time in this program."})));
    return undefined;
  }
  const ui = (view.ui = frame(el, {title: "Trace", sentence: data.sentence, side: true}));
  ui.root.classList.add("wb-trace");
  view.lanesAt = h("div", {onscroll: () => view.canvas.redraw()}, h("div", {}, ui.canvas));
  ui.plot.prepend(view.lanesAt);
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  drags(view, ui.canvas, (from, to) => setMarks(view, from === null ? null : [from, to]), () => settle(view, model));
  view.zoom = panZoom(ui.canvas, view.at, {span: () => [0, data.total_cycles], least: () => Math.min(20, data.total_cycles), area: () => view.box,
    moved: () => moved(view, model), pick: (px, py) => pick(view, px, py)});
  ui.tools.replaceChildren(button("−", () => view.zoom.step(1 / 0.6), {title: "Zoom out, key: -", "aria-label": "Zoom out"}),
    button("+", () => view.zoom.step(0.6), {title: "Zoom in, key: +", "aria-label": "Zoom in"}),
    button("Show all", () => view.zoom.set(0, data.total_cycles), {title: "Key: Home"}),
    button("◂", () => toLayer(view, -1), {title: "The chosen layer's place before, key: [", "aria-label": "Previous of the layer"}), button("▸", () => toLayer(view, 1), {title: "The chosen layer's next place, key: ]", "aria-label": "Next of the layer"}),
    (view.toggle = button("Markers", () => toggleMarks(view), {title: "Two markers measure a range, key: T; or drag with Shift", "aria-pressed": "false"})));
  ui.plot.append(...(view.grips = [0, 1].map((which) => gripOf(view, which, ui.canvas, (cycle, reach) => setMarks(view, view.marks.map((mark, i) => (i === which ? edgeNear(view.lanes, cycle, reach) : mark)))))));
  const arrived = (message) => hears(view, message);
  model.on?.("msg:custom", arrived);
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view);
  const offs = [watch(model, ["data"], () => { load(view, model); furnish(view); view.canvas.redraw(); }),
    watch(view.selection, ["layer"], () => { view.stretch = null; }), watch(view.selection, ["step", "steps", "layer", "tile", "micro_batch"], () => { panel(view); view.canvas.redraw(); }), watch(view.selection, ["ipu"], () => bringLane(view)), watch(view.selection, ["step"], () => bring(view))];
  return () => { clearTimeout(view.later); clearTimeout(view.measured); model.off?.("msg:custom", arrived); offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
