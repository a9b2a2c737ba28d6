import {axisX, axisY, bytesText, frame, h, hatch, panZoom, place, scale, selectionOf, shortText, surface, swatch, ticks, tip, unpack, watch, wholeText} from "../kit/kernel.js";
import {bytesOfTile, chooseTile, ipuChoice, ipuOf, tileOf, tilePanel, tileTable, totals} from "../kit/tiles.js";

const LEFT = 78, TOP = 16, BELOW = 42;

// The tile drawn in each pixel column: the fullest of those that fall into it.
export function columnsOf(sums, from, to, width) {
  const found = [], each = (to - from) / width;
  if (each <= 1) {
    for (let tile = Math.floor(from); tile < Math.min(sums.length, Math.ceil(to)); tile++) found.push([tile, tile, tile + 1]);
    return found;
  }
  for (let pixel = 0; pixel < width; pixel++) {
    const first = Math.max(0, Math.floor(from + pixel * each)), last = Math.min(sums.length, Math.ceil(from + (pixel + 1) * each));
    let best = first;
    for (let tile = first + 1; tile < last; tile++) if (sums[tile] > sums[best]) best = tile;
    if (best < sums.length) found.push([best, from + pixel * each, from + (pixel + 1) * each]);
  }
  return found;
}

function draw(view, ctx, width, height, t) {
  const {data, columns, at, hidden} = view, ipu = ipuOf(view);
  const box = (view.box = {x: LEFT, y: TOP, w: width - LEFT - 14, h: height - TOP - BELOW});
  const x = (view.x = scale(at.from, at.to, box.x, box.x + box.w)), sums = totals(view, ipu, hidden);
  const most = sums.reduce((a, b) => Math.max(a, b), 0), drawn = most > 0.35 * data.capacity_bytes;
  const top = (drawn ? Math.max(most, data.capacity_bytes) : most || 1) * 1.08, y = scale(0, top, box.y + box.h, box.y);
  axisY(ctx, t, box, y, ticks(0, top, box.h / 44, true), (value) => shortText(bytesText(value)), "bytes per tile");
  ctx.save();
  ctx.beginPath();
  ctx.rect(box.x, box.y - 10, box.w, box.h + 10);
  ctx.clip();
  const bars = columnsOf(sums, at.from, at.to, Math.floor(box.w)), base = new Float64Array(bars.length);
  data.categories.forEach((category, c) => {
    if (hidden.has(c)) return;
    ctx.fillStyle = hatch(ctx, category.pattern, category.colour, t.paper);
    const from = (c * data.ipus + ipu) * data.tiles;
    bars.forEach(([tile, left, right], i) => {
      const bytes = columns.bytes[from + tile], low = base[i];
      if (!bytes) return;
      const x0 = x(left), wide = x(right) - x0;
      ctx.fillRect(x0, y(low + bytes), Math.max(0.7, wide - (wide > 4 ? 1 : 0)), y(low) - y(low + bytes) + (wide > 4 ? 0 : 0.3));
      base[i] = low + bytes;
    });
  });
  capacity(view, ctx, box, y, t, drawn);
  const tile = tileOf(view), centre = x(tile + 0.5);
  ctx.fillStyle = t.accent;
  ctx.beginPath();
  ctx.moveTo(centre - 6, box.y - 9);
  ctx.lineTo(centre + 6, box.y - 9);
  ctx.lineTo(centre, box.y);
  ctx.fill();
  ctx.globalAlpha = 0.6;
  ctx.fillRect(centre - 0.5, box.y, 1, Math.max(0, y(sums[tile]) - box.y));
  ctx.restore();
  const shown = [...new Set(ticks(at.from, at.to, Math.min(box.w / 90, at.to - at.from)).map(Math.round))].filter((value) => value < data.tiles);
  axisX(ctx, t, box, (value) => x(value + 0.5), shown, wholeText, `tile of IPU ${ipu}`);
}

function capacity({data}, ctx, box, y, t, drawn) {
  ctx.font = `600 11px ${t.font}`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  if (!drawn) {
    ctx.fillStyle = t.muted;
    ctx.fillText(`capacity ${bytesText(data.capacity_bytes)}, far above`, box.x + box.w - 4, box.y + 12);
    return;
  }
  const level = Math.round(y(data.capacity_bytes));
  ctx.fillStyle = t.bad;
  for (let dash = box.x; dash < box.x + box.w; dash += 12) ctx.fillRect(dash, level - 1, 8, 2);
  const text = `capacity ${bytesText(data.capacity_bytes)}`, wide = ctx.measureText(text).width;
  ctx.globalAlpha = 0.85;
  ctx.fillStyle = t.paper;
  ctx.fillRect(box.x + box.w - wide - 8, level - 19, wide + 8, 16);
  ctx.globalAlpha = 1;
  ctx.fillStyle = t.bad;
  ctx.fillText(text, box.x + box.w - 4, level - 4);
}

function legend(view) {
  const {data, ui, hidden} = view;
  ui.legend.replaceChildren(...data.categories.map((category, c) => {
    const key = h("button", {type: "button", class: "wb-key", "aria-pressed": String(!hidden.has(c)), title: "show or hide", onclick: () => {
      if (!hidden.delete(c)) hidden.add(c);
      key.setAttribute("aria-pressed", String(!hidden.has(c)));
      view.canvas.redraw();
    }}, swatch(category), h("span", {text: category.label}));
    return key;
  }));
}

function hover(view, show) {
  const {canvas} = view.ui;
  canvas.addEventListener("pointermove", (event) => {
    const [px, py] = place(event, canvas), tile = Math.floor(view.x.invert(px));
    if (px < view.box.x || tile < 0 || tile >= view.data.tiles) return show();
    const bytes = bytesOfTile(view, ipuOf(view), tile), sum = bytes.reduce((a, b) => a + b, 0);
    const rows = bytes.map((_, c) => c).filter((c) => bytes[c]).sort((a, b) => bytes[b] - bytes[a]).slice(0, 4);
    return show(px, py, [`Tile ${tile}: ${bytesText(sum)}`, ...rows.map((c) => `${view.data.categories[c].label} ${bytesText(bytes[c])}`)]);
  });
  canvas.addEventListener("pointerleave", () => show());
}

function keys(view) {
  view.ui.canvas.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: -64, PageDown: 64}[event.key];
    if (!by) return view.zoom.key(event);
    const tile = Math.max(0, Math.min(view.data.tiles - 1, tileOf(view) + by)), wide = view.at.to - view.at.from;
    if (tile < view.at.from || tile >= view.at.to) view.zoom.set(tile - wide / 2, tile + wide / 2);
    chooseTile(view, tile);
    return event.preventDefault();
  });
}

function load(view, model) {
  view.data = model.get("data");
  view.columns = unpack(view.data.layout, model.get("buffer"));
  Object.assign(view.at, {from: 0, to: view.data.tiles});
}

function furnish(view) {
  view.ui.say(view.data.sentence);
  view.ui.tools.replaceChildren(...[ipuChoice(view)].filter(Boolean));
  legend(view);
  view.ui.setTable(() => tileTable(view));
  tilePanel(view);
}

async function render({model, el}) {
  const view = {selection: await selectionOf(model), hidden: new Set(), at: {}};
  load(view, model);
  const ui = (view.ui = frame(el, {title: "Memory", sentence: view.data.sentence, side: true, height: 340}));
  view.canvas = surface(ui.canvas, (...args) => draw(view, ...args));
  view.zoom = panZoom(ui.canvas, view.at, {span: () => [0, view.data.tiles], least: () => Math.min(4, view.data.tiles), area: () => view.box,
    moved: () => view.canvas.redraw(), pick: (px) => {
      const reach = Math.max(0, view.x.invert(px)), wide = view.x(1) - view.x(0), sums = totals(view, ipuOf(view), view.hidden);
      const shown = wide < 1 ? columnsOf(sums, view.at.from, view.at.to, Math.floor(view.box.w))[Math.floor(px - view.box.x)] : null;
      chooseTile(view, shown ? shown[0] : Math.floor(reach));
    }});
  hover(view, tip(ui.plot));
  keys(view);
  furnish(view);
  const offs = [
    watch(model, ["data"], () => { load(view, model); furnish(view); view.canvas.redraw(); }),
    watch(view.selection, ["tile", "ipu"], () => { furnish(view); view.canvas.redraw(); }),
  ];
  return () => { offs.forEach((off) => off()); view.canvas.dispose(); };
}

export default {render};
