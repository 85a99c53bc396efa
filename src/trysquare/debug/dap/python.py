"""PythonDebugger: pydevd, with every value read by what we put into the program, so that none of its code runs."""

from __future__ import annotations

import ast
import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.dap.inside import Inside, failed_condition
from trysquare.debug.debugger import (
    Abilities,
    Bound,
    BreakpointSpec,
    ConditionFailed,
    EvaluateFor,
    FunctionBreakpoint,
    Listener,
    NotReadable,
    Scope,
    Variable,
)
from trysquare.debug.log_messages import pieces_of
from trysquare.debug.secret_names import MEASURE_NAME, SECRET_NAME

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Held:
    """What a reference of ours stands for: names of a frame, or parts of an expression's value."""

    frame: int
    ask: str
    expression: str = ""
    steps: tuple[int, ...] = ()
    found: tuple[JsonObject, ...] | None = None


class PythonDebugger(DapDebugger):
    """A debugger on a Python program. `load` has to be called before the program runs."""

    def __init__(self, listener: Listener, *, shows_secrets: bool = False) -> None:
        super().__init__(listener, adapter_id="python")
        names = {"secret": "", "measure": ""} if shows_secrets else {"secret": SECRET_NAME, "measure": MEASURE_NAME}
        self._inside = Inside(**names)
        self._loading: asyncio.Future[JsonObject] | None = None
        self._numbers = itertools.count(1)
        self._held: dict[int, _Held] = {}

    @property
    def abilities(self) -> Abilities:
        return replace(super().abilities, columns=False)

    def load(self) -> None:
        """Have our reader put into the program; `start` waits until it is there."""
        wanted = {"expression": self._inside.loader(), "context": "repl"}
        _, self._loading = self.client.send("evaluate", wanted)

    async def start(self) -> None:
        if self._loading is not None:
            async with asyncio.timeout(30):
                await self._loading
        await super().start()

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        wrapped = [replace(spec, **self._wrapped(spec, f"{spec.file}:{spec.line}")) for spec in specs]
        return await super().set_breakpoints(file, wrapped)

    async def set_function_breakpoints(self, wanted: Sequence[FunctionBreakpoint]) -> list[Bound]:
        wrapped = [replace(each, condition=self._condition(each, each.name)) for each in wanted]
        bound = await super().set_function_breakpoints(wrapped)
        return [await self._bound(each.name, made) for each, made in zip(wanted, bound, strict=False)]

    async def _bound(self, name: str, made: Bound) -> Bound:
        """pydevd takes every name for a function. Whether there is one is asked for in the program."""
        if self._loading is None or (self._loading.done() and await self._ask(None, "function", name=name)):
            return made
        why = f"no function `{name}` was loaded when it was set; it stops if one of this name is entered"
        return replace(made, verified=False, message=why)

    def _wrapped(self, spec: BreakpointSpec, key: str) -> dict[str, str | None]:
        log = None
        if spec.log_message is not None:
            pieces = pieces_of(spec.log_message)
            log = f"{{{self._inside.asking('log', pieces=pieces, guarded=spec.guarded)}}}"
        return {"condition": self._condition(spec, key), "log_message": log}

    def _condition(self, spec: BreakpointSpec | FunctionBreakpoint, key: str) -> str | None:
        if spec.condition is None:
            return None
        return self._inside.asking("condition", expression=spec.condition, key=key, guarded=spec.guarded)

    async def scopes(self, frame: int) -> list[Scope]:
        held = self._hold(_Held(frame=frame, ask="locals")), self._hold(_Held(frame=frame, ask="globals"))
        return [
            Scope(name="Locals", kind="locals", reference=held[0]),
            Scope(name="Globals", kind="globals", reference=held[1]),
        ]

    def locals_reference(self, frame: int) -> int | None:
        return self._hold(_Held(frame=frame, ask="locals"))

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]:
        held = self._held.get(reference)
        if held is None:
            raise RequestFailed("variables", "That value is from an earlier stop.", {})
        found = held.found
        if found is None:
            wanted = await self._ask(held.frame, held.ask, expression=held.expression, steps=held.steps)
            found = tuple(cast(list[JsonObject], wanted))
        made = [self._part(held, index, each) for index, each in enumerate(found)]
        return made[start : start + count] if count else made[start:]

    async def read(self, expression: str, frame: int) -> Variable:
        found = await self._ask(frame, "read", expression=expression)
        return self._whole(expression, frame, cast(JsonObject, found))

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        if purpose == "repl" or frame is None:
            return await super().evaluate(expression, frame, purpose)
        names = _NAME.findall(expression)
        found = await self._ask(frame, "show", given=expression, expression=expression, names=names)
        return self._whole(expression, frame, cast(JsonObject, found))

    async def assign(self, expression: str, value: str, frame: int) -> Variable:
        # As a statement, since what pydevd answers to an assignment is the text that the value makes of itself.
        await super().evaluate(f"{expression} = {value}", frame, "repl")
        return await self.read(expression, frame)

    async def _ask(self, frame: int | None, ask: str, *, given: str | None = None, **wanted: object) -> Any:
        text = self._inside.asking(ask, given=given, **wanted)
        purpose: EvaluateFor = "clipboard" if frame is not None else "repl"
        answer = (await super().evaluate(text, frame, purpose)).value
        try:
            told: Any = json.loads(ast.literal_eval(answer) if answer[:1] in "'\"" else answer)
        except (ValueError, SyntaxError):
            raise RequestFailed("evaluate", answer[:500], {}) from None
        outcome = cast(JsonObject, told) if isinstance(told, dict) else {}
        if "refused" in outcome:
            raise NotReadable(str(outcome["refused"]))
        if "failed" in outcome:
            raise RequestFailed("evaluate", str(outcome["failed"]), {})
        return cast(Any, told)

    def _whole(self, expression: str, frame: int, found: JsonObject) -> Variable:
        inner = tuple(cast(list[JsonObject], found.get("inner") or []))
        held = _Held(frame=frame, ask="parts", expression=expression, found=inner)
        return _variable(found, self._hold(held) if inner else 0)

    def _part(self, held: _Held, index: int, found: JsonObject) -> Variable:
        if not found.get("parts"):
            return _variable(found, 0)
        if held.ask == "parts":
            inner = replace(held, steps=(*held.steps, index), found=None)
        else:
            inner = _Held(frame=held.frame, ask="parts", expression=str(found["name"]))
        return _variable(found, self._hold(inner))

    def _hold(self, held: _Held) -> int:
        number = next(self._numbers)
        self._held[number] = held
        return number

    def _hear_stopped(self, body: JsonObject) -> None:
        self._held.clear()
        super()._hear_stopped(body)

    def _hear_output(self, body: JsonObject) -> None:
        failed = failed_condition(str(body.get("output", "")))
        if failed is None:
            super()._hear_output(body)
        else:
            self._listener(ConditionFailed(place=str(failed["key"]), why=str(failed["why"])))


def _variable(found: JsonObject, reference: int) -> Variable:
    return Variable(
        name=str(found["name"]),
        value=str(found["value"]),
        type=found.get("type"),
        reference=reference,
        size=str(found.get("size") or ""),
        is_cut=bool(found.get("cut")),
        shows_all=True,
    )
