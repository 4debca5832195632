// The key-door world to play. The rules are not here: they are the tables that the build has taken from keydoor.rules,
// and beliefs those of keydoor.exact. The record is made by the package itself, which plays the episode once more.
import { Editable, make } from "./client.js";

// One turn, looked up. Also for the tests, which compare it with the environment.
export function turn(world, episode, action) {
  const [state, seen, reward, invalid, reason] = world.table[episode.state][action];
  const last = episode.turns.length + 1 === world.horizon, stop = reason ?? (last ? "task_horizon" : null);
  const observation = reason === null && last ? "failure" : seen;
  const belief = stop === null ? world.branches[episode.belief][action][seen] : episode.belief;
  const taken = { action: world.actions[action], observation, reward, invalid, stop };
  const potential = stop === null ? world.potential[state] : 0;
  return { ...episode, state, belief, potential, observation, stop, turns: [...episode.turns, taken] };
}

export function begin(world, target) {
  const state = world.start[target];
  return { target, state, belief: 0, potential: world.potential[state], observation: world.observation, stop: null, turns: [] };
}

export class World extends Editable {
  verb = "play";
  fine = "saved";

  play() {
    return this.ui ? this.run() : this.build();
  }

  build() {
    const { app } = this, { world } = app;
    this.bar.parentElement.querySelector(".live-without").hidden = true;
    this.ui = make("div", "live-play");
    this.bar.before(this.ui);
    this.ui.append(make("p", "live-rules", app.say("rules", { first: 1, last: world.actions.length })));
    this.heading = this.ui.appendChild(make("p", "live-turn"));
    this.seen = this.ui.appendChild(make("p", "live-seen"));
    this.news = this.ui.appendChild(make("p", "live-news"));
    this.news.setAttribute("role", "status");
    const group = this.ui.appendChild(make("div", "live-actions"));
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", app.say("actions"));
    this.buttons = world.actions.map((action, index) => {
      const button = group.appendChild(make("button"));
      button.type = "button";
      button.append(make("kbd", "", index + 1), ` ${app.say(`do_${action}`)} `, make("code", "", action));
      button.addEventListener("click", () => this.act(index));
      return button;
    });
    this.again = group.appendChild(make("button", "live-again", app.say("again")));
    this.again.type = "button";
    this.again.addEventListener("click", () => (this.start(), this.buttons[0].focus()));
    this.ui.append(make("p", "live-label", app.say("belief")));
    this.bars = world.colours.map((colour) => {
      const row = this.ui.appendChild(make("p", `live-belief live-${colour}`));
      const meter = make("meter"), text = make("span");
      meter.setAttribute("aria-label", app.say(colour));
      row.append(make("span", "", app.say(colour)), meter, text);
      return { meter, text };
    });
    const label = this.ui.appendChild(make("label", "live-potential"));
    this.choice = label.appendChild(make("input"));
    this.choice.type = "checkbox";
    this.choice.addEventListener("change", () => this.draw());
    label.append(` ${app.say("potential")}`);
    this.phi = this.ui.appendChild(make("p", "live-phi"));
    const box = this.ui.appendChild(make("div", "live-log"));
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", app.say("log"));
    const table = box.appendChild(make("table", "table")), head = table.createTHead().insertRow();
    for (const name of ["turn", "action", "seen", "reward"]) {
      const cell = head.appendChild(make("th", "", app.say(`column_${name}`)));
      cell.scope = "col";
    }
    this.rows = table.createTBody();
    // The digits, while the focus is in the world; the page's own keys are not meant.
    this.ui.addEventListener("keydown", (event) => {
      const index = Number(event.key) - 1;
      if (event.ctrlKey || event.metaKey || event.altKey || !(index in this.buttons)) return;
      event.preventDefault();
      event.stopPropagation();
      this.act(index);
    });
    this.start();
    this.buttons[0].focus();
  }

  start() {
    const { colours } = this.app.world;
    if (this.state_ === "running") this.stop();
    this.episode = begin(this.app.world, colours[Math.floor(Math.random() * colours.length)]);
    this.news.textContent = "";
    this.state("", "");
    this.draw();
  }

  act(index) {
    if (this.episode.stop) return;
    const { app } = this;
    this.episode = turn(app.world, this.episode, index);
    const taken = this.episode.turns.at(-1);
    const news = [app.say("step", { turn: this.episode.turns.length, action: app.say(`do_${taken.action}`), seen: app.say(`see_${taken.observation}`) })];
    if (taken.invalid) news.push(app.say("invalid_step"));
    if (taken.stop) {
      const reason = app.say(`reason_${taken.stop}`);
      news.push(app.say("over", { reason, target: app.say(this.episode.target), reward: taken.reward }));
    }
    this.news.textContent = news.join(" ");
    this.draw();
    if (taken.stop) this.again.focus();
  }

  draw() {
    const { app, episode } = this, { world } = app, over = episode.stop !== null;
    const turn = Math.min(episode.turns.length + 1, world.horizon);
    this.heading.textContent = over ? "" : app.say("turn", { turn, horizon: world.horizon });
    this.heading.hidden = over;
    this.seen.replaceChildren(`${app.say("seen")}: `, make("strong", "", app.say(`see_${episode.observation}`)), " ", make("code", "", episode.observation));
    for (const button of this.buttons) button.setAttribute("aria-disabled", over);
    world.posterior[episode.belief].forEach((share, index) => {
      const [top, bottom = 1] = share.split("/").map(Number);
      this.bars[index].meter.value = top / bottom;
      this.bars[index].text.textContent = share;
    });
    this.phi.hidden = !this.choice.checked;
    this.phi.textContent = `${app.say("phi", { value: app.number(episode.potential, 2) })}. ${app.say("privileged")}`;
    this.rows.replaceChildren(...episode.turns.map((taken, number) => {
      const row = make("tr");
      const notes = taken.invalid ? ` (${app.say("invalid")})` : "";
      row.append(make("td", "", number + 1), make("td"), make("td"), make("td", "", taken.reward));
      row.cells[1].append(make("code", "", taken.action), notes);
      row.cells[2].append(make("code", "", taken.observation));
      return row;
    }));
    this.rows.closest(".live-log").hidden = !episode.turns.length;
    this.go.hidden = !over;
    this.reset_.hidden = true;
  }

  state(name, text) {
    this.verb = this.ui ? "save" : "play";
    super.state(name, text);
  }

  place(output) {
    this.bar.after(output);
  }

  show(data) {
    if (data.kind !== "record") return super.show(data);
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([data.text], { type: "application/jsonl" }));
    link.download = "keydoor-episode.jsonl";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async work(python) {
    const { target, turns } = this.episode;
    const told = JSON.stringify({ target, actions: turns.map((t) => t.action), observations: turns.map((t) => t.observation) });
    const answer = await python.call("record", [told], (data) => this.show(data));
    this.reset_.hidden = true;
    return answer;
  }
}
