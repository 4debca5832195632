// Python in a worker. Messages to it: {steps: [{code, name}]} or {call, arguments}; from it: see session.py, and below.
// All files come from beside this one. Pyodide waits for ever for a file that does not come, so their arrival is
// watched here.
const here = new URL("./", import.meta.url);
const FILES = { "pyodide.asm.wasm": "vendor/pyodide/pyodide.asm.wasm.gz", "python_stdlib.zip": "vendor/pyodide/python_stdlib.zip" };
const get = self.fetch.bind(self);
let loaded = 0, lost;
const failed = new Promise((_, reject) => (lost = reject));
failed.catch(() => {});

// A file as a stream that counts what has come, unpacked if it is packed: a server may have unpacked it already.
async function file(path, type) {
  try {
    const response = await get(new URL(path, here));
    if (!response.ok) throw new Error(`${path}: ${response.status} ${response.statusText}`.trim());
    const reader = response.body.getReader();
    let next = await reader.read();
    const packed = next.value?.[0] === 0x1f && next.value[1] === 0x8b;
    let stream = new ReadableStream({
      async pull(controller) {
        if (next.done) return controller.close();
        postMessage({ kind: "loading", loaded: (loaded += next.value.byteLength) });
        controller.enqueue(next.value);
        try { next = await reader.read(); } catch (error) { lost(new Error(`${path}: ${error.message}`)); throw error; }
      },
    });
    if (packed) stream = stream.pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream, { headers: { "Content-Type": type } });
  } catch (error) {
    lost(error.message.includes(path) ? error : new Error(`${path}: ${error.message}`));
    throw error;
  }
}

self.fetch = (request, options) => {
  const name = String(request.url ?? request).split(/[?#]/)[0].split("/").at(-1);
  const type = name.endsWith(".wasm") ? "application/wasm" : "application/zip";
  return FILES[name] ? file(FILES[name], type) : get(request, options);
};

async function start() {
  const [{ loadPyodide }, { default: createPyodideModule }, archive, session, lock] = await Promise.all([
    import("./vendor/pyodide/pyodide.mjs"),
    import("./vendor/pyodide/pyodide.asm.mjs"),
    file("keydoor.zip", "application/zip").then((response) => response.arrayBuffer()),
    file("session.py", "text/plain").then((response) => response.text()),
    file("vendor/pyodide/pyodide-lock.json", "application/json").then((response) => response.text()),
  ]);
  const python = await loadPyodide({
    indexURL: new URL("vendor/pyodide/", here).href,
    createPyodideModule,
    lockFileContents: lock,
    env: { PYTHONHASHSEED: "0", RL_LLM_PROFILE: "full", HOME: "/home/reader" },
  });
  python.unpackArchive(archive, "zip", { extractDir: "/book" });
  python.FS.writeFile("/book/session.py", session);
  python.runPython("import sys; sys.path.insert(0, '/book')");
  const { Session } = python.pyimport("session");
  return Session((kind, text) => postMessage({ kind, text }));
}

const ready = Promise.race([start(), failed]);
ready.then(() => postMessage({ kind: "ready" }), (error) => postMessage({ kind: "broken", text: error.message }));

// run(code, name), attempt(code, check, name, starter), record(...): methods of Session, one after the other.
self.onmessage = async ({ data: { method, args } }) => {
  let ok = false, seconds = 0;
  try {
    const session = await ready, begun = performance.now();
    ok = session[method](...args);
    seconds = (performance.now() - begun) / 1000;
  } catch (error) {
    postMessage({ kind: "error", text: error.message });
  }
  postMessage({ kind: "end", ok, seconds });
};
