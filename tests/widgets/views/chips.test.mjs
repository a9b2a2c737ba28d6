import assert from "node:assert/strict";
import test from "node:test";

import {placed, shares, under} from "../../../workbench/widgets/views/chips.js";

test("64 IPUs stand in two rows, few in one", () => {
  assert.deepEqual(placed(64, 1000, 32), {across: 32, lines: 2, wide: 30.75});
  assert.equal(placed(4, 1000, 32).lines, 1);
  assert.equal(placed(4, 1000, 32).wide, 72);
  assert.equal(placed(64, 300, 32).across, 15);
});

test("the IPU under a place", () => {
  const grid = placed(64, 1000, 32);
  assert.equal(under(grid, 64, 10, 10), 0);
  assert.equal(under(grid, 64, 10 + 30.75, 70), 33);
  assert.equal(under(grid, 40, 10 + 9 * 30.75, 70), -1);
  assert.equal(under(grid, 64, 2, 10), -1);
});

test("shares of a tile's memory and of the call", () => {
  const view = {data: {capacity_bytes: 100, total_cycles: 40}, columns: {bytes: [50, 120], waiting: [10, 0]}};
  assert.deepEqual(shares(view, 0), {memory: 0.5, waiting: 0.25});
  assert.deepEqual(shares(view, 1), {memory: 1.2, waiting: 0});
});
