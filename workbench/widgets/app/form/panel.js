import {OWN_KEYS, button, h, watch} from "../../kit/kernel.js";

export const matches = (row, words) => words.every((word) => `${row.name} ${row.doc} ${row.effect}`.toLowerCase().includes(word));
export const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

// Where what is shown read an option: nothing is said while it is not known, or where it acts before there is a graph.
export function readText(reads, name) {
  if (!reads || !(name in reads)) return "";
  return reads[name] ? `read by ${reads[name]}` : "not read in this program";
}

function field(row, state, send) {
  const value = state.values[row.name] ?? row.default, label = {"aria-label": row.name};
  if (row.kind === "switch") {
    const box = h("input", {type: "checkbox", ...label, onchange: () => send({do: "set", name: row.name, value: box.checked})});
    box.checked = value === "true";
    return box;
  }
  if (row.kind === "choice") {
    const list = h("select", {...label, onchange: () => send({do: "set", name: row.name, value: list.value})},
      ...row.choices.map((text) => h("option", {value: text, text: text || "none"})));
    list.value = value;
    return list;
  }
  const commit = () => { if (text.value === text.dataset.said) return; text.dataset.said = text.value; send({do: "set", name: row.name, value: text.value}); };
  // A text taken over from the field before it is no change to the browser: Enter and leaving the field send it as well.
  const text = h("input", {type: "text", ...label, placeholder: row.default, title: row.bounds, onchange: commit, onblur: commit, onkeydown: ({key}) => key === "Enter" && commit()});
  text.value = text.dataset.said = state.values[row.name] ?? ""; // what the kernel knows of it
  return text;
}

const toned = (text, worth) => h("td", {class: worth < 0 ? "wb-less" : worth > 0 ? "wb-more" : "", text});

function tried(row, {against, rows}, send) {
  const line = (each) => h("tr", {}, h("td", {text: each.value}),
    ...(each.problem ? [h("td", {colspan: 3, text: each.problem})]
      : [h("td", {text: each.fits ? "fits" : "does not fit"}), toned(each.bytes_text, each.bytes), toned(each.cycles_text, each.cycles)]),
    h("td", {}, each.problem ? null : button("Use", () => send({do: "set", name: row.name, value: each.value}), {"aria-label": `Set ${row.name} to ${each.value}`})));
  return h("table", {class: "wb-tried", "data-tried": row.name, "aria-label": `${row.last}: values beside ${against}`}, h("caption", {text: `Beside ${against}, all else as the form says`}), h("tbody", {}, ...rows.map(line)));
}

function line(row, state, send) {
  const changed = row.name in state.values, read = readText(state.reads, row.name), problem = state.problems[row.name];
  const notes = [`default ${row.default || "none"}${row.zero ? `: ${row.zero}` : ""}`, row.effect === "numeric" ? "acts on numbers" : "", read].filter(Boolean).join("; ");
  return h("div", {class: `wb-panel-row${changed ? " wb-changed" : ""}${read.startsWith("not") ? " wb-unread" : ""}`, title: row.doc},
    h("label", {}, h("b", {text: row.last}), h("small", {text: notes})),
    field(row, state, send),
    row.tries ? button("Try", () => send({do: "try", name: row.name}), {"aria-label": `Try values beside ${row.name}`, title: "Compile the values beside this one, and show what they change"}) : h("span"),
    problem && h("p", {class: "wb-row-problem", role: "alert", text: problem}),
    state.tried[row.name] && tried(row, state.tried[row.name], send));
}

function lines(rows, state, send) {
  const found = [];
  let group = null;
  for (const row of rows) {
    if (row.group !== group) found.push(h("h5", {text: group = row.group}));
    found.push(line(row, state, send));
  }
  return found.length ? found : [h("p", {class: "wb-none", text: "No option is like this."})];
}

async function render({model, el}) {
  let drawing = false; // a field that is taken away says so as if its user had left it
  const send = (message) => { if (!drawing) model.send(message); };
  const search = h("input", {type: "search", placeholder: "Search names and what they do", "aria-label": "Search the options", oninput: () => show()});
  const only = h("input", {type: "checkbox", onchange: () => show()}), read = h("input", {type: "checkbox", onchange: () => show()});
  const list = h("div", {class: "wb-panel-rows", tabindex: 0, role: "group", "aria-label": "Options"}), count = h("span", {role: "status"});
  const area = h("textarea", {"aria-label": "The configuration as text", spellcheck: "false", placeholder: "A configuration as TOML or JSON: type, paste or drop a file here"});
  const why = h("p", {class: "wb-text-problem", role: "alert"});
  const text = h("div", {class: "wb-panel-text"}, area, why, h("div", {class: "wb-panel-head"},
    button("Write TOML", () => send({do: "write", format: "toml"})), button("Write JSON", () => send({do: "write", format: "json"})),
    button("Take this text", () => send({do: "read", text: area.value}), {title: "Set every option as the text says, the others to their defaults"})));
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", (event) => {
    const [file] = event.dataTransfer?.files ?? [];
    if (!file) return;
    event.preventDefault();
    file.text().then((found) => { area.value = found; send({do: "read", text: found}); });
  });
  const rows = model.get("rows"), title = h("summary");
  el.replaceChildren(h("details", {class: "wb-panel", ...OWN_KEYS}, title,
    h("div", {class: "wb-panel-head"}, search, h("label", {}, only, " changed only"), h("label", {}, read, " read by what is shown"), count),
    list, text));
  let before = "", seen = [];
  const show = () => {
    const state = model.get("state"), words = wordsOf(search.value);
    const shown = rows.filter((row) => matches(row, words) && (!only.checked || row.name in state.values) && (!read.checked || readText(state.reads, row.name).startsWith("read")));
    // A field that is being used stays in use, with what was typed and not yet sent: the row is drawn again, and its field chosen again.
    const chosen = el.ownerDocument.activeElement, label = list.contains(chosen) ? chosen.getAttribute("aria-label") : null, top = list.scrollTop;
    const typed = label && "said" in chosen.dataset && chosen.value !== chosen.dataset.said ? [chosen.value, chosen.selectionStart, chosen.selectionEnd] : null;
    drawing = true;
    list.replaceChildren(...lines(shown, state, send));
    drawing = false;
    list.scrollTop = top;
    const found = label && [...list.querySelectorAll("[aria-label]")].find((each) => each.getAttribute("aria-label") === label);
    if (found && typed) { found.value = typed[0]; found.setSelectionRange(typed[1], typed[2]); }
    if (found) found.focus();
    const come = Object.keys(state.tried).find((name) => !seen.includes(name)), given = come && list.querySelector(`[data-tried="${CSS.escape(come)}"]`);
    seen = Object.keys(state.tried);
    if (given) list.scrollTop += Math.max(0, given.getBoundingClientRect().bottom + 8 - list.getBoundingClientRect().bottom); // what was asked for is seen
    const changed = rows.filter((row) => row.name in state.values).length;
    title.textContent = `Every option that acts: ${rows.length}, ${changed} changed`;
    count.textContent = `${shown.length} shown`;
    why.textContent = state.problem;
    why.hidden = !state.problem;
    if (state.text !== before) area.value = before = state.text;
  };
  show();
  return watch(model, ["state"], show);
}

export default {render};
