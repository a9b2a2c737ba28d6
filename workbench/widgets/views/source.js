import {bytesText, choice, clipText, cyclesText, button, font, frame, h, hatch, isUnder, percentText, place, select, selectionOf, surface, table, tip, unpack, watch, wholeText, letGo, thingsText} from "../kit/kernel.js";
import {grid} from "../kit/grid.js";

const ROW = 20, SPARE = 10, STRIP = 40, SHOWN = 460;
const MEASURES = {cycles: ["cycles", cyclesText], peak: ["peak_bytes", bytesText], code: ["code_bytes", bytesText]};
const NAMES = {cycles: "cycles of all executions", peak: "bytes of the fullest tile", code: "bytes of code (what operators share counts for each)"};

// What stands under one another: heads of files where there are several, lines of text, and gaps where lines are left out.
export function listOf({file, number, text, line}, files) {
  const found = [];
  for (let i = 0; i < file.length; i++) {
    const starts = i === 0 || file[i] !== file[i - 1];
    if (starts && files.length > 1) found.push({head: files[file[i]]});
    if (!starts && number[i] > number[i - 1] + 1) found.push({from: number[i - 1] + 1, to: number[i] - 1});
    found.push({row: i, file: file[i], number: number[i], text: text[i], line: line[i]});
  }
  return found;
}

// Parts of the whole between 0 and 1, a line each in the order of the text, the rest at the end: [{line, from, to}].
export function partsOf(order, cycles, total) {
  let at = 0;
  const parts = order.map((line) => ({line, from: at, to: (at += cycles[line] / (total || 1))}));
  return [...parts, {line: -1, from: Math.min(1, at), to: 1}];
}

// The longest path that all layers are under, "" where they share none.
export function commonLayer(layers) {
  const split = [...layers].map((layer) => layer.split("/"));
  if (!split.length) return "";
  const most = Math.min(...split.map((parts) => parts.length));
  let deep = 0;
  while (deep < most && split.every((parts) => parts[deep] === split[0][deep])) deep += 1;
  return split[0].slice(0, deep).join("/");
}

// Lines of what is chosen elsewhere: those of a step, of a shared one those for whom the chosen layer runs it; else those of a layer.
export function linesOf({step_line, step, step_layer}, strings, chosen) {
  const found = new Set(), mine = new Set(), {step: one, layer} = chosen, isStep = one !== null && one !== undefined;
  for (let i = 0; i < step.length; i++) {
    const under = layer && isUnder(strings[step_layer[i]], layer);
    if (isStep ? step[i] === one : under) { found.add(step_line[i]); if (under) mine.add(step_line[i]); }
  }
  return mine.size ? mine : found;
}

// The place of the next entry that has a cost, forwards or back; where there is none, here.
export function nextWith(list, at, by) {
  for (let i = at + by; i >= 0 && i < list.length; i += by) if (list[i].line >= 0) return i;
  return at;
}

const valueOf = (view, line) => view.columns[MEASURES[view.measure][0]][line];
const said = (view, line) => MEASURES[view.measure][1](valueOf(view, line));
const textOf = (view, entry) => (entry.text < 0 ? view.data.no_text : view.data.texts[entry.text]);
const stepsOf = (view, line) => view.byLine[line] ?? [];

export function about(view, line) {
  const {columns, data} = view, entry = view.list[view.placeOf.get(line)], steps = stepsOf(view, line), layers = [...new Set(steps.map((i) => data.strings[columns.step_layer[i]]).filter(Boolean))];
  return [data.lines[line], textOf(view, entry).trim(), `${cyclesText(columns.cycles[line])}, ${percentText(columns.cycles[line] / (data.total_cycles || 1))} of all`, `at most ${bytesText(columns.peak_bytes[line])} on a tile`,
    columns.code_bytes[line] > 0 && `${bytesText(columns.code_bytes[line])} of code`, thingsText(new Set(steps.map((i) => columns.step[i])).size, "step"), layers.length > 0 && `layer ${layers.slice(0, 3).join(", ")}${layers.length > 3 ? ` and ${layers.length - 3} more` : ""}`].filter(Boolean);
}

function draw(view, ctx, width, height, t) {
  font(ctx, t, 11);
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const {line, from, to} of view.parts) {
    const x = from * width, wide = (to - from) * width;
    if (wide < 0.2) continue;
    const heat = line < 0 ? 0 : view.columns.cycles[line] / (view.most.cycles || 1);
    ctx.fillStyle = line < 0 ? hatch(ctx, "rising", t.muted, t.paper, 0.8) : t.accent;
    ctx.globalAlpha = line < 0 ? 0.35 : 0.25 + 0.6 * heat;
    ctx.fillRect(x, 2, Math.max(0.6, wide - 1), height - 4);
    ctx.globalAlpha = 1;
    if (line >= 0 && (line === view.line || view.marked.has(line))) { ctx.strokeStyle = t.text; ctx.lineWidth = 2; ctx.strokeRect(x + 1, 3, Math.max(1, wide - 3), height - 6); }
    const label = line < 0 ? "no line" : view.data.files.length > 1 ? view.data.lines[line] : String(view.list[view.placeOf.get(line)].number);
    ctx.fillStyle = t.text;
    if (wide > 24) ctx.fillText(clipText(ctx, `${label}  ${percentText(to - from)}`, wide - 10), x + 5, height / 2);
  }
}

function line(view, entry, i) {
  const place = {top: `${i * ROW}px`, height: `${ROW}px`};
  if (entry.head) return h("div", {class: "wb-code-head", style: place, text: entry.head.name === entry.head.file ? entry.head.name : `${entry.head.name} (${entry.head.file})`});
  if (entry.to) return h("div", {class: "wb-code-gap", style: place, text: `⋯ lines ${entry.from} to ${entry.to}`});
  const has = entry.line >= 0, part = has ? valueOf(view, entry.line) / (view.most[view.measure] || 1) : 0, chosen = has && (entry.line === view.line || view.marked.has(entry.line));
  const heat = h("div", {class: "wb-code-heat"}, has && h("div", {style: {width: `${Math.max(1, part * 100)}%`, opacity: String(0.35 + 0.65 * part)}}));
  return h("div", {role: "option", id: `${view.id}-${entry.row}`, "aria-selected": String(chosen), class: `wb-code-line${has ? " wb-code-has" : ""}${i === view.at ? " wb-at" : ""}${entry.text < 0 ? " wb-code-none" : ""}`, style: place, title: has ? about(view, entry.line).join("\n") : undefined,
    "aria-label": `line ${entry.number}${has ? `, ${said(view, entry.line)}` : ""}: ${textOf(view, entry)}`, onclick: () => { view.box.focus(); go(view, i); if (has) pick(view, entry.line); }},
    h("span", {class: "wb-code-number", text: entry.number}), heat, h("span", {class: "wb-code-text", text: textOf(view, entry)}), h("span", {class: "wb-code-value", text: has ? said(view, entry.line) : ""}), h("span", {class: "wb-code-value", text: has && view.measure === "cycles" ? percentText(valueOf(view, entry.line) / (view.data.total_cycles || 1)) : ""}));
}

function fill(view) {
  const {box, list} = view, first = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE), last = Math.min(list.length, first + Math.ceil(SHOWN / ROW) + 2 * SPARE);
  view.rows.style.height = `${list.length * ROW}px`;
  view.rows.replaceChildren(...list.slice(first, last).map((entry, i) => line(view, entry, first + i)));
  const at = list[view.at];
  if (at?.row >= 0) box.setAttribute("aria-activedescendant", `${view.id}-${at.row}`);
}

function go(view, place) {
  view.at = Math.max(0, Math.min(view.list.length - 1, place));
  const {box} = view, high = box.clientHeight || SHOWN, top = view.at * ROW;
  if (top < box.scrollTop || top + 2 * ROW > box.scrollTop + high) box.scrollTop = Math.max(0, top - high / 3);
  fill(view);
}

// The line's steps light up in the other views, the dearest of them in front.
function pick(view, which) {
  const {columns, data} = view, mine = [...stepsOf(view, which)].sort((a, b) => columns.step_cycles[b] - columns.step_cycles[a]);
  if (!mine.length) return;
  Object.assign(view, {line: which, marked: new Set()});
  view.picked = true;
  const ids = [...new Set(mine.map((i) => columns.step[i]))];
  select(view.selection, {steps: ids, step: null, layer: commonLayer(new Set(mine.map((i) => data.strings[columns.step_layer[i]]))) || null, variable: null, position: null});
  view.picked = false;
  tell(view);
  refresh(view);
}

function tell(view) {
  const has = view.line >= 0;
  view.said.textContent = has ? about(view, view.line).join(" · ") : "Choose a line: its steps light up in the other views. What is chosen there marks its lines here.";
  if (has) view.ui.announce(about(view, view.line).join(", "));
  listed(view);
}

function listed(view) {
  const {columns, data} = view, mine = view.line < 0 ? [] : stepsOf(view, view.line);
  if (!mine.length) { view.steps.replaceChildren(); return; }
  view.grid = grid({label: `Steps of ${data.lines[view.line]}`, rows: [...mine], high: 180, sort: {column: 3, down: true}, total: (found) => cyclesText(found.reduce((sum, i) => sum + columns.step_cycles[i], 0)),
    columns: [{label: "step", number: true, wide: "72px", value: (i) => columns.step[i], text: (i) => (i === null ? "" : String(columns.step[i]))}, {label: "name", text: (i) => (i === null ? "" : data.strings[columns.step_name[i]])}, {label: "layer", text: (i) => (i === null ? "" : data.strings[columns.step_layer[i]])},
      {label: "cycles", number: true, wide: "120px", sum: true, value: (i) => columns.step_cycles[i], text: (i, sum) => wholeText(i === null ? sum : columns.step_cycles[i])}],
    chosen: (i) => columns.step[i] === view.selection.get("step"), pick: (i) => { view.picked = true; select(view.selection, {step: columns.step[i], layer: data.strings[columns.step_layer[i]] || null, position: null}); view.picked = false; refresh(view); }});
  view.steps.replaceChildren(view.grid.root);
}

function refresh(view) {
  fill(view);
  view.grid?.refresh();
  view.canvas?.redraw();
}

// What was chosen in another view marks its lines; the dearest of them is brought into sight.
function follow(view) {
  if (view.picked) return;
  const chosen = {step: view.selection.get("step") ?? null, layer: view.selection.get("layer") ?? null};
  view.marked = linesOf(view.columns, view.data.strings, chosen);
  const dearest = [...view.marked].sort((a, b) => view.columns.cycles[b] - view.columns.cycles[a])[0];
  view.line = dearest ?? -1;
  if (dearest !== undefined) go(view, view.placeOf.get(dearest));
  tell(view);
  refresh(view);
}

function key(view, event) {
  if (event.ctrlKey || event.metaKey) return;
  const {list} = view, here = list[view.at];
  const to = (place) => { go(view, place); const entry = list[view.at]; view.ui.announce(entry.row >= 0 ? `${entry.number}: ${textOf(view, entry)}${entry.line >= 0 ? `, ${said(view, entry.line)}` : ""}` : entry.head?.name ?? "lines left out"); };
  const own = {ArrowDown: () => to(view.at + 1), ArrowUp: () => to(view.at - 1), PageDown: () => to(view.at + 15), PageUp: () => to(view.at - 15), Home: () => to(0), End: () => to(list.length - 1),
    n: () => to(nextWith(list, view.at, 1)), p: () => to(nextWith(list, view.at, -1)), Enter: () => here?.line >= 0 && pick(view, here.line), " ": () => here?.line >= 0 && pick(view, here.line), Escape: () => clear(view)}[event.key];
  if (!own) return;
  own();
  event.preventDefault();
}

function clear(view) {
  Object.assign(view, {line: -1, marked: new Set(), picked: true});
  select(view.selection, {steps: null, step: null, layer: null, position: null});
  view.picked = false;
  letGo(view.selection);
  tell(view);
  refresh(view);
}

function dearest(view) {
  const order = [...view.data.lines.keys()].sort((a, b) => valueOf(view, b) - valueOf(view, a)), next = order[order.indexOf(view.line) + 1] ?? order[0];
  if (next === undefined) return;
  go(view, view.placeOf.get(next));
  pick(view, next);
}

function pointing(view) {
  const {canvas} = view.ui, show = tip(view.ui.plot), under = (event) => { const [px, py] = place(event, canvas), part = px / canvas.clientWidth; return [px, py, view.parts.find(({from, to}) => from <= part && part < to)]; };
  canvas.addEventListener("pointermove", (event) => { const [px, py, found] = under(event); if (!found) return show(); return show(px, py, found.line < 0 ? ["no line", `${cyclesText(view.data.unattributed_cycles)}: waiting, synchronisation, and steps without a line`] : about(view, found.line)); });
  canvas.addEventListener("pointerleave", () => show());
  canvas.addEventListener("click", (event) => { const found = under(event)[2]; canvas.focus(); if (found?.line >= 0) { go(view, view.placeOf.get(found.line)); pick(view, found.line); } });
  canvas.addEventListener("keydown", (event) => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!by) return key(view, event);
    go(view, nextWith(view.list, view.at, by));
    if (view.list[view.at].line >= 0) pick(view, view.list[view.at].line);
    return event.preventDefault();
  });
}

function load(view) {
  const {data, columns} = view;
  view.list = listOf(columns, data.files);
  view.placeOf = new Map(view.list.flatMap((entry, i) => (entry.line >= 0 ? [[entry.line, i]] : [])));
  view.byLine = data.lines.map(() => []);
  columns.step_line.forEach((which, i) => view.byLine[which].push(i));
  view.parts = partsOf([...view.placeOf.keys()], columns.cycles, data.total_cycles);
  view.most = Object.fromEntries(Object.entries(MEASURES).map(([name, [column]]) => [name, columns[column].reduce((most, value) => Math.max(most, value), 0)]));
}

function furnish(view) {
  const {ui, data, columns} = view, offered = Object.entries(NAMES).filter(([name]) => view.most[name] > 0);
  ui.say(data.sentence);
  ui.tools.replaceChildren(choice("heat", offered, view.measure, (value) => { view.measure = value; refresh(view); }), button("Dearest", () => dearest(view), {title: "The dearest line, then the next dearest"}), ...(view.live ? [] : [button("Choose nothing", () => clear(view), {title: "Key: Escape"})])); // live views have one of their own
  ui.setTable(() => table([{label: "line", text: (which) => (which < 0 ? "no line" : data.lines[which])}, {label: "text", text: (which) => (which < 0 ? "" : textOf(view, view.list[view.placeOf.get(which)]).trim())},
    {label: "cycles", number: true, text: (which) => wholeText(which < 0 ? data.unattributed_cycles : columns.cycles[which])}, {label: "share", number: true, text: (which) => percentText((which < 0 ? data.unattributed_cycles : columns.cycles[which]) / (data.total_cycles || 1))},
    {label: "fullest tile (bytes)", number: true, text: (which) => (which < 0 ? "" : wholeText(columns.peak_bytes[which]))}, {label: "code (bytes)", number: true, text: (which) => (which < 0 ? "" : wholeText(columns.code_bytes[which]))}],
  [...data.lines.keys(), -1], {caption: `Lines, the dearest first; together ${cyclesText(data.total_cycles)}`, most: 300, pick: (which) => { if (which >= 0) { go(view, view.placeOf.get(which)); pick(view, which); } }}));
}

async function render({model, el}) {
  const data = model.get("data");
  if (!data.lines.length) {
    el.replaceChildren(h("section", {class: "wb", "aria-label": "Source"}, h("p", {class: "wb-empty", text: data.sentence})));
    return undefined;
  }
  const view = {selection: await selectionOf(model), live: model.get("live"), data, columns: unpack(data.layout, model.get("buffer")), measure: "cycles", line: -1, at: 0, marked: new Set(), id: `wb-code-${Math.random().toString(36).slice(2)}`};
  load(view);
  const ui = (view.ui = frame(el, {title: "Source", sentence: data.sentence, height: STRIP}));
  view.rows = h("div", {class: "wb-code-rows", role: "presentation"});
  view.box = h("div", {class: "wb-code-box", tabindex: 0, role: "listbox", "aria-label": "Code: arrows walk, n and p go to lines with steps, Enter lights up a line's steps", onscroll: () => fill(view), onkeydown: (event) => key(view, event)}, view.rows);
  view.said = h("p", {class: "wb-plan"});
  view.steps = h("div", {class: "wb-code-steps"});
  for (const part of [view.box, view.said, view.steps]) ui.root.insertBefore(part, ui.root.querySelector("details"));
  furnish(view);
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  pointing(view);
  view.at = nextWith(view.list, -1, 1);
  tell(view);
  fill(view);
  const offs = [watch(view.selection, ["step", "layer"], () => follow(view)), watch(view.selection, ["steps"], () => { if (!view.selection.get("steps")) follow(view); })];
  follow(view);
  return () => { offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
