"""Explain failures of programs other than Python by stepping through them under their own debugger."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from trysquare.debug.adapters.registry import ADAPTERS, find_language, language_of
from trysquare.debug.cdp.debugger import NodeDebugger
from trysquare.debug.debugger import Exited, FunctionBreakpoint, RequestFailed, Stopped, unsupported
from trysquare.debug.explain.explain import Explained, Explanation, explain_failure, localize_failures, step_line
from trysquare.debug.explain.localization import BUDGET
from trysquare.debug.explain.native_trace import (
    Failing,
    StepRecord,
    blocks_around,
    blocks_of_writes,
    find_suspect,
    is_own,
    step_through,
    values_of,
)
from trysquare.debug.explain.provenance import Origin
from trysquare.debug.explain.recording import Cost
from trysquare.debug.explain.suites import cargo, go, java, node
from trysquare.debug.explain.suites.suite import CommandRunner, Suite, explain_suite
from trysquare.debug.sessions.launch import LaunchSpec, Target
from trysquare.debug.sessions.manager import DebugSessionRegistry
from trysquare.debug.sessions.session import DebugSession
from trysquare.debug.sources import Sources
from trysquare.processes.supervisor import ProcessSupervisor

_SUITES: tuple[Callable[[Target, Path], Suite | None], ...] = (
    node.find_suite, go.find_suite, cargo.find_suite, java.find_suite,
)  # fmt: skip
_MAX_STEPS = 14
_SIGNAL = re.compile(r"SIG[A-Z]+|EXC_\w+")
_ASSERTION = re.compile(r"[^\n]*Assertion [^\n]*failed[^\n]*|[^\n]*panicked at[^\n]*(?:\n[^\n]*)?")


async def explain_target(
    target: Target, root: Path, supervisor: ProcessSupervisor, *, timeout: float,
    sessions: DebugSessionRegistry | None = None, principal: str = "", budget: float = BUDGET, changes: bool = True,
    git: bool = True, regression: bool = False,
) -> Explained:  # fmt: skip
    """Explain a target of any language: by its framework's tests, or else in a debug session if it is not Python."""
    if target.is_python:
        explained = await explain_failure(target, root, supervisor, timeout=timeout, is_run_before=budget > 0)
        return await localize_failures(
            explained, target, root, supervisor, budget=budget, changes=changes, git=git, regression=regression
        )
    registry = sessions or DebugSessionRegistry(supervisor, ADAPTERS)
    try:
        if (suite := find_suite(target, root)) is not None:
            runner = CommandRunner(supervisor=supervisor, sessions=registry, timeout=timeout, principal=principal)
            return await explain_suite(suite, root, runner, budget=budget, git=git)
        return await _explain_native(target, root, registry, principal=principal, timeout=timeout)
    finally:
        if sessions is None:
            await registry.close()


def find_suite(target: Target, root: Path) -> Suite | None:
    """The tests that a target names, if it runs a test framework."""
    return next((suite for find in _SUITES if (suite := find(target, root)) is not None), None)


async def _explain_native(
    target: Target, root: Path, sessions: DebugSessionRegistry, *, principal: str, timeout: float
) -> Explained:
    """Step through a program to where it fails, and explain the failure."""
    language = language_of(target)
    if not find_language(language).can_explain:
        raise unsupported(
            f"Failures of {language} programs cannot be explained.",
            "Start it with session_start and inspect it where it stops.",
        )
    began = time.perf_counter()
    session = await sessions.start(language, LaunchSpec(target=target, root=root, timeout=timeout), principal=principal)
    try:
        record = await _record(session, root, timeout)
        failures = await _failures(session, record, root, str(target))
    finally:
        await sessions.stop(session)
    cost = Cost(lines=len(record.trail), seconds=round(time.perf_counter() - began, 3), full=record.full)
    code = record.outcome.code if isinstance(record.outcome, Exited) else None
    outcome = "failed" if failures else "passed" if code == 0 else "exited"
    return Explained(outcome=outcome, exit_code=code, failures=failures, output=session.output.tail(4000), cost=cost)


async def _record(session: DebugSession, root: Path, timeout: float) -> StepRecord:
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


async def _failures(
    session: DebugSession, record: StepRecord, root: Path, name: str
) -> tuple[tuple[str, Explanation], ...]:
    stop = record.outcome
    if not isinstance(stop, Stopped):
        return ()
    frames, _ = await session.debugger.stack(stop.thread, count=60)
    frame = next((each for each in frames if is_own(each, root)), None)
    kind, message = await _error(session, stop)
    error = f"{kind}: {message}" if message and message != kind else kind
    if frame is None:
        return ((name, Explanation(error=error, location="?", code="", function="?")),)
    sources = Sources()
    file = frame.file or ""
    values = await values_of(session.debugger, frame)
    code = sources.line(file, frame.line)

    async def evaluate(expression: str) -> str | None:
        try:
            return (await session.debugger.evaluate(expression, frame.id, "hover")).value
        except RequestFailed:
            return None

    failing = Failing(line=frame.line, code=code, kind=kind, message=message, values=values)
    suspect, origins = await find_suspect(failing, record, evaluate, sources)
    explanation = Explanation(
        error=error,
        location=f"{file}:{frame.line}",
        code=code,
        function=frame.name.partition("(")[0],
        blamed=suspect,
        origins=tuple(origins),
        deciding=_deciding(origins[-1], sources) if origins else (),
        steps=tuple(_steps(record, values, sources)),
        notes=("Only the first lines were stepped through; later ones are unknown.",) if record.full else (),
    )
    return ((name, explanation),)


async def _error(session: DebugSession, stop: Stopped) -> tuple[str, str]:
    """Kind and message of the failure: the exception, or the signal with what the program wrote before it."""
    found = await session.debugger.exception(stop.thread)
    kind, message = (found.type, found.message) if found is not None else (stop.text, "")
    if isinstance(session.debugger, NodeDebugger):
        return kind, message.partition("\n")[0][:300]
    signal = _SIGNAL.search(f"{stop.text} {kind} {message}")
    assertion = _ASSERTION.search(session.output.tail(4000))
    what = "" if assertion is None else assertion.group(0).strip()
    return signal.group(0) if signal else stop.text or kind, what[:300] or message[:200]


def _deciding(last: Origin, sources: Sources) -> tuple[Origin, ...]:
    """The loops and conditions that decided whether the value's line ran, or whether another would have changed it."""
    lines = sources.lines(last.file)
    blocks = dict.fromkeys([*blocks_around(lines, last.line), *blocks_of_writes(lines, last.line, last.name)])
    return tuple(
        Origin(file=last.file, line=line, code=sources.line(last.file, line), what="decided whether it ran")
        for line in blocks
    )


def _steps(record: StepRecord, values: dict[str, str], sources: Sources) -> list[str]:
    if not record.frames or record.full:
        return ["  " + ", ".join(f"{name} = {text}" for name, text in list(values.items())[:12])] if values else []
    frame = record.frames[-1]
    return [step_line(list(step), frame.file, sources) for step in frame.steps[-_MAX_STEPS:]]
