// Liveness of all IPUs: a lane each over its own program, by height where there is room, else by colour.
import {legend, rampColour} from "../kit/floor.js";
import {axisX, bytesText, choice, font, h, scale, select, swatch, table, ticks, wholeText} from "../kit/kernel.js";

const LEFT = 78, TOP = 10, BELOW = 40, LEGEND = 54, ROOMY = 18, HEIGHT = 360;
const MEASURES = {live: "all tiles together", full: "the fullest tile"};

// The stretch of an IPU's lane in which a place lies, by number over all lanes; -1 beyond the lane.
export function stretchAt({start, first}, lanes, ipu, place) {
  if (ipu < 0 || ipu >= start.length - 1 || place < 0 || place >= lanes.positions[ipu]) return -1;
  let found = -1;
  for (let i = start[ipu]; i < start[ipu + 1] && first[i] <= place; i++) found = i;
  return found;
}

// The stretch with most bytes of an IPU; the first of equals, -1 where nothing runs.
export function highestOf({start}, values, ipu) {
  let best = start[ipu] < start[ipu + 1] ? start[ipu] : -1;
  for (let i = start[ipu]; i < start[ipu + 1]; i++) if (values[i] > values[best]) best = i;
  return best;
}

export const ipuOfStretch = ({start}, stretch) => start.findLastIndex((from) => from <= stretch);

const rowOf = (ipus, height = HEIGHT) => Math.min(64, (height - TOP - BELOW - LEGEND) / ipus);

const nameAt = (view, stretch) => view.data.names[view.columns[`${view.measure}_name`][stretch]];

function most(view) {
  return view.columns[view.measure].reduce((a, b) => Math.max(a, b), 1);
}

export function drawLanes(view, ctx, width, height, t) {
  const {data, columns, measure} = view, {lanes} = data, values = columns[measure], longest = Math.max(1, ...lanes.positions);
  const x = (view.x = scale(0, longest, LEFT, width - 14)), row = rowOf(data.ipus, height), roomy = row >= ROOMY, top = most(view);
  view.row = row;
  const bottom = TOP + row * data.ipus, every = Math.max(1, Math.ceil(13 / row));
  for (let ipu = 0; ipu < data.ipus; ipu++) {
    const base = TOP + (ipu + 1) * row;
    font(ctx, t, 11, ipu === view.selection.get("ipu") ? 700 : 400);
    ctx.fillStyle = t.muted;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    if (ipu % every === 0) ctx.fillText(`IPU ${ipu}`, LEFT - 8, base - row / 2);
    for (let i = columns.start[ipu]; i < columns.start[ipu + 1]; i++) {
      const from = Math.round(x(columns.first[i])), to = Math.max(from + 1, Math.round(x(i + 1 < columns.start[ipu + 1] ? columns.first[i + 1] : lanes.positions[ipu]))), part = values[i] / top, high = (row - 3) * part;
      ctx.fillStyle = roomy ? data.colours.live.colour : rampColour(data.ramp, part);
      ctx.fillRect(from, roomy ? base - 1 - high : base - row, to - from, roomy ? high : Math.max(1, row - 0.6));
      if (!roomy || measure !== "live") continue;
      const kept = (row - 3) * (lanes.always_live_bytes[ipu] / top);
      ctx.fillStyle = data.colours.always.colour;
      ctx.fillRect(from, base - 1 - kept, to - from, kept);
    }
    if (roomy) { ctx.fillStyle = t.line; ctx.fillRect(LEFT, base - 1, width - 14 - LEFT, 1); }
  }
  const chosen = chosenStretch(view);
  if (chosen >= 0) {
    const ipu = ipuOfStretch(columns, chosen), at = x(columns[`${measure}_at`][chosen] + 0.5);
    ctx.strokeStyle = t.accent;
    ctx.lineWidth = 2;
    ctx.strokeRect(LEFT - 1, TOP + ipu * row - 1, width - 14 - LEFT + 2, row + 1);
    ctx.fillStyle = t.accent;
    ctx.fillRect(at - 1, TOP + ipu * row, 2, row);
  }
  axisX(ctx, t, {x: LEFT, y: TOP, w: width - 14 - LEFT, h: bottom - TOP}, x, ticks(0, longest, width / 110).filter((value) => Number.isInteger(value)), wholeText, "place in the program of each IPU (its steps in order, loops once)");
  if (roomy) {
    font(ctx, t);
    ctx.fillStyle = t.muted;
    ctx.textAlign = "left";
    ctx.textBaseline = "top";
    ctx.fillText(`A lane is ${bytesText(top)} high`, LEFT, bottom + BELOW + 4);
  } else legend(data.ramp, ctx, t, {low: 0, high: top, text: bytesText, binary: true, label: `bytes live on ${MEASURES[measure]}`, x: LEFT, y: bottom + BELOW + 2, w: Math.min(360, width - LEFT - 24)});
}

// The stretch of the chosen place, else the highest of the chosen IPU; -1 where none is chosen.
export function chosenStretch({columns, data, selection, measure}) {
  const ipu = selection.get("ipu"), place = selection.get("position");
  if (ipu === null || ipu === undefined || ipu >= data.ipus) return -1;
  const there = place === null || place === undefined ? -1 : stretchAt(columns, data.lanes, ipu, place);
  return there >= 0 ? there : highestOf(columns, columns[measure], ipu);
}

export function under(view, px, py) {
  const ipu = Math.floor((py - TOP) / view.row);
  return ipu >= 0 && ipu < view.data.ipus ? stretchAt(view.columns, view.data.lanes, ipu, Math.floor(view.x.invert(px))) : -1;
}

export function chooseStretch(view, stretch) {
  if (stretch < 0) return;
  const {columns, measure} = view, full = measure === "full";
  select(view.selection, {ipu: ipuOfStretch(columns, stretch), position: columns[`${measure}_at`][stretch], step: columns[`${measure}_step`][stretch], tile: full ? columns.full_tile[stretch] : null});
}

export function tipOf(view, stretch) {
  const {columns, measure} = view, tile = measure === "full" ? ` on tile ${wholeText(columns.full_tile[stretch])}` : "";
  return [`IPU ${ipuOfStretch(columns, stretch)}: ${bytesText(columns[measure][stretch])}${tile}`, `at most, at place ${wholeText(columns[`${measure}_at`][stretch])}`, nameAt(view, stretch)];
}

// Up and down choose an IPU, left and right a stretch of its program, p its highest.
export function laneKey(view, event) {
  const {columns, data} = view, way = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], p: [0, 0]}[event.key];
  if (!way) return;
  event.preventDefault();
  const now = chosenStretch(view), ipu = now < 0 ? 0 : ipuOfStretch(columns, now);
  if (way[0] || now < 0 || event.key === "p") {
    const to = now < 0 ? 0 : Math.max(0, Math.min(data.ipus - 1, ipu + way[0])), best = highestOf(columns, columns[view.measure], to);
    if (best >= 0) chooseStretch(view, best);
    else select(view.selection, {ipu: to, position: null, step: null, tile: null});
  } else chooseStretch(view, Math.max(columns.start[ipu], Math.min(columns.start[ipu + 1] - 1, now + way[1])));
}

export function furnishLanes(view, over) {
  const {data, columns, ui, measure} = view, {lanes} = data, full = measure === "full", rows = [...Array(data.ipus).keys()];
  ui.say(data.sentence);
  ui.tools.replaceChildren(over, choice("bytes", Object.entries(MEASURES), measure, (value) => { view.measure = value; furnishLanes(view, over); view.canvas.redraw(); }));
  ui.legend.replaceChildren(...(rowOf(data.ipus) < ROOMY ? [] : full ? [data.colours.live] : [data.colours.always, data.colours.live]).map((key) => h("span", {class: "wb-key"}, swatch(key), h("span", {text: full ? "live on the fullest tile" : key.label}))));
  const now = chosenStretch(view), heading = now < 0 ? "No IPU is chosen" : nameAt(view, now);
  const told = now < 0 ? "Up and down choose an IPU, left and right a place of its program." : `${tipOf(view, now).slice(0, 2).join(" ")} of ${wholeText(lanes.positions[ipuOfStretch(columns, now)])}; step ${wholeText(columns[`${measure}_step`][now])}`;
  const value = (ipu) => (full ? lanes.fullest_tile_bytes : lanes.peak_bytes)[ipu], highest = Math.max(1, ...rows.map(value));
  const list = table([{label: "IPU", number: true, text: String}, {label: full ? "fullest tile (bytes)" : "at most (bytes)", number: true, text: (ipu) => wholeText(value(ipu)), bar: (ipu) => value(ipu) / highest}, ...(full ? [{label: "tile", number: true, text: (ipu) => wholeText(lanes.fullest_tile[ipu])}] : [{label: "at step", text: (ipu) => lanes.peak_name[ipu]}])],
    rows, {chosen: (ipu) => ipu === view.selection.get("ipu"), pick: (ipu) => chooseStretch(view, highestOf(columns, columns[measure], ipu))});
  ui.panel.replaceChildren(h("h4", {text: heading}), h("p", {text: told}), h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": "IPUs"}, list));
  ui.announce(`${heading}: ${told}`);
  const number = (name, label) => ({label, number: true, text: (ipu) => wholeText(lanes[name][ipu])});
  ui.setTable(() => table([{label: "IPU", number: true, text: String}, number("positions", "places"), number("always_live_bytes", "always live (bytes)"), number("peak_bytes", "at most on all tiles (bytes)"), number("peak_position", "at place"), {label: "step", text: (ipu) => lanes.peak_name[ipu]}, number("fullest_tile_bytes", "fullest tile (bytes)"), number("fullest_tile", "tile"), number("fullest_position", "fullest at place")], rows, {most: 500}));
}
