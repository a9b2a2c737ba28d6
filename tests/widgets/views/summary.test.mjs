import assert from "node:assert/strict";
import test from "node:test";

import {content} from "../../../workbench/widgets/views/summary.js";
import {every, install, tagged} from "../kit/page.mjs";

install();
const PAINT = {label: "compute", colour: "#123456", pattern: ""};
const DATA = {
  status: "bad", headline: "Does not fit", verdict: "Worst tile 3", caution: "In doubt <b>", gauge: {used: 300, capacity: 200, text: "300 of 200"},
  cards: [{label: "samples/s", value: "12", note: "modelled"}, {label: "tiles", value: "16"}], shares: [{paint: PAINT, share: 0.75, text: "75.0 %"}, {paint: {...PAINT, label: "host"}, share: 0.25, text: "25.0 %"}],
  groups: [{title: "Not a real machine", items: ["tiles_per_ipu=16"], alert: true}, {title: "Assumed", items: ["SGD"], alert: false}],
};

test("the verdict is first, with a mark that is not its colour, and names are text", () => {
  const made = content(DATA), [mark] = every(made, "wb-mark");
  assert.equal(mark.textContent, "✕");
  assert.ok(made.attributes.class.includes("wb-bad"));
  assert.equal(tagged(made, "h3")[0].textContent, "Does not fit");
  assert.equal(every(made, "wb-caution")[0].textContent, "In doubt <b>");
  assert.equal(tagged(made, "b").length, 0);
});

test("used and limit are parts of the larger of both; shares are as wide as they say", () => {
  const made = content(DATA);
  assert.equal(every(made, "wb-used")[0].style.width, "100%");
  assert.equal(every(made, "wb-limit")[0].style.left, `calc(${(200 / 300) * 100}% - 2px)`);
  assert.deepEqual(every(made, "wb-strip")[0].children.map(({style}) => style.width), ["75%", "25%"]);
  assert.deepEqual(every(made, "wb-key").map(({textContent}) => textContent), ["compute 75.0 %", "host 25.0 %"]);
});

test("every card and every group is there, alerts marked", () => {
  const made = content(DATA);
  assert.deepEqual(every(made, "wb-card").map(({textContent}) => textContent), ["samples/s12modelled", "tiles16"]);
  assert.deepEqual(every(made, "wb-group").map((group) => [group.textContent, every(group, "wb-alert").length]), [["Not a real machinetiles_per_ipu=16", 1], ["AssumedSGD", 0]]);
});
