import {OWN_KEYS, button, h, watch} from "../../kit/kernel.js";

const PART = 1_000_000;

// Gives bytes to the user as a file of their browser.
function save(name, type, data) {
  const address = URL.createObjectURL(new Blob([data], {type})), link = h("a", {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// The parts of a file as messages: [offset, end].
export function parts(size, each = PART) {
  return Array.from({length: Math.ceil(size / each)}, (_, i) => [i * each, Math.min(size, (i + 1) * each)]);
}

async function bring(model, file, most, complain) {
  if (!file) return;
  if (file.size > most || !file.size) { complain(`${file.name} has ${file.size} bytes; a profile has some, and at most ${most}.`); return; }
  const bytes = await file.arrayBuffer();
  for (const [from, to] of parts(bytes.byteLength)) {
    model.send({do: "load", name: file.name, size: bytes.byteLength, offset: from}, undefined, [bytes.slice(from, to)]);
  }
}

// A new cell below ours, with code: as its user would make one, by the keys of JupyterLab and Notebook. False where there is no such notebook.
async function insertCell(el, code) {
  const cell = el.closest(".jp-Notebook .jp-Cell"), notebook = cell?.closest(".jp-Notebook");
  if (!notebook) return false;
  const cells = () => [...notebook.querySelectorAll(".jp-Cell")], before = new Set(cells());
  (cell.querySelector(".jp-InputPrompt") ?? cell).dispatchEvent(new MouseEvent("mousedown", {bubbles: true, cancelable: true, button: 0}));
  document.activeElement?.blur();
  // The keys of a cell are heard where it has the focus; a notebook in which no cell can have it hears them itself.
  cell.focus();
  const hears = document.activeElement === cell ? cell : notebook;
  hears.focus();
  hears.dispatchEvent(new KeyboardEvent("keydown", {key: "b", code: "KeyB", keyCode: 66, bubbles: true, cancelable: true}));
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((done) => setTimeout(done, 50));
    const made = cells().find((each) => !before.has(each)), editor = made?.querySelector(".cm-content");
    if (!editor) continue;
    editor.focus();
    const clipboard = new DataTransfer();
    clipboard.setData("text/plain", code);
    editor.dispatchEvent(new ClipboardEvent("paste", {clipboardData: clipboard, bubbles: true, cancelable: true}));
    return true;
  }
  return false;
}

async function render({model, el}) {
  const said = h("span", {class: "wb-share-said", role: "status"}), why = h("p", {class: "wb-row-problem", role: "alert"});
  const complain = (text) => { why.textContent = text; why.hidden = !text; };
  const tell = (text) => { said.textContent = text; };
  const chooser = h("input", {type: "file", accept: ".wbprofile", class: "wb-hidden", "aria-label": "Profile file to load", tabindex: -1, onchange: () => { bring(model, chooser.files[0], MOST, complain); chooser.value = ""; }});
  const MOST = 100_000_000;
  const page = button("Save as HTML", () => { tell("making the page …"); model.send({do: "file", kind: "html"}); }, {title: "One file with the views, diagnosis, comparison and code; it needs no kernel and no network"});
  const file = button("Save the profile", () => model.send({do: "file", kind: "profile"}), {title: "One .wbprofile file, which is loaded here or by wb.load_profile"});
  const load = button("Load a profile", () => chooser.click(), {title: "Or drop a .wbprofile file here"});
  const cell = button("Insert as cell", async () => {
    const {code} = model.get("state");
    if (await insertCell(el, code)) return tell("the code stands in a new cell below");
    await navigator.clipboard?.writeText(code).catch(() => {});
    return tell("this notebook takes no cells from here: the code is copied, paste it");
  }, {title: "The code of what the form asks for, in a new cell below this one"});
  const keep = h("input", {type: "checkbox", onchange: () => model.send({do: "keep", on: keep.checked})});
  const name = h("span");
  const root = h("div", {class: "wb-share", role: "group", "aria-label": "Share and keep", ...OWN_KEYS}, page, file, load, cell, h("label", {}, keep, name), said, chooser, why);
  root.addEventListener("dragover", (event) => { event.preventDefault(); root.classList.add("wb-over"); });
  root.addEventListener("dragleave", () => root.classList.remove("wb-over"));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    root.classList.remove("wb-over");
    bring(model, event.dataTransfer?.files?.[0], MOST, complain);
  });
  el.replaceChildren(root);
  const show = () => {
    const state = model.get("state");
    page.disabled = file.disabled = !state.ready;
    cell.disabled = !state.code;
    keep.checked = state.keeping;
    name.textContent = ` keep every result in ${state.folder}/, and show those of before`;
    tell(state.said);
    complain(state.problem);
  };
  const hear = (message, buffers) => { if (message.file) save(message.file, message.type, buffers[0]); else show(); };
  show();
  model.on("msg:custom", hear);
  const off = watch(model, ["state"], show);
  return () => { off(); model.off("msg:custom", hear); };
}

export default {render};
