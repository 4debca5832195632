// Makes a player of the stored episodes. What it shows stands in the page as JSON and, for readers without scripts, as
// tables, which it hides. Words and numbers are in the page's language.
(() => {
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const player = (box) => {
    const data = JSON.parse(box.querySelector(".viewer-data").textContent);
    const { words, actions } = data;
    const percent = new Intl.NumberFormat(document.documentElement.lang || "en", {
      style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1,
    });
    const id = (name) => `viewer-${name}`;
    let stage = data.stages.at(-1), chosen = 0, turn = 0, timer = 0;

    const stages = make("fieldset", {}, make("legend", { textContent: words.stage }));
    for (const name of data.stages) {
      const update = data.updates[name];
      const label = words.stages[name] + (update === undefined ? "" : ` (${words.update.replace("{}", update)})`);
      const input = make("input", { type: "radio", name: id("stage"), value: name, checked: name === stage });
      input.addEventListener("change", () => { stage = name; chosen = 0; begin(); });
      stages.append(make("label", {}, input, " ", label));
    }
    const select = make("select", { id: id("episode") });
    select.addEventListener("change", () => { chosen = select.selectedIndex; turn = 0; stop(); show(); });

    const heading = make("p", { className: "viewer-turn" });
    const knows = make("p", { className: "viewer-text" });
    const bars = make("ol", { className: "viewer-bars" });
    const rows = actions.map((action) => {
      const bar = make("span", { className: "viewer-bar" }, make("span"));
      const number = make("span", { className: "viewer-number" });
      const row = make("li", {}, make("code", { textContent: action }), bar, number);
      bar.setAttribute("aria-hidden", "true");
      bars.append(row);
      return { row, bar: bar.firstChild, number };
    });
    bars.setAttribute("aria-label", words.chances);
    const answer = make("p", { className: "viewer-text" });
    const end = make("p", { className: "viewer-end" });
    const live = make("p", { className: "viewer-live" });
    live.setAttribute("role", "status");

    const button = (sign, label, act) => {
      const made = make("button", { type: "button" }, sign);
      made.setAttribute("aria-label", label);
      made.title = label;
      made.addEventListener("click", act);
      return made;
    };
    const first = button("|◀", words.first, () => { stop(); go(0); });
    const back = button("◀", words.back, () => { stop(); go(turn - 1); });
    const run = button(words.play, words.play, () => (timer ? stop() : start()));
    const next = button("▶", words.next, () => { stop(); go(turn + 1); });
    run.removeAttribute("title");
    const buttons = make("div", { className: "viewer-buttons" }, first, back, run, next);

    const here = () => data.episodes.filter((episode) => episode.stage === stage);
    const episode = () => here()[chosen];

    function begin() {
      select.replaceChildren(...here().map((one, place) =>
        make("option", { textContent: `${place + 1}. ${words.target[one.target]}` })));
      turn = 0;
      stop();
      show();
    }
    function go(to) {
      turn = Math.max(0, Math.min(episode().turns.length - 1, to));
      show();
    }
    function stop() {
      clearInterval(timer);
      timer = 0;
      run.textContent = words.play;
      run.setAttribute("aria-label", words.play);
    }
    function start() {
      if (turn === episode().turns.length - 1) go(0);
      run.textContent = words.pause;
      run.setAttribute("aria-label", words.pause);
      timer = setInterval(() => {
        go(turn + 1);
        if (turn === episode().turns.length - 1) stop();
      }, 1600);
    }
    function show() {
      const { turns, end: reason } = episode();
      const { knows: prompt, action, chances, answer: said } = turns[turn];
      const last = turn === turns.length - 1;
      heading.textContent = words.turn.replace("{}", turn + 1).replace("{}", turns.length);
      knows.replaceChildren(make("strong", { textContent: `${words.knows}: ` }), prompt);
      rows.forEach(({ row, bar, number }, place) => {
        const taken = actions[place] === action;
        bar.style.width = `${100 * chances[place]}%`;
        number.textContent = percent.format(chances[place]) + (taken ? ` ◂ ${words.takes}` : "");
        row.classList.toggle("taken", taken);
      });
      answer.replaceChildren(make("strong", { textContent: `${words.answer}: ` }), said);
      end.textContent = last ? words.end[reason] : "\u00a0";
      for (const one of [first, back]) one.setAttribute("aria-disabled", String(turn === 0));
      next.setAttribute("aria-disabled", String(last));
      const chance = percent.format(chances[actions.indexOf(action)]);
      live.textContent = `${heading.textContent}: ${action}, ${chance}. ${said} ${last ? words.end[reason] : ""}`;
    }

    const stageBox = make("div", { className: "viewer-stage" },
      heading, knows, bars, answer, end, buttons, make("p", { className: "viewer-keys", textContent: words.keys }), live);
    box.addEventListener("keydown", (event) => {
      if (event.target.matches("input, select, summary") || event.altKey || event.ctrlKey || event.metaKey) return;
      const to = { ArrowLeft: turn - 1, ArrowRight: turn + 1, Home: 0, End: Infinity }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      stop();
      go(to);
    });
    const label = make("label", { htmlFor: id("episode") }, `${words.episode} `);
    box.querySelector(".viewer-tables").hidden = true;
    box.append(stages, make("p", { className: "viewer-choice" }, label, select), stageBox);
    begin();
    addEventListener("beforeprint", () => box.querySelectorAll("details").forEach((part) => { part.open = true; }));
  };

  for (const box of document.querySelectorAll(".keydoor-viewer")) player(box);
})();
