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

  function motion() {
    const long = (times) => times.split(",").some((time) => parseFloat(time) > 0.01);
    return all("*").filter((e) => {
      const style = getComputedStyle(e);
      return style.scrollBehavior === "smooth" || long(style.transitionDuration)
        || (style.animationName !== "none" && long(style.animationDuration));
    }).map((e) => `${tag(e)} moves`);
  }

  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/, 0\)$|transparent/.test(colour)) return colour;
    }
  };
  const looks = (e) => {
    const style = getComputedStyle(e);
    return [style.color, style.fontSize, style.fontWeight, style.opacity, ground(e)].join();
  };

  // Four in five elements of a chapter are the insides of formulas: glyphs that MathJax draws, which are hidden from
  // screen readers, and the MathML that it adds for them. Once they have been looked at, a box of the formula's size
  // takes their place, in units of its font, so that it follows the window and the paper as the formula would.
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
  }

  // Pages have ten thousand elements, which axe would weigh one by one for half a minute. What repeats itself is taken
  // out: words of code and of signatures lose their element and keep their text, but for the first of each look.
  function thin() {
    const seen = new Set(), repeated = new Set();
    for (const e of all("pre span, dt.sig :is(span, em), code > span, dd em").reverse()) {
      const look = looks(e);
      if (seen.has(look) && [...e.children].every((child) => repeated.has(child))) repeated.add(e);
      seen.add(look);
    }
    for (const e of repeated) e.replaceWith(...e.childNodes);
    lighten();
  }

  async function run(where, options) {
    const result = await axe.run(where, { preload: false, resultTypes: ["violations"], ...options });
    return result.violations.flatMap((rule) => rule.nodes.map((node) => {
      const why = [...node.any, ...node.all, ...node.none].map((check) => check.message).join("; ");
      const html = node.html.replace(/\s+/g, " ").slice(0, 120);
      return `axe ${rule.id}: ${why}: ${html} at ${node.target.join(" ")}`;
    }));
  }

  // The contrast of text takes most of axe's time and depends on the looks alone: it is computed once for each.
  async function contrast() {
    const first = new Map();
    for (const e of document.body.querySelectorAll("*")) {
      if (![...e.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
      const look = looks(e);
      if (!first.has(look) && visible(e)) first.set(look, e);
    }
    return run({ include: [...first.values()] }, { runOnly: ["color-contrast"] });
  }

  async function allButContrast() {
    // The theme looks for boxes that scroll 0.3 s after a change of the window, of which printing is one.
    for (let n = 0; n < 20 && all("pre").some((e) => e.scrollWidth > e.clientWidth && e.tabIndex < 0); n++)
      await new Promise((done) => setTimeout(done, 50));
    return run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      rules: { "color-contrast": { enabled: false } },
    });
  }

  return { wide, equations, identifiers, motion, lighten, thin, contrast, allButContrast };
})();
