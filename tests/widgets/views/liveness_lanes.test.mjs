import assert from "node:assert/strict";
import test from "node:test";

import {chosenStretch, highestOf, ipuOfStretch, stretchAt} from "../../../workbench/widgets/views/liveness_lanes.js";

// Three IPUs: of ten places in two stretches, where nothing runs, of three places in three.
const COLUMNS = {start: [0, 2, 2, 5], first: [0, 4, 0, 1, 2], live: [7, 9, 3, 8, 8]}, LANES = {positions: [10, 0, 3]};

test("the stretch of a place of an IPU's own program", () => {
  assert.deepEqual([0, 3, 4, 9, 10, -1].map((place) => stretchAt(COLUMNS, LANES, 0, place)), [0, 0, 1, 1, -1, -1]);
  assert.deepEqual([0, 2, 3].map((place) => stretchAt(COLUMNS, LANES, 2, place)), [2, 4, -1]);
  assert.equal(stretchAt(COLUMNS, LANES, 1, 0), -1);
  assert.equal(stretchAt(COLUMNS, LANES, 3, 0), -1);
});

test("each stretch is of one IPU, and the highest of each is the first of equals", () => {
  assert.deepEqual([0, 1, 2, 3, 4].map((stretch) => ipuOfStretch(COLUMNS, stretch)), [0, 0, 2, 2, 2]);
  assert.deepEqual([0, 1, 2].map((ipu) => highestOf(COLUMNS, COLUMNS.live, ipu)), [1, -1, 3]);
});

test("what is chosen: a place, else the highest of the IPU", () => {
  const chosen = (ipu, position) => chosenStretch({columns: COLUMNS, data: {ipus: 3, lanes: LANES}, measure: "live", selection: {get: (name) => ({ipu, position})[name]}});
  assert.equal(chosen(null, null), -1);
  assert.equal(chosen(0, 2), 0);
  assert.equal(chosen(0, null), 1);
  assert.equal(chosen(2, 99), 3);
  assert.equal(chosen(1, 0), -1);
});
