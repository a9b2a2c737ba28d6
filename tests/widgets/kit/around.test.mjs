import assert from "node:assert/strict";
import test from "node:test";

import {here, subjects} from "../../../workbench/widgets/kit/around.js";

test("what is chosen can be explained, the most particular first", () => {
  assert.deepEqual(subjects({ipu: 1, tile: 0, step: 4, variable: null}).map(({ask}) => ask), [{tile: 0, step: 4, ipu: 1}, {step: 4}, {tile: 0, ipu: 1}]);
  assert.deepEqual(subjects({variable: 0}).map(({ask}) => ask), [{variable: 0}]);
  assert.deepEqual(subjects({}).map(({ask}) => ask), [{}]);
});

test("views and commands are found by every word", () => {
  const places = [{label: "Tile map"}, {label: "Trace"}];
  assert.deepEqual(here("MAP tile", places), [places[0]]);
  assert.deepEqual(here("", places), places);
});
