"""Live cells in the pages: which are live, what a page's program is, and the key-door world that readers play.

What decides is in ``runnable.py``, what runs in the browser in ``book/live``. Nothing of it appears where a language is
built alone with Jupyter Book, since the files that both languages share are not there.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import live_files
from docutils import nodes
from live_words import WORDS
from myst_nb.core.read import read_myst_markdown_notebook
from runnable import Program, cells_of, read_package, read_program
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

CELL = re.compile(r'<div class="cell (?=[^"]*docutils container")')
SHORT = ("run", "edit", "solve", "play", "failed", "cell", "exercise", "world")
"""Words that a page needs before anything is pressed; all others come with its program."""


def program_of(app: Sphinx, pagename: str) -> Program:
    """What of a page runs in the browser."""
    source = Path(app.env.doc2path(pagename))
    notebook = read_myst_markdown_notebook(source.read_text("utf8"), path=source)
    return read_program(cells_of(notebook), read_package(app.live_package))


def mark(body: str, program: Program, pagename: str) -> str:
    """A page with the class ``live`` at its live cells and at the exercises that have a check."""
    if len(CELL.findall(body)) != program.shown:
        raise ExtensionError(f"{pagename} shows {len(CELL.findall(body))} cells where {program.shown} were expected")
    live = {step.cell for step in program.steps if not step.code}
    number = iter(range(program.shown))
    body = CELL.sub(lambda found: found[0] + ("live " if next(number) in live else ""), body)
    for exercise in program.exercises:
        opening = f'<div class="exercise admonition" id="{exercise.label}">'
        if opening not in body:
            raise ExtensionError(f"{pagename} has a check for {exercise.label}, and no such exercise")
        body = body.replace(opening, opening.replace("exercise ", "exercise live "))
    return body


def page_data(app: Sphinx, program: Program, world: bool) -> dict[str, Any]:
    """What ``client.js`` reads when a reader presses the first button of a page."""
    live, package = app.live_folder, app.live_package
    return {
        "language": app.config.language,
        "words": WORDS[app.config.language],
        "bytes": live_files.loaded_bytes(live, package, read_package(package).modules),
        "steps": [{"cell": step.cell, **({"code": step.code} if step.code else {})} for step in program.steps],
        "exercises": {
            one.label: {"after": one.after, "starter": one.starter, "check": one.check} for one in program.exercises
        },
        **({"world": world_tables()} if world else {}),
    }


def world_tables() -> dict[str, Any]:
    """The standard world as ``keydoor.rules`` has it, with the beliefs of ``keydoor.exact``, for ``world.js``."""
    from keydoor.env import KeyDoorAgentEnv
    from keydoor.exact import belief_model
    from keydoor.rules import get_rules

    rules = get_rules()
    model = belief_model(rules)

    return {
        "actions": rules.actions,
        "colours": rules.colours,
        "horizon": KeyDoorAgentEnv().task_horizon,
        "observation": rules.start_observation,
        "start": dict(rules.start),
        "table": [[list(outcome) for outcome in row] for row in rules.table],
        "potential": rules.potential,
        "posterior": [list(map(str, model.posterior(b).values())) for b in range(len(model.beliefs))],
        "branches": [
            [{branch.observation: branch.belief for branch in branches} for branches in row] for row in model.branches
        ],
    }


class PlayWorld(SphinxDirective):
    """``{play-world}``: the key-door world to play; its body is what readers without scripts see."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        box = nodes.container(classes=["live-world"])
        inner = nodes.container(classes=["live-without"])
        self.state.nested_parse(self.content, self.content_offset, inner)
        box += inner
        return [box]


def add_live(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Mark a page's live cells, write its program, and give the template what loads the rest."""
    wanted = app.builder.name == "html" and app.config.book_languages and app.live_folder.is_dir()
    if doctree is None or not wanted:
        return
    program, world = program_of(app, pagename), 'class="live-world ' in context["body"]
    context["body"] = mark(context["body"], program, pagename)
    if not (world or program.exercises or any(not step.code for step in program.steps)):
        return
    target = Path(app.outdir, "_static", "live", f"{pagename}.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    data = page_data(app, program, world)
    target.write_text(json.dumps(data, ensure_ascii=False, sort_keys=True), "utf8")
    version = live_files.version(app.live_folder, app.live_package, read_package(app.live_package).modules)
    up = "../" * pagename.count("/")
    words = {name: WORDS[app.config.language][name] for name in SHORT}
    context["live"] = {
        "base": f"{up}../live/{version}/",
        "page": f"{up}_static/live/{pagename}.json?v={live_files.text_version(target)}",
        "words": json.dumps(words, ensure_ascii=False),
    }


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of the above."""
    root = Path(app.srcdir).parent.parent
    app.live_folder, app.live_package = root / "book" / "live", root / "keydoor"
    app.add_directive("play-world", PlayWorld)
    app.connect("html-page-context", add_live, priority=600)  # after the Markdown copies have been made
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
