import assert from "node:assert/strict";
import test from "node:test";

import {keyMarks, keyTexts} from "../../../workbench/widgets/kit/floor.js";
import {bytesText, cyclesText, textsApart} from "../../../workbench/widgets/kit/kernel.js";

const sixty = () => 60;

test("numbers of a colour key leave one another room", () => {
  // 300 pixels for 0 to 26: 20 would stand at 231 and reach 261, beyond the last number's start at 240; 10 stands at 115.
  assert.deepEqual(keyMarks(0, 26, 300, sixty), [0, 10, 26]);
  assert.deepEqual(keyMarks(0, 26, 300, () => 20), [0, 10, 20, 26]); // 20 ends at 241, the last begins at 280
});

test("a key of one value says it once", () => {
  assert.deepEqual(keyMarks(7, 7, 300, sixty), [7]);
});

test("numbers of a narrow key do not read alike", () => {
  // 300.0 KiB at both ends and between: 307,200 to 307,216 bytes, whose ticks are 8 bytes apart; 7 pixels a letter, 63 of "307,208 B" in 360.
  const wide = (text) => 7 * text.length;
  assert.deepEqual(keyTexts(307200, 307216, 360, wide, bytesText, true), [[307200, "307,200 B"], [307208, "307,208 B"], [307216, "307,216 B"]]);
  assert.deepEqual(keyTexts(0, 2048, 360, wide, bytesText, true), [[0, "0 B"], [1024, "1 KiB"], [2048, "2 KiB"]]); // as before
  assert.deepEqual(keyTexts(7, 7, 360, wide, cyclesText, false), [[7, "7 cycles"]]);
});

test("between two whole bytes there is nothing to say", () => {
  assert.deepEqual(keyMarks(0, 1, 360, () => 20, true), [0, 1]); // not 0.5, which would read "1 B" as well
});

test("addresses close together are told to the byte", () => {
  assert.deepEqual(textsApart([102400, 102416, 102432], bytesText), ["102,400 B", "102,416 B", "102,432 B"]);
  assert.deepEqual(textsApart([0, 131072], bytesText), ["0 B", "128 KiB"]);
});
