import {anew, unlessPressed} from "../kit/anew.js";
import {OWN_KEYS, button, h, watch} from "../kit/kernel.js";

function gauge({share, beyond}, limit, fits, text) {
  return h("div", {class: `wb-bytes ${fits ? "wb-fits" : ""}`},
    h("span", {text}),
    h("div", {class: "wb-gauge", "aria-hidden": "true"}, h("div", {class: `wb-used ${beyond ? "wb-beyond" : ""}`, style: {width: `${share * 100}%`}}), h("div", {class: "wb-limit", style: {left: `calc(${limit * 100}% - 2px)`}})));
}

function row(fix, place, {limit, live, apply}) {
  const code = fix.code && h("details", {}, h("summary", {text: "Code"}), h("pre", {tabindex: 0, text: fix.code}));
  return h("tr", {class: fix.fits ? "wb-fits" : "", "data-key": fix.title},
    h("th", {scope: "row"}, h("span", {class: "wb-fix", text: fix.title}), fix.note && h("span", {class: "wb-note", text: fix.note}), code),
    h("td", {}, gauge(fix, limit, fix.fits, fix.bytes), h("span", {class: "wb-note", text: fix.estimate})),
    h("td", {}, h("span", {class: "wb-says", text: `${fix.fits ? "✓" : "✕"} ${fix.verdict}`}), fix.doubt && h("span", {class: "wb-note", text: fix.doubt})),
    h("td", {class: "wb-num"}, h("span", {text: fix.cost}), h("span", {class: "wb-note", text: fix.change})),
    live && h("td", {}, button("Apply", () => apply(place), {"aria-label": `Apply: ${fix.title}`})));
}

const part = (value) => `${value * 100}%`;

// From each point of the front as many bytes until the next is reached in cost, then down to it.
const front = (points) => points.slice(1).flatMap(({x, y}, place) => [
  h("div", {class: "wb-front", style: {left: part(points[place].x), width: part(x - points[place].x), bottom: part(points[place].y)}}),
  h("div", {class: "wb-front", style: {left: part(x), bottom: part(y), height: part(points[place].y - y)}})]);

// Bytes against cost of all that was compiled; the lists beside it say the same in words.
function plot(data, label) {
  if (!data.points) return null;
  const dot = (point, kind) => h("span", {class: `wb-dot ${kind}`, title: point.text, style: {left: part(point.x), bottom: part(point.y)}});
  return h("figure", {class: "wb-scatter"},
    h("figcaption", {text: data.axes}),
    h("div", {class: "wb-scatter-area", role: "img", "aria-label": label},
      ...data.ticks_y.map(({at, text}) => h("span", {class: "wb-tick-y", style: {bottom: part(at)}}, h("i", {text}))),
      ...data.ticks_x.map(({at, text}) => h("span", {class: "wb-tick-x", style: {left: part(at)}, text})),
      h("div", {class: "wb-capacity", style: {bottom: part(data.limit)}}, h("span", {text: data.limit_text})),
      ...front(data.front),
      ...data.points.map((point) => dot(point, point.fits ? "wb-fits" : "")), dot(data.now, "wb-now")),
    h("p", {class: "wb-legend"}, ...[["wb-fits", "fits"], ["", "does not fit"], ["wb-now", "as it is"]].map(([kind, text]) =>
      h("span", {class: "wb-key"}, h("span", {class: `wb-dot ${kind}`}), text)), h("span", {class: "wb-key"}, h("span", {class: "wb-line"}), "Pareto front")));
}

const list = (title, items) => items.length > 0 && h("details", {class: "wb-data"}, h("summary", {text: title}), h("ul", {}, ...items.map((text) => h("li", {text}))));

export function content(data, live, apply) {
  const heads = ["What to change", "Fullest tile", "Verdict", "Cycles × IPUs a sample", live && "Apply"].filter(Boolean);
  const now = h("tr", {class: "wb-present"}, h("th", {scope: "row", text: "As it is"}), h("td", {}, gauge(data.now, data.limit, data.now.share <= data.limit, data.now.text)), h("td", {}), h("td", {class: "wb-num", text: data.now.cost}), live && h("td", {}));
  return h("section", {class: "wb wb-diagnosis", "aria-label": "Diagnosis", "aria-busy": data.ended ? "false" : "true", ...OWN_KEYS},
    h("header", {class: "wb-head"}, h("h3", {text: "Diagnosis"}), h("p", {class: "wb-said", text: data.sentence})),
    h("div", {class: "wb-wide", tabindex: 0, role: "region", "aria-label": "Fixes"},
      h("table", {class: "wb-fixes"}, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", {scope: "col", text})))),
        h("tbody", {}, now, ...data.fixes.map((fix, place) => row(fix, place, {limit: data.limit, live, apply}))))),
    plot(data.plot, `${data.tried.length} compiles: bytes of the fullest tile against cycles × IPUs a sample. ${data.sentence}`),
    list(`All that was compiled (${data.tried.length})`, data.tried), list("Not tried", data.skipped));
}

async function render({model, el}) {
  const apply = (place) => {
    el.querySelectorAll("button").forEach((each) => { each.disabled = true; });
    setTimeout(() => el.querySelectorAll("button").forEach((each) => { each.disabled = false; }), 2000);
    model.send({apply: place});
  };
  const show = unlessPressed(el, () => anew(el, content(model.get("data"), model.get("live"), apply))); // it grows while it is read
  show();
  return watch(model, ["data"], show);
}

export default {render};
