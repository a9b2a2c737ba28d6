import assert from "node:assert/strict";
import test from "node:test";

import {parted, rowsText} from "../../../workbench/widgets/kit/grid.js";

test("of a long name the end that tells it from others stands apart", () => {
  assert.deepEqual(parted("pool_0/select_and_scatter_add:backward#2"), ["pool_0/select_and_scatter_add", ":backward#2"]);
  assert.deepEqual(parted("select_and_scatter_add"), ["select_and_scatter", "_add"]);
  assert.deepEqual(parted("decoder/block_3/kernel"), ["decoder/block_3", "/kernel"]);
  assert.deepEqual(parted("conv_1/reduce"), ["conv_1/reduce", ""]); // short enough
});

test("a name without parts keeps its last six code points", () => {
  assert.deepEqual(parted("a".repeat(20)), ["a".repeat(14), "aaaaaa"]);
  assert.deepEqual(parted("🙂".repeat(17)), ["🙂".repeat(11), "🙂".repeat(6)]);
  assert.deepEqual(parted(""), ["", ""]);
});

test("one row is one row", () => {
  assert.deepEqual([rowsText(1, 1), rowsText(0, 1), rowsText(1, 2000), rowsText(2000, 2000)], ["1 row", "0 of 1 row", "1 of 2,000 rows", "2,000 rows"]);
});
