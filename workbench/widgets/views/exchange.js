import {tree} from "../kit/around.js";
import {floor, legend, mark, numbers, paint, tileByKey} from "../kit/floor.js";
import {grid} from "../kit/grid.js";
import {button, bytesText, choice, clipText, cyclesText, font, frame, h, percentText, place, scale, select, selectionOf, surface, table, tip, unpack, watch, wholeText, thingsText} from "../kit/kernel.js";

const LEFT = 34, TOP = 40, LEGEND = 62, MOST_DRAWN = 400;
const SHOWN = {partners: "between it and this tile", received: "bytes each tile receives", sent: "bytes each tile sends", pieces: "pieces at each tile", cycles: "cycles of each tile"};
const PARTS = {receiving: "receiving", sending: "sending", control: "control of pieces", staging: "staging in buffers"};

// What has come of the steps: {facts, tiles, parts, arrows of tiles}; arrows of a tile are null until they have come.
export class Parts {
  constructor(most = 12) { this.most = most; this.steps = new Map(); }

  take(facts, columns) {
    const pick = (start) => Object.fromEntries(Object.entries(columns).filter(([name]) => name.startsWith(start)).map(([name, values]) => [name.slice(start.length), values]));
    const {from, to, bytes} = pick("arrow_"), old = this.steps.get(facts.step), arrows = old?.arrows ?? new Map(), explained = {...old?.explained, ...facts.explained};
    for (const tile of facts.known) {
      const ends = {in: [], out: []};
      for (let i = 0; i < from.length; i++) {
        if (to[i] === tile) ends.in.push({tile: from[i], bytes: bytes[i]});
        if (from[i] === tile) ends.out.push({tile: to[i], bytes: bytes[i]});
      }
      for (const list of Object.values(ends)) list.sort((a, b) => b.bytes - a.bytes || a.tile - b.tile);
      arrows.set(tile, ends);
    }
    this.steps.delete(facts.step);
    this.steps.set(facts.step, {facts, tiles: pick("tile_"), parts: pick("part_"), arrows, explained});
    while (this.steps.size > this.most) this.steps.delete(this.steps.keys().next().value);
  }

  of(step, tile) {
    const found = this.steps.get(step);
    return found ? {...found, ends: found.facts.untold ? {in: [], out: []} : found.arrows.get(tile) ?? null} : null;
  }
}

export const summed = (list) => list.reduce((all, {bytes}) => all + bytes, 0);

// Bytes between a tile and every other, for the floor plan.
export function between(ends, tiles) {
  const found = new Float64Array(tiles);
  for (const {tile, bytes} of [...ends.in, ...ends.out]) found[tile] += bytes;
  return found;
}

// Cycles of one tile by part, which decides, and both ways; null where they are not recorded.
export function costOf(parts, tile) {
  if (!parts.direct) return null;
  const at = Object.fromEntries(Object.entries(parts).map(([name, values]) => [name, values[tile]])), staged = at.staged < at.direct;
  const largest = ["receiving", "sending", "control"].reduce((best, name) => (at[name] > at[best] ? name : best));
  return {...at, cycles: Math.min(at.direct, at.staged), decides: staged ? "staging" : largest, staged};
}

// How many arrows of how many are drawn, "" where all are.
export function cutText(ends, most = MOST_DRAWN) {
  const counts = [[ends.in.length, "that come in"], [ends.out.length, "that go out"]];
  if (counts.every(([count]) => count <= most)) return "";
  const told = counts.filter(([count]) => count).map(([count, words]) => `${wholeText(Math.min(count, most))} of ${wholeText(count)} ${words}`);
  return `Arrows: ${told.join(" and ")} are drawn, those with most bytes; the list below has all.`;
}

const rowOf = (view, step) => view.columns.step.indexOf(step);

// Lines of arrows: {x0, y0, x1, y1, wide}, the largest first, from edge to edge of their cells.
export function lines(ends, way, plan, tile, most) {
  const centre = (at) => { const {x, y, w, h: tall} = plan.at(at); return [x + w / 2, y + tall / 2]; };
  return ends.slice(0, MOST_DRAWN).map(({tile: other, bytes}) => {
    const [from, to] = way === "in" ? [other, tile] : [tile, other], [x0, y0] = centre(from), [x1, y1] = centre(to);
    return {x0, y0, x1, y1, wide: 0.7 + 2.6 * Math.sqrt(bytes / most)};
  });
}

function arrow(ctx, {x0, y0, x1, y1, wide}, colour, t, dashed) {
  const long = Math.hypot(x1 - x0, y1 - y0) || 1, head = Math.min(long / 2, 5 + 1.6 * wide), ux = (x1 - x0) / long, uy = (y1 - y0) / long;
  const bx = x1 - ux * head, by = y1 - uy * head;
  ctx.setLineDash(dashed ? [6, 3] : []);
  for (const [stroke, thick] of [[t.paper, wide + 1.6], [colour, wide]]) {
    ctx.strokeStyle = stroke;
    ctx.lineWidth = thick;
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.lineTo(bx, by);
    ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(bx - uy * head * 0.45, by + ux * head * 0.45);
  ctx.lineTo(bx + uy * head * 0.45, by - ux * head * 0.45);
  ctx.fill();
}

function draw(view, ctx, width, height, t) {
  const {data, now, tile, found} = view, plan = (view.floor = floor(data.plan, data.tiles, LEFT, TOP, width - LEFT - 12, height - TOP - LEGEND));
  font(ctx, t, 12, 600);
  ctx.fillStyle = t.text;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  if (now < 0 || !found) { ctx.fillText(now < 0 ? "No step of this program moves bytes between tiles." : view.live ? "Waiting for this step…" : "This page holds another step: open it with a kernel to choose.", LEFT, TOP + 10); return; }
  const partners = view.shown === "partners" && found.ends && !found.facts.untold;
  const values = partners ? between(found.ends, data.tiles) : found.tiles[view.shown === "partners" ? "received" : view.shown];
  const high = values.reduce((a, b) => Math.max(a, b), 0), isBytes = ["partners", "received", "sent"].includes(view.shown);
  const text = view.shown === "cycles" ? cyclesText : isBytes ? bytesText : wholeText;
  ctx.fillText(clipText(ctx, `Tile ${wholeText(tile)} of IPU ${data.ipu}: what comes in, and what goes out`, width - LEFT), LEFT, TOP - 18);
  paint(ctx, plan, values, data.ramp, 0, Math.max(1, high));
  numbers(ctx, t, plan);
  if (found.ends) {
    const most = [...found.ends.in, ...found.ends.out].reduce((a, {bytes}) => Math.max(a, bytes), 1);
    for (const way of ["out", "in"]) if (!view.hidden.has(way)) for (const line of lines(found.ends[way], way, plan, tile, most).reverse()) arrow(ctx, line, data.ways[way].colour, t, way === "out");
  }
  mark(ctx, t, plan, tile);
  const label = partners ? `bytes ${SHOWN.partners}` : SHOWN[view.shown === "partners" ? "received" : view.shown];
  legend(data.ramp, ctx, t, {low: 0, high, text, label, binary: isBytes, x: LEFT, y: plan.bottom + 10, w: Math.min(300, width - LEFT - 24)});
}

// Every step that moves bytes, in the order of the program: the cycles it takes in all, and which is chosen.
function strip(view, ctx, width, height, t) {
  const {columns, data, now} = view, count = columns.step.length, x = scale(0, Math.max(1, count), 0, width);
  // A copy from the host that takes longer than any exchange is cut off, so that the exchanges can be told apart.
  const between = [...columns.total_cycles].filter((_, at) => columns.senders[at] && columns.receivers[at]), most = (between.length ? between : [...columns.total_cycles]).reduce((a, b) => Math.max(a, b), 1), y = scale(0, most, height - 1, 3);
  for (let at = 0; at < count; at++) {
    ctx.fillStyle = data.causes[columns.cause[at]].colour;
    const tall = Math.max(1, Math.min(height - 3, height - y(columns.total_cycles[at])));
    ctx.fillRect(x(at), height - tall, Math.max(1, x(1) - (x(1) > 4 ? 1 : 0)), tall);
  }
  if (now < 0) return;
  ctx.strokeStyle = t.text;
  ctx.lineWidth = 2;
  ctx.strokeRect(x(now) - 1, 1, Math.max(3, x(1) + 1), height - 2);
}

function bars(view, cost) {
  const {found, tile} = view, most = Math.max(1, ...Object.keys(PARTS).map((name) => cost[name]));
  const staged = Math.max(cost.sending, cost.receiving) + cost.staging;
  return [table([
    {label: "part of this tile's cycles", text: (name) => (name === cost.decides ? `${PARTS[name]} ← decides` : PARTS[name])},
    {label: "cycles", number: true, text: (name) => wholeText(cost[name]), bar: (name) => cost[name] / most},
  ], Object.keys(PARTS), {chosen: (name) => name === cost.decides}),
  h("p", {text: `Sent as it lies: the largest of the first three, ${cyclesText(cost.direct)}. Staged: the larger of the first two and the copies, ${cyclesText(staged)}. The compiler takes the cheaper.`}),
  found.explained?.[tile] && h("details", {class: "wb-data"}, h("summary", {text: "Where these cycles come from"}), tree(found.explained[tile]))].filter(Boolean);
}

function tell(view) {
  const {data, columns, ui, now, tile, found} = view;
  if (now < 0) { ui.panel.replaceChildren(h("h4", {text: "Nothing is exchanged"}), h("p", {text: "No step of this program moves bytes between tiles."})); return; }
  const name = data.names[columns.name[now]], layer = data.layers[columns.layer[now]];
  const heading = h("h4", {text: name}), facts = `Step ${wholeText(columns.step[now])}${layer ? ` of ${layer}` : ""} on IPU ${data.ipu}, ${data.causes[columns.cause[now]].label}: ${cyclesText(columns.cycles[now])}${columns.times[now] === 1 ? "" : `, ${wholeText(columns.times[now])} times`}; ${thingsText(columns.senders[now], "tile")} send${columns.senders[now] === 1 ? "s" : ""} ${bytesText(columns.bytes_sent[now])}, ${thingsText(columns.receivers[now], "tile")} receive${columns.receivers[now] === 1 ? "s" : ""} ${bytesText(columns.bytes_received[now])}.`;
  view.step.value = String(columns.step[now]);
  if (!found) { ui.panel.replaceChildren(heading, h("p", {text: facts})); return; }
  const {tiles, parts, ends} = found, {untold, busiest} = found.facts, cost = costOf(parts, tile), mine = cost ? cost.cycles : tiles.cycles[tile];
  const received = tiles.received[tile], sent = tiles.sent[tile], arriving = ends ? summed(ends.out) : 0;
  const lines = [
    `Tile ${wholeText(tile)} of IPU ${data.ipu} receives ${bytesText(received)}${ends && !untold ? ` from ${thingsText(ends.in.length, "tile")}` : ""}${tiles.shared[tile] ? `, ${bytesText(tiles.shared[tile])} of it alike with its neighbour over the bus they share` : ""}.`,
    `It sends ${bytesText(sent)}${ends && !untold ? ` to ${thingsText(ends.out.length, "tile")}${arriving > sent ? `, once for several: ${bytesText(arriving)} arrive` : ""}` : ""}, in ${thingsText(tiles.pieces[tile], "piece")} in and out.`,
    `It takes ${cyclesText(mine)} of the step's ${wholeText(columns.cycles[now])}${tile === busiest ? ": the step waits for it" : `; the step waits for tile ${wholeText(busiest)}`}.`,
  ];
  if (ends && cutText(ends)) lines.push(cutText(ends));
  const partners = ends ? [...ends.in.map((each) => ({...each, way: "in"})), ...ends.out.map((each) => ({...each, way: "out"}))].sort((a, b) => b.bytes - a.bytes) : [];
  const all = partners.length ? partners[0].bytes : 1;
  ui.panel.replaceChildren(heading, h("p", {text: facts}), ...lines.map((text) => h("p", {text})), untold && h("p", {text: `Which tiles: ${untold}.`}), ...(cost ? bars(view, cost) : []),
    partners.length ? h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": "The other ends of its arrows"}, table([
      {label: "way", text: ({way}) => (way === "in" ? "← from" : "→ to")},
      {label: "tile", number: true, text: ({tile: other}) => wholeText(other)},
      {label: "bytes", number: true, text: ({bytes}) => wholeText(bytes), bar: ({bytes}) => bytes / all},
    ], partners, {most: 3000, pick: ({tile: other}) => go(view, columns.step[now], other)})) : "",
    h("p", {text: "The arrows choose a tile, b the busiest; , and . the step before and after; [ and ] the exchange that takes more and less."}));
  const sentence = `Modelled exchange ${name} (step ${wholeText(columns.step[now])}, ${cyclesText(columns.cycles[now])}): ${lines[0]} ${lines[1]}`;
  ui.say(sentence);
  ui.announce(`${name}, tile ${wholeText(tile)} of IPU ${data.ipu}: ${lines.join(" ")}`);
}

function show(view) {
  view.found = view.now < 0 ? null : view.parts.of(view.columns.step[view.now], view.tile);
  tell(view);
  view.canvas.redraw();
  view.line.redraw();
}

function wanted(view) {
  if (view.now < 0 || !view.live) return;
  const step = view.columns.step[view.now], found = view.parts.of(step, view.tile), key = `${step}:${view.tile}`;
  if ((found?.ends && !(found.parts.direct && !found.explained[view.tile])) || view.asked.has(key)) return;
  view.asked.add(key);
  view.model.send({exchange: {step, tile: view.tile}});
}

function go(view, step, tile) {
  const now = rowOf(view, step), other = now !== view.now;
  if (now < 0 || (!view.live && !view.parts.of(step, tile))) return view.ui.announce("This page holds one step: open it with a kernel to choose another.");
  Object.assign(view, {now, tile: Math.max(0, Math.min(view.data.tiles - 1, tile))});
  select(view.selection, {ipu: view.data.ipu, tile: view.tile, ...(other ? {step, position: null} : {step})});
  wanted(view);
  show(view);
  return undefined;
}

const busiestOf = (view, now) => { const found = view.parts.of(view.columns.step[now], 0); return found ? found.facts.busiest : view.tile; };

// The place of the step that comes next, in the program (by -1 or 1) or by the cycles it takes in all.
export function nextPlace(columns, now, by, ranked) {
  const count = columns.step.length, order = [...Array(count).keys()];
  if (ranked) order.sort((a, b) => columns.total_cycles[b] - columns.total_cycles[a] || a - b);
  return order[Math.max(0, Math.min(count - 1, order.indexOf(now) + by))];
}

function controls(view) {
  const {columns, data, ui} = view, order = [...columns.step.keys()].sort((a, b) => columns.total_cycles[b] - columns.total_cycles[a]);
  const entries = order.slice(0, 100).map((at) => [String(columns.step[at]), `${columns.step[at]}: ${data.names[columns.name[at]]}`]);
  const picked = choice(entries.length < order.length ? `step (the ${entries.length} of ${wholeText(order.length)} with most cycles)` : "step", entries, "", (step) => go(view, Number(step), view.tile));
  view.step = picked.querySelector("select");
  view.step.style.maxWidth = "26em";
  const move = (by, ranked) => go(view, columns.step[nextPlace(columns, view.now, by, ranked)], view.tile);
  view.move = move;
  // A page without a kernel holds the exchanges of one IPU.
  const ipus = view.live ? data.movers : [data.ipu], ipu = data.movers.length > 1 && choice("IPU", ipus.map((each) => [String(each), `IPU ${each}`]), String(data.ipu), (chosen) => select(view.selection, {ipu: Number(chosen), tile: null}));
  ui.tools.replaceChildren(ipu || "");
  ui.controls.replaceChildren(picked, button("‹", () => move(-1), {title: "The exchange before. Key: ,", "aria-label": "The exchange before"}), button("›", () => move(1), {title: "The exchange after. Key: .", "aria-label": "The exchange after"}),
    button("Busiest tile", () => go(view, columns.step[view.now], busiestOf(view, view.now)), {title: "The tile the step waits for. Key: b"}),
    choice("colour", Object.entries({partners: "bytes from or to the tile", received: "bytes received", sent: "bytes sent", pieces: "pieces", cycles: "cycles"}), view.shown, (shown) => { view.shown = shown; view.canvas.redraw(); }));
  ui.legend.replaceChildren(...Object.entries(data.ways).map(([way, {label, colour}]) => {
    const line = h("span", {class: `wb-way${way === "out" ? " wb-dashed" : ""}`, style: {color: colour}, "aria-hidden": "true"});
    const key = h("button", {type: "button", class: "wb-key", "aria-pressed": String(!view.hidden.has(way)), onclick: () => { if (!view.hidden.delete(way)) view.hidden.add(way); key.setAttribute("aria-pressed", String(!view.hidden.has(way))); view.canvas.redraw(); }}, line, h("span", {text: label}));
    return key;
  }));
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    if (view.now < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = view.columns.step[view.now], own = {",": () => view.move(-1), ".": () => view.move(1), "[": () => view.move(-1, true), "]": () => view.move(1, true), b: () => go(view, step, busiestOf(view, view.now))};
    const goal = tileByKey(view.data.plan, view.data.tiles, view.tile, event.key);
    if (!own[event.key] && goal === -2) return;
    event.preventDefault();
    if (own[event.key]) own[event.key]();
    else if (goal >= 0) go(view, step, goal);
  });
}

function pointing(view) {
  const {ui} = view, say = tip(ui.plot), under = (event) => { const [px, py] = place(event, ui.canvas); return {tile: view.floor?.under(px, py) ?? -1, px, py}; };
  ui.canvas.addEventListener("pointermove", (event) => {
    const {tile, px, py} = under(event), {found} = view;
    if (tile < 0 || !found) return say();
    const mine = (way) => found.ends?.[way].find((each) => each.tile === tile)?.bytes;
    return say(px, py, [`Tile ${wholeText(tile)}`, mine("in") && `sends ${wholeText(mine("in"))} bytes to tile ${wholeText(view.tile)}`, mine("out") && `receives ${wholeText(mine("out"))} bytes from tile ${wholeText(view.tile)}`,
      `in all: ${bytesText(found.tiles.received[tile])} in, ${bytesText(found.tiles.sent[tile])} out, ${thingsText(found.tiles.pieces[tile], "piece")}`, `${cyclesText(found.tiles.cycles[tile])}`].filter(Boolean));
  });
  ui.canvas.addEventListener("pointerleave", () => say());
  ui.canvas.addEventListener("click", (event) => { const {tile} = under(event); ui.canvas.focus(); if (tile >= 0 && view.now >= 0) go(view, view.columns.step[view.now], tile); });
  ui.strip.addEventListener("click", (event) => { const [px] = place(event, ui.strip), count = view.columns.step.length; if (count) go(view, view.columns.step[Math.min(count - 1, Math.floor((px / ui.strip.clientWidth) * count))], view.tile); });
}

function load(view) {
  const {model, ui} = view, data = (view.data = model.get("data")), columns = (view.columns = unpack(data.layout, model.get("buffer")));
  Object.assign(view, {parts: new Parts(), asked: new Set()});
  view.parts.take(data.part, columns);
  Object.assign(view, {now: rowOf(view, data.part.step), tile: data.part.tile});
  ui.say(data.sentence);
  const number = (name, label) => ({label, number: true, value: (at) => columns[name][at], text: (at) => wholeText(columns[name][at])});
  ui.setTable(() => grid({label: "Steps that move bytes", rows: [...columns.step.keys()], pick: (at) => go(view, columns.step[at], view.tile), chosen: (at) => at === view.now, sort: {column: 3, down: true},
    columns: [number("step", "step"), {label: "name", wide: "32%", text: (at) => data.names[columns.name[at]]}, number("cycles", "cycles"), number("total_cycles", "in all"), number("bytes_sent", "bytes sent"), number("bytes_received", "bytes received"), number("senders", "senders"), number("receivers", "receivers"), number("pieces", "most pieces")]}).root);
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), live: model.get("live"), shown: "partners", hidden: new Set()};
  const ui = (view.ui = frame(el, {title: "Exchange", sentence: model.get("data").sentence, side: true, height: 430}));
  ui.strip = h("canvas", {class: "wb-exchange-strip", "aria-hidden": "true"});
  ui.controls = h("div", {class: "wb-exchange-tools"});
  ui.plot.append(ui.controls, h("p", {class: "wb-exchange-said", text: "Every step that moves bytes, in the order of the program, by the cycles it takes in all"}), ui.strip);
  load(view);
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.line = surface(ui.strip, (...args) => strip(view, ...args));
  controls(view);
  keys(view);
  pointing(view);
  show(view);
  wanted(view);
  const arrived = (message, buffers) => {
    if (!message?.part) return;
    view.parts.take(message.part, unpack(message.part.layout, buffers[0]));
    view.asked.delete(`${message.part.step}:${message.part.tile}`);
    show(view);
  };
  model.on?.("msg:custom", arrived);
  const follow = () => {
    const step = view.selection.get("step"), tile = view.selection.get("tile"), mine = (view.selection.get("ipu") ?? view.data.ipu) === view.data.ipu;
    const now = mine ? rowOf(view, step ?? -1) : -1, other = {now: now < 0 ? view.now : now, tile: tile === null || tile === undefined || tile >= view.data.tiles ? view.tile : tile};
    if (other.now === view.now && other.tile === view.tile) return;
    if (!view.live && !view.parts.of(view.columns.step[other.now], other.tile)) return;
    Object.assign(view, other);
    wanted(view);
    show(view);
  };
  const offs = [watch(model, ["data"], () => { load(view); controls(view); show(view); wanted(view); }), watch(view.selection, ["step", "tile"], follow)];
  return () => { model.off?.("msg:custom", arrived); offs.forEach((off) => off()); view.canvas.dispose(); view.line.dispose(); };
}

export default {render};
