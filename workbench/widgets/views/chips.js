import {bytesText, cyclesText, font, frame, h, hatch, percentText, place, select, selectionOf, surface, swatch, table, tip, unpack, watch, wholeText} from "../kit/kernel.js";

const LEFT = 8, TOP = 6, HIGH = 44, LINE = 62;

// Rows and columns of so many IPUs in a width: as many in a row as there is room for, at most `most`.
export function placed(count, width, most) {
  const across = Math.max(1, Math.min(count, most, Math.floor((width - 2 * LEFT) / 18)));
  return {across, lines: Math.ceil(count / across), wide: Math.min(72, (width - 2 * LEFT) / across)};
}

// The IPU under a place, or -1.
export function under({across, wide}, count, px, py) {
  const column = Math.floor((px - LEFT) / wide), line = Math.floor((py - TOP) / LINE), ipu = line * across + column;
  return column < 0 || column >= across || line < 0 || ipu >= count ? -1 : ipu;
}

export const shares = ({data, columns}, ipu) => ({memory: columns.bytes[ipu] / data.capacity_bytes, waiting: columns.waiting[ipu] / Math.max(1, data.total_cycles)});

const chosenOf = ({data, columns, selection}) => { const ipu = selection.get("ipu"); return ipu === null || ipu === undefined || ipu >= columns.bytes.length ? data.ipu : ipu; };

function draw(view, ctx, width, height, t) {
  const {data, columns} = view, count = columns.bytes.length, grid = (view.grid = placed(count, width, data.per_row)), {across, wide} = grid, chosen = chosenOf(view);
  font(ctx, t, 10);
  ctx.textBaseline = "top";
  ctx.textAlign = "center";
  for (let ipu = 0; ipu < count; ipu++) {
    const x = LEFT + (ipu % across) * wide, y = TOP + Math.floor(ipu / across) * LINE, {memory, waiting} = shares(view, ipu), w = wide - 3;
    ctx.fillStyle = t.line;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(x, y, w, HIGH);
    ctx.globalAlpha = 1;
    const tall = HIGH * Math.min(1, memory), idle = HIGH * Math.min(1, waiting);
    ctx.fillStyle = memory > 1 ? data.bad : data.paints.memory.colour;
    ctx.fillRect(x, y + HIGH - tall, w * 0.6, tall);
    ctx.fillStyle = hatch(ctx, data.paints.waiting.pattern, data.paints.waiting.colour, t.paper);
    ctx.fillRect(x + w * 0.64, y + HIGH - idle, w * 0.36, idle);
    ctx.fillStyle = ipu === chosen ? t.text : t.muted;
    if (wide > 17 || ipu % 4 === 0) ctx.fillText(wide > 44 ? `IPU ${ipu}` : String(ipu), x + w / 2, y + HIGH + 3);
    if (ipu !== chosen) continue;
    ctx.strokeStyle = t.text;
    ctx.lineWidth = 2;
    ctx.strokeRect(x - 1, y - 1, w + 2, HIGH + 2);
  }
}

function tell(view) {
  const {data, columns, ui} = view, ipu = chosenOf(view), {memory, waiting} = shares(view, ipu), stages = data.stages[ipu];
  const text = `IPU ${ipu}${stages ? `, stage ${stages}` : ""}: tile ${wholeText(columns.tile[ipu])} is its fullest, ${bytesText(columns.bytes[ipu])}, ${percentText(memory)} of a tile; it waits ${cyclesText(columns.waiting[ipu])}, ${percentText(waiting)} of the call`;
  view.text.textContent = text;
  return text;
}

function choose(view, ipu) {
  const count = view.columns.bytes.length;
  select(view.selection, {ipu: Math.max(0, Math.min(count - 1, ipu)), tile: null});
  view.ui.announce(tell(view));
  view.canvas.redraw();
}

function hear(view) {
  const {ui} = view, say = tip(ui.plot), here = (event) => under(view.grid, view.columns.bytes.length, ...place(event, ui.canvas));
  ui.canvas.addEventListener("keydown", (event) => {
    const {across} = view.grid, by = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across}[event.key], to = by ? chosenOf(view) + by : {Home: 0, End: Infinity}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(view, to);
  });
  ui.canvas.addEventListener("click", (event) => { const ipu = here(event); ui.canvas.focus(); if (ipu >= 0) choose(view, ipu); });
  ui.canvas.addEventListener("pointermove", (event) => {
    const ipu = here(event), [px, py] = place(event, ui.canvas);
    if (ipu < 0) return say();
    const {memory, waiting} = shares(view, ipu);
    return say(px, py, [`IPU ${ipu}${view.data.stages[ipu] ? `, stage ${view.data.stages[ipu]}` : ""}`, `fullest tile ${percentText(memory)} full`, `waits ${percentText(waiting)} of the call`]);
  });
  ui.canvas.addEventListener("pointerleave", () => say());
}

async function render({model, el}) {
  const data = model.get("data"), columns = unpack(data.layout, model.get("buffer")), count = columns.bytes.length;
  const view = {model, data, columns, selection: await selectionOf(model)}, ui = (view.ui = frame(el, {title: "IPUs", sentence: data.sentence, height: TOP + LINE}));
  view.text = h("p", {class: "wb-chip-said"});
  ui.plot.append(view.text);
  ui.legend.replaceChildren(...Object.values(data.paints).map((paint) => h("span", {class: "wb-key"}, swatch(paint), h("span", {text: paint.label === data.paints.waiting.label ? "waiting, share of the call" : "fullest tile, share of its memory"}))));
  ui.setTable(() => table([{label: "IPU", number: true, text: (ipu) => String(ipu)}, {label: "stages", text: (ipu) => data.stages[ipu]}, {label: "fullest tile", number: true, text: (ipu) => wholeText(columns.tile[ipu])}, {label: "its bytes", number: true, text: (ipu) => wholeText(columns.bytes[ipu])},
    {label: "waiting (cycles)", number: true, text: (ipu) => wholeText(columns.waiting[ipu])}], [...Array(count).keys()], {pick: (ipu) => choose(view, ipu), chosen: (ipu) => ipu === chosenOf(view)}));
  const fit = () => { ui.canvas.style.height = `${TOP + LINE * placed(count, ui.canvas.clientWidth || 900, data.per_row).lines}px`; };
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args), fit);
  fit();
  hear(view);
  tell(view);
  const off = watch(view.selection, ["ipu"], () => { tell(view); view.canvas.redraw(); });
  return () => { off(); view.canvas.dispose(); };
}

export default {render};
