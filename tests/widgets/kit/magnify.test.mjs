import assert from "node:assert/strict";
import test from "node:test";

import {Programs} from "../../../workbench/widgets/kit/frames.js";
import {floor} from "../../../workbench/widgets/kit/floor.js";
import {clampGlass, enlarge, magnified, reveal} from "../../../workbench/widgets/kit/magnify.js";

const PLAN = {columns: 64, rows: 23, lanes: 4}, WHOLE = floor(PLAN, 1472, 34, 22, 700, 280);

test("a glass stays within the whole and never shows less than a part of it", () => {
  assert.deepEqual(clampGlass({zoom: 0.2, x: 0.5, y: -1}), {zoom: 1, x: 0, y: 0});
  assert.deepEqual(clampGlass({zoom: 4, x: 0.9, y: 0.1}), {zoom: 4, x: 0.75, y: 0.1});
  assert.equal(clampGlass({zoom: 1e9, x: 0, y: 0}).zoom, 24);
});

test("the point it is enlarged about stays where it is", () => {
  const about = [0.25, 0.75], before = {zoom: 2, x: 0.2, y: 0.1}, after = enlarge(before, 3, about);
  for (const [axis, part] of [["x", about[0]], ["y", about[1]]]) assert.ok(Math.abs(before[axis] + part / 2 - (after[axis] + part / 6)) < 1e-12);
  assert.deepEqual(enlarge(after, 1 / 100, about), {zoom: 1, x: 0, y: 0});
});

test("every tile is under its own middle, at any enlargement", () => {
  for (const glass of [{zoom: 1, x: 0, y: 0}, {zoom: 3, x: 0.3, y: 0.5}, {zoom: 24, x: 0.9, y: 0.2}]) {
    const here = magnified(WHOLE, clampGlass(glass));
    for (let tile = 0; tile < 1472; tile += 7) {
      const {x, y, w, h} = here.at(tile), px = x + w / 2, py = y + h / 2;
      const inside = px >= here.x0 && py >= here.y0 && px <= here.right && py <= here.bottom;
      assert.equal(here.under(px, py), inside ? tile : -1);
    }
  }
});

test("a tile is brought into view with as little movement as is needed", () => {
  const glass = {zoom: 4, x: 0.5, y: 0.5};
  assert.deepEqual(reveal(glass, {x: 0.6, y: 0.6, w: 0.01, h: 0.04}), glass);
  assert.deepEqual(reveal(glass, {x: 0.25, y: 0.74, w: 0.02, h: 0.04}), {zoom: 4, x: 0.25, y: 0.74 + 0.04 - 0.25});
});

test("the place of a step among what has come", () => {
  const programs = new Programs(2), none = {live: [0], compute: [0], sent: [0], received: [0], runs: [0, 1], ends: [2], values: [0]};
  assert.equal(programs.placeOf(0, 7, 3), null);
  programs.take({ipu: 0, positions: 9, position: 3, fullest_bytes: 5, names: ["a", "b"]}, {place: [3, 6], step: [7, 7], ...none});
  assert.equal(programs.placeOf(0, null, null), 3);
  assert.equal(programs.placeOf(0, 7, 6), 6);
  assert.equal(programs.placeOf(0, 7, 5), 3);
  assert.equal(programs.placeOf(0, 8, 3), null);
  assert.equal(programs.placeOf(1, 7, 6), null);
});
