// What if: tones of changes, programs of other lengths, and what a curve draws.
import assert from "node:assert/strict";
import test from "node:test";
import {curveOf, cycles, sentence, stretched, toneOf} from "../../../../workbench/widgets/app/whatif/panel.js";
import {every, install} from "../../kit/page.mjs";

const head = (before, after, better = -1, unit = "bytes") => ({label: "x", unit, better, before, after});

test("fewer bytes are better, fewer samples a second worse, and what cannot be read off is neither", () => {
  assert.equal(toneOf(head(2048, 1024)), "wb-better");
  assert.equal(toneOf(head(1024, 2048)), "wb-worse");
  assert.equal(toneOf(head(2048, 1024, 1, "count")), "wb-worse");
  assert.equal(toneOf(head(1024, 1024)), "");
  assert.equal(toneOf(head(0, 0.2)), "");
});

test("a place of one program is the place as far through the other", () => {
  assert.deepEqual([0, 1, 2, 3].map((at) => stretched(at, 4, 8)), [1, 3, 5, 7]);
  assert.deepEqual([0, 3, 7].map((at) => stretched(at, 8, 4)), [0, 1, 3]);
  assert.equal(stretched(0, 0, 4), 2);
});

test("a curve draws what was compiled and leaves out what was refused", () => {
  const rows = [{at: 0, fits: true, bytes: 5, cycles: 9, problem: ""}, {at: 1, fits: false, problem: "no"}, {at: 2, fits: false, bytes: 7, cycles: 3, problem: ""}];
  const found = curveOf({rows, best: 0});
  assert.deepEqual(found.drawn.map(({at}) => at), [0, 2]);
  assert.deepEqual([found.bytes, found.cycles, found.best.at], [7, 9, 0]);
  assert.equal(curveOf({rows, best: null}).best, null);
});

test("the sentence says what was asked, the verdict, and both changes with their signs", () => {
  const heads = [head(2048, 1024), head(0, 0, 1), head(1000, 3000, -1, "cycles")];
  assert.equal(sentence({asked: "batch size 8", fits: [true, false], heads}), "What if batch size 8: does not fit, 1.0 KiB on the fullest tile (−1.0 KiB), 3.00 k cycles a sample (+2.00 k)");
  assert.match(sentence({asked: "", fits: [true, true], heads}), /^As it was compiled: fits/);
});

test("the key of the bars is as plain as they are", () => {
  install();
  const pens = [], make = document.createElement;
  document.createElement = (tag) => {
    const node = make(tag), pen = node.getContext();
    node.getContext = () => { pens.push(pen); return pen; };
    return node;
  };
  const drawn = cycles({causes: [{paint: {label: "exchange", colour: "#cf7a1c", pattern: "rising"}, before: 1000, after: 2000}]});
  assert.deepEqual(every(drawn, "wb-key").map(({textContent}) => textContent), ["exchange 2.00 k"]);
  assert.deepEqual(pens.map(({globalCompositeOperation}) => globalCompositeOperation), [undefined]); // a hatched one has holes
});
