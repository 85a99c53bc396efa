"""Checking: whether calls are right, by the checker of `bfcl-eval` itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

from evals.questions import SETS, Question
from trysquare.core.json import JsonObject

_MODELS = "bfcl_eval.constants.model_config"
_OURS = "trysquare"


def is_right(question: Question, calls: Sequence[JsonObject]) -> bool:
    """Whether the checker takes these calls, each `{"name": …, "args": {…}}`, as an answer to the question."""
    if not calls:
        return False
    checker, language = _checker()
    written = [{call["name"]: call["args"]} for call in calls]
    declared = list(question.functions)
    found = checker(declared, written, list(question.right), language, SETS[question.set], _OURS)
    return bool(found["valid"])


def _checker() -> tuple[Any, Any]:
    """The checker and its word for Python.

    It asks one thing of its table of models: whether dots in names are written as `_`. The real table imports the
    clients of two dozen vendors, so a table with one model stands in for it.
    """
    if _MODELS not in sys.modules:
        table: Any = ModuleType(_MODELS)
        table.MODEL_CONFIG_MAPPING = {_OURS: SimpleNamespace(underscore_to_dot=True)}
        sys.modules[_MODELS] = table
    checker = import_module("bfcl_eval.eval_checker.ast_eval.ast_checker")
    return checker.ast_checker, import_module("bfcl_eval.constants.enums").Language.PYTHON
