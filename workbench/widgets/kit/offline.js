// Stands in for the widget models in a stored page: state without a kernel.

export function offlineModel(state) {
  const listeners = {}, values = {...state}, changed = new Set();
  return {
    get: (name) => (name in values ? values[name] : null),
    set: (name, value) => {
      for (const [key, next] of Object.entries(typeof name === "object" ? name : {[name]: value})) {
        if (values[key] !== next) changed.add(key);
        values[key] = next;
      }
    },
    save_changes: () => {
      const names = [...changed];
      changed.clear();
      names.forEach((name) => [...(listeners[`change:${name}`] ?? [])].forEach((listener) => listener()));
    },
    on: (event, listener) => (listeners[event] ??= new Set()).add(listener),
    off: (event, listener) => listeners[event]?.delete(listener),
  };
}

// Bytes of base64 of gzip.
export async function unpacked(text) {
  const raw = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// stored: [{view, state, buffer}, ...]; each is drawn into the element with id `view-<view>`.
export async function start(load, stored) {
  const selection = offlineModel({}), {escapes} = await load("kit/kernel.js");
  for (const {view, state, buffer} of stored) {
    const values = JSON.parse(new TextDecoder().decode(await unpacked(state)));
    const model = offlineModel({...values, buffer: new DataView(await unpacked(buffer)), selection, live: false});
    const {default: widget} = await load(`views/${view}.js`);
    const el = document.getElementById(`view-${view}`);
    escapes(el, selection);
    await widget.render({el, model});
  }
}
