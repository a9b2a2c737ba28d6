import {floor, legend, mark, numbers, paint, tileByKey} from "../kit/floor.js";
import {Programs, doing} from "../kit/frames.js";
import {button, bytesText, choice, cyclesText, font, frame, h, place, select, selectionOf, surface, tip, unpack, watch, wholeText, thingsText} from "../kit/kernel.js";
import {magnified, magnifier} from "../kit/magnify.js";
import {chooseTile, ipuChoice, ipuOf, startOf, tileOf, tilePanel, tileTable, totals} from "../kit/tiles.js";

const TOP = 22, LEFT = 34, LEGEND = 62;
// What tiles hold and do at a step of the program.
const AT_A_STEP = {step_live: "at a step: bytes live", step_compute: "at a step: cycles computed", step_sent: "at a step: bytes sent", step_received: "at a step: bytes received"};
const PARTS = {live: "live at the step (bytes)", compute: "computed in the step (cycles)", sent: "sent in the step (bytes)", received: "received in the step (bytes)"};

const stepwise = (view) => view.measure in AT_A_STEP;

// The frame that is shown of an IPU's program: {place, name, parts, program}; null while it has not come.
export function shownFrame({programs, live, now}, ipu) {
  const program = programs.of.get(ipu);
  if (!program?.count) return null;
  const place = live ? now : program.frames.near(now ?? program.peak), parts = place === null ? null : program.frames.at(place);
  return parts && {place, name: program.names.get(place), parts, program};
}

// One number a tile of the chosen measure, and how it is written; null while it has not come.
export function measured(view, ipu) {
  const {data, columns} = view, from = startOf(data, ipu);
  if (stepwise(view)) {
    const found = shownFrame(view, ipu), part = view.measure.slice(5);
    if (!found) return null;
    if (part === "live") return {values: found.parts.live, text: bytesText, binary: true, low: 0, high: found.program.fullest, label: `bytes live on each tile at place ${wholeText(found.place)}; at most ${bytesText(found.program.fullest)} in this program`};
    return {...doing(part === "compute" ? "compute" : "exchange", found.parts, part), low: 0};
  }
  if (view.measure === "total") return {values: totals(view, ipu), text: bytesText, binary: true, label: `bytes ${data.measured}`, what: "total"};
  if (view.measure === "cycles") return {values: columns.cycles.subarray(from, from + data.tiles), text: cyclesText, label: "cycles busy in one call of the program", what: "cycles busy"};
  if (view.measure === "variable") return {values: columns.variable.subarray(from, from + data.tiles), text: bytesText, binary: true, label: `bytes of ${data.variable}`, what: `variable ${data.variable}`};
  if (view.measure === "given") {
    const {what, unit} = data.given, bytes = unit === "bytes";
    return {values: columns.given.subarray(from, from + data.tiles), text: bytes ? bytesText : cyclesText, binary: bytes, label: what.startsWith(unit) ? what : `${unit}: ${what}`, what};
  }
  const start = startOf(data, ipu, Number(view.measure)), {label} = data.categories[Number(view.measure)];
  return {values: columns.bytes.subarray(start, start + data.tiles), text: bytesText, binary: true, label: `bytes of ${label}`, what: label};
}

const spread = (view, width, height) => floor(view.data.plan, view.data.tiles, LEFT, TOP, width - LEFT - 12, height - TOP - LEGEND - 8);

function draw(view, ctx, width, height, t) {
  const {data} = view, ipu = ipuOf(view), whole = (view.whole = spread(view, width, height)), here = (view.floor = magnified(whole, view.glass)), found = measured(view, ipu);
  if (!found) {
    font(ctx, t, 12);
    ctx.fillStyle = t.muted;
    ctx.fillText(view.programs.of.get(ipu)?.count === 0 ? "Nothing runs there" : view.live ? "Waiting for this step…" : `This page has no steps of IPU ${ipu}: open it with a kernel.`, LEFT, TOP + 20);
    return;
  }
  const {values, text, label, binary} = found;
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  low = found.low ?? (view.fromZero ? 0 : low);
  high = found.high ?? high;
  paint(ctx, here, values, data.ramp, low, high);
  numbers(ctx, t, here, values, text);
  ctx.save();
  ctx.beginPath();
  ctx.rect(here.x0 - 4, here.y0 - 4, here.right - here.x0 + 8, here.bottom - here.y0 + 8);
  ctx.clip();
  mark(ctx, t, here, tileOf(view));
  ctx.restore();
  legend(data.ramp, ctx, t, {low, high, text, label, binary, x: LEFT, y: here.bottom + 10, w: Math.min(360, width - LEFT - 24)});
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    if (view.lens.keys(event)) return;
    if (stepwise(view) && (event.key === "," || event.key === ".")) { event.preventDefault(); stepTo(view, (view.now ?? 0) + (event.key === "," ? -1 : 1), event.key === "," ? -1 : 1); return; }
    const {plan, tiles} = view.data, goal = tileByKey(plan, tiles, tileOf(view), event.key);
    if (goal === -2) return;
    event.preventDefault();
    if (goal < 0) return;
    chooseTile(view, goal);
    view.lens.see(goal);
  });
}

function hover(view, show) {
  const {canvas} = view.ui;
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), tile = view.floor.under(px, py), found = measured(view, ipuOf(view));
    if (tile < 0 || !found) return show();
    return show(px, py, [`Tile ${wholeText(tile)}: ${found.text(found.values[tile])}`, found.label]);
  });
  canvas.addEventListener("pointerleave", () => show());
  canvas.addEventListener("click", (event) => {
    const tile = view.floor.under(...place(event, canvas));
    if (tile >= 0 && !view.lens.dragged()) chooseTile(view, tile);
    canvas.focus();
  });
}

// Each question once, until something comes.
function ask(view, what) {
  const program = {ipu: ipuOf(view), ...what}, key = JSON.stringify(program);
  if (!view.live || view.asked.has(key)) return;
  view.asked.add(key);
  view.model.send({program});
}

// Goes to a place of the program; the other views follow.
function stepTo(view, to, by = 0) {
  const ipu = ipuOf(view), program = view.programs.of.get(ipu);
  if (!program?.count) return;
  const next = Math.max(0, Math.min(program.count - 1, to));
  view.now = view.live ? next : program.frames.near(next, by);
  if (!program.frames.at(view.now)) { ask(view, {block: Math.floor(view.now / view.data.block)}); show(view); return; }
  select(view.selection, {position: view.now, step: program.steps.get(view.now), ipu});
  show(view);
}

// The place of the step that is chosen, which is asked for if it has not come.
function follow(view) {
  if (!stepwise(view)) return;
  const {selection} = view, ipu = ipuOf(view), chosen = selection.get("ipu"), step = chosen === null || chosen === ipu ? selection.get("step") : null;
  const to = view.programs.placeOf(ipu, step, selection.get("position")), there = to !== null && view.programs.of.get(ipu)?.frames.at(to);
  if (there || !view.live) { if (to !== null) view.now = to; } else ask(view, {step, position: selection.get("position")});
}

function show(view) {
  furnish(view);
  view.canvas.redraw();
}

function walk(view) {
  const {controls} = view.ui, ipu = ipuOf(view), program = view.programs.of.get(ipu);
  const there = stepwise(view) && program?.count > 0;
  controls.style.display = there ? "" : "none";
  if (!there) return;
  const found = shownFrame(view, ipu), at = found?.place ?? view.now ?? 0;
  view.range.max = String(program.count - 1);
  view.range.value = String(at);
  view.range.setAttribute("aria-valuetext", `place ${wholeText(at)}: ${found?.name ?? "not here yet"}`);
  view.count.textContent = `place ${wholeText(at)} of ${wholeText(program.count)}`;
}

// What is drawn, in one sentence: of the IPU and of the measure that are chosen.
export function said(view) {
  const ipu = ipuOf(view), shown = measured(view, ipu), found = stepwise(view) && shownFrame(view, ipu);
  if (!shown) return `Modelled tile map of IPU ${ipu}, ${AT_A_STEP[view.measure]}`;
  const {values, text, what} = shown, best = values.reduce((a, value, tile) => (value > values[a] ? tile : a), 0), sum = values.reduce((a, b) => a + b, 0);
  const most = `${text(values[best])} on tile ${wholeText(best)}, ${text(sum)} in all`;
  if (found) return `Modelled tile map of IPU ${ipu}, ${AT_A_STEP[view.measure]}, place ${wholeText(found.place)} of ${wholeText(found.program.count)} (${found.name}): at most ${most}`;
  const used = values.reduce((count, value) => count + (value > 0), 0), least = values.reduce((a, b) => Math.min(a, b), Infinity);
  return `Modelled tile map of IPU ${ipu}, ${what}: ${wholeText(used)} of ${thingsText(values.length, "tile")}, from ${text(least)} to ${most}`;
}

// Lines of the panel about the chosen tile: what it does in the program, and at the step.
function about(view) {
  const {data, columns} = view, tile = tileOf(view), found = stepwise(view) && shownFrame(view, ipuOf(view));
  const busy = columns.cycles ? [`${cyclesText(columns.cycles[startOf(data, ipuOf(view)) + tile])} busy in one call of the program`] : [];
  if (!found) return busy;
  const {live, compute, sent, received} = found.parts;
  return [...busy, `At place ${wholeText(found.place)}, ${found.name}: ${bytesText(live[tile])} live, ${cyclesText(compute[tile])} computed, ${wholeText(sent[tile])} bytes sent, ${wholeText(received[tile])} received`];
}

function furnish(view) {
  const {data, columns} = view;
  if (view.measure === "variable" && !data.variable) view.measure = "total";
  view.ui.say(said(view));
  const entries = [["total", "all bytes"], ...(data.given ? [["given", data.given.what]] : []), ...(columns.cycles ? [["cycles", "cycles busy"]] : []), ...(view.live || data.program ? Object.entries(AT_A_STEP) : []),
    ...(data.variable ? [["variable", `variable ${data.variable}`]] : []), ...data.categories.map(({label}, c) => [String(c), label])];
  const scaleFrom = h("label", {class: "wb-choice"}, h("input", {type: "checkbox", onchange: (event) => { view.fromZero = event.target.checked; view.canvas.redraw(); }}), h("span", {text: "scale from zero"}));
  scaleFrom.firstChild.checked = view.fromZero;
  const colour = (view.colour ??= {});
  const known = JSON.stringify([entries, ipuOf(view), view.fromZero]);
  if (colour.known !== known) {
    colour.known = known;
    colour.choice = choice("colour", entries, view.measure, (value) => { view.measure = value; follow(view); show(view); });
    view.ui.tools.replaceChildren(...[colour.choice, scaleFrom, ipuChoice(view), ...view.lens.tools()].filter(Boolean));
  }
  colour.choice.querySelector("select").value = view.measure;
  walk(view);
  const found = stepwise(view) && shownFrame(view, ipuOf(view)), part = view.measure.slice(5);
  view.ui.setTable(() => tileTable(view, found ? Object.keys(PARTS).sort((a, b) => (b === part) - (a === part)).map((name) => ({label: PARTS[name], values: found.parts[name]})) : []));
  tilePanel(view, about(view));
}

function controls(view) {
  const stepBy = (by) => stepTo(view, (view.now ?? 0) + by, by);
  view.range = h("input", {type: "range", min: 0, max: 0, step: 1, "aria-label": "Place in the program", oninput: () => stepTo(view, Number(view.range.value))});
  view.count = h("output", {});
  view.ui.controls = h("div", {class: "wb-player", style: {display: "none"}}, button("◀", () => stepBy(-1), {"aria-label": "Step back", title: "Key: ,"}), button("▶", () => stepBy(1), {"aria-label": "Step on", title: "Key: ."}), view.range, view.count);
  view.ui.plot.append(view.ui.controls);
}

function load(view) {
  const data = (view.data = view.model.get("data"));
  view.columns = unpack(data.layout, view.model.get("buffer"));
  if (data.program) view.programs.take(data.program, view.columns);
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), live: model.get("live"), measure: model.get("data").first, fromZero: false, now: null, asked: new Set(), programs: new Programs(model.get("data").tiles)};
  load(view);
  const ui = (view.ui = frame(el, {title: "Tile map", sentence: view.data.sentence, side: true, height: Math.min(380, TOP + LEGEND + 8 + 64 * view.data.plan.rows)}));
  view.lens = magnifier(ui.canvas, view, () => view.whole, () => view.canvas?.redraw());
  view.whole = view.floor = spread(view, 600, 380);
  controls(view);
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view);
  const arrived = (message, buffers) => {
    const told = message?.program;
    if (!told) return;
    view.asked.clear();
    view.programs.take(told, unpack(told.layout, buffers[0]));
    if (told.ipu !== ipuOf(view)) return;
    if (told.at !== null && told.at !== undefined) view.now = told.at;
    else if (view.now !== null && Math.floor(view.now / view.data.block) === told.block) { stepTo(view, view.now); return; }
    show(view);
  };
  model.on?.("msg:custom", arrived);
  const offs = [
    watch(model, ["data"], () => {
      const before = view.data.variable;
      load(view);
      if (view.data.variable && view.data.variable !== before) view.measure = "variable";
      follow(view);
      show(view);
    }),
    watch(view.selection, ["tile", "ipu", "step", "position"], () => { follow(view); show(view); }),
  ];
  return () => { model.off?.("msg:custom", arrived); offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
