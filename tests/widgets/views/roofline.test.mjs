import assert from "node:assert/strict";
import test from "node:test";

import {decades, nearest} from "../../../workbench/widgets/views/roofline.js";

test("decades hold what is finite and above nothing", () => {
  const [low, high] = decades([10, 1000, 0, 1e30], 1e30);
  assert.ok(low < 1 && low > 0.5 && high > 3 && high < 3.5);
  assert.deepEqual(decades([]), [0, 1]);
});

test("the nearest point within reach", () => {
  assert.equal(nearest([[0, 0], [10, 0]], 7, 0), 1);
  assert.equal(nearest([[0, 0]], 50, 0), -1);
});
