"""StepRecord: a program of any language recorded by stepping through it, line by line, under its own debugger."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from trysquare.debug.debugger import Debugger, Frame, Stopped
from trysquare.debug.rendering import text_of
from trysquare.debug.session import Outcome, Session

LINES = 600
SECONDS = 15.0
_NAMES = 40
_DEEPEST = 200


@dataclass(kw_only=True, slots=True)
class Life:
    """What happened in one frame: its lines with what each changed, and the calls that came back to it."""

    file: str
    function: str
    arguments: dict[str, str]
    steps: list[tuple[int, dict[str, str]]] = field(default_factory=list[tuple[int, dict[str, str]]])
    callees: list[tuple[int, Life]] = field(default_factory=list["tuple[int, Life]"])
    """The line of the call, and the life of what was called."""
    values: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def last_line(self) -> int:
        return self.steps[-1][0] if self.steps else 0

    def settle(self, values: dict[str, str]) -> None:
        """Note what the last line has changed."""
        if self.steps:
            changes = {name: text for name, text in values.items() if self.values.get(name) != text}
            self.steps[-1][1].update(changes)
        self.values = values


@dataclass(kw_only=True, slots=True)
class StepRecord:
    """The lives of the frames that were there at the end, the outermost first."""

    lives: list[Life] = field(default_factory=list[Life])
    trail: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Every line that ran, in order."""
    full: bool = False
    outcome: Outcome = None

    @property
    def lines(self) -> int:
        return len(self.trail)

    async def take(self, session: Session, stop: Stopped, root: Path) -> bool:
        """Look at where the program stands; False where that is not the user's own code."""
        frames, _ = await session.debugger.stack(stop.thread, count=_DEEPEST)
        own = [frame for frame in reversed(frames) if is_own(frame, root)]
        if not frames or not own or not is_own(frames[0], root):
            return False
        values = await values_of(session.debugger, frames[0])
        self._follow(own, values)
        life = self.lives[-1]
        life.settle(values)
        if stop.reason != "exception":
            life.steps.append((frames[0].line, {}))
            self.trail.append((life.file, frames[0].line))
        return True

    def _follow(self, own: list[Frame], values: dict[str, str]) -> None:
        """Bring the lives in line with the stack: what is gone has returned, what is new was called."""
        while len(self.lives) > len(own) or (self.lives and not _is_same(self.lives[-1], own[len(self.lives) - 1])):
            gone = self.lives.pop()
            if self.lives:
                self.lives[-1].callees.append((self.lives[-1].last_line, gone))
        for frame in own[len(self.lives) :]:
            life = Life(file=frame.file or "", function=_plain(frame.name), arguments={}, values={})
            self.lives.append(life)
        if not self.lives[-1].steps:
            self.lives[-1].arguments = self.lives[-1].values = dict(values)


async def step_through(session: Session, stop: Stopped, root: Path, *, timeout: float) -> StepRecord:
    """Step from a stop to the program's failure or end, as far as the limits allow, and run on from there."""
    record = StepRecord()
    until = time.monotonic() + min(SECONDS, timeout)
    outcome: Outcome = stop
    while isinstance(outcome, Stopped) and outcome.reason != "exception":
        is_own_code = await record.take(session, outcome, root)
        if record.lines >= LINES or time.monotonic() > until:
            record.full = True
            outcome = await session.run(session.debugger.resume, timeout=timeout)
            continue
        kind = "into" if is_own_code else "out"
        outcome = await session.run(lambda thread, kind=kind: session.debugger.step(kind, thread), timeout=timeout)
    record.outcome = outcome
    return record


def is_own(frame: Frame, root: Path) -> bool:
    """Whether a frame is the user's: its file lies in the workspace."""
    file = frame.file or ""
    return file.startswith(f"{root}/") and "/node_modules/" not in file


async def values_of(debugger: Debugger, frame: Frame) -> dict[str, str]:
    """The local values of a frame, those of inner blocks first."""
    found: dict[str, str] = {}
    for scope in await debugger.scopes(frame.id):
        if scope.kind == "locals":
            for variable in (await debugger.variables(scope.reference))[:_NAMES]:
                found.setdefault(variable.name, text_of(variable))
    return {name: text for name, text in found.items() if name not in _SCENERY}


_SCENERY = ("exports", "require", "module", "__filename", "__dirname", "arguments")


def _is_same(life: Life, frame: Frame) -> bool:
    return life.file == frame.file and life.function == _plain(frame.name)


def _plain(name: str) -> str:
    """A function's name without its parameters."""
    return name.partition("(")[0].strip() or name
