import {axisX, axisY, button, bytesText, choice, clipText, countText, cyclesText, font, frame, h, hatch, panZoom, percentText, place, scale, select, selectionOf, shortText, surface, swatch, table, ticks, tip, unpack, watch, wholeText} from "../kit/kernel.js";
import {secondsText, timeTicks} from "../kit/lanes.js";
import {grid} from "../kit/grid.js";
import {cellOf, tileAt} from "../kit/floor.js";

const LEFT = 78, TOP = 14, BELOW = 42, NO_LAYER = "no layer";
const TEXTS = {bytes: bytesText, cycles: cyclesText, count: countText, share: percentText, seconds: (value) => secondsText(value, 1)};
const LABELS = {operators: "Operators", variables: "Variables", layers: "Layers", why: "Causes", options: "Options"};
const STATUS = ["changed", "added", "removed"], BACK = ["changed", "removed", "added"];

// What is too small to be seen in the text has no sign.
// The change to the byte or cycle, where the text that is shown has rounded it; else nothing more is to be said.
export function exactText(change, unit) {
  const exact = {bytes: `${signed(change, wholeText)} B`, cycles: `${signed(change, wholeText)} cycles`}[unit] ?? "";
  return exact === signed(change, TEXTS[unit]) ? "" : exact;
}

export const signed = (value, text) => `${!value || text(Math.abs(value)) === text(0) ? "±" : value > 0 ? "+" : "−"}${text(Math.abs(value))}`;

// The two sides in the order in which they are shown: [earlier, later].
export const sides = (swapped) => (swapped ? ["b", "a"] : ["a", "b"]);

// Later minus earlier, tile by tile; what is not there counts as 0.
export function changes(before, after) {
  const found = new Float64Array(Math.max(before.length, after.length));
  for (let i = 0; i < found.length; i++) found[i] = (after[i] ?? 0) - (before[i] ?? 0);
  return found;
}

// Rows of a table with earlier, later and change of each amount.
export function rowsOf({data, columns, swapped}, name) {
  const {keys, amounts, rows} = data.tables[name], [from, to] = sides(swapped);
  return Array.from({length: rows}, (_, i) => ({
    keys: keys.map((key) => data.strings[columns[`${name}_${key}`][i]]),
    status: (swapped ? BACK : STATUS)[columns[`${name}_status`][i]],
    amounts: amounts.map((amount) => {
      const before = columns[`${name}_${amount}_${from}`][i], after = columns[`${name}_${amount}_${to}`][i];
      return {before, after, change: after - before};
    }),
  }));
}

export const whyOf = ({data, swapped}) => data.why.map(([layer, of, unit, change, origin]) => ({layer, of, unit, origin, change: swapped ? 0 - change : change}));

// What is drawn: two series over tiles or over places, each from its own start to its own end where `own`.
export function series({data, columns, swapped, picture}) {
  const [from, to] = sides(swapped), over = picture === "liveness" ? "worst" : "tiles";
  const before = columns[`${from}_${over}`], after = columns[`${to}_${over}`], length = Math.max(before.length, after.length);
  const own = picture === "liveness" && before.length !== after.length;
  const at = (values, i) => (own && length ? Math.min(values.length - 1, Math.floor(((i + 0.5) * values.length) / length)) : i);
  return {before, after, length, own, at, capacity: data.capacity_bytes[swapped ? 0 : 1]};
}

// The most of a series between two places, [from, to).
function most(values, at, from, to) {
  let found = 0;
  for (let i = at(values, from), end = Math.max(i, at(values, to - 1)); i <= end; i++) if (values[i] > found) found = values[i];
  return found;
}

function drawSeries(view, ctx, width, height, t) {
  const drawn = series(view), {before, after, length, at, own, capacity} = drawn, {from, to} = view.at;
  const box = (view.box = {x: LEFT, y: TOP, w: width - LEFT - 14, h: height - TOP - BELOW});
  const highest = Math.max(1, ...[before, after].map((values) => values.reduce((a, b) => Math.max(a, b), 0))), high = 1.05 * (highest > 0.35 * capacity ? Math.max(highest, capacity) : highest);
  const x = (view.x = scale(from, to, box.x, box.x + box.w)), y = scale(0, high, box.y + box.h, box.y);
  axisY(ctx, t, box, y, ticks(0, high, box.h / 44, true), (value) => shortText(bytesText(value)), view.picture === "liveness" ? "fullest tile" : "bytes at the tile's fullest step");
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, box.y, box.w, box.h);
  ctx.clip();
  const steps = Math.max(1, Math.min(Math.ceil(box.w), Math.ceil(to - from))), each = (to - from) / steps, levels = [];
  for (let i = 0; i < steps; i++) {
    const low = Math.floor(from + i * each), end = Math.min(length, Math.max(low + 1, Math.ceil(from + (i + 1) * each)));
    levels.push([x(from + i * each), x(from + (i + 1) * each), low < length ? most(before, at, low, end) : 0, low < length ? most(after, at, low, end) : 0]);
  }
  ctx.globalAlpha = 0.42;
  ctx.fillStyle = t.accent;
  for (const [left, right, , value] of levels) ctx.fillRect(left, y(value), right - left + 0.4, y(0) - y(value));
  ctx.globalAlpha = 1;
  line(ctx, levels, 3, y, t.accent, 1.5, []);
  line(ctx, levels, 2, y, t.text, 1.5, [5, 3]);
  ctx.fillStyle = t.bad;
  for (let dash = box.x; dash < box.x + box.w; dash += 12) ctx.fillRect(dash, Math.round(y(capacity)) - 1, 8, 2);
  font(ctx, t, 11, 600);
  Object.assign(ctx, {textAlign: "right", textBaseline: "top"});
  const named = `capacity ${bytesText(capacity)}`, wide = ctx.measureText(named).width;
  ctx.fillStyle = t.paper;
  ctx.fillRect(box.x + box.w - wide - 10, y(capacity) + 2, wide + 8, 16);
  ctx.fillStyle = t.bad;
  ctx.fillText(named, box.x + box.w - 6, y(capacity) + 4);
  if (view.chosen >= 0) { ctx.fillStyle = t.bad; ctx.fillRect(Math.round(x(view.chosen + 0.5)) - 1, box.y, 2, box.h); }
  ctx.restore();
  const below = view.picture === "memory" ? `tile of IPU ${view.data.ipu}` : own ? `the way through each program's steps: ${wholeText(before.length)} before, ${wholeText(after.length)} after` : "place in the program (its steps in order, loops once)";
  if (own) axisX(ctx, t, box, (part) => x((part * length) / 100), ticks((from * 100) / length, (to * 100) / length, box.w / 90), (part) => shortText(`${part.toFixed(3)} %`), below);
  else axisX(ctx, t, box, x, [...new Set(ticks(from, to, box.w / 90).map(Math.round))], wholeText, below);
}

function line(ctx, levels, side, y, colour, wide, dash) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = wide;
  ctx.setLineDash(dash);
  ctx.beginPath();
  levels.forEach((level, i) => { if (!i) ctx.moveTo(level[0], y(level[side])); else ctx.lineTo(level[0], y(level[side])); ctx.lineTo(level[1], y(level[side])); });
  ctx.stroke();
  ctx.setLineDash([]);
}

function drawPlan(view, ctx, width, height, t) {
  const {data} = view, {plan} = data, drawn = series(view), moved = changes(drawn.before, drawn.after), gap = plan.lanes > 1 ? 3 : 0, groups = Math.ceil(plan.columns / plan.lanes);
  const wide = (width - 24 - (groups - 1) * gap) / plan.columns, high = (height - 60) / plan.rows, cell = {w: Math.min(wide, high * 2.2, 64), h: Math.min(high, wide * 2.2, 64)};
  const highest = moved.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1, xOf = (column) => 12 + column * cell.w + Math.floor(column / plan.lanes) * gap;
  font(ctx, t, Math.min(13, cell.h));
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (let tile = 0; tile < moved.length; tile++) {
    const {column, row} = cellOf(plan, tile), x = xOf(column), y = 8 + row * cell.h;
    ctx.fillStyle = t.muted;
    ctx.globalAlpha = 0.14;
    ctx.fillRect(x, y, cell.w - 1, cell.h - 1);
    ctx.globalAlpha = Math.abs(moved[tile]) / highest;
    ctx.fillStyle = moved[tile] > 0 ? data.paint.more : data.paint.less;
    ctx.fillRect(x, y, cell.w - 1, cell.h - 1);
    ctx.globalAlpha = 1;
    if (moved[tile] && cell.w > 7 && cell.h > 7) { ctx.globalAlpha = 0.6; ctx.fillStyle = t.text; ctx.fillText(moved[tile] > 0 ? "+" : "−", x + cell.w / 2, y + cell.h / 2); ctx.globalAlpha = 1; }
  }
  view.tileUnder = (px, py) => {
    for (let column = 0; column < plan.columns; column++) if (px >= xOf(column) && px < xOf(column) + cell.w) return tileAt(plan, column, Math.floor((py - 8) / cell.h), moved.length);
    return -1;
  };
  if (view.chosen >= 0 && view.chosen < moved.length) {
    const {column, row} = cellOf(plan, view.chosen);
    ctx.strokeStyle = t.text;
    ctx.lineWidth = 2;
    ctx.strokeRect(xOf(column) - 1, 7 + row * cell.h, cell.w + 1, cell.h + 1);
  }
  scaleOf(ctx, t, data, highest, 8 + plan.rows * cell.h + 12, Math.min(360, width - 24));
}

function scaleOf(ctx, t, {paint}, highest, y, wide) {
  for (let x = 0; x < wide; x++) {
    const part = (2 * x) / wide - 1;
    ctx.globalAlpha = Math.abs(part);
    ctx.fillStyle = part > 0 ? paint.more : paint.less;
    ctx.fillRect(12 + x, y, 1.5, 10);
  }
  ctx.globalAlpha = 1;
  font(ctx, t);
  ctx.fillStyle = t.muted;
  ctx.textBaseline = "top";
  [[0, "left", -highest], [0.5, "center", 0], [1, "right", highest]].forEach(([part, align, value]) => {
    ctx.textAlign = align;
    ctx.fillText(signed(value, bytesText), 12 + part * wide, y + 14);
  });
}

// Of each IPU that is shown its lane before and its lane after, each [{x parts by cause}] as sent: {side, ipu, row, bins}.
export function lanesOf({data, columns, swapped}) {
  const {ipus, spent, causes} = data.lanes, found = [];
  ipus.forEach((ipu, row) => sides(swapped).forEach((side, later) => {
    const count = spent[side].length;
    if (row >= count) return;
    const all = columns[`${side}_lanes`], long = all.length / count;
    found.push({side, later, ipu, bins: all.subarray(row * long, (row + 1) * long), many: long / causes.length});
  }));
  return found;
}

// Cycles by cause of the IPUs that are shown, before, after and later minus earlier, the largest change first.
export function causesOf({data, swapped}) {
  const {spent} = data.lanes, sums = sides(swapped).map((side) => {
    const all = {};
    for (const own of spent[side]) for (const [cause, cycles] of Object.entries(own)) all[cause] = (all[cause] ?? 0) + cycles;
    return all;
  });
  return [...new Set(sums.flatMap(Object.keys))].map((cause) => ({cause, before: sums[0][cause] ?? 0, after: sums[1][cause] ?? 0, change: (sums[1][cause] ?? 0) - (sums[0][cause] ?? 0)})).sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

const endsOf = ({data, swapped}) => (swapped ? [...data.lanes.totals].reverse() : data.lanes.totals);

// Both traces on one axis of cycles: of each IPU before over after.
function drawLanes(view, ctx, width, height, t) {
  const {data} = view, {each, causes} = data.lanes, lanes = lanesOf(view), ends = endsOf(view), {from, to} = view.at;
  const box = (view.box = {x: LEFT, y: TOP, w: width - LEFT - 14, h: height - TOP - BELOW}), x = (view.x = scale(from, to, box.x, box.x + box.w));
  const pitch = Math.min(58, box.h / Math.max(1, lanes.length)), paints = causes.map(({colour, pattern}) => hatch(ctx, pattern, colour, t.paper));
  lanes.forEach(({side, later, ipu, bins, many}, number) => {
    const y = box.y + number * pitch + (later ? 0 : 4), high = pitch - (later ? 8 : 4), end = ends[later];
    font(ctx, t, 11, later ? 600 : 400);
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.fillStyle = later ? t.text : t.muted;
    if (high > 6) ctx.fillText(data.lanes.ipus.length > 1 ? `${ipu} ${later ? "after" : "before"}` : later ? "after" : "before", 8, y + high / 2);
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.x, y, box.w, high);
    ctx.clip();
    ctx.fillStyle = t.line;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(x(0), y, x(end) - x(0), high);
    ctx.globalAlpha = later ? 1 : 0.65;
    for (let bin = Math.max(0, Math.floor(from / each)); bin < Math.min(many, Math.ceil(to / each)); bin++) {
      let top = y;
      causes.forEach((_, cause) => {
        const part = bins[bin * causes.length + cause] / 255;
        if (!part) return;
        ctx.fillStyle = paints[cause];
        ctx.fillRect(x(bin * each), top, x((bin + 1) * each) - x(bin * each) + 0.4, part * high);
        top += part * high;
      });
    }
    ctx.globalAlpha = 1;
    ctx.restore();
    const stop = x(end);
    if (stop >= box.x && stop <= box.x + box.w) { ctx.fillStyle = t.text; ctx.fillRect(Math.round(stop) - 1, y - 2, 2, high + 4); }
    ctx.fillStyle = side === "a" ? t.muted : t.accent;
    ctx.fillRect(box.x - 4, y, 3, high);
  });
  const [marks, text] = timeTicks(from, to, box.w);
  axisX(ctx, t, {...box, h: Math.min(box.h, lanes.length * pitch)}, x, marks, text, `cycles since the start; before ends at ${cyclesText(ends[0])}, after at ${cyclesText(ends[1])}`);
}

// The panel of the traces: what the change of the call is made of.
function lanePanel(view) {
  const {data, ui} = view, ends = endsOf(view), change = ends[1] - ends[0], of = data.lanes.ipus.length > 1 ? `${data.lanes.ipus.length} IPUs together` : `IPU ${data.lanes.ipus[0]}`;
  const heading = `The call: ${signed(change, cyclesText)}`;
  ui.panel.replaceChildren(h("h4", {text: heading}), h("p", {class: "wb-change", text: `${signed(change, wholeText)} cycles`}), h("p", {text: `Cycles of ${of} by cause:`}),
    table([{label: "cause", as: "wb-words", mark: ({cause}) => data.lanes.paints[cause], text: ({cause}) => data.lanes.paints[cause]?.label ?? cause}, {label: "before", number: true, text: ({before}) => wholeText(before)}, {label: "after", number: true, text: ({after}) => wholeText(after)}, {label: "change", number: true, text: (row) => signed(row.change, wholeText)}], causesOf(view)),
    h("h4", {text: "Why: the largest parts"}), ...reasons(view));
  ui.announce(heading);
}

function draw(view, ...args) {
  ({tiles: drawPlan, trace: drawLanes}[view.picture] ?? drawSeries)(view, ...args);
}

const nameOf = (view, side) => view.data.labels[side === "a" ? 0 : 1];

function panel(view) {
  if (view.picture === "trace") return lanePanel(view);
  const {data, columns, ui, swapped} = view, drawn = series(view), [from, to] = sides(swapped);
  if (!drawn.length) return ui.panel.replaceChildren(h("p", {text: "Nothing is drawn on this IPU."}));
  const moved = view.picture !== "liveness" ? changes(drawn.before, drawn.after) : null;
  if (view.chosen < 0 || view.chosen >= drawn.length) {
    view.chosen = moved ? moved.reduce((best, value, i) => (Math.abs(value) > Math.abs(moved[best]) ? i : best), 0) : drawn.after.reduce((best, value, i) => (value > drawn.after[best] ? i : best), 0);
  }
  const rows = [["before", from, drawn.before], ["after", to, drawn.after]].map(([label, side, values]) => {
    const i = drawn.at(values, view.chosen), step = moved ? "" : `step ${columns[`${side}_step`][i] === undefined ? "none" : wholeText(columns[`${side}_step`][i])}: ${data.strings[columns[`${side}_name`][i]] ?? ""}`;
    return {label, of: nameOf(view, side), value: values[i] ?? 0, step};
  });
  const change = rows[1].value - rows[0].value, heading = moved ? `Tile ${wholeText(view.chosen)} of IPU ${data.ipu}` : `Place ${wholeText(view.chosen)} of IPU ${data.ipu}`;
  ui.panel.replaceChildren(h("h4", {text: heading}), h("p", {class: "wb-change", text: [signed(change, bytesText), exactText(change, "bytes") && `(${exactText(change, "bytes")})`].filter(Boolean).join(" ")}),
    table([{label: "", text: (row) => row.label}, {label: "profile", text: (row) => row.of}, {label: "bytes", number: true, text: (row) => wholeText(row.value)}], rows),
    ...(moved ? [] : rows.map((row) => h("p", {text: `${row.label}: ${row.step}`}))),
    h("h4", {text: "Why: the largest parts"}), ...reasons(view));
  ui.announce(`${heading}: ${signed(change, bytesText)}`);
  return undefined;
}

function reasons(view) {
  const all = whyOf(view).filter(({change}) => change), parts = ["bytes", "cycles"].flatMap((unit) => all.filter((row) => row.unit === unit).sort((a, b) => Math.abs(b.change) - Math.abs(a.change)).slice(0, 4));
  return [parts.length ? table([{label: "part", as: "wb-words", text: ({layer, of}) => `${layer || NO_LAYER}, ${of}`}, {label: "change", number: true, text: ({unit, change}) => signed(change, TEXTS[unit])}], parts) : h("p", {text: "Nothing differs."})];
}

function cards(view) {
  const [from, to] = sides(view.swapped);
  view.cards.replaceChildren(...view.data.heads.map((head) => {
    const text = TEXTS[head.unit], change = head[to] - head[from], good = signed(change, text)[0] === "±" ? 0 : Math.sign(change) * head.better;
    const exact = exactText(change, head.unit);
    return h("div", {class: `wb-card ${good > 0 ? "wb-better" : good < 0 ? "wb-worse" : ""}`, "data-quantity": head.quantity, "data-change": String(change)}, h("span", {text: head.label}), h("strong", {text: signed(change, text)}),
      h("span", {text: `${text(head[from])} → ${text(head[to])}${good ? `, ${good > 0 ? "better" : "worse"}` : ""}${head.samples ? `, for ${wholeText(head.samples[from])} → ${wholeText(head.samples[to])} samples` : ""}`}), exact && h("span", {text: exact}));
  }));
}

function listed(view) {
  const {data} = view, name = view.table, number = (value) => wholeText(value);
  const tone = (change) => (change > 0 ? "wb-more-of" : change < 0 ? "wb-less-of" : "");
  let columns, rows;
  if (name === "options") {
    rows = data.options.map(([option, a, b]) => (view.swapped ? [option, b, a] : [option, a, b]));
    columns = ["option", "before", "after"].map((label, i) => ({label, text: (row) => row[i]}));
  } else if (name === "why") {
    rows = whyOf(view).filter(({change}) => change);
    columns = [{label: "layer", text: (row) => row.layer || NO_LAYER}, {label: "cause or category", text: (row) => row.of}, {label: "of", text: (row) => row.unit, wide: "80px"},
      {label: "by a change of", text: (row) => row.origin || "(none)"},
      {label: "change", number: true, wide: "140px", value: (row) => Math.abs(row.change), text: (row) => signed(row.change, TEXTS[row.unit]), tone: (row) => tone(row.change)}];
  } else {
    const {keys, amounts} = data.tables[name];
    rows = rowsOf(view, name);
    columns = [...keys.map((label, i) => ({label, text: (row) => row.keys[i] || (label === "layer" ? NO_LAYER : ""), wide: label === "ipu" ? "56px" : "30%"})), {label: "status", text: (row) => row.status, wide: "76px"},
      ...amounts.flatMap((amount, i) => ["before", "after", "change"].map((part) => ({label: `${amount.replace("temporary_bytes", "temp. bytes").replaceAll("_", " ")}, ${part}`, number: true, value: (row) => (part === "change" ? Math.abs(row.amounts[i][part]) : row.amounts[i][part]),
        text: (row) => (part === "change" ? signed(row.amounts[i][part], number) : number(row.amounts[i][part])), tone: (row) => (part === "change" ? tone(row.amounts[i][part]) : "")})))];
  }
  const order = columns.findIndex(({label}) => label.endsWith("change"));
  const choose = choice("by change", Object.entries(LABELS), name, (value) => { view.table = value; listed(view); });
  const left = data.tables[name]?.left, more = left ? h("span", {class: "wb-count", text: `the largest; ${wholeText(left)} more: .table("${name}")`}) : null;
  const made = rows.length ? grid({label: `${LABELS[name]} by change`, columns, rows, sort: {column: order, down: true}, tools: [choose, more]}).root : h("div", {}, choose, h("p", {class: "wb-empty", text: "Nothing differs."}));
  view.list.replaceChildren(made);
}

function furnish(view) {
  const {data, ui, model} = view, swap = () => { view.swapped = !view.swapped; view.chosen = -1; furnish(view); };
  const ask = (place, ipu) => model.send?.({place, ipu}), live = model.get("live");
  const pictures = {liveness: "Liveness", memory: "Memory", tiles: "Tile map", trace: "Trace"};
  ui.say(data.sentences[view.swapped ? 1 : 0]);
  ui.tools.replaceChildren(...[
    ...Object.entries(pictures).map(([name, text]) => button(text, () => show(view, name), {"aria-pressed": String(view.picture === name)})),
    live && data.others.length > 1 && choice("against", data.others.map((label, i) => [String(i + 1), label]), String(data.place), (value) => ask(Number(value), data.ipu)),
    live && data.ipus > 1 && choice("IPU", [...Array(data.ipus).keys()].map((ipu) => [String(ipu), `IPU ${ipu}`]), String(data.ipu), (value) => ask(data.place, Number(value))),
    button("Swap", swap, {title: "Key: s"}),
  ].filter(Boolean));
  view.swap = swap;
  const [from, to] = sides(view.swapped);
  ui.legend.replaceChildren(...(view.picture === "trace" ? data.lanes.causes.map((paint) => h("span", {class: "wb-key"}, swatch(paint), h("span", {text: paint.label}))) : view.picture === "tiles" ? [h("span", {text: "orange +: more bytes after; blue −: fewer"})] : [h("span", {text: `filled: after, ${nameOf(view, to)}`}), h("span", {text: `dashed line: before, ${nameOf(view, from)}`})]));
  ui.setTable(() => {
    const drawn = series({...view, picture: "memory"}), moved = changes(drawn.before, drawn.after), tiles = [...moved.keys()];
    return grid({label: "Bytes of every tile", rows: tiles, columns: [{label: "tile", number: true, value: (i) => i, text: String}, {label: "before (bytes)", number: true, value: (i) => drawn.before[i] ?? 0, text: (i) => wholeText(drawn.before[i] ?? 0)},
      {label: "after (bytes)", number: true, value: (i) => drawn.after[i] ?? 0, text: (i) => wholeText(drawn.after[i] ?? 0)}, {label: "change (bytes)", number: true, value: (i) => Math.abs(moved[i]), text: (i) => signed(moved[i], wholeText)}], sort: {column: 3, down: true}}).root;
  });
  Object.assign(view.at, {from: 0, to: spanOf(view)});
  cards(view);
  panel(view);
  listed(view);
  view.canvas.redraw();
}

function show(view, picture) {
  view.picture = picture;
  view.chosen = -1;
  furnish(view);
}

const spanOf = (view) => Math.max(1, view.picture === "trace" ? Math.max(...view.data.lanes.totals) : series(view).length);

function choose(view, at) {
  if (view.picture === "trace") return;
  view.chosen = Math.max(0, Math.min(series(view).length - 1, at));
  if (view.picture !== "liveness") select(view.selection, {tile: view.chosen, ipu: view.data.ipu});
  panel(view);
  view.canvas.redraw();
}

const under = (view, px, py) => (view.picture === "tiles" ? view.tileUnder(px, py) : px < view.box.x ? -1 : Math.floor(view.x.invert(px)));

function hear(view) {
  const {canvas} = view.ui, hover = tip(view.ui.plot);
  canvas.addEventListener("keydown", (event) => {
    const rows = view.picture === "tiles" ? view.data.plan.rows : 1, by = {ArrowLeft: -rows, ArrowRight: rows, ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10}[event.key];
    const wide = view.at.to - view.at.from, aside = view.picture === "trace" && {ArrowLeft: -0.15, ArrowRight: 0.15}[event.key];
    if (aside) view.zoom.set(view.at.from + aside * wide, view.at.to + aside * wide);
    else if (by) choose(view, view.chosen + by);
    else if (event.key === "s") view.swap();
    else if ("1234".includes(event.key)) show(view, ["liveness", "memory", "tiles", "trace"][Number(event.key) - 1]);
    else { if (view.picture !== "tiles") view.zoom.key(event); return; }
    event.preventDefault();
  });
  canvas.addEventListener("pointermove", (event) => {
    if (view.picture === "trace") return hover();
    const [px, py] = place(event, canvas), at = under(view, px, py), drawn = series(view);
    if (at < 0 || at >= drawn.length) return hover();
    const before = drawn.before[drawn.at(drawn.before, at)] ?? 0, after = drawn.after[drawn.at(drawn.after, at)] ?? 0;
    return hover(px, py, [`${view.picture === "liveness" ? "Place" : "Tile"} ${at}: ${signed(after - before, bytesText)}`, `${bytesText(before)} before, ${bytesText(after)} after`]);
  });
  canvas.addEventListener("pointerleave", () => hover());
}

async function render({model, el}) {
  const view = {model, selection: await selectionOf(model), at: {from: 0, to: 1}, picture: "liveness", table: "operators", swapped: false, chosen: -1};
  const load = () => { view.data = model.get("data"); view.columns = unpack(view.data.layout, model.get("buffer")); view.chosen = -1; };
  load();
  const ui = (view.ui = frame(el, {title: "Comparison", sentence: view.data.sentences[0], side: true, height: 380}));
  view.cards = h("div", {class: "wb-cards wb-deltas"});
  view.list = h("div", {class: "wb-listed"});
  ui.root.insertBefore(view.cards, ui.legend);
  ui.root.insertBefore(view.list, ui.root.querySelector("details"));
  view.box = {x: LEFT, y: TOP, w: 1, h: 1};
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.zoom = panZoom(ui.canvas, view.at, {span: () => [0, spanOf(view)], least: () => Math.min(view.picture === "trace" ? 50 : 4, spanOf(view)), area: () => view.box, moved: () => view.canvas.redraw(),
    pick: (px, py) => { const at = view.picture === "trace" ? -1 : under(view, px, py); if (at >= 0) choose(view, at); ui.canvas.focus(); }});
  hear(view);
  furnish(view);
  const off = watch(model, ["data"], () => { load(); furnish(view); });
  return () => { off(); view.canvas.dispose(); };
}

export default {render};
