import assert from "node:assert/strict";
import test from "node:test";

import {balanceText, geometry, scrolledTo, windowAround} from "../../../workbench/widgets/views/trace.js";
import {beginnings, edgeNear, levelsOf, nextOf, rangeOf, sharesOf} from "../../../workbench/widgets/views/trace_parts.js";

const STRETCHES = [[0, 10, "enc/a/q"], [10, 20, "enc/a/k"], [20, 30, "enc/b/q"], [40, 50, "head"]];

test("a path begins with each path above it", () => {
  assert.deepEqual(beginnings("enc/a_b"), ["enc", "enc/a", "enc/a_b"]);
});

test("levels lie inside one another, the deepest last", () => {
  const levels = levelsOf(STRETCHES, 3, 9, 0);
  assert.deepEqual(levels, [[[0, 30, "enc"], [40, 50, "head"]], [[0, 20, "enc/a"], [20, 30, "enc/b"], [40, 50, "head"]], [[0, 10, "enc/a/q"], [10, 20, "enc/a/k"], [20, 30, "enc/b/q"], [40, 50, "head"]]]);
  levels.slice(1).forEach((below, i) => below.forEach(([from, to, name]) => assert.equal(levels[i].filter((each) => each[0] <= from && to <= each[1] && name.startsWith(each[2])).length, 1)));
});

test("levels without room are left out, and no level stands twice", () => {
  assert.deepEqual(levelsOf(STRETCHES, 3, 3, 0).map((level) => level.length), [2, 3]);
  assert.deepEqual(levelsOf(STRETCHES, 1, 9, 0).map((level) => level.length), [4]);
  assert.deepEqual(levelsOf([[0, 5, "a"], [5, 9, "b"]], 3, 9, 0).length, 1);
  assert.deepEqual(levelsOf([], 3, 9, 0), [[]]);
});

const LANES = [{start: [0, 10, 40], cycles: [10, 20, 5], layerStart: [0, 20, 60], layerCycles: [10, 10, 5], layer: [0, 1, 0]}, {start: [], cycles: [], layerStart: [30], layerCycles: [4], layer: [0]}];

test("the next place of a layer is over all lanes, forwards and back", () => {
  const layers = ["enc/a", "enc/b"];
  assert.deepEqual(nextOf(LANES, layers, "enc/a", 0, 1), [30, 34]);
  assert.deepEqual(nextOf(LANES, layers, "enc/a", 30, 1), [60, 65]);
  assert.deepEqual(nextOf(LANES, layers, "enc/a", 60, 1), null);
  assert.deepEqual(nextOf(LANES, layers, "enc/a", 60, -1), [30, 34]);
  assert.deepEqual(nextOf(LANES, layers, "enc", 25, -1), [20, 30]);
});

test("a range is whole cycles in the program, never empty", () => {
  assert.deepEqual(rangeOf(9.6, 3.2, 100), [3, 10]);
  assert.deepEqual(rangeOf(-5, 400, 100), [0, 100]);
  assert.deepEqual(rangeOf(7, 7, 100), [7, 8]);
  assert.deepEqual(rangeOf(100, 100, 100), [99, 100]);
});

test("markers keep to edges that are near", () => {
  assert.equal(edgeNear(LANES, 12, 4), 10);
  assert.equal(edgeNear(LANES, 29, 4), 30);
  assert.equal(edgeNear(LANES, 39, 4), 40);
  assert.equal(edgeNear(LANES, 20, 4), 20);
});

test("columns of the small picture hold the cycles of the lanes by cause", () => {
  const data = {from: 0, to: 100, bins: 4, busy: [{}, {}]}, info = new Map([[7, {cause: 0}]]);
  const lanes = [{start: [0], cycles: [50], step: [7], bins: []}, {start: [], cycles: [], step: [], bins: new Uint8Array([0, 0, 0, 0, 0, 255, 0, 51])}];
  const sums = sharesOf({data, lanes, info}, 10), of = (cause) => [...Array(10).keys()].reduce((all, x) => all + sums[x * 2 + cause] * 10 * lanes.length, 0);
  assert.ok(Math.abs(of(0) - 50) < 1e-3);
  assert.ok(Math.abs(of(1) - (25 + 5)) < 1e-3);
});

test("a balance says over how many tiles it is", () => {
  const data = {tiles: 1472, tiles_of: 2}, said = "Tile balance of compute on IPU 2:";
  assert.equal(balanceText(data, {balance: 1, active: 1}), `${said} 100.0 % among its active tiles, 1 of 1,472`);
  assert.equal(balanceText(data, {balance: 0.987, active: 1472}), `${said} 98.7 % among its active tiles, 1,472 of 1,472`);
  assert.equal(balanceText(data, {balance: 0.5, active: 4.75}), `${said} 50.0 % among its active tiles, on average 4.8 of 1,472`);
  assert.equal(balanceText(data, {balance: 1, active: 0}), "No compute on IPU 2");
});

const many = (ipus, scrollTop = 0) => geometry({live: true, data: {lanes: [...Array(ipus).keys()]}, lanesAt: {scrollTop}}, 900);

test("a drawing of many IPUs is no higher than a screen, and its lanes are scrolled to the last", () => {
  for (const ipus of [1, 2, 4, 8]) assert.equal(many(ipus).height, many(ipus).all);
  const {all, height, lane, room, box} = many(64);
  assert.equal(all, 2048); // 54 above, 64 lanes of 30, 32 of what is said of tiles, 42 of axis
  assert.ok(height <= 720 && box.y + box.h < height);
  assert.equal(all - height, 64 * lane - room); // scrolled to the end the last lane is whole
  assert.equal(many(64, 10 ** 6).scrolled, 64 * lane - room);
});

test("lanes have the place of tiles until these are drawn, and the drawing is as high before as after", () => {
  const of = (ipus, bands) => geometry({live: true, data: {lanes: [...Array(ipus).keys()], bands}}, 900);
  assert.deepEqual([16, 64].map((ipus) => of(ipus, null).seen), [16, 17]); // 640 less 54, 42 and 32 are 512: 17 lanes of 30
  assert.deepEqual([16, 64].map((ipus) => of(ipus, {ipu: 0}).seen), [13, 13]); // 640 less 54, 42 and 150 are 394
  assert.equal(of(16, null).all, of(16, null).height); // none is hidden
  for (const ipus of [8, 14, 16, 64]) assert.equal(of(ipus, null).height, of(ipus, {ipu: 0}).height);
  for (const [ipus, lane] of [[7, 46], [8, 44], [10, 41], [13, 39]]) { // 30, and a part of 150 less 32
    const found = of(ipus, null), below = found.height - 54 - 42 - ipus * found.lane;
    assert.deepEqual([found.lane, found.phase, found.all], [lane, lane - 14, found.height]);
    assert.ok(below >= 32 && below < 32 + ipus); // what is said of tiles, and less than a pixel for each lane
    assert.equal(of(ipus, {ipu: 0}).lane, 30);
  }
  assert.equal(of(4, null).lane, of(4, {ipu: 0}).lane); // high ones stay as they are
  // 54 above, lanes of 135 (two or fewer) or of 75, 32 of what is said of tiles, 42 of axis; tiles are 150 high, and 640 is the most
  for (const [ipus, lanes, drawn] of [[1, 135, 381], [2, 270, 516], [3, 225, 471], [4, 300, 546], [6, 450, 640]]) {
    assert.deepEqual([of(ipus, null).height, of(ipus, null).all], [54 + lanes + 32 + 42, 54 + lanes + 32 + 42]);
    assert.equal(of(ipus, {ipu: 0}).height, drawn);
  }
  const stored = geometry({live: false, data: {lanes: [...Array(16).keys()]}}, 900);
  assert.deepEqual([stored.seen, stored.height, stored.all], [16, 576, 576]); // 54, 480 and 42: no place is kept
});

test("a lane is scrolled to only as far as it takes", () => {
  const {lane, room} = many(64), seen = Math.floor(room / lane);
  assert.equal(scrolledTo({lane, room, scrolled: 0}, 0), 0);
  assert.equal(scrolledTo({lane, room, scrolled: 0}, seen - 1), 0);
  assert.equal(scrolledTo({lane, room, scrolled: 0}, 63), 64 * lane - room);
  assert.equal(scrolledTo({lane, room, scrolled: 500}, 2), 2 * lane);
});

test("a step out of view comes into its middle, with as much in view as before", () => {
  assert.deepEqual(windowAround({from: 100, to: 200}, 500, 520), [460, 560]);
  assert.deepEqual(windowAround({from: 100, to: 200}, 500, 1500), [500, 600]); // one longer than the window from its start on
  assert.equal(windowAround({from: 100, to: 200}, 190, 300), null);
  assert.equal(windowAround({from: 100, to: 200}, 120, 130), null);
  assert.deepEqual(windowAround({from: 100, to: 200}, 200, 210), [155, 255]);
});
