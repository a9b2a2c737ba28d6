import assert from "node:assert/strict";
import test from "node:test";

import {table} from "../../../workbench/widgets/kit/kernel.js";
import {every, install} from "./page.mjs";

install();

test("a column of numbers that gives way in a narrow panel says so in head and cells", () => {
  const made = table([{label: "name", as: "wb-words", text: (row) => row}, {label: "times", number: true, as: "wb-roomy", text: () => "1"}], ["a", "b"]);
  assert.equal(every(made, "wb-roomy").length, 3); // a head, two cells
  assert.equal(every(made, "wb-num").length, 3);
  assert.equal(every(made, "wb-words").length, 3);
});
