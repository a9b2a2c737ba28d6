import assert from "node:assert/strict";
import test from "node:test";

import {grouped, matching, sorted} from "../../../workbench/widgets/kit/grid.js";
import {bytesText, percentText} from "../../../workbench/widgets/kit/kernel.js";
import {causesOf, changes, exactText, lanesOf, rowsOf, series, signed, whyOf} from "../../../workbench/widgets/views/comparison.js";

const VIEW = {
  data: {strings: ["x", "y"], tables: {layers: {keys: ["layer"], amounts: ["cycles"], rows: 2}}, why: [["x", "compute", "cycles", -5, "y"]], capacity_bytes: [100, 200]},
  columns: {layers_layer: [1, 0], layers_status: [1, 0], layers_cycles_a: [0, 7], layers_cycles_b: [9, 3], a_worst: [1, 2], b_worst: [5, 6, 7, 8], a_tiles: [1, 1], b_tiles: [1, 4]},
  picture: "liveness", swapped: false,
};

test("changes have a sign, but what cannot be seen", () => {
  assert.equal(signed(2048, bytesText), "+2.0 KiB");
  assert.equal(signed(-3, bytesText), "−3 B");
  assert.equal(signed(0, bytesText), "±0 B");
  assert.equal(signed(-0.0001, percentText), "±0.0 %");
});

test("what one side has not counts as nothing", () => {
  assert.deepEqual([...changes([5, 5], [7])], [2, -5]);
});

test("a swap flips every sign and turns added into removed", () => {
  const there = rowsOf(VIEW, "layers"), back = rowsOf({...VIEW, swapped: true}, "layers");
  assert.deepEqual(there.map((row) => [row.keys[0], row.status, row.amounts[0].change]), [["y", "added", 9], ["x", "changed", -4]]);
  assert.deepEqual(back.map((row) => [row.keys[0], row.status, row.amounts[0].change]), [["y", "removed", -9], ["x", "changed", 4]]);
  assert.equal(whyOf(VIEW)[0].origin, "y");
  assert.deepEqual([whyOf(VIEW)[0].change, whyOf({...VIEW, swapped: true})[0].change], [-5, 5]);
});

test("programs of two lengths are each laid out from their start to their end", () => {
  const drawn = series(VIEW);
  assert.equal(drawn.own, true);
  assert.deepEqual([0, 1, 2, 3].map((i) => drawn.before[drawn.at(drawn.before, i)]), [1, 1, 2, 2]);
  assert.deepEqual([0, 1, 2, 3].map((i) => drawn.after[drawn.at(drawn.after, i)]), [5, 6, 7, 8]);
  assert.deepEqual([drawn.capacity, series({...VIEW, swapped: true}).capacity], [200, 100]);
});

const LANES = {
  data: {lanes: {ipus: [0, 1], causes: [{}, {}], totals: [4, 6], spent: {a: [{compute: 3, idle_fill: 1}], b: [{compute: 4, sync: 2}, {compute: 6}]}}},
  columns: {a_lanes: Uint8Array.from([1, 2, 3, 4]), b_lanes: Uint8Array.from([1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0])}, swapped: false,
};

test("each IPU has a lane before and one after, where it is there", () => {
  assert.deepEqual(lanesOf(LANES).map(({side, ipu, later, many}) => [side, ipu, later, many]), [["a", 0, 0, 2], ["b", 0, 1, 3], ["b", 1, 1, 3]]);
  assert.deepEqual([...lanesOf(LANES)[2].bins], [4, 0, 5, 0, 6, 0]);
  assert.deepEqual(lanesOf({...LANES, swapped: true}).map(({side, later}) => [side, later]), [["b", 0], ["a", 1], ["b", 0]]);
});

test("a swap flips the sign of every cause's change", () => {
  const there = causesOf(LANES), back = causesOf({...LANES, swapped: true});
  assert.deepEqual(there.map(({cause, change}) => [cause, change]), [["compute", 7], ["sync", 2], ["idle_fill", -1]]);
  assert.deepEqual(back.map(({cause, change}) => [cause, change]), [["compute", -7], ["sync", -2], ["idle_fill", 1]]);
});

const ROWS = [{name: "conv", group: "a", cycles: 5}, {name: "Dense 10", group: "b", cycles: 9}, {name: "Dense 9", group: "a", cycles: 5}];
const COLUMNS = [{text: (row) => row.name}, {number: true, sum: true, value: (row) => row.cycles, text: (row) => String(row.cycles)}];

test("rows sorted by numbers and by names, in which numbers count", () => {
  assert.deepEqual(sorted(ROWS, COLUMNS[1], true).map(({name}) => name), ["Dense 10", "conv", "Dense 9"]);
  assert.deepEqual(sorted(ROWS, COLUMNS[0], false).map(({name}) => name), ["conv", "Dense 9", "Dense 10"]);
});

test("rows found by every word", () => {
  assert.deepEqual(matching(ROWS, COLUMNS, "dense  1").map(({name}) => name), ["Dense 10"]);
  assert.equal(matching(ROWS, COLUMNS, " "), ROWS);
  assert.deepEqual(matching(ROWS, COLUMNS, "<img"), []);
});

test("groups have their sums, and show their rows where they are open", () => {
  const lines = grouped(ROWS, COLUMNS, (row) => row.group, new Set(["a"]));
  assert.deepEqual(lines.map((line) => line.sums ?? line.name), [[null, 10], "conv", "Dense 9", [null, 9]]);
});

test("a change is said to the byte where its text has rounded it, and once where it has not", () => {
  assert.deepEqual([exactText(-102, "bytes"), exactText(7527, "cycles"), exactText(-12192064, "bytes")], ["", "+7,527 cycles", "−12,192,064 B"]);
  assert.deepEqual([exactText(317, "cycles"), exactText(0.5, "share")], ["", ""]);
});
