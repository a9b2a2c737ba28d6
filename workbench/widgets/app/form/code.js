import {button, copyFrom, h, watch} from "../../kit/kernel.js";

async function render({model, el}) {
  const pre = h("pre", {tabindex: 0, "aria-label": model.get("title")}), why = h("p", {class: "wb-what"});
  const said = (text) => { copy.textContent = text; setTimeout(() => { copy.textContent = "Copy"; }, 1500); };
  const copy = button("Copy", () => copyFrom(pre, said), {"aria-label": "Copy the code"});
  el.replaceChildren(h("section", {class: "wb-code"}, h("header", {}, h("h4", {text: model.get("title")}), copy), pre, why));
  const show = () => {
    const problem = model.get("problem");
    pre.textContent = model.get("code");
    pre.hidden = copy.disabled = Boolean(problem);
    why.textContent = problem;
  };
  show();
  return watch(model, ["code", "problem"], show);
}

export default {render};
