"""Cells that run in the reader's browser, exercises that check an answer, and the world to play.

Python starts once for every live cell of the book and a few times more for what readers do; what a start and a cell
take is printed (`pytest -s`).
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from book.layout import LANGUAGES
from keydoor import KeyDoorAgentEnv
from keydoor.records import read_rollout_records, validate_rollout_record
from keydoor.rules import ACTIONS
from tests.book.answers import all_answers
from tests.browser.faults import AXE, Reader, alone, identifiers, settle, wide
from tests.browser.test_pages import DESK, PAGES, TELEPHONE
from tests.browser.test_reading import tab_to

pytestmark = pytest.mark.reader
WRONG = all_answers()
PATIENCE = 120_000  # ms; Python starts in a few seconds where the machine is idle

# Each page's steps in one worker, with the code that the pages show; gives what differs from what the build printed.
EVERY_CELL = """async ([names, languages]) => {
  const script = document.querySelector("script[data-page]");
  const worker = new Worker(new URL("worker.js", script.src), { type: "module" });
  let shown = "", end;
  worker.onmessage = ({ data }) => {
    if (data.kind === "end") end(data.ok);
    else if (data.kind === "broken") end(false), (shown += data.text);
    else if (data.text !== undefined) shown += data.text;
  };
  const call = (method, ...args) => new Promise((done) => ((end = done), worker.postMessage({ method, args })));
  const report = { cells: 0, differ: [], slowest: 0 };
  for (const language of languages) for (const name of names) {
    const html = await (await fetch(`../${language}/${name}.html`)).text();
    const page = new DOMParser().parseFromString(html, "text/html");
    const cells = [...page.querySelectorAll("div.cell")], live = page.querySelectorAll("div.cell.live");
    const data = page.querySelector("script[data-page]")?.dataset.page;
    if (!data) continue;
    const { steps } = await (await fetch(`../${language}/${data}`)).json();
    if (steps.filter(({ code }) => code === undefined).length !== live.length) report.differ.push(`${name}: marks`);
    await call("fresh");
    for (const { cell, code } of steps) {
      shown = "";
      const begun = performance.now();
      const ok = await call("run", code ?? cells[cell].querySelector(".cell_input pre").textContent, `cell ${cell}`);
      report.slowest = Math.max(report.slowest, (performance.now() - begun) / 1000);
      const outputs = [...cells[cell].querySelectorAll(".cell_output .stream pre")];
      const built = outputs.map((pre) => pre.textContent).join("");
      report.cells += code === undefined;
      const same = shown.replace(/\\n+/g, "\\n").trim() === built.replace(/\\n+/g, "\\n").trim();
      if (!ok || (code === undefined && !same)) report.differ.push({ language, name, cell, code, shown, built });
    }
  }
  worker.terminate();
  return report;
}"""


def test_every_live_cell_gives_what_the_build_gave(reader: Reader) -> None:
    """In both languages; a cell that shows other text than the page, or raises, is named with both texts.

    Blank lines do not count: Sphinx takes those at the beginning of an output away.
    """
    page, watch = reader("en/turns.html")
    begun = time.perf_counter()
    report = page.evaluate(EVERY_CELL, [list(PAGES), list(LANGUAGES)])
    seconds = time.perf_counter() - begun
    print(f"\n{report['cells']} live cells in {seconds:.1f} s, the slowest in {report['slowest']:.1f} s")
    assert report["cells"] > 300
    assert not report["differ"], json.dumps(report["differ"], ensure_ascii=False, indent=1)
    assert watch.faults() == []


# --- a reader's way -------------------------------------------------------------------------------------------------


def ended(bar: Locator, state: str = "done") -> None:
    expect(bar).to_have_attribute("data-state", state, timeout=PATIENCE)


def status(bar: Locator) -> str:
    return bar.locator("[role=status]").inner_text()


BARRIERS = """async (box) => {
  const { violations } = await axe.run(box, { preload: false, resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `axe ${id}: ${node.failureSummary} ${node.html}`));
}"""


def rewrite(page: Page, code: str) -> None:
    """Other code in the editor that has the focus, as a reader would paste it."""
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(code)


def look(page: Page, part: str) -> list[str]:
    """What is wrong with a part of the page as it is now, in both widths and modes; the rest is `test_pages.py`'s."""
    faults = wide(page, keyboard=True)
    if page.evaluate("() => !window.axe"):
        page.evaluate(AXE.read_text("utf8") + ";0")
    for width, mode in ((TELEPHONE, "light"), (DESK, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=mode)
        settle(page)
        faults += [f"{width} px, {mode}: {fault}" for fault in wide(page) + page.evaluate(BARRIERS, part)]
    page.emulate_media(color_scheme="light")
    settle(page)
    return faults


@pytest.mark.parametrize("language", LANGUAGES)
def test_cells_by_keyboard(reader: Reader, language: str) -> None:
    """Python that does not come at first; run, edit, errors; stop, run again, reset; paper has no buttons.

    The page's keys are not stolen, and no key is trapped.
    """
    page, watch = reader(f"{language}/notation.html")
    settle(page)
    assert page.locator(".live-bar").count() == page.locator("div.cell.live").count() == 2
    bar = page.locator(".live-bar").nth(1)  # builds on the names of the cell before
    cell = page.locator("div.cell.live").nth(1)
    built = cell.locator(".cell_output pre").inner_text()
    if language == "en":  # all the way, once
        tab_to(page, "#live-0 [data-act=run]")
    page.locator("#live-0 [data-act=run]").focus()
    tab_to(page, "#live-1 [data-act=run]", limit=40)

    # the reason is named, and trying again works
    page.route("**/pyodide.asm.wasm.gz", lambda route: route.abort())
    page.keyboard.press("Enter")
    ended(bar, "broken")
    assert "pyodide.asm.wasm.gz" in status(bar)
    page.unroute("**/pyodide.asm.wasm.gz")
    page.route("**/session.py", lambda route: route.fulfill(status=503, body="busy"))
    page.keyboard.press("Enter")
    ended(bar, "broken")
    assert "session.py: 503" in status(bar)
    page.unroute("**/session.py")
    asked_for = watch.faults()
    assert asked_for
    assert all("failed" in fault or "Failed" in fault or "503" in fault for fault in asked_for)
    begun = time.perf_counter()
    page.keyboard.press("Enter")
    expect(bar.locator("progress")).to_be_visible(timeout=PATIENCE)
    ended(bar)
    cold = time.perf_counter() - begun
    assert cell.locator(".live-output pre").inner_text() == built
    begun = time.perf_counter()
    page.keyboard.press("Enter")  # the focus is still on the button
    ended(bar)
    print(f"\n{language}: first result after {cold:.2f} s, again after {time.perf_counter() - begun:.2f} s")

    tab_to(page, "#live-1 [data-act=edit]", limit=1)
    page.keyboard.press("Enter")
    expect(cell.locator(".cm-content")).to_be_focused(timeout=PATIENCE)
    rewrite(page, "# the page's own keys: /\nT\n")
    page.keyboard.press("/")  # in the page it opens the search
    page.keyboard.press("Backspace")
    page.keyboard.press("Shift+Enter")
    ended(bar)
    assert "search" not in page.url
    rewrite(page, "def broken(x):\n    return x / 0\n\nT\nbroken(T)")
    page.keyboard.press("Shift+Enter")
    ended(bar, "failed")
    error = cell.locator(".live-output .traceback pre").inner_text()
    assert "line 2" in error
    assert "return x / 0" in error
    assert error.strip().endswith("ZeroDivisionError: division by zero")
    assert "session.py" not in error
    faults = identifiers(page)
    alone(page, "#notation-conventions")
    faults += look(page, "div.cell:has(#live-1)")

    rewrite(page, "import numpy")
    page.keyboard.press("Shift+Enter")
    ended(bar, "failed")
    expect(cell.locator(".live-missing")).to_contain_text("numpy")
    rewrite(page, "T, 'the last value, as Jupyter shows it'")
    page.keyboard.press("Shift+Enter")
    ended(bar)
    assert cell.locator(".live-output pre").inner_text().strip() == "(3, 'the last value, as Jupyter shows it')"
    rewrite(page, "for i in range(100_000):\n    print(i, 'and so on')")
    page.keyboard.press("Shift+Enter")
    ended(bar)
    expect(cell.locator(".live-cut")).to_be_visible()
    assert len(cell.locator(".live-output pre").inner_text()) <= 100_000

    rewrite(page, "print('begun')\nwhile True:\n    pass")
    page.keyboard.press("Shift+Enter")
    expect(bar).to_have_attribute("data-state", "running", timeout=PATIENCE)
    page.keyboard.press("Escape")
    expect(bar.locator("[data-act=run]")).to_be_focused()
    page.wait_for_timeout(300)
    page.keyboard.press("Enter")
    ended(bar, "stopped")
    faults += identifiers(page) + look(page, "div.cell:has(#live-1)")
    bar.locator("[data-act=run]").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == bar.locator("button").last.inner_text()
    page.keyboard.press("Enter")  # Reset
    assert cell.locator(".cell_output pre").inner_text() == built
    assert cell.locator(".live-editor, .live-output").count() == 0
    bar.locator("[data-act=run]").click()
    ended(bar)
    assert cell.locator(".live-output pre").inner_text() == built
    page.emulate_media(media="print")
    assert not bar.is_visible()
    page.emulate_media(media="screen")
    faults += [fault for fault in watch.faults() if "503" not in fault]  # the console may be late
    assert not faults, "\n" + "\n".join(faults)


def test_who_never_presses_run_loads_next_to_nothing(reader: Reader, site: Path) -> None:
    """Script, style and what stands in the page itself: under 10 KB before compression, on every page."""
    page, _ = reader("index.html?stay")
    for name in PAGES:
        for language in LANGUAGES:
            asked: list[str] = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            html = (site / language / f"{name}.html").read_text("utf8")
            at = html.find("live/")
            own = html[at : html.find("</script>", at)] if at > 0 else ""
            files = [site / url for url in set(_live_files(html))]
            weight = len(own.encode()) + sum(path.stat().st_size for path in files)
            assert weight < 10_000, (name, language, weight)
    page, watch = reader("en/turns.html")
    settle(page)
    names = page.evaluate("performance.getEntriesByType('resource').map((entry) => entry.name)")
    loaded = [url.rsplit("/", 1)[1] for url in names if "/live/" in url]
    assert sorted(loaded) == ["live.css", "loader.js"]
    assert watch.faults() == []


def _live_files(html: str) -> list[str]:
    return [part.split('"')[0] for part in html.split('"../')[1:] if part.startswith("live/")]


# --- exercises ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "name", "label"), [("en", "durations", "hang"), ("ru", "turns", "log")])
def test_an_exercise_says_what_is_wrong(reader: Reader, language: str, name: str, label: str) -> None:
    """The starter, one wrong answer and a right one, by keyboard; each check is tried in `tests/book/test_live.py`."""
    page, watch = reader(f"{language}/{name}.html")
    settle(page)
    answers = WRONG[f"ex-{name}-{label}"]
    box = page.locator(f"#ex-{name}-{label}")
    bar = box.locator(".live-bar")
    bar.locator("[data-act=solve]").focus()
    page.keyboard.press("Enter")
    expect(box.locator(".cm-content")).to_be_focused(timeout=PATIENCE)
    right, wrong = (next(a for a, words in answers if bool(words[0]) is kind) for kind in (False, True))
    rewrite(page, wrong)
    page.keyboard.press("Shift+Enter")
    ended(bar, "failed")
    words = dict(answers)[wrong][LANGUAGES.index(language)]
    expect(box.locator(".live-wrong")).to_contain_text(words)
    faults = identifiers(page)
    alone(page, f"#ex-{name}-{label}")
    faults += look(page, f"#ex-{name}-{label}")
    box.locator(".cm-content").focus()
    rewrite(page, right)
    page.keyboard.press("Shift+Enter")
    ended(bar)
    assert box.locator(".live-wrong").count() == 0
    faults += watch.faults()
    assert not faults, "\n" + "\n".join(faults)


# --- the world ------------------------------------------------------------------------------------------------------

PLAY = """async ([episodes]) => {
  const script = document.querySelector("script[data-page]");
  const { begin, turn } = await import(new URL("world.js", script.src));
  const { world } = await (await fetch(script.dataset.page)).json();
  return episodes.map(([target, actions]) => {
    let episode = begin(world, target);
    const told = [];
    for (const action of actions) {
      if (episode.stop !== null) break;
      episode = turn(world, episode, action);
      const { observation, reward, invalid, stop } = episode.turns.at(-1);
      told.push([observation, reward, invalid, stop, episode.potential, world.posterior[episode.belief]]);
    }
    return told;
  });
}"""


def environment(target: str, actions: list[int]) -> list[list[Any]]:
    """The same episode in the package, with the posterior of the belief before an end."""
    from keydoor.exact import belief_model
    from keydoor.rules import get_rules

    env, model = KeyDoorAgentEnv(), belief_model(get_rules())
    seen, _ = env.reset(target=target)
    history, told = [seen], []
    for action in actions:
        seen, reward, over, _, info = env.step(action)
        if not over:
            history += [ACTIONS[action], seen]
        shares = [str(share) for share in model.posterior(model.follow(tuple(history))).values()]
        told.append([seen, reward, info["invalid"], info["stop_reason"], info["potential_after"], shares])
        if over:
            break
    return told


def test_the_page_plays_by_the_rules_of_the_package(reader: Reader) -> None:
    """Five hundred random episodes, turn by turn, and all that an expert plays."""
    page, _ = reader("en/environment.html")
    draw = random.Random(0)
    weights = (3, 2, 2, 1, 1, 1)  # seldom an early end
    episodes = [(draw.choice(("red", "blue")), draw.choices(range(6), weights, k=8)) for _ in range(500)]
    episodes += [("red", [0, 1, 3, 5]), ("blue", [0, 2, 4, 5]), ("red", [0] * 8)]
    found = page.evaluate(PLAY, [episodes])
    for (target, actions), told in zip(episodes, found, strict=True):
        assert told == environment(target, actions), (target, actions)


@pytest.mark.parametrize(("language", "target"), [("en", "red"), ("ru", "blue")])
def test_the_world_by_keyboard(reader: Reader, tmp_path: Path, language: str, target: str) -> None:
    """An invalid action, the clue, success, and a record that the package reads; then an end by a forced lock."""
    page, watch = reader(f"{language}/environment.html", width=DESK)
    settle(page)
    page.evaluate("(draw) => { Math.random = () => draw; }", {"red": 0.1, "blue": 0.9}[target])
    box = page.locator(".live-world")
    faults = identifiers(page)
    alone(page, ".live-world")
    page.locator(".live-world [data-act=play]").focus()
    page.keyboard.press("Enter")
    expect(box.locator(".live-actions button").first).to_be_focused(timeout=PATIENCE)
    shares = box.locator(".live-belief span:last-child")
    expect(shares).to_have_text(["1/2", "1/2"])
    key, door = {"red": ("2", "4"), "blue": ("3", "5")}[target]
    page.keyboard.press(key)  # before the clue: invalid
    expect(box.locator(".live-seen code")).to_have_text("invalid")
    page.keyboard.press("1")
    expect(box.locator(".live-seen code")).to_have_text(f"clue_{target}")
    expect(shares).to_have_text({"red": ["1", "0"], "blue": ["0", "1"]}[target])
    box.locator("input[type=checkbox]").check()
    expect(box.locator(".live-phi")).to_contain_text("0.25" if language == "en" else "0,25")
    box.locator(".live-actions button").first.focus()
    faults += identifiers(page) + look(page, ".live-world")
    for digit in (key, door, "6"):
        page.keyboard.press(digit)
    expect(box.locator(".live-seen code")).to_have_text("success")
    expect(box.locator(".live-again")).to_be_focused()
    bar = box.locator(".live-bar")
    with page.expect_download(timeout=PATIENCE) as download:
        bar.locator("[data-act=play]").click()
    ended(bar)
    path = tmp_path / "episode.jsonl"
    download.value.save_as(path)
    (record,) = read_rollout_records(path)
    assert validate_rollout_record(record) == []
    assert record["stop_reason"] == "success"
    assert record["actions"] == [ACTIONS[int(d) - 1] for d in (key, "1", key, door, "6")]
    assert record["invalid"] == [True, False, False, False, False]
    faults += look(page, ".live-world")
    box.locator(".live-again").click()
    page.keyboard.press("4")
    expect(box.locator(".live-seen code")).to_have_text("failure")
    page.keyboard.press("1")  # after the end nothing happens
    assert box.locator(".live-log tbody tr").count() == 1
    faults += watch.faults()
    assert not faults, "\n" + "\n".join(faults)


def test_without_scripts_there_is_a_sentence(reader: Reader) -> None:
    page, _ = reader("ru/environment.html", java_script_enabled=False)
    link = page.locator(".live-without a")
    expect(link).to_be_visible()
    assert link.get_attribute("href") == "#environment-world"
    assert page.locator(".live-bar").count() == 0
