// Room for a view that has not been seen: it says that it is there, and once when it is in sight, or nearly.
import {h} from "./kernel.js";

export const NEAR = "600px 0px";

function render({model, el}) {
  const room = h("div", {class: "wb-unseen", style: {minHeight: "340px"}, "aria-busy": "true"});
  el.replaceChildren(room);
  const watcher = new IntersectionObserver((entries) => {
    if (!entries.some(({isIntersecting}) => isIntersecting)) return;
    watcher.disconnect();
    model.send({seen: true});
  }, {rootMargin: NEAR, scrollMargin: NEAR});
  watcher.observe(room);
  return () => watcher.disconnect();
}

export default {render};
