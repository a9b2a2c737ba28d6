// Room for a view that has not been seen: it says that it is there, and once when it is in sight, or nearly.
import {h} from "./kernel.js";

export const NEAR = "600px 0px";

function render({model, el}) {
  let watcher = null;
  const stop = () => {
    watcher?.disconnect();
    watcher = null;
  };
  function stand() {
    stop();
    const taken = model.get("taken");
    el.style.display = taken ? "none" : "";
    if (taken) return el.replaceChildren();
    const room = h("div", {class: "wb-unseen", style: {minHeight: "340px"}, "aria-busy": "true"});
    el.replaceChildren(room);
    watcher = new IntersectionObserver((entries) => {
      if (!entries.some(({isIntersecting}) => isIntersecting)) return;
      stop();
      model.send({seen: true});
    }, {rootMargin: NEAR, scrollMargin: NEAR});
    watcher.observe(room);
  }
  model.on("change:taken", stand);
  stand();
  return () => {
    model.off("change:taken", stand);
    stop();
  };
}

export default {render};
