import assert from "node:assert/strict";
import test from "node:test";

import {lanesOf, placesOf, spentOf} from "../../../workbench/widgets/views/schedules.js";

test("lanes of schedules stand under one another and do not overlap", () => {
  const {lane, places, bottom} = placesOf([{ipus: 4}, {ipus: 1}, {ipus: 64}]);
  places.forEach(({y, high}, i) => { if (i) assert.ok(y >= places[i - 1].y + places[i - 1].high); assert.ok(high >= lane); });
  assert.equal(bottom, places[2].y + places[2].high);
  assert.ok(lane >= 4);
});

test("causes come with their share of all IPUs' time", () => {
  assert.deepEqual(spentOf({spent: {sync: 10, compute: 30}, total_cycles: 20, ipus: 2}), [["compute", 30, 0.75], ["sync", 10, 0.25]]);
});

test("bins are those of each schedule's IPUs, over its own time", () => {
  const data = {schedules: [{ipus: 2, total_cycles: 100}, {ipus: 1, total_cycles: 50}], bins: 2, busy: [{}]};
  const made = lanesOf(data, {bins0: Uint8Array.of(1, 2, 3, 4), bins1: Uint8Array.of(5, 6)});
  assert.deepEqual(made.map(({lanes}) => lanes.map(({bins}) => [...bins])), [[[1, 2], [3, 4]], [[5, 6]]]);
  assert.equal(made[1].data.to, 50);
});
