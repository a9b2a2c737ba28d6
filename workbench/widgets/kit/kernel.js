// What every view shares: quantities as text, scales, patterns, theme, canvas, pan and zoom, tables, selection.
// Names come from models people wrote, so text reaches the page through textContent only.

import {anew} from "./anew.js";

const BINARY = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const DECIMAL = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const largest = (value, steps) => steps.find(([size]) => Math.abs(value) >= size);

// Thousands, of a text of a number.
const grouped = (text) => text.replace(/\B(?=(\d{3})+(\.|$))/g, ",");

// A number below 0 has a minus sign, not a hyphen.
const minus = (text) => text.replace(/^-/, "−");

export function bytesText(value) {
  const step = largest(value, BINARY);
  return minus(step ? `${grouped((value / step[0]).toFixed(1))} ${step[1]}` : `${wholeText(value)} B`);
}

export function countText(value) {
  const step = largest(value, DECIMAL);
  return minus(step ? `${(value / step[0]).toFixed(2)} ${step[1]}` : `${Math.round(value)}`);
}

const ofCycles = (text) => `${text} ${text === "1" ? "cycle" : "cycles"}`;
export const cyclesText = (value) => ofCycles(countText(value));
export const percentText = (fraction) => minus(`${grouped((fraction * 100).toFixed(1))} %`);
export const wholeText = (value) => minus(grouped(Math.round(value).toString()));

// Each of these to the last one.
bytesText.whole = (value) => `${wholeText(value)} B`;
countText.whole = wholeText;
cyclesText.whole = (value) => ofCycles(wholeText(value));
wholeText.whole = wholeText;

// 1, "stage": "1 stage"; 1472, "tile": "1,472 tiles".
export const thingsText = (count, thing) => `${wholeText(count)} ${thing}${count === 1 ? "" : thing.endsWith("ch") ? "es" : "s"}`;

// A tick's text drops the zeros that say nothing: "128 KiB", not "128.0 KiB".
export const shortText = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

// Texts of numbers that stand beside one another: as short as they go, or to the last byte or cycle where two would read alike.
export function textsApart(values, text) {
  const short = values.map((value) => shortText(text(value)));
  return new Set(short).size === values.length ? short : values.map(text.whole);
}

export function ticks(low, high, count, binary = false) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0)) return [low];
  let step;
  if (binary) step = 2 ** Math.ceil(Math.log2(raw));
  else {
    const power = 10 ** Math.floor(Math.log10(raw));
    step = power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
  }
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) + 0; at * step <= high + step * 1e-9; at++) found.push(at * step);
  return found;
}

export function scale(d0, d1, r0, r1) {
  const factor = (r1 - r0) / (d1 - d0 || 1);
  const to = (value) => r0 + (value - d0) * factor;
  to.invert = (pixel) => d0 + (pixel - r0) / (factor || 1);
  return to;
}

// Index of the last element <= value in a sorted array, or -1.
export function lastAtMost(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The window [a, b] moved or narrowed, never outside [low, high], never narrower than `least`.
export function clampWindow(a, b, low, high, least) {
  const width = Math.min(high - low, Math.max(least, b - a));
  const middle = (a + b) / 2;
  const from = Math.min(high - width, Math.max(low, b - a < width ? middle - width / 2 : a));
  return [from, from + width];
}

const TYPES = {f8: Float64Array, f4: Float32Array, i4: Int32Array, i2: Int16Array, u1: Uint8Array};

// Columns of one buffer: [{name, type, offset, length}], offsets in bytes, aligned to 8.
export function unpack(layout, view) {
  const bytes = new Uint8Array(view.buffer ?? view, view.byteOffset ?? 0, view.byteLength).slice();
  return Object.fromEntries(layout.map(({name, type, offset, length}) =>
    [name, new TYPES[type](bytes.buffer, offset, length)]));
}

// JupyterLab asks of the element that has the focus first, so that each that can have it says that its keys are its own.
const SUPPRESS = "data-lm-suppress-shortcuts", FOCUSABLE = new Set(["input", "select", "textarea", "button", "summary"]);

export function h(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key === "style") Object.assign(node.style, value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  if (FOCUSABLE.has(tag) || typeof options.tabindex === "number") node.setAttribute(SUPPRESS, "true");
  node.append(...children.filter(Boolean));
  return node;
}

export function theme(host) {
  const style = getComputedStyle(host);
  const read = (name) => style.getPropertyValue(`--wb-${name}`).trim();
  return {text: read("text"), muted: read("muted"), line: read("line"), paper: read("paper"), accent: read("accent"),
    bad: read("bad"), good: read("good"), font: read("font") || "system-ui, sans-serif"};
}

// Patterns tell phases apart without colour; the ground is the colour, the strokes are the paper's colour.
const STROKES = {
  rising: [[0, 8, 8, 0], [-2, 2, 2, -2], [6, 10, 10, 6]], falling: [[0, 0, 8, 8], [-2, 6, 2, 10], [6, -2, 10, 2]],
  vertical: [[4, 0, 4, 8]], horizontal: [[0, 4, 8, 4]], cross: [[0, 4, 8, 4], [4, 0, 4, 8]], dots: [[3, 4, 5, 4]],
};

export function hatch(ctx, pattern, colour, paper, alpha = 0.55) {
  if (!STROKES[pattern]) return colour;
  const key = `${pattern}${colour}${paper}${alpha}`;
  const cache = (ctx.hatches ??= new Map());
  if (!cache.has(key)) {
    const tile = h("canvas", {width: 8, height: 8}), pen = tile.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 8, 8);
    pen.globalAlpha = alpha;
    pen.strokeStyle = paper;
    pen.lineWidth = pattern === "dots" ? 2 : 1.5;
    for (const [x0, y0, x1, y1] of STROKES[pattern]) {
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
    }
    cache.set(key, ctx.createPattern(tile, "repeat"));
  }
  return cache.get(key);
}

// A key's square is hatched as its picture is: the strokes are holes, through which the paper is seen in every theme.
export function swatch({colour, pattern}) {
  const canvas = h("canvas", {width: 28, height: 24, class: "wb-swatch", "aria-hidden": "true"});
  const pen = canvas.getContext("2d");
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 28, 24);
  if (STROKES[pattern]) {
    pen.globalCompositeOperation = "destination-out";
    pen.fillStyle = hatch(pen, pattern, "transparent", "#000");
    pen.fillRect(0, 0, 28, 24);
  }
  return canvas;
}

// "block3/conv2/kernel" of layer "block3/conv2" is "kernel".
export const within = (name, layer) => (layer && name.startsWith(`${layer}/`) ? name.slice(layer.length + 1) : name);

// Whether a layer is a chosen one, or lies inside it.
export const isUnder = (layer, path) => Boolean(layer && path) && (layer === path || layer.startsWith(`${path}/`));

// Stretches [from, to, name], in order, named as deep into their paths as there is room: at most `most` of them.
export function groupByPath(stretches, most, gap) {
  for (let depth = 6; depth > 0; depth--) {
    const found = [];
    for (const [from, to, name] of stretches) {
      const cut = name.split(/(?=[/_])/).slice(0, depth).join(""), open = found[found.length - 1];
      if (open && open[2] === cut && from - open[1] <= gap) open[1] = to;
      else found.push([from, to, cut]);
    }
    if (found.length <= most || depth === 1) return found;
  }
  return [];
}

// A text's beginning that fits, with its "…" measured, for no two letters are as wide; by code point, so that none is halved.
export function clipText(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  const letters = [...text], cut = (count) => `${letters.slice(0, count).join("")}…`;
  let fits = 0, over = letters.length;
  while (over - fits > 1) {
    const middle = (fits + over) >> 1;
    if (ctx.measureText(cut(middle)).width <= width) fits = middle;
    else over = middle;
  }
  return fits < 2 ? "" : cut(fits);
}

// A text in lines that fit, broken between its words.
export function textLines(ctx, text, width) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && ctx.measureText(longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// A canvas that follows its own size, the screen's density and the theme; draw(ctx, width, height, theme).
// What is out of sight gets its new colours after the attribute that names them; the transition of its own colour says when.
// JupyterLab hides itself for a frame as it changes the theme: nothing can be drawn then, and what is not laid out has no
// transition. So the colours are asked for again two frames on, and where a canvas comes into sight in others than it has.
export function surface(canvas, draw, onSize = () => {}) {
  const ctx = canvas.getContext("2d");
  let asked = 0, colours = null, drawn = null; // asking for a style makes the page settle it: in a frame that may be most of the work
  const paint = () => {
    asked = 0;
    const {clientWidth: width, clientHeight: height} = canvas, ratio = window.devicePixelRatio || 1;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    draw(ctx, width, height, (drawn = colours ??= theme(canvas)));
  };
  const redraw = () => { asked ||= requestAnimationFrame(paint); };
  const restyle = () => { ctx.hatches = colours = null; redraw(); };
  const sizes = new ResizeObserver(() => { onSize(); redraw(); });
  sizes.observe(canvas);
  const sights = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && JSON.stringify(theme(canvas)) !== JSON.stringify(drawn)) restyle();
  });
  sights.observe(canvas);
  const themes = new MutationObserver(() => {
    restyle();
    requestAnimationFrame(() => requestAnimationFrame(restyle));
  });
  themes.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light"]});
  canvas.addEventListener("transitionend", restyle);
  return {redraw, dispose: () => { sizes.disconnect(); sights.disconnect(); themes.disconnect(); }};
}

export function font(ctx, t, size = 11, weight = 400) {
  ctx.font = `${weight} ${size}px ${t.font}`;
}

export function axisX(ctx, t, box, x, values, text, label) {
  font(ctx, t);
  ctx.textAlign = "center";
  ctx.textBaseline = "top";
  let free = -Infinity;
  for (const value of values) {
    const at = Math.round(x(value)) + 0.5, half = ctx.measureText(text(value)).width / 2;
    if (at < box.x - 1 || at > box.x + box.w + 1) continue;
    ctx.fillStyle = t.line;
    ctx.fillRect(at - 0.5, box.y + box.h, 1, 4);
    const centre = Math.min(box.x + box.w - half, Math.max(box.x + half, at));
    if (centre - half < free + 10) continue;
    ctx.fillStyle = t.muted;
    ctx.fillText(text(value), centre, box.y + box.h + 7);
    free = centre + half;
  }
  // Beside the plot there is room too: a title wider than it moves there, and one wider than the canvas is set closer.
  const whole = ctx.canvas.clientWidth - 8, half = Math.min(whole, ctx.measureText(label).width) / 2;
  ctx.fillText(label, Math.max(4 + half, Math.min(4 + whole - half, box.x + box.w / 2)), box.y + box.h + 23, whole);
}

export function axisY(ctx, t, box, y, values, text, label) {
  font(ctx, t);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const value of values) {
    const at = Math.round(y(value));
    ctx.fillStyle = t.line;
    ctx.fillRect(box.x, at, box.w, 1);
    ctx.fillStyle = t.muted;
    ctx.fillText(text(value), box.x - 7, at);
  }
  ctx.save();
  ctx.translate(12, box.y + box.h / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = "center";
  ctx.fillText(label, 0, 0);
  ctx.restore();
}

export function tip(plot) {
  const box = h("div", {class: "wb-tip", "aria-hidden": "true"});
  plot.append(box);
  // The document is only listened to while there is something to hide: else it would hold every view there ever was.
  const hide = () => { box.style.display = "none"; document.removeEventListener("scroll", hide, {capture: true}); };
  plot.addEventListener("keydown", hide, true);
  plot.addEventListener("wheel", hide, {passive: true});
  return (x, y, lines) => {
    if (!lines) return hide();
    box.style.display = "block";
    document.addEventListener("scroll", hide, {capture: true, passive: true});
    box.replaceChildren(...lines.map((text, i) => h(i ? "div" : "strong", {text})));
    const right = x + 14 + box.offsetWidth > plot.clientWidth;
    box.style.left = `${Math.max(0, right ? x - 14 - box.offsetWidth : x + 14)}px`;
    box.style.top = `${Math.max(0, Math.min(y + 12, plot.clientHeight - box.offsetHeight))}px`;
  };
}

export const place = (event, canvas) => {
  const frame = canvas.getBoundingClientRect();
  return [event.clientX - frame.left, event.clientY - frame.top];
};

// Pan by drag or arrows, zoom by wheel, + and -, all by Home. The wheel scrolls the page until the canvas has focus.
export function panZoom(canvas, at, {span, least, area, moved, pick}) {
  let drag = null;
  const set = (a, b) => {
    const [from, to] = clampWindow(a, b, ...span(), least());
    if (from === at.from && to === at.to) return;
    at.from = from;
    at.to = to;
    moved();
    canvas.zoomed.heard();
  };
  // As shares of the whole, for whoever keeps them for the picture that comes after.
  canvas.zoomed = {heard: () => {}, get: () => { const [low, high] = span(); return [at.from, at.to].map((value) => (value - low) / (high - low)); },
    set: (from, to) => { const [low, high] = span(); set(low + from * (high - low), low + to * (high - low)); }};
  const zoom = (factor, centre) => set(centre - (centre - at.from) * factor, centre + (at.to - centre) * factor);
  const value = (px) => scale(area().x, area().x + area().w, at.from, at.to)(px);
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = (event.deltaX / area().w) * (at.to - at.from);
      set(at.from + by, at.to + by);
    } else zoom(Math.exp(event.deltaY * 0.002), value(place(event, canvas)[0]));
  }, {passive: false});
  canvas.addEventListener("pointerdown", (event) => {
    drag = {x: event.clientX, from: at.from, to: at.to, far: false};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const by = ((drag.x - event.clientX) / area().w) * (drag.to - drag.from);
    drag.far ||= Math.abs(event.clientX - drag.x) > 3;
    if (drag.far) set(drag.from + by, drag.to + by);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.far) pick(...place(event, canvas), event);
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, value(place(event, canvas)[0])));
  const step = (factor) => zoom(factor, (at.from + at.to) / 2);
  const keys = {"+": () => step(0.6), "-": () => step(1 / 0.6), Home: () => set(...span())};
  keys["="] = keys["+"];
  return {set, step, key: (event) => {
    if (!keys[event.key]) return false;
    keys[event.key]();
    event.preventDefault();
    return true;
  }};
}

const classOf = ({number, as}) => [number && "wb-num", as].filter(Boolean).join(" ") || undefined;

// columns: [{label, text, number, bar, mark}]; `text(row)` gives a cell, `bar(row)` a fraction drawn behind it, `mark(row)` a swatch;
// of a `path`, which has a mark, without room its end is shown, which tells paths apart; a column `as` wb-roomy is left out of a
// narrow panel, the words of one `as` wb-words go on in another line there.
export function table(columns, rows, {caption, chosen = () => false, pick, most = 200, fixed} = {}) {
  const head = h("tr", {}, ...columns.map((column) => h("th", {scope: "col", class: classOf(column), text: column.label, style: column.wide ? {width: column.wide} : {}})));
  const body = rows.slice(0, most).map((row) => h("tr", {
    class: (pick ? "wb-pick" : "") + (chosen(row) ? " wb-chosen" : ""), tabindex: pick && 0,
    "aria-current": pick && chosen(row) && "true", onclick: () => pick?.(row),
    onkeydown: (event) => { if (pick && ["Enter", " "].includes(event.key)) { event.preventDefault(); pick(row); } },
  }, ...columns.map((column) => {
    const {text, bar, mark, path} = column, value = text(row), marked = mark?.(row), key = marked && swatch(marked);
    const cell = h("td", {class: classOf(column), title: path ? `${value}, ${marked.label}` : value},
      path ? h("div", {class: "wb-path"}, key, h("span", {}, h("bdi", {text: value}))) : key, !path && value);
    if (bar) {
      cell.style.backgroundSize = `${bar(row) * 100}% 100%`;
      cell.classList.add("wb-bar");
    }
    return cell;
  })));
  // Over the columns that never give way: over more of them it would make one without cells.
  if (rows.length > most) body.push(h("tr", {}, h("td", {colspan: columns.filter(({as}) => as !== "wb-roomy").length, class: "wb-more", text: `${wholeText(rows.length - most)} more rows: .to_pandas() has them all`})));
  return h("table", {class: fixed ? "wb-table wb-fixed" : "wb-table"}, caption && h("caption", {text: caption}), h("thead", {}, head), h("tbody", {}, ...body));
}

// Keys pressed in here are ours: JupyterLab's own, of which one deletes the cell, are left out.
export const OWN_KEYS = {[SUPPRESS]: "true"};

// Header, tools, legend, canvas, side panel and data table of a view.
export function frame(host, {title, sentence, side = false, height = 340}) {
  const root = h("section", {class: "wb", "aria-label": title, ...OWN_KEYS});
  const tools = h("div", {class: "wb-tools"}), legend = h("div", {class: "wb-legend"});
  const canvas = h("canvas", {class: "wb-canvas", role: "img", tabindex: 0, style: {height: `${height}px`}});
  const plot = h("div", {class: "wb-plot"}, canvas), panel = h("aside", {class: "wb-side"});
  const said = h("p", {class: "wb-said"}), live = h("div", {class: "wb-hidden", "aria-live": "polite"});
  const data = h("details", {class: "wb-data"}, h("summary", {text: "Data table"}));
  root.append(h("header", {class: "wb-head"}, h("h3", {text: title}), said, tools), legend,
    h("div", {class: side ? "wb-body wb-two" : "wb-body"}, plot, side && panel), data, live);
  host.replaceChildren(root);
  const say = (text) => { said.textContent = text; canvas.setAttribute("aria-label", text); };
  say(sentence);
  let fill = () => null;
  const refill = () => { if (data.open) anew(data, data.firstChild, h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": `${title}, data table`}, fill())); };
  data.addEventListener("toggle", refill);
  return {root, tools, legend, canvas, plot, panel, say, announce: (text) => { live.textContent = text; },
    setTable: (make) => { fill = make; refill(); }};
}

export function button(text, onclick, options = {}) {
  return h("button", {type: "button", class: "wb-button", text, onclick, ...options});
}

// Where the page may not write the clipboard, the text is selected for the user to copy.
export function copyFrom(node, done) {
  const choose = () => { const range = document.createRange(); range.selectNodeContents(node); const chosen = getSelection(); chosen.removeAllRanges(); chosen.addRange(range); done("Selected"); };
  if (!navigator.clipboard) return choose();
  navigator.clipboard.writeText(node.textContent).then(() => done("Copied"), choose);
}

export function choice(label, entries, value, onchange) {
  const select = h("select", {class: "wb-select", onchange: () => onchange(select.value)},
    ...entries.map(([key, text]) => h("option", {value: key, text})));
  select.value = value;
  return h("label", {class: "wb-choice"}, h("span", {text: label}), select);
}

// The one selection all linked views share: a widget model in JupyterLab, a plain object in a file.
export async function selectionOf(model) {
  const found = model.get("selection");
  return typeof found === "string" ? model.widget_manager.get_model(found.replace("IPY_MODEL_", "")) : found;
}

export function select(selection, changes) {
  const other = "step" in changes || "layer" in changes; // than the steps that were chosen together
  selection.set(other && !("steps" in changes) && selection.get("steps") ? {...changes, steps: null} : changes);
  selection.save_changes();
}

// What Escape lets go of; the IPU that views show stays.
export const LETS_GO = ["tile", "step", "position", "variable", "layer", "micro_batch", "steps"];
const TYPED_IN = new Set(["INPUT", "SELECT", "TEXTAREA"]);

// Lets go of all that is chosen; says whether anything was.
export function letGo(selection) {
  const chosen = LETS_GO.filter((name) => (selection.get(name) ?? null) !== null);
  if (chosen.length) select(selection, Object.fromEntries(chosen.map((name) => [name, null])));
  return chosen.length > 0;
}

// Escape in an element lets go, unless who heard it first had a use for it, until the returned function is called.
export function escapes(el, selection) {
  const heard = (event) => {
    if (event.key === "Escape" && !event.defaultPrevented && !TYPED_IN.has(event.target.tagName) && letGo(selection)) event.preventDefault();
  };
  el.addEventListener("keydown", heard);
  return () => el.removeEventListener("keydown", heard);
}

// The place of the chosen step in the program of an IPU, `steps` its step at each place; -1 where none is chosen that runs there.
export function chosenPlace(selection, ipu, steps) {
  const read = (name) => selection.get(name) ?? null, step = read("step"), position = read("position"), other = read("ipu");
  if (step === null || (other !== null && other !== ipu)) return -1;
  return position !== null && steps[position] === step ? position : steps.indexOf(step);
}

// Calls `update` for changes of `names` on a model until the returned function is called.
export function watch(model, names, update) {
  const events = names.map((name) => `change:${name}`);
  events.forEach((event) => model.on(event, update));
  return () => events.forEach((event) => model.off(event, update));
}
