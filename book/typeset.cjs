// Set TeX by the MathJax that the book is set with: HTML with the MathML for screen readers, and the style it needs.
//
// stdin:  {"folder": where tex-mml-chtml.js lies, "config": mathjax3_config, "fonts": their address in the style,
//          "pages": [[{"tex": …, "display": …}, …], …]}
// stdout: {"pages": [[HTML, …], …], "style": CSS}
const {start, defines, read} = require("./mathjax.cjs");

const {folder, config, fonts, pages} = read();
// Sizes are in units of the font around a formula; book.css sets the one factor that a browser would measure.
const chtml = {...config.chtml, fontURL: fonts, matchFontHeight: false};

start({folder, config: {...config, chtml}, load: ["adaptors/liteDOM"]}, async (MathJax) => {
  const {startup, _: internals} = MathJax;
  const adaptor = internals.adaptors.liteAdaptor.liteAdaptor();
  const plain = new internals.handlers.html.HTMLHandler.HTMLHandler(adaptor);
  internals.mathjax.mathjax.handlers.register(internals.a11y["assistive-mml"].AssistiveMmlHandler(plain));
  const {handleRetriesFor} = internals.util.Retries;
  const output = startup.getOutputJax();
  const document = (tex) => internals.mathjax.mathjax.document("", {InputJax: tex, OutputJax: output});
  const shared = document(startup.getInputJax().find((jax) => jax.name === "TeX"));
  const measure = {em: 16, ex: 8, containerWidth: 80 * 16};
  const set = new Map(); // most formulas stand on several pages, or several times on one

  const results = [];
  for (const formulas of pages) {
    const own = formulas.some(defines);
    const page = own ? document(new internals.input.tex_ts.TeX(MathJax.config.tex)) : shared;
    const found = [];
    for (const {tex, display} of formulas) {
      const key = `${display} ${tex}`;
      const drawn = (!own && set.get(key))
        || adaptor.outerHTML(await handleRetriesFor(() => page.convert(tex, {display, ...measure})));
      if (!own) set.set(key, drawn);
      found.push(drawn);
    }
    results.push(found);
  }
  return {pages: results, style: adaptor.textContent(output.styleSheet(shared))};
});
