// What the trace has around its lanes: the whole program in small, levels of layers, two markers and the way to the next of a layer.
import {clipText, font, hatch, isUnder, lastAtMost, place, scale} from "../kit/kernel.js";

export const MAP = 30, LEVEL = 15;

const DEEPEST = 6, prefixes = new Map();

// "enc/a_b" is under "enc", and then itself: the beginnings of a path, the shortest first.
export function beginnings(name) {
  if (!prefixes.has(name)) {
    if (prefixes.size > 20000) prefixes.clear();
    const parts = name.split(/(?=[/_])/).slice(0, DEEPEST);
    prefixes.set(name, parts.map((_, i) => parts.slice(0, i + 1).join("")));
  }
  return prefixes.get(name);
}

function joinedAt(stretches, depth, gap) {
  const found = [];
  for (const [from, to, name] of stretches) {
    const all = beginnings(name), cut = all[Math.min(depth, all.length) - 1], open = found[found.length - 1];
    if (open && open[2] === cut && from - open[1] <= gap) open[1] = to;
    else found.push([from, to, cut]);
  }
  return found;
}

// Levels of stretches [from, to, name] in order, each inside the one above, the deepest that has room last: at most `rows` of them, and `most` stretches in each.
export function levelsOf(stretches, rows, most, gap) {
  const levels = [];
  for (let depth = 1; depth <= DEEPEST; depth++) {
    const found = joinedAt(stretches, depth, gap), last = levels[levels.length - 1];
    if (levels.length && found.length > most) break;
    if (!last || found.length !== last.length || found.some((each, i) => each[2] !== last[i][2])) levels.push(found);
  }
  return levels.slice(-rows);
}

// The next stretch of a layer in a lane from a cycle on, forwards or back, [from, to] with those that touch it; null where there is none.
export function nextOf(lanes, layers, layer, cycle, by) {
  let best = null;
  for (const {layerStart, layerCycles, layer: of} of lanes) {
    for (let i = by > 0 ? 0 : layerStart.length - 1; i >= 0 && i < layerStart.length; i += by) {
      const far = by > 0 ? layerStart[i] > cycle : layerStart[i] < cycle;
      if (!far || !isUnder(layers[of[i]], layer)) continue;
      if (!best || (by > 0 ? layerStart[i] < best[0] : layerStart[i] > best[0])) best = [layerStart[i], layerStart[i] + layerCycles[i]];
      break;
    }
  }
  return best;
}

// Two places in order, whole and inside the program, at least one cycle apart.
export function rangeOf(a, b, total) {
  const [from, to] = [Math.min(a, b), Math.max(a, b)].map((each) => Math.max(0, Math.min(total, Math.round(each))));
  return to > from ? [from, to] : from < total ? [from, from + 1] : [from - 1, from];
}

// The edge of a block nearest to a cycle, if one is as near as `reach`.
export function edgeNear(lanes, cycle, reach) {
  let best = cycle, far = reach;
  for (const {start, cycles} of lanes) {
    const i = lastAtMost(start, cycle);
    for (const edge of [start[i], start[i] + cycles[i], start[i + 1]]) if (Math.abs(edge - cycle) < far) { far = Math.abs(edge - cycle); best = edge; }
  }
  return best;
}

// Shares by cause of all IPUs together in so many columns: Float32Array[columns * causes].
export function sharesOf({data, lanes, info}, columns) {
  const causes = data.busy.length, sums = new Float32Array(columns * causes), each = (data.to - data.from) / columns || 1, bin = (data.to - data.from) / data.bins;
  const add = (from, to, cause, part) => {
    for (let at = Math.max(0, Math.floor((from - data.from) / each)); at < columns && data.from + at * each < to; at++) {
      const inside = Math.min(to, data.from + (at + 1) * each) - Math.max(from, data.from + at * each);
      if (inside > 0) sums[at * causes + cause] += (inside / each) * part / lanes.length;
    }
  };
  for (const lane of lanes) {
    for (let i = 0; i < lane.start.length; i++) add(lane.start[i], lane.start[i] + lane.cycles[i], info.get(lane.step[i]).cause, 1);
    for (let i = 0; i < lane.bins.length; i++) if (lane.bins[i]) add(data.from + Math.floor(i / causes) * bin, data.from + (Math.floor(i / causes) + 1) * bin, i % causes, lane.bins[i] / 255);
  }
  return sums;
}

// The whole program in small, drawn once for each size and theme; over it the part in view.
export function drawMap(view, ctx, height, t) {
  const {data} = view.overview, left = view.box.x, wide = Math.max(1, Math.round(view.box.w)), causes = data.busy.length;
  const key = `${wide} ${height} ${t.paper} ${t.line} ${window.devicePixelRatio}`;
  if (view.drawn?.key !== key) {
    const ratio = window.devicePixelRatio || 1, canvas = Object.assign(document.createElement("canvas"), {width: wide * ratio, height: height * ratio}), pen = canvas.getContext("2d"), shares = sharesOf(view.overview, wide);
    pen.scale(ratio, ratio);
    pen.fillStyle = t.line;
    pen.globalAlpha = 0.45;
    pen.fillRect(0, 0, wide, height);
    pen.globalAlpha = 1;
    for (let x = 0; x < wide; x++) {
      let y = height;
      for (let cause = 0; cause < causes; cause++) {
        const high = Math.min(1, shares[x * causes + cause]) * height;
        if (high < 0.2) continue;
        pen.fillStyle = data.busy[cause].colour;
        pen.fillRect(x, (y -= high), 1, high);
      }
    }
    view.drawn = {key, canvas};
  }
  ctx.drawImage(view.drawn.canvas, left, 0, wide, height);
  const x = (view.mapX = scale(0, data.total_cycles, left, left + wide)), from = x(view.at.from), to = Math.max(from + 2, x(view.at.to));
  ctx.fillStyle = t.paper;
  ctx.globalAlpha = 0.62;
  ctx.fillRect(left, 0, from - left, height);
  ctx.fillRect(to, 0, left + wide - to, height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = t.accent;
  ctx.lineWidth = 2;
  ctx.strokeRect(from, 1, to - from, height - 2);
  for (const mark of view.marks ?? []) { ctx.fillStyle = t.bad; ctx.fillRect(x(mark) - 0.75, 0, 1.5, height); }
  font(ctx, t, 11);
  ctx.fillStyle = t.muted;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillText("all", 8, height / 2);
}

// In the small picture a drag moves the part in view; outside of it, a drag chooses another part and a click goes there.
// In the lanes a drag with Shift held measures a range. Both come before the canvas' own pan.
export function drags(view, canvas, measure, settle) {
  let held = null;
  const take = (event) => { event.stopImmediatePropagation(); event.preventDefault(); };
  canvas.addEventListener("pointerdown", (event) => {
    const [px, py] = place(event, canvas), onMap = py <= MAP;
    if (!view.mapX || event.button || !(onMap || event.shiftKey)) return;
    take(event);
    canvas.focus();
    const at = (onMap ? view.mapX : view.x).invert(px);
    held = {onMap, at, px, inside: onMap && at >= view.at.from && at <= view.at.to && view.at.to - view.at.from < view.data.total_cycles, from: view.at.from, wide: view.at.to - view.at.from, moved: false};
    canvas.setPointerCapture(event.pointerId);
  }, true);
  const follow = (event) => {
    const [px] = place(event, canvas), at = (held.onMap ? view.mapX : view.x).invert(px);
    held.moved ||= Math.abs(px - held.px) > 3;
    if (!held.moved) return;
    if (!held.onMap) measure(held.at, at);
    else if (held.inside) view.zoom.set(held.from + at - held.at, held.from + at - held.at + held.wide);
    else view.zoom.set(Math.min(at, held.at), Math.max(at, held.at));
  };
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    take(event);
    follow(event);
  }, true);
  canvas.addEventListener("pointerup", (event) => {
    if (!held) return;
    take(event);
    follow(event);
    if (!held.moved && held.onMap && !held.inside) view.zoom.set(held.at - held.wide / 2, held.at + held.wide / 2);
    if (!held.moved && !held.onMap) measure(null);
    held = null;
    settle();
  }, true);
  canvas.addEventListener("pointercancel", () => { held = null; }, true);
}

export function drawLevels(view, levels, ctx, y, across, t) {
  font(ctx, t, 10.5);
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  levels.forEach((stretches, row) => stretches.forEach(([first, last, name], i) => {
    const [from, wide] = across(first, last), top = y + row * LEVEL, start = Math.max(from, view.box.x), above = row ? levels[row - 1].find((each) => each[0] <= first && first < each[1]) : null;
    ctx.globalAlpha = 0.14 + 0.12 * (i % 2);
    ctx.fillStyle = t.muted;
    ctx.fillRect(from, top, Math.max(0.6, wide - (wide > 3 ? 1 : 0)), LEVEL - 1);
    ctx.globalAlpha = 1;
    ctx.fillStyle = t.text;
    // Under its path the rest of a name says it, where that is all there is room for.
    const short = above && name !== above[2] ? name.slice(above[2].length).replace(/^[/_]/, "") : name, room = from + wide - start - 8;
    if (wide > 24) ctx.fillText(clipText(ctx, ctx.measureText(name).width <= room ? name : short, room), start + 4, top + LEVEL / 2);
  }));
}

export function drawMarks(view, ctx, t, top, bottom) {
  if (!view.marks) return;
  const [from, to] = rangeOf(...view.marks, view.data.total_cycles), {x} = view;
  ctx.fillStyle = hatch(ctx, "rising", t.accent, t.paper, 0.7);
  ctx.globalAlpha = 0.13;
  ctx.fillRect(x(from), top, x(to) - x(from), bottom - top);
  ctx.globalAlpha = 1;
  ctx.fillStyle = t.accent;
  for (const mark of view.marks) ctx.fillRect(x(mark) - 0.75, top, 1.5, bottom - top);
}
