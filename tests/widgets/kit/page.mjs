// A page of plain objects for what only makes elements: install(), then texts(node) and every(node, of its class).
class Element {
  constructor(tag) { Object.assign(this, {tag, attributes: {}, children: [], style: {}, listeners: {}, own: ""}); }
  get textContent() { return this.own + this.children.map((child) => (typeof child === "string" ? child : child.textContent)).join(""); }
  set textContent(text) { this.own = String(text); this.children = []; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(event, listener) { this.listeners[event] = listener; }
  append(...children) { this.children.push(...children); }
  getContext() { return {fillRect() {}, beginPath() {}, moveTo() {}, lineTo() {}, stroke() {}, createPattern() {}}; }
}

export function install() {
  globalThis.document = {createElement: (tag) => new Element(tag)};
}

export function every(node, name) {
  const found = (node.attributes?.class ?? "").split(" ").includes(name) ? [node] : [];
  return [...found, ...(node.children ?? []).flatMap((child) => every(child, name))];
}

export const tagged = (node, tag) => [...(node.tag === tag ? [node] : []), ...(node.children ?? []).flatMap((child) => tagged(child, tag))];
