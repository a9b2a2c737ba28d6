// A floor plan looked at closely: enlarged by wheel, double click, buttons and keys, moved by drag, never beyond its edges.
import {button, place} from "./kernel.js";

const MOST = 24, FAR = 3, CELL = 120; // a cell is enlarged to so many pixels at most

// A glass of so many times that shows (x, y) of the whole, both in 0 to 1, at its upper left; kept within the whole.
export function clampGlass({zoom, x, y}) {
  const by = Math.max(1, Math.min(MOST, zoom)), most = 1 - 1 / by;
  return {zoom: by, x: Math.max(0, Math.min(most, x)), y: Math.max(0, Math.min(most, y))};
}

// The glass enlarged by a factor about a point of what is in view, in 0 to 1 of its sides.
export function enlarge(glass, factor, [px, py]) {
  const {zoom} = clampGlass({...glass, zoom: glass.zoom * factor});
  return clampGlass({zoom, x: glass.x + px * (1 / glass.zoom - 1 / zoom), y: glass.y + py * (1 / glass.zoom - 1 / zoom)});
}

// The glass moved as little as brings a box of the whole into view.
export function reveal(glass, {x, y, w, h}) {
  const wide = 1 / glass.zoom, near = (from, low, size) => (low < from ? low : low + size > from + wide ? low + size - wide : from);
  return clampGlass({...glass, x: near(glass.x, x, w), y: near(glass.y, y, h)});
}

// A floor as the glass shows it, in the same place of the picture.
export function magnified(floor, {zoom, x, y}) {
  if (zoom === 1) return {...floor, zoom};
  const {x0, y0, right, bottom} = floor, left = x * (right - x0), top = y * (bottom - y0);
  const at = (tile) => { const box = floor.at(tile); return {x: x0 + (box.x - x0 - left) * zoom, y: y0 + (box.y - y0 - top) * zoom, w: box.w * zoom, h: box.h * zoom}; };
  const under = (px, py) => (px < x0 || py < y0 || px > right || py > bottom ? -1 : floor.under(x0 + left + (px - x0) / zoom, y0 + top + (py - y0) / zoom));
  return {...floor, at, under, zoom, cell: {w: floor.cell.w * zoom, h: floor.cell.h * zoom}};
}

// Gives a canvas whose whole floor is `whole()` a glass: `view.glass`; `redraw` after it has moved. {keys, tools, see, dragged}
export function magnifier(canvas, view, whole, redraw) {
  let drag = null, dragged = false;
  view.glass = {zoom: 1, x: 0, y: 0};
  const set = (glass) => { view.glass = clampGlass(glass); redraw(); canvas.zoomed.heard(); };
  const part = (event) => { const {x0, y0, right, bottom} = whole(), [px, py] = place(event, canvas); return [(px - x0) / (right - x0), (py - y0) / (bottom - y0)].map((value) => Math.max(0, Math.min(1, value))); };
  canvas.zoomed = {heard: () => {}, get: () => [view.glass.x, view.glass.x + 1 / view.glass.zoom, view.glass.y], set: (from, to, y) => set({zoom: 1 / (to - from), x: from, y})};
  const by = (factor, about = [0.5, 0.5]) => set(enlarge(view.glass, Math.min(factor, Math.max(1, CELL / whole().cell.w) / view.glass.zoom), about));
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    by(Math.exp(-event.deltaY * 0.002), part(event));
  }, {passive: false});
  canvas.addEventListener("dblclick", (event) => by(2, part(event)));
  canvas.addEventListener("pointerdown", (event) => { dragged = false; drag = {x: event.clientX, y: event.clientY, glass: view.glass}; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag || drag.glass.zoom === 1) return;
    const {x0, y0, right, bottom} = whole(), dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    dragged ||= Math.hypot(dx, dy) > FAR;
    if (dragged) set({...drag.glass, x: drag.glass.x - dx / (right - x0) / drag.glass.zoom, y: drag.glass.y - dy / (bottom - y0) / drag.glass.zoom});
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { drag = null; });
  const own = {"+": () => by(1.6), "=": () => by(1.6), "-": () => by(1 / 1.6), "0": () => set({zoom: 1, x: 0, y: 0})};
  return {
    keys: (event) => { if (!own[event.key] || event.ctrlKey || event.metaKey) return false; event.preventDefault(); own[event.key](); return true; },
    tools: () => [button("+", own["+"], {"aria-label": "Zoom in", title: "Key: +"}), button("−", own["-"], {"aria-label": "Zoom out", title: "Key: -"}), button("Whole plan", own["0"], {title: "Key: 0"})],
    see: (tile) => { const {x0, y0, right, bottom, at} = whole(), box = at(tile), w = right - x0, h = bottom - y0; if (view.glass.zoom > 1) set(reveal(view.glass, {x: (box.x - x0) / w, y: (box.y - y0) / h, w: box.w / w, h: box.h / h})); },
    dragged: () => dragged,
  };
}
