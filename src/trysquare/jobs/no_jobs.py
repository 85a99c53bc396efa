"""NoJobs: what a reader finds where no job was ever started. Looking makes no file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from trysquare.core.errors import ErrorCode, NotFound
from trysquare.jobs.engine import JobStatus, StepRecord


class NoJobs:
    """A reader without anything to read."""

    def __init__(self, place: str) -> None:
        self._place = place

    async def status(self, job: str) -> JobStatus:
        self._refuse(job)

    async def list(self, *, limit: int = 100) -> Sequence[JobStatus]:
        return ()

    async def steps(self, job: str) -> Sequence[StepRecord]:
        self._refuse(job)

    async def signal(self, job: str, name: str, choice: str) -> None:
        self._refuse(job)

    async def cancel(self, job: str) -> None:
        self._refuse(job)

    def _refuse(self, job: str) -> NoReturn:
        raise NotFound(
            f"There is no job `{job}`: no job was ever started in {self._place}.",
            code=ErrorCode.JOB_NOT_FOUND,
            instruction="Start one with `trysquare run`, or name another project with --project.",
        )
