// Where the keys of an app go: a page forgets, without a word, the focus of a control that is taken away or that cannot
// be pressed for a while, and the next key is lost. Meanwhile the progress has it; then the control has it again, or what
// came in its place.
const CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]";
const COMES_MS = 4000; // what comes in the place of another is drawn within it
const REMEMBERED = 8;

const usable = (node) => node.isConnected && !node.disabled && node.getClientRects().length > 0;
const called = (node) => `${node.tagName} ${(node.getAttribute("aria-label") ?? node.textContent).replace(/[\d.,]+/g, "")}`;
const all = (root) => [...root.querySelectorAll(CONTROLS)].filter(usable);
const controls = (root) => all(root).filter((node) => node.tabIndex >= 0);

// What is called as the one that is gone, nearest to where it was; of what mends a result, else the first button there.
// A tab that is not the current one is passed over by the key Tab, and may have had the focus: tabs are put in anew when
// what they show has come, and a key for one of them is not to go to Compile.
function successor({name, path}) {
  const near = path.find((node) => node.isConnected);
  if (!near) return null;
  const same = (node) => called(node) === name, alike = controls(near).find(same) ?? all(near).find(same);
  return alike ?? (near.matches(".wb-app-mending") ? controls(near).find((node) => node.tagName === "BUTTON") : null);
}

function pathOf(node, root) {
  const found = [];
  for (let each = node.parentElement; each && each !== root; each = each.parentElement) found.push(each);
  return found;
}

// `rest` has the focus in between. The root is the app around it, which is there when something in it has the focus.
export function keepFocus(rest) {
  const page = rest.ownerDocument, heard = new AbortController();
  let held = null, trail = [], root = null, timer = 0;
  const lost = () => { const now = page.activeElement; return !now || now === page.body || now === rest || (now === held.node && !usable(now)); };
  const give = (node, options = {preventScroll: true}) => { clearTimeout(timer); timer = 0; node.focus(options); };
  const settle = () => {
    timer = 0;
    const last = held && lost() && !held.node.isConnected && trail.findLast(usable);
    if (last) give(last);
  };
  const look = () => {
    if (!held || !lost()) return;
    if (usable(held.node)) return held.node === page.activeElement ? undefined : give(held.node);
    const next = held.node.isConnected ? null : successor(held);
    if (next) return give(next, {});
    if (page.activeElement !== rest) rest.focus({preventScroll: true});
    if (!held.node.isConnected && !held.resting) timer ||= setTimeout(settle, held.path.some((node) => node.matches(".wb-app-mending")) ? COMES_MS : 0);
  };
  const watched = new MutationObserver(look);
  const enters = ({target}) => {
    const around = rest.closest(".wb-app");
    if (!around?.contains(target)) return;
    if (around !== root) {
      watched.disconnect();
      watched.observe(root = around, {subtree: true, childList: true, attributes: true, attributeFilter: ["disabled"]});
    }
    if (target === rest) return;
    held = {node: target, name: called(target), path: pathOf(target, root), resting: rest.contains(target)};
    trail = [...trail.filter((node) => node !== target && node.isConnected), target].slice(-REMEMBERED);
  };
  // Who goes elsewhere stays there: what loses the focus is still to be used then.
  const leaves = ({target}) => setTimeout(() => { if (root && usable(target) && !root.contains(page.activeElement)) held = null; });
  rest.tabIndex = -1;
  page.addEventListener("focusin", enters, {signal: heard.signal});
  page.addEventListener("focusout", leaves, {signal: heard.signal});
  return () => { heard.abort(); watched.disconnect(); clearTimeout(timer); };
}
