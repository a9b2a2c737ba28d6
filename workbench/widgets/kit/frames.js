// The frames of a program: what every tile holds, computes, sends and receives at its places, as blocks of them come.
import {bytesText, cyclesText} from "./kernel.js";

const KEPT = 24, MOVING = new Set(["exchange", "host", "inter_ipu", "collective"]);

// Adds the runs of a vector to an array.
export function add({runs, ends, values}, number, target) {
  let from = 0;
  for (let run = runs[number]; run < runs[number + 1]; run++) {
    const value = values[run];
    if (value) for (let tile = from; tile < ends[run]; tile++) target[tile] += value;
    from = ends[run];
  }
  return target;
}

// The frames that have come, blocks of rising places; at(place) is null for one that has not.
export class Frames {
  constructor(tiles, most = KEPT) { this.tiles = tiles; this.most = most; this.blocks = []; }

  take(columns) {
    if (!columns.place?.length) return;
    this.blocks = this.blocks.filter(({place}) => place[0] !== columns.place[0]).slice(1 - this.most);
    this.blocks.push(columns);
  }

  has(place) { return this.blocks.some((each) => each.place.includes(place)); }

  at(place) {
    const block = this.blocks.find((each) => each.place.includes(place));
    if (!block) return null;
    const row = block.place.indexOf(place), live = new Float64Array(this.tiles), empty = () => new Float64Array(this.tiles);
    for (let i = 0; i <= row; i++) add(block, block.live[i], live);
    return {live, ...Object.fromEntries(["compute", "sent", "received"].map((name) => [name, add(block, block[name][row], empty())]))};
  }

  // The nearest place that has come, in the direction if there is one.
  near(place, by = 0) {
    const places = this.blocks.flatMap(({place: each}) => [...each]).sort((a, b) => a - b);
    const beyond = by > 0 ? places.find((each) => each > place) : by < 0 ? places.findLast((each) => each < place) : undefined;
    return beyond ?? places.reduce((best, each) => (Math.abs(each - place) < Math.abs(best - place) ? each : best), places[0] ?? 0);
  }
}

// What the tiles do in a step: the vector to draw, and what it is.
export function doing(cause, parts, way) {
  if (cause === "compute") return {values: parts.compute, text: cyclesText, label: "cycles each tile computes in this step"};
  if (!MOVING.has(cause)) return {values: parts.compute, text: cyclesText, label: "no tile computes or exchanges in this step"};
  return {values: parts[way], text: bytesText, binary: true, label: `bytes each tile ${way === "sent" ? "sends" : "receives"} in this step`};
}

// The programs of the IPUs whose frames have come; told as {ipu, positions, position, fullest_bytes, names}, with columns.
export class Programs {
  constructor(tiles) { this.tiles = tiles; this.of = new Map(); }

  take(told, columns) {
    const known = this.of.get(told.ipu) ?? {frames: new Frames(this.tiles), names: new Map(), steps: new Map()};
    known.frames.take(columns);
    columns.place.forEach((place, i) => { known.names.set(place, told.names[i]); known.steps.set(place, columns.step[i]); });
    this.of.set(told.ipu, {...known, count: told.positions, fullest: told.fullest_bytes, peak: told.position});
  }

  // The place of a step of an IPU's program, of no step that of its peak; null where it has not come.
  placeOf(ipu, step, position) {
    const program = this.of.get(ipu);
    if (!program) return null;
    if (step === null || step === undefined) return program.peak;
    if (position !== null && position !== undefined && program.steps.get(position) === step) return position;
    const places = [...program.steps].filter(([, each]) => each === step).map(([place]) => place);
    return places.length ? Math.min(...places) : null;
  }
}
