import assert from "node:assert/strict";
import test from "node:test";

import {boxesOf, layersOf, treeOf} from "../../../workbench/widgets/views/operations.js";

const LAYERS = [{name: "enc/a/dense", value: 4}, {name: "enc/a/norm", value: 2}, {name: "enc", value: 1}, {name: "head/out", value: 3}, {name: "", value: 5}, {name: "unused", value: 0}];

test("a tree of layers keeps their sum at every level", () => {
  const root = treeOf(LAYERS), check = (node) => {
    if (!node.children.length) return;
    assert.equal(node.children.reduce((sum, child) => sum + child.value, 0), node.value);
    node.children.forEach(check);
  };
  assert.equal(root.value, 15);
  check(root);
  assert.deepEqual(root.children.map(({path, value}) => [path, value]), [["enc", 7], ["(no layer)", 5], ["head/out", 3]]);
});

test("a part that leads to one thing is joined to it, a layer with parts stands among them itself", () => {
  const enc = treeOf(LAYERS).children[0];
  assert.deepEqual(enc.children.map(({path, short, value}) => [path, short, value]), [["enc/a", "a", 6], ["enc", "itself", 1]]);
  assert.deepEqual(layersOf(enc), ["enc/a/dense", "enc/a/norm", "enc"]);
});

test("boxes lie within those above, widths as values", () => {
  const boxes = boxesOf(treeOf(LAYERS));
  assert.deepEqual(boxes.slice(0, 2).map(({depth, from, to}) => [depth, from, to]), [[0, 0, 1], [1, 0, 7 / 15]]);
  const deepest = boxes.filter(({node}) => !node.children.length);
  assert.ok(Math.abs(deepest.reduce((sum, {from, to}) => sum + to - from, 0) - 1) < 1e-12);
  assert.equal(Math.max(...boxesOf(treeOf(LAYERS), 1).map(({depth}) => depth)), 1);
});

test("nothing at all is one box", () => {
  assert.deepEqual(boxesOf(treeOf([])).map(({node}) => node.value), [0]);
});
