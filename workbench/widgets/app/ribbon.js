import {anew} from "../kit/anew.js";
import {OWN_KEYS, button, bytesText, cyclesText, h, percentText, watch} from "../kit/kernel.js";

export const COLOURS = ["#2f74c0", "#c96a12", "#1d7f4e", "#8a4fb5", "#b3475f", "#3f8f9b", "#8a7a1f", "#5b636c"];
const sum = (values, first, end) => values.slice(first, end).reduce((total, each) => total + each, 0);

// What stages would cost, from what each layer does: the sums of workbench/splits/costs.py.
export function expected(data, cuts) {
  const edges = [0, ...cuts, data.names.length];
  return edges.slice(1).map((end, stage) => {
    const first = edges[stage], depth = data.depth[stage];
    const copies = (first ? data.copy[first - 1] : 0) + data.copy[end - 1];
    return {
      first, end,
      cycles: sum(data.cycles, first, end) + copies,
      bytes: sum(data.fixed, first, end) + depth * sum(data.stash, first, end) + Math.max(...data.work.slice(first, end)) + depth * data.inputs[first],
    };
  });
}

// The cuts with one of them moved by so many layers; it stays between its neighbours.
export function moved(cuts, place, to, layers) {
  const low = place ? cuts[place - 1] + 1 : 1, high = place + 1 < cuts.length ? cuts[place + 1] - 1 : layers - 1;
  return cuts.map((cut, at) => (at === place ? Math.max(low, Math.min(high, to)) : cut));
}

// Where each layer begins on the ribbon, from 0 to 1: by cycles, and none so narrow that it cannot be met.
export function places(data) {
  const total = sum(data.cycles, 0, data.cycles.length) || 1, least = 0.25 / data.names.length;
  const widths = data.cycles.map((each) => Math.max(least, each / total)), whole = sum(widths, 0, widths.length);
  return widths.reduce((found, width) => [...found, found.at(-1) + width / whole], [0]);
}

// A change of cycles that cannot be read off is none.
export const changeText = (change) => (percentText(Math.abs(change)) === percentText(0) ? "as many cycles as" : `${percentText(Math.abs(change))} ${change > 0 ? "more" : "fewer"} cycles than`);

const bar = (share, colour, limit, label) => h("div", {class: "wb-cut-bar", role: "img", "aria-label": label},
  h("div", {style: {width: `${Math.min(1, share) * 100}%`, background: colour}}),
  limit === null ? null : h("i", {style: {left: `${limit * 100}%`}}));

function rows(data, stages, same) {
  const slowest = Math.max(...stages.map(({cycles}) => cycles), ...data.measured.cycles);
  const whole = Math.max(data.capacity, ...stages.map(({bytes}) => bytes), ...data.measured.bytes);
  return stages.map((stage, place) => {
    const {first, end} = stage, cycles = same ? data.measured.cycles[place] : stage.cycles, bytes = same ? data.measured.bytes[place] : stage.bytes;
    const over = bytes > data.capacity, layers = end - first === 1 ? data.names[first] : `${end - first} layers: ${data.names[first]} to ${data.names[end - 1]}`;
    const colour = COLOURS[place % COLOURS.length];
    return h("tr", {}, h("th", {scope: "row"}, h("i", {class: "wb-cut-swatch", style: {background: colour}}), `stage ${place}`), h("td", {text: layers}),
      h("td", {}, bar(cycles / slowest, colour, null, cyclesText(cycles))), h("td", {text: cyclesText(cycles)}),
      h("td", {}, bar(bytes / whole, over ? "#b3261e" : colour, data.capacity / whole, bytesText(bytes))),
      h("td", {class: over ? "wb-cut-over" : "", text: `${bytesText(bytes)}${over ? ", over" : ""}`}));
  });
}

async function render({model, el}) {
  let cuts = [], start = [], at = [];
  const ribbon = h("div", {class: "wb-cut-ribbon"}), body = h("tbody"), said = h("p", {class: "wb-cut-said", role: "status"}), why = h("p", {class: "wb-cut-problem", role: "alert"});
  const verify = button("Compile this split", () => model.send({cuts})), back = button("Back to the compiled one", () => { cuts = [...start]; show(); });
  const head = h("tr", {}, ...["stage", "layers", "busy cycles of a call", "", "fullest tile", ""].map((text) => h("th", {scope: "col", text})));
  el.replaceChildren(h("section", {class: "wb-cut", "aria-label": "The pipeline, cut by hand", ...OWN_KEYS},
    h("h4", {text: "Cut by hand"}), ribbon, h("table", {}, h("thead", {}, head), body), said, h("div", {class: "wb-cut-foot"}, verify, back), why));

  const nearest = (x) => { const box = ribbon.getBoundingClientRect(), share = (x - box.left) / box.width; let best = 1; at.forEach((each, place) => { if (Math.abs(each - share) < Math.abs(at[best] - share)) best = place; }); return best; };
  const handle = (place) => {
    const knob = h("div", {class: "wb-cut-knob", role: "slider", tabindex: 0, "aria-label": `Cut between stage ${place} and ${place + 1}`, "aria-valuemin": 1, "aria-valuemax": model.get("data").names.length - 1});
    const set = (to) => { cuts = moved(cuts, place, to, model.get("data").names.length); show(); };
    knob.addEventListener("pointerdown", (event) => { knob.setPointerCapture(event.pointerId); knob.focus(); event.preventDefault(); });
    knob.addEventListener("pointermove", (event) => { if (knob.hasPointerCapture(event.pointerId)) set(nearest(event.clientX)); });
    knob.addEventListener("keydown", (event) => {
      const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -5, PageDown: 5}[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      set(cuts[place] + by);
    });
    return knob;
  };

  let blocks = [], knobs = [];
  const begin = () => {
    const data = model.get("data");
    start = [...data.cuts];
    cuts = [...start];
    at = places(data);
    blocks = data.names.map((name, layer) => h("div", {class: "wb-cut-layer", title: `${name}: ${cyclesText(data.cycles[layer])}`, style: {left: `${at[layer] * 100}%`, width: `${(at[layer + 1] - at[layer]) * 100}%`}}, h("span", {text: name})));
    knobs = cuts.map((_, place) => handle(place));
    anew(ribbon, ...blocks, ...knobs);
    show();
  };
  const show = () => {
    const data = model.get("data"), same = cuts.every((cut, place) => cut === start[place]), stages = expected(data, cuts);
    blocks.forEach((block, layer) => { block.style.background = COLOURS[cuts.filter((cut) => cut <= layer).length % COLOURS.length]; });
    knobs.forEach((knob, place) => {
      knob.style.left = `${at[cuts[place]] * 100}%`;
      knob.setAttribute("aria-valuenow", cuts[place]);
      knob.setAttribute("aria-valuetext", `in front of ${data.names[cuts[place]]}`);
    });
    body.replaceChildren(...rows(data, stages, same));
    const slowest = Math.max(...stages.map(({cycles}) => cycles)), before = Math.max(...data.measured.cycles), change = slowest / before - 1;
    said.textContent = same ? "As compiled. Drag a cut, or move it with the arrow keys." : `An estimate from the layers' measured costs: the slowest stage takes ${changeText(change)} the compiled one. Compile it to know.`;
    verify.disabled = back.disabled = same;
  };
  const complain = () => { why.textContent = model.get("problem"); why.hidden = !why.textContent; };
  begin();
  complain();
  const off = [watch(model, ["data"], begin), watch(model, ["problem"], complain)];
  return () => off.forEach((each) => each());
}

export default {render};
