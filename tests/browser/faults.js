// What can be wrong with a page that has been drawn; faults.py says what each function is for.
window.faults = (() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const tag = (e) => `<${e.tagName.toLowerCase()} class="${e.getAttribute("class") ?? ""}">`;
  const words = (e) => (e.textContent ?? "").trim().replace(/\s+/g, " ").slice(0, 60);
  const visible = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });

  function wide({ printed, keyboard }) {
    const width = document.documentElement.clientWidth, faults = [], done = new Set();
    const hidden = document.head.appendChild(document.createElement("style"));
    hidden.textContent = "mjx-assistive-mml { display: none !important }"; // formulas for screen readers take no room
    if (document.documentElement.scrollWidth > innerWidth)
      faults.push(`the page is ${document.documentElement.scrollWidth} px wide`);
    for (const e of document.body.querySelectorAll("*")) {
      if (done.has(e.parentElement)) { done.add(e); continue; } // what holds it has been judged for all that it holds
      const box = e.getBoundingClientRect(), overflow = getComputedStyle(e).overflowX;
      const scrolls = ["auto", "scroll"].includes(overflow), cuts = ["hidden", "clip"].includes(overflow);
      const full = e.scrollWidth > e.clientWidth + 1;
      if (["MJX-CONTAINER", "svg"].includes(e.tagName)) done.add(e);
      if (!visible(e) || box.width <= 1 || box.height <= 1) { // a box of one pixel holds words for screen readers
        if (scrolls || cuts) done.add(e);
      } else if (box.right > width + 1 || box.left < -1) {
        faults.push(`from ${Math.round(box.left)} to ${Math.round(box.right)} px: ${tag(e)} ${words(e)}`);
        done.add(e);
      } else if (full && (cuts || (printed && scrolls))) {
        faults.push(`cut off at ${e.clientWidth} of ${e.scrollWidth} px: ${tag(e)} ${words(e)}`);
        done.add(e);
      } else if (scrolls) {
        if (keyboard && full && e.tabIndex < 0 && !e.querySelector("a[href], button, input, [tabindex='0']"))
          faults.push(`the keyboard cannot scroll ${tag(e)} ${words(e)}`);
        done.add(e);
      }
    }
    hidden.remove();
    return faults;
  }

  function equations() {
    const errors = all("mjx-merror").map((e) => `formula not understood: ${e.dataset.mjxError ?? e.textContent}`);
    const [asked, set] = [all(".math").length, all("mjx-container").length];
    return asked === set ? errors : [...errors, `${set} of ${asked} formulas are set`];
  }

  function identifiers() {
    const ids = all("[id]").map((e) => e.id);
    return [...new Set(ids.filter((id, n) => ids.indexOf(id) !== n))].map((id) => `the identifier ${id} stands twice`);
  }

  function sheets() {
    return all("body style").map((e) => `a style sheet in the text, which makes a browser begin again: ${words(e)}`);
  }

  function motion() {
    const long = (times) => times.split(",").some((time) => parseFloat(time) > 0.01);
    return all("*").filter((e) => {
      const style = getComputedStyle(e);
      return style.scrollBehavior === "smooth" || long(style.transitionDuration)
        || (style.animationName !== "none" && long(style.animationDuration));
    }).map((e) => `${tag(e)} moves`);
  }

  // What an element looks like, in either mode: its own tag, class and style and those of all that it stands in. Rows of
  // tables take turns in colour. The same on all pages, so that a look is known again: a hash of 53 bits.
  const kinds = new WeakMap();
  const hash = (text) => {
    let [a, b] = [0xdeadbeef, 0x41c6ce57];
    for (let n = 0; n < text.length; n++) {
      a = Math.imul(a ^ text.charCodeAt(n), 2654435761);
      b = Math.imul(b ^ text.charCodeAt(n), 1597334677);
    }
    return 4294967296 * (2097151 & (b ^ (b >>> 13))) + (a >>> 0);
  };
  function kind(e) {
    if (!e) return 0;
    if (!kinds.has(e)) {
      const row = e.tagName === "TR" ? [...e.parentElement.children].indexOf(e) % 2 : "";
      const own = [e.tagName, e.getAttribute("class"), e.getAttribute("style"), row];
      kinds.set(e, hash([kind(e.parentElement), ...own].join("\n")));
    }
    return kinds.get(e);
  }

  // The same with what no class says: colours, its own and that of the ground it stands on, size and weight.
  function looks(e) {
    const style = getComputedStyle(e);
    let ground = e;
    while (ground && /, 0\)$|transparent/.test(getComputedStyle(ground).backgroundColor)) ground = ground.parentElement;
    const behind = ground ? getComputedStyle(ground).backgroundColor : "";
    return hash([kind(e), style.color, style.fontSize, style.fontWeight, style.opacity, behind].join("\n"));
  }

  // Four in five elements of a chapter are the insides of formulas, glyphs that MathJax draws, which are hidden from
  // screen readers, and the MathML that it adds for them, and words of code. Once these have been looked at, a box of the
  // formula's size takes its place, in units of its font, so that it follows the window and the paper as the formula
  // would; of words that look alike only the first keeps its element, the others keep their text.
  function lighten() {
    const boxes = all("mjx-container").filter((e) => e.firstElementChild?.tagName === "MJX-MATH").map((e) => {
      const drawn = e.firstElementChild, size = drawn.getBoundingClientRect();
      const unit = parseFloat(getComputedStyle(drawn).fontSize), box = document.createElement("span");
      box.style.cssText = `display: inline-block; font-size: ${unit / parseFloat(getComputedStyle(e).fontSize)}em; `
        + `width: ${size.width / unit}em; height: ${size.height / unit}em`;
      return [e, box];
    });
    for (const [e, box] of boxes) e.replaceChildren(box);
    for (const e of all("svg[role='img']")) e.replaceChildren();
    unwrap("pre span, dt.sig :is(span, em), code > span, dd em");
  }

  function unwrap(selector) {
    const seen = new Set(), repeated = [];
    for (const e of all(selector)) {
      if (seen.has(kind(e)) && !e.id) repeated.push(e);
      seen.add(kind(e));
    }
    for (const e of repeated.reverse()) e.replaceWith(...e.childNodes);
  }

  // axe weighs all elements one by one. What repeats itself, a paragraph, an item, an entry of the package's page, is left
  // in once, and not at all if an earlier page has shown it to be right: two have one outline if they look alike, have
  // attributes of the same names (and of the same values where axe weighs these), are both empty or not, and hold the same. A colour that a style sheet gives by place, as the third of
  // its kind, may go with the places; rows of tables are kept apart by their parity. What names a link or the like stays.
  // Gives the outlines that are left.
  const REPEATED = "p:not(th p, a p, button p, label p, summary p), li, dl, tr, pre, div.highlight, div[class*='highlight-'], div.cell, .admonition, .math";
  const VALUES = ["role", "tabindex", "lang", "type", "scope", "aria-hidden", "aria-expanded", "alt"];
  const REFERENCES = ["aria-labelledby", "aria-describedby", "aria-controls"];
  const listed = (e, name) => (e.getAttribute(name) ?? "").split(/\s+/).filter((word) => word);

  function thin(known) {
    lighten();
    for (const e of [...all("mjx-container").slice(1), ...all("wbr, svg :not(title)")]) e.remove();
    unwrap("span.math, code, em, strong, span:not([id], [role], [tabindex], [aria-label], [aria-hidden])");
    const seen = new Set(known), repeated = [], left = [];
    const outline = (e) => {
      const inside = [...e.children].map(outline).join();
      const attributes = e.getAttributeNames().filter((name) => !/^(id|style|class|data-.*)$/.test(name)).sort();
      const values = VALUES.map((name) => e.getAttribute(name)), empty = !e.textContent.trim();
      values.push(!listed(e, "aria-label").length);
      values.push(REFERENCES.every((name) => listed(e, name).every((id) => document.getElementById(id))));
      const own = hash([looks(e), attributes, values, empty, e.scrollWidth > e.clientWidth + 1, inside].join("\n"));
      if (e.matches(REPEATED)) {
        if (seen.has(own) && !e.querySelector("h1, h2, h3, h4, h5, h6")) {
          repeated.push(e);
          return "";
        }
        seen.add(own);
        left.push(own);
      }
      return own;
    };
    outline(document.body);
    for (const e of repeated) e.remove();
    return left;
  }

  // Leaves a part of the page and takes the text around it away: its neighbours and those of all that it stands in.
  function alone(selector) {
    for (let e = document.querySelector(selector); !e.matches("article"); e = e.parentElement)
      for (const other of [...e.parentElement.children]) if (other !== e) other.remove(); // what is left keeps the focus
  }

  // The contrast of text, and of a link with the text around it, takes most of axe's time and depends on the looks alone:
  // it is computed for one element of each look that is not known. Gives these looks, and the findings.
  const LOOKS = { "color-contrast": "[data-look]", "link-in-text-block": "a[href][data-look]" };
  const OTHERS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

  async function barriers({ known, contrastOnly }) {
    const first = new Map(), old = new Set(known);
    for (const e of document.body.querySelectorAll("*")) {
      if (![...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
      const look = looks(e);
      if (!old.has(look) && !first.has(look) && visible(e)) first.set(look, e);
    }
    if (contrastOnly && !first.size) return [[], []];
    // The theme looks for boxes that scroll 0.3 s after a change of the window, of which printing is one.
    for (let n = 0; n < 20 && all("pre").some((e) => e.scrollWidth > e.clientWidth && e.tabIndex < 0); n++)
      await new Promise((done) => setTimeout(done, 50));
    const marked = new Set([...first.values()].flatMap((e) => [e, e.closest("a[href]")].filter((found) => found)));
    for (const e of marked) e.dataset.look = "";
    axe.configure({ rules: Object.entries(LOOKS).map(([id, selector]) => ({ id, selector })) });
    const runOnly = contrastOnly ? Object.keys(LOOKS) : OTHERS;
    const result = await axe.run(document, { runOnly, preload: false, resultTypes: ["violations"] });
    for (const e of marked) delete e.dataset.look;
    const found = result.violations.flatMap((rule) => rule.nodes.map((node) => {
      const why = [...node.any, ...node.all, ...node.none].map((check) => check.message).join("; ");
      const html = node.html.replace(/\s+/g, " ").slice(0, 120);
      return `axe ${rule.id}: ${why}: ${html} at ${node.target.join(" ")}`;
    }));
    return [[...first.keys()], found];
  }

  return { wide, equations, identifiers, sheets, motion, lighten, alone, thin, barriers };
})();
