// What every view has around it where a kernel answers: where a number comes from (key e), and anything by its name (Ctrl-K).
import {LETS_GO, OWN_KEYS, button, escapes, h, letGo, select, selectionOf, watch, wholeText} from "./kernel.js";

// What can be explained of what is chosen, the most particular first: [{label, ask}]; of nothing the peak.
export function subjects(chosen) {
  const {ipu, tile, step, variable} = chosen, is = (value) => value !== null && value !== undefined, found = [];
  if (is(variable)) found.push({label: "the variable", ask: {variable}});
  if (is(tile) && is(step)) found.push({label: `tile ${wholeText(tile)} at step ${wholeText(step)}`, ask: is(ipu) ? {tile, step, ipu} : {tile, step}});
  if (is(step)) found.push({label: `step ${wholeText(step)}`, ask: {step}});
  if (is(tile)) found.push({label: `tile ${wholeText(tile)}`, ask: is(ipu) ? {tile, ipu} : {tile}});
  return found.length ? found : [{label: "the fullest tile", ask: {}}];
}

const line = (word, text) => text && h("p", {}, h("span", {class: "wb-word", text: word}), h("span", {text}));

export function tree(told, open = true) {
  const inputs = told.inputs.map(([name, value]) => `${name} = ${value}`).join(", ");
  const node = h("details", {class: "wb-told"}, h("summary", {}, h("strong", {text: `${told.subject}: ${told.shown}`}), h("span", {text: told.error})),
    line("=", told.formula), line("so", told.arithmetic), line("with", inputs), line("from", told.source), ...told.needs.map((each) => tree(each, false)), ...told.parts.map((each) => tree(each, false)), line("and", told.rest));
  node.open = open;
  return node;
}

function explainer(model, selection, el) {
  const content = h("div", {class: "wb-explained"}), title = h("h4", {text: "Where it comes from"}), which = h("div", {class: "wb-tools"});
  const drawer = h("section", {class: "wb wb-drawer", role: "region", "aria-label": "Explanation", tabindex: -1, hidden: true, ...OWN_KEYS}, h("header", {class: "wb-head"}, title, which, button("Close", () => close(), {title: "Key: Escape"})), content);
  const close = () => { drawer.hidden = true; el.querySelector("canvas.wb-canvas")?.focus(); };
  const ask = (what) => { content.replaceChildren(h("p", {text: "…"})); model.send({explain: what}); };
  const open = () => {
    const chosen = Object.fromEntries(["ipu", "tile", "step", "variable"].map((name) => [name, selection.get(name)])), offered = subjects(chosen);
    which.replaceChildren(...offered.map(({label, ask: what}) => button(label, () => ask(what))));
    if (!drawer.isConnected) el.append(drawer);
    drawer.hidden = false;
    ask(offered[0].ask);
    drawer.focus({preventScroll: true});
    drawer.scrollIntoView({block: "nearest"});
  };
  drawer.addEventListener("keydown", (event) => { if (event.key === "Escape") { close(); event.preventDefault(); } });
  return {open, hear: (told) => content.replaceChildren(told.problem ? h("p", {text: told.problem}) : tree(told))};
}

// Views and commands of the page whose texts have every word.
export function here(words, places) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return places.filter(({label}) => wanted.every((word) => label.toLowerCase().includes(word)));
}

function placesOf(el) {
  const root = el.closest(".jp-OutputArea") ?? document, tabs = [...root.querySelectorAll('[role="tab"]')].map((tab) => ({kind: "view", label: tab.textContent.trim(), go: () => { tab.dispatchEvent(new MouseEvent("mousedown", {bubbles: true})); tab.click(); }}));
  const views = [...root.querySelectorAll("section.wb[aria-label]:not(.wb-drawer)")].filter((view) => view.offsetParent).map((view) => ({kind: "view", label: view.getAttribute("aria-label"), go: () => { view.scrollIntoView({block: "nearest"}); view.querySelector("canvas")?.focus(); }}));
  const commands = [...el.querySelectorAll(".wb-head button")].map((each) => ({kind: "command", label: each.getAttribute("aria-label") ?? each.textContent, go: () => each.click()}));
  const known = new Set();
  return [...tabs, ...views, ...commands].filter(({kind, label}) => label && !known.has(kind + label) && known.add(kind + label));
}

function palette(model, selection, el) {
  const input = h("input", {type: "search", class: "wb-search", role: "combobox", "aria-expanded": "true", "aria-label": "Go to any layer, variable, step, tile, view or command", placeholder: "Layer, variable, step, tile, view or command"});
  const list = h("ul", {class: "wb-found", role: "listbox", "aria-label": "Found"}), box = h("div", {class: "wb wb-palette", role: "dialog", "aria-label": "Palette", hidden: true, ...OWN_KEYS}, input, list);
  const state = {found: [], at: 0, asked: 0, places: []};
  const close = () => { box.hidden = true; (el.querySelector("canvas.wb-canvas") ?? el).focus?.(); };
  const go = (entry) => { if (!entry) return; close(); if (entry.go) entry.go(); else select(selection, entry.select); };
  const fill = () => list.replaceChildren(...(state.found.length ? state.found.map((entry, i) => h("li", {role: "option", "aria-selected": String(i === state.at), class: i === state.at ? "wb-chosen" : "", onclick: () => go(entry)}, h("span", {class: "wb-kind", text: entry.kind}), h("span", {text: entry.label})))
    : [h("li", {class: "wb-empty", text: "Nothing has all of these words."})]), (list.children[state.at]?.scrollIntoView({block: "nearest"}), ""));
  const look = () => { state.asked += 1; state.found = here(input.value, state.places); state.at = 0; fill(); model.send({find: input.value, asked: state.asked}); };
  input.addEventListener("input", look);
  box.addEventListener("keydown", (event) => {
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
    event.stopPropagation();
    if (by) { state.at = Math.max(0, Math.min(state.found.length - 1, state.at + by)); fill(); } else if (event.key === "Enter") go(state.found[state.at]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  return {open: () => { if (!box.isConnected) el.append(box); state.places = placesOf(el); box.hidden = false; input.value = ""; look(); input.focus(); },
    hear: ({found, asked}) => { if (asked === state.asked) { state.found = [...here(input.value, state.places), ...found]; fill(); } }};
}

// Where pictures were zoomed to, by the name their selection keeps it under and their title: a page has one of each.
const zooms = new Map();

// Zooms a new picture to where the one in its place was, and remembers where it is moved to.
export function keepZoom(canvas, kept, title) {
  if (!canvas?.zoomed || !kept) return;
  if (!zooms.has(kept)) zooms.set(kept, new Map());
  const places = zooms.get(kept), last = places.get(title);
  canvas.zoomed.heard = () => {
    const [from, to] = canvas.zoomed.get();
    if (from <= 0 && to >= 1) places.delete(title);
    else places.set(title, [from, to]);
  };
  if (last) canvas.zoomed.set(...last);
}

export async function attach({model, el}) {
  const section = el.querySelector("section.wb");
  if (!section || !model.get("live") || !model.get("asks") || !model.get("selection")) return () => {};
  const selection = await selectionOf(model), explain = explainer(model, selection, el), finds = palette(model, selection, el);
  keepZoom(el.querySelector("canvas.wb-canvas"), selection.get("kept"), section.getAttribute("aria-label"));
  const none = button("Choose nothing", () => letGo(selection), {title: "Key: Escape. Lets go of the tile, the step, the variable and the layer that are chosen"});
  const offer = () => { none.hidden = LETS_GO.every((name) => (selection.get(name) ?? null) === null); };
  offer();
  section.insertBefore(h("div", {class: "wb-tools wb-around"}, none, button("Explain", explain.open, {title: "Key: e. Where the chosen number comes from"}), button("Go to…", finds.open, {title: "Key: Ctrl-K"})), section.querySelector(":scope > .wb-data"));
  const keys = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") finds.open();
    else if (event.key === "e" && !event.ctrlKey && !event.metaKey && !event.altKey && !["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) explain.open();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  // The title of the tab that shows this view stands outside of it.
  const outside = (event) => { if (event.target.getAttribute?.("role") === "tab" && event.target.closest(".wb-tabs")?.contains(el) && el.getClientRects().length) keys(event); };
  const hear = (message) => { if (message.explained) explain.hear(message.explained); else if (message.found) finds.hear(message); };
  el.addEventListener("keydown", keys);
  el.ownerDocument.addEventListener("keydown", outside);
  model.on("msg:custom", hear);
  const ends = [escapes(el, selection), watch(selection, LETS_GO, offer)];
  return () => { el.removeEventListener("keydown", keys); el.ownerDocument.removeEventListener("keydown", outside); model.off("msg:custom", hear); ends.forEach((end) => end()); };
}

// Draws a view with what it has around it, and anew when the kernel says that it took another report: until that stands,
// the picture of the one before does. JupyterLab keeps a closed widget's element and what is returned here as long as its
// kernel: both let go of all that was drawn.
export async function stand(context, render) {
  const {model, el} = context, ends = [];
  const leave = () => { for (const end of ends.splice(0).reverse()) end?.(); };
  const draw = async () => {
    leave();
    el.replaceChildren();
    ends.push(await render(context));
    ends.push(await attach(context));
  };
  let drawn = draw();
  const hear = ({drawn: what}) => {
    if (what === "leave") leave();
    if (what === "again") drawn = drawn.then(draw, draw);
  };
  model.on?.("msg:custom", hear);
  await drawn;
  return () => { model.off?.("msg:custom", hear); leave(); el.replaceChildren(); };
}
