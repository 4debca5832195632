"""The player of stored episodes: by keyboard, in both languages, without scripts, and in step with what is stored."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from book.layout import LANGUAGES
from keydoor.language import stored
from tests.browser.faults import Reader

pytestmark = pytest.mark.reader
NUMBERS = {"en": lambda p: f"{100 * p:.1f}%", "ru": lambda p: f"{100 * p:.1f}\u00a0%".replace(".", ",")}
"""How the two languages write a probability."""


def shown(page: Page) -> tuple[str, list[str], str]:
    """Heading, the six numbers, and the action that is marked as taken."""
    heading = page.locator(".viewer-turn").text_content() or ""
    numbers = page.locator(".viewer-bars .viewer-number").all_text_contents()
    taken = page.locator(".viewer-bars li.taken code").text_content() or ""
    return heading, [text.split(" ◂")[0] for text in numbers], taken


@pytest.mark.parametrize("language", LANGUAGES)
def test_episodes_are_played_by_keyboard(reader: Reader, language: str) -> None:
    """Each turn of the first episode after training shows the stored probabilities; the last one says how it ended."""
    first = next(one for one in stored("episodes")["episodes"] if one["stage"] == "after")
    page, watch = reader(f"{language}/language_model.html")
    page.locator(".viewer-buttons button").first.focus()
    actions = first["record"]["actions"]
    for turn, (action, chances) in enumerate(zip(actions, first["probabilities"], strict=True)):
        heading, numbers, taken = shown(page)
        assert str(turn + 1) in heading
        assert str(len(actions)) in heading
        assert numbers == [NUMBERS[language](round(p, 3)) for p in chances]
        assert taken == action
        assert (page.locator(".viewer-end").text_content() or "").strip() == "" or turn == len(actions) - 1
        page.keyboard.press("ArrowRight")
    assert (page.locator(".viewer-end").text_content() or "").strip()
    page.keyboard.press("Home")
    assert shown(page)[2] == actions[0]
    page.keyboard.press("End")
    assert shown(page)[2] == actions[-1]
    assert watch.faults() == []


def test_another_stage_and_another_episode(reader: Reader) -> None:
    """Choosing the model before training begins its first episode; the list holds all of them."""
    episodes = [one for one in stored("episodes")["episodes"] if one["stage"] == "before"]
    page, watch = reader("en/language_model.html")
    page.locator(".keydoor-viewer input[value=before]").check()
    assert page.locator(".keydoor-viewer option").count() == len(episodes)
    assert shown(page)[2] == episodes[0]["record"]["actions"][0]
    page.locator(".keydoor-viewer select").select_option(index=len(episodes) - 1)
    assert shown(page)[2] == episodes[-1]["record"]["actions"][0]
    assert watch.faults() == []


def test_without_scripts_there_are_tables(reader: Reader) -> None:
    """All turns of all episodes stand in tables, which a script would hide."""
    data = stored("episodes")
    page, _ = reader("en/language_model.html", java_script_enabled=False)
    tables = page.locator(".viewer-tables details")
    assert tables.count() == len(data["stages"])
    tables.first.locator("summary").click()
    assert tables.first.locator("table").is_visible()
    turns = sum(len(one["record"]["actions"]) for one in data["episodes"])
    assert page.locator(".viewer-tables tbody tr:has(td)").count() == turns
    assert page.locator(".viewer-bars").count() == 0


def test_only_pages_with_episodes_load_the_player(reader: Reader) -> None:
    page, _ = reader("en/shaping.html")
    assert page.locator("script[src*='viewer']").count() == 0
