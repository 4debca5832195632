// Give TeX to the MathJax that the site serves, and say what it refuses.
//
// stdin:  {"folder": where tex-mml-chtml.js lies, "config": mathjax3_config, "pages": [[{"tex": …, "display": …}, …], …]}
// stdout: [[null or a message, …], …]
//
// One page shares its macros and labels, as in the browser.
const {start, defines, unserved, read} = require("../mathjax.cjs");

const {folder, config, pages} = read();

start({folder, config}, async (MathJax) => {
  const {startup, _: internals} = MathJax;
  const {AbstractMathItem} = internals.core.MathItem;
  const {MmlFactory} = internals.core.MmlTree.MmlFactory;
  const {handleRetriesFor} = internals.util.Retries;
  const shared = startup.getInputJax()[0];
  const results = [];
  const good = new Set(); // the two languages share most formulas; one is not read again unless its page has own macros
  for (const page of pages) {
    const own = page.some(defines);
    const jax = own ? new internals.input.tex_ts.TeX(MathJax.config.tex) : shared; // what one defines is its own
    jax.setMmlFactory(new MmlFactory());
    const found = [];
    for (const {tex, display} of page) {
      if (!own && good.has(`${display} ${tex}`)) {
        found.push(null);
        continue;
      }
      try {
        // A macro that MathJax loads on demand throws a retry; the promise waits for the file or fails with it.
        await handleRetriesFor(() => jax.compile(new AbstractMathItem(tex, jax, display), {}));
        found.push(null);
        if (!own) good.add(`${display} ${tex}`);
      } catch (error) {
        found.push(explained(MathJax, String(error?.message ?? error)));
      }
    }
    results.push(found);
  }
  return results;
});

// MathJax asks for the file of a macro once; afterwards the macro is undefined.
function explained(MathJax, message) {
  const macro = /^Undefined control sequence \\(\w+)/.exec(message)?.[1];
  const {autoload} = MathJax._.input.tex.autoload.AutoloadConfiguration.AutoloadConfiguration.options;
  const file = Object.keys(autoload).find((name) => name === macro || autoload[name].flat().includes(macro));
  return macro && file ? unserved(`input/tex/extensions/${file}.js`) : message;
}
