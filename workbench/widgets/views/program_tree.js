import {button, clipText, cyclesText, font, frame, h, hatch, isUnder, percentText, place, select, selectionOf, surface, swatch, tip, unpack, watch, wholeText, within} from "../kit/kernel.js";
import {grid} from "../kit/grid.js";

const ROW = 26, SPARE = 8, HIGH = 468, BAND = 26, BANDS = 4, INDENT = 14;

// The branches that have come, by their numbers; `below` of one is null until it has been opened somewhere.
export class Tree {
  constructor() { this.rows = []; this.open = new Set([0]); }

  take({layout, strings}, buffer) {
    const columns = unpack(layout, buffer), found = [...columns.row];
    found.forEach((row, i) => {
      const known = this.rows[row], at = (name) => columns[name][i];
      this.rows[row] = {row, parent: at("parent"), kind: at("kind"), name: strings[at("name")], layer: strings[at("layer")], direction: strings[at("direction")], function: strings[at("function")], cycles: at("cycles"), runs: at("runs"),
        times: at("times"), start: at("start"), ipu: at("ipu"), step: at("step"), batch: at("batch"), count: Math.max(at("below"), known?.count ?? -1), below: known?.below ?? null, causes: known?.causes ?? []};
    });
    columns.cause_row.forEach((row, i) => { const each = this.rows[row]; if (!each.causes.some(([cause]) => cause === columns.cause[i])) each.causes.push([columns.cause[i], columns.cause_cycles[i]]); });
    for (const row of found) {
      const {parent} = this.rows[row], above = this.rows[parent];
      if (above && !above.below?.includes(row)) (above.below ??= []).push(row);
    }
    for (const row of this.rows) if (row?.below && row.count < row.below.length) row.count = row.below.length;
  }

  isLeaf(row) { return this.rows[row].count === 0; }

  has(row) { return this.rows[row].below !== null; }

  ways(row) { const found = []; for (let at = this.rows[row].parent; at >= 0; at = this.rows[at].parent) found.unshift(at); return found; }

  // Rows in sight with their levels, [[row, level]], in the order of the program; `only` keeps some and what is around them.
  lines(only = null) {
    const found = [], kept = only && new Set([...only, ...only.flatMap((row) => this.ways(row))]);
    const walk = (row, level) => {
      found.push([row, level]);
      if (!this.open.has(row) && !kept) return;
      for (const child of this.rows[row].below ?? []) if (!kept || kept.has(child) || (this.open.has(row) && only.includes(row))) walk(child, level + 1);
    };
    if (this.rows[0]) walk(0, 0);
    return found;
  }

  matching(words, label) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return this.rows.filter((each) => each && wanted.every((word) => `${label(each)}\n${each.name}\n${each.layer}\n${each.function}`.toLowerCase().includes(word))).map(({row}) => row);
  }

  // Whether everything has come.
  get whole() { return this.rows.every((each) => each.count === 0 || (each.below && each.below.length === each.count)); }
}

// Boxes of what is below a row, [{row, depth, from, to}] with places between 0 and 1: in time, a loop as if it turned once.
export function boxes(tree, base, deepest) {
  const found = [], walk = (row, depth, from, to) => {
    const each = tree.rows[row], wide = (to - from) / (each.cycles / each.times || 1);
    found.push({row, depth, from, to});
    if (depth >= deepest || !each.below) return;
    let free = from;
    for (const child of [...each.below].sort((a, b) => tree.rows[a].start - tree.rows[b].start || tree.rows[b].cycles - tree.rows[a].cycles)) {
      const {start, cycles, runs} = tree.rows[child], left = from + (start - each.start) * wide, right = left + cycles * wide;
      if (left < free - 1e-9 || !runs) continue; // beside a longer one, or an arm that is not taken
      walk(child, depth + 1, left, right);
      free = right;
    }
  };
  walk(base, 0, 0, 1);
  return found;
}

const labelOf = (view, each) => view.data.kinds[each.kind].label;
const nameOf = (view, each) => `${each.name || labelOf(view, each)}${each.times > 1 ? ` × ${wholeText(each.times)}` : ""}`;
// In a line, what stands below a layer leaves its name out.
const shortOf = (view, each) => within(nameOf(view, each), view.tree.rows[each.parent]?.layer);
const share = (view, each) => (each.cycles * each.runs) / (view.data.total_cycles || 1);

function draw(view, ctx, width, height, t) {
  const {tree, data} = view;
  view.boxes = boxes(tree, view.base, BANDS - 1);
  font(ctx, t, 11.5);
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const {row, depth, from, to} of view.boxes) {
    const x = from * width, wide = (to - from) * width, y = depth * BAND, each = tree.rows[row], paint = data.kinds[each.kind];
    if (wide < 0.3) continue;
    const isStep = each.step >= 0;
    ctx.globalAlpha = isStep ? 1 : 0.35;
    ctx.fillStyle = isStep ? hatch(ctx, paint.pattern, paint.colour, t.paper) : paint.colour;
    ctx.fillRect(x, y, Math.max(0.6, wide - (wide > 3 ? 1 : 0)), BAND - 2);
    ctx.globalAlpha = 1;
    if (row === view.at || chosen(view, each)) { ctx.strokeStyle = row === view.at ? t.accent : t.text; ctx.lineWidth = 2; ctx.strokeRect(x + 1, y + 1, Math.max(1, wide - 3), BAND - 4); }
    if (wide < 40) continue;
    const text = clipText(ctx, nameOf(view, each), wide - 12);
    if (isStep && text) { ctx.fillStyle = paint.colour; ctx.fillRect(x + 3, y + 4, ctx.measureText(text).width + 5, BAND - 10); }
    ctx.fillStyle = isStep ? "#fff" : t.text;
    ctx.fillText(text, x + 5, y + BAND / 2 - 1);
  }
}

function chosen({selection}, each) {
  const step = selection.get("step") ?? null, layer = selection.get("layer") ?? null;
  if (each.step >= 0) return step !== null ? each.step === step && (!layer || !each.layer || isUnder(each.layer, layer)) : isUnder(each.layer, layer);
  return step === null && isUnder(each.layer, layer);
}

// A bar of a branch's part of the program, by cause.
function bar(view, each) {
  const part = Math.min(1, share(view, each)), causes = each.causes.length ? each.causes : [[each.kind, 1]], all = causes.reduce((sum, [, cycles]) => sum + cycles, 0) || 1;
  return h("div", {class: "wb-branch-share", "aria-hidden": "true"}, ...causes.map(([cause, cycles]) => h("span", {style: {width: `${(100 * part * cycles) / all}%`, background: view.data.kinds[cause].colour}})));
}

function line(view, [row, level], number) {
  const {tree} = view, each = tree.rows[row], open = tree.open.has(row) || view.only?.some((found) => found !== row && tree.ways(found).includes(row));
  const leaf = tree.isLeaf(row), twisty = h("span", {class: "wb-twisty", "aria-hidden": "true", text: leaf ? "" : open ? "▾" : "▸", onclick: (event) => { event.stopPropagation(); view.at = row; toggle(view, row); }});
  const called = each.function && each.function !== each.name ? ` → ${each.function}` : "";
  return h("div", {class: `wb-branch${row === view.at ? " wb-at" : ""}${each.runs ? "" : " wb-never"}`, id: `${view.id}-${row}`, role: "row", "aria-level": level + 1, "aria-rowindex": number + 2, "aria-expanded": leaf ? undefined : String(Boolean(open)), "aria-selected": String(chosen(view, each)),
    style: {top: `${number * ROW}px`}, title: told(view, each).join("\n"), onclick: () => { view.at = row; pick(view, row); }},
  h("div", {class: "wb-branch-name", role: "gridcell", style: {paddingLeft: `${Math.min(level, 24) * INDENT}px`}}, twisty, swatch(view.data.kinds[each.kind]), h("span", {text: shortOf(view, each) + called}), h("span", {class: "wb-kind", text: each.name ? labelOf(view, each) : ""})),
  ...[wholeText(each.runs), wholeText(each.cycles), wholeText(each.cycles * each.runs), percentText(share(view, each))].map((text) => h("div", {class: "wb-num", role: "gridcell", text})), h("div", {role: "gridcell"}, bar(view, each)));
}

// What is said of a branch: its own times, and of a call those of all calls of its function.
export function told({data}, each) {
  const of = (cycles) => percentText(cycles / (data.total_cycles || 1)), [runs, cycles] = data.calls[each.function] ?? [0, 0];
  return [`${data.kinds[each.kind].label} ${each.name}`.trim(),
    each.times > 1 && `${wholeText(each.times)} turns of ${cyclesText(each.cycles / each.times)}`,
    `once: ${cyclesText(each.cycles)}; here ${each.runs === 1 ? "once" : `${wholeText(each.runs)} times`}: ${cyclesText(each.cycles * each.runs)}, ${of(each.cycles * each.runs)} of the program`,
    each.function && `all calls of ${each.function}: ${wholeText(runs)}, ${cyclesText(runs * cycles)}, ${of(runs * cycles)}`,
    each.layer && `layer ${each.layer}${each.direction ? `, ${each.direction}` : ""}`, each.ipu >= 0 && data.ipus > 1 && `IPU ${each.ipu}`, each.batch >= 0 && `micro-batch ${each.batch}`,
    !each.runs && "an arm that is not taken: the dearest counts"].filter(Boolean);
}

function fill(view) {
  const {box, list} = view, first = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE), last = Math.min(view.lines.length, first + Math.ceil(HIGH / ROW) + 2 * SPARE);
  list.style.height = `${view.lines.length * ROW}px`;
  list.replaceChildren(...view.lines.slice(first, last).map((each, i) => line(view, each, first + i)));
  const at = view.lines.findIndex(([row]) => row === view.at);
  if (at >= first && at < last) box.setAttribute("aria-activedescendant", `${view.id}-${view.at}`);
  else box.removeAttribute("aria-activedescendant");
}

function arrange(view) {
  view.lines = view.tree.lines(view.only);
  view.box.setAttribute("aria-rowcount", view.lines.length + 1);
  const cycles = view.only ? view.only.filter((row) => !view.tree.ways(row).some((above) => view.only.includes(above))).reduce((sum, row) => sum + view.tree.rows[row].cycles * view.tree.rows[row].runs, 0) : 0;
  view.count.textContent = view.only ? `${wholeText(view.only.length)} found${view.only.length ? `, ${cyclesText(cycles)}, ${percentText(cycles / (view.data.total_cycles || 1))}` : ""}${view.tree.whole || view.live ? "" : "; of what is stored here"}` : `${wholeText(view.lines.length)} rows`;
  rebase(view);
  fill(view);
  view.canvas?.redraw();
}

// The strip shows what the row where one stands is part of.
function rebase(view) {
  const {tree} = view;
  const around = tree.ways(view.at);
  view.base = tree.has(view.at) ? view.at : around.at(-2) ?? around.at(-1) ?? 0;
}

function reveal(view, row) {
  view.at = row;
  for (const above of view.tree.ways(row)) view.tree.open.add(above);
  arrange(view);
  const number = view.lines.findIndex(([each]) => each === row), {box} = view;
  if (number * ROW < box.scrollTop || (number + 2) * ROW > box.scrollTop + box.clientHeight) { box.scrollTop = Math.max(0, number * ROW - box.clientHeight / 3); fill(view); }
}

function toggle(view, row, open = !view.tree.open.has(row)) {
  const {tree} = view;
  if (tree.isLeaf(row)) return;
  tree.open[open ? "add" : "delete"](row);
  if (open && !tree.has(row)) ask(view, row);
  arrange(view);
}

function ask(view, row) {
  if (view.live) view.model.send({open: row});
  else { view.tree.open.delete(row); view.ui.announce("What is below is not stored in this page: profile.program_tree.widget() in a notebook has it."); view.said.textContent = "What is below is not stored in this page; profile.program_tree.widget() in a notebook has it."; }
}

function pick(view, row) {
  const {selection, tree} = view, each = tree.rows[row];
  const ipu = each.ipu >= 0 ? {ipu: each.ipu} : {}, batch = each.batch >= 0 ? {micro_batch: each.batch} : {micro_batch: null};
  view.said.textContent = told(view, each).slice(1).join(" · ");
  view.ui.announce([nameOf(view, each), ...told(view, each).slice(1)].join(", "));
  view.picked = true;
  select(selection, {step: each.step >= 0 ? each.step : null, layer: each.layer || null, position: null, ...ipu, ...batch});
  view.picked = false;
  reveal(view, row);
}

// What was chosen in another view is found, opened and scrolled to.
function follow(view) {
  if (view.picked) return;
  const step = view.selection.get("step") ?? null, layer = view.selection.get("layer") ?? null, {tree} = view, here = tree.rows[view.at];
  const same = step !== null ? here.step === step && (!layer || here.layer === layer) : layer !== null && isUnder(here.layer, layer);
  if (same || (step === null && layer === null)) return arrange(view);
  const mine = tree.rows.filter((each) => each && (step !== null ? each.step === step : isUnder(each.layer, layer))), best = mine.find((each) => each.layer === layer) ?? mine[0];
  if (best && (step === null || best.layer === (layer ?? best.layer) || tree.whole || !view.live)) { view.only = null; view.search.value = ""; reveal(view, best.row); return undefined; }
  arrange(view);
  if (view.live && step !== null) view.model.send({step, layer: layer ?? "", asked: (view.asked += 1)});
  return undefined;
}

function seek(view) {
  const words = view.search.value.trim();
  view.asked += 1;
  view.only = words ? view.tree.matching(words, (each) => labelOf(view, each)) : null;
  view.box.scrollTop = 0;
  if (words && view.only.length) view.at = view.only[0];
  arrange(view);
  clearTimeout(view.later);
  if (words && view.live && !view.tree.whole) view.later = setTimeout(() => view.model.send({seek: words, asked: view.asked}), 200);
}

function hears(view, message, buffers) {
  if (!message?.tree) return;
  view.tree.take(message.tree, buffers[0]);
  if (view.going && message.opened !== undefined) return dearest(view);
  if (message.matches && message.asked === view.asked) {
    if (view.search.value.trim()) view.only = [...new Set([...view.only ?? [], ...message.matches])].sort((a, b) => a - b);
    else if (message.matches.length) return reveal(view, message.matches[0]);
  }
  return arrange(view);
}

// Down the dearest branch of each, asking for what has not come.
function dearest(view) {
  const {tree} = view;
  let row = 0;
  while (tree.has(row) && tree.rows[row].below.length) row = tree.rows[row].below.reduce((best, each) => (tree.rows[each].cycles * tree.rows[each].runs > tree.rows[best].cycles * tree.rows[best].runs ? each : best));
  view.only = null;
  view.search.value = "";
  view.going = view.live && !tree.isLeaf(row) && !tree.has(row);
  if (view.going) ask(view, row);
  else pick(view, row);
}

function key(view, event) {
  const {tree, lines} = view, number = Math.max(0, lines.findIndex(([row]) => row === view.at)), here = lines[number]?.[0];
  if (here === undefined || event.ctrlKey || event.metaKey) return;
  const to = (where) => { const next = lines[Math.max(0, Math.min(lines.length - 1, where))][0]; reveal(view, next); view.ui.announce(nameOf(view, tree.rows[next])); };
  const own = {ArrowDown: () => to(number + 1), ArrowUp: () => to(number - 1), PageDown: () => to(number + 15), PageUp: () => to(number - 15), Home: () => to(0), End: () => to(lines.length - 1),
    ArrowRight: () => (tree.open.has(here) && tree.has(here) ? tree.rows[here].below.length && to(number + 1) : toggle(view, here, true)),
    ArrowLeft: () => (tree.open.has(here) && !tree.isLeaf(here) ? toggle(view, here, false) : here && reveal(view, tree.rows[here].parent)),
    Enter: () => pick(view, here), " ": () => toggle(view, here), "/": () => view.search.focus(), "*": () => { for (const each of tree.rows[tree.rows[here].parent]?.below ?? [here]) if (!tree.isLeaf(each) && tree.has(each)) tree.open.add(each); arrange(view); }}[event.key];
  if (!own) return;
  own();
  event.preventDefault();
}

function pointing(view) {
  const {ui} = view, say = tip(ui.plot), under = (event) => {
    const [px, py] = place(event, ui.canvas), part = px / ui.canvas.clientWidth, depth = Math.floor(py / BAND);
    return [px, py, view.boxes?.findLast((box) => box.depth === depth && box.from <= part && part < box.to)];
  };
  ui.canvas.addEventListener("pointermove", (event) => { const [px, py, box] = under(event); if (box) say(px, py, told(view, view.tree.rows[box.row])); else say(); });
  ui.canvas.addEventListener("pointerleave", () => say());
  ui.canvas.addEventListener("click", (event) => {
    const box = under(event)[2];
    ui.canvas.focus();
    if (!box) return;
    const out = box.depth === 0 && box.row === view.at ? Math.max(0, view.tree.rows[box.row].parent) : box.row; // the whole strip leads one level up
    if (!view.tree.isLeaf(out) && !view.tree.has(out)) ask(view, out);
    pick(view, out);
  });
  ui.canvas.addEventListener("keydown", (event) => key(view, event));
}

function load(view) {
  const {model, ui} = view;
  view.data = model.get("data");
  view.tree = new Tree();
  view.tree.take(view.data, model.get("buffer"));
  Object.assign(view, {at: 0, base: 0, only: null, asked: 0, lines: []});
  ui.say(view.data.sentence);
  const used = new Set(view.tree.rows.filter(Boolean).map(({kind}) => kind));
  ui.legend.replaceChildren(...view.data.kinds.filter((_, kind) => used.has(kind)).map((paint) => h("span", {class: "wb-key"}, swatch(paint), h("span", {text: paint.label}))));
  const calls = Object.entries(view.data.calls), all = ([, [runs, cycles]]) => runs * cycles;
  ui.setTable(() => (calls.length ? grid({label: "Functions and all their calls", rows: calls, sort: {column: 3, down: true}, columns: [{label: "function", wide: "40%", text: ([name]) => name}, {label: "calls", number: true, value: ([, [runs]]) => runs, text: ([, [runs]]) => wholeText(runs)},
    {label: "cycles of one", number: true, value: ([, [, cycles]]) => cycles, text: ([, [, cycles]]) => wholeText(cycles)}, {label: "cycles of all", number: true, value: all, text: (each) => wholeText(all(each))}, {label: "share", number: true, value: all, text: (each) => percentText(all(each) / (view.data.total_cycles || 1))}],
    pick: ([name]) => { view.search.value = name; seek(view); }}).root : h("p", {text: "The tree above is the data table: the program calls no function."})));
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), live: model.get("live"), id: `wb-tree-${Math.random().toString(36).slice(2)}`};
  const ui = (view.ui = frame(el, {title: "Program tree", sentence: model.get("data").sentence, height: BAND * BANDS}));
  view.search = h("input", {type: "search", class: "wb-search", placeholder: "Search", "aria-label": "Search in the program tree", oninput: () => seek(view)});
  view.count = h("span", {class: "wb-count", role: "status"});
  view.list = h("div", {role: "rowgroup", style: {position: "relative"}});
  view.box = h("div", {class: "wb-tree-rows", tabindex: 0, role: "treegrid", "aria-label": "Program tree: arrows walk and unfold, Enter chooses", onscroll: () => fill(view), onkeydown: (event) => { if (event.target === view.box) key(view, event); }}, view.list);
  view.said = h("p", {class: "wb-plan"});
  const heads = ["program", "runs", "cycles, once", "cycles, all", "share", ""].map((text, i) => h("div", {class: i && i < 5 ? "wb-num" : "", text}));
  const tree = h("div", {class: "wb-tree"}, h("div", {class: "wb-tree-head", "aria-hidden": "true"}, ...heads), view.box);
  ui.tools.replaceChildren(view.search, button("Dearest", () => dearest(view), {title: "Down the dearest branch of each"}), button("Fold all", () => { view.tree.open = new Set([0]); view.only = null; view.search.value = ""; reveal(view, 0); }), view.count);
  for (const part of [tree, view.said]) ui.root.insertBefore(part, ui.root.querySelector("details"));
  load(view);
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  pointing(view);
  arrange(view);
  const arrived = (message, buffers) => hears(view, message, buffers);
  model.on?.("msg:custom", arrived);
  const offs = [watch(model, ["data"], () => { load(view); arrange(view); }), watch(view.selection, ["step", "layer"], () => follow(view))];
  follow(view);
  return () => { clearTimeout(view.later); model.off?.("msg:custom", arrived); offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
