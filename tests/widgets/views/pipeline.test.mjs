import assert from "node:assert/strict";
import test from "node:test";

import {batchText, blockUnder, idleOf, labelOf, partOf, rowsOf, snapped, spentIn} from "../../../workbench/widgets/views/pipeline_lanes.js";
import {blocksText, ofIpu} from "../../../workbench/widgets/views/pipeline.js";

// Two IPUs; IPU 1 waits, copies, works on micro-batch 3 and waits again.
const causes = ["compute", "exchange", "sync", "host", "inter_ipu", "collective", "fill", "drain", "wait_stage", "wait_host"];
const bodies = [
  {kind: "stage", row: "forward", stage: 0, direction: "forward", title: "forward, stage 0", mix: [[0, 0.75], [1, 0.25]]},
  {kind: "stage", row: "backward", stage: 1, direction: "backward", title: "backward, stage 1", mix: [[0, 1]]},
  {kind: "idle", row: "idle", stage: -1, direction: "", title: "idle: filling", mix: [[6, 1]]},
  {kind: "copy", row: "copy", stage: -1, direction: "", title: "between IPUs", mix: [[4, 1]]},
];
const every = {
  data: {ipus: 2, group: 1, offsets: [0, 2, 6], bodies, causes},
  columns: {start: Float64Array.of(0, 40, 0, 40, 50, 90), span: Float32Array.of(40, 60, 40, 10, 40, 10), body: Int16Array.of(0, 2, 2, 3, 1, 2), batch: Int16Array.of(3, -1, -1, -1, 3, -1)},
};
const shared = {
  data: {ipus: 1, group: 4, offsets: [0, 3], bodies, causes, bases: [{forward: [0, 0.5], backward: [0.25, 0.5]}]},
  columns: {start: Float64Array.of(0, 0, 100), span: Float32Array.of(100, 100, 100), body: Int16Array.of(0, 1, 0), batch: Int16Array.of(0, 0, 4), last: Int16Array.of(3, 3, 7), busy: Float32Array.of(50, 100, 25)},
};

test("the block under a place in time, lane by lane", () => {
  assert.equal(blockUnder(every, 0, 39), 0);
  assert.equal(blockUnder(every, 0, 40), 1);
  assert.equal(blockUnder(every, 1, 89), 4);
  assert.equal(blockUnder(every, 1, 100), -1);
  assert.equal(blockUnder(every, 0, -1), -1);
});

test("where micro-batches share a rectangle its height is its part of the time, rows under one another", () => {
  assert.deepEqual(partOf(every, 0, 0), [0, 1]);
  assert.deepEqual(partOf(shared, 0, 0), [0, 0.25]);
  assert.deepEqual(partOf(shared, 0, 1), [0.25, 0.5]);
  assert.equal(blockUnder(shared, 0, 50, 0.1), 0);
  assert.equal(blockUnder(shared, 0, 50, 0.5), 1);
  assert.equal(blockUnder(shared, 0, 50, 0.9), -1);
  assert.equal(blockUnder(shared, 0, 150, 0.1), 2);
});

test("cycles by cause of a range, of all IPUs or of one", () => {
  assert.deepEqual(spentIn(every, 0, 100), [30 + 40, 10, 0, 0, 10, 0, 60 + 40 + 10, 0, 0, 0]);
  assert.deepEqual(spentIn(every, 20, 60, 1), [10, 0, 0, 0, 10, 0, 20, 0, 0, 0]);
  assert.equal(idleOf(spentIn(every, 0, 100, 0)), 60);
  assert.deepEqual(spentIn(shared, 0, 200).slice(0, 2), [0.75 * 75 + 100, 0.25 * 75]);
});

test("the blocks of a micro-batch, in order of time, from all lanes", () => {
  assert.deepEqual(rowsOf(every, 3).map(({ipu, start, cycles}) => [ipu, start, cycles]), [[0, 0, 40], [1, 50, 40]]);
  assert.deepEqual(rowsOf(every, 2), []);
  assert.deepEqual(rowsOf(shared, 5).map(({start, batch}) => [start, batch]), [[100, "4 to 7"]]);
  assert.equal(rowsOf(every).length, 2);
});

test("micro-batches in words", () => {
  assert.equal(labelOf("backward", 3), "B3");
  assert.equal(labelOf("recompute", 0), "R0");
  assert.equal(labelOf("update", -1), "U");
  assert.equal(batchText(every.columns, 0), "3");
  assert.equal(batchText(shared.columns, 2), "4 to 7");
});

test("a marker keeps to the nearest end of a block within reach", () => {
  assert.equal(snapped(every, 43, 5), 40);
  assert.equal(snapped(every, 47.4, 4), 50);
  assert.equal(snapped(every, 70.4, 4), 70);
  assert.equal(snapped(every, 43, 0), 43);
});

test("what is known of an IPU alone is said to be its where stages share it", () => {
  assert.equal(ofIpu([{ipu: 0}, {ipu: 1}], "stash"), "stash");
  assert.equal(ofIpu([{ipu: 0}, {ipu: 1}, {ipu: 0}], "stash"), "stash, of its IPU");
});

test("one block of a micro-batch, and one IPU, are said in the singular", () => {
  assert.equal(blocksText([{ipu: 3}]), "1 block on 1 IPU");
  assert.equal(blocksText([{ipu: 3}, {ipu: 3}, {ipu: 0}]), "3 blocks on 2 IPUs");
});
