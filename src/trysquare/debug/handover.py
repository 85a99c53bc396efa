"""Handover from an explanation to a live session that is stopped at the failure or at the first suspect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.debug.adapters.registry import language_of
from trysquare.debug.debugger import BreakpointSpec, Stopped, unsupported
from trysquare.debug.explain.explain import Explained, Explanation
from trysquare.debug.explain.native import find_suite
from trysquare.debug.service import DebugService
from trysquare.debug.sessions.launch import LaunchSpec, Target
from trysquare.debug.sessions.session import DebugSession, Outcome
from trysquare.debug.snapshot import user_frame

StopAt: TypeAlias = Literal["failure", "suspect"]
_FILTERS = ("userUnhandled", "all")
"""Exceptions that a test runner catches, by the debuggers that distinguish them; others stop at uncaught ones only."""
_MAX_OTHERS = 200
"""Exceptions at other lines that are passed over on the way to the failure."""
_FRAMES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Handover:
    """Where to stop: a line of the explanation, and whether by an exception there or by a breakpoint."""

    file: str
    line: int
    is_exception: bool
    note: str = ""


def require_stoppable(target: Target, root: Path) -> None:
    """Refuse a target that a framework of another language runs: it is explained from several runs of its tests."""
    if not target.is_python and find_suite(target, root) is not None:
        raise unsupported(
            f"`{target}` is explained from several runs of its framework, so no session can be handed over.",
            "Explain it without `stop`, then start the test with session_start and a breakpoint at a line of it.",
        )


async def start_stopped(
    service: DebugService, explained: Explained, target: Target, root: Path, wanted: StopAt, *, principal: str,
    timeout: float,
) -> tuple[DebugSession, Result[Any]]:  # fmt: skip
    """Run the explained target again under the debugger, to the failure or the first suspect."""
    explanation = _first(explained)
    place = _place(explanation, wanted)
    breakpoints = [] if place.is_exception else [BreakpointSpec(file=place.file, line=place.line)]
    spec = LaunchSpec(target=_narrowed(target, explanation), root=root, just_my_code=True, timeout=timeout)
    session = await service.sessions.start(language_of(target), spec, principal=principal, breakpoints=breakpoints)
    session.root = root
    async with session.lock:
        known = session.debugger.capabilities.exception_filters
        chosen = next((each for each in _FILTERS if each in known), None)
        if place.is_exception and chosen is not None:
            await session.rules.stop_at_exceptions([chosen, *(["uncaught"] if "uncaught" in known else [])])
        outcome = await session.go(timeout=timeout)
        if place.is_exception:
            outcome = await _to_failure(session, outcome, place, timeout)
        notes = (place.note,) if place.note else ()
        if not isinstance(outcome, Stopped):
            notes = (*notes, f"The second run did not stop at {place.file}:{place.line}: it may fail only sometimes.")
        return session, await service.report(session, outcome, warnings=notes)


async def _to_failure(session: DebugSession, outcome: Outcome, place: Handover, timeout: float) -> Outcome:
    """Continue past exceptions that other lines raised and something caught."""
    for _ in range(_MAX_OTHERS):
        if not isinstance(outcome, Stopped) or await _is_at(session, outcome, place):
            return outcome
        outcome = await session.run(session.debugger.resume, timeout=timeout)
    return outcome


async def _is_at(session: DebugSession, stop: Stopped, place: Handover) -> bool:
    frames, _ = await session.debugger.stack(stop.thread, count=_FRAMES)
    if not place.file or not frames:
        return True
    shown = frames[user_frame(frames, session.root)]
    return (shown.file, shown.line) == (place.file, place.line)


def _first(explained: Explained) -> Explanation:
    if explained.failures:
        return explained.failures[0][1]
    raise ToolError(
        "There is no failure to stop at.",
        code=ErrorCode.EXECUTION_FAILED,
        instruction="Start the program with session_start and breakpoints of your own.",
    )


def _place(explanation: Explanation, wanted: StopAt) -> Handover:
    note = ""
    if wanted == "suspect":
        if explanation.suspects:
            first = explanation.suspects[0]
            return Handover(file=first.file, line=first.line, is_exception=False)
        if explanation.locations:
            origin = explanation.locations[0]
            return Handover(file=origin.file, line=origin.line, is_exception=False)
        note = "There is no suspect, so it stops at the failure."
    file, _, line = explanation.location.rpartition(":")
    return Handover(file=file, line=int(line) if line.isdigit() else 0, is_exception=True, note=note)


def _narrowed(target: Target, explanation: Explanation) -> Target:
    """The target with the failing test alone, where it is named by files and names only."""
    is_plain = target.kind == "pytest" and not any(word.startswith("-") for word in target.words)
    if not is_plain or len(explanation.test) != 2:
        return target
    file, name = explanation.test
    return replace(target, words=(f"{file}::{name}",))
