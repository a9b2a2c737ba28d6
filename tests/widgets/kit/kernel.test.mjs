import assert from "node:assert/strict";
import test from "node:test";

import {bytesText, clampWindow, clipText, copyFrom, countText, cyclesText, escapes, groupByPath, isUnder, lastAtMost, scale, shortText, textLines, ticks, unpack, wholeText, within} from "../../../workbench/widgets/kit/kernel.js";

test("ticks are round and inside", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(3, 27, 4), [10, 20]);
  assert.deepEqual(ticks(0, 1024, 4, true), [0, 256, 512, 768, 1024]);
  assert.deepEqual(ticks(5, 5, 4), [5]);
});

test("what is negative has the minus of the changes beside it, not a hyphen", () => {
  assert.equal(bytesText(-48.6 * 2 ** 20), "−48.6 MiB");
  assert.equal(bytesText(-400), "−400 B");
  assert.equal(countText(-1234567), "−1.23 M");
  assert.equal(bytesText(400), "400 B");
});

test("one cycle is said in the singular, as it is shown and to the last one", () => {
  assert.deepEqual([0, 1, 2, 1000].map(cyclesText), ["0 cycles", "1 cycle", "2 cycles", "1.00 k cycles"]);
  assert.deepEqual([1, 1000].map(cyclesText.whole), ["1 cycle", "1,000 cycles"]);
});

test("a scale and its inverse", () => {
  const x = scale(0, 10, 100, 200);
  assert.equal(x(5), 150);
  assert.equal(x.invert(150), 5);
});

test("a window stays inside its range and is never too narrow", () => {
  assert.deepEqual(clampWindow(-5, 5, 0, 100, 1), [0, 10]);
  assert.deepEqual(clampWindow(95, 105, 0, 100, 1), [90, 100]);
  assert.deepEqual(clampWindow(50, 50.1, 0, 100, 4), [48.05, 52.05]);
  assert.deepEqual(clampWindow(-50, 150, 0, 100, 4), [0, 100]);
  assert.deepEqual(clampWindow(0, 1, 0, 1, 20), [0, 1]);
});

test("binary search", () => {
  assert.equal(lastAtMost([1, 3, 5], 0), -1);
  assert.equal(lastAtMost([1, 3, 5], 3), 1);
  assert.equal(lastAtMost([1, 3, 5], 9), 2);
});

test("columns of a buffer, from any place in a larger one", () => {
  const bytes = new Uint8Array(8 + 24);
  new DataView(bytes.buffer).setFloat64(8, 2.5, true);
  new DataView(bytes.buffer).setInt32(16, -7, true);
  new DataView(bytes.buffer).setInt32(20, 9, true);
  const layout = [{name: "a", type: "f8", offset: 0, length: 1}, {name: "b", type: "i4", offset: 8, length: 2}];
  const {a, b} = unpack(layout, new DataView(bytes.buffer, 8, 24));
  assert.deepEqual([...a], [2.5]);
  assert.deepEqual([...b], [-7, 9]);
});

test("texts", () => {
  assert.equal(wholeText(1234567), "1,234,567");
  assert.equal(wholeText(999), "999");
  assert.equal(shortText("128.0 KiB"), "128 KiB");
  assert.equal(shortText("1.50 k"), "1.5 k");
  assert.equal(shortText("100 B"), "100 B");
  assert.equal(within("a/b/kernel", "a/b"), "kernel");
  assert.equal(within("a/bc", "a/b"), "a/bc");
  assert.ok(isUnder("a/b", "a") && isUnder("a", "a") && !isUnder("dense_1", "dense") && !isUnder("ab", "a") && !isUnder(null, "a"));
});

test("stretches are named as deep as there is room", () => {
  const parts = [[0, 1, "a/x"], [1, 2, "a/y"], [2, 3, "b/z"]];
  assert.deepEqual(groupByPath(parts, 3, 0), parts);
  assert.deepEqual(groupByPath(parts, 2, 0), [[0, 2, "a"], [2, 3, "b"]]);
  assert.deepEqual(groupByPath([[0, 1, "conv2_block1_1"], [1, 2, "conv2_block1_2"], [2, 3, "conv2_block2"]], 2, 0), [[0, 2, "conv2_block1"], [2, 3, "conv2_block2"]]);
  assert.deepEqual(groupByPath([[0, 1, "a"], [5, 6, "a"]], 9, 1), [[0, 1, "a"], [5, 6, "a"]]);
});

// A pen whose letters are 2 wide, but for "W" of 10 and pictures of 4; it counts what it measures.
const pen = () => {
  const made = {measured: 0, measureText: (text) => { made.measured += 1; return {width: [...text].reduce((sum, letter) => sum + (letter === "W" ? 10 : letter.length > 1 ? 4 : 2), 0)}; }};
  return made;
};

test("a text that is cut fits with its ellipsis, as long as it may be", () => {
  assert.equal(clipText(pen(), "abcd", 8), "abcd");
  assert.equal(clipText(pen(), "abcde", 8), "abc…");
  assert.equal(clipText(pen(), "WWiiiiii", 24), "WWi…"); // 20 + 2 + 2
  assert.equal(clipText(pen(), "iiiiiiWW", 24), "iiiiiiW…"); // 12 + 10 + 2
  assert.equal(clipText(pen(), "abcde", 5), ""); // a letter alone says nothing
});

test("a text is cut between code points", () => {
  assert.equal(clipText(pen(), "a🙂🙂🙂", 12), "a🙂🙂…"); // 2 + 4 + 4 + 2
  assert.equal(clipText(pen(), "a🙂🙂🙂", 11), "a🙂…");
  for (let width = 0; width < 40; width++) assert.ok(clipText(pen(), "🙂".repeat(9), width).isWellFormed());
});

test("a long text is measured a few times", () => {
  const ctx = pen();
  clipText(ctx, "x".repeat(1000), 400);
  assert.ok(ctx.measured <= 12, String(ctx.measured)); // itself, the log of 1000, one more
});

test("a sentence goes on in the next line where it does not fit, between words", () => {
  assert.deepEqual(textLines(pen(), "ab cd ef", 100), ["ab cd ef"]);
  assert.deepEqual(textLines(pen(), "ab cd ef", 10), ["ab cd", "ef"]); // five letters of 2
  assert.deepEqual(textLines(pen(), "abcdefgh i", 4), ["abcdefgh", "i"]);
});

test("Escape lets go of what is chosen but for the IPU, where nothing else had a use for it", () => {
  const values = {ipu: 1, tile: 0, step: 4, layer: "dense", variable: null};
  const selection = {get: (name) => values[name], set: (changes) => Object.assign(values, changes), save_changes: () => {}};
  const pressed = (key, tagName) => ({key, target: {tagName}, defaultPrevented: false, preventDefault() { this.defaultPrevented = true; }});
  const heard = [], away = escapes({addEventListener: (_, listener) => heard.push(listener), removeEventListener: (_, listener) => heard.splice(heard.indexOf(listener), 1)}, selection);
  heard[0]({...pressed("Escape", "CANVAS"), defaultPrevented: true});
  heard[0](pressed("Escape", "INPUT"));
  heard[0](pressed("Home", "CANVAS"));
  assert.deepEqual(values, {ipu: 1, tile: 0, step: 4, layer: "dense", variable: null});
  const event = pressed("Escape", "CANVAS");
  heard[0](event);
  assert.deepEqual(values, {ipu: 1, tile: null, step: null, layer: null, variable: null});
  assert.equal(event.defaultPrevented, true);
  const again = pressed("Escape", "CANVAS");
  heard[0](again);
  assert.equal(again.defaultPrevented, false);
  away();
  assert.deepEqual(heard, []);
});

test("a text is copied, and selected where the page may not copy", async () => {
  const chosen = [], said = [], written = [], node = {textContent: "a tip"};
  globalThis.document = {createRange: () => ({selectNodeContents: (what) => chosen.push(what)})};
  globalThis.getSelection = () => ({removeAllRanges: () => {}, addRange: () => {}});
  const through = async (clipboard) => {
    Object.defineProperty(globalThis, "navigator", {value: {clipboard}, configurable: true});
    copyFrom(node, (done) => said.push(done));
    await new Promise((resolve) => setTimeout(resolve, 0));
  };
  await through({writeText: async (text) => written.push(text)});
  assert.deepEqual([said, written, chosen], [["Copied"], ["a tip"], []]);
  await through(undefined); // a page that came over http from another machine
  await through({writeText: () => Promise.reject(new Error("not allowed"))});
  assert.deepEqual([said, written, chosen], [["Copied", "Selected", "Selected"], ["a tip"], [node, node]]);
});
