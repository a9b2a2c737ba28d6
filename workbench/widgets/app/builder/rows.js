import {OWN_KEYS, button, h, watch, wholeText} from "../../kit/kernel.js";

export const holds = (count) => (count ? `${wholeText(count)} parameter${count === 1 ? "" : "s"}` : "no parameters");

// What is said of a row: what it gives and what it holds.
export const noteOf = ({gives, holds: count}) => (gives ? `gives ${gives}, ${holds(count)}` : "");

export const totalOf = (rows) => (rows.every(({gives}) => gives) ? `${rows.length} layer${rows.length === 1 ? "" : "s"}, ${holds(rows.reduce((all, row) => all + row.holds, 0))}` : "");

// The place a dragged row would take: behind all other rows whose middle lies above the pointer.
export const placeFor = (middles, from, y) => middles.filter((middle, at) => at !== from && middle < y).length;

function menu(label, key, options, value, onchange) {
  const list = h("select", {"aria-label": label, "data-key": key, title: label, onchange: () => onchange(list.selectedIndex)}, ...options.map((text) => h("option", {text})));
  list.selectedIndex = value;
  return list;
}

function setting(view, at, row, which) {
  const {label, minimum, maximum, step, words} = view.kinds()[row.kind].settings[which], key = `setting ${which}`, name = `${label} of layer ${at + 1}`;
  const send = (value) => view.send({do: "set", at, setting: which, value});
  if (words.length) return h("label", {class: "wb-row-part"}, h("span", {text: label}), menu(name, key, words, row.values[which], send));
  const commit = () => { if (view.drawing || field.value === field.dataset.said) return; field.dataset.said = field.value; send(field.value); };
  // A text taken over from the field before it is no change to the browser: leaving the field sends it as well.
  const field = h("input", {type: "number", min: minimum, max: maximum, step, "aria-label": name, "data-key": key, onchange: commit, onblur: commit});
  field.value = row.values[which];
  field.dataset.said = field.value; // what the kernel knows of it
  return h("label", {class: "wb-row-part"}, h("span", {text: label}), field);
}

function drag(view, line, handle, at) {
  let to = null;
  const lines = () => [...view.list.children];
  const mark = (place) => lines().forEach((each, i) => each.classList.toggle("wb-row-target", place !== null && i === place && place !== at));
  handle.addEventListener("pointerdown", (event) => { if (event.button) return; to = at; handle.setPointerCapture(event.pointerId); line.classList.add("wb-row-moving"); });
  handle.addEventListener("pointermove", (event) => {
    if (to === null) return;
    to = placeFor(lines().map((each) => { const {top, height} = each.getBoundingClientRect(); return top + height / 2; }), at, event.clientY);
    mark(to);
  });
  const end = (done) => () => {
    if (to === null) return;
    const place = to;
    to = null;
    mark(null);
    line.classList.remove("wb-row-moving");
    if (done && place !== at) view.send({do: "move", at, to: place});
  };
  handle.addEventListener("pointerup", end(true));
  handle.addEventListener("pointercancel", end(false));
}

function line(view, row, at, rows) {
  const kind = view.kinds()[row.kind], name = `layer ${at + 1}`, choose = (what, value) => view.send({do: "choose", at, name: what, value});
  const kinds = Object.keys(view.kinds()), move = (to) => { if (to >= 0 && to < rows.length) view.send({do: "move", at, to}); };
  const handle = button("⠿", () => {}, {class: "wb-row-handle", "aria-label": `Move ${name}: drag it, or press the arrow keys`, title: "Drag, or press the arrow keys", "data-key": "handle",
    onkeydown: (event) => { const by = {ArrowUp: -1, ArrowDown: 1}[event.key]; if (by) { event.preventDefault(); event.stopPropagation(); move(at + by); } }});
  const icon = (text, label, onclick, off) => button(text, onclick, {class: "wb-row-button", "aria-label": label, title: label, "data-key": label.replace(/\d+/, ""), disabled: off});
  const others = ["the input", ...rows.slice(0, at).map((each, i) => `${i + 1} ${each.kind}`), ...(row.other > at ? [`${row.other}, which comes after`] : [])];
  const parts = [
    menu(`${name}: kind`, "kind", kinds, kinds.indexOf(row.kind), (i) => choose("kind", kinds[i])),
    ...kind.settings.map((_, which) => setting(view, at, row, which)),
    kind.activations.length ? h("label", {class: "wb-row-part"}, h("span", {text: "activation"}), menu(`${name}: activation`, "activation", kind.activations, kind.activations.indexOf(row.activation), (i) => choose("activation", kind.activations[i]))) : null,
    kind.two ? h("label", {class: "wb-row-part"}, h("span", {text: "with"}), menu(`${name}: second input`, "other", others, Math.min(row.other, others.length - 1), (i) => { if (i <= at) choose("other", i); })) : null,
  ];
  const made = h("li", {class: `wb-row${row.problem ? " wb-row-bad" : ""}`, "data-id": String(row.id),
    onkeydown: (event) => { const by = event.altKey && {ArrowUp: -1, ArrowDown: 1}[event.key]; if (by) { event.preventDefault(); event.stopPropagation(); move(at + by); } }},
    handle, h("span", {class: "wb-row-place", text: String(at + 1)}), h("div", {class: "wb-row-parts"}, ...parts),
    h("div", {class: "wb-row-does"}, icon("+", `Insert a layer before layer ${at + 1}`, () => view.send({do: "insert", at})), icon("↑", `Move ${name} up`, () => move(at - 1), at === 0), icon("↓", `Move ${name} down`, () => move(at + 1), at === rows.length - 1), icon("×", `Remove ${name}`, () => view.send({do: "remove", at}), rows.length === 1)),
    h("p", {class: row.problem ? "wb-row-problem" : "wb-row-note", role: row.problem ? "alert" : undefined, text: row.problem || noteOf(row)}));
  drag(view, made, handle, at);
  return made;
}

async function render({model, el}) {
  const view = {kinds: () => model.get("kinds"), send: (message) => model.send(message), list: h("ol", {class: "wb-rows", "aria-label": "Layers"})};
  const why = h("p", {class: "wb-row-problem", role: "alert"}), total = h("span", {class: "wb-row-total", role: "status"});
  const root = h("div", {class: "wb-builder", ...OWN_KEYS}, why, view.list, h("div", {class: "wb-row-foot"}, button("Add layer", () => view.send({do: "add"}), {title: "Add a layer at the end"}), total));
  el.replaceChildren(root);
  const show = () => {
    const rows = model.get("rows"), chosen = el.ownerDocument.activeElement, held = view.list.contains(chosen) ? [chosen.closest("li")?.dataset.id, chosen.dataset.key] : null;
    const typed = held && chosen.matches("input") && chosen.value !== chosen.dataset.said ? chosen.value : null;
    view.drawing = true;
    view.list.replaceChildren(...rows.map((row, at) => line(view, row, at, rows)));
    view.drawing = false;
    // What was in use stays in use, wherever its row has gone to, with what was typed and not yet sent; a button that is off there hands over to the handle.
    if (held) {
      const row = [...view.list.children].find((each) => each.dataset.id === held[0]), found = row && [...row.querySelectorAll("[data-key]")].find((each) => each.dataset.key === held[1] && !each.disabled);
      if (found && typed !== null) found.value = typed;
      (found ?? row?.querySelector(".wb-row-handle") ?? view.list.lastElementChild?.querySelector(".wb-row-handle"))?.focus();
    }
    why.textContent = model.get("problem");
    why.hidden = !model.get("problem");
    total.textContent = totalOf(rows);
  };
  show();
  return watch(model, ["rows", "problem"], show);
}

export default {render};
