import assert from "node:assert/strict";
import test from "node:test";

import {Parts, between, costOf, cutText, lines, nextPlace, summed} from "../../../workbench/widgets/views/exchange.js";

const columns = {tile_received: [0, 8, 0], arrow_from: [0, 2, 1], arrow_to: [1, 1, 0], arrow_bytes: [3, 5, 2], part_direct: [1, 9, 0]};
const facts = {step: 7, tile: 1, known: [1], untold: "", explained: {}};

test("arrows of a tile come in and go out, the largest first", () => {
  const parts = new Parts();
  parts.take(facts, columns);
  const {ends} = parts.of(7, 1);
  assert.deepEqual(ends, {in: [{tile: 2, bytes: 5}, {tile: 0, bytes: 3}], out: [{tile: 0, bytes: 2}]});
  assert.equal(summed(ends.in), columns.tile_received[1]);
  assert.deepEqual([...between(ends, 3)], [5, 0, 5]);
});

test("what has not come is not shown as nothing", () => {
  const parts = new Parts();
  parts.take(facts, columns);
  assert.equal(parts.of(7, 2).ends, null);
  assert.equal(parts.of(8, 1), null);
  parts.take({...facts, step: 8, untold: "not recorded"}, columns);
  assert.deepEqual(parts.of(8, 2).ends, {in: [], out: []});
});

test("tiles that come later are added, and old steps go", () => {
  const parts = new Parts(2);
  parts.take(facts, columns);
  parts.take({...facts, known: [0], tile: 0}, columns);
  assert.equal(parts.of(7, 1).ends.in.length, 2);
  assert.equal(parts.of(7, 0).ends.out.length, 1);
  for (const step of [8, 9]) parts.take({...facts, step}, columns);
  assert.equal(parts.of(7, 1), null);
});

test("the cheaper way is taken, and what decides is named", () => {
  const direct = {receiving: [10], sending: [4], control: [30], staging: [50], direct: [30], staged: [60]};
  assert.equal(costOf(direct, 0).decides, "control");
  assert.equal(costOf(direct, 0).cycles, 30);
  const staged = {...direct, control: [90], direct: [90]};
  assert.equal(costOf(staged, 0).decides, "staging");
  assert.equal(costOf(staged, 0).cycles, 60);
  assert.equal(costOf({}, 0), null);
});

test("steps follow one another in the program, or by what they take", () => {
  const places = {step: [5, 6, 9], total_cycles: [10, 30, 20]};
  assert.equal(nextPlace(places, 0, 1), 1);
  assert.equal(nextPlace(places, 2, 1), 2);
  assert.equal(nextPlace(places, 1, 1, true), 2);
  assert.equal(nextPlace(places, 2, 1, true), 0);
  assert.equal(nextPlace(places, 1, -1, true), 1);
});

test("a line is drawn from its sender to its receiver", () => {
  const plan = {at: (tile) => ({x: 10 * tile, y: 0, w: 10, h: 4})};
  const [line] = lines([{tile: 3, bytes: 4}], "in", plan, 1, 4);
  assert.deepEqual([line.x0, line.x1, line.y0], [35, 15, 2]);
  const [back] = lines([{tile: 3, bytes: 1}], "out", plan, 1, 4);
  assert.ok(back.x0 < back.x1 && back.wide < line.wide);
});

test("arrows that are not drawn are told", () => {
  const ends = {in: Array(5).fill({tile: 0, bytes: 1}), out: Array(2).fill({tile: 1, bytes: 1})};
  assert.equal(cutText(ends), "");
  assert.equal(cutText(ends, 5), "");
  assert.equal(cutText(ends, 4), "Arrows: 4 of 5 that come in and 2 of 2 that go out are drawn, those with most bytes; the list below has all.");
  assert.equal(cutText({in: [], out: ends.in}, 1), "Arrows: 1 of 5 that go out are drawn, those with most bytes; the list below has all.");
});
