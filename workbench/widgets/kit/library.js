// Brings all modules of the views to a page once, and makes ES modules of their sources.
//
// `sources` holds every file by its path ("views/trace.js"). A module may import any of them by a relative path, as it
// would from a folder; its imports stand at its top. What is not imported is not loaded.

const BLANK = /(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
const IMPORT = /import\b(?:[^"'`;]*?\bfrom\b)?\s*(["'])([^"'\n]+)\1\s*;?/y;

// Where each specifier of the imports at the top of a module stands, and what it says: [[start, end, text], ...].
export function importsOf(source) {
  const found = [];
  for (let at = 0; ;) {
    BLANK.lastIndex = at;
    BLANK.exec(source);
    IMPORT.lastIndex = BLANK.lastIndex;
    const match = IMPORT.exec(source);
    if (!match) return found;
    at = IMPORT.lastIndex;
    const start = match.index + match[0].lastIndexOf(match[1] + match[2]) + 1;
    found.push([start, start + match[2].length, match[2]]);
  }
}

// Path of what a module names: ("views/trace.js", "../kit/kernel.js") is "kit/kernel.js".
export function resolved(from, specifier) {
  const parts = from.split("/").slice(0, -1);
  for (const part of specifier.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

function blobUrl(text) {
  return URL.createObjectURL(new Blob([text], {type: "text/javascript"}));
}

// `load(path)` is the module at a path; every module is made once.
export function loader(sources, toUrl = blobUrl) {
  const urls = new Map();
  const urlOf = (path, importers) => {
    if (importers.includes(path)) throw new Error(`modules import each other: ${[...importers, path].join(" > ")}`);
    if (!(path in sources)) throw new Error(`there is no module ${path}, which ${importers.at(-1) ?? "a page"} asks for`);
    if (!urls.has(path)) {
      const source = sources[path], parts = [];
      let last = 0;
      for (const [start, end, text] of importsOf(source)) {
        parts.push(source.slice(last, start), urlOf(resolved(path, text), [...importers, path]));
        last = end;
      }
      urls.set(path, toUrl(parts.join("") + source.slice(last)));
    }
    return urls.get(path);
  };
  return (path) => import(urlOf(path, []));
}

// The libraries of a page by digest: notebooks of other versions have their own. Who asks first may come first.
function shelf(digest) {
  const shelves = (globalThis[Symbol.for("workbench libraries")] ??= new Map());
  if (!shelves.has(digest)) {
    let put;
    const library = new Promise((resolve) => { put = resolve; });
    shelves.set(digest, {library, put});
  }
  return shelves.get(digest);
}

// The sources of bytes of gzip of JSON.
export async function unpacked(bytes) {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

export default {
  initialize({model}) {
    shelf(model.get("digest")).put(unpacked(model.get("sources")).then((sources) => loader(sources)));
  },
};
