"""Stored results of the language model, drawn: ``{episodes}`` to watch it play, ``{transcript}`` token by token.

Both read what :func:`keydoor.language.stored` holds, when the page is rendered. Without scripts the episodes are
tables; ``_static/viewer.js`` makes a player of them, and only pages that hold one load it.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WORDS: dict[str, dict[str, Any]] = {
    "en": {
        "player": "Episodes of the model",
        "stages": {"before": "before training", "half": "half way", "after": "after training"},
        "stage": "Model",
        "episode": "Episode",
        "target": {"red": "target red", "blue": "target blue"},
        "turn": "Turn {} of {}",
        "turns": "Turn",
        "knows": "What the prompt says",
        "chances": "Probabilities of the six actions",
        "takes": "taken",
        "answer": "The tool answers",
        "end": {
            "success": "Success.",
            "wrong_finish": "Failure: finished without the target door open.",
            "failed_open": "Failure: the lock was forced.",
            "task_horizon": "Failure: no turns left.",
            "collector_limit": "Cut by the collector.",
        },
        "first": "First turn",
        "back": "Turn back",
        "next": "Next turn",
        "play": "Play",
        "pause": "Pause",
        "keys": "Keys: ← and → turn by turn, Home and End to the first and the last turn.",
        "columns": ["turn", "prompt says", "action", "probability", "answer"],
        "update": "update {}",
        "transcript": "Transcript, token by token",
        "sources": {
            "sampled": "drawn from the policy",
            "environment": "written by the environment",
            "template": "written by the template",
            "prompt": "prompt",
        },
        "wrong": "counted as the policy's by the template, drawn by nobody",
        "missed": "drawn from the policy, left out by the template",
        "tokens": "tokens: {}",
    },
    "ru": {
        "player": "Эпизоды модели",
        "stages": {"before": "до обучения", "half": "на полпути", "after": "после обучения"},
        "stage": "Модель",
        "episode": "Эпизод",
        "target": {"red": "цель — красная", "blue": "цель — синяя"},
        "turn": "Ход {} из {}",
        "turns": "Ход",
        "knows": "Что сказано в запросе",
        "chances": "Вероятности шести действий",
        "takes": "выбрано",
        "answer": "Ответ инструмента",
        "end": {
            "success": "Успех.",
            "wrong_finish": "Неудача: закончено, а нужная дверь закрыта.",
            "failed_open": "Неудача: дверь открывали без ключа, не тем ключом или не ту.",
            "task_horizon": "Неудача: ходы кончились.",
            "collector_limit": "Усечено сборщиком.",
        },
        "first": "Первый ход",
        "back": "Ход назад",
        "next": "Следующий ход",
        "play": "Смотреть",
        "pause": "Пауза",
        "keys": "Клавиши: ← и → — по ходам, Home и End — к первому и к последнему ходу.",
        "columns": ["ход", "в запросе", "действие", "вероятность", "ответ"],
        "update": "обновление {}",
        "transcript": "Запись по токенам",
        "sources": {
            "sampled": "порождён политикой",
            "environment": "написан средой",
            "template": "написан шаблоном",
            "prompt": "запрос",
        },
        "wrong": "шаблон приписал политике, но никто его не порождал",
        "missed": "порождён политикой, но шаблоном пропущен",
        "tokens": "токенов: {}",
    },
}

OF_THE_TRANSCRIPT = frozenset({"transcript", "sources", "wrong", "missed", "tokens"})
"""Words that the player has no use for."""


def stored(name: str) -> dict[str, Any]:
    """A stored result; loaded late, so that a book without the package can use this extension's neighbours."""
    from keydoor.language import stored as read

    found: dict[str, Any] = read(name)
    return found


def percent(probability: float, language: str) -> str:
    """``93.4 %``, in Russian with a comma."""
    text = f"{100 * probability:.1f}\u00a0%"
    return text.replace(".", ",") if language == "ru" else text


def turns_of(episode: dict[str, Any], language: str) -> list[dict[str, Any]]:
    """What the player and the table show of an episode, turn by turn."""
    record = episode["record"]
    columns = (episode["belief"][language], record["actions"], episode["probabilities"], episode["answers"][language])
    return [
        {"knows": knows, "action": action, "chances": [round(p, 3) for p in chances], "answer": answer}
        for knows, action, chances, answer in zip(*columns, strict=True)
    ]


def player(data: dict[str, Any], language: str) -> str:
    """The box of the player: tables, and the same as JSON for the script."""
    words = WORDS[language]
    shown = {
        "actions": data["actions"],
        "stages": data["stages"],
        "updates": data.get("updates", {}),
        "episodes": [
            {
                "stage": episode["stage"],
                "target": episode["target"],
                "end": episode["record"]["stop_reason"],
                "turns": turns_of(episode, language),
            }
            for episode in data["episodes"]
        ],
        "words": {key: value for key, value in words.items() if key not in OF_THE_TRANSCRIPT},
    }
    payload = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), sort_keys=True).replace("<", "\\u003c")
    return (
        f'<div class="keydoor-viewer" role="group" aria-label="{escape(words["player"])}">{tables(shown, language)}'
        f'<script type="application/json" class="viewer-data">{payload}</script></div>'
    )


def tables(shown: dict[str, Any], language: str) -> str:
    """A table for each stage: for readers without scripts, and on paper."""
    words, parts = WORDS[language], []
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in words["columns"])
    for stage in shown["stages"]:
        rows = []
        for episode in shown["episodes"]:
            if episode["stage"] != stage:
                continue
            title = escape(f"{words['target'][episode['target']]}: {words['end'][episode['end']]}")
            rows.append(f'<tr><th scope="rowgroup" colspan="5">{title}</th></tr>')
            for number, turn in enumerate(episode["turns"], start=1):
                chance = percent(turn["chances"][shown["actions"].index(turn["action"])], language)
                action = f"<code>{escape(turn['action'])}</code>"
                cells = (str(number), escape(turn["knows"]), action, chance, escape(turn["answer"]))
                rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        update = shown["updates"].get(stage)
        after = "" if update is None else f" ({escape(words['update'].format(update))})"
        parts.append(
            f"<details><summary>{escape(words['stages'][stage])}{after}</summary>"
            f'<div class="table-wrapper"><table><thead><tr>{head}</tr></thead><tbody>'
            f"{''.join(rows)}</tbody></table></div></details>"
        )
    return f'<div class="viewer-tables">{"".join(parts)}</div>'


def transcript(data: dict[str, Any], language: str) -> str:
    """The tokens of a transcript with a class for who wrote each, and a legend with counts.

    The prompt, long and not the policy's, is folded away but for the header of the first answer.
    """
    words, tokens = WORDS[language], data["tokens"]
    counts = {source: sum(token["source"] == source for token in tokens) for source in words["sources"]}
    spans, kinds = [], []
    for token in tokens:
        sampled = token["source"] == "sampled"
        kind = "" if bool(token["assistant_mask"]) == sampled else "missed" if sampled else "wrong"
        kinds.append(kind)
        text = escape(token["text"], quote=False).replace("\n", '<i aria-hidden="true">↵</i>\n')
        spans.append(f'<span class="{" ".join(filter(None, (token["source"], kind)))}">{text}</span>')
    legend = [(source, name, counts[source]) for source, name in words["sources"].items()]
    legend += [(f"template {kind}", words[kind], kinds.count(kind)) for kind in ("wrong", "missed")]
    items = [
        f'<li><span class="{names}">{escape(name)}</span>, {escape(words["tokens"].format(count))}</li>'
        for names, name, count in legend
        if count
    ]
    asked = next((i for i, token in enumerate(tokens) if token["source"] != "prompt"), len(tokens))
    headers = [i for i, token in enumerate(tokens[:asked]) if token["role"] == "assistant"]
    fold = headers[0] if headers else asked
    folded = f"<details><summary>{escape(words['sources']['prompt'])}</summary>{lines(spans[:fold], words)}</details>"
    return (
        f'<div class="keydoor-transcript"><ul>{"".join(items)}</ul>'
        f"{folded if fold else ''}{lines(spans[fold:], words)}</div>"
    )


def lines(spans: list[str], words: dict[str, Any]) -> str:
    """Tokens in a box that the keyboard can scroll; they are English on every page."""
    label = escape(words["transcript"])
    return f'<pre tabindex="0" role="region" aria-label="{label}" lang="en">{"".join(spans)}</pre>'


class Episodes(SphinxDirective):
    """``{episodes}``: watch the stored episodes of the model, before, half way and after training."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", player(stored("episodes"), self.config.language), format="html")]


class Transcript(SphinxDirective):
    """``{transcript}``: the stored transcript; lines and frames at the tokens say who wrote them."""

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", transcript(stored("transcript"), self.config.language), format="html")]


def files_of_page(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Script and style of the player, for the pages that hold one; a book on paper has no use for them."""
    body = str(context.get("body", ""))
    if app.builder.name != "html":
        return
    if "keydoor-viewer" in body or "keydoor-transcript" in body:
        app.add_css_file("viewer.css")
    if "keydoor-viewer" in body:
        app.add_js_file("viewer.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register directives and files."""
    app.add_directive("episodes", Episodes)
    app.add_directive("transcript", Transcript)
    app.connect("html-page-context", files_of_page)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
