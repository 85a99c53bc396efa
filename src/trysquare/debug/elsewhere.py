"""explain_elsewhere: why a program that is not Python failed, by stepping through it under its own debugger."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.debug.cdp.debugger import NodeDebugger
from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.debugger import Frame, FunctionBreakpoint, Stopped
from trysquare.debug.explain import Explained, explain_failure
from trysquare.debug.explaining import Explanation
from trysquare.debug.languages import engines, language_of
from trysquare.debug.launching import LaunchSpec
from trysquare.debug.origins import Origin
from trysquare.debug.reading import heads_around, heads_of_writes
from trysquare.debug.recorded import Cost
from trysquare.debug.session import Ended, Session
from trysquare.debug.sessions import Sessions
from trysquare.debug.sources import Sources
from trysquare.debug.stepped import StepRecord, is_own, step_through, values_of
from trysquare.debug.targets import Target
from trysquare.debug.ways import Failing, blame
from trysquare.processes.nursery import Nursery

LANGUAGES = ("javascript", "typescript", "c", "cpp", "rust")
_STEPS = 14
_SIGNAL = re.compile(r"SIG[A-Z]+|EXC_\w+")
_ASSERTION = re.compile(r"[^\n]*Assertion [^\n]*failed[^\n]*|[^\n]*panicked at[^\n]*(?:\n[^\n]*)?")


async def explain_target(target: Target, root: Path, nursery: Nursery, *, timeout: float) -> Explained:
    """Explain a target of any language, with sessions of its own where it needs one."""
    if target.is_python:
        return await explain_failure(target, root, nursery, timeout=timeout)
    sessions = Sessions(nursery, engines())
    try:
        language = language_of(target)
        return await explain_elsewhere(target, language, root, sessions, principal="", timeout=timeout)
    finally:
        await sessions.close()


async def explain_elsewhere(
    target: Target, language: str, root: Path, sessions: Sessions, *, principal: str, timeout: float
) -> Explained:
    """Run a program step by step to where it fails, and explain it."""
    if language not in LANGUAGES:
        raise ToolError(
            f"Failures of {language} programs cannot be explained.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Start it with session_start and look where it stops.",
        )
    began = time.perf_counter()
    spec = LaunchSpec(target=target, root=root, timeout=timeout)
    session = await sessions.start(language, spec, principal=principal)
    try:
        record = await _recorded(session, root, timeout)
        failures = await _failures(session, record, root, str(target))
    finally:
        await sessions.stop(session)
    cost = Cost(lines=record.lines, seconds=round(time.perf_counter() - began, 3), full=record.full)
    ended = record.outcome if isinstance(record.outcome, Ended) else Ended()
    outcome = "failed" if failures else "passed" if ended.code == 0 else "exited"
    return Explained(
        outcome=outcome, exit_code=ended.code, failures=failures, output=session.output.tail(4000), cost=cost
    )


async def _recorded(session: Session, root: Path, timeout: float) -> StepRecord:
    """Stop at the program's first line and step from there."""
    debugger = session.debugger
    if isinstance(debugger, NodeDebugger):
        debugger.stay_at_entry()
        outcome = await session.wait(timeout=timeout)
    else:
        await debugger.set_function_breakpoints([FunctionBreakpoint(name="main")])
        outcome = await session.go(timeout=timeout)
    if isinstance(outcome, Stopped):
        return await step_through(session, outcome, root, timeout=timeout)
    return StepRecord(outcome=outcome)


async def _failures(session: Session, record: StepRecord, root: Path, name: str) -> tuple[tuple[str, Explanation], ...]:
    stop = record.outcome
    if not isinstance(stop, Stopped):
        return ()
    frames, _ = await session.debugger.stack(stop.thread, count=60)
    own = [frame for frame in frames if is_own(frame, root)]
    told = await _error(session, stop)
    if not own:
        return ((name, Explanation(error=told.text, place="?", code="", function="?")),)
    return ((name, await _explanation(session, record, own, told)),)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Error:
    kind: str
    message: str

    @property
    def text(self) -> str:
        return f"{self.kind}: {self.message}" if self.message and self.message != self.kind else self.kind


async def _error(session: Session, stop: Stopped) -> _Error:
    """What went wrong in the program's own words: the exception, or the signal with what was written before it."""
    found = await session.debugger.exception(stop.thread)
    kind, message = (found.type, found.message) if found is not None else (stop.text, "")
    signal = _SIGNAL.search(f"{stop.text} {kind} {message}")
    if session.language in ("javascript", "typescript"):
        return _Error(kind=kind, message=message.partition("\n")[0][:300])
    said = _ASSERTION.search(session.output.tail(4000))
    what = "" if said is None else said.group(0).strip()
    return _Error(kind=signal.group(0) if signal else stop.text or kind, message=what[:300] or message[:200])


async def _explanation(session: Session, record: StepRecord, own: Sequence[Frame], error: _Error) -> Explanation:
    sources = Sources()
    frame = own[0]
    file = frame.file or ""
    values = await values_of(session.debugger, frame)
    code = sources.line(file, frame.line)

    async def evaluate(expression: str) -> str | None:
        try:
            return (await session.debugger.evaluate(expression, frame.id, "hover")).value
        except RequestFailed:
            return None

    failing = Failing(
        file=file, line=frame.line, code=code, kind=error.kind, message=error.message, values=values,
        language=session.language,
    )  # fmt: skip
    suspect, origins = await blame(failing, record, evaluate, sources)
    last = origins[-1] if origins else None
    return Explanation(
        error=error.text,
        place=f"{file}:{frame.line}",
        code=code,
        function=frame.name.partition("(")[0],
        blamed=suspect,
        origins=tuple(origins),
        deciding=() if last is None else _deciding(last, sources),
        steps=tuple(_steps(record, values, sources)),
        notes=("Only the first lines were stepped through; what came later is not known.",) if record.full else (),
    )


def _deciding(last: Origin, sources: Sources) -> tuple[Origin, ...]:
    """The loops and conditions that decided whether the value's line ran, or whether another would have changed it."""
    lines = sources.lines(last.file)
    heads = dict.fromkeys([*heads_around(lines, last.line), *heads_of_writes(lines, last.line, last.name)])
    return tuple(
        Origin(file=last.file, line=line, code=sources.line(last.file, line), what="decided whether it ran")
        for line in heads
    )


def _steps(record: StepRecord, values: dict[str, str], sources: Sources) -> list[str]:
    if not record.lives or record.full:
        return ["  " + ", ".join(f"{name} = {text}" for name, text in list(values.items())[:12])] if values else []
    life = record.lives[-1]
    lines: list[str] = []
    for line, changes in life.steps[-_STEPS:]:
        told = ", ".join(f"{name} = {text}" for name, text in changes.items())
        lines.append(f"  {line}: {sources.line(life.file, line)}" + (f"   # {told}" if told else ""))
    return lines
