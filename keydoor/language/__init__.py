"""A real language model in the key-door world: texts, a tool environment, scoring, learning, stored results.

Names load on first use, as those of ``keydoor`` do. The modules that ``LIGHT`` lists need the standard library
alone, so that stored results can be read, and computed with, where no model is installed; the rest needs the extra
``language``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keydoor import _lazy

LIGHT = ("environment", "results", "tables", "texts")
"""Modules that need the standard library alone."""

_HOME_OF_NAME = {
    "ActionScorer": "scoring",
    "LANGUAGES": "texts",
    "LanguageSettings": "learning",
    "SITUATIONS": "tables",
    "STORED": "results",
    "Situation": "tables",
    "Success": "tables",
    "TextKeyDoorEnv": "environment",
    "TokenTree": "tree",
    "WORDINGS": "texts",
    "action_masses": "tables",
    "as_policy": "tables",
    "calibrate": "tables",
    "call_of": "environment",
    "exact_success": "tables",
    "history_messages": "texts",
    "load": "weights",
    "messages": "texts",
    "observation_text": "texts",
    "play": "environment",
    "probabilities": "tables",
    "reachable": "tables",
    "situation_after": "tables",
    "situation_of": "tables",
    "situation_text": "texts",
    "spelling": "texts",
    "spellings": "texts",
    "stored": "results",
    "task_text": "texts",
    "train": "learning",
}

__all__ = sorted(_HOME_OF_NAME)

__getattr__, __dir__ = _lazy.names_on_first_use(__name__, _HOME_OF_NAME)

if TYPE_CHECKING:
    from keydoor.language.environment import TextKeyDoorEnv as TextKeyDoorEnv
    from keydoor.language.environment import call_of as call_of
    from keydoor.language.environment import play as play
    from keydoor.language.learning import LanguageSettings as LanguageSettings
    from keydoor.language.learning import train as train
    from keydoor.language.results import STORED as STORED
    from keydoor.language.results import stored as stored
    from keydoor.language.scoring import ActionScorer as ActionScorer
    from keydoor.language.tables import SITUATIONS as SITUATIONS
    from keydoor.language.tables import Situation as Situation
    from keydoor.language.tables import Success as Success
    from keydoor.language.tables import action_masses as action_masses
    from keydoor.language.tables import as_policy as as_policy
    from keydoor.language.tables import calibrate as calibrate
    from keydoor.language.tables import exact_success as exact_success
    from keydoor.language.tables import probabilities as probabilities
    from keydoor.language.tables import reachable as reachable
    from keydoor.language.tables import situation_after as situation_after
    from keydoor.language.tables import situation_of as situation_of
    from keydoor.language.texts import LANGUAGES as LANGUAGES
    from keydoor.language.texts import WORDINGS as WORDINGS
    from keydoor.language.texts import history_messages as history_messages
    from keydoor.language.texts import messages as messages
    from keydoor.language.texts import observation_text as observation_text
    from keydoor.language.texts import situation_text as situation_text
    from keydoor.language.texts import spelling as spelling
    from keydoor.language.texts import spellings as spellings
    from keydoor.language.texts import task_text as task_text
    from keydoor.language.tree import TokenTree as TokenTree
    from keydoor.language.weights import load as load
