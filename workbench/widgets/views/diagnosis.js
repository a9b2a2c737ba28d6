import {OWN_KEYS, button, h, watch} from "../kit/kernel.js";

function gauge(share, limit, fits, text) {
  return h("div", {class: `wb-bytes ${fits ? "wb-fits" : ""}`},
    h("span", {text}),
    h("div", {class: "wb-gauge", "aria-hidden": "true"}, h("div", {class: "wb-used", style: {width: `${share * 100}%`}}), h("div", {class: "wb-limit", style: {left: `calc(${limit * 100}% - 2px)`}})));
}

function row(fix, place, {limit, live, apply}) {
  const code = fix.code && h("details", {}, h("summary", {text: "Code"}), h("pre", {tabindex: 0, text: fix.code}));
  return h("tr", {class: fix.fits ? "wb-fits" : ""},
    h("th", {scope: "row"}, h("span", {class: "wb-fix", text: fix.title}), fix.note && h("span", {class: "wb-note", text: fix.note}), code),
    h("td", {}, gauge(fix.share, limit, fix.fits, fix.bytes), h("span", {class: "wb-note", text: fix.estimate})),
    h("td", {}, h("span", {class: "wb-says", text: `${fix.fits ? "✓" : "✕"} ${fix.verdict}`}), fix.doubt && h("span", {class: "wb-note", text: fix.doubt})),
    h("td", {class: "wb-num"}, h("span", {text: fix.cost}), h("span", {class: "wb-note", text: fix.change})),
    h("td", {}, live && button("Apply", () => apply(place), {"aria-label": `Apply: ${fix.title}`})));
}

const list = (title, items) => items.length > 0 && h("details", {class: "wb-data"}, h("summary", {text: title}), h("ul", {}, ...items.map((text) => h("li", {text}))));

export function content(data, live, apply) {
  const heads = ["What to change", "Fullest tile", "Verdict", "Cycles × IPUs a sample", live && "Apply"].filter(Boolean);
  const now = h("tr", {class: "wb-present"}, h("th", {scope: "row", text: "As it is"}), h("td", {}, gauge(data.now.share, data.limit, data.now.share <= data.limit, data.now.text)), h("td", {}), h("td", {class: "wb-num", text: data.now.cost}), live && h("td", {}));
  return h("section", {class: "wb wb-diagnosis", "aria-label": "Diagnosis", ...OWN_KEYS},
    h("header", {class: "wb-head"}, h("h3", {text: "Diagnosis"}), h("p", {class: "wb-said", text: data.sentence})),
    h("div", {class: "wb-wide", tabindex: 0, role: "region", "aria-label": "Fixes"},
      h("table", {class: "wb-fixes"}, h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", {scope: "col", text})))),
        h("tbody", {}, now, ...data.fixes.map((fix, place) => row(fix, place, {limit: data.limit, live, apply}))))),
    list(`All that was compiled (${data.tried.length})`, data.tried), list("Not tried", data.skipped));
}

async function render({model, el}) {
  const apply = (place) => {
    el.querySelectorAll("button").forEach((each) => { each.disabled = true; });
    setTimeout(() => el.querySelectorAll("button").forEach((each) => { each.disabled = false; }), 2000);
    model.send({apply: place});
  };
  const show = () => el.replaceChildren(content(model.get("data"), model.get("live"), apply));
  show();
  return watch(model, ["data"], show);
}

export default {render};
