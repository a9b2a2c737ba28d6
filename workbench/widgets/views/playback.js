import {floor, legend, mark, numbers, paint, tileByKey} from "../kit/floor.js";
import {Frames, doing} from "../kit/frames.js";
import {grid} from "../kit/grid.js";
import {button, bytesText, choice, cyclesText, font, frame, h, percentText, place, scale, select, selectionOf, surface, swatch, tip, unpack, watch, wholeText, thingsText} from "../kit/kernel.js";

const LEFT = 34, TOP = 34, LEGEND = 58, RATES = {1: "1 step/s", 4: "4 steps/s", 15: "15 steps/s", 60: "60 steps/s"};

const causeOf = ({data, columns}, at) => data.cause_names[columns.cause[at]];
const nameOf = ({data, columns}, at) => data.names[columns.name[at]];

function draw(view, ctx, width, height, t) {
  const {data, columns, parts} = view, half = height / 2;
  view.plans = [0, half].map((top) => floor(data.plan, data.tiles, LEFT, top + TOP, width - LEFT - 12, half - TOP - LEGEND));
  if (!parts) {
    font(ctx, t, 12);
    ctx.fillStyle = t.muted;
    ctx.fillText(columns.step.length ? "Waiting for this frame…" : "Nothing runs there", LEFT, TOP + 20);
    return;
  }
  const what = doing(causeOf(view, view.now), parts, view.way), most = what.values.reduce((a, b) => Math.max(a, b), 0);
  const faces = [{values: parts.live, text: bytesText, binary: true, label: `bytes live on each tile; at most ${bytesText(view.fullest)} in this program`, high: view.fullest}, {...what, high: most}];
  faces.forEach(({values, text, binary, label, high}, number) => {
    const here = view.plans[number];
    font(ctx, t, 12, 600);
    ctx.fillStyle = t.text;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    ctx.fillText(number ? "What each tile does" : "What lies on each tile", LEFT, here.y0 - 18);
    paint(ctx, here, values, data.ramp, 0, high);
    numbers(ctx, t, here);
    const tile = tileOf(view);
    if (tile >= 0) mark(ctx, t, here, tile);
    legend(data.ramp, ctx, t, {low: 0, high, text, label, binary, x: LEFT, y: here.bottom + 8, w: Math.min(300, width - LEFT - 24)});
  });
}

const tileOf = ({selection, data}) => { const tile = selection.get("tile"); return tile === null || tile === undefined || tile >= data.tiles ? -1 : tile; };

// Bytes over the program and the cause of each step under them: the same in every frame, so that it is drawn once.
function film(view, width, height, t) {
  const {columns, data} = view, ratio = window.devicePixelRatio || 1, key = [width, height, ratio, t.accent].join();
  if (view.film?.key === key && view.film.columns === columns) return view.film.canvas;
  const canvas = h("canvas", {width: Math.round(width * ratio), height: Math.round(height * ratio)}), ctx = canvas.getContext("2d");
  view.film = {key, columns, canvas};
  ctx.scale(ratio, ratio);
  const count = columns.step.length, x = scale(0, Math.max(1, count), 0, width), band = 8;
  const most = columns.live_bytes.reduce((a, b) => Math.max(a, b), 1), y = scale(0, most, height - band - 2, 4);
  for (let pixel = 0; pixel < width; pixel++) {
    const first = Math.min(count - 1, Math.floor(x.invert(pixel))), last = Math.max(first + 1, Math.min(count, Math.floor(x.invert(pixel + 1))));
    let high = 0, longest = first;
    for (let at = first; at < last; at++) { high = Math.max(high, columns.live_bytes[at]); if (columns.cycles[at] > columns.cycles[longest]) longest = at; }
    ctx.fillStyle = t.accent;
    ctx.globalAlpha = 0.45;
    ctx.fillRect(pixel, y(high), 1, height - band - 2 - y(high));
    ctx.globalAlpha = 1;
    if (count) { ctx.fillStyle = data.causes[columns.cause[longest]].colour; ctx.fillRect(pixel, height - band, 1, band); }
  }
  return canvas;
}

// The program, and where it stands.
function strip(view, ctx, width, height, t) {
  ctx.drawImage(film(view, width, height, t), 0, 0, width, height);
  ctx.fillStyle = t.text;
  ctx.fillRect(Math.round(scale(0, Math.max(1, view.columns.step.length), 0, width)(view.now + 0.5)) - 1, 0, 2, height);
}

function tell(view) {
  const {data, columns, ui, now, parts} = view;
  if (!columns.step.length) return;
  const cause = causeOf(view, now), tile = tileOf(view), rows = [
    ["step", `${wholeText(columns.step[now])}, at place ${wholeText(now)} of ${wholeText(columns.step.length)}`],
    ["layer", data.layers[columns.layer[now]] || "none"],
    ["kind", data.causes[columns.cause[now]].label],
    ["takes", cyclesText(columns.cycles[now])],
    ["tiles that compute", `${wholeText(columns.computing_tiles[now])} of ${wholeText(data.tiles)}, ${percentText(columns.computing_tiles[now] / data.tiles)}`],
    ["bytes sent", wholeText(columns.sent_bytes[now])],
    ["bytes received", wholeText(columns.received_bytes[now])],
    ["live on all tiles", bytesText(columns.live_bytes[now])],
    ["fullest tile", `${wholeText(columns.fullest_tile[now])}: ${bytesText(columns.fullest_tile_bytes[now])} of ${bytesText(data.capacity_bytes)}`],
    ...(tile >= 0 && parts ? [[`tile ${wholeText(tile)}`, `${bytesText(parts.live[tile])} live`], ["it computes", cyclesText(parts.compute[tile])], ["it sends", `${wholeText(parts.sent[tile])} bytes`], ["it receives", `${wholeText(parts.received[tile])} bytes`]] : []),
  ];
  const does = {compute: `${thingsText(columns.computing_tiles[now], "tile")} compute${columns.computing_tiles[now] === 1 ? "s" : ""}`, exchange: `${bytesText(columns.sent_bytes[now])} are sent and ${bytesText(columns.received_bytes[now])} received`}[cause] ?? data.causes[columns.cause[now]].label;
  ui.say(`Modelled playback of IPU ${data.ipu}, place ${wholeText(now)} of ${wholeText(columns.step.length)}: ${nameOf(view, now)}, ${does}, ${cyclesText(columns.cycles[now])}; ${bytesText(columns.live_bytes[now])} live`);
  ui.panel.replaceChildren(h("h4", {text: nameOf(view, now)}), h("table", {class: "wb-table"}, h("tbody", {}, ...rows.map(([what, text]) => h("tr", {}, h("th", {scope: "row", text: what}), h("td", {class: "wb-words", text}))))),
    h("p", {text: "Space plays and pauses; , and . step back and on; the arrows choose a tile."}));
  view.range.value = String(now);
  view.range.setAttribute("aria-valuetext", `place ${wholeText(now)}: ${nameOf(view, now)}, ${data.causes[columns.cause[now]].label}`);
  view.count.textContent = `place ${wholeText(now)} of ${wholeText(columns.step.length)}`;
}

function goTo(view, to, by = 0) {
  const {columns, model, selection, data} = view, count = columns.step.length;
  if (!count) return;
  let next = Math.max(0, Math.min(count - 1, to));
  if (!view.live) next = view.frames.near(next, by);
  const parts = view.frames.at(next);
  if (!parts && view.live) ask(view, next);
  Object.assign(view, {now: next, parts});
  if (view.live) { const ahead = Math.min(count - 1, next + data.block / 2); if (!view.frames.has(ahead)) ask(view, ahead); }
  selection.set({position: next, step: columns.step[next], ipu: data.ipu});
  clearTimeout(view.saving);
  view.saving = setTimeout(() => selection.save_changes(), view.playing ? 400 : 0);
  follow(view);
}

function ask(view, at) {
  const number = Math.floor(at / view.data.block);
  if (view.asked.has(number)) return;
  view.asked.add(number);
  view.model.send({block: number, ipu: view.data.ipu});
}

const stateOf = (view) => [view.now, view.parts, tileOf(view)];

function show(view) {
  view.shown = stateOf(view);
  tell(view);
  view.canvas.redraw();
  view.line.redraw();
}

// One step changes several fields of the selection, each of which is heard: it is shown once.
function follow(view) {
  if (!view.shown || stateOf(view).some((each, i) => each !== view.shown[i])) show(view);
}

function play(view, on) {
  clearInterval(view.playing);
  view.playing = null;
  view.toggle.textContent = on ? "⏸ Pause" : "▶ Play";
  view.toggle.setAttribute("aria-pressed", String(on));
  if (!on) return;
  if (view.now >= view.columns.step.length - 1) goTo(view, 0);
  view.playing = setInterval(() => {
    if (!view.parts && view.live) return; // it has not come yet
    if (view.now >= view.columns.step.length - 1) return play(view, false);
    goTo(view, view.now + 1, 1);
  }, 1000 / view.rate);
}

const stepOf = (view) => (by) => { play(view, false); goTo(view, view.now + by, by); };

function controls(view) {
  const stepBy = stepOf(view);
  view.toggle = button("▶ Play", () => play(view, !view.playing), {"aria-pressed": "false"});
  view.range = h("input", {type: "range", min: 0, max: Math.max(0, view.columns.step.length - 1), step: 1, "aria-label": "Place in the program", oninput: () => { play(view, false); goTo(view, Number(view.range.value)); }});
  view.count = h("output", {});
  view.ui.controls.replaceChildren(view.toggle, button("|◀", () => stepBy(-Infinity), {"aria-label": "First step"}), button("◀", () => stepBy(-1), {"aria-label": "Step back"}), button("▶", () => stepBy(1), {"aria-label": "Step on"}), view.range, view.count,
    choice("speed", Object.entries(RATES), String(view.rate), (rate) => { view.rate = Number(rate); if (view.playing) play(view, true); }),
    choice("exchange", [["received", "bytes received"], ["sent", "bytes sent"]], view.way, (way) => { view.way = way; show(view); }));
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const own = {" ": () => play(view, !view.playing), ",": () => stepOf(view)(-1), ".": () => stepOf(view)(1)};
    const goal = tileByKey(view.data.plan, view.data.tiles, Math.max(0, tileOf(view)), event.key);
    if (!own[event.key] && goal === -2) return;
    event.preventDefault();
    if (own[event.key]) own[event.key]();
    else if (goal >= 0) select(view.selection, {tile: goal, ipu: view.data.ipu});
  });
}

function pointing(view) {
  const {ui} = view, say = tip(ui.plot), tileUnder = (event) => {
    const [px, py] = place(event, ui.canvas), number = view.plans?.findIndex((plan) => py >= plan.y0 && py <= plan.bottom) ?? -1;
    return number < 0 ? {tile: -1} : {tile: view.plans[number].under(px, py), number, px, py};
  };
  ui.canvas.addEventListener("pointermove", (event) => {
    const {tile, number, px, py} = tileUnder(event);
    if (tile < 0 || !view.parts) return say();
    const what = number ? doing(causeOf(view, view.now), view.parts, view.way) : {values: view.parts.live, text: bytesText, label: "live"};
    return say(px, py, [`Tile ${wholeText(tile)}: ${what.text(what.values[tile])}`, what.label]);
  });
  ui.canvas.addEventListener("pointerleave", () => say());
  ui.canvas.addEventListener("click", (event) => { const {tile} = tileUnder(event); ui.canvas.focus(); if (tile >= 0) select(view.selection, {tile, ipu: view.data.ipu}); });
  const scrub = (event) => { const [px] = place(event, ui.strip); play(view, false); goTo(view, Math.floor((px / ui.strip.clientWidth) * view.columns.step.length)); };
  ui.strip.addEventListener("pointerdown", (event) => { ui.strip.setPointerCapture(event.pointerId); scrub(event); });
  ui.strip.addEventListener("pointermove", (event) => { if (ui.strip.hasPointerCapture(event.pointerId)) scrub(event); });
}

function load(view) {
  const {model, ui} = view, data = (view.data = model.get("data")), columns = (view.columns = unpack(data.layout, model.get("buffer")));
  Object.assign(view, {frames: new Frames(data.tiles), asked: new Set(), now: data.position, fullest: columns.fullest_tile_bytes.reduce((a, b) => Math.max(a, b), 1)});
  view.frames.take(columns);
  view.parts = view.frames.at(view.now);
  ui.say(data.sentence);
  ui.legend.replaceChildren(...data.causes.map((each) => h("span", {class: "wb-key"}, swatch({...each, pattern: ""}), h("span", {text: each.label}))));
  const number = (name, label) => ({label, number: true, value: (at) => columns[name][at], text: (at) => wholeText(columns[name][at])});
  ui.setTable(() => grid({label: "Places of the program", rows: [...columns.step.keys()], pick: (at) => { play(view, false); goTo(view, at); }, chosen: (at) => at === view.now,
    columns: [{label: "place", number: true, value: (at) => at, text: wholeText}, {label: "step", wide: "34%", text: (at) => nameOf(view, at)}, number("cycles", "cycles"), number("live_bytes", "live bytes"), number("computing_tiles", "computing tiles"), number("sent_bytes", "bytes sent"), number("received_bytes", "bytes received")]}).root);
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), live: model.get("live"), way: "received", rate: 4, playing: null};
  const ui = (view.ui = frame(el, {title: "Player", sentence: model.get("data").sentence, side: true, height: 520}));
  ui.strip = h("canvas", {class: "wb-film", "aria-hidden": "true"});
  ui.controls = h("div", {class: "wb-player"});
  ui.plot.append(ui.controls, ui.strip);
  load(view);
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.line = surface(ui.strip, (...args) => strip(view, ...args));
  controls(view);
  keys(view);
  pointing(view);
  tell(view);
  const arrived = (message, buffers) => {
    if (!message || message.block === undefined || message.ipu !== view.data.ipu) return;
    view.asked.delete(message.block);
    view.frames.take(unpack(message.layout, buffers[0]));
    if (!view.parts) { view.parts = view.frames.at(view.now); show(view); }
  };
  model.on?.("msg:custom", arrived);
  const offs = [
    watch(model, ["data"], () => { play(view, false); load(view); controls(view); show(view); }),
    watch(view.selection, ["position", "step", "tile"], () => {
      const position = view.selection.get("position"), step = view.selection.get("step"), mine = (view.selection.get("ipu") ?? view.data.ipu) === view.data.ipu;
      const to = position !== null && view.columns.step[position] === step ? position : view.columns.step.indexOf(step ?? -1);
      if (mine && to >= 0 && to !== view.now) { Object.assign(view, {now: view.live ? to : view.frames.near(to)}); view.parts = view.frames.at(view.now); if (!view.parts && view.live) ask(view, view.now); }
      follow(view);
    }),
  ];
  return () => { play(view, false); model.off?.("msg:custom", arrived); offs.forEach((off) => off()); view.canvas.dispose(); view.line.dispose(); };
}

export default {render};
