import assert from "node:assert/strict";
import test from "node:test";

import {about, commonLayer, linesOf, listOf, nextWith, partsOf} from "../../../workbench/widgets/views/source.js";

const COLUMNS = {file: [0, 0, 0, 1], number: [3, 4, 9, 1], text: [0, 1, -1, 2], line: [-1, 1, -1, 0]};
const FILES = [{file: "a.py", name: "a.py"}, {file: "b.py", name: "Cell 2"}];

test("files have heads where there are several, and what is left out is a gap", () => {
  const list = listOf(COLUMNS, FILES);
  assert.deepEqual(list.map(({head, from, to, number}) => head?.name ?? (to ? [from, to] : number)), ["a.py", 3, 4, [5, 8], 9, "Cell 2", 1]);
  assert.equal(listOf({file: [0], number: [1], text: [0], line: [0]}, FILES.slice(0, 1)).length, 1);
});

test("keys go from line with a cost to line with a cost, and stay at the ends", () => {
  const list = listOf(COLUMNS, FILES);
  assert.equal(nextWith(list, -1, 1), 2);
  assert.equal(nextWith(list, 2, 1), 6);
  assert.equal(nextWith(list, 6, 1), 6);
  assert.equal(nextWith(list, 6, -1), 2);
});

test("parts of the strip lie beside one another and end with what has no line", () => {
  const parts = partsOf([1, 0], [30, 50], 100);
  assert.deepEqual(parts, [{line: 1, from: 0, to: 0.5}, {line: 0, from: 0.5, to: 0.8}, {line: -1, from: 0.8, to: 1}]);
  assert.deepEqual(partsOf([], [], 0), [{line: -1, from: 0, to: 1}]);
});

test("the layer of several steps is what they are all under", () => {
  assert.equal(commonLayer(["enc/a/dense", "enc/a/norm"]), "enc/a");
  assert.equal(commonLayer(["enc/a", "enc/ab"]), "enc");
  assert.equal(commonLayer(["enc", "head"]), "");
  assert.equal(commonLayer(["enc"]), "enc");
  assert.equal(commonLayer([]), "");
});

test("a step of a shared body marks the line of the layer that is chosen with it", () => {
  const columns = {step_line: [0, 1, 2], step: [7, 7, 8], step_layer: [0, 1, 2]}, strings = ["enc/one", "enc/two", "head"];
  assert.deepEqual([...linesOf(columns, strings, {step: 7, layer: "enc/two"})], [1]);
  assert.deepEqual([...linesOf(columns, strings, {step: 7, layer: null})], [0, 1]);
  assert.deepEqual([...linesOf(columns, strings, {step: null, layer: "enc"})], [0, 1]);
  assert.deepEqual([...linesOf(columns, strings, {step: null, layer: "en"})], []);
  assert.deepEqual([...linesOf(columns, strings, {step: 0, layer: null})], []);
});

test("a line that one step is of says so in the singular", () => {
  const columns = {cycles: [30, 10], peak_bytes: [4, 4], code_bytes: [0, 0], step: [7, 7, 8, 9], step_layer: [0, 0, 0, 0]};
  const view = {columns, data: {lines: ["a.py:3", "a.py:4"], texts: ["x = 1", "y = 2"], strings: [""], total_cycles: 40}, list: [{text: 0}, {text: 1}], placeOf: new Map([[0, 0], [1, 1]]), byLine: [[0, 1], [2, 3]]};
  assert.equal(about(view, 0).at(-1), "1 step"); // executed twice: one step of the program
  assert.equal(about(view, 1).at(-1), "2 steps");
});
