import {OWN_KEYS, button, h, watch} from "../../kit/kernel.js";

const MOST = 40;

// Entries that have every word, those that have them in their names first.
export function found(entries, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const inside = (entry, texts) => words.every((word) => texts(entry).toLowerCase().includes(word));
  const named = entries.filter((entry) => inside(entry, ({name}) => name));
  const told = entries.filter((entry) => !named.includes(entry) && inside(entry, ({name, kind, text: said, lines}) => `${name} ${kind} ${said} ${lines.flat().join(" ")}`));
  return [...named, ...told];
}

function card({name, kind, head, text, lines}, open) {
  const node = h("details", {class: "wb-entry"}, h("summary", {}, h("code", {text: name}), h("span", {text: kind})),
    head !== name && h("pre", {tabindex: 0, text: head}), h("p", {text}),
    lines.length > 0 && h("dl", {}, ...lines.flatMap(([term, value]) => [h("dt", {text: term}), h("dd", {text: value})])));
  node.open = open;
  return node;
}

async function render({model, el}) {
  const search = h("input", {type: "search", "aria-label": "Search the reference", placeholder: "An option, a function, or what it does", oninput: () => show()});
  const count = h("span", {role: "status"}), list = h("div", {class: "wb-entries", tabindex: 0, role: "region", "aria-label": "Entries of the reference"});
  const root = h("section", {class: "wb-reference", role: "region", "aria-label": "Reference", hidden: true, ...OWN_KEYS},
    h("header", {}, h("h4", {text: "Reference"}), search, count, button("Close", () => close(), {title: "Key: Escape"})), list);
  const opener = button("Reference (?)", () => (root.hidden ? open() : close()), {"aria-expanded": "false", title: "Every option and every name, with what it does. Key: ?"});
  let from = null;
  const show = () => {
    const entries = model.get("entries"), shown = found(entries, search.value);
    list.replaceChildren(...shown.slice(0, MOST).map((entry) => card(entry, shown.length === 1)),
      shown.length > MOST && h("p", {text: `${shown.length - MOST} more: search for a word of them`}), !shown.length && entries.length && h("p", {text: "Nothing has all of these words."}) || "");
    count.textContent = entries.length ? `${shown.length} of ${entries.length}` : "…";
  };
  const open = () => {
    from = document.activeElement;
    if (!model.get("entries").length) model.send("open");
    root.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    show();
    search.focus();
  };
  const close = () => {
    root.hidden = true;
    opener.setAttribute("aria-expanded", "false");
    (from?.isConnected ? from : opener).focus();
  };
  root.addEventListener("keydown", (event) => { if (event.key === "Escape") { close(); event.stopPropagation(); } });
  el.replaceChildren(h("div", {class: "wb-reference-head", ...OWN_KEYS}, opener), root);
  // The key is heard in the whole app, but not where it is typed as a letter.
  const typed = (target) => target.tagName === "TEXTAREA" || target.isContentEditable || (target.tagName === "INPUT" && !["checkbox", "radio", "range", "button"].includes(target.type));
  const keys = (event) => {
    if (event.key !== "?" || typed(event.target)) return;
    event.preventDefault();
    event.stopPropagation();
    open();
  };
  let app = null;
  const attach = () => { app = el.closest(".wb-app"); if (app) app.addEventListener("keydown", keys, true); else if (el.isConnected === false) requestAnimationFrame(attach); };
  attach();
  const off = watch(model, ["entries"], show);
  return () => { off(); app?.removeEventListener("keydown", keys, true); };
}

export default {render};
