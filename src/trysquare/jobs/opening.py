"""Opening the engine of jobs, or a reader of them. What keeps the jobs is imported only here, and only when asked."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from trysquare.core.errors import ConfigurationError
from trysquare.jobs.engine import JobBody, JobReader, Pulse, RunEngine

FILE = "jobs.db"


def available() -> bool:
    """Whether the packages that jobs need are installed."""
    return importlib.util.find_spec("dbos") is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobsAddress:
    """Where jobs are kept, and of which project they are, where several share a database."""

    url: str
    project: str = ""


def jobs_file(folder: Path) -> str:
    """The address of the jobs in a folder of state."""
    return f"sqlite:///{folder.resolve() / FILE}"


@asynccontextmanager
async def open_engine(
    url: str, bodies: Mapping[str, JobBody], *, project: str = "", adopting: bool = False, pulse: Pulse | None = None
) -> AsyncGenerator[RunEngine]:
    """An engine that runs jobs of the given kinds. A process has one at a time, and sees those of one project.

    One that is adopting also takes up, all the while, the jobs of processes that have died.
    """
    _require_package()
    import anyio.to_thread

    # It takes about a second, and a server has others to answer meanwhile.
    await anyio.to_thread.run_sync(importlib.import_module, "trysquare.jobs.dbos_engine")
    from trysquare.jobs.dbos_engine import DbosEngine

    engine = await DbosEngine.launched(url, bodies, project=project, adopting=adopting, pulse=pulse or Pulse())
    try:
        yield engine
    finally:
        # What runs here has to be stopped in order, also where the block was left because somebody cancelled it.
        with anyio.CancelScope(shield=True):
            await engine.close()


@asynccontextmanager
async def open_reader(url: str, *, project: str = "") -> AsyncGenerator[JobReader]:
    """A look at jobs that runs none of them. An address where no job was ever started has none."""
    _require_package()
    from trysquare.jobs.dbos_reader import opened_reader
    from trysquare.jobs.no_jobs import NoJobs

    if _is_missing(url):
        yield NoJobs(url)
        return
    reader = await opened_reader(url, project)
    try:
        yield reader
    finally:
        await reader.close()


def _is_missing(url: str) -> bool:
    return url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists()


def _require_package() -> None:
    if not available():
        raise ConfigurationError(
            "Durable jobs need the package dbos, which is not installed.",
            hint="Install it with: pip install 'trysquare[jobs]'",
        )
