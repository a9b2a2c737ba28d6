// The panel of options: what a search finds and what is said of reads.
import assert from "node:assert/strict";
import test from "node:test";
import {matches, readText, wordsOf} from "../../../../workbench/widgets/app/form/panel.js";

const row = {name: "optimizations.math.fast", doc: "Cheaper, less exact arithmetic.", effect: "modelled"};

test("a search finds rows that hold all of its words, in the name or in what the option does", () => {
  assert.equal(matches(row, wordsOf("")), true);
  assert.equal(matches(row, wordsOf("  FAST exact ")), true);
  assert.equal(matches(row, wordsOf("fast slow")), false);
});

test("what is not known is not said", () => {
  assert.equal(readText(null, row.name), "");
  assert.equal(readText({}, row.name), "");
  assert.equal(readText({[row.name]: ""}, row.name), "not read in this program");
  assert.equal(readText({[row.name]: "graph passes"}, row.name), "read by graph passes");
});
