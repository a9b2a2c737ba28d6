import assert from "node:assert/strict";
import test from "node:test";

import {found} from "../../../workbench/widgets/app/reference/panel.js";
import {parts} from "../../../workbench/widgets/app/share/panel.js";

const entry = (name, text, kind = "option") => ({name, kind, text, lines: [["Default", "1"]]});

test("entries are found by every word, names first", () => {
  const entries = [entry("b.other", "tiles of all"), entry("a.tiles", "how many"), entry("c", "nothing")];
  assert.deepEqual(found(entries, "TILES").map(({name}) => name), ["a.tiles", "b.other"]);
  assert.deepEqual(found(entries, "tiles many").map(({name}) => name), ["a.tiles"]);
  assert.equal(found(entries, "").length, 3);
  assert.deepEqual(found(entries, "no such"), []);
});

test("a file comes in parts that join without a gap", () => {
  assert.deepEqual(parts(5, 2), [[0, 2], [2, 4], [4, 5]]);
  assert.deepEqual(parts(2, 2), [[0, 2]]);
  assert.deepEqual(parts(0, 2), []);
});
