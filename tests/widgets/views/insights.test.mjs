import assert from "node:assert/strict";
import test from "node:test";

import {binOf} from "../../../workbench/widgets/views/insights.js";

test("every number of bytes up to the end is in one bin", () => {
  const bins = [[0, 10, 3], [10, 20, 4]];
  assert.deepEqual([0, 9, 10, 19, 20, 21, -1].map((bytes) => binOf(bins, bytes)), [0, 0, 1, 1, 1, -1, -1]);
});
