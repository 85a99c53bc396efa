"""RunEngine: long work as durable steps, whatever keeps them.

A job is a body that runs through a `JobRun`. What a step gave is recorded before the next one starts, so that a body
that is run again, after its process was killed, gets the recorded values and goes on where it was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from trysquare.core.types import JsonObject

JobState: TypeAlias = Literal["queued", "running", "asks", "interrupted", "done", "failed", "cancelled"]
"""Interrupted: its process has died or left. It asks where a person has to answer before it goes on."""
FINAL: frozenset[JobState] = frozenset({"done", "failed", "cancelled"})
Work: TypeAlias = Callable[[], Awaitable[JsonObject]]


class JobRun(Protocol):
    """What the body of a job sees of its engine."""

    @property
    def job(self) -> str:
        """The job's id."""
        ...

    async def step(self, name: str, work: Work) -> JsonObject:
        """What the work gave, now or in an earlier life of the job. What the work raises fails the job."""
        ...

    async def claim(self, name: str) -> bool:
        """Inside of a step: whether this life of the job is the first to do what must not be done twice."""
        ...

    async def ask(self, name: str, question: str, choices: Sequence[str]) -> str:
        """Inside of a step: wait for a person's choice. It is used up, and the claim of that name is this life's."""
        ...

    async def tell(self, done: int, total: int | None, message: str) -> None:
        """Show how far the job is."""
        ...


JobBody: TypeAlias = Callable[[JsonObject, JobRun], Awaitable[JsonObject]]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobQuestion:
    """What a job waits for."""

    name: str
    """Of the step that asks."""
    text: str
    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobStatus:
    """Where a job stands."""

    job: str
    kind: str
    title: str
    state: JobState
    created: float
    """Seconds since 1970, as all times here."""
    updated: float
    holder: str | None = None
    """The process that runs it, or ran it last."""
    done: int = 0
    total: int | None = None
    message: str = ""
    question: JobQuestion | None = None
    error: str | None = None
    result: JsonObject | None = None
    argument: JsonObject = field(default_factory=dict[str, object])


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """A step that was done."""

    name: str
    value: JsonObject
    started: float
    ended: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Pulse:
    """How often a process says that it lives, and after how much silence it counts as dead."""

    every: float = 1.0
    silence: float = 5.0


class JobReader(Protocol):
    """Looks at jobs and speaks to them without running any."""

    async def status(self, job: str) -> JobStatus:
        """Where a job stands. The id may be shortened while it stays unambiguous."""
        ...

    async def list(self, *, limit: int = 100) -> Sequence[JobStatus]:
        """The latest jobs, the newest first."""
        ...

    async def steps(self, job: str) -> Sequence[StepRecord]:
        """What is recorded of a job."""
        ...

    async def signal(self, job: str, name: str, choice: str) -> None:
        """Answer the question of a job, now or before it is put."""
        ...

    async def cancel(self, job: str) -> None:
        """Stop a job, wherever it runs. What it has recorded stays."""
        ...


class RunEngine(JobReader, Protocol):
    """Runs jobs."""

    async def start(self, kind: str, argument: JsonObject, *, title: str, job: str | None = None) -> str:
        """Start a job here, and give its id. A job that was started under that id before is not started again."""
        ...

    async def wait(self, job: str) -> JobStatus:
        """Where the job stands once it has ended, wherever it runs."""
        ...

    async def resume(self, job: str) -> None:
        """Take up a job that was interrupted, has failed or was cancelled, from what is recorded of it."""
        ...

    async def adopt(self) -> Sequence[str]:
        """Take up the jobs of processes that have died, and give their ids."""
        ...
