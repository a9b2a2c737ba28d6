import {floor, legend, mark, numbers, paint, tileByKey} from "../kit/floor.js";
import {bytesText, choice, cyclesText, frame, h, place, selectionOf, surface, tip, unpack, watch} from "../kit/kernel.js";
import {chooseTile, ipuChoice, ipuOf, startOf, tileOf, tilePanel, tileTable, totals} from "../kit/tiles.js";

const TOP = 22, LEFT = 34, LEGEND = 62;

// One number a tile of the chosen measure, and how it is written.
export function measured(view, ipu) {
  const {data, columns} = view, from = startOf(data, ipu);
  if (view.measure === "total") return {values: totals(view, ipu), text: bytesText, binary: true, label: `bytes ${data.measured}`};
  if (view.measure === "cycles") return {values: columns.cycles.subarray(from, from + data.tiles), text: cyclesText, label: "cycles busy in one call of the program"};
  if (view.measure === "variable") return {values: columns.variable.subarray(from, from + data.tiles), text: bytesText, binary: true, label: `bytes of ${data.variable}`};
  const start = startOf(data, ipu, Number(view.measure));
  return {values: columns.bytes.subarray(start, start + data.tiles), text: bytesText, binary: true, label: `bytes of ${data.categories[Number(view.measure)].label}`};
}

const spread = (view, width, height) => (view.floor = floor(view.data.plan, view.data.tiles, LEFT, TOP, width - LEFT - 12, height - TOP - LEGEND - 8));

function draw(view, ctx, width, height, t) {
  const {data} = view, ipu = ipuOf(view), here = spread(view, width, height), {values, text, label, binary} = measured(view, ipu);
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  if (view.fromZero) low = 0;
  paint(ctx, here, values, data.ramp, low, high);
  numbers(ctx, t, here);
  mark(ctx, t, here, tileOf(view));
  legend(data.ramp, ctx, t, {low, high, text, label, binary, x: LEFT, y: here.bottom + 10, w: Math.min(360, width - LEFT - 24)});
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const {plan, tiles} = view.data, goal = tileByKey(plan, tiles, tileOf(view), event.key);
    if (goal === -2) return;
    event.preventDefault();
    if (goal >= 0) chooseTile(view, goal);
  });
}

function hover(view, show) {
  const {canvas} = view.ui;
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), tile = view.floor.under(px, py);
    if (tile < 0) return show();
    const {values, text, label} = measured(view, ipuOf(view));
    return show(px, py, [`Tile ${tile}: ${text(values[tile])}`, label]);
  });
  canvas.addEventListener("pointerleave", () => show());
  canvas.addEventListener("click", (event) => {
    const tile = view.floor.under(...place(event, canvas));
    if (tile >= 0) chooseTile(view, tile);
    canvas.focus();
  });
}

function furnish(view, model) {
  const {data, columns} = view;
  view.ui.say(data.sentence);
  if (view.measure === "variable" && !data.variable) view.measure = "total";
  const entries = [["total", "all bytes"], ...(columns.cycles ? [["cycles", "cycles busy"]] : []),
    ...(data.variable ? [["variable", `variable ${data.variable}`]] : []), ...data.categories.map(({label}, c) => [String(c), label])];
  const scaleFrom = h("label", {class: "wb-choice"}, h("input", {type: "checkbox", onchange: (event) => { view.fromZero = event.target.checked; view.canvas.redraw(); }}), h("span", {text: "scale from zero"}));
  scaleFrom.firstChild.checked = view.fromZero;
  view.ui.tools.replaceChildren(...[choice("colour", entries, view.measure, (value) => { view.measure = value; furnish(view, model); view.canvas.redraw(); }), scaleFrom, ipuChoice(view)].filter(Boolean));
  view.ui.setTable(() => tileTable(view));
  const extra = columns.cycles ? [`${cyclesText(columns.cycles[startOf(data, ipuOf(view)) + tileOf(view)])} busy in one call of the program`] : [];
  tilePanel(view, extra);
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), measure: "total", fromZero: false};
  const load = () => { view.data = model.get("data"); view.columns = unpack(view.data.layout, model.get("buffer")); };
  load();
  const ui = (view.ui = frame(el, {title: "Tile map", sentence: view.data.sentence, side: true, height: Math.min(380, TOP + LEGEND + 8 + 64 * view.data.plan.rows)}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  spread(view, 600, 380);
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view, model);
  const offs = [
    watch(model, ["data"], () => {
      const before = view.data.variable;
      load();
      if (view.data.variable && view.data.variable !== before) view.measure = "variable";
      furnish(view, model);
      view.canvas.redraw();
    }),
    watch(view.selection, ["tile", "ipu"], () => { furnish(view, model); view.canvas.redraw(); }),
  ];
  return () => { offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
