import assert from "node:assert/strict";
import test from "node:test";

import {causeCycles, freeOf, secondsText, tickTexts, timeTicks} from "../../../workbench/widgets/kit/lanes.js";
import {chosenPlace} from "../../../workbench/widgets/kit/kernel.js";
import {bring, ceiling, highest, liveAt, runs} from "../../../workbench/widgets/views/liveness_view.js";
import {columnsOf} from "../../../workbench/widgets/views/memory.js";
import {offlineModel} from "../../../workbench/widgets/kit/offline.js";
import {bytesAt, covering, fullest, rectangleAt} from "../../../workbench/widgets/views/xray.js";
import {cellOf, pixels, rampColour, tileAt} from "../../../workbench/widgets/kit/floor.js";
import {bytesOfTile, largestTile, totals} from "../../../workbench/widgets/kit/tiles.js";

test("what is live at a place, largest first", () => {
  const columns = {interval_variable: [0, 1, 2, 0], interval_first: [0, 2, 2, 6], interval_last: [3, 4, 2, 9], variable_bytes: [10, 30, 20]};
  assert.deepEqual(liveAt(columns, 0), [0]);
  assert.deepEqual(liveAt(columns, 2), [1, 2, 0]);
  assert.deepEqual(liveAt(columns, 5), []);
  assert.deepEqual(liveAt(columns, 9), [0]);
});

test("the first of the highest, and runs of equals", () => {
  assert.equal(highest([1, 5, 5, 2], 0, 3), 1);
  assert.equal(highest([1, 5, 5, 2], 2, 3), 2);
  assert.deepEqual(runs([4, 4, 7, 4], 0, 3), [[0, 1, 4], [2, 2, 7], [3, 3, 4]]);
});

test("the capacity is drawn when it is near", () => {
  assert.equal(ceiling(50, 100).drawn, true);
  assert.equal(ceiling(10, 100).drawn, false);
  assert.ok(ceiling(120, 100).top > 120);
  assert.ok(ceiling(0, 0).top > 0);
});

test("each pixel column shows its fullest tile, and every tile is in a column", () => {
  assert.deepEqual(columnsOf([1, 9, 3, 4], 0, 4, 2), [[1, 0, 2], [3, 2, 4]]);
  assert.deepEqual(columnsOf([1, 9], 0, 2, 10), [[0, 0, 1], [1, 1, 2]]);
});

test("tiles run down the rows; a place outside is no tile", () => {
  const plan = {rows: 3, columns: 2};
  for (let tile = 0; tile < 5; tile++) {
    const {column, row} = cellOf(plan, tile);
    assert.equal(tileAt(plan, column, row, 5), tile);
  }
  assert.equal(tileAt(plan, 1, 2, 5), -1);
  assert.equal(tileAt(plan, -1, 0, 5), -1);
  assert.equal(tileAt(plan, 0, 3, 5), -1);
});

test("colours on the ramp", () => {
  assert.equal(rampColour(["#000000", "#ffffff"], 0), "rgb(0,0,0)");
  assert.equal(rampColour(["#000000", "#ffffff"], 0.5), "rgb(128,128,128)");
  assert.equal(rampColour(["#000000", "#808080", "#ffffff"], 7), "rgb(255,255,255)");
});

test("a floor as pixels: tiles down the rows of each column, clear where there is none", () => {
  const bytes = (values, low, high) => [...new Uint8Array(pixels({columns: 2, rows: 3}, values, ["#000000", "#ff8000"], low, high).buffer)];
  const black = [0, 0, 0, 255], orange = [255, 128, 0, 255], none = [0, 0, 0, 0];
  assert.deepEqual(bytes([0, 10, 0, 10, 99], 0, 10), [...black, ...orange, ...orange, ...orange, ...black, ...none]);
  assert.deepEqual(bytes([7, 7, 0], 7, 7), [...orange, ...none, ...orange, ...none, ...black, ...none]);
  const half = bytes([5], 0, 10);
  assert.deepEqual(half.slice(0, 4), [128, 64, 0, 255]);
});

test("bytes of tiles by category, hidden ones left out", () => {
  const view = {data: {ipus: 2, held: [0, 1], tiles: 2, categories: [{}, {}]}, columns: {bytes: [1, 2, 3, 4, 10, 20, 30, 40]}};
  assert.deepEqual(bytesOfTile(view, 1, 0), [3, 30]);
  assert.deepEqual([...totals(view, 0)], [11, 22]);
  assert.deepEqual([...totals(view, 0, new Set([1]))], [1, 2]);
  assert.equal(largestTile([3, 8, 8]), 1);
});

test("cycles by cause inside a window, from blocks and bins", () => {
  const data = {from: 0, to: 100, bins: 10, busy: [{}, {}]};
  const lane = {start: [10, 40], cycles: [20, 10], step: [0, 1], bins: new Uint8Array(20)};
  lane.bins[2 * 9] = 255;
  assert.deepEqual([...causeCycles(data, lane, (step) => step, 0, 100)], [30, 10]);
  assert.deepEqual([...causeCycles(data, lane, (step) => step, 20, 45)], [10, 5]);
  assert.deepEqual([...causeCycles(data, lane, (step) => step, 95, 100)], [5, 0]);
});

test("bins are drawn in what blocks leave free", () => {
  const data = {from: 0, to: 40, bins: 4};
  assert.deepEqual([...freeOf(data, {start: [5, 20], cycles: [10, 15], bins: [1]})], [0.5, 0.5, 0, 0.5]);
  assert.deepEqual([...freeOf(data, {start: [-100], cycles: [105], bins: [1]})], [0.5, 1, 1, 1]);
});

test("times and ticks in words", () => {
  assert.equal(secondsText(1330, 1.33e9), "1.00 µs");
  assert.equal(secondsText(1, 1e9), "1.00 ns");
  assert.deepEqual(tickTexts([1000, 2000]), ["1 k", "2 k"]);
  assert.deepEqual(tickTexts([0, 500000, 1000000, 1500000]), ["0", "500 k", "1 M", "1.5 M"]);
  assert.deepEqual(tickTexts([1234001, 1234002]), ["1,234,001", "1,234,002"]);
  // 950,000 / (450 / 70) is 147,778 cycles, of which 200,000 is the next round number.
  const [marks, text] = timeTicks(0, 950000, 450);
  assert.deepEqual(marks.map(text), ["0", "200 k", "400 k", "600 k", "800 k"]);
  // At worst a mark is 2.5 times 70 pixels from the next.
  for (let cycles = 1; cycles < 1e7; cycles = 1 + Math.floor(cycles * 1.01)) assert.ok(timeTicks(0, cycles, 350)[0].length >= 3 || cycles < 3, `${cycles}`);
});

test("a model without a kernel tells its listeners what changed, once", () => {
  const model = offlineModel({step: 1}), heard = [];
  const off = () => heard.push(model.get("step"));
  model.on("change:step", off);
  model.set({step: 2, tile: null});
  assert.deepEqual(heard, []);
  model.save_changes();
  model.set("step", 2);
  model.save_changes();
  assert.deepEqual(heard, [2]);
  model.off("change:step", off);
  model.set("step", 3);
  model.save_changes();
  assert.deepEqual(heard, [2]);
});

const MEMORY = {address: [0, 100, 60, 0], bytes: [50, 20, 40, 60], first: [0, 0, 2, 4], last: [3, 5, 4, 5]};

test("what an X-ray covers at a place, from the lowest address on", () => {
  assert.deepEqual(covering(MEMORY, 0), [0, 1]);
  assert.deepEqual(covering(MEMORY, 3), [0, 2, 1]);
  assert.equal(bytesAt(MEMORY, covering(MEMORY, 4)), 20 + 40 + 60);
});

test("the place with most bytes, and the rectangle under a finger", () => {
  assert.equal(fullest(MEMORY, 6), 4);
  assert.equal(rectangleAt(MEMORY, 2, 75), 2);
  assert.equal(rectangleAt(MEMORY, 1, 75), -1);
  assert.equal(rectangleAt(MEMORY, 5, 10), 3);
});

test("the chosen step is found where it is chosen, its first place else, and on no other IPU", () => {
  const place = (chosen) => chosenPlace(offlineModel(chosen), 1, Int32Array.of(7, 8, 7, 9));
  assert.equal(place({step: 7, position: 2, ipu: 1}), 2);
  assert.equal(place({step: 7, position: 1, ipu: 1}), 0); // at place 1 is another step
  assert.equal(place({step: 9}), 3);
  assert.equal(place({step: 9, ipu: 0}), -1);
  assert.equal(place({step: 5, ipu: 1}), -1);
  assert.equal(place({position: 2}), -1);
});

test("liveness moves to a place that was chosen elsewhere, and is zoomed as before", () => {
  const moved = (chosen) => { let at = null; bring({chosen, at: {from: 100, to: 140}, zoom: {set: (...to) => { at = to; }}}); return at; };
  assert.deepEqual(moved(500), [480, 520]);
  assert.deepEqual(moved(140), [120, 160]); // the first behind what is in view
  assert.equal(moved(139), null);
  assert.equal(moved(-1), null);
});
