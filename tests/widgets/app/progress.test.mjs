// The bar of what runs: phases, or compiles where they are counted.
import assert from "node:assert/strict";
import test from "node:test";
import {nextText, partsOf} from "../../../workbench/widgets/app/progress.js";

const phases = ["trace", "lower", "plan"].map((name) => ({name, seconds: null}));

test("a part is a phase", () => {
  const data = {phases, current: 1, state: "running", most: 0, over: 0};
  assert.deepEqual([partsOf(data).parts.length, partsOf(data).done, nextText(data)], [3, 1, "(2 of 3)"]);
  assert.equal(partsOf({...data, state: "done"}).done, 3);
  assert.equal(partsOf({...data, current: -1}).done, 0);
});

test("a part is a compile where it is known how many there are at most", () => {
  const data = {phases: [], current: -1, state: "running", most: 24, over: 5};
  assert.deepEqual([partsOf(data).parts.length, partsOf(data).done, nextText(data)], [24, 5, "(compile 6 of at most 24)"]);
  assert.equal(nextText({...data, over: 24}), "(compile 24 of at most 24)"); // all are over, and their end is told next
  assert.equal(partsOf({...data, state: "done"}).done, 24); // the search ended before: no more is awaited
});

test("of what nothing is known nothing is said", () => {
  const data = {phases: [], current: -1, state: "running", most: 0, over: 0};
  assert.deepEqual([partsOf(data).parts, nextText(data)], [[], ""]);
});
