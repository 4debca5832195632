"""The reader's Python: runs cells one after the other and hands what they show to ``send``, a function of the worker.

It runs in a browser, on the Python of Pyodide, and for tests on any other.
"""

from __future__ import annotations

import ast
import io
import linecache
import symtable
import sys
import time
import traceback
import types

LIMIT = 100_000
"""How many characters one cell may show."""

INTERVAL = 0.05
"""Seconds for which printed text is collected: a message for each print would take longer than the print."""

FRAMES = 8
"""How many of the last calls a traceback shows."""


def bound(code):
    """The names that a cell defines."""
    symbols = symtable.symtable(code, "cell", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


class Shown:
    """What the running cell shows, in order, and no more than :data:`LIMIT` of it."""

    def __init__(self, send):
        self.send = send
        self.begin()

    def begin(self):
        self.parts, self.kind, self.room, self.sent = [], "stdout", LIMIT, time.monotonic()

    def text(self, kind, text):
        if kind != self.kind:
            self.flush()
            self.kind = kind
        if self.room <= 0:
            return
        self.parts.append(text[: self.room])
        self.room -= len(text)
        if self.room <= 0:
            self.flush()
            self.send("cut", "")
        elif time.monotonic() - self.sent > INTERVAL:
            self.flush()

    def flush(self):
        if self.parts:
            self.send(self.kind, "".join(self.parts))
        self.parts, self.sent = [], time.monotonic()

    def rich(self, kind, text):
        self.flush()
        if self.room > 0:
            self.room -= len(text)
            self.send(kind, text)


class Stream(io.TextIOBase):
    """Standard output or standard error of the cells."""

    def __init__(self, shown, kind):
        self.shown, self.kind = shown, kind

    def writable(self):
        return True

    def write(self, text):
        self.shown.text(self.kind, text)
        return len(text)

    def flush(self):
        self.shown.flush()


class Session:
    """The names that the cells of a page share."""

    def __init__(self, send):
        self.send = send
        self.shown = Shown(send)
        self.names = {"__name__": "__main__"}
        self.stand_in("myst_nb", glue=self.glue)
        self.stand_in("IPython", display=self.stand_in("IPython.display", display=self.display))

    @staticmethod
    def stand_in(name, **names):
        """A module with the few names of another package that cells of the book use."""
        module = types.ModuleType(name, "What cells of the book take from this package, for the browser.")
        vars(module).update(names)
        sys.modules[name] = module
        return module

    def glue(self, name, value, display=True):
        """The build puts glued values into the text; here there is nothing to put them into."""
        if display:
            self.display(value)

    def display(self, *values):
        """Show values as Jupyter does: as a drawing, as HTML, or as they are written."""
        for value in values:
            for kind, method in (("svg", "_repr_svg_"), ("html", "_repr_html_"), ("markdown", "_repr_markdown_")):
                made = getattr(type(value), method, None) and getattr(value, method)()
                if made:
                    self.shown.rich(kind, made)
                    break
            else:
                self.shown.text("stdout", f"{value!r}\n")

    def _execute(self, code, name, names):
        body = ast.parse(code, name)
        last = None
        if body.body and isinstance(body.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(body.body.pop().value)
        exec(compile(body, name, "exec"), names)
        if last is not None:
            value = eval(compile(last, name, "eval"), names)
            if value is not None:
                names["_"] = value
                self.display(value)

    def run(self, code, name, names=None):
        """Run a cell; true if it ended well. An error is shown with the last calls and the lines of the cell."""
        names = self.names if names is None else names
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = Stream(self.shown, "stdout"), Stream(self.shown, "stderr")
        self.shown.begin()
        try:
            self._execute(code, name, names)
        except BaseException as error:
            self.shown.flush()
            self.send("error", self.readable(error))
            if isinstance(error, ModuleNotFoundError) and error.name:
                self.send("missing", error.name)
            return False
        else:
            self.shown.flush()
            return True
        finally:
            sys.stdout, sys.stderr = streams

    @staticmethod
    def readable(error):
        """The traceback without what lies above the reader's code, and of a long one the last calls."""
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, "check"):
            frames = frames.tb_next
        lines = traceback.TracebackException(type(error), error, frames, limit=-FRAMES).format()
        return "".join(lines)

    def attempt(self, code, check, name, starter):
        """Run a reader's answer beside the page's names, then its check; sends ``right``, or ``wrong`` with why.

        Of what the answer defines the check sees what the starter asks for and nothing else: an answer that calls a
        number ``sum``, or as the page calls a function, does not change what the check computes with.
        """
        names = dict(self.names)
        if not self.run(code, name, names):
            return False
        asked = {key: names[key] for key in bound(starter) & names.keys()}
        try:
            exec(compile(check, "check", "exec"), {**self.names, **asked})
        except AssertionError as error:
            self.send("wrong", str(error))
        except Exception as error:
            self.send("error", self.readable(error))
            self.send("unread", "")
        else:
            self.send("right", "")
            return True
        return False

    def record(self, told):
        """Play a reader's episode again in the package's environment; sends its rollout record as a line of JSON.

        A person is no policy with known probabilities: the turns count as not sampled.
        """
        import json
        from pathlib import Path

        from keydoor import KeyDoorAgentEnv, rollout_contract_from_transitions
        from keydoor.records import Transition, write_rollout_records

        episode = json.loads(told)
        env = KeyDoorAgentEnv()
        seen, _ = env.reset(target=episode["target"])
        transitions = []
        for action, wanted in zip(episode["actions"], episode["observations"], strict=True):
            before = seen
            seen, _, terminated, truncated, info = env.step(action)
            if seen != wanted:
                raise ValueError(f"after {action} the page showed {wanted} and the environment {seen}")
            kept = ("base_reward", "shaped_reward", "stop_reason", "invalid", "potential_before", "potential_after")
            transitions.append(
                Transition(
                    observation=before,
                    action=action,
                    next_observation=seen,
                    behavior_logprob=None,
                    sampled=False,
                    terminated=terminated,
                    truncated=truncated,
                    **{name: info[name] for name in kept},
                )
            )
        record = rollout_contract_from_transitions(
            transitions, task_id="key-door", environment_version="1.0", policy_version="human"
        )
        path = Path("episode.jsonl").absolute()
        write_rollout_records(path, [record])
        self.send("record", path.read_text("utf8"))
        return True

    def fresh(self):
        """Forget all names, as if the page had just been opened."""
        self.names = {"__name__": "__main__"}
        return True
