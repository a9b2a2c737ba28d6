import assert from "node:assert/strict";
import test from "node:test";

import {orderOf, said, seriesOf, sumsOf} from "../../../workbench/widgets/views/memory.js";

const DATA = {ipus: 2, held: [0, 1], tiles: 3, categories: [{label: "a"}, {label: "b"}], liveness: [{}, {}]};
const COLUMNS = {bytes: Int32Array.of(1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60), liveness: Int32Array.of(7, 7, 7, 8, 8, 8, 1, 1, 1, 2, 2, 2)};

test("a split has its parts of the chosen IPU", () => {
  const view = {data: DATA, columns: COLUMNS, split: "category", asked: null};
  assert.deepEqual(seriesOf(view, 1).bytes.map((values) => [...values]), [[4, 5, 6], [40, 50, 60]]);
  assert.deepEqual(seriesOf({...view, split: "liveness"}, 0).bytes.map((values) => [...values]), [[7, 7, 7], [1, 1, 1]]);
});

test("what the kernel works out is drawn for the IPU and the split that it is of, nothing before", () => {
  const asked = {name: "region", ipu: 1, paints: [{}, {}], bytes: Int32Array.of(1, 2, 3, 4, 5, 6)}, view = {data: DATA, columns: COLUMNS, split: "region", asked};
  assert.deepEqual(seriesOf(view, 1).bytes.map((values) => [...values]), [[1, 2, 3], [4, 5, 6]]);
  assert.deepEqual(seriesOf(view, 0), {paints: [], bytes: []});
  assert.deepEqual(seriesOf({...view, split: "allocated"}, 1), {paints: [], bytes: []});
});

test("hidden parts are in no sum", () => {
  const series = {bytes: [Int32Array.of(1, 2), Int32Array.of(10, 20)]};
  assert.deepEqual([...sumsOf(series, 2, new Set())], [11, 22]);
  assert.deepEqual([...sumsOf(series, 2, new Set([0]))], [10, 20]);
});

test("tiles stand by number, by row of the plan, or the fullest first", () => {
  const sums = Float64Array.of(5, 9, 5, 1), rows = [0, 1, 0, 1];
  assert.deepEqual(orderOf("number", sums, rows), [0, 1, 2, 3]);
  assert.deepEqual(orderOf("place", sums, rows), [0, 2, 1, 3]);
  assert.deepEqual(orderOf("fullest", sums, rows), [1, 0, 2, 3]);
});

test("the sentence is of the split that is drawn", () => {
  const data = {...DATA, ipu: 0, capacity_bytes: 100, sentences: ["of IPU 0", "of IPU 1"], liveness: [{label: "always"}, {label: "come and go"}], splits: {liveness: "liveness", region: "region", variables: "variables"}};
  const view = (split, more) => ({data, columns: COLUMNS, selection: {get: () => null}, hidden: new Set(), order: "number", version: 0, asked: null, split, ...more});
  assert.equal(said(view("category")), "of IPU 0");
  // 7 and 1 bytes on each of 3 tiles.
  assert.equal(said(view("liveness")), "Modelled memory of IPU 0 by liveness: tile 0 is fullest with 8 B of 100 B, the average is 8 B; of 24 B in all the largest parts are always 21 B and come and go 3 B");
  assert.equal(said(view("liveness", {hidden: new Set([0])})), said(view("liveness")));
  const asked = {name: "region", ipu: 0, paints: [{label: "interleaved"}], bytes: Int32Array.of(1, 2, 30)};
  assert.equal(said(view("region", {asked})), "Modelled memory of IPU 0 by region: tile 2 is fullest with 30 B of 100 B, the average is 11 B; of 33 B in all the largest part is interleaved 33 B");
  assert.equal(said(view("region")), "Modelled memory of IPU 0 by region");
  assert.equal(said(view("variables")), "Modelled memory of IPU 0 by variables: none yet");
});
