import assert from "node:assert/strict";
import test from "node:test";

import {keyMarks} from "../../../workbench/widgets/kit/floor.js";

const sixty = () => 60;

test("numbers of a colour key leave one another room", () => {
  // 300 pixels for 0 to 26: 20 would stand at 231 and reach 261, beyond the last number's start at 240; 10 stands at 115.
  assert.deepEqual(keyMarks(0, 26, 300, sixty), [0, 10, 26]);
  assert.deepEqual(keyMarks(0, 26, 300, () => 20), [0, 10, 20, 26]); // 20 ends at 241, the last begins at 280
});

test("a key of one value says it once", () => {
  assert.deepEqual(keyMarks(7, 7, 300, sixty), [7]);
});
