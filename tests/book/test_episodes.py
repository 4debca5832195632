"""Stored results as the site draws them: the box of the player, its tables, and the transcript."""

from __future__ import annotations

import json
import re
from html import escape
from typing import Any

import pytest

from book._ext.episodes import WORDS, player, transcript
from book.layout import LANGUAGES

CHANCES = [0.012, 0.9, 0.0, 0.088, 0.0, 0.0]
EPISODE: dict[str, Any] = {
    "stage": "after",
    "target": "red",
    "record": {"actions": ["pickup_red", "inspect"], "stop_reason": "task_horizon"},
    "probabilities": [CHANCES, CHANCES],
    "belief": {"en": ["Target: red.", "Target: </script>."], "ru": ["Цель: красная.", "Цель: </script>."]},
    "answers": {"en": ["A key.", "No more."], "ru": ["Ключ.", "Всё."]},
}
DATA: dict[str, Any] = {
    "stages": ["before", "half", "after"],
    "updates": {"before": 0, "half": 20, "after": 40},
    "actions": ["inspect", "pickup_red", "pickup_blue", "open_red", "open_blue", "finish"],
    "episodes": [EPISODE],
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tables_hold_each_turn(language: str) -> None:
    """One row for each turn with the probability of the action that was taken, in the language's own writing."""
    rows = re.findall(r"<tr><td>.*?</tr>", player(DATA, language))
    assert len(rows) == 2
    expected = {"en": ["90.0\u00a0%", "1.2\u00a0%"], "ru": ["90,0\u00a0%", "1,2\u00a0%"]}[language]
    assert all(chance in row for chance, row in zip(expected, rows, strict=True))
    assert EPISODE["belief"][language][0] in rows[0]
    assert WORDS[language]["end"]["task_horizon"] in player(DATA, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_script_gets_the_same_and_cannot_be_ended_early(language: str) -> None:
    """Text that looks like the end of a script does not end the block of JSON, nor does it become markup."""
    box = player(DATA, language)
    blocks = re.findall(r'<script type="application/json" class="viewer-data">(.*?)</script>', box, flags=re.S)
    assert len(blocks) == 1
    read = json.loads(blocks[0])
    assert read["episodes"][0]["turns"][1]["knows"] == EPISODE["belief"][language][1]
    assert read["episodes"][0]["turns"][0]["chances"] == CHANCES
    assert "Target: &lt;/script&gt;." in box or "Цель: &lt;/script&gt;." in box
    assert box.count("</script>") == 1


def test_both_languages_have_the_same_words() -> None:
    def keys(words: Any) -> Any:
        return {key: keys(value) for key, value in words.items()} if isinstance(words, dict) else type(words)

    assert keys(WORDS["en"]) == keys(WORDS["ru"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_transcript_marks_where_the_template_is_wrong(language: str) -> None:
    """A token of the template that its mask claims is framed, so is a drawn one that it leaves out; the others are not.
    The text is all there, and counted.
    """
    rows = [("<s>\n", "template", 0), ("\n", "template", 1), ("go", "sampled", 1), ("!", "sampled", 0)]
    rows.append(("ok", "environment", 0))
    tokens = [{"text": text, "source": source, "assistant_mask": mask, "role": ""} for text, source, mask in rows]
    html = transcript({"tokens": tokens}, language)
    shown = html[html.index("<pre") :]
    spans = re.findall(r'<span class="([^"]*)">(.*?)</span>', shown, flags=re.S)
    assert [names for names, _ in spans] == ["template", "template wrong", "sampled", "sampled missed", "environment"]
    assert "".join(re.sub("<i.*?</i>", "", text) for _, text in spans) == "&lt;s&gt;\n\ngo!ok"
    words = WORDS[language]
    for name, count in ((words["sources"]["sampled"], 2), (words["wrong"], 1), (words["missed"], 1)):
        assert re.search(f"{re.escape(escape(name))}</span>, {re.escape(words['tokens'].format(count))}<", html)
    assert '<li><span class="prompt">' not in html  # there is none


def test_the_prompt_is_folded_away_up_to_the_first_answer() -> None:
    """The header that the template has put before the answer stays in sight: its tokens may be claimed by the mask."""
    rows = [("system", "prompt"), ("assistant", "prompt"), ("assistant", "sampled")]
    tokens = [
        {"text": str(i), "source": source, "role": role, "assistant_mask": source == "sampled"}
        for i, (role, source) in enumerate(rows)
    ]
    html = transcript({"tokens": tokens}, "en")
    folded, shown = (re.findall(r"<span class=.*?>(\d)</span>", part) for part in html.split("</details>"))
    assert (folded, shown) == (["0"], ["1", "2"])
