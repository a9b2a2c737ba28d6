// Two markers on a time axis, A and B.
import {h, place} from "./kernel.js";

// One of them: a slider that is dragged, or moved by the arrows; `move(cycle, reach)` puts it there, or to an edge that is as near as `reach`.
export function gripOf(view, which, canvas, move) {
  const grip = h("div", {class: "wb-grip", role: "slider", tabindex: 0, "aria-label": `Marker ${"AB"[which]}, cycles`, text: "AB"[which]});
  grip.addEventListener("pointerdown", (event) => { grip.setPointerCapture(event.pointerId); grip.focus(); event.preventDefault(); });
  grip.addEventListener("pointermove", (event) => {
    if (grip.hasPointerCapture(event.pointerId)) move(view.x.invert(place(event, canvas)[0]), event.altKey ? 0 : 6 * (view.x.invert(1) - view.x.invert(0)));
  });
  grip.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key], step = (view.at.to - view.at.from) * (event.shiftKey ? 0.05 : 0.005);
    if (!by) return;
    move(view.marks[which] + by * (event.altKey ? 1 : step), event.altKey ? 0 : 0.6 * step);
    event.preventDefault();
  });
  return grip;
}

// Both where they are on the axis now, hidden where they are not.
export function placeGrips(view, total) {
  view.grips.forEach((grip, which) => {
    const cycle = view.marks?.[which], px = view.marks ? view.x(cycle) : -1, values = {now: cycle, min: 0, max: total};
    Object.assign(grip.style, {display: px >= view.box.x - 1 && px <= view.box.x + view.box.w + 1 ? "block" : "none", left: `${px - 9}px`});
    for (const key in values) grip.setAttribute(`aria-value${key}`, values[key]);
  });
}
