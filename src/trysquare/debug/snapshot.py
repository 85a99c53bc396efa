"""Snapshot: what a program looks like where it stands: the place, its code, its values, and what changed."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.debugger import Debugger, ExceptionInfo, Frame, NotReadable, Stopped, Variable
from trysquare.debug.rendering import Shown, ranked, text_of, within_budget

CONTEXT_LINES = 3
BUDGET = 800
_CHANGES = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """One stop, as far as it was looked at."""

    frame: Frame
    code: str
    values: Shown
    texts: Mapping[str, str]
    """Every local value's text, to tell at the next stop what changed."""
    changed: Mapping[str, str]
    depth: int
    watched: Mapping[str, str]
    exception: ExceptionInfo | None = None

    @property
    def location(self) -> str:
        return f"{self.frame.file}:{self.frame.line} in {self.frame.name}"

    def as_earlier(self) -> Earlier:
        """What to keep of it for the next stop."""
        return Earlier(function=_function(self.frame), depth=self.depth, location=self.location, texts=self.texts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """What was known of a frame at the stop before."""

    function: str
    depth: int
    location: str
    texts: Mapping[str, str]


async def take_snapshot(
    debugger: Debugger,
    stop: Stopped,
    *,
    budget: int = BUDGET,
    earlier: Earlier | None = None,
    watched: Sequence[str] = (),
) -> Snapshot | None:
    """Look at the innermost frame of a stop. None where the debugger shows no frame at all."""
    frames, depth = await debugger.stack(stop.thread, count=1)
    if not frames:
        return None
    frame = frames[0]
    exception = await debugger.exception(stop.thread) if stop.reason == "exception" else None
    variables = await locals_of(debugger, frame)
    texts = {variable.name: text_of(variable) for variable in variables}
    changed = changes(earlier, frame, texts, depth=depth)
    line = source_line(frame)
    error = "" if exception is None else exception.message
    order = ranked(variables, line=line, changed=frozenset(changed), error=error)
    return Snapshot(
        frame=frame,
        code=code_around(frame),
        values=within_budget(order, budget),
        texts=texts,
        changed=_brief(changed),
        depth=depth,
        watched={expression: await watched_text(debugger, expression, frame) for expression in watched},
        exception=exception,
    )


async def watched_text(debugger: Debugger, expression: str, frame: Frame) -> str:
    """What a watched expression is in a frame; where it has no value there, why not."""
    try:
        return text_of(replace(await debugger.read(expression, frame.id), name=expression))
    except RequestFailed as error:
        return f"no value here: {error.message[:100]}"
    except NotReadable as refused:
        return f"not evaluated, since that could run code: {str(refused)[:100]}"


async def locals_of(debugger: Debugger, frame: Frame) -> list[Variable]:
    """The local variables of a frame."""
    known = debugger.locals_reference(frame.id)
    if known is not None:
        return await debugger.variables(known)
    scopes = await debugger.scopes(frame.id)
    chosen = [scope for scope in scopes if scope.kind == "locals"] or [scope for scope in scopes if not scope.expensive]
    return [variable for scope in chosen[:1] for variable in await debugger.variables(scope.reference)]


def changes(earlier: Earlier | None, frame: Frame, texts: Mapping[str, str], *, depth: int) -> dict[str, str]:
    """What is new or different since the stop before, in the same function at the same depth: `old -> new`."""
    if earlier is None or (earlier.function, earlier.depth) != (_function(frame), depth):
        return {}
    return {
        name: f"{earlier.texts[name]} -> {text}" if name in earlier.texts else text
        for name, text in texts.items()
        if earlier.texts.get(name) != text
    }


def _function(frame: Frame) -> str:
    return f"{frame.file}:{frame.name}"


def _brief(changed: Mapping[str, str]) -> dict[str, str]:
    """The first of what changed; the values themselves are shown anyway."""
    return dict(list(changed.items())[:_CHANGES])


def source_line(frame: Frame) -> str:
    """The line at which a frame stands."""
    return linecache.getline(frame.file, frame.line) if frame.file else ""


def code_around(frame: Frame, *, lines: int = CONTEXT_LINES) -> str:
    """The lines around a frame's place, numbered, with an arrow at its own."""
    if not frame.file:
        return ""
    linecache.checkcache(frame.file)
    found: Sequence[str] = linecache.getlines(frame.file)
    first, last = max(1, frame.line - lines), min(len(found), frame.line + lines)
    width = len(str(last))
    return "\n".join(
        f"{'>' if number == frame.line else ' '} {number:>{width}} {found[number - 1].rstrip()[:160]}"
        for number in range(first, last + 1)
    )
