import {anew} from "../../kit/anew.js";
import {OWN_KEYS, axisX, axisY, button, bytesText, choice, countText, cyclesText, font, h, place, scale, shortText, surface, swatch, table, ticks, tip, unpack, watch, wholeText} from "../../kit/kernel.js";
import {signed} from "../../views/comparison.js";

const TEXTS = {bytes: bytesText, cycles: cyclesText, count: countText};
const LEFT = 74, TOP = 12, BELOW = 42, RIGHT = 66;
const STILL_MS = 300; // keys that move a slow model are let go together

// Where a change is better, worse, or too small to be seen.
export function toneOf({unit, better, before, after}) {
  const change = after - before;
  return signed(change, TEXTS[unit])[0] === "±" ? "" : change * better > 0 ? "wb-better" : "wb-worse";
}

// The place of a value in a list of `from` values, stretched over `to` of them: two programs have steps of their own.
export const stretched = (at, from, to) => Math.min(to - 1, Math.floor(((at + 0.5) * to) / Math.max(1, from)));

// The rows of a curve with their places on the axis, the best of them and the largest of each measure.
export function curveOf({rows, best}) {
  const drawn = rows.filter(({problem}) => !problem), most = (key) => drawn.reduce((high, row) => Math.max(high, row[key]), 0);
  return {drawn, bytes: most("bytes"), cycles: most("cycles"), best: rows.find(({at}) => at === best) ?? null};
}

const heading = ({asked}) => (asked ? `What if ${asked}` : "As it was compiled");

export function sentence(data) {
  const [bytes, , cycles] = data.heads, verdict = data.fits[1] ? "fits" : "does not fit";
  return `${heading(data)}: ${verdict}, ${bytesText(bytes.after)} on the fullest tile (${signed(bytes.after - bytes.before, bytesText)}), ${cyclesText(cycles.after)} a sample (${signed(cycles.after - cycles.before, countText)})`;
}

function card(head) {
  const {label, unit, before, after} = head, text = TEXTS[unit];
  return h("div", {class: `wb-card ${toneOf(head)}`, "data-label": label, "data-before": String(before), "data-after": String(after)}, h("span", {text: label}), h("strong", {text: text(after)}), h("span", {text: `${signed(after - before, text)} from ${text(before)}`}));
}

// Cycles of a sample by cause: the earlier bar above the later one, on one scale.
export function cycles({causes}) {
  const sum = (side) => causes.reduce((all, each) => all + each[side], 0), whole = Math.max(sum("before"), sum("after")) || 1;
  const bar = (side, label) => h("div", {class: `wb-strip wb-${side}`, title: `${label}: ${cyclesText(sum(side))} a sample`},
    ...causes.map(({paint, ...each}) => h("div", {style: {width: `${(each[side] / whole) * 100}%`, background: paint.colour}, title: `${paint.label}: ${cyclesText(each[side])}`})));
  return h("div", {class: "wb-what-cycles", role: "img", "aria-label": `Cycles a sample: ${cyclesText(sum("after"))}, before ${cyclesText(sum("before"))}`}, bar("before", "before"), bar("after", "now"),
    h("div", {class: "wb-legend"}, ...causes.map(({paint, after}) => h("span", {class: "wb-key"}, swatch({...paint, pattern: ""}), h("span", {text: `${paint.label} ${countText(after)}`})))));
}

// Filled: now; line: before; a rule where the memory of a tile ends.
function area(view, key, label, ctx, width, height, t) {
  if (!view.data.layout) return;
  const before = view.columns[`before_${key}`], after = view.columns[`after_${key}`], {capacity} = view.data, most = (values) => values.reduce((a, b) => Math.max(a, b), 0);
  const highest = Math.max(1, most(before), most(after)), high = 1.05 * (highest > 0.35 * capacity ? Math.max(highest, capacity) : highest);
  const box = {x: LEFT, y: TOP, w: width - LEFT - 12, h: height - TOP - BELOW}, y = scale(0, high, box.y + box.h, box.y);
  axisY(ctx, t, box, y, ticks(0, high, 4, true), (value) => shortText(bytesText(value)), "");
  const outline = (values) => {
    const wide = box.w / Math.max(1, values.length);
    ctx.beginPath();
    ctx.moveTo(box.x, box.y + box.h);
    values.forEach((value, i) => { ctx.lineTo(box.x + i * wide, y(value)); ctx.lineTo(box.x + (i + 1) * wide, y(value)); });
    ctx.lineTo(box.x + box.w, box.y + box.h);
  };
  outline(after);
  ctx.globalAlpha = 0.55;
  ctx.fillStyle = most(after) > capacity ? t.bad : t.accent;
  ctx.fill();
  ctx.globalAlpha = 1;
  outline(before);
  ctx.strokeStyle = t.text;
  ctx.lineWidth = 1;
  ctx.stroke();
  if (capacity <= high) { ctx.fillStyle = t.bad; ctx.fillRect(box.x, Math.round(y(capacity)) - 1, box.w, 2); }
  const count = after.length, x = key === "steps" ? scale(0, 100, box.x, box.x + box.w) : scale(0, Math.max(1, count), box.x, box.x + box.w);
  axisX(ctx, t, box, x, ticks(0, key === "steps" ? 100 : count, 5).filter(Number.isInteger), (value) => (key === "steps" ? `${value} %` : wholeText(value)), label);
  view.boxes[key] = box;
}

function hover(view, key, canvas, say) {
  canvas.addEventListener("pointermove", (event) => {
    const [px] = place(event, canvas), box = view.boxes[key], before = view.columns?.[`before_${key}`], after = view.columns?.[`after_${key}`];
    if (!box || !after?.length || px < box.x || px > box.x + box.w) return say();
    const at = stretched(Math.floor(((px - box.x) / box.w) * after.length) - 0.5 + 0.5, after.length, after.length), was = before.length ? before[key === "tiles" ? at : stretched(at, after.length, before.length)] ?? 0 : 0;
    return say(px, 20, [key === "tiles" ? `Tile ${at} of IPU ${view.data.ipu}` : `${Math.round((at / after.length) * 100)} % of the way through`, `now ${bytesText(after[at])}`, `before ${bytesText(was)}: ${signed(after[at] - was, bytesText)}`]);
  });
  canvas.addEventListener("pointerleave", () => say());
}

// The curve: bytes on the left axis, cycles a sample on the right one, a point for each value that was compiled.
function drawCurve(view, ctx, width, height, t) {
  const curve = view.state().curve;
  if (!curve) return;
  const {drawn, bytes, cycles: slowest, best} = curveOf(curve), {rows, capacity} = curve, box = {x: LEFT, y: TOP, w: width - LEFT - RIGHT, h: height - TOP - BELOW};
  const step = box.w / rows.length, xOf = (row) => box.x + (rows.indexOf(row) + 0.5) * step;
  const high = 1.08 * (bytes > 0.35 * capacity ? Math.max(bytes, capacity) : bytes || 1), y = scale(0, high, box.y + box.h, box.y), z = scale(0, 1.08 * (slowest || 1), box.y + box.h, box.y);
  axisY(ctx, t, box, y, ticks(0, high, 4, true), (value) => shortText(bytesText(value)), "");
  font(ctx, t);
  ctx.textAlign = "left";
  ctx.fillStyle = t.muted;
  for (const value of ticks(0, 1.08 * (slowest || 1), 4)) ctx.fillText(shortText(countText(value)), box.x + box.w + 7, z(value));
  const line = (key, to, colour, dash) => {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.setLineDash(dash);
    ctx.beginPath();
    drawn.forEach((row, i) => ctx[i ? "lineTo" : "moveTo"](xOf(row), to(row[key])));
    ctx.stroke();
    ctx.setLineDash([]);
    for (const row of drawn) {
      ctx.beginPath();
      ctx.arc(xOf(row), to(row[key]), 3.5, 0, 7);
      ctx.fillStyle = row.fits ? colour : t.paper;
      ctx.fill();
      ctx.stroke();
    }
  };
  line("bytes", y, t.accent, []);
  line("cycles", z, "#cf7a1c", [6, 4]);
  if (capacity <= high) { ctx.fillStyle = t.bad; ctx.fillRect(box.x, Math.round(y(capacity)) - 1, box.w, 2); }
  if (best) {
    ctx.strokeStyle = t.good;
    ctx.lineWidth = 2.5;
    ctx.beginPath();
    ctx.arc(xOf(best), z(best.cycles), 9, 0, 7);
    ctx.stroke();
  }
  ctx.textBaseline = "top";
  axisX(ctx, t, box, (i) => box.x + (i + 0.5) * step, rows.map((_, i) => i), (i) => rows[i].value, curve.label);
}

function told(row, best) {
  if (row.problem) return row.problem;
  return `${row.fits ? "fits" : "does not fit"}${row.at === best ? ": the fastest that fits" : ""}`;
}

function curve(view) {
  const {curve: found} = view.state(), {root, rows} = view.curve;
  root.hidden = !found;
  if (!found) return;
  const go = (row) => view.go(found.name, row.at);
  anew(rows, table([
    {label: found.label, text: (row) => row.value}, {label: "fullest tile", text: (row) => row.bytes_text ?? ""}, {label: "a sample", text: (row) => row.cycles_text ?? ""}, {label: "", text: (row) => told(row, found.best)},
  ], found.rows, {chosen: (row) => row.at === view.state().at[found.name], pick: go, caption: "Line: bytes on the fullest tile; dashes: cycles a sample; hollow: does not fit; ring: the fastest that fits. A row goes there."}));
  view.curve.canvas.redraw();
}

function knob(view, each) {
  const value = h("span", {class: "wb-knob-now", text: each.texts[view.at(each)]}), label = h("span", {title: each.doc, text: each.label});
  const put = (at) => { value.textContent = each.texts[at]; row.classList.toggle("wb-moved", at !== each.compiled); };
  let field;
  if (each.menu) {
    field = h("select", {"aria-label": `What if ${each.label}`, onchange: () => { put(field.selectedIndex); view.move(each.name, field.selectedIndex, true); }}, ...each.texts.map((text) => h("option", {text})));
    field.selectedIndex = view.at(each);
  } else {
    const moved = (done) => { const at = Number(field.value); field.setAttribute("aria-valuetext", each.texts[at]); put(at); view.move(each.name, at, done); };
    field = h("input", {type: "range", min: 0, max: each.texts.length - 1, step: 1, value: view.at(each), "aria-label": `What if ${each.label}`, "aria-valuetext": each.texts[view.at(each)], oninput: () => moved(false), onchange: () => moved(true)});
    field.value = view.at(each);
  }
  const row = h("div", {class: `wb-knob${view.at(each) === each.compiled ? "" : " wb-moved"}`, "data-name": each.name}, h("div", {class: "wb-knob-head"}, label, value), field,
    button("Curve", () => view.send({do: "curve", name: each.name}), {"aria-label": `Curve of ${each.label}`, title: "Compile values of this one from end to end, and draw what each costs"}));
  row.follow = () => {
    const at = view.at(each);
    if (field.ownerDocument.activeElement === field && view.moving === each.name) return; // the hand is newer than the kernel
    if (each.menu) field.selectedIndex = at; else { field.value = at; field.setAttribute("aria-valuetext", each.texts[at]); }
    put(at);
  };
  return row;
}

function sends(view) {
  let waiting = null, timer = 0, frame = 0;
  const flush = () => { frame = 0; if (waiting) view.send(waiting); waiting = null; };
  return (name, at, done) => {
    view.moving = name;
    clearTimeout(timer);
    waiting = {do: "move", name, at, done};
    if (!done) frame ||= requestAnimationFrame(flush);
    else if (view.state().slow) timer = setTimeout(flush, STILL_MS);
    else flush();
  };
}

async function render({model, el}) {
  const state = () => model.get("state"), view = {state, boxes: {}, data: {}, moving: "", send: (message) => model.send(message), at: (each) => state().at[each.name] ?? each.compiled};
  view.move = sends(view);
  view.go = (name, at) => { view.moving = ""; view.send({do: "move", name, at, done: true}); };
  const canvas = (label, height) => h("canvas", {class: "wb-canvas", role: "img", "aria-label": label, style: {height: `${height}px`}});
  const steps = canvas("Bytes of the fullest tile through the program", 190), tiles = canvas("Bytes of every tile", 190), drawn = canvas("The curve", 220);
  const knobs = h("div", {class: "wb-knobs", role: "group", "aria-label": "What can be moved"}), cards = h("div", {class: "wb-cards"}), bars = h("div"), said = h("p", {class: "wb-what-said", role: "status"}), why = h("p", {class: "wb-text-problem", role: "alert"});
  const from = h("p", {class: "wb-what-from"}), work = h("span", {class: "wb-what-work"}), other = h("div", {class: "wb-what-other"}), plots = h("div", {class: "wb-what-plots"}, h("div", {class: "wb-plot"}, steps), h("div", {class: "wb-plot"}, tiles));
  const take = button("Take over", () => view.send({do: "take"}), {title: "Set this in the form, and show it as a result"}), back = button("Back", () => { view.moving = ""; view.send({do: "back"}); }, {title: "Everything to where it was compiled"}), stop = button("Stop", () => view.send({do: "stop"}), {title: "Stop what compiles here"});
  const list = h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": "The curve, data table"});
  view.curve = {rows: list, root: h("div", {class: "wb-what-curve"}, h("div", {class: "wb-plot"}, drawn), list)};
  const details = h("details", {ontoggle: () => { if (details.open) view.send({do: "open"}); }}, h("summary", {text: "What if: move it, and see"}), from,
    h("div", {class: "wb-what-body"}, h("div", {}, knobs, other, h("div", {class: "wb-what-does"}, take, back, stop, work)), h("div", {class: "wb-what-seen"}, said, why, cards, bars, h("p", {class: "wb-what-key", text: "Filled: now; line: as it was compiled"}), plots)), view.curve.root);
  const root = h("section", {class: "wb wb-whatif", "aria-label": "What if", ...OWN_KEYS}, details);
  el.replaceChildren(root);
  const surfaces = [surface(steps, (...args) => area(view, "steps", "of the way through the program: its fullest tile", ...args)), surface(tiles, (...args) => area(view, "tiles", "tile", ...args))];
  view.curve.canvas = surface(drawn, (...args) => drawCurve(view, ...args));
  [["steps", steps], ["tiles", tiles]].forEach(([key, each]) => hover(view, key, each, tip(each.parentElement)));
  const picture = () => {
    view.data = model.get("data");
    if (!view.data.layout) return;
    view.columns = unpack(view.data.layout, model.get("buffer"));
    said.textContent = sentence(view.data);
    cards.replaceChildren(...view.data.heads.map(card));
    bars.replaceChildren(cycles(view.data));
    surfaces.forEach((each) => each.redraw());
  };
  const furnish = () => anew(knobs, ...model.get("knobs").map((each) => knob(view, each)));
  const show = () => {
    const {working, problem, others, at, slow} = state();
    root.hidden = !state().from;
    root.setAttribute("aria-busy", String(Boolean(working)));
    from.textContent = `From ${state().from}. ${slow ? "It takes more than a second: it compiles when a slider is let go." : "It compiles while a slider moves."}`;
    work.textContent = working && `compiling ${working}`;
    why.textContent = problem;
    why.hidden = !problem;
    stop.disabled = !working;
    take.disabled = back.disabled = !model.get("knobs").some((each) => at[each.name] !== each.compiled);
    [...knobs.children].forEach((row) => row.follow());
    if (other.dataset.names !== others.join()) {
      other.dataset.names = others.join();
      const menu = choice("another option", [["", "choose one"], ...others.map((name) => [name, name])], "", (name) => name && view.send({do: "add", name}));
      anew(other, menu);
    }
    curve(view);
  };
  furnish();
  show();
  picture();
  const off = [watch(model, ["knobs"], () => { furnish(); show(); }), watch(model, ["state"], show), watch(model, ["data"], picture)];
  return () => { off.forEach((each) => each()); [...surfaces, view.curve.canvas].forEach((each) => each.dispose()); };
}

export default {render};
