// What the two views over tiles share: numbers of a tile by category, and the panel about the chosen one.
import {bytesText, choice, h, percentText, select, table, wholeText} from "./kernel.js";

// Where the tiles of an IPU begin in a column that holds those of the IPUs that were sent, of so many categories before.
export const startOf = ({held, tiles}, ipu, category = 0) => (category * held.length + Math.max(0, held.indexOf(ipu))) * tiles;

export function bytesOfTile({data, columns}, ipu, tile) {
  return data.categories.map((_, c) => columns.bytes[startOf(data, ipu, c) + tile]);
}

// Sum over the categories that are not hidden, for each tile of one IPU.
export function totals({data, columns}, ipu, hidden = new Set()) {
  const sums = new Float64Array(data.tiles);
  data.categories.forEach((_, c) => {
    const from = startOf(data, ipu, c);
    if (!hidden.has(c)) for (let tile = 0; tile < data.tiles; tile++) sums[tile] += columns.bytes[from + tile];
  });
  return sums;
}

export function largestTile(sums) {
  let best = 0;
  for (let tile = 1; tile < sums.length; tile++) if (sums[tile] > sums[best]) best = tile;
  return best;
}

// The chosen IPU, or until its tiles have come the one that is there.
export function ipuOf({data, selection}) {
  const chosen = selection.get("ipu");
  return data.held.includes(chosen) ? chosen : data.ipu;
}

export function tileOf(view) {
  const chosen = view.selection.get("tile");
  return chosen === null || chosen === undefined ? largestTile(totals(view, ipuOf(view))) : Math.min(view.data.tiles - 1, chosen);
}

export function chooseTile(view, tile) {
  select(view.selection, {ipu: ipuOf(view), tile: Math.max(0, Math.min(view.data.tiles - 1, tile))});
}

export function ipuChoice(view) {
  const {data} = view;
  if (data.ipus < 2) return null;
  const entries = (view.model.get("live") ? [...Array(data.ipus).keys()] : data.held).map((ipu) => [String(ipu), `IPU ${ipu}`]);
  return choice("IPU", entries, String(ipuOf(view)), (ipu) => select(view.selection, {ipu: Number(ipu), tile: null}));
}

export function tilePanel(view, extra = []) {
  const {data, ui} = view, ipu = ipuOf(view), tile = tileOf(view), bytes = bytesOfTile(view, ipu, tile);
  const sum = bytes.reduce((a, b) => a + b, 0), chosen = view.selection.get("tile") === tile;
  const rows = bytes.map((_, c) => c).filter((c) => bytes[c]).sort((a, b) => bytes[b] - bytes[a]);
  const heading = `${chosen ? "Tile" : "Fullest tile:"} ${wholeText(tile)} of IPU ${ipu}`;
  const text = `${bytesText(sum)} ${data.measured}, ${percentText(sum / data.capacity_bytes)} of ${bytesText(data.capacity_bytes)}`;
  ui.panel.replaceChildren(h("h4", {text: heading}), h("p", {text}), ...extra.map((line) => h("p", {text: line})),
    h("div", {class: "wb-scroll", tabindex: 0, role: "region", "aria-label": `${ui.root.getAttribute("aria-label")}: bytes by category`}, table([
      {label: "category", mark: (c) => data.categories[c], text: (c) => data.categories[c].label},
      {label: "bytes", number: true, text: (c) => wholeText(bytes[c]), bar: (c) => bytes[c] / bytes[rows[0]]},
      {label: "share", number: true, text: (c) => percentText(bytes[c] / sum)},
    ], rows)));
  ui.announce(`${heading}: ${text}`);
}

// `more`: columns of what is shown besides, by the first of which the tiles are then ordered.
export function tileTable(view, more = []) {
  const {data} = view, ipu = ipuOf(view), sums = totals(view, ipu);
  const used = data.categories.map((_, c) => c), by = more.length ? more[0].values : sums;
  return table([
    {label: "tile", number: true, text: wholeText},
    ...more.map(({label, values}) => ({label, number: true, text: (tile) => wholeText(values[tile])})),
    {label: `${data.measured} (bytes)`, number: true, text: (tile) => wholeText(sums[tile])},
    ...used.map((c) => ({label: `${data.categories[c].label} (bytes)`, number: true, text: (tile) => wholeText(bytesOfTile(view, ipu, tile)[c])})),
  ], [...sums.keys()].sort((a, b) => by[b] - by[a]), {caption: `Tiles of IPU ${ipu}, ${more.length ? "highest" : "fullest"} first`, most: 100, pick: (tile) => chooseTile(view, tile), chosen: (tile) => tile === view.selection.get("tile")});
}
