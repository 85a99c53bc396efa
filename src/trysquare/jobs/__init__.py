"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.jobs.engine import (
        FINAL,
        JobBody,
        JobQuestion,
        JobReader,
        JobRun,
        JobState,
        JobStatus,
        RunEngine,
        StepRecord,
    )
    from trysquare.jobs.factory import JobsAddress, available, jobs_file, open_engine, open_reader

__all__ = [
    "FINAL",
    "JobBody",
    "JobQuestion",
    "JobReader",
    "JobRun",
    "JobState",
    "JobStatus",
    "JobsAddress",
    "RunEngine",
    "StepRecord",
    "available",
    "jobs_file",
    "open_engine",
    "open_reader",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "engine": "FINAL JobBody JobQuestion JobReader JobRun JobState JobStatus RunEngine StepRecord",
        "factory": "JobsAddress available jobs_file open_engine open_reader",
    },
)
