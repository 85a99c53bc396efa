"""RunEngine, JobReader, JobRun: protocols of durable jobs, and their values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn, Protocol, TypeAlias

from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.json import JsonObject

JobState: TypeAlias = Literal["queued", "running", "asks", "interrupted", "done", "failed", "cancelled"]
"""`interrupted`: its process has died or closed. `asks`: it waits for the answer of a human."""
FINAL: frozenset[JobState] = frozenset({"done", "failed", "cancelled"})
ActionInput: TypeAlias = Callable[[], Awaitable[JsonObject]]


class JobRun(Protocol):
    """A running job as its body sees it.

    The result of each step is recorded before the next one starts, so that a body that runs again after its process
    was killed gets the recorded results and continues where it was.
    """

    @property
    def job(self) -> str: ...

    async def step(self, name: str, work: ActionInput) -> JsonObject:
        """The result of the work, from now or from an earlier run. An exception of the work fails the job."""
        ...

    async def claim(self, name: str) -> bool:
        """Inside a step: whether this run is the first to do what must not be done twice."""
        ...

    async def ask(
        self,
        name: str,
        question: str,
        choices: Sequence[str],
        *,
        default: str | None = None,
        timeout: float | None = None,
    ) -> str:
        """Inside a step: wait for the choice of a human, which is used once; this run then has the claim.

        After `timeout` seconds the choice is `default`; the time goes on while no process runs the job.
        """
        ...

    async def tell(self, done: int, total: int | None, message: str) -> None:
        """Report progress."""


JobBody: TypeAlias = Callable[[JsonObject, JobRun], Awaitable[JsonObject]]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobQuestion:
    """A question of a job, named by its step."""

    name: str
    text: str
    choices: tuple[str, ...]
    default: str | None = None
    """The choice that is taken at its end."""
    ends: float | None = None
    """When it ends without an answer, in seconds since 1970; None for one that waits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobStatus:
    """State of a job. Times are seconds since 1970."""

    job: str
    kind: str
    title: str
    state: JobState
    created: float
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
    name: str
    value: JsonObject
    started: float
    ended: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Liveness:
    """Seconds between two heartbeats, and without one until a process counts as dead."""

    every: float = 1.0
    silence: float = 5.0


class JobReader(Protocol):
    """Reads, answers and cancels jobs without running any."""

    async def status(self, job: str) -> JobStatus:
        """State of a job. The id may be an unambiguous prefix."""
        ...

    async def list(self, *, limit: int = 100) -> Sequence[JobStatus]:
        """The latest jobs, newest first."""
        ...

    async def asking(self) -> Sequence[JobStatus]:
        """Every job that waits for the answer of a human."""
        ...

    async def steps(self, job: str) -> Sequence[StepRecord]:
        """The recorded steps of a job."""
        ...

    async def signal(self, job: str, name: str, choice: str) -> None:
        """Answer the question of a job, also before it is asked."""

    async def cancel(self, job: str) -> None:
        """Stop a job, wherever it runs. Its recorded steps stay."""


class RunEngine(JobReader, Protocol):
    """Runs jobs."""

    async def start(self, kind: str, argument: JsonObject, *, title: str, job: str | None = None) -> str:
        """Start a job here and return its id. An id that was started before is not started again."""
        ...

    async def wait(self, job: str) -> JobStatus:
        """Wait for the end of a job, wherever it runs."""
        ...

    async def resume(self, job: str) -> None:
        """Continue an interrupted, failed or cancelled job after its recorded steps."""

    async def adopt(self) -> Sequence[str]:
        """Resume the jobs of processes that have died, and return their ids."""
        ...


class NoJobs:
    """A reader of a database that does not exist yet."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def list(self, *, limit: int = 100) -> Sequence[JobStatus]:
        return ()

    async def asking(self) -> Sequence[JobStatus]:
        return ()

    async def status(self, job: str) -> NoReturn:
        raise NotFound(
            f"Unknown job `{job}`: no job was ever started in {self._url}.",
            code=ErrorCode.JOB_NOT_FOUND,
            instruction="Start one with `trysquare run`, or select another project with --project.",
        )

    async def steps(self, job: str) -> NoReturn:
        await self.status(job)

    async def signal(self, job: str, name: str, choice: str) -> NoReturn:
        await self.status(job)

    async def cancel(self, job: str) -> NoReturn:
        await self.status(job)
