"""Queries about a stopped program, answered inside it as JSON: values as bounded texts and parts, secrets masked.

The debugger loads this module into the program (`debug/dap/python.py`) and calls it by the expressions it evaluates.
Runs in the interpreter of the program: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import inspect
import itertools
import json
import sys
import types
from typing import Any

from trysquare.debug.recorder import values
from trysquare.debug.recorder.expressions import Evaluator, error_text, parsed

FAILED = "trysquare-condition:"


class ConditionFailed(Exception):
    """A condition that cannot be evaluated. pydevd reports it, once for each breakpoint."""


class LiveQueries:
    """Answers queries that are written in hexadecimal, which no debugger interprets."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._renderer = values.Renderer(options.get("secret") or "", options.get("measure") or "")
        self._failed: set[str] = set()

    def __call__(self, asked: str, *given: Any) -> Any:
        wanted = json.loads(bytes.fromhex(asked).decode("utf-8"))
        around = _caller()
        if wanted["ask"] == "condition":
            return self._condition(wanted, around)
        if wanted["ask"] == "log":
            return self._log(wanted, around)
        try:
            return json.dumps(getattr(self, "answer_" + wanted["ask"])(wanted, _frame_for(around), *given))
        except values.WouldRun as refused:
            return json.dumps({"refused": str(refused)})
        except Exception as error:  # noqa: BLE001 - a missing value is an answer, and the program must not notice
            return json.dumps({"failed": error_text(error)})

    def answer_locals(self, wanted: dict[str, Any], frame: Any) -> list[dict[str, Any]]:
        return self._scope(frame.f_locals)

    def answer_globals(self, wanted: dict[str, Any], frame: Any) -> list[dict[str, Any]]:
        return self._scope(frame.f_globals)

    def _scope(self, scope: Any) -> list[dict[str, Any]]:
        """The names of a scope but for Python's own, such as `__builtins__`."""
        own = [(name, value) for name, value in values.names_in(scope) if not (name[:2] == name[-2:] == "__")]
        return [self._renderer.described(name, value) for name, value in own]

    def answer_read(self, wanted: dict[str, Any], frame: Any) -> dict[str, Any]:
        """The value of an expression that only reads, and its parts."""
        value, secret = self._read(wanted, frame)
        return self._whole(str(wanted["expression"]), value, secret=secret)

    def answer_parts(self, wanted: dict[str, Any], frame: Any) -> list[dict[str, Any]]:
        """The parts of a part, by the numbers of the parts on the way from the expression's value."""
        value, secret = self._read(wanted, frame)
        for step in wanted["steps"]:
            label, value = next(itertools.islice(self._renderer.children(value), step, None))
            secret = secret or self._renderer.is_secret(label.strip("'\""))
        return self._renderer.parts(value, secret=secret)

    def answer_show(self, wanted: dict[str, Any], frame: Any, value: Any) -> dict[str, Any]:
        """A value that the debugger itself evaluated."""
        names = [word for word in wanted["names"] if self._renderer.is_secret(word)]
        return self._whole(str(wanted["expression"]), value, secret=bool(names))

    def answer_function(self, wanted: dict[str, Any], frame: Any) -> bool:
        """Whether a function of this name is loaded: in a module, or in a class of one."""
        for module in list(sys.modules.values()):
            stored = values.own_dict(module) if type(module) is types.ModuleType else None
            if stored is not None and _has_function(list(values.DICT.values(stored)), wanted["name"], 1):
                return True
        return False

    def _read(self, wanted: dict[str, Any], frame: Any) -> tuple[Any, bool]:
        reading = self._reading(frame.f_locals, frame.f_globals)
        value = reading.value(parsed(str(wanted["expression"])))
        if not reading.saw_secret or values.is_one(type(value), (bool, type(None))):
            return value, False
        return (_Masked() if values.is_one(type(value), values.NUMBERS) else value), True

    def _reading(self, local: Any, world: Any) -> Evaluator:
        return Evaluator(local, world, is_secret=self._renderer.is_secret, show=self._renderer.text)

    def _whole(self, name: str, value: Any, *, secret: bool) -> dict[str, Any]:
        if type(value) is _Masked:
            about: dict[str, Any] = {"type": "int", "size": "", "cut": False, "parts": False, "inner": []}
            return {"name": name, "value": values.MASK, **about}
        found = self._renderer.described(name if name.isidentifier() else "", value, secret=secret)
        return {**found, "name": name, "inner": self._renderer.parts(value, secret=secret)}

    def _condition(self, wanted: dict[str, Any], around: Any) -> bool:
        try:
            if wanted["guarded"]:
                reading = Evaluator(around.f_locals, around.f_globals)
                return values.truth_of(reading.value(parsed(str(wanted["expression"]))))
            return bool(eval(str(wanted["expression"]), around.f_globals, around.f_locals))
        except Exception as error:  # noqa: BLE001 - reported to whoever set the condition
            if wanted["key"] in self._failed:
                return False
            self._failed.add(wanted["key"])
            report = json.dumps({"key": wanted["key"], "why": _why(error)})
            raise ConditionFailed(FAILED + report.encode("utf-8").hex()) from None

    def _log(self, wanted: dict[str, Any], around: Any) -> str:
        pieces = wanted["pieces"]
        return "".join(self._logged(text, wanted["guarded"], around) if is_code else text for is_code, text in pieces)

    def _logged(self, expression: str, guarded: bool, around: Any) -> str:
        reading = self._reading(around.f_locals, around.f_globals)
        try:
            value = (
                reading.value(parsed(expression)) if guarded else eval(expression, around.f_globals, around.f_locals)
            )
        except Exception as error:  # noqa: BLE001 - shown in the message instead of the value
            return f"<{_why(error)}>"
        if reading.saw_secret and not values.is_one(type(value), (bool, type(None))):
            return values.MASK
        name = expression if expression.isidentifier() else ""
        if type(value) is str and not self._renderer.is_secret(name):
            return value if len(value) <= 1000 else value[:1000] + f"… ({len(value)} characters)"
        return self._renderer.text(value, name=name, longest=1000)


class _Masked:
    """Placeholder for a number that was computed from a secret."""


def _caller() -> Any:
    """The frame of the expression that contains the query."""
    own = inspect.currentframe()
    above = own.f_back if own is not None else None
    return above.f_back if above is not None else None


def _why(error: Exception) -> str:
    return str(error) if type(error) is values.WouldRun else error_text(error)


def _frame_for(around: Any) -> Any:
    """The frame that the query is about: a local of pydevd's function that evaluates, a few levels up."""
    above = around
    while above is not None:
        found = above.f_locals.get("frame") if above is not around else None
        if type(found) is types.FrameType:
            return found
        above = above.f_back
    return around


def _has_function(members: list[Any], name: str, depth: int) -> bool:
    for value in members:
        if type(value) is types.FunctionType and value.__code__.co_name == name:
            return True
        if depth and values.is_class(value) and _has_function(values.members_of_class(value), name, depth - 1):
            return True
    return False
