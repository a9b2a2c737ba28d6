// What an element holds, made anew: the control that had the focus has it again, and what was unfolded stays so.
const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]";

// A control is known by its row, which says its `data-key`, its kind, and what it is called but for numbers, which change.
const nameOf = (node) => [node.closest("[data-key]")?.dataset.key ?? "", node.tagName, node.getAttribute("aria-label") ?? node.textContent.replace(/[\d.,]+/g, "")].join("\n");
const unfolded = (root) => [...root.querySelectorAll("details > summary")].filter(({parentElement}) => parentElement.open).map(nameOf);

// Where nothing is called as what had the focus, what stands in its place has it: no key that follows is lost to the page.
export function anew(root, ...children) {
  const {activeElement: chosen} = root.ownerDocument, before = [...root.querySelectorAll(CONTROLS)], at = before.indexOf(chosen);
  const name = at < 0 ? "" : nameOf(chosen), earlier = before.slice(0, Math.max(0, at)).filter((each) => nameOf(each) === name).length, open = new Set(unfolded(root));
  root.replaceChildren(...children.filter(Boolean));
  for (const summary of root.querySelectorAll("details > summary")) if (open.has(nameOf(summary))) summary.parentElement.open = true;
  if (at < 0) return;
  const now = [...root.querySelectorAll(CONTROLS)].filter((each) => !each.disabled);
  (now.filter((each) => nameOf(each) === name)[earlier] ?? now[Math.min(at, now.length - 1)])?.focus({preventScroll: true});
}

// Calls `update`; while something in `root` is pressed not before it is let go, since a press that began on what is gone does nothing.
export function unlessPressed(root, update) {
  let pressed = false, waits = false;
  root.addEventListener("pointerdown", () => {
    const held = new AbortController();
    pressed = true;
    const letGo = () => {
      held.abort();
      setTimeout(() => { pressed = false; if (waits) { waits = false; update(); } }); // the click comes first
    };
    for (const event of ["pointerup", "pointercancel"]) root.ownerDocument.addEventListener(event, letGo, {capture: true, signal: held.signal});
  });
  return () => { if (pressed) waits = true; else update(); };
}
