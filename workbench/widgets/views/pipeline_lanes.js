// The lanes of the pipeline view: where a rectangle stands, how it is painted, what is under a place, what a range costs.
import {clipText, font, hatch, lastAtMost, wholeText} from "../kit/kernel.js";

export const LEFT = 84;
export const RIGHT = 62;
export const TOP = 30;
const SHORT = {forward: "F", recompute: "R", backward: "B", update: "U"};

export const labelOf = (direction, microBatch) => `${SHORT[direction] ?? ""}${microBatch >= 0 ? microBatch : ""}`;

export const pitchOf = (ipus) => Math.max(10, Math.min(64, Math.floor(480 / ipus)));

export const highOf = (ipus) => pitchOf(ipus) - (pitchOf(ipus) > 24 ? 8 : 2);

export const lastOf = ({batch, last}, i) => (last ?? batch)[i];

export const busyOf = ({span, busy}, i) => (busy ?? span)[i];

// The number of a micro-batch, or "16 to 31" where several share a rectangle.
export const batchText = (columns, i) => (lastOf(columns, i) > columns.batch[i] ? `${columns.batch[i]} to ${lastOf(columns, i)}` : `${columns.batch[i]}`);

const colourOf = (data, batch) => (batch < 0 ? data.grey : data.batch_colours[Math.floor(batch / data.group) % data.batch_colours.length]);

// Top and height of a rectangle as parts of its lane: all of it, or a row whose height is the share of the time.
export function partOf({data, columns}, lane, i) {
  const [base, factor] = data.group > 1 ? data.bases[lane][data.bodies[columns.body[i]].row] ?? [0, 0] : [0, 1];
  return [base, (busyOf(columns, i) / columns.span[i]) * factor];
}

// The rectangle of a lane at a cycle and a height (0 top, 1 bottom), or -1.
export function blockUnder(shown, lane, cycle, height = 0.5) {
  const {data: {offsets, group}, columns: {start, span}} = shown;
  if (group === 1) {
    const i = offsets[lane] + lastAtMost(start.subarray(offsets[lane], offsets[lane + 1]), cycle);
    return i >= offsets[lane] && cycle < start[i] + span[i] ? i : -1;
  }
  for (let i = offsets[lane]; i < offsets[lane + 1] && start[i] <= cycle; i++) {
    const [top, high] = partOf(shown, lane, i);
    if (high && cycle < start[i] + span[i] && top <= height && height <= top + Math.max(0.12, high)) return i;
  }
  return -1;
}

// Cycles by cause inside [from, to) of all IPUs, or of one; a block cut by an edge counts by its part inside.
export function spentIn({data, columns}, from, to, lane = -1) {
  const sums = data.causes.map(() => 0), {start, span, body} = columns;
  for (let i = data.offsets[Math.max(0, lane)]; i < data.offsets[lane < 0 ? data.ipus : lane + 1]; i++) {
    const inside = (Math.min(to, start[i] + span[i]) - Math.max(from, start[i])) * (busyOf(columns, i) / span[i]);
    if (inside > 0) for (const [cause, part] of data.bodies[body[i]].mix) sums[cause] += part * inside;
  }
  return sums;
}

export const idleOf = (sums) => sums.slice(6).reduce((a, b) => a + b, 0);

// Rectangles as rows; of one micro-batch, or of all stages.
export function rowsOf({data, columns}, chosen) {
  const rows = [];
  for (let i = 0, ipu = 0; i < columns.start.length; i++) {
    while (i >= data.offsets[ipu + 1]) ipu++;
    const body = data.bodies[columns.body[i]], mine = chosen >= columns.batch[i] && chosen <= lastOf(columns, i);
    if (chosen === undefined ? body.stage >= 0 : mine) rows.push({...body, ipu, start: columns.start[i], cycles: columns.span[i], batch: columns.batch[i] < 0 ? "" : batchText(columns, i)});
  }
  return chosen === undefined ? rows : rows.sort((a, b) => a.start - b.start);
}

// The nearest end of a block within reach, in cycles, of a place in time; the place itself when there is none.
export function snapped({columns: {start, span}}, cycle, reach) {
  let found = cycle, near = reach;
  start.forEach((from, i) => [from, from + span[i]].forEach((edge) => {
    if (Math.abs(edge - cycle) < near) [found, near] = [edge, Math.abs(edge - cycle)];
  }));
  return Math.round(found);
}

const write = (ctx, text, x, y, align, colour) => { Object.assign(ctx, {textAlign: align, textBaseline: "middle", fillStyle: colour}); ctx.fillText(text, x, y); };

// Phases on top, and where columns begin; where few are in view, each by its number.
export function drawRibbon(view, shown, ctx, t) {
  const {x, box, at} = view, {col_start: start, col_cycles: cycles, col_number: number, col_count: count} = shown.columns, inside = (value) => Math.max(box.x, Math.min(box.x + box.w, x(value)));
  const few = count[0] === 1 && lastAtMost(start, at.to) - lastAtMost(start, at.from) <= 8;
  font(ctx, t, 11);
  const say = (text, short, from, to) => write(ctx, ctx.measureText(text).width < to - from - 8 ? text : clipText(ctx, short, to - from - 6), (from + to) / 2, 13, "center", t.text);
  view.data.phases.forEach(([from, to, phase, columns], i) => {
    ctx.fillStyle = t.accent;
    ctx.globalAlpha = i % 2 ? 0.12 : 0.22;
    ctx.fillRect(inside(from), 4, inside(to) - inside(from), 18);
    ctx.globalAlpha = 1;
    if (!few) say(`${phase}, ${wholeText(columns)} column${columns > 1 ? "s" : ""}`, phase, inside(from), inside(to));
  });
  let drawn = -9;
  start.forEach((from, i) => {
    if (few) say(`column ${number[i]}`, `${number[i]}`, inside(from), inside(from + cycles[i]));
    if (count[i] > 1 || x(from) < drawn + 6) return;
    ctx.fillStyle = t.muted;
    ctx.fillRect(Math.round((drawn = x(from))), 18, 1, 7);
  });
}

export function drawLane(view, shown, lane, ctx, y, high, t) {
  const {x, at} = view, {data, columns} = shown, {start, span, body, batch} = columns, low = data.offsets[lane], end = data.offsets[lane + 1], paints = new Map();
  for (let i = data.group > 1 ? low : low + Math.max(0, lastAtMost(start.subarray(low, end), at.from)); i < end && start[i] < at.to; i++) {
    const what = data.bodies[body[i]], [top, part] = partOf(shown, lane, i), stage = what.kind === "stage", colour = stage ? colourOf(data, batch[i]) : what.colour || t.line, key = colour + what.pattern;
    if (!part || start[i] + span[i] < at.from) continue;
    if (!paints.has(key)) paints.set(key, what.colour || stage ? hatch(ctx, what.pattern, colour, t.paper, 0.7) : hatch(ctx, what.pattern, colour, t.muted, 0.4));
    const from = Math.max(-9, x(start[i])), wide = Math.min(view.box.x + view.box.w + 9, x(start[i] + span[i])) - from;
    ctx.globalAlpha = view.chosen() !== null && what.kind !== "idle" ? 0.22 : 1;
    ctx.fillStyle = paints.get(key);
    ctx.fillRect(from, y + top * high, Math.max(0.7, wide - (stage && wide > 3)), part * high);
    if (stage && data.group === 1 && view.chosen() === null) caption(ctx, t, labelOf(what.direction, batch[i]), from, y, wide, high, colour);
  }
  ctx.globalAlpha = 1;
}

function caption(ctx, t, text, x, y, wide, high, ground) {
  font(ctx, t, 11, 600);
  const inner = ctx.measureText(text).width + 6;
  if (inner > wide - 2 || high < 14 || inner < 8) return;
  ctx.fillStyle = ground;
  ctx.fillRect(x + wide / 2 - inner / 2, y + high / 2 - 8, inner, 16);
  write(ctx, text, x + wide / 2, y + high / 2 + 0.5, "center", "#fff");
}

// A micro-batch on top of all else, wherever it is, with its way from IPU to IPU.
export function drawChosen(view, blocks, ctx, t) {
  const {x, data} = view, high = highOf(data.ipus), colour = colourOf(data, view.chosen()), yOf = (ipu) => TOP + ipu * pitchOf(data.ipus);
  ctx.strokeStyle = t.text;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  blocks.forEach(({ipu, start, cycles}, i) => {
    if (i) ctx.lineTo(x(start), yOf(ipu) + high / 2);
    ctx.moveTo(x(start + cycles), yOf(ipu) + high / 2);
  });
  ctx.stroke();
  ctx.lineWidth = 2;
  for (const {ipu, start, cycles, direction, kind, pattern, colour: own} of blocks) {
    const from = Math.max(-9, x(start)), wide = Math.max(3, Math.min(view.box.x + view.box.w + 9, x(start + cycles)) - from), y = yOf(ipu);
    ctx.fillStyle = t.paper;
    ctx.fillRect(from - 1, y - 1, wide + 2, high + 2);
    ctx.fillStyle = hatch(ctx, pattern, own || colour, t.paper, 0.7);
    ctx.fillRect(from, y, wide, high);
    if (wide > 5) ctx.strokeRect(from, y - 1, wide, high + 2);
    if (kind === "stage") caption(ctx, t, labelOf(direction, view.chosen()), from, y, wide, high, colour);
  }
}

// Two places in time: a line each, and what lies between them shaded.
export function drawMarks({marks, x, box}, ctx, t) {
  if (!marks) return;
  const [a, b] = [...marks].sort((p, q) => p - q).map(x);
  ctx.fillStyle = t.accent;
  ctx.globalAlpha = 0.1;
  ctx.fillRect(a, 0, b - a, box.y + box.h);
  ctx.globalAlpha = 1;
  for (const at of [a, b]) ctx.fillRect(Math.round(at) - 0.5, 0, 1.5, box.y + box.h);
}
