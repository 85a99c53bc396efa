"""lldb-dap as a Debugger: values made readable from their parts, panics and aborts with what the runtime wrote."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import (
    DEBUGGER_ERRORS,
    Capabilities,
    Event,
    ExceptionInfo,
    Frame,
    Listener,
    Output,
    RequestFailed,
    Variable,
)
from trysquare.debug.expressions import ExpressionRules

_PANIC = "panic"
_PANIC_FUNCTION = "rust_panic"
_MESSAGE_SECONDS = 1.0
"""Seconds to wait for what the runtime writes about a panic; lldb may report the stop before that output."""
_END = r"(?=\r?\nnote: |\r?\nstack backtrace|\r?\n\r?\n|\s*$)"
_MESSAGES = (
    (re.compile(rf"panicked at [^\n]*:\d+:\r?\n(?P<message>.+?){_END}", re.DOTALL), "panic"),
    (re.compile(r"panicked at '(?P<message>[^\n]*)', [^\n]*:\d+"), "panic"),
    (
        re.compile(
            r"throwing an instance of '(?P<type>[^']+)'(?:\r?\n\s*what\(\):\s*(?P<message>[^\r\n]*))?"
        ),
        "exception",
    ),
    (re.compile(r"uncaught exception of type (?P<type>[^\s:]+)(?::\s*(?P<message>[^\r\n]*))?"), "exception"),
    (re.compile(r"(?P<message>Assertion [`'][^\r\n]*failed)"), "abort"),
)  # fmt: skip
_TAIL = 8000
_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")
"""A suffix that makes the symbols of Rust unique."""
_ADDRESS = r"0x[0-9a-fA-F]+"
_OPAQUE = re.compile(rf"(?:.* @ {_ADDRESS}|{_ADDRESS}(?: size=\d+)?|size=\d+|\s*Has Value=\w+\s*|)")
_NULL = re.compile(r"0x0+")
_STRING = re.compile(rf'{_ADDRESS} ("(?:.|\n)*")')
_EMPTY_HASH = re.compile(r"(?:const )?std::unordered_.* size=0")
_INDEX = re.compile(r"\[\d+\]|\d+")
_MAX_PARTS = 8
_MAX_DEPTH = 3
_MAX_REQUESTS = 60
"""Requests for the parts of one value: each level of a structure needs one."""


class LldbDebugger(DapDebugger):
    """A debugger of a native program. `recent_output` returns the end of what the program wrote."""

    def __init__(
        self, listener: Listener, *, expressions: Sequence[ExpressionRules], recent_output: Callable[[int], str]
    ) -> None:
        super().__init__(self._watched(listener), adapter_id="lldb-dap", expressions=expressions)
        self._recent_output = recent_output
        self._has_output = asyncio.Event()

    @property
    def capabilities(self) -> Capabilities:
        known = super().capabilities
        return replace(known, exception_filters=(_PANIC, *known.exception_filters))

    async def set_exception_breakpoints(self, filters: Sequence[str]) -> None:
        await super().set_exception_breakpoints([each for each in filters if each != _PANIC])
        await self.set_own_function(_PANIC_FUNCTION, "exception" if _PANIC in filters else None)

    async def exception(self, thread: int) -> ExceptionInfo | None:
        """The exception with what the runtime wrote about it, where it wrote something."""
        found = await super().exception(thread)
        if found is None or not re.search(f"SIGABRT|{_PANIC_FUNCTION}|breakpoint", f"{found.type} {found.message}"):
            return found
        try:
            async with asyncio.timeout(_MESSAGE_SECONDS):
                while (written := _written_exception(self._recent_output(_TAIL))) is None:
                    self._has_output.clear()
                    await self._has_output.wait()
        except TimeoutError:
            return found
        return written

    async def stack(self, thread: int, *, start: int = 0, count: int = 0) -> tuple[list[Frame], int]:
        frames, total = await super().stack(thread, start=start, count=count)
        return [replace(frame, name=_RUST_HASH.sub("", frame.name)) for frame in frames], total

    async def readable(self, variable: Variable, frame: int | None = None) -> Variable:
        """The value with its parts in its text: lldb shows a structure by its address and a container by its size."""
        target = variable
        if frame is not None and _is_pointer(variable):
            # The value behind a pointer has the formatters of its type, which its members by themselves do not.
            try:
                target = await self.evaluate(f"*{variable.name}", frame, "hover")
            except RequestFailed:
                target = variable
        if _EMPTY_HASH.fullmatch(f"{target.type} {target.value}") and (count := await self._hashed(target.name, frame)):
            return replace(variable, value=f"{count} items, which lldb cannot show")
        text = await _Rendering(self).text(target, _MAX_DEPTH)
        return replace(variable, value=f"&{text}" if target is not variable else text)

    async def _hashed(self, name: str, frame: int | None) -> int:
        """How many items a hash table has: lldb's formatters find none in tables that some compilers describe."""
        try:
            found = await self.evaluate(f"{name}._M_h._M_element_count", frame, "hover")
        except RequestFailed:
            return 0
        return int(found.value) if found.value.isdigit() else 0

    def _watched(self, listener: Listener) -> Listener:
        def receive(event: Event) -> None:
            listener(event)
            if isinstance(event, Output):
                self._has_output.set()

        return receive


class _Rendering:
    """Makes the text of one value, with a limited number of requests."""

    def __init__(self, debugger: LldbDebugger) -> None:
        self._debugger = debugger
        self._left = _MAX_REQUESTS

    async def text(self, variable: Variable, depth: int) -> str:
        value = variable.value
        if _NULL.fullmatch(value) and _is_pointer(variable):
            return "null"
        if string := _STRING.fullmatch(value):
            return string[1]
        if not variable.reference or not _OPAQUE.fullmatch(value):
            return value
        if depth == 0 or self._left <= 0:
            return "…"
        self._left -= 1
        try:
            parts = await self._debugger.variables(variable.reference, count=_MAX_PARTS + 1)
        except DEBUGGER_ERRORS:
            return value
        return await self._joined(variable, parts, depth)

    async def _joined(self, variable: Variable, parts: list[Variable], depth: int) -> str:
        names = [part.name for part in parts]
        if not parts:
            return "[]" if "size=" in variable.value else "{}" if "@" in variable.value else variable.value.strip()
        if names == ["pointer"]:
            return await self.text(parts[0], depth)
        if names == ["Value"] or (len(parts) == 1 and names[0].startswith("*")):
            return await self.text(parts[0], depth - 1)
        shown = parts[:_MAX_PARTS]
        more = ", …" if len(parts) > len(shown) else ""
        if all(_INDEX.fullmatch(name) for name in names):
            items = [await self._item(part, depth - 1) for part in shown]
            is_map = all(" : " in item for item in items)
            body = ", ".join(item.replace(" : ", ": ", 1) for item in items)
            return f"{{{body}{more}}}" if is_map else f"[{body}{more}]"
        members = [f"{part.name}: {await self.text(part, depth - 1)}" for part in shown if part.name]
        return f"{{{', '.join(members)}{more}}}"

    async def _item(self, part: Variable, depth: int) -> str:
        """An item of a container; a pair of a map as `key : value`."""
        if "pair<" not in (part.type or "") or not part.reference or self._left <= 0:
            return await self.text(part, depth)
        self._left -= 1
        halves = await self._debugger.variables(part.reference)
        if [half.name for half in halves] != ["first", "second"]:
            return await self.text(part, depth)
        return " : ".join([await self.text(half, depth) for half in halves])


def _is_pointer(variable: Variable) -> bool:
    return (variable.type or "").rstrip().endswith("*") and bool(re.fullmatch(_ADDRESS, variable.value))


def _written_exception(output: str) -> ExceptionInfo | None:
    """The last panic, exception or failed assertion that a runtime reported in the output."""
    found = [(match.start(), match, kind) for pattern, kind in _MESSAGES for match in pattern.finditer(output)]
    if not found:
        return None
    _, match, kind = max(found, key=lambda each: each[0])
    groups = match.groupdict()
    return ExceptionInfo(
        type=groups.get("type") or kind, message=(groups.get("message") or "").replace("\r", "").strip()
    )
