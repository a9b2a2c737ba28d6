import {OWN_KEYS, button, h, watch} from "../kit/kernel.js";
import {keepFocus} from "./focus.js";

const HEADS = {running: "", done: "Done", failed: "This did not work", cancelled: "Cancelled"};

function problem({what, expected, todo, cure}, send) {
  const line = (label, text) => text && h("p", {}, h("strong", {text: `${label} `}), h("span", {text}));
  return h("div", {class: "wb-problem", role: "alert"}, h("p", {class: "wb-what", text: what}), line("Expected:", expected), line("To mend it:", todo), cure && button(cure, () => send("mend")));
}

// Phases are equal parts of the bar: how long each takes is only known once it is over. Of several compiles it is the bar
// of one: how many there will be is known less, and said in words.
function bar({title, turn, phases, current, state, text}) {
  const done = state === "done" ? phases.length : Math.max(0, current);
  const part = (phase, place) => h("div", {
    class: `wb-phase ${place < done ? "wb-over" : place === current && state === "running" ? "wb-now" : ""}`,
    title: phase.seconds === null ? phase.name : `${phase.name}: ${phase.seconds.toFixed(2)} s`,
  });
  return h("div", {
    class: "wb-phases", role: "progressbar", "aria-label": title, "aria-valuetext": [turn, text].filter(Boolean).join(": ") || title,
    ...(phases.length ? {"aria-valuemin": 0, "aria-valuemax": phases.length, "aria-valuenow": done} : {}),
  }, ...(phases.length ? phases.map(part) : [h("div", {class: `wb-phase ${state === "done" ? "wb-over" : "wb-now"}`})]));
}

export function status(data, send = () => {}) {
  const {state, title, turn, text, phases, current} = data;
  if (state === "idle") return h("div", {class: "wb-progress"});
  const said = state === "running" ? `${[title, turn].filter(Boolean).join(", ")} ${current >= 0 ? `(${current + 1} of ${phases.length})` : ""} ${text}` : [HEADS[state], text].filter(Boolean).join(": ");
  return h("div", {class: `wb-progress wb-${state}`},
    state === "running" || state === "done" ? bar(data) : null,
    data.problem ? problem(data.problem, send) : h("p", {class: "wb-doing"}, h("span", {text: said, title: said}), state === "shown" ? null : h("span", {class: "wb-seconds"})),
    data.refused ? h("p", {class: "wb-refused", role: "alert", text: data.refused}) : null);
}

async function render({model, el}) {
  let from = 0;
  const tick = () => {
    const {state, seconds} = model.get("data"), place = el.querySelector(".wb-seconds");
    if (!place) return;
    const shown = state === "running" ? seconds + (performance.now() - from) / 1000 : seconds;
    place.textContent = `  (${shown.toFixed(1)} s)`;
  };
  const show = () => { from = performance.now(); el.replaceChildren(status(model.get("data"), (text) => model.send(text))); tick(); };
  show();
  Object.entries({role: "group", "aria-label": "Progress", ...OWN_KEYS}).forEach(([name, value]) => el.setAttribute(name, value));
  const free = keepFocus(el);
  const timer = setInterval(() => model.get("data").state === "running" && tick(), 100);
  const off = watch(model, ["data"], show);
  return () => { clearInterval(timer); off(); free(); };
}

export default {render};
