// The floor plan: where each tile stands in a box, and how numbers of tiles are painted on it.
import {clipText, font, shortText, textsApart, ticks, wholeText} from "./kernel.js";

// Tile numbers run down the rows, column by column.
export const cellOf = ({rows}, tile) => ({column: Math.floor(tile / rows), row: tile % rows});

export function tileAt({rows, columns}, column, row, tiles) {
  const tile = column * rows + row;
  return column < 0 || row < 0 || column >= columns || row >= rows || tile >= tiles ? -1 : tile;
}

const channelsOf = new WeakMap(); // of lists of stops: a picture asks for thousands of colours

// Colour of a part between 0 and 1 on a list of "#rrggbb" stops.
export function rampColour(stops, part) {
  let channels = channelsOf.get(stops);
  if (!channels) channelsOf.set(stops, (channels = stops.map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)))));
  const place = Math.max(0, Math.min(1, part)) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(place));
  const from = channels[low], to = channels[low + 1];
  return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * (place - low))).join()})`;
}

// The tile that a key leads to: -1 beyond the edge, -2 for another key.
export function tileByKey(plan, tiles, tile, key) {
  const {column, row} = cellOf(plan, tile), by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[key];
  return key === "Home" ? 0 : key === "End" ? tiles - 1 : by ? tileAt(plan, column + by[0], row + by[1], tiles) : -2;
}

// Where tiles stand from (x, y) on: {at(tile), under(px, py), cell}; of a plan {columns, rows, lanes}.
export function floor(plan, tiles, x0, y0, width, height) {
  const gap = plan.lanes > 1 ? 3 : 0, groups = Math.ceil(plan.columns / plan.lanes);
  const wide = (width - (groups - 1) * gap) / plan.columns, high = height / plan.rows;
  const cell = {w: Math.min(wide, high * 2.2, 64), h: Math.min(high, wide * 2.2, 64)};
  const group = plan.lanes * cell.w + gap;
  const at = (tile) => {
    const {column, row} = cellOf(plan, tile);
    return {x: x0 + column * cell.w + Math.floor(column / plan.lanes) * gap, y: y0 + row * cell.h, ...cell};
  };
  const under = (px, py) => {
    const inside = (((px - x0) % group) + group) % group;
    const column = Math.floor((px - x0) / group) * plan.lanes + Math.floor(inside / cell.w);
    return inside >= plan.lanes * cell.w ? -1 : tileAt(plan, column, Math.floor((py - y0) / cell.h), tiles);
  };
  const last = at((plan.columns - 1) * plan.rows);
  return {at, under, cell, plan, tiles, x0, y0, right: last.x + cell.w, bottom: y0 + plan.rows * cell.h};
}

const SHADES = 1024, shadesOf = new WeakMap();

// The colours of a ramp as pixels: a picture is painted from them without a text for each tile.
export function shades(stops) {
  let found = shadesOf.get(stops);
  if (!found) {
    const bytes = new Uint8ClampedArray(4 * SHADES);
    for (let i = 0; i < SHADES; i++) bytes.set([...rampColour(stops, i / (SHADES - 1)).match(/\d+/g).map(Number), 255], 4 * i);
    shadesOf.set(stops, (found = new Uint32Array(bytes.buffer)));
  }
  return found;
}

// The pixels of a floor, a tile each, in rows of columns; where there is no tile they are clear.
export function pixels({columns, rows}, values, ramp, low, high) {
  const found = new Uint32Array(columns * rows), colours = shades(ramp), factor = high > low ? (SHADES - 1) / (high - low) : 0;
  for (let tile = 0; tile < values.length; tile++) {
    const value = values[tile], part = factor ? (value - low) * factor : value ? SHADES - 1 : 0;
    found[(tile % rows) * columns + Math.floor(tile / rows)] = colours[Math.max(0, Math.min(SHADES - 1, Math.round(part)))];
  }
  return found;
}

let sheet = null; // where pixels become an image, for all floors in turn

// The cells, coloured between low and high: one image, enlarged, and the gaps between columns and rows cut out of it.
export function paint(ctx, {at, cell, plan, x0, y0, right, bottom}, values, ramp, low, high) {
  const {columns, rows, lanes} = plan, gap = cell.w > 5 ? 1 : 0.4;
  sheet ??= document.createElement("canvas");
  Object.assign(sheet, {width: columns, height: rows});
  sheet.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(pixels(plan, values, ramp, low, high).buffer), columns, rows), 0, 0);
  ctx.save();
  ctx.beginPath();
  ctx.rect(x0, y0, right - x0, bottom - y0);
  ctx.clip();
  ctx.imageSmoothingEnabled = false;
  for (let first = 0; first < columns; first += lanes) {
    const {x, y} = at(first * rows), wide = Math.min(lanes, columns - first);
    ctx.drawImage(sheet, first, 0, wide, rows, x, y, wide * cell.w, rows * cell.h);
  }
  for (let column = 0; column < columns; column++) ctx.clearRect(at(column * rows).x + cell.w - gap, y0, gap, bottom - y0);
  for (let row = 0; row < rows; row++) ctx.clearRect(x0, at(row).y + cell.h - gap, right - x0, gap);
  ctx.restore();
}

// A frame around the chosen tile.
export function mark(ctx, t, {at}, tile) {
  const {x, y, w, h} = at(tile);
  for (const [colour, wide] of [[t.paper, 4], [t.bad, 2]]) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = wide;
    ctx.strokeRect(x - 2, y - 2, w + 3, h + 3);
  }
}

// The number of each column's first tile over it, and each tile's in its cell where there is room; of large cells the value too.
export function numbers(ctx, t, {at, cell, plan, tiles, x0, y0, right = Infinity, bottom, zoom = 1}, values, text) {
  font(ctx, t, 10);
  ctx.fillStyle = t.muted;
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  const every = cell.w > 34 ? 1 : Math.max(plan.lanes, Math.ceil(34 / cell.w));
  for (let column = 0; column < plan.columns; column += every) {
    const {x} = at(column * plan.rows);
    if (x >= x0 - 1 && x < right - 8) ctx.fillText(wholeText(column * plan.rows), x, y0 - 4);
  }
  ctx.save();
  ctx.translate(x0 - 22, (y0 + bottom) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = "center";
  ctx.fillText(bottom - y0 > 200 ? "tiles, in number order down each column" : "tiles", 0, 6);
  ctx.restore();
  if (!(cell.w > 26 && cell.h > 16 && (tiles <= 256 || zoom > 1))) return;
  const words = values && cell.w > 52 && cell.h > 32;
  ctx.save();
  ctx.beginPath();
  ctx.rect(x0, y0, Math.min(right, ctx.canvas.clientWidth) - x0, bottom - y0);
  ctx.clip();
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (let tile = 0; tile < tiles; tile++) {
    const {x, y, w, h: tall} = at(tile);
    if (x + w < x0 || y + tall < y0 || x > right || y > bottom) continue;
    inCell(ctx, String(tile), x + 2, y + 2, 20, Math.min(w, tall * 2));
    if (words) inCell(ctx, shortText(text(values[tile])), x + 2, y + 17, w - 6, w - 10);
  }
  ctx.restore();
}

function inCell(ctx, text, x, y, wide, most) {
  ctx.fillStyle = "#000";
  ctx.globalAlpha = 0.55;
  ctx.fillRect(x, y, wide, 13);
  ctx.globalAlpha = 1;
  ctx.fillStyle = "#fff";
  ctx.fillText(text, x + wide / 2, y + 7, most);
}

// The numbers under colours `w` wide: both ends, and of those between the ones whose text stands clear of the others'.
// Tiles hold whole bytes and take whole cycles: there is nothing between two of them to say.
export function keyMarks(low, high, w, widthOf, binary) {
  if (!(high > low)) return [high];
  const end = w - widthOf(high), found = [low];
  let free = widthOf(low);
  for (const value of ticks(low, high, 3, binary).filter(Number.isInteger)) {
    const centre = ((value - low) / (high - low)) * w, half = widthOf(value) / 2;
    if (centre - half < free + 10 || centre + half > end - 10) continue;
    found.push(value);
    free = centre + half;
  }
  return [...found, high];
}

// Those numbers with their texts: in full, with room for that, where short ones would read alike. `wide` is the width of a text.
export function keyTexts(low, high, w, wide, text, binary) {
  const marksOf = (say) => keyMarks(low, high, w, (value) => wide(say(value)), binary), short = marksOf((value) => shortText(text(value))), texts = textsApart(short, text);
  if (texts.every((said, i) => said === shortText(text(short[i])))) return short.map((value, i) => [value, texts[i]]);
  return marksOf(text.whole).map((value) => [value, text.whole(value)]);
}

// The colours with their numbers, `w` wide, and what they are under it.
export function legend(ramp, ctx, t, {low, high, text, label, binary, x: left, y, w}) {
  const colours = ctx.createLinearGradient(left, 0, left + w, 0);
  ramp.forEach((stop, i) => colours.addColorStop(i / (ramp.length - 1), stop));
  ctx.fillStyle = colours;
  ctx.fillRect(left, y, w, 10);
  font(ctx, t);
  ctx.textBaseline = "top";
  ctx.fillStyle = t.muted;
  const same = !(high > low), marks = keyTexts(low, high, w, (said) => ctx.measureText(said).width, text, binary);
  marks.forEach(([value, said], i) => {
    const part = same ? 1 : (value - low) / (high - low);
    ctx.textAlign = i === marks.length - 1 ? "right" : i ? "center" : "left";
    ctx.fillText(said, left + part * w, y + 14);
    ctx.fillRect(left + Math.min(w - 1, part * w), y + 8, 1, 5);
  });
  ctx.textAlign = "left";
  ctx.fillText(clipText(ctx, label, ctx.canvas.clientWidth - left - 8), left, y + 33);
}
