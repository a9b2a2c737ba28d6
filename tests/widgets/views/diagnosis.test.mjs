import assert from "node:assert/strict";
import test from "node:test";

import {content} from "../../../workbench/widgets/views/diagnosis.js";
import {every, install, tagged} from "../kit/page.mjs";

install();
const FIX = {title: "Half precision", note: "", code: "model.half()", fits: true, verdict: "fits, 2.0 KiB to spare", doubt: "", share: 0.5, bytes: "4.0 KiB", estimate: "estimated 5.0 KiB", cost: "12 cycles", change: "−3.0 %"};
const DATA = {
  ended: true, sentence: "Two ways fit", limit: 0.8, now: {share: 1, text: "8.0 KiB", cost: "13 cycles"}, tried: ["a: fits", "b: does not"], skipped: [],
  fixes: [FIX, {...FIX, title: "<script>", fits: false, verdict: "1.0 KiB over", share: 0.9}],
  plot: {ticks_x: [], ticks_y: [], limit: 0.8, limit_text: "capacity", now: {x: 1, y: 1, text: "As it is"}, points: [{x: 0.2, y: 0.5, fits: true, text: "a"}, {x: 0.6, y: 0.25, fits: false, text: "b"}], front: [{x: 0.2, y: 0.5}, {x: 0.6, y: 0.25}]},
};

test("a row for the program as it is and for each fix, its bar as long as its share, its verdict in words", () => {
  const rows = tagged(tagged(content(DATA, false), "tbody")[0], "tr");
  assert.deepEqual(rows.map((row) => every(row, "wb-used")[0].style.width), ["100%", "50%", "90%"]);
  assert.deepEqual(rows.slice(1).map((row) => every(row, "wb-says")[0].textContent), ["✓ fits, 2.0 KiB to spare", "✕ 1.0 KiB over"]);
  assert.deepEqual(rows.slice(1).map((row) => every(row, "wb-fix")[0].textContent), ["Half precision", "<script>"]);
  assert.equal(tagged(content(DATA, false), "script").length, 0);
});

test("only with a kernel there are buttons, each applies its own fix", () => {
  assert.equal(tagged(content(DATA, false), "button").length, 0);
  const heard = [];
  tagged(content(DATA, true, (place) => heard.push(place)), "button").forEach(({listeners}) => listeners.click());
  assert.deepEqual(heard, [0, 1]);
});

test("the front steps from point to point, across and then down", () => {
  const steps = every(content(DATA, false), "wb-front").map(({style}) => style);
  assert.deepEqual(steps, [{left: "20%", width: `${(0.6 - 0.2) * 100}%`, bottom: "50%"}, {left: "60%", bottom: "25%", height: "25%"}]);
  assert.equal(every(content({...DATA, plot: {}}, false), "wb-front").length, 0);
});
