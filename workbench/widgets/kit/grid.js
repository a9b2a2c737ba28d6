// A long table of which only what is in sight stands in the page: sorted by its heads, searched, grouped, walked by keys.
// columns: [{label, value, text, number, wide}]: `value(row)` is what it is sorted and summed by, `text(row)` what stands there.
// Numbers and columns `wide` in pixels are never cut; the others give way, and the table scrolls where that is not enough.
import {h, thingsText, wholeText} from "./kernel.js";

const ROW = 26, SPARE = 6, MEASURED = 2000;

const isNarrow = ({wide}) => Boolean(wide?.endsWith("px"));

// A long name in two parts, of which the first is cut where there is no room: its end, as ":backward#2", tells it from others.
export function parted(name) {
  const letters = [...name], end = letters.length > 16 ? name.match(/[/:_][^/:_]{1,15}$/u)?.[0] ?? letters.slice(-6).join("") : "";
  return [name.slice(0, name.length - end.length), end];
}

// At least as wide as a text, in widths of a digit: what is wide in one font is in another.
const digitsOf = (text) => [...text].reduce((sum, letter) => sum + (/[mw@%A-Z]/.test(letter) ? 1.6 : letter <= "~" ? 1 : 2), 0);

export function sorted(rows, column, down) {
  const {value, text, number} = column, sign = down ? -1 : 1;
  const of = new Map(rows.map((row) => [row, value ? value(row) : text(row)]));
  return [...rows].sort((a, b) => sign * (number ? of.get(a) - of.get(b) : String(of.get(a)).localeCompare(String(of.get(b)), "en", {numeric: true})));
}

// Rows in whose texts every word stands, in any case.
export function matching(rows, columns, words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return rows;
  return rows.filter((row) => {
    const all = columns.filter(({number}) => !number).map(({text}) => text(row).toLowerCase()).join("\n");
    return wanted.every((word) => all.includes(word));
  });
}

// Lines of a table in groups: a head for each, {name, rows, sums}, before its rows, which a closed group hides.
export function grouped(rows, columns, by, open) {
  const groups = new Map();
  for (const row of rows) {
    const name = by(row);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  return [...groups].flatMap(([name, mine]) => {
    const sums = columns.map(({value, sum}) => (sum ? mine.reduce((all, row) => all + value(row), 0) : null));
    return [{name, rows: mine, sums}, ...(open.has(name) ? mine : [])];
  });
}

// How many of its rows a table shows.
export const rowsText = (found, all) => `${found === all ? "" : `${wholeText(found)} of `}${thingsText(all, "row")}`;

export function grid({label, columns, rows, pick, chosen = () => false, high = 320, sort, groups = [], total, tools = []}) {
  const view = {rows, lines: [], at: -1, sort: sort ?? {column: columns.findIndex(({number}) => number), down: true}, by: null, open: new Set(), words: ""};
  const said = h("span", {class: "wb-count", role: "status"});
  const search = h("input", {type: "search", class: "wb-search", placeholder: "Search", "aria-label": `Search in ${label}`, oninput: () => { view.words = search.value; arrange(); }});
  const by = groups.length > 0 && h("label", {class: "wb-choice"}, h("span", {text: "group by"}), h("select", {class: "wb-select", onchange: (event) => { view.by = groups[Number(event.target.value)]?.of ?? null; view.open.clear(); arrange(); }},
    h("option", {value: "", text: "nothing"}), ...groups.map(({name}, i) => h("option", {value: i, text: name}))));
  const classOf = (column) => (column.number ? "wb-num" : isNarrow(column) ? "" : "wb-gives");
  const share = (column) => column.wide ?? (column.number ? "" : `${Math.floor(100 / columns.length)}%`);
  const heads = columns.map((column, i) => h("th", {scope: "col", class: classOf(column), style: {width: share(column)}},
    h("button", {type: "button", class: "wb-sort", text: column.label, onclick: () => { view.sort = {column: i, down: view.sort.column === i ? !view.sort.down : Boolean(column.number)}; arrange(); }})));
  const head = h("thead", {}, h("tr", {}, ...heads));
  const body = h("tbody", {}), over = h("tr", {"aria-hidden": "true"}, h("td", {colspan: columns.length})), under = h("tr", {"aria-hidden": "true"}, h("td", {colspan: columns.length}));
  const table = h("table", {class: "wb-table wb-grid", "aria-label": label}, head, body);
  const box = h("div", {class: "wb-scroll wb-window", tabindex: 0, role: "region", "aria-label": `${label}: arrows walk, Enter chooses`, style: {maxHeight: `${high}px`}, onscroll: () => fill()}, table);
  const root = h("div", {class: "wb-gridded"}, h("div", {class: "wb-tools"}, ...tools, search, by, said), box);

  const numbered = [...columns.keys()].filter((i) => columns[i].number), longest = columns.map(() => "");

  // Only rows in sight stand in the page: so that columns of numbers keep their width, each head holds the longest one yet.
  function widen(lines) {
    for (const i of numbered) {
      for (const line of lines) {
        const said = line?.rows ? sumOf(line, i) : columns[i].text(line);
        if (said.length > longest[i].length) longest[i] = said;
      }
      heads[i].setAttribute("data-longest", longest[i]);
    }
  }

  const sumOf = ({sums}, i) => (sums[i] === null ? "" : columns[i].text(null, sums[i]));

  function named(said) {
    const [start, end] = parted(said);
    return end ? [h("span", {class: "wb-start", text: start, style: {maxWidth: `calc(100% - ${digitsOf(end)}ch)`}}), end] : [said];
  }

  function cells(line) {
    if (line?.rows) return columns.map(({number}, i) => h("td", {class: number ? "wb-num" : "", text: i ? sumOf(line, i) : `${view.open.has(line.name) ? "▾" : "▸"} ${line.name || "(none)"} · ${wholeText(line.rows.length)}`}));
    return columns.map((column) => {
      const said = column.text(line), kind = classOf(column);
      return h("td", {class: `${kind} ${column.tone?.(line) ?? ""}`, title: said}, ...(kind === "wb-gives" ? named(said) : [said]));
    });
  }

  function use(place) {
    const line = view.lines[place];
    view.at = place;
    if (line?.rows) { view.open[view.open.has(line.name) ? "delete" : "add"](line.name); arrange(true); } else if (line !== undefined) { pick?.(line); fill(); }
  }

  function fill() {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - SPARE), last = Math.min(view.lines.length, first + Math.ceil(high / ROW) + 2 * SPARE);
    over.style.height = `${first * ROW}px`;
    under.style.height = `${(view.lines.length - last) * ROW}px`;
    const shown = view.lines.slice(first, last);
    widen(shown);
    body.replaceChildren(over, ...shown.map((line, i) => h("tr", {"aria-rowindex": first + i + 2, "aria-current": !line?.rows && chosen(line) && "true",
      class: `${pick || line?.rows ? "wb-pick" : ""}${line?.rows ? " wb-grouped" : chosen(line) ? " wb-chosen" : ""}${first + i === view.at ? " wb-at" : ""}`, onclick: () => use(first + i)}, ...cells(line))), under);
  }

  function arrange(keep) {
    const found = matching(view.rows, columns, view.words), order = columns[view.sort.column];
    const shown = order ? sorted(found, order, view.sort.down) : found;
    view.lines = view.by ? grouped(shown, columns, view.by, view.open) : shown;
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === view.sort.column ? (view.sort.down ? "descending" : "ascending") : "none"));
    table.setAttribute("aria-rowcount", view.lines.length + 1);
    said.textContent = `${rowsText(found.length, view.rows.length)}${total ? `; ${total(found)}` : ""}`;
    if (!keep) { view.at = -1; box.scrollTop = 0; }
    fill();
  }

  box.addEventListener("keydown", (event) => {
    const to = {ArrowDown: view.at + 1, ArrowUp: view.at - 1, PageDown: view.at + 10, PageUp: view.at - 10, Home: 0, End: view.lines.length - 1}[event.key];
    if (event.target !== box || !view.lines.length) return;
    if (to !== undefined) {
      view.at = Math.max(0, Math.min(view.lines.length - 1, to));
      const top = view.at * ROW, room = (box.clientHeight || high) - (head.offsetHeight || ROW) - ROW;
      if (top < box.scrollTop) box.scrollTop = top;
      else if (top > box.scrollTop + room) box.scrollTop = top - room;
      fill();
    } else if (event.key === "Enter") use(view.at);
    else if (event.key === "/") search.focus();
    else return;
    event.preventDefault();
  });
  widen(rows.slice(0, MEASURED));
  arrange();
  return {root, refresh: fill, find: (words) => { search.value = view.words = words; arrange(); }};
}
