"""What a session asks of a program that stands: answered inside the program, as JSON.

It is put into the program by the debugger (`debug/dap/inside.py`) and called by the expressions that the debugger
evaluates. It runs in the interpreter of the program: standard library only, Python 3.8 or newer.
"""

from __future__ import annotations

import inspect
import json
import sys
import types
from typing import Any, cast

from trysquare.debug.recorder import stored
from trysquare.debug.recorder.evaluating import Reading, told
from trysquare.debug.recorder.expressions import parsed
from trysquare.debug.recorder.texts import MASK, Texts, children

FAILED = "trysquare-condition:"


class ConditionFailed(Exception):
    """A condition has no truth. pydevd tells it, once for each breakpoint."""


class Live:
    """Answers what is asked in hexadecimal, which no debugger takes for anything else."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._texts = Texts(options.get("secret") or "", options.get("measure") or "")
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
        except stored.WouldRun as refused:
            return json.dumps({"refused": str(refused)})
        except Exception as error:  # noqa: BLE001 - that there is no value is an answer, and the program must not notice
            return json.dumps({"failed": told(error)})

    def answer_locals(self, wanted: dict[str, Any], frame: Any) -> list[dict[str, Any]]:
        """The local values of the frame."""
        return self._named(frame.f_locals)

    def answer_globals(self, wanted: dict[str, Any], frame: Any) -> list[dict[str, Any]]:
        """The global values of the frame."""
        return self._named(frame.f_globals)

    def _named(self, scope: Any) -> list[dict[str, Any]]:
        """The names of a scope but for Python's own, such as `__builtins__`, which are read by an expression."""
        own = [(name, value) for name, value in stored.names_in(scope) if not (name[:2] == name[-2:] == "__")]
        return [self._texts.described(name, value) for name, value in own]

    def answer_read(self, wanted: dict[str, Any], frame: Any) -> dict[str, Any]:
        """The value of an expression that only reads, and its parts."""
        value, secret = self._read(wanted, frame)
        return self._whole(str(wanted["expression"]), value, secret=secret)

    def answer_parts(self, wanted: dict[str, Any], frame: Any) -> list[dict[str, Any]]:
        """The parts of a part: the expression's value, and from there on by the numbers of the parts."""
        value, secret = self._read(wanted, frame)
        for step in wanted["steps"]:
            label, value = cast(Any, list(children(value))[step])
            secret = secret or self._texts.is_secret(label.strip("'\""))
        return self._texts.parts(value, secret=secret)

    def answer_show(self, wanted: dict[str, Any], frame: Any, value: Any) -> dict[str, Any]:
        """A value that the debugger came to in its own way."""
        names = [word for word in wanted["names"] if self._texts.is_secret(word)]
        return self._whole(str(wanted["expression"]), value, secret=bool(names))

    def answer_function(self, wanted: dict[str, Any], frame: Any) -> bool:
        """Whether a function of this name is loaded: in a module, or in a class of one."""
        for module in list(sys.modules.values()):
            kept = stored.own_dict(module) if type(module) is types.ModuleType else None
            if kept is not None and _has_function(list(stored.DICT.values(kept)), wanted["name"], 1):
                return True
        return False

    def _read(self, wanted: dict[str, Any], frame: Any) -> tuple[Any, bool]:
        reading = self._reading(frame.f_locals, frame.f_globals)
        value = reading.value(parsed(str(wanted["expression"])))
        if reading.saw_secret and not stored.is_one(type(value), (bool, type(None))):
            if stored.is_one(type(value), stored.NUMBERS):
                return _Masked(), True
            return value, True
        return value, False

    def _reading(self, local: Any, world: Any) -> Reading:
        return Reading(local, world, is_secret=self._texts.is_secret, show=self._texts.text)

    def _whole(self, name: str, value: Any, *, secret: bool) -> dict[str, Any]:
        if type(value) is _Masked:
            return {"name": name, "value": MASK, "type": "int", "size": "", "cut": False, "parts": False, "inner": []}
        found = self._texts.described(name if name.isidentifier() else "", value, secret=secret)
        return {**found, "name": name, "inner": self._texts.parts(value, secret=secret)}

    def _condition(self, wanted: dict[str, Any], around: Any) -> bool:
        try:
            if wanted["guarded"]:
                reading = Reading(around.f_locals, around.f_globals)
                return stored.truth_of(reading.value(parsed(str(wanted["expression"]))))
            return bool(eval(str(wanted["expression"]), around.f_globals, around.f_locals))
        except Exception as error:  # noqa: BLE001 - told to whoever set the condition
            if wanted["key"] in self._failed:
                return False
            self._failed.add(wanted["key"])
            report = json.dumps({"key": wanted["key"], "why": _why(error)})
            raise ConditionFailed(FAILED + report.encode("utf-8").hex()) from None

    def _log(self, wanted: dict[str, Any], around: Any) -> str:
        """A log message with its values. One that has none leaves the others as they are."""
        pieces: list[str] = []
        for is_expression, text in wanted["pieces"]:
            pieces.append(self._logged(text, wanted["guarded"], around) if is_expression else text)
        return "".join(pieces)

    def _logged(self, expression: str, guarded: bool, around: Any) -> str:
        reading = self._reading(around.f_locals, around.f_globals)
        try:
            if guarded:
                value = reading.value(parsed(expression))
            else:
                value = eval(expression, around.f_globals, around.f_locals)
        except Exception as error:  # noqa: BLE001 - told in the message, in the place of the value
            return f"<{_why(error)}>"
        if reading.saw_secret and not stored.is_one(type(value), (bool, type(None))):
            return MASK
        name = expression if expression.isidentifier() else ""
        if type(value) is str and not self._texts.is_secret(name):
            return value if len(value) <= 1000 else value[:1000] + f"… ({len(value)} characters)"
        return self._texts.text(value, name=name, longest=1000)


class _Masked:
    """Stands for a number that was made of a secret."""


def _caller() -> Any:
    """The frame of the expression that asks us."""
    own = inspect.currentframe()
    above = own.f_back if own is not None else None
    return above.f_back if above is not None else None


def _why(error: Exception) -> str:
    return str(error) if type(error) is stored.WouldRun else told(error)


def _frame_for(around: Any) -> Any:
    """The frame that is asked about: pydevd's function that evaluates has it, a few levels up."""
    above = around
    while above is not None:
        found = above.f_locals.get("frame") if above is not around else None
        if type(found) is types.FrameType:
            return found
        above = above.f_back
    return around


def _has_function(values: list[Any], name: str, depth: int) -> bool:
    for value in values:
        if type(value) is types.FunctionType and value.__code__.co_name == name:
            return True
        if depth and stored.is_class(value) and _has_function(stored.kept_in_class(value), name, depth - 1):
            return True
    return False
