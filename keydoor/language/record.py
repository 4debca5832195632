"""The runs whose results are kept with the package: what is run, with which seeds, and how it is written down.

Seed 0 was used while the settings were being chosen; the others were not looked at before they were run once for the
record. A run that is finished is kept in the folder of work, so that an interrupted recording goes on.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import torch

from keydoor._checks import one_of, refuse, whole
from keydoor.language.adapters import forget, save_adapter
from keydoor.language.environment import TextKeyDoorEnv, call_of, play
from keydoor.language.learning import STAGES, LanguageSettings, train
from keydoor.language.rollouts import Rollout, play_group
from keydoor.language.scoring import ActionScorer, answer_ids, situation_prompts
from keydoor.language.tables import SITUATIONS, action_masses, calibrate, probabilities
from keydoor.language.texts import LANGUAGES, observation_text, situation_text, spellings, task_text
from keydoor.language.weights import Loaded
from keydoor.records import Transition, rollout_contract_from_transitions
from keydoor.rules import ACTIONS, COLOURS, get_rules

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
        "the log-probabilities as they are: finish is likeliest at the start, so that most episodes end at once and "
        "successes are rare",
        "логарифмы вероятностей как они есть: на первом ходу вероятнее прочих finish, поэтому почти все эпизоды сразу "
        "кончаются и успехи редки",
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
        "small groups, no calibration",
        {"group_size": 16, "calibrated": False},
        (1,),
        "sixteen rollouts of a task and the log-probabilities as they are: at first most groups are all failures",
        "шестнадцать роллаутов на задачу, оценки без калибровки: сначала в большинстве групп одни неудачи",
    ),
    Planned(
        "small groups, shaped returns",
        {"group_size": 16, "reward_mode": "potential"},
        (1,),
        "sixteen rollouts of a task, each turn credited with its shaped return: a baseline that is mostly noise",
        "шестнадцать роллаутов на задачу, каждому ходу зачтён его сформированный возврат: базовая линия из одного шума",
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


def scores(loaded: Loaded) -> dict[str, Any]:
    """What the untrained model gives to every string, in both languages.

    Args:
        loaded: the model, without adapters.

    Returns:
        The fields of the stored result but for its provenance.

    Raises:
        ValueError: the tokenizer makes nothing of a string.

    Example:
        >>> scores(None)  # doctest: +SKIP
        {'situations': [...
    """
    forget(loaded.model)
    found: dict[str, Any] = {
        "situations": [situation.name for situation in SITUATIONS],
        "actions": list(ACTIONS),
        "tables": {},
        "strings": {},
        "pieces": {},
        "prompts": {},
    }
    tokenizer = loaded.tokenizer
    for language in LANGUAGES:
        chats = situation_prompts(language=language)
        scorer = ActionScorer(loaded.model, tokenizer, chats)
        with torch.no_grad():
            table = scorer.string_logprobs().double().tolist()
        said = {}
        for situation, row in zip(SITUATIONS, table, strict=True):
            strings = (
                (string, logprob)
                for texts, logprobs in zip(scorer.strings, row, strict=True)
                for string, logprob in zip(texts, logprobs, strict=True)
            )
            said[situation.name] = {string: round(logprob, 6) for string, logprob in strings}
        found["strings"][language] = said
        masses = [action_masses(strings) for strings in said.values()]
        found["tables"][language] = [[round(row[action], 6) for action in ACTIONS] for row in masses]
        found["prompts"][language] = [
            tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False) for chat in chats
        ]
    for action in ACTIONS:
        for string in spellings(action):
            found["pieces"][string] = [tokenizer.decode([token]) for token in answer_ids(tokenizer, string)]
    return found


def training(work: Path) -> dict[str, Any]:
    """The finished runs of the plan, in its order.

    Args:
        work: the folder of :func:`run_planned`.

    Returns:
        The fields of the stored result but for its provenance.

    Raises:
        ValueError: no run of the first setting is finished.

    Example:
        >>> training(Path("/no/such/folder"))
        Traceback (most recent call last):
        ...
        ValueError: work is '/no/such/folder'; expected a folder with a finished run of 'standard'
    """
    runs = [
        {**json.loads((work / f"{name}.json").read_text(encoding="utf-8")), **_notes(planned)}
        for planned, _, name in planned_runs()
        if (work / f"{name}.json").is_file()
    ]
    if not any(run["label"] == PLAN[0].label for run in runs):
        refuse("work", str(work), f"a folder with a finished run of {PLAN[0].label!r}")
    return {"settings": json.loads(json.dumps(dataclasses.asdict(LanguageSettings()))), "runs": runs}


def _notes(planned: Planned) -> dict[str, str]:
    """As they are worded now: a finished run keeps its numbers, not its words."""
    return {"note_en": planned.note_en, "note_ru": planned.note_ru}


def episodes(run: dict[str, Any], weights: str, *, each: int = 2) -> dict[str, Any]:
    """Episodes that the policy of a run plays before, half way and after, as rollout records.

    Args:
        run: one of the stored runs.
        weights: name of the model, for the policy's version.
        each: episodes with each target at each stage, at least 1.

    Returns:
        The fields of the stored result but for its provenance.

    Raises:
        ValueError: ``each`` is below 1.

    Example:
        >>> table = [[-1.0] * 6] * 15
        >>> run = {"logprobs": dict.fromkeys(STAGES, table), "rules": "standard", "horizon": 6, "seed": 1}
        >>> len(episodes({**run, "updates": {}}, "a model")["episodes"])
        12
    """
    whole(each, "each", least=1)
    tables = run["logprobs"]
    base = tables["before"]
    played = []
    for stage in STAGES:
        policy = probabilities(calibrate(tables[stage], base))
        for target in COLOURS:
            for number in range(each):
                source = random.Random(f"episode/{run['seed']}/{stage}/{target}/{number}")
                rules, horizon = run["rules"], run["horizon"]
                (rollout,) = play_group(policy, target, 1, source, rules=rules, horizon=horizon)
                version = f"{weights}, seed {run['seed']}, {stage}"
                turns = told(rollout, target, policy, rules, horizon, version)
                played.append({"stage": stage, "target": target, "seed": number, **turns})
    about = {"updates": run["updates"], "run": run["seed"], "rules": run["rules"], "horizon": run["horizon"]}
    return {"stages": list(STAGES), "actions": list(ACTIONS), **about, "episodes": played}


def told(
    rollout: Rollout, target: str, policy: Sequence[Sequence[float]], rules: str, horizon: int, version: str
) -> dict[str, Any]:
    """One rollout as a record, with what a reader wants to see of each turn.

    Args:
        rollout: what was played.
        target: colour of the door that counted.
        policy: the probabilities that played, of shape (15, 6).
        rules: rule set.
        horizon: turns that the task allowed, at least 1.
        version: of the policy.

    Returns:
        ``record``, ``situations``, ``probabilities``, ``belief`` and ``answers``.

    Raises:
        ValueError: the rollout is not one of this world.

    Example:
        >>> uniform = [[1 / 6] * 6] * 15
        >>> told(Rollout((0,), (5,), 0.0, (0.0,)), "red", uniform, "standard", 6, "uniform")["answers"]["en"]
        ['Failure: the task is over.']
    """
    world = get_rules(rules)
    state, seen = world.start[target], world.start_observation
    transitions, answers = [], []
    for turn, (row, action) in enumerate(zip(rollout.rows, rollout.actions, strict=True)):
        outcome = world.table[state][action]
        reason = outcome.stop_reason or ("task_horizon" if turn + 1 == horizon else None)
        logprob = math.log(policy[row][action])
        transitions.append(
            Transition(
                observation=seen,
                action=ACTIONS[action],
                next_observation=outcome.observation,
                behavior_logprob=logprob,
                logprob=logprob,
                base_reward=outcome.base_reward,
                shaped_reward=rollout.shaped[turn],
                terminated=reason is not None,
                truncated=False,
                stop_reason=reason,
                invalid=outcome.invalid,
            )
        )
        answers.append(outcome.observation)
        state, seen = outcome.state, outcome.observation
    record = rollout_contract_from_transitions(
        transitions, task_id=f"keydoor-{rules}-{target}", environment_version="1.0", policy_version=version
    )
    known = [SITUATIONS[row] for row in rollout.rows]
    return {
        "record": record,
        "situations": list(rollout.rows),
        "probabilities": [[float(f"{p:.9g}") for p in policy[row]] for row in rollout.rows],
        "belief": {language: [situation_text(one, language=language) for one in known] for language in LANGUAGES},
        "answers": {language: [observation_text(one, language=language) for one in answers] for language in LANGUAGES},
    }


def transcript() -> dict[str, Any]:
    """An expert's episode through TRL's trainer: for each token who wrote it, and what two masks say of it.

    Returns:
        The fields of the stored result but for its provenance. ``assistant_mask`` is what the chat template's
        generation marks say when the finished conversation is rendered again; ``trl_mask`` what TRL keeps while the
        episode runs.

    Raises:
        WeightsError: packages are missing.

    Example:
        >>> transcript()["counts"]["sampled"]  # doctest: +SKIP
        76
    """
    from keydoor.language.scripted import call_text, qwen_tokenizer, run_script, template

    tokenizer = qwen_tokenizer()
    actions = ("inspect", "pickup_red", "open_red", "finish")
    script = [*(call_text(action) for action in actions), "Done."]
    found = run_script(tokenizer, [script, ["I do not know."]])
    prompt, ids, sampled, kept = (
        column[0] for column in (found.prompt_ids, found.completion_ids, found.sampled, found.trl_mask)
    )
    # The finished conversation, rendered again as a trainer does that has only the messages.
    chat: list[dict[str, Any]] = []
    env = TextKeyDoorEnv()
    chat.append({"role": "user", "content": task_text() + env.reset(target="red")})
    for action, answer in zip(actions, play(env, actions), strict=True):
        tool, arguments = call_of(action)
        call = {"type": "function", "function": {"name": tool, "arguments": arguments}}
        chat.append({"role": "assistant", "content": "", "tool_calls": [call]})
        chat.append({"role": "tool", "name": tool, "content": answer})
    chat.append({"role": "assistant", "content": "Done."})
    tools = [getattr(env, name) for name in ("finish", "inspect", "open_door", "pickup")]
    again = tokenizer.apply_chat_template(
        chat,
        tools=tools,
        chat_template=template("qwen3_training"),
        return_dict=True,
        return_assistant_tokens_mask=True,
        enable_thinking=False,
    )
    full, marks = [*prompt, *ids], list(again["assistant_masks"])
    if list(again["input_ids"])[: len(full)] != full:
        raise ValueError(
            "the conversation rendered again has other tokens than the episode; the masks differ in length"
        )
    tokens: list[dict[str, Any]] = []
    role, inside = "", False
    for place, token in enumerate(full):
        text = tokenizer.decode([token])
        if text == "<|im_start|>":
            role = tokenizer.decode([full[place + 1]])
        inside = inside and text != "</tool_response>"
        own = place - len(prompt)
        unsampled = "environment" if inside else "template"
        source = "prompt" if own < 0 else "sampled" if sampled[own] else unsampled
        masks = {"assistant_mask": int(marks[place]), "trl_mask": int(own >= 0 and kept[own])}
        tokens.append({"id": token, "text": text, "role": role, "source": source, **masks})
        inside = inside or text == "<tool_response>"
    sources = ("prompt", "template", "environment", "sampled")
    counts = {source: sum(one["source"] == source for one in tokens) for source in sources}
    counts["completion"] = len(ids)
    for mask in ("assistant_mask", "trl_mask"):
        counts[mask] = sum(one[mask] for one in tokens)
        counts[f"{mask}_wrongly_in"] = sum(one[mask] and one["source"] != "sampled" for one in tokens)
        counts[f"{mask}_wrongly_out"] = sum(not one[mask] and one["source"] == "sampled" for one in tokens)
    versions = f"TRL {metadata.version('trl')}: qwen3_training.jinja"
    return {"template": versions, "tokens": tokens, "counts": counts, "text": tokenizer.decode(full)}


def fields(what: str, loaded: Any, work: Path) -> dict[str, Any]:
    """The fields of a stored result, but for its provenance and for ``training``.

    Args:
        what: one of :data:`keydoor.language.results.STORED` other than ``training``.
        loaded: the model; ``None`` for the transcript.
        work: the folder of :func:`run_planned`, where finished runs lie.

    Returns:
        The fields.

    Raises:
        ValueError: an unknown name, or no finished run where one is needed.

    Example:
        >>> fields("training", None, Path("."))
        Traceback (most recent call last):
        ...
        ValueError: what is 'training'; expected one of scores, episodes, transfer, transcript, drift
    """
    one_of(what, "what", ("scores", "episodes", "transfer", "transcript", "drift"))
    if what == "scores":
        return scores(loaded)
    if what == "transcript":
        return transcript()
    if what == "drift":
        from keydoor.language.drift import drift_samples

        forget(loaded.model)
        rows = drift_samples(loaded)
        changed = [row for row in rows if row["ids"] != row["again"]]
        shown = [*changed, *(row for row in rows if row["ids"] == row["again"])][: len(changed) + 8]
        return {"samples": shown, "sampled": len(rows), "changed": len(changed)}
    runs = training(work)["runs"]
    first = next(run for run in runs if run["label"] == PLAN[0].label)
    if what == "episodes":
        return episodes(first, loaded.source["model"])
    from keydoor.language.transfer import transfer_rows

    seeds = [run["seed"] for run in runs if run["label"] == PLAN[0].label]
    adapters = {seed: work / f"{PLAN[0].label}-{seed}.safetensors" for seed in seeds}
    return {"rows": transfer_rows(loaded, adapters, rules=first["rules"], horizon=first["horizon"])}
