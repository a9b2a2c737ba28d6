import {OWN_KEYS, h, swatch, watch} from "../kit/kernel.js";

const MARKS = {good: "✓", close: "≈", bad: "✕"};

function gauge({used, capacity, text}) {
  const whole = Math.max(used, capacity) || 1;
  return h("div", {class: "wb-gauge", role: "img", "aria-label": text},
    h("div", {class: "wb-used", style: {width: `${(used / whole) * 100}%`}}),
    h("div", {class: "wb-limit", style: {left: `calc(${(capacity / whole) * 100}% - 2px)`}}));
}

function card({label, value, note}) {
  return h("div", {class: "wb-card"}, h("span", {text: label}), h("strong", {text: value}), note && h("span", {text: note}));
}

function group({title, items, alert}) {
  return h("section", {class: alert ? "wb-group wb-alert" : "wb-group"}, h("h4", {text: title}), h("ul", {}, ...items.map((text) => h("li", {text}))));
}

// Shares of the time by cause, as one bar with its parts named below.
function shares(parts) {
  return h("div", {class: "wb-shares"},
    h("div", {class: "wb-strip", "aria-hidden": "true"}, ...parts.map(({paint, share}) => h("div", {style: {width: `${share * 100}%`, background: paint.colour}}))),
    h("div", {class: "wb-legend"}, ...parts.map(({paint, text}) => h("span", {class: "wb-key"}, swatch(paint), h("span", {text: `${paint.label} ${text}`})))));
}

export function content(data) {
  return h("section", {class: `wb wb-summary wb-${data.status}`, "aria-label": "Summary", ...OWN_KEYS},
    h("div", {class: "wb-verdict"}, h("span", {class: "wb-mark", "aria-hidden": "true", text: MARKS[data.status]}),
      h("div", {}, h("h3", {text: data.headline}), h("p", {text: data.verdict}), data.caution && h("p", {class: "wb-caution", text: data.caution}))),
    gauge(data.gauge), h("p", {class: "wb-scale", text: data.gauge.text}),
    h("div", {class: "wb-cards"}, ...data.cards.map(card)), data.shares.length ? shares(data.shares) : null,
    h("div", {class: "wb-groups"}, ...data.groups.map(group)));
}

async function render({model, el}) {
  const show = () => el.replaceChildren(content(model.get("data")));
  show();
  return watch(model, ["data"], show);
}

export default {render};
