import assert from "node:assert/strict";
import test from "node:test";

import {Tree, boxes, told} from "../../../workbench/widgets/views/program_tree.js";

const NAMES = ["row", "parent", "kind", "name", "layer", "direction", "function", "cycles", "runs", "times", "start", "ipu", "step", "batch", "below"];
const STRINGS = ["", "train", "micro_batches", "body", "a", "b", "forward"];

// [row, parent, kind, name, layer, direction, function, cycles, runs, times, start, ipu, step, batch, below]
const ROWS = [
  [0, -1, 2, 1, 0, 0, 0, 100, 1, 1, 0, 0, -1, -1, 2],
  [1, 0, 0, 4, 4, 6, 0, 10, 1, 1, 0, 0, 0, -1, 0],
  [2, 0, 3, 2, 0, 0, 0, 90, 1, 3, 10, 0, -1, -1, 1],
  [3, 2, 4, 3, 5, 6, 3, 30, 3, 1, 10, 0, -1, -1, -1],
];
const BELOW = [[4, 3, 0, 4, 4, 6, 0, 20, 3, 1, 10, 0, 1, -1, 0], [5, 3, 1, 5, 5, 6, 0, 10, 3, 1, 30, 0, 2, -1, 0]];

function sent(rows, causes = []) {
  const columns = [...NAMES.map((name, i) => [name, rows.map((row) => row[i])]), ...["cause_row", "cause", "cause_cycles"].map((name, i) => [name, causes.map((each) => each[i])])];
  const layout = [];
  let offset = 0;
  const numbers = columns.flatMap(([name, values]) => { layout.push({name, type: "i4", offset, length: values.length}); offset += 4 * values.length; return values; });
  return [{layout, strings: STRINGS}, new DataView(Int32Array.from(numbers).buffer)];
}

function tree() {
  const found = new Tree();
  found.take(...sent(ROWS, [[0, 0, 70], [0, 1, 30]]));
  return found;
}

test("what is open is in sight, in the order of the program", () => {
  const found = tree();
  assert.deepEqual(found.lines(), [[0, 0], [1, 1], [2, 1]]);
  found.open.add(2);
  assert.deepEqual(found.lines(), [[0, 0], [1, 1], [2, 1], [3, 2]]);
  assert.equal(found.has(3), false);
  assert.equal(found.isLeaf(3), false);
  assert.equal(found.whole, false);
});

test("what comes later is taken once, and then all has come", () => {
  const found = tree();
  found.take(...sent(BELOW));
  found.take(...sent(BELOW));
  assert.deepEqual(found.rows[3].below, [4, 5]);
  assert.deepEqual(found.ways(5), [0, 2, 3]);
  assert.equal(found.whole, true);
  assert.deepEqual(found.rows[0].causes, [[0, 70], [1, 30]]);
});

test("executions times cycles of the steps are the program's", () => {
  const found = tree();
  found.take(...sent(BELOW));
  assert.equal(found.rows.filter(({step}) => step >= 0).reduce((sum, {cycles, runs}) => sum + cycles * runs, 0), found.rows[0].cycles);
});

test("a search shows what it finds and what that stands in", () => {
  const found = tree();
  found.take(...sent(BELOW));
  const rows = found.matching("B", () => "kind");
  assert.deepEqual(rows, [2, 3, 5]);
  assert.deepEqual(found.lines([5]), [[0, 0], [2, 1], [3, 2], [5, 3]]);
  assert.deepEqual(found.matching("no such name", () => ""), []);
  assert.deepEqual(found.lines([]), [[0, 0]]);
});

test("boxes are places in time, a loop as one turn, the longest of what runs side by side", () => {
  const found = tree();
  found.take(...sent(BELOW));
  assert.deepEqual(boxes(found, 0, 3).map(({row, from, to}) => [row, Math.round(from * 300), Math.round(to * 300)]), [[0, 0, 300], [1, 0, 30], [2, 30, 300], [3, 30, 300], [4, 30, 210], [5, 210, 300]]);
  found.rows[5].start = 10; // beside row 4, and shorter
  assert.deepEqual(boxes(found, 3, 1).map(({row}) => row), [3, 4]);
});

test("a call says its own times and those of all calls", () => {
  const view = {data: {kinds: [..."abcd", "call"].map((label) => ({label})), calls: {body: [7, 30]}, total_cycles: 300, ipus: 1}};
  const lines = told(view, tree().rows[3]);
  assert.equal(lines[1], "once: 30 cycles; here 3 times: 90 cycles, 30.0 % of the program");
  assert.equal(lines[2], "all calls of body: 7, 210 cycles, 70.0 %");
});
