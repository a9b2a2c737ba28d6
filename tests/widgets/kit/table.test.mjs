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

test("the line of what is left out makes no column where one has given way", () => {
  const columns = [{label: "name", text: String}, {label: "address", number: true, as: "wb-roomy", text: String}, {label: "bytes", number: true, text: String}];
  const [left] = every(table(columns, [1, 2, 3], {most: 2}), "wb-more");
  assert.equal(left.attributes.colspan, "2"); // name and bytes, which always stand
});
