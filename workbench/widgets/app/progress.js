import {OWN_KEYS, button, h, watch} from "../kit/kernel.js";
import {keepFocus} from "./focus.js";

const HEADS = {running: "", done: "Done", failed: "This did not work", cancelled: "Cancelled"};

function problem({what, expected, todo, cure}, send) {
  const line = (label, text) => text && h("p", {}, h("strong", {text: `${label} `}), h("span", {text}));
  return h("div", {class: "wb-problem", role: "alert"}, h("p", {class: "wb-what", text: what}), line("Expected:", expected), line("To mend it:", todo), cure && button(cure, () => send("mend")));
}

// Phases are equal parts of the bar: how long each takes is only known once it is over. Of several compiles it is the bar
// of one: how many there will be is known less, and said in words; where they are counted, a part is a compile.
export function partsOf({phases, current, state, most, over}) {
  const parts = most ? Array.from({length: most}, (_, place) => ({name: `compile ${place + 1}`, seconds: null})) : phases;
  return {parts, done: state === "done" ? parts.length : Math.max(0, most ? over : current)};
}

function bar(data) {
  const {title, turn, state, text} = data, {parts, done} = partsOf(data);
  const part = (each, place) => h("div", {
    class: `wb-phase ${place < done ? "wb-over" : place === done && state === "running" ? "wb-now" : ""}`,
    title: each.seconds === null ? each.name : `${each.name}: ${each.seconds.toFixed(2)} s`,
  });
  return h("div", {
    class: "wb-phases", role: "progressbar", "aria-label": title, "aria-valuetext": [turn, text].filter(Boolean).join(": ") || title,
    ...(parts.length ? {"aria-valuemin": 0, "aria-valuemax": parts.length, "aria-valuenow": done} : {}),
  }, ...(parts.length ? parts.map(part) : [h("div", {class: `wb-phase ${state === "done" ? "wb-over" : "wb-now"}`})]));
}

// What comes next of what is known: a phase, or a compile of at most so many.
export function nextText({phases, current, most, over}) {
  if (most) return `(compile ${Math.min(over + 1, most)} of at most ${most})`;
  return current >= 0 ? `(${current + 1} of ${phases.length})` : "";
}

export function status(data, send = () => {}, show = () => {}) {
  const {state, title, turn, text} = data;
  if (state === "idle") return h("div", {class: "wb-progress"});
  const said = state === "running" ? `${[title, turn].filter(Boolean).join(", ")} ${nextText(data)} ${text}` : [HEADS[state], text].filter(Boolean).join(": ");
  return h("div", {class: `wb-progress wb-${state}`},
    state === "running" || state === "done" ? bar(data) : null,
    data.problem ? problem(data.problem, send) : h("p", {class: "wb-doing"}, h("span", {text: said, title: said}), state === "shown" ? null : h("span", {class: "wb-seconds"}), state === "done" && data.shows?.name ? button(data.shows.text, () => show(data.shows.name)) : null),
    data.refused ? h("p", {class: "wb-refused", role: "alert", text: data.refused}) : null);
}

// The part of this class as it is drawn, at the top of what is seen below the bar, unless its beginning is seen already.
function bring(el, name, tries = 40) {
  const root = el.closest(".wb-app"), part = root?.querySelector(`.${name}`), under = root?.querySelector(".wb-app-actions");
  if (!root || !part || !part.getClientRects().length) return void (tries && setTimeout(() => bring(el, name, tries - 1), 50));
  const {top} = part.getBoundingClientRect(), high = under?.offsetHeight ?? 0, seen = el.ownerDocument.defaultView.innerHeight;
  if (top >= (under?.getBoundingClientRect().bottom ?? 0) && top < seen / 2) return;
  part.style.scrollMarginTop = `${high + 12}px`;
  part.scrollIntoView({block: "start"});
}

async function render({model, el}) {
  let from = 0;
  const tick = () => {
    const {state, seconds} = model.get("data"), place = el.querySelector(".wb-seconds");
    if (!place) return;
    const shown = state === "running" ? seconds + (performance.now() - from) / 1000 : seconds;
    place.textContent = `  (${shown.toFixed(1)} s)`;
  };
  const show = () => { from = performance.now(); el.replaceChildren(status(model.get("data"), (text) => model.send(text), (name) => bring(el, name))); tick(); };
  show();
  Object.entries({role: "group", "aria-label": "Progress", ...OWN_KEYS}).forEach(([name, value]) => el.setAttribute(name, value));
  const free = keepFocus(el);
  const timer = setInterval(() => model.get("data").state === "running" && tick(), 100);
  const off = watch(model, ["data"], show), hear = (message) => message?.bring && bring(el, message.bring);
  model.on?.("msg:custom", hear);
  return () => { clearInterval(timer); model.off?.("msg:custom", hear); off(); free(); };
}

export default {render};
