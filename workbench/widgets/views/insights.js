import {OWN_KEYS, axisX, axisY, button, bytesText, copyFrom, h, scale, select, selectionOf, shortText, surface, table, ticks, tip, place, watch, wholeText, thingsText} from "../kit/kernel.js";

// The bin of a histogram that a number of bytes falls into; -1 for none.
export const binOf = (bins, bytes) => bins.findIndex(([low, high], i) => low <= bytes && (bytes < high || (i === bins.length - 1 && bytes <= high)));

function draw(view, ctx, width, height, t) {
  const {histogram: bins, capacity_bytes: capacity} = view.data, highest = bins.reduce((most, [, , tiles]) => Math.max(most, tiles), 1);
  const box = (view.box = {x: 62, y: 8, w: width - 76, h: height - 52});
  const x = (view.x = scale(0, bins.at(-1)[1], box.x, box.x + box.w)), y = scale(0, highest * 1.06, box.y + box.h, box.y);
  axisY(ctx, t, box, y, ticks(0, highest * 1.06, box.h / 34).filter(Number.isInteger), wholeText, "tiles");
  bins.forEach(([low, high, tiles], i) => {
    ctx.fillStyle = low >= capacity ? t.bad : t.accent;
    ctx.globalAlpha = i === view.bin ? 1 : 0.75;
    ctx.fillRect(x(low) + 1, y(tiles), Math.max(1, x(high) - x(low) - 2), y(0) - y(tiles));
  });
  ctx.globalAlpha = 1;
  ctx.fillStyle = t.bad;
  for (let dash = box.y; dash < box.y + box.h; dash += 12) ctx.fillRect(Math.round(x(capacity)) - 2, dash, 2, 8);
  axisX(ctx, t, box, x, ticks(0, bins.at(-1)[1], box.w / 90, true), (value) => shortText(bytesText(value)), "bytes at the tile's fullest step; dashed: the end of a tile");
}

const where = ({ipu, tile}) => `tile ${wholeText(tile)} of IPU ${ipu}`;

function tipCard(view, {text, about}) {
  const named = Object.keys(about).length > 0, told = h("p", {text}), copied = (event) => copyFrom(told, (done) => { event.target.textContent = done; });
  return h("li", {class: "wb-card wb-tipped"}, told, h("div", {class: "wb-tools"},
    named && button("Show", () => choose(view, about), {"aria-label": `Show in the other views: ${text}`}), button("Copy", copied, {"aria-label": `Copy: ${text}`})));
}

function choose(view, about) {
  select(view.selection, about);
  view.live.textContent = `Chosen: ${Object.entries(about).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${value}`).join(", ")}`;
}

const part = (title, ...content) => h("section", {class: "wb-card"}, h("h4", {text: title}), ...content);
const list = (title, columns, rows, options) => part(title, h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": title}, rows.length ? table(columns, rows, {fixed: true, ...options}) : h("p", {text: "None."})));

function bytesColumn(rows) {
  const most = rows.reduce((high, row) => Math.max(high, row.bytes), 1);
  return {label: "bytes", number: true, wide: "96px", text: (row) => wholeText(row.bytes), bar: (row) => row.bytes / most};
}

function variables(view, title, rows, more = []) {
  return list(title, [{label: "variable", text: ({name}) => name}, ...more, bytesColumn(rows)], rows, {chosen: ({id}) => id === view.selection.get("variable"), pick: ({id, layer}) => choose(view, {variable: id, layer: layer || null})});
}

function lists(view) {
  const {data} = view, {peak} = data, at = {ipu: peak.ipu, tile: peak.tile};
  const tile = {chosen: (row) => row.tile === view.selection.get("tile") && row.ipu === view.selection.get("ipu"), pick: ({ipu, tile: number}) => choose(view, {ipu, tile: number})};
  const largest = variables(view, "Largest variables over all tiles", data.variables, [{label: "used by", text: ({used_by: used}) => used || "nothing"}]);
  largest.classList.add("wb-broad");
  return [
    largest,
    list(`At the peak, on ${where(peak)}`, [{label: "category", mark: ({mark}) => mark, text: ({mark}) => mark.label}, bytesColumn(peak.categories)], peak.categories, {pick: () => choose(view, {...at, step: peak.step})}),
    variables(view, "Live there at the peak", peak.variables),
    list("Fullest tiles", [{label: "tile", text: where}, bytesColumn(data.highest_tiles)], data.highest_tiles, tile),
    list("Largest code and state of a tile", [{label: "kind", mark: ({mark}) => mark, text: ({mark}) => mark.label}, {label: "tile", text: where}, bytesColumn(data.code)], data.code, tile),
  ];
}

async function render({model, el}) {
  const view = {data: model.get("data"), selection: await selectionOf(model), bin: -1, live: h("div", {class: "wb-hidden", "aria-live": "polite"})};
  const {data} = view, canvas = h("canvas", {class: "wb-canvas", role: "img", tabindex: 0, "aria-label": `Tiles by the bytes they need; ${data.sentence}`, style: {height: "190px"}}), plot = h("div", {class: "wb-plot"}, canvas);
  const cards = h("div", {class: "wb-insight-cards"});
  const tips = data.tips.length ? h("ul", {class: "wb-tip-list", "aria-label": "Tips"}, ...data.tips.map((each) => tipCard(view, each))) : h("p", {class: "wb-card", text: "No tips: nothing takes a fifth of a tile or of the cycles."});
  el.replaceChildren(h("section", {class: "wb wb-insights", "aria-label": "Insights", ...OWN_KEYS}, h("header", {class: "wb-head"}, h("h3", {text: "Insights"}), h("p", {class: "wb-said", text: data.sentence})),
    tips, h("section", {class: "wb-card"}, h("h4", {text: "How full the tiles are"}), plot), cards, view.live));
  const drawn = surface(canvas, (...args) => draw(view, ...args)), show = tip(plot);
  const say = (bin, px, py) => {
    view.bin = bin;
    drawn.redraw();
    if (bin < 0) return show();
    const [low, high, tiles] = data.histogram[bin], text = thingsText(tiles, "tile"), range = `need ${bytesText(low)} to ${bytesText(high)}`;
    view.live.textContent = `${text} ${range}`;
    return show(px ?? view.x((low + high) / 2), py ?? 40, [text, range]);
  };
  canvas.addEventListener("pointermove", (event) => { const [px, py] = place(event, canvas); say(binOf(data.histogram, view.x.invert(px)), px, py); });
  canvas.addEventListener("pointerleave", () => say(-1));
  canvas.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by) return;
    event.preventDefault();
    say(Math.max(0, Math.min(data.histogram.length - 1, view.bin + by)));
  });
  const fill = () => cards.replaceChildren(...lists(view));
  fill();
  const off = watch(view.selection, ["variable", "tile", "ipu"], fill);
  return () => { off(); drawn.dispose(); };
}

export default {render};
