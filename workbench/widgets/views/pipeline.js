import {anew} from "../kit/anew.js";
import {axisX, button, bytesText, cyclesText, font, frame, h, lastAtMost, panZoom, percentText, place, scale, select, selectionOf, surface, swatch, table, thingsText, tip, unpack, watch, wholeText} from "../kit/kernel.js";
import {secondsText, timeTicks} from "../kit/lanes.js";
import {gripOf, placeGrips} from "../kit/marks.js";
import {LEFT, RIGHT, TOP, batchText, blockUnder, busyOf, drawChosen, drawLane, drawMarks, drawRibbon, highOf, idleOf, lastOf, pitchOf, rowsOf, snapped, spentIn} from "./pipeline_lanes.js";

const timeText = (view, cycles) => `${cyclesText(cycles)} (${secondsText(cycles, view.data.clock_hz)})`;

// The last answer where it holds all of a range, else the whole program, coarser.
const holding = ({shown, overview}, from, to) => (shown.data.from <= from && shown.data.to >= to ? shown : overview);

const isExact = ({data, at}) => data.visible[0] === at.from && data.visible[1] === at.to;

const chosenRows = (view) => (view.mine.micro_batch === view.chosen() ? view.mine.blocks : rowsOf(holding(view, view.at.from, view.at.to), view.chosen()));

const endOf = (rows) => Math.max(...rows.map(({start, cycles}) => start + cycles));

function draw(view, ctx, width, height, t) {
  const {data, at} = view, pitch = pitchOf(data.ipus), high = highOf(data.ipus), every = pitch < 14 ? 4 : 1, shown = holding(view, at.from, at.to);
  const box = (view.box = {x: LEFT, y: TOP, w: Math.max(40, width - LEFT - RIGHT), h: data.ipus * pitch - (pitch - high)}), x = (view.x = scale(at.from, at.to, box.x, box.x + box.w));
  ctx.textBaseline = "middle";
  for (let ipu = 0; ipu < data.ipus; ipu += every) {
    const y = TOP + ipu * pitch + high / 2, idle = isExact(view) ? data.idle_by_ipu[ipu] : idleOf(spentIn(shown, at.from, at.to, ipu));
    const say = (text, px, align, colour, above = 0) => { ctx.textAlign = align; ctx.fillStyle = colour; ctx.fillText(text, px, y + (high > 34 ? above : 0)); };
    font(ctx, t, every > 1 ? 10 : 12, 600);
    say(`IPU ${ipu}`, 8, "left", t.text, -8);
    font(ctx, t, 11);
    say(percentText(idle / (at.to - at.from)), width - 6, "right", t.muted);
    if (high > 34) say(data.on_ipu[ipu], 8, "left", t.muted, 9);
  }
  ctx.textAlign = "right";
  ctx.fillStyle = t.muted;
  ctx.fillText("waiting", width - 6, 13);
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, 0, box.w, height);
  ctx.clip();
  ctx.fillStyle = t.line;
  ctx.globalAlpha = 0.5;
  for (let ipu = 0; ipu < data.ipus; ipu++) ctx.fillRect(x(0), TOP + ipu * pitch, x(data.total_cycles) - x(0), high);
  ctx.globalAlpha = 1;
  drawRibbon(view, shown, ctx, t);
  for (let ipu = 0; ipu < data.ipus; ipu++) drawLane(view, shown, ipu, ctx, TOP + ipu * pitch, high, t);
  if (view.chosen() !== null) drawChosen(view, chosenRows(view), ctx, t);
  drawMarks(view, ctx, t);
  ctx.restore();
  const [marks, text] = timeTicks(at.from, at.to, box.w);
  axisX(ctx, t, box, x, marks, text, `cycles since the start (1,000 cycles are ${secondsText(1000, data.clock_hz)} at ${(data.clock_hz / 1e9).toFixed(2)} GHz)`);
  placeGrips(view, data.total_cycles);
}

function under(view, px, py) {
  const {data, box} = view, pitch = pitchOf(data.ipus), ipu = Math.floor((py - TOP) / pitch), shown = holding(view, view.at.from, view.at.to), cycle = view.x.invert(px), {columns} = shown;
  if (px < box.x || px > box.x + box.w) return null;
  if (py < TOP - 2) {
    const column = lastAtMost(columns.col_start, cycle);
    return column >= 0 && cycle < columns.col_start[column] + columns.col_cycles[column] ? {column, columns} : null;
  }
  const inside = (py - TOP - ipu * pitch) / highOf(data.ipus), i = ipu < data.ipus && inside <= 1 ? blockUnder(shown, ipu, cycle, inside) : -1;
  return i < 0 ? null : {ipu, cycle, i, columns, body: shown.data.bodies[columns.body[i]]};
}

function about(view, {ipu, i, columns, body, column}) {
  if (column >= 0) {
    const count = columns.col_count[column];
    return [count > 1 ? `${wholeText(count)} columns` : `Column ${columns.col_number[column]}`, timeText(view, columns.col_cycles[column]), ...(count > 1 ? [] : [`IPU ${columns.col_ipu[column]} is the slowest in it`])];
  }
  const busy = busyOf(columns, i), part = busy / columns.span[i], batch = columns.batch[i] < 0 ? "" : `Micro-batch ${batchText(columns, i)}, `;
  return [batch + body.title, body.note, `${timeText(view, busy)}${part < 0.999 ? `, ${percentText(part)} of the time,` : ""} on IPU ${ipu}${view.data.replicas > 1 ? " of each replica" : ""}`,
    `cycles ${wholeText(columns.start[i])} to ${wholeText(columns.start[i] + columns.span[i])}`].filter(Boolean);
}

const choose = (view, batch) => select(view.selection, {micro_batch: batch});

function pick(view, px, py) {
  const found = under(view, px, py), {column, columns, i} = found ?? {};
  if (column >= 0) return view.zoom.set(columns.col_start[column] - 0.03 * columns.col_cycles[column], columns.col_start[column] + 1.03 * columns.col_cycles[column]);
  if (!found || columns.batch[i] < 0) return choose(view, null);
  // Where micro-batches share a rectangle, the one that the place in it stands for.
  const batch = columns.batch[i] + Math.floor(((found.cycle - columns.start[i]) / columns.span[i]) * (lastOf(columns, i) - columns.batch[i] + 1));
  return select(view.selection, {micro_batch: batch === view.chosen() ? null : batch, ipu: found.ipu});
}

// The column in the middle of the view, alone.
function oneColumn(view) {
  const middle = (view.at.from + view.at.to) / 2, {col_start: start, col_cycles: cycles, col_count: count} = holding(view, middle, middle).columns, i = Math.max(0, lastAtMost(start, middle));
  if (!start.length) return;
  const half = 0.53 * (cycles[i] / count[i]), centre = count[i] > 1 ? middle : start[i] + cycles[i] / 2;
  view.zoom.set(centre - half, centre + half);
}

// Two markers: each a slider that is dragged, or moved by the arrows, and keeps to the ends of blocks.
function setMarks(view, marks) {
  view.marks = marks && marks.map((mark) => Math.max(0, Math.min(view.data.total_cycles, Math.round(mark))));
  view.model.set("marks", view.marks ?? []);
  view.model.save_changes();
  view.toggle.setAttribute("aria-pressed", Boolean(marks));
  view.canvas.redraw();
  panel(view);
}

function toggleMarks(view) {
  const {from, to} = view.at, rows = view.chosen() === null ? [] : chosenRows(view);
  setMarks(view, view.marks ? null : rows.length ? [rows[0].start, endOf(rows)] : [from + (to - from) / 3, to - (to - from) / 3]);
}

const gripAt = (view, which) => gripOf(view, which, view.ui.canvas, (cycle, reach) => setMarks(view, view.marks.map((mark, i) => (i === which ? snapped(view.shown, cycle, reach) : mark))));

const number = (label, of, more) => ({label, number: true, text: (row) => (typeof of(row) === "number" ? wholeText(of(row)) : of(row)), ...more});
const column = (label, of) => ({label, text: of});
const scrolled = (label, ...parts) => h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": label}, table(...parts));
const part = (title, ...parts) => h("section", {}, h("h4", {text: title}), ...parts.map((text) => (typeof text === "string" ? h("p", {text}) : text)));
const OF_BLOCK = [number("IPU", (row) => row.ipu), number("stage", (row) => row.stage), column("direction", (row) => row.title.split(",")[0]), number("starts at (cycles)", (row) => row.start), number("length (cycles)", (row) => row.cycles)];

function rangePart(view) {
  const {data, at} = view, exact = isExact(view), sums = exact ? data.spent : spentIn(holding(view, at.from, at.to), at.from, at.to), whole = (at.to - at.from) * data.ipus || 1;
  const title = at.from === 0 && at.to === data.total_cycles ? "The whole program" : `Cycles ${wholeText(at.from)} to ${wholeText(at.to)}`;
  return part(title, `${exact || !view.live ? "" : "about "}${percentText(idleOf(sums) / whole)} waiting: ${data.ipus} IPU${data.ipus > 1 ? "s" : ""} × ${timeText(view, at.to - at.from)}`, table([
    {...column("cause", ([cause]) => data.causes[cause].label), as: "wb-words", mark: ([cause]) => data.causes[cause]}, number("cycles", ([, cycles]) => cycles), number("share", ([, cycles]) => percentText(cycles / whole), {bar: ([, cycles]) => cycles / whole}),
  ], [...sums.entries()].filter(([, cycles]) => cycles >= 0.5)), data.ideal);
}

function marksPart(view) {
  const [a, b] = view.marks, [from, to] = [Math.min(a, b), Math.max(a, b)], waiting = idleOf(spentIn(holding(view, from, to), from, to)) / ((to - from) * view.data.ipus || 1);
  return part(`B − A: ${cyclesText.whole(b - a)}`, `${secondsText(to - from, view.data.clock_hz)}; A at ${wholeText(a)}, B at ${wholeText(b)}; ${percentText(waiting)} of it waiting`, button("Zoom to the markers", () => view.zoom.set(from, to)));
}

// Of stages that share an IPU, what is known of the IPU alone is said to be its.
export const ofIpu = (stages, label) => (new Set(stages.map(({ipu}) => ipu)).size < stages.length ? `${label}, of its IPU` : label);

function stagesPart({data}) {
  const most = Math.max(1, ...data.stages.map((row) => row.work));
  return part("Stages", scrolled("Stages", [number("stage", (row) => row.stage), number("IPU", (row) => row.ipu), column("layers", (row) => row.layers), number("work (cycles)", (row) => row.work, {bar: (row) => row.work / most}),
    number(ofIpu(data.stages, "idle (cycles)"), (row) => row.idle), number("FIFO slots", (row) => row.depth), number(ofIpu(data.stages, "stash"), (row) => bytesText(row.stash_bytes))], data.stages));
}

// "2 blocks on 1 IPU".
export const blocksText = (rows) => `${thingsText(rows.length, "block")} on ${thingsText(new Set(rows.map(({ipu}) => ipu)).size, "IPU")}`;

function batchPart(view) {
  const rows = view.chosen() === null ? [] : chosenRows(view);
  if (!rows.length) return part("Micro-batch", "Click a block: its micro-batch lights up on every IPU. Drag to pan; after a click the wheel zooms.", "Keys: ← → micro-batch, Esc none, PageUp PageDown pan, + − zoom, Home all, O one column, T two markers.");
  const first = rows[0].start, length = endOf(rows) - first, title = `Micro-batch ${view.chosen()}`;
  view.ui.announce(`${title}: ${blocksText(rows)}, cycles ${wholeText(first)} to ${wholeText(first + length)}`);
  return part(title, `${timeText(view, length)} from end to end, ${percentText(rows.reduce((sum, {kind, cycles}) => sum + (kind === "stage" && cycles), 0) / length)} of it at work`, scrolled("Blocks of the micro-batch", OF_BLOCK, rows, {pick: ({start, cycles}) => view.zoom.set(start - cycles, start + 2 * cycles)}));
}

function panel(view) {
  anew(view.ui.panel, h("div", {}, view.marks && marksPart(view), rangePart(view)), batchPart(view), stagesPart(view));
}

function load(view) {
  const data = view.model.get("data"), shown = {data, columns: unpack(data.layout, view.model.get("buffer"))};
  Object.assign(view, {data, shown, mine: view.model.get("mine") ?? {}});
  view.overview = data.from <= 0 && data.to >= data.total_cycles ? shown : view.overview ?? shown;
}

function moved(view) {
  view.canvas?.redraw();
  clearTimeout(view.later);
  view.later = setTimeout(() => {
    panel(view);
    if (!view.live) return;
    view.model.set("window", [view.at.from, view.at.to]);
    view.model.save_changes();
  }, 50);
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const {at, data} = view, by = {ArrowLeft: -1, ArrowRight: 1}[event.key], page = {PageUp: -0.9, PageDown: 0.9}[event.key] * (at.to - at.from), now = view.chosen(), most = data.micro_batches - 1;
    if (event.ctrlKey || event.metaKey || event.altKey) return undefined;
    if (event.key === "Escape") return choose(view, null);
    if (event.key === "o") return oneColumn(view);
    if (event.key === "t") return toggleMarks(view);
    if (!by && !page) return view.zoom.key(event);
    event.preventDefault();
    if (page) return view.zoom.set(at.from + page, at.to + page);
    return most >= 0 && choose(view, Math.max(0, Math.min(most, (now ?? (by > 0 ? -1 : most + 1)) + by)));
  });
}

function furnish(view) {
  const {data, ui, shown} = view;
  ui.say(data.sentence);
  ui.canvas.style.height = `${TOP + data.ipus * pitchOf(data.ipus) + 42}px`;
  const group = data.group > 1 ? `colour: ${data.group} micro-batches, height: share of the time` : "colour: micro-batch", key = (text, ...marks) => h("span", {class: "wb-key"}, ...marks.map(swatch), h("span", {text}));
  ui.legend.replaceChildren(key(group, ...data.batch_colours.slice(0, 4).map((colour) => ({colour, pattern: ""}))), ...data.keys.map((mark) => key(mark.label, mark)));
  ui.setTable(() => table([...OF_BLOCK, number("micro-batch", (row) => row.batch), column("layers", (row) => row.note)], rowsOf(shown), {caption: "The blocks in view", most: 300}));
  panel(view);
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), live: model.get("live"), at: {}, marks: null, chosen: () => view.selection.get("micro_batch") ?? null};
  load(view);
  const {data} = view, marks = model.get("marks"), ui = (view.ui = frame(el, {title: "Pipeline", sentence: data.sentence, side: true})), {canvas} = ui, show = tip(ui.plot), least = Math.min(20, data.total_cycles || 1);
  [view.at.from, view.at.to] = data.visible;
  ui.root.classList.add("wb-pipeline");
  ui.plot.append(...(view.grips = [0, 1].map((which) => gripAt(view, which))));
  view.canvas = surface(canvas, (...args) => draw(view, ...args));
  view.zoom = panZoom(canvas, view.at, {span: () => [0, Math.max(1, data.total_cycles)], least: () => least, area: () => view.box, moved: () => moved(view), pick: (px, py) => pick(view, px, py)});
  view.toggle = button("Markers", () => toggleMarks(view), {title: "Key: T", "aria-pressed": "false"});
  ui.tools.append(button("−", () => view.zoom.step(1 / 0.6), {title: "Key: -", "aria-label": "Zoom out"}), button("+", () => view.zoom.step(0.6), {title: "Key: +", "aria-label": "Zoom in"}),
    button("One column", () => oneColumn(view), {title: "Key: O"}), view.toggle, button("Show all", () => view.zoom.set(0, data.total_cycles), {title: "Key: Home"}));
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), found = under(view, px, py);
    show(px, py, found && about(view, found));
  });
  canvas.addEventListener("pointerleave", () => show());
  keys(view);
  furnish(view);
  if (marks?.length) setMarks(view, marks);
  const again = () => { view.mine = model.get("mine") ?? {}; panel(view); view.canvas.redraw(); };
  const offs = [watch(model, ["data"], () => { load(view); furnish(view); view.canvas.redraw(); }), watch(model, ["mine"], again), watch(view.selection, ["micro_batch"], again)];
  return () => { clearTimeout(view.later); offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
