// What happens when a reader presses a button of a live cell or exercise. One Python serves the whole page; it is
// loaded at the first Run, and again after Stop, which ends it. What stands before a cell in the page runs before it.

let app;

export function connect(page, source) {
  app ??= load(page, source).catch((error) => { app = undefined; throw error; });
  return app;
}

async function load(page, source) {
  const response = await fetch(page);
  if (!response.ok) throw new Error(`${page.split("/").at(-1)}: ${response.status}`);
  const style = document.head.appendChild(document.createElement("link"));
  style.rel = "stylesheet";
  style.href = new URL("open.css", source);
  await new Promise((done) => (style.onload = style.onerror = done));
  return new App(await response.json(), new URL("./", source));
}

export const make = (tag, className = "", text = "") => Object.assign(document.createElement(tag), { className, textContent: text });

class Stopped extends Error {}
class Broken extends Error {}

// The worker. Its calls are answered in order.
class Python {
  constructor(base, told) {
    this.told = told;
    this.calls = [];
    this.ran = new Set(); // steps of the page
    this.worker = new Worker(new URL("worker.js", base), { type: "module" });
    this.worker.onmessage = ({ data }) => this.hear(data);
    this.worker.onerror = (event) => this.hear({ kind: "broken", text: event.message || "worker.js" });
  }

  hear(data) {
    if (data.kind === "broken") this.end(new Broken(data.text));
    else if (data.kind === "ready") this.told((this.ready = true));
    else if (data.kind === "loading") this.told(false, data.loaded);
    else if (data.kind === "end") this.calls.shift().resolve(data);
    else this.calls[0]?.show(data);
  }

  call(method, args, show) {
    return new Promise((resolve, reject) => {
      this.calls.push({ resolve, reject, show });
      this.worker.postMessage({ method, args });
    });
  }

  end(error) {
    this.worker.terminate();
    this.ended = true;
    for (const { reject } of this.calls.splice(0)) reject(error);
  }
}

class App {
  constructor(data, base) {
    Object.assign(this, data, { base, cells: new Map(), queue: Promise.resolve() });
    this.number = (value, digits) => value.toLocaleString(this.language, { maximumSignificantDigits: digits });
  }

  say(name, values = {}) {
    return this.words[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
  }

  async open(bar, act) {
    if (!this.cells.has(bar)) {
      if (bar.dataset.kind === "world") {
        const { World } = await import(new URL("world.js", this.base));
        this.cells.set(bar, new World(this, bar));
      } else this.cells.set(bar, bar.dataset.kind === "cell" ? new Cell(this, bar) : new Exercise(this, bar));
    }
    return this.cells.get(bar)[act]();
  }

  // The running Python, or a new one; `told` hears how far it is.
  python(told) {
    if (!this.running || this.running.ended) this.running = new Python(this.base, (...news) => this.told?.(...news));
    this.told = told;
    if (this.running.ready) told(true);
    return this.running;
  }

  // One thing at a time: what is asked for meanwhile waits.
  next(work) {
    return (this.queue = this.queue.then(work, work));
  }

  // Run what stands before a place of the page and has not run yet.
  async prepare(python, end) {
    for (let place = 0; place < end; place++) {
      if (python.ran.has(place)) continue;
      const { cell, code } = this.steps[place];
      const own = code === undefined ? this.cell(cell) : undefined, shown = [];
      const { ok } = await python.call("run", [code ?? own.text(), this.name(cell)], (data) => shown.push(data));
      if (!ok) {
        own?.clear();
        for (const data of shown) own?.show(data);
        own?.state("failed", "");
        throw new Error(this.say("earlier"), { cause: own });
      }
      python.ran.add(place);
    }
  }

  cell(number) {
    const bar = document.getElementById(`live-${number}`);
    if (!this.cells.has(bar)) this.cells.set(bar, new Cell(this, bar));
    return this.cells.get(bar);
  }

  name(cell) {
    return this.say("name", { number: cell + 1 });
  }
}

// What cells and exercises share: an editor, the buttons, a place for what is shown.
export class Editable {
  constructor(app, bar) {
    Object.assign(this, { app, bar });
    this.status = bar.querySelector("[role=status]");
    this.go = bar.querySelector("button");
    this.reset_ = make("button", "", app.say("reset"));
    this.reset_.type = "button";
    this.reset_.hidden = true;
    this.reset_.addEventListener("click", () => this.reset());
    this.status.before(this.reset_);
    this.progress = make("progress");
    this.progress.max = app.bytes;
    this.progress.hidden = true;
    this.progress.setAttribute("aria-label", app.say("loading"));
    this.status.before(this.progress);
  }

  text() {
    return this.editor ? this.editor.text() : this.source;
  }

  async edit() {
    if (!this.editor) {
      const { createEditor } = await import(new URL("vendor/codemirror/editor.js", this.app.base));
      this.box = make("div", "live-editor");
      for (const event of ["keydown", "keypress"]) // the page's own keys, such as "/" for its search, are not meant
        this.box.addEventListener(event, (e) => e.stopPropagation());
      this.bar.before(this.box);
      this.editor = createEditor(this.box, this.source, {
        label: this.app.say("editor"),
        run: () => this.state_ === "running" || this.run(),
        leave: () => this.go.focus(),
      });
      this.opened(true);
      this.reset_.hidden = false;
    }
    this.editor.focus();
  }

  // Run, or Stop while it runs.
  run() {
    if (this.state_ === "running") return this.stop();
    this.state("running", this.app.say("waiting"));
    this.stopped = false;
    return this.app.next(() => this.execute());
  }

  stop() {
    this.stopped = true;
    if (this.busy) this.app.running.end(new Stopped());
    else this.state("stopped", this.app.say("stopped"));
  }

  async execute() {
    if (this.stopped) return;
    const { app } = this;
    this.busy = true;
    this.clear();
    this.reset_.hidden = false;
    const python = app.python((ready, loaded = 0) => {
      this.progress.hidden = ready;
      this.progress.value = Math.min(loaded, app.bytes);
      this.state("running", app.say(ready ? "running" : "loading"));
    });
    if (!python.ready) app.told(false);
    try {
      const { ok, seconds } = await this.work(python);
      if (ok) this.state("done", app.say(this.fine, { seconds: app.number(seconds, 2) }));
      else this.state("failed", this.why ?? app.say("error"));
    } catch (error) {
      if (error instanceof Stopped) this.state("stopped", app.say("stopped"));
      else if (error instanceof Broken) this.state("broken", `${app.say("broken")} ${error.message}`);
      else this.state("failed", error.message);
    }
    this.progress.hidden = true;
    this.busy = false;
  }

  state(name, text) {
    this.state_ = this.bar.dataset.state = name;
    if (this.status.textContent !== text) this.status.textContent = text;
    this.go.textContent = this.app.say(name === "running" ? "stop" : name === "broken" ? "retry" : this.verb);
  }

  reset() {
    if (this.state_ === "running") this.stop();
    this.editor?.destroy();
    this.box?.remove();
    this.editor = this.box = undefined;
    this.opened(false);
    this.clear();
    this.restored();
    this.reset_.hidden = true;
    this.state("", "");
    this.go.focus();
  }

  clear() {
    this.output?.remove();
    this.output = this.last = undefined;
    this.why = undefined;
  }

  // One message of session.py.
  show({ kind, text }) {
    if (kind === "right") return;
    if (!this.output) {
      this.output = make("div", "cell_output docutils container live-output");
      this.place(this.output);
    }
    const block = { stdout: "stream", stderr: "stderr", error: "traceback", markdown: "stream" }[kind];
    if (block) {
      if (this.last?.kind !== kind) {
        const box = this.output.appendChild(make("div", `output ${block} highlight-myst-ansi notranslate`));
        const pre = box.appendChild(make("div", "highlight")).appendChild(make("pre"));
        pre.tabIndex = 0;
        this.last = { kind, pre };
      }
      this.last.pre.append(text);
      return;
    }
    this.last = undefined;
    if (kind === "html" || kind === "svg") {
      const box = this.output.appendChild(make("div", "output text_html"));
      box.tabIndex = 0;
      const parts = new DOMParser().parseFromString(text, "text/html").body;
      for (const part of parts.querySelectorAll("script, style, iframe, object, embed, link, meta")) part.remove();
      box.append(...parts.childNodes);
    } else {
      const said = this.output.appendChild(make("p", `live-${kind}`));
      said.setAttribute("role", "alert");
      said.textContent = kind === "wrong" ? text : this.app.say(kind, { name: text });
    }
  }
}

class Cell extends Editable {
  verb = "run";
  fine = "done";

  constructor(app, bar) {
    super(app, bar);
    this.number = Number(bar.id.slice(5));
    this.place_ = app.steps.findIndex(({ cell, code }) => cell === this.number && code === undefined);
    this.cell = bar.closest("div.cell");
    this.code = this.cell.querySelector(".cell_input [class*=highlight-]");
    this.built = this.cell.querySelector(".cell_output");
    this.source = this.code.querySelector("pre").textContent;
  }

  opened(open) {
    this.code.hidden = open;
    this.bar.querySelector("[data-act=edit]").hidden = open;
  }

  place(output) {
    this.cell.append(output);
  }

  clear() {
    super.clear();
    if (this.built) this.built.hidden = true;
  }

  restored() {
    if (this.built) this.built.hidden = false;
    this.app.running?.ran.delete(this.place_);
  }

  async work(python) {
    await this.app.prepare(python, this.place_);
    const answer = await python.call("run", [this.text(), this.app.name(this.number)], (data) => this.show(data));
    if (answer.ok) python.ran.add(this.place_);
    return answer;
  }
}

class Exercise extends Editable {
  verb = "check";
  fine = "right";

  constructor(app, bar) {
    super(app, bar);
    Object.assign(this, app.exercises[bar.closest("div.exercise").id]);
    this.source = this.starter;
  }

  solve() {
    return this.editor ? this.run() : this.edit().then(() => this.state("", ""));
  }

  opened(open) {
    this.verb = open ? "check" : "solve";
  }

  place(output) {
    this.bar.after(output);
  }

  restored() {}

  show(data) {
    if (data.kind === "wrong") this.why = this.app.say("wrong");
    super.show(data);
  }

  async work(python) {
    await this.app.prepare(python, this.after);
    const args = [this.text(), this.check, this.app.say("answer"), this.starter];
    return python.call("attempt", args, (data) => this.show(data));
  }
}
