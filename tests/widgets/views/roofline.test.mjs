import assert from "node:assert/strict";
import test from "node:test";

import {decades, freest, nearest} from "../../../workbench/widgets/views/roofline.js";

test("decades hold what is finite and above nothing", () => {
  const [low, high] = decades([10, 1000, 0, 1e30], 1e30);
  assert.ok(low < 1 && low > 0.5 && high > 3 && high < 3.5);
  assert.deepEqual(decades([]), [0, 1]);
});

test("the nearest point within reach", () => {
  assert.equal(nearest([[0, 0], [10, 0]], 7, 0), 1);
  assert.equal(nearest([[0, 0]], 50, 0), -1);
});

test("a word stands where no point lies on it or near", () => {
  const places = [[0, 0, 40, 12], [100, 0, 40, 12], [200, 0, 40, 12]];
  assert.deepEqual(freest(places, []), places[0]);
  assert.deepEqual(freest(places, [[20, 6]]), places[1]);
  assert.deepEqual(freest(places, [[20, 6], [95, 6]]), places[2]); // 5 left of the second
  assert.deepEqual(freest(places, [[20, 6], [21, 6], [120, 6], [220, 6], [221, 6]]), places[1]); // fewest
});
