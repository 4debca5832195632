"""The runs whose results are kept with the package: what is run, with which seeds, and how it is written down.

Seed 0 was used while the settings were being chosen; the others were not looked at before they were run once for the
record. A run that is finished is kept in the folder of work, so that an interrupted recording goes on.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keydoor.language.adapters import save_adapter
from keydoor.language.learning import LanguageSettings, train
from keydoor.language.weights import Loaded

FRESH = (1, 2, 3, 4, 5)
"""Seeds that were not used for tuning."""


class Planned(NamedTuple):
    """A setting of the record.

    Example:
        >>> PLAN[0].label, PLAN[0].seeds
        ('standard', (1, 2, 3, 4, 5))
    """

    label: str
    """Its name in the stored results."""
    different: dict[str, Any]
    """What differs from the defaults."""
    seeds: tuple[int, ...]
    """Its runs."""
    note_en: str
    """What it shows, in English."""
    note_ru: str
    """The same in Russian."""


PLAN = (
    Planned("standard", {}, FRESH, "the settings of the book", "настройки книги"),
    Planned(
        "no calibration",
        {"calibrated": False},
        (1,),
        "the scores as they are: the shortest string wins everywhere, and most groups have no success at all",
        "оценки как они есть: всюду побеждает самая короткая строка, и в большинстве групп нет ни одного успеха",
    ),
    Planned(
        "shaped returns",
        {"reward_mode": "potential"},
        (1,),
        "each turn is credited with its shaped return: at a discount of 1 shaping is no more than a baseline",
        "каждому ходу зачтён его сформированный возврат: при коэффициенте 1 формирование — всего лишь базовая линия",
    ),
    Planned("soft", {"rules": "soft"}, (1,), "failed attempts are harmless", "неудачные попытки безвредны"),
    Planned(
        "small groups",
        {"group_size": 16},
        (1,),
        "sixteen rollouts of a task: many groups are all failures",
        "шестнадцать роллаутов на задачу: многие группы состоят из одних неудач",
    ),
    Planned(
        "four layers",
        {"layers": 4},
        (1,),
        "adapters in the last four layers alone",
        "адаптеры только в последних четырёх слоях",
    ),
    Planned(
        "four epochs",
        {"updates": 10, "epochs": 4},
        (1,),
        "as many gradient steps on a quarter of the rollouts; here the clipping acts",
        "столько же шагов градиента на четверти роллаутов; здесь отсечение действует",
    ),
)
"""The settings, the first ones first."""


def planned_runs() -> Iterator[tuple[Planned, int, str]]:
    """All runs of the plan.

    Returns:
        An iterator over setting, seed, and a name for files.

    Example:
        >>> [name for _, _, name in planned_runs()][:2]
        ['standard-1', 'standard-2']
    """
    for planned in PLAN:
        for seed in planned.seeds:
            yield planned, seed, f"{planned.label.replace(' ', '-')}-{seed}"


def run_planned(loaded: Loaded, work: Path, say: Callable[[str], None]) -> None:
    """Make the runs of the plan that are not in the folder yet.

    Args:
        loaded: the model.
        work: a folder; a run is a file of JSON, its adapters one of safetensors, and a checkpoint while it lasts.
        say: told of each run.

    Raises:
        OSError: the folder cannot be written.
        WeightsError: there was not enough memory.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for _, _, name in planned_runs():
        ...         _ = Path(folder, f"{name}.json").write_text("{}")
        ...     run_planned(None, Path(folder), print)
    """
    work.mkdir(parents=True, exist_ok=True)
    for planned, seed, name in planned_runs():
        file = work / f"{name}.json"
        if file.is_file():
            continue
        settings = LanguageSettings(**planned.different)
        checkpoint = work / f"{name}.checkpoint"
        run = train(loaded, settings, seed=seed, checkpoint=checkpoint)
        tables = {stage: [[round(x, 6) for x in row] for row in table] for stage, table in run.logprobs.items()}
        found = {
            "label": planned.label,
            "rules": settings.rules,
            "horizon": settings.horizon,
            "seed": seed,
            "fresh": seed in FRESH,
            "settings": planned.different,
            "note_en": planned.note_en,
            "note_ru": planned.note_ru,
            "updates": run.updates,
            "curve": [{key: _short(value) for key, value in row.items()} for row in run.curve],
            "logprobs": tables,
        }
        about = {"settings": dataclasses.asdict(settings), "seed": seed, "weights": loaded.source.get("sha256")}
        save_adapter(work / f"{name}.safetensors", loaded.model, about)
        _write(file, json.dumps(found, ensure_ascii=False))
        checkpoint.unlink(missing_ok=True)
        last = run.curve[-1]
        say(
            f"{name}: exact success {run.curve[0]['success']:.4f} -> {last['success']:.4f}, {last['cpu_seconds']} CPU s"
        )


def _short(value: Any) -> Any:
    """Seven digits of a number are enough for a curve."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return value


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
