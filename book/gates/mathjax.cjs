// Give TeX to the MathJax that the site serves, and say what it refuses.
//
// stdin:  {"folder": where tex-mml-chtml.js lies, "config": mathjax3_config, "pages": [[{"tex": …, "display": …}, …], …]}
// stdout: [[null or a message, …], …]; with "mathml": true in the job, the formulas as MathML in place of null
//
// MathJax expects a browser. It reads TeX without one, but while it is loaded it asks after the document; an object
// that answers every question with itself is enough. One page shares its macros and labels, as in the browser.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const {folder, config, pages, mathml} = JSON.parse(fs.readFileSync(0, "utf8"));

const nothing = new Proxy(function () {}, {
  get: (_, key) => {
    if (key === Symbol.toPrimitive) return () => "";
    if (key === Symbol.iterator) return function* () {};
    return key === "length" ? 0 : key === "then" ? undefined : nothing;
  },
  set: () => true,
  apply: () => nothing,
  construct: () => nothing,
});
const browser = {
  console, setTimeout, clearTimeout, document: nothing, XPathResult: nothing, DOMParser: nothing,
  navigator: {appVersion: "", userAgent: "", platform: ""},
};
browser.window = browser;
vm.createContext(browser);

const unserved = (file) => `it needs MathJax's ${file}, which the site does not serve`;

function run(file) {
  if (!fs.existsSync(file)) throw new Error(unserved(path.relative(folder, file)));
  vm.runInContext(fs.readFileSync(file, "utf8"), browser, {filename: file});
}

// The configuration is made inside, since MathJax knows objects and lists by the constructors of its own world.
browser.MathJax = vm.runInContext("JSON.parse", browser)(JSON.stringify({loader: {}, tex: {}, ...config, startup: {}}));
browser.MathJax.loader.require = run;
browser.MathJax.loader.paths = {...browser.MathJax.loader.paths, mathjax: folder};
browser.MathJax.tex.formatError = (_, error) => { throw error; };
browser.MathJax.startup.ready = () => check().then((found) => process.stdout.write(JSON.stringify(found)));

// Without this, Node would print the line of the bundle that failed: a megabyte.
process.on("uncaughtException", (error) => {
  console.error(error?.message ?? error);
  process.exitCode = 1;
});

async function check() {
  const {startup, _: internals} = browser.MathJax;
  const {AbstractMathItem} = internals.core.MathItem;
  const {MmlFactory} = internals.core.MmlTree.MmlFactory;
  const {handleRetriesFor} = internals.util.Retries;
  const {SerializedMmlVisitor} = internals.core.MmlTree.SerializedMmlVisitor;
  const writer = new SerializedMmlVisitor();
  const results = [];
  const good = new Set(); // the two languages share most formulas; one is not read again unless its page has own macros
  for (const page of pages) {
    const own = page.some(({tex}) => /\\([egx]?def|let|(re)?newcommand|newenvironment|require|DeclareMathOperator)\b/.test(tex));
    const jax = startup.getInputJax()[0];
    jax.setMmlFactory(new MmlFactory());
    const found = [];
    for (const {tex, display} of page) {
      if (!own && !mathml && good.has(`${display} ${tex}`)) {
        found.push(null);
        continue;
      }
      try {
        // A macro that MathJax loads on demand throws a retry; the promise waits for the file or fails with it.
        let root;
        await handleRetriesFor(() => { root = jax.compile(new AbstractMathItem(tex, jax, display), {}); });
        found.push(mathml ? writer.visitTree(root) : null);
        if (!own) good.add(`${display} ${tex}`);
      } catch (error) {
        found.push(explained(String(error?.message ?? error)));
      }
    }
    results.push(found);
  }
  return results;
}

// MathJax asks for the file of a macro once; afterwards the macro is undefined.
function explained(message) {
  const macro = /^Undefined control sequence \\(\w+)/.exec(message)?.[1];
  const {autoload} = browser.MathJax._.input.tex.autoload.AutoloadConfiguration.AutoloadConfiguration.options;
  const file = Object.keys(autoload).find((name) => name === macro || autoload[name].flat().includes(macro));
  return macro && file ? unserved(`input/tex/extensions/${file}.js`) : message;
}

run(path.join(folder, "tex-mml-chtml.js"));
