"""A look at jobs on DBOS, which runs none of them; the engine beside it builds on it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NoReturn, ParamSpec, TypeVar, cast

import anyio.to_thread
import sqlalchemy as sa
from dbos import (
    DBOSClient,
    DBOSPortableJSONSerializer,
    WorkflowStatus,
    _serialization,  # pyright: ignore[reportPrivateUsage] - see `refuse_pickle`
)

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.types import JsonObject
from trysquare.jobs.database import clear_errors, connect, shown
from trysquare.jobs.engine import FINAL, JobState, JobStatus, StepRecord
from trysquare.jobs.records import Note, Records

APPLICATION = "trysquare"
WORKFLOW = "job"
"""The name under which DBOS knows our jobs, with that of their project: others in the database stay unseen."""
QUEUE = "trysquare:"
"""Before a process's name: the queue from which it takes the jobs that it takes up."""

P = ParamSpec("P")
T = TypeVar("T")


class DbosReader:
    """Looks at jobs and speaks to them."""

    def __init__(self, url: str, engine: sa.Engine, project: str) -> None:
        self.url = url
        self.workflow = f"{WORKFLOW}:{project}" if project else WORKFLOW
        self.records = Records(engine)
        self._engine = engine
        self._client = DBOSClient(
            system_database_engine=engine,
            serializer=DBOSPortableJSONSerializer(),
            application_name=APPLICATION,
            lazy=True,
            retry_connection_errors=False,
        )

    async def close(self) -> None:
        """Let go of the database."""
        await self.off_loop(self._client.destroy)
        await self.off_loop(self._engine.dispose)

    async def off_loop(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what waits for the database in a thread, with errors that a person understands."""
        with clear_errors(self.url):
            return await anyio.to_thread.run_sync(lambda: function(*args, **kwargs))

    async def status(self, job: str) -> JobStatus:
        return (await self.off_loop(self._read, [await self.full_id(job)]))[0]

    async def list(self, *, limit: int = 100) -> Sequence[JobStatus]:
        def latest() -> list[JobStatus]:
            if not self.records.have_tables():
                return []
            return self._described(self._client.list_workflows(name=self.workflow, limit=limit, sort_desc=True))

        return await self.off_loop(latest)

    async def steps(self, job: str) -> Sequence[StepRecord]:
        found = await self.off_loop(self._client.list_workflow_steps, await self.full_id(job))
        return [
            StepRecord(
                name=each["function_name"],
                value=cast(JsonObject, each["output"]),
                started=(each["started_at_epoch_ms"] or 0) / 1000,
                ended=(each["completed_at_epoch_ms"] or 0) / 1000,
            )
            for each in found
            if isinstance(each["output"], dict)
        ]

    async def signal(self, job: str, name: str, choice: str) -> None:
        found = await self.status(job)
        if found.state == "done":
            raise ToolError(f"Job `{found.job}` is done and asks nothing.", code=ErrorCode.JOB_NOT_RUNNING)
        question = found.question
        if question is not None and question.name == name and choice not in question.choices:
            raise ToolError(
                f"`{choice}` is no answer to this question.",
                code=ErrorCode.VALIDATION_INVALID_PARAM,
                instruction=f"Answer with one of: {', '.join(question.choices)}.",
            )
        await self.off_loop(self.records.answer, found.job, name, choice)

    async def cancel(self, job: str) -> None:
        found = await self.status(job)
        if found.state in FINAL:
            raise ToolError(
                f"Job `{found.job}` has ended before: {found.state}.",
                code=ErrorCode.JOB_NOT_RUNNING,
                instruction="There is nothing to cancel.",
            )
        # First the wish, then the deed: whoever takes the job up in between sees the wish afterwards.
        await self.off_loop(self.records.mark_cancelled, found.job)
        await self.off_loop(self._client.cancel_workflow, found.job)

    async def full_id(self, job: str) -> str:
        """The id that a person has shortened."""
        if not job or not await self.off_loop(self.records.have_tables):
            raise _no_job(job, self.url)
        found = await self.off_loop(
            self._client.list_workflows, name=self.workflow, workflow_id_prefix=job, limit=3, load_input=False
        )
        ids = [each.workflow_id for each in found]
        if job in ids:
            return job
        if len(ids) > 1:
            raise NotFound(
                f"`{job}` is the beginning of several jobs: {', '.join(ids)}.",
                code=ErrorCode.JOB_NOT_FOUND,
                instruction="Give more of the id.",
            )
        if not ids:
            raise _no_job(job, self.url)
        return ids[0]

    def _read(self, jobs: Sequence[str]) -> list[JobStatus]:
        return self._described(self._client.list_workflows(workflow_ids=list(jobs)))

    def _described(self, rows: Sequence[WorkflowStatus]) -> list[JobStatus]:
        notes = self.records.notes(row.workflow_id for row in rows)
        alive = self.records.alive()
        return [_describe(row, notes.get(row.workflow_id), alive) for row in rows]


async def opened_reader(url: str, project: str) -> DbosReader:
    """A reader on a database in which jobs were started before."""
    refuse_pickle()
    hear_dbos()
    return DbosReader(url, await anyio.to_thread.run_sync(connect, url), project)


def _describe(row: WorkflowStatus, note: Note | None, alive: frozenset[str]) -> JobStatus:
    kind, argument = _input(row)
    holder = holder_of(row)
    return JobStatus(
        job=row.workflow_id,
        kind=note.kind if note else kind,
        title=note.title if note else "",
        state=_state(row, note, holder in alive),
        created=(row.created_at or 0) / 1000,
        updated=max((row.updated_at or 0) / 1000, note.updated if note else 0.0),
        holder=holder,
        done=note.done if note else 0,
        total=note.total if note else None,
        message=note.message if note else "",
        question=note.question if note else None,
        error=(note.error if note else None) or (str(row.error) if row.error is not None else None),
        result=cast(JsonObject, row.output) if row.status == "SUCCESS" else None,
        argument=argument,
    )


def _input(row: WorkflowStatus) -> tuple[str, JsonObject]:
    given = row.input["args"] if isinstance(row.input, dict) else ()
    if len(given) != 2:
        return "?", {}
    return str(given[0]), cast(JsonObject, given[1])


def holder_of(row: WorkflowStatus) -> str | None:
    if row.status == "ENQUEUED" and row.queue_name is not None:
        return row.queue_name.removeprefix(QUEUE)
    return row.executor_id


def _state(row: WorkflowStatus, note: Note | None, holder_lives: bool) -> JobState:
    match row.status:
        case "SUCCESS":
            return "done"
        case "CANCELLED":
            return "failed" if note is not None and note.error is not None and not note.cancelled else "cancelled"
        case "ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED":
            return "failed"
        case _ if not holder_lives:
            return "interrupted"
        case "PENDING":
            return "asks" if note is not None and note.question is not None else "running"
        case _:
            return "queued"


def _no_job(job: str, url: str) -> NotFound:
    return NotFound(
        f"There is no job `{job}` in {shown(url)}.",
        code=ErrorCode.JOB_NOT_FOUND,
        instruction="See which there are with: trysquare jobs list",
    )


def refuse_pickle() -> None:
    """Make DBOS read JSON only: it believes a row that calls itself a pickle, and a pickle can run anything."""

    class Refusing(_serialization.DefaultSerializer):
        def deserialize(self, serialized_data: str) -> NoReturn:
            raise ToolError(
                "The jobs hold a value in a form that is not read here, since reading it could run a program.",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="The file was not written by Trysquare. Move it away to begin a new one.",
            )

    _serialization.DBOSDefaultSerializer = Refusing()


def hear_dbos() -> None:
    """Let DBOS's log lines come out where ours do, and nowhere else."""
    said = logging.getLogger("dbos")
    if not any(isinstance(handler, _ToOurs) for handler in said.handlers):
        said.handlers[:] = [_ToOurs()]
        said.propagate = False


class _ToOurs(logging.Handler):
    """What DBOS warns of (a step that was cancelled, an owner that lost its job) is how jobs go on, and is kept low."""

    def emit(self, record: logging.LogRecord) -> None:
        level = logging.WARNING if record.levelno >= logging.ERROR else logging.DEBUG
        logging.getLogger("trysquare.jobs.dbos").log(level, record.getMessage(), exc_info=record.exc_info)
