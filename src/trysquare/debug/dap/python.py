"""pydevd as a Debugger: modules injected into the program read values without running its code."""

from __future__ import annotations

import ast
import asyncio
import itertools
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.redaction import MEASURE_NAME, SECRET_NAME
from trysquare.debug import recorder
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import (
    Bound,
    BreakpointSpec,
    Capabilities,
    ConditionFailed,
    EvaluateFor,
    ExceptionInfo,
    Frame,
    FunctionBreakpoint,
    Listener,
    NotReadable,
    RequestFailed,
    Scope,
    Variable,
)
from trysquare.debug.expressions import parse_log_message
from trysquare.debug.recorder.live import FAILED
from trysquare.debug.sources import Sources

_MODULES = ("values", "expressions", "live")
_PACKAGE = "trysquare.debug.recorder"
_LOADER = """
def _trysquare_load(name, sources, options):
    import builtins, types
    own = dict(vars(builtins))
    for each in ("len", "id", "all", "any", "getattr", "sorted", "sum", "repr", "max", "min", "eval", "iter"):
        if type(own[each]) is not type("".join) or own[each].__name__ != each:
            raise RuntimeError(each + " is not Python's own here")
    made = {}
    plain = own["__import__"]
    def load(wanted, world=None, local=None, names=(), level=0):
        if wanted in made:
            return made[wanted]
        return plain(wanted, world, local, names, level)
    own["__import__"] = load
    package = types.ModuleType("trysquare_reading")
    made["PACKAGE"] = package
    for part, source in sources:
        module = types.ModuleType("trysquare_reading." + part)
        module.__dict__["__builtins__"] = own
        exec(compile(source, "<trysquare " + part + ">", "exec"), module.__dict__)
        made["PACKAGE." + part] = module
        setattr(package, part, module)
    setattr(builtins, name, package.live.LiveQueries(options))
_trysquare_load({name!r}, {sources!r}, {options!r})
del _trysquare_load
"""


def _failed_condition(output: str) -> JsonObject | None:
    """The failure of a condition that an output line reports, or None."""
    _, found, rest = output.rpartition(FAILED)
    digits = rest.split()[0] if found and rest.split() else ""
    try:
        return json.loads(bytes.fromhex(digits)) if digits else None
    except ValueError:
        return None


@cache
def _sources() -> list[tuple[str, str]]:
    folder = Path(next(iter(recorder.__path__)))
    return [(name, (folder / f"{name}.py").read_text(encoding="utf-8")) for name in _MODULES]


_NAME = re.compile(r"[A-Za-z_]\w*")
_MARKED_FRAME, _NOTE = " (Current frame)", "(note: "
"""What pydevd adds to the name of a frame and of an exception where the exception came from further in."""
_REWRITTEN = "@py_"
"""Names of pytest's rewritten assertions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reference:
    """The target of a reference: names of a frame, or parts of an expression's value."""

    frame: int
    ask: str
    expression: str = ""
    steps: tuple[int, ...] = ()
    parts: tuple[JsonObject, ...] | None = None


class PythonDebugger(DapDebugger):
    """A debugger of a Python program. `load` has to be called before the program runs."""

    def __init__(self, listener: Listener, *, shows_secrets: bool = False) -> None:
        super().__init__(listener, adapter_id="python")
        self._reader = f"_trysquare_{secrets.token_hex(8)}"
        """Name of the reader in the builtins of the program."""
        self._options = {} if shows_secrets else {"secret": SECRET_NAME, "measure": MEASURE_NAME}
        self._loading: asyncio.Future[JsonObject] | None = None
        self._numbers = itertools.count(1)
        self._references: dict[int, _Reference] = {}

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, columns=False)

    def load(self) -> None:
        """Inject the reader into the program; `start` waits for it."""
        text = _LOADER.replace("PACKAGE", _PACKAGE)
        for part, value in {"{name!r}": self._reader, "{sources!r}": _sources(), "{options!r}": self._options}.items():
            text = text.replace(part, repr(value))
        _, self._loading = self.client.send("evaluate", {"expression": text, "context": "repl"})

    def _query(self, ask: str, *, given: str | None = None, **wanted: object) -> str:
        """An expression that queries the reader. `given` is an expression whose value it gets."""
        asked = json.dumps({"ask": ask, **wanted}).encode("utf-8").hex()
        # On a line of its own, so that a comment at its end does not hide the bracket.
        return f"{self._reader}('{asked}')" if given is None else f"{self._reader}('{asked}', (\n{given}\n))"

    async def start(self) -> None:
        if self._loading is not None:
            async with asyncio.timeout(30):
                await self._loading
        await super().start()

    async def set_breakpoints(self, file: str, specs: Sequence[BreakpointSpec]) -> list[Bound]:
        sources = Sources()
        wrapped = [
            replace(spec, line=_statement_line(sources, spec), **self._wrapped(spec, f"{spec.file}:{spec.line}"))
            for spec in specs
        ]
        return await super().set_breakpoints(file, wrapped)

    async def set_function_breakpoints(self, wanted: Sequence[FunctionBreakpoint]) -> list[Bound]:
        wrapped = [replace(each, condition=self._condition(each, each.name)) for each in wanted]
        bound = await super().set_function_breakpoints(wrapped)
        return [await self._bound(each.name, made) for each, made in zip(wanted, bound, strict=False)]

    async def _bound(self, name: str, made: Bound) -> Bound:
        """The breakpoint of a function, unverified where none of that name is loaded: pydevd accepts any."""
        if self._loading is None or (self._loading.done() and await self._ask(None, "function", name=name)):
            return made
        message = f"no function `{name}` is loaded yet; it stops when one of this name is entered"
        return replace(made, verified=False, message=message)

    def _wrapped(self, spec: BreakpointSpec, key: str) -> dict[str, str | None]:
        log = None
        if spec.log_message is not None:
            pieces = parse_log_message(spec.log_message)
            log = f"{{{self._query('log', pieces=pieces, guarded=spec.guarded)}}}"
        return {"condition": self._condition(spec, key), "log_message": log}

    def _condition(self, spec: BreakpointSpec | FunctionBreakpoint, key: str) -> str | None:
        if spec.condition is None:
            return None
        return self._query("condition", expression=spec.condition, key=key, guarded=spec.guarded)

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        frames, total = await super().stack(thread, start=start, count=count)
        return [replace(frame, name=frame.name.removesuffix(_MARKED_FRAME)) for frame in frames], total

    async def exception(self, thread: int) -> ExceptionInfo | None:
        found = await super().exception(thread)
        return None if found is None else replace(found, type=found.type.partition(_NOTE)[0].rstrip())

    async def scopes(self, frame: int) -> list[Scope]:
        globals_reference = self._add_reference(_Reference(frame=frame, ask="globals"))
        return [
            Scope(name="Locals", kind="locals", reference=self.locals_reference(frame)),
            Scope(name="Globals", kind="globals", reference=globals_reference),
        ]

    def locals_reference(self, frame: int) -> int:
        return self._add_reference(_Reference(frame=frame, ask="locals"))

    async def variables(self, reference: int, *, start: int = 0, count: int = 0) -> list[Variable]:
        found = self._references.get(reference)
        if found is None:
            raise RequestFailed("variables", "The value is from an earlier stop.")
        parts = found.parts
        if parts is None:
            parts = tuple(await self._ask(found.frame, found.ask, expression=found.expression, steps=found.steps))
        made = [self._part(found, index, each) for index, each in enumerate(parts)]
        if found.ask == "locals":
            made = [each for each in made if not each.name.startswith(_REWRITTEN)]
        return made[start : start + count] if count else made[start:]

    async def read(self, expression: str, frame: int) -> Variable:
        return self._whole(expression, frame, await self._ask(frame, "read", expression=expression))

    async def evaluate(self, expression: str, frame: int | None, purpose: EvaluateFor = "watch") -> Variable:
        if purpose == "repl" or frame is None:
            return await super().evaluate(expression, frame, purpose)
        names = _NAME.findall(expression)
        found = await self._ask(frame, "show", given=expression, expression=expression, names=names)
        return self._whole(expression, frame, found)

    async def assign(self, expression: str, value: str, frame: int) -> Variable:
        # As a statement: pydevd answers an assignment with the `repr` of the value, which runs its code.
        await super().evaluate(f"{expression} = {value}", frame, "repl")
        return await self.read(expression, frame)

    async def _ask(self, frame: int | None, ask: str, *, given: str | None = None, **wanted: object) -> Any:
        text = self._query(ask, given=given, **wanted)
        purpose: EvaluateFor = "clipboard" if frame is not None else "repl"
        answer = (await super().evaluate(text, frame, purpose)).value
        try:
            read: Any = json.loads(ast.literal_eval(answer) if answer[:1] in "'\"" else answer)
        except (ValueError, SyntaxError):
            raise RequestFailed("evaluate", answer[:500]) from None
        outcome = as_object(read)
        if "refused" in outcome:
            raise NotReadable(str(outcome["refused"]))
        if "failed" in outcome:
            raise RequestFailed("evaluate", str(outcome["failed"]))
        return read

    def _whole(self, expression: str, frame: int, found: JsonObject) -> Variable:
        inner = tuple(as_list(found.get("inner")))
        reference = _Reference(frame=frame, ask="parts", expression=expression, parts=inner)
        return _variable(found, self._add_reference(reference) if inner else 0)

    def _part(self, whole: _Reference, index: int, found: JsonObject) -> Variable:
        if not found.get("parts"):
            return _variable(found, 0)
        if whole.ask == "parts":
            inner = replace(whole, steps=(*whole.steps, index), parts=None)
        else:
            inner = _Reference(frame=whole.frame, ask="parts", expression=str(found["name"]))
        return _variable(found, self._add_reference(inner))

    def _add_reference(self, reference: _Reference) -> int:
        number = next(self._numbers)
        self._references[number] = reference
        return number

    def _on_stopped(self, body: JsonObject) -> None:
        self._references.clear()
        super()._on_stopped(body)

    def _on_output(self, body: JsonObject) -> None:
        failed = _failed_condition(str(body.get("output", "")))
        if failed is None:
            super()._on_output(body)
        else:
            self._listener(ConditionFailed(location=str(failed["key"]), reason=str(failed["why"])))


def _statement_line(sources: Sources, spec: BreakpointSpec) -> int:
    """The line of a breakpoint, or that of the next statement: pydevd takes an earlier one, of another block."""
    line = sources.lines(spec.file)[spec.line - 1 : spec.line]
    if any(text.strip() and not text.strip().startswith("#") for text in line):
        return spec.line
    return sources.next_statement(spec.file, spec.line) or spec.line


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
