// What the two views over time share: lanes of blocks and bins, time in words.
import {countText, textsApart, ticks} from "./kernel.js";

// Time in words at the clock of the machine.
export function secondsText(cycles, clock) {
  const seconds = cycles / clock;
  const [size, unit] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]].find(([least]) => seconds >= least) ?? [1e-9, "ns"];
  return `${(seconds / size).toFixed(2)} ${unit}`;
}

// Cycles as tick texts: shortened as long as neighbours stay distinct.
export const tickTexts = (values) => textsApart(values, countText);

// The marks of an axis of cycles so many pixels wide, and their texts: three or more of an axis from 0, from 350 pixels on.
export function timeTicks(from, to, width) {
  const marks = ticks(from, to, Math.min(10, width / 70)), texts = tickTexts(marks);
  return [marks, (value) => texts[marks.indexOf(value)]];
}

export function lanesOf(data, columns) {
  const names = ["start", "cycles", "step", "batch", "bins", "layerStart", "layerCycles", "layer", "direction"];
  return data.lanes.map((ipu, i) => {
    const lane = Object.fromEntries(names.map((name) => [name, columns[name + i]]));
    return {...lane, ipu, free: freeOf(data, lane)};
  });
}

// The part of each bin that no block covers: what a bin holds is drawn there.
export function freeOf(data, {start, cycles, bins}) {
  const free = new Float32Array(bins.length && data.bins).fill(1), each = (data.to - data.from) / data.bins;
  for (let i = 0; free.length && i < start.length; i++) {
    const from = (start[i] - data.from) / each, to = from + cycles[i] / each;
    for (let bin = Math.max(0, Math.floor(from)); bin < Math.min(data.bins, to); bin++) free[bin] -= Math.min(to, bin + 1) - Math.max(from, bin);
  }
  return free;
}

// Cycles by cause of one lane inside [from, to); what is left to the window's length is idle.
export function causeCycles(data, lane, causeOf, from, to) {
  const sums = new Float64Array(data.busy.length), each = (data.to - data.from) / data.bins;
  for (let i = 0; i < lane.start.length; i++) {
    sums[causeOf(lane.step[i])] += Math.max(0, Math.min(to, lane.start[i] + lane.cycles[i]) - Math.max(from, lane.start[i]));
  }
  for (let bin = 0; bin < data.bins && lane.bins.length; bin++) {
    const start = data.from + bin * each, part = Math.max(0, Math.min(to, start + each) - Math.max(from, start));
    for (let cause = 0; part && cause < sums.length; cause++) sums[cause] += (part * lane.bins[bin * sums.length + cause]) / 255;
  }
  return sums;
}

// Bins as stacked parts of a lane, one part a cause.
export function drawBins(ctx, data, lane, {x, at, y, high, paints}) {
  const causes = data.busy.length, each = (data.to - data.from) / data.bins;
  if (!lane.bins.length) return;
  const low = Math.max(0, Math.floor((at.from - data.from) / each)), end = Math.min(data.bins, Math.ceil((at.to - data.from) / each));
  const tops = new Float64Array(Math.max(0, end - low));
  paints.forEach((paint, c) => {
    ctx.fillStyle = paint;
    for (let bin = low; bin < end; bin++) {
      const part = Math.min(1, lane.bins[bin * causes + c] / 255 / Math.max(0.02, lane.free[bin]));
      if (!part) continue;
      const from = x(data.from + bin * each), wide = x(data.from + (bin + 1) * each) - from;
      ctx.fillRect(from, y + tops[bin - low] * high, wide + 0.4, part * high + 0.3);
      tops[bin - low] += part;
    }
  });
}
