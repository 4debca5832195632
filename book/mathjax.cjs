// Load the MathJax that the book is set with, under Node.
//
// MathJax expects a browser. It reads and sets TeX without one, but while it is loaded it asks after the document; an
// object that answers every question with itself is enough.
const fs = require("fs");
const path = require("path");
const vm = require("vm");

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

const unserved = (file) => `it needs MathJax's ${file}, which the site does not serve`;

/**
 * Call `ready(MathJax)` once everything is there, and write what it gives to the standard output as JSON.
 *
 * folder: where tex-mml-chtml.js lies; config: MathJax's configuration; load: what is to be loaded besides.
 */
function start({folder, config, load = []}, ready) {
  const browser = {
    console, setTimeout, clearTimeout, document: nothing, XPathResult: nothing, DOMParser: nothing,
    navigator: {appVersion: "", userAgent: "", platform: ""},
  };
  browser.window = browser;
  vm.createContext(browser);

  function run(file) {
    if (!fs.existsSync(file)) throw new Error(unserved(path.relative(folder, file)));
    vm.runInContext(fs.readFileSync(file, "utf8"), browser, {filename: file});
  }

  // The configuration is made inside, since MathJax knows objects and lists by the constructors of its own world.
  const whole = {tex: {}, ...config, loader: {...config.loader, load}, startup: {}};
  browser.MathJax = vm.runInContext("JSON.parse", browser)(JSON.stringify(whole));
  browser.MathJax.loader.require = run;
  browser.MathJax.loader.paths = {...browser.MathJax.loader.paths, mathjax: folder};
  // Errors of MathJax are no errors of Node, which would print the line of the bundle that failed: a megabyte.
  const failed = (error) => {
    console.error(error?.message ?? error);
    process.exitCode = 1;
  };
  process.on("uncaughtException", failed);
  browser.MathJax.startup.ready = () =>
    Promise.resolve(ready(browser.MathJax)).then((found) => process.stdout.write(JSON.stringify(found))).catch(failed);
  browser.MathJax.tex.formatError = (_, error) => { throw error; };
  run(path.join(folder, "tex-mml-chtml.js"));
}

// A page with macros of its own: they hold from where they stand to the end of the page, as in a browser.
const defines = ({tex}) => /\\([egx]?def|let|(re)?newcommand|newenvironment|require|DeclareMathOperator)\b/.test(tex);

module.exports = {start, defines, unserved, read: () => JSON.parse(fs.readFileSync(0, "utf8"))};
