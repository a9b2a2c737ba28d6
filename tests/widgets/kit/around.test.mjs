import assert from "node:assert/strict";
import test from "node:test";

import {here, keepZoom, subjects} from "../../../workbench/widgets/kit/around.js";

test("what is chosen can be explained, the most particular first", () => {
  assert.deepEqual(subjects({ipu: 1, tile: 0, step: 4, variable: null}).map(({ask}) => ask), [{tile: 0, step: 4, ipu: 1}, {step: 4}, {tile: 0, ipu: 1}]);
  assert.deepEqual(subjects({variable: 0}).map(({ask}) => ask), [{variable: 0}]);
  assert.deepEqual(subjects({}).map(({ask}) => ask), [{}]);
  assert.deepEqual(subjects({tile: 1471, step: 12345}).map(({label}) => label), ["tile 1,471 at step 12,345", "step 12,345", "tile 1,471"]);
});

test("views and commands are found by every word", () => {
  const places = [{label: "Tile map"}, {label: "Trace"}];
  assert.deepEqual(here("MAP tile", places), [places[0]]);
  assert.deepEqual(here("", places), places);
});

test("a picture is zoomed to where the one in its place was, and one that shows all forgets it", () => {
  const canvasAt = (from = 0, to = 1) => { const canvas = {zoomed: {heard: () => {}, get: () => [from, to], set: (a, b) => { [from, to] = [a, b]; }}}; return canvas; };
  const first = canvasAt();
  keepZoom(first, "app", "Trace");
  assert.deepEqual(first.zoomed.get(), [0, 1]);
  first.zoomed.set(0.25, 0.5);
  first.zoomed.heard();
  const [next, other, apart] = [canvasAt(), canvasAt(), canvasAt()];
  keepZoom(next, "app", "Trace");
  keepZoom(other, "app", "Memory");
  keepZoom(apart, "", "Trace");
  assert.deepEqual([next, other, apart].map((canvas) => canvas.zoomed.get()), [[0.25, 0.5], [0, 1], [0, 1]]);
  next.zoomed.set(0, 1);
  next.zoomed.heard();
  const last = canvasAt();
  keepZoom(last, "app", "Trace");
  assert.deepEqual(last.zoomed.get(), [0, 1]);
  keepZoom(null, "app", "Insights");
});
