// Stands in for the widget models in a stored page: state without a kernel.

export function offlineModel(state) {
  const listeners = {}, values = {...state}, changed = new Set();
  const model = {
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
  return model;
}

export function bytesOf(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new DataView(bytes.buffer);
}

// stored: [{view, data, buffer}, ...]; each is drawn into the element with id `view-<view>`.
export function start(views, stored) {
  const selection = offlineModel({});
  for (const {view, data, buffer, ...rest} of stored) {
    const el = document.getElementById(`view-${view}`);
    views[view].render({el, model: offlineModel({...rest, data, buffer: bytesOf(buffer), selection, live: false})});
  }
}
