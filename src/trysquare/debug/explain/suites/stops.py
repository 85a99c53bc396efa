"""Values of a failing test of a compiled language: its frames where the debugger stops at the failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trysquare.core.errors import ToolError
from trysquare.debug.debugger import DEBUGGER_ERRORS, Debugger, FunctionBreakpoint, Stopped
from trysquare.debug.explain.suites.suite import CommandRunner, Frame
from trysquare.debug.sessions.launch import LaunchSpec, Target
from trysquare.debug.sessions.session import DebugSession, Outcome
from trysquare.debug.snapshot import text_of

_MAX_FRAMES = 6
_MAX_STACK = 200
_MAX_VALUES = 16
_MAX_STOPS = 50
"""Exceptions of other places that are passed over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailingProgram:
    """A program that runs one failing test, and what its failure stops at."""

    language: str
    words: Sequence[str]
    folder: Path
    """Where it runs."""
    root: Path
    """Whose files are the user's."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    functions: Sequence[str] = ()
    """Functions of the framework that a failure calls."""
    exceptions: Sequence[str] | None = None
    """Filters of the debugger; None for its own choice."""
    hidden_types: Sequence[str] = ()
    """Types of the framework, whose values say nothing."""
    expected: Sequence[tuple[str, int]] = ()
    """Lines that the framework's report names: stops without one of them in the stack are passed over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FailingFrames:
    frames: tuple[Frame, ...] = ()
    note: str = ""
    """Why there are no values."""


async def failing_frames(runner: CommandRunner, program: FailingProgram) -> FailingFrames:
    """Run a failing test under the debugger of its language, and read the user's frames where it fails."""
    words = tuple(program.words)
    spec = LaunchSpec(
        target=Target(kind="command", words=words), root=program.folder, env=program.env, timeout=runner.timeout
    )
    try:
        session = await runner.sessions.start(
            program.language, spec, principal=runner.principal, exceptions=program.exceptions
        )
    except ToolError as error:
        return FailingFrames(note=f"No values: {error.message} {error.instruction or ''}".strip())
    try:
        return FailingFrames(frames=await _frames(session, program, runner.timeout))
    except DEBUGGER_ERRORS as error:
        return FailingFrames(note=f"No values: the debugger failed: {str(error)[:200]}")
    finally:
        await runner.sessions.stop(session)


async def _frames(session: DebugSession, program: FailingProgram, timeout: float) -> tuple[Frame, ...]:
    if program.functions:
        wanted = [FunctionBreakpoint(name=each) for each in program.functions]
        await session.debugger.set_function_breakpoints(wanted)
    outcome: Outcome = await session.go(timeout=timeout)
    for _ in range(_MAX_STOPS):
        if not isinstance(outcome, Stopped):
            break
        found = await _own_frames(session.debugger, outcome, program)
        if found and (not program.expected or any((each.file, each.line) in program.expected for each in found)):
            return found
        outcome = await session.run(session.debugger.resume, timeout=timeout)
    return ()


async def _own_frames(debugger: Debugger, stop: Stopped, program: FailingProgram) -> tuple[Frame, ...]:
    stack, _ = await debugger.stack(stop.thread, count=_MAX_STACK)
    own = [each for each in stack if each.file is not None and _is_own(each.file, program.root)][:_MAX_FRAMES]
    frames: list[Frame] = []
    for each in own:
        frame = Frame(file=each.file or "", line=each.line, function=each.name)
        frames.append(replace(frame, values=await _values(debugger, each.id, program.hidden_types)))
    return tuple(frames)


def _is_own(file: str, root: Path) -> bool:
    parts = Path(file).parts
    return file.startswith(f"{root}/") and not {"vendor", "node_modules", "target", "third_party"}.intersection(
        parts[len(root.parts) :]
    )


async def _values(debugger: Debugger, frame: int, hidden: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for scope in await debugger.scopes(frame):
        if scope.kind != "locals":
            continue
        variables = await debugger.variables(scope.reference)
        # Results without names, such as `~r0` of Go, have no value yet.
        for variable in [each for each in variables if each.type not in hidden and each.name[:1] != "~"][:_MAX_VALUES]:
            readable = await debugger.readable(variable, frame)
            found.setdefault(variable.name, text_of(readable))
    return found
