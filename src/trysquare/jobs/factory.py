"""open_engine, open_reader: the job engine on its database, which is imported only here."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from trysquare.core.concurrency import shielded
from trysquare.core.errors import ConfigurationError
from trysquare.core.threads import run_in_thread
from trysquare.jobs.engine import JobBody, JobReader, Liveness, NoJobs, RunEngine

FILE = "jobs.db"


def available() -> bool:
    """Whether the packages that jobs need are installed."""
    return importlib.util.find_spec("dbos") is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobsAddress:
    """Database URL of the jobs, and their project where several share a database."""

    url: str
    project: str = ""


def jobs_file(folder: Path) -> str:
    """The database URL of the jobs in a state directory."""
    return f"sqlite:///{folder.resolve() / FILE}"


@asynccontextmanager
async def open_engine(
    url: str, bodies: Mapping[str, JobBody], *, project: str = "", adopting: bool = False, pulse: Liveness | None = None
) -> AsyncGenerator[RunEngine]:
    """Lifespan of an engine that runs jobs of the given kinds; one per process, for one project.

    With `adopting` it also resumes the jobs of processes that have died.
    """
    _require_package()
    # In a thread: the import takes about a second, during which a server must respond.
    await run_in_thread(lambda: importlib.import_module("trysquare.jobs.dbos"))
    from trysquare.jobs.dbos import DbosEngine

    engine = await DbosEngine.launch(url, bodies, project=project, adopting=adopting, pulse=pulse or Liveness())
    try:
        yield engine
    finally:
        # Running jobs are stopped in order also when the block is cancelled.
        await shielded(engine.close())


@asynccontextmanager
async def open_reader(url: str, *, project: str = "") -> AsyncGenerator[JobReader]:
    """Lifespan of a reader, which runs no jobs; a database that does not exist yet has none."""
    _require_package()
    from trysquare.jobs.dbos import DbosReader

    if _is_missing(url):
        yield NoJobs(url)
        return
    reader = await DbosReader.open(url, project)
    try:
        yield reader
    finally:
        await reader.close()


def _is_missing(url: str) -> bool:
    return url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists()


def _require_package() -> None:
    if not available():
        raise ConfigurationError(
            "Durable jobs require the package dbos, which is not installed.",
            hint="Install it with: pip install 'trysquare[jobs]'",
        )
