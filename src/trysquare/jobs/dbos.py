"""DbosEngine, DbosReader: durable jobs on DBOS, whose private names are used only here, guarded by its version."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any, NoReturn, ParamSpec, TypeVar, cast

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID, WorkflowStatus
from dbos import error as dbos_error
from sqlalchemy.exc import SQLAlchemyError

from trysquare.core.concurrency import cancel_all, shielded
from trysquare.core.errors import ConfigurationError, ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.jobs.database import connect, error_text, exclusive_setup, masked_url, tool_errors
from trysquare.jobs.engine import FINAL, ActionInput, JobBody, JobQuestion, JobState, JobStatus, Liveness, StepRecord
from trysquare.jobs.records import Heartbeat, Note, Records, has_ended, process_name

APPLICATION = "trysquare"
WORKFLOW = "job"
"""Workflow name of the jobs, followed by their project: others in the database are ignored."""
QUEUE = "trysquare:"
"""Prefix of a process's own queue, so that a job is resumed by the process that asked for it."""

JOURNAL_VERSION = "1"
"""Changes when the journals of older jobs can no longer be replayed. DBOS resumes only jobs of its own version."""
LIVES = 5
"""Adoptions of a job without progress; one that keeps killing its process is left to a human."""
POLL = 0.2
"""Seconds between two checks for changes by other processes."""

logger = logging.getLogger("trysquare.jobs")
P = ParamSpec("P")
T = TypeVar("T")


async def _in_thread(function: Callable[[], T]) -> T:
    """Call a function in a thread to its end: the database must not be closed while an abandoned thread uses it."""
    return await shielded(run_in_thread(function))


class DbosReader:
    """Reads, answers and cancels jobs."""

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

    @staticmethod
    async def open(url: str, project: str) -> DbosReader:
        """A reader of an existing database."""
        _prepare_dbos()
        return DbosReader(url, await _in_thread(lambda: connect(url)), project)

    async def close(self) -> None:
        await self.off_loop(self._client.destroy)
        await self.off_loop(self._engine.dispose)

    async def off_loop(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that accesses the database in a thread, and convert its errors."""
        with tool_errors(self.url):
            return await _in_thread(lambda: function(*args, **kwargs))

    async def status(self, job: str) -> JobStatus:
        job = await self.full_id(job)
        return (await self.off_loop(lambda: self._described(self._client.list_workflows(workflow_ids=[job]))))[0]

    async def list(self, *, limit: int = 100) -> Sequence[JobStatus]:
        def latest() -> list[JobStatus]:
            if not self.records.have_tables():
                return []
            return self._described(self._client.list_workflows(name=self.workflow, limit=limit, sort_desc=True))

        return await self.off_loop(latest)

    async def asking(self) -> Sequence[JobStatus]:
        def found() -> list[JobStatus]:
            jobs = self.records.asking() if self.records.have_tables() else []
            rows = self._client.list_workflows(workflow_ids=jobs, name=self.workflow) if jobs else []
            return [each for each in self._described(rows) if each.state == "asks"]

        return await self.off_loop(found)

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
            raise ToolError(f"Job `{found.job}` is done, so it has no question.", code=ErrorCode.JOB_NOT_RUNNING)
        question = found.question
        if question is not None and question.name == name and choice not in question.choices:
            raise ToolError(
                f"Invalid answer `{choice}`.",
                code=ErrorCode.VALIDATION_INVALID_PARAM,
                instruction=f"Use one of {', '.join(question.choices)}.",
            )
        await self.off_loop(self.records.answer, found.job, name, choice)

    async def cancel(self, job: str) -> None:
        found = await self.status(job)
        if found.state in FINAL:
            raise ToolError(
                f"Job `{found.job}` has already ended: {found.state}.",
                code=ErrorCode.JOB_NOT_RUNNING,
                instruction="There is nothing to cancel.",
            )
        # Marked before it is cancelled: a process that resumes the job in between sees the mark.
        await self.off_loop(self.records.note, found.job, cancelled=True)
        await self.off_loop(self._client.cancel_workflow, found.job)

    async def full_id(self, job: str) -> str:
        """The full id of a job from an unambiguous prefix."""
        if not job or not await self.off_loop(self.records.have_tables):
            raise _no_job(job, self.url)
        found = await self.off_loop(
            self._client.list_workflows, name=self.workflow, workflow_id_prefix=job, limit=3, load_input=False
        )
        ids = [each.workflow_id for each in found]
        if job in ids:
            return job
        if len(ids) > 1:
            # More jobs than were listed may begin like this one.
            whole = await self.off_loop(self._client.list_workflows, workflow_ids=[job], load_input=False)
            if any(each.name == self.workflow for each in whole):
                return job
            raise NotFound(
                f"Ambiguous job id `{job}`: {', '.join(ids)}.",
                code=ErrorCode.JOB_NOT_FOUND,
                instruction="Give more of the id.",
            )
        if not ids:
            raise _no_job(job, self.url)
        return ids[0]

    def _described(self, rows: Sequence[WorkflowStatus]) -> list[JobStatus]:
        notes = self.records.notes(row.workflow_id for row in rows)
        alive = self.records.alive()
        return [_describe(row, notes.get(row.workflow_id), alive) for row in rows]


def _describe(row: WorkflowStatus, note: Note | None, alive: frozenset[str]) -> JobStatus:
    given = row.input["args"] if isinstance(row.input, dict) else ()
    kind, argument = given if len(given) == 2 else ("?", dict[str, Any]())
    holder = _holder(row)
    return JobStatus(
        job=row.workflow_id,
        kind=note.kind if note else str(kind),
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
        argument=cast(JsonObject, argument),
    )


def _holder(row: WorkflowStatus) -> str | None:
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
        f"Unknown job `{job}` in {masked_url(url)}.",
        code=ErrorCode.JOB_NOT_FOUND,
        instruction="List the jobs with: trysquare jobs list",
    )


def _prepare_dbos() -> None:
    """Make DBOS read JSON only, and log through `trysquare.jobs`.

    A row that is marked as a pickle would be unpickled, which can run anything. Without the private name that prevents
    it, in another version of DBOS, no database is opened.
    """
    from dbos import _serialization  # pyright: ignore[reportPrivateUsage] - no public name

    if not version("dbos").startswith("3.") or not hasattr(_serialization, "DBOSDefaultSerializer"):
        raise ConfigurationError(
            f"Unsupported version {version('dbos')} of dbos.", hint="Install one with: pip install 'trysquare[jobs]'"
        )

    class Refusing(_serialization.DefaultSerializer):
        def deserialize(self, serialized_data: str) -> NoReturn:
            raise ToolError(
                "The jobs database has a pickled value, which is not read because that could run code.",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="It was not written by Trysquare. Move the file away to start a new one.",
            )

    _serialization.DBOSDefaultSerializer = Refusing()
    dbos_logger = logging.getLogger("dbos")
    if not any(isinstance(handler, _LogHandler) for handler in dbos_logger.handlers):
        dbos_logger.handlers[:] = [_LogHandler()]
        dbos_logger.propagate = False


class _LogHandler(logging.Handler):
    """Passes on DBOS's log with lower levels: a cancelled step or a lost owner is normal here."""

    def emit(self, record: logging.LogRecord) -> None:
        level = logging.WARNING if record.levelno >= logging.ERROR else logging.DEBUG
        logging.getLogger("trysquare.jobs.dbos").log(level, record.getMessage(), exc_info=record.exc_info)


class DbosEngine(DbosReader):
    """Runs jobs in this process.

    DBOS records the result of a step before the next one starts, and fences an execution that has lost its job. It
    does not detect that a process has died: the heartbeat and `adopt` do.
    """

    def __init__(
        self,
        url: str,
        engine: sa.Engine,
        bodies: Mapping[str, JobBody],
        project: str,
        *,
        adopting: bool,
        pulse: Liveness,
    ) -> None:
        super().__init__(url, engine, project)
        self.process = process_name()
        self._bodies = bodies
        self._runs: dict[asyncio.Task[Any], str] = {}
        self._unrecorded: dict[str, str] = {}
        self._heart = Heartbeat(self.records, self.process, pulse, self._adopt if adopting else lambda: None)
        self._workflow = self._register()

    @staticmethod
    async def launch(
        url: str, bodies: Mapping[str, JobBody], *, project: str, adopting: bool, pulse: Liveness
    ) -> DbosEngine:
        """An engine that is ready to start jobs."""
        _prepare_dbos()
        _require_only_engine()
        engine = await _in_thread(lambda: connect(url))
        made = DbosEngine(url, engine, bodies, project, adopting=adopting, pulse=pulse)
        try:
            await made.off_loop(made._prepare)
            # On the event loop's thread: DBOS runs bodies on the loop of the thread that launches it.
            DBOS.launch()
        except BaseException:
            made._heart.stop()
            DBOS.destroy(destroy_registry=True)
            engine.dispose()
            raise
        return made

    def _prepare(self) -> None:
        with exclusive_setup(self._engine, self.url):
            self.records.make_tables()
            DBOS.migrate(self.url)
        self._client.register_queue(QUEUE + self.process, polling_interval_sec=POLL)
        self._heart.start()

    def _register(self) -> Any:
        DBOS(
            config=DBOSConfig(
                name=APPLICATION,
                system_database_engine=self._engine,
                serializer=DBOSPortableJSONSerializer(),
                application_version=JOURNAL_VERSION,
                executor_id=self.process,
                enable_otlp=False,
                run_migrations=False,
                log_level="WARNING",
            )
        )
        DBOS.listen_queues([QUEUE + self.process])

        async def run(kind: str, argument: JsonObject) -> JsonObject:
            return await self._run(kind, argument)

        return DBOS.workflow(name=self.workflow, max_recovery_attempts=None)(run)

    async def close(self) -> None:
        """Stop the jobs that run here, so that another process can resume them."""
        await self._stop_runs(set(self._runs.values()))
        await _in_thread(self._heart.stop)
        try:
            await self.off_loop(DBOS.delete_queue, QUEUE + self.process)
            await self.off_loop(self.records.forget_process, self.process)
        finally:
            await _in_thread(lambda: DBOS.destroy(destroy_registry=True))
            # DBOS replaced the default executor of the loop and has just shut it down.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
            await super().close()

    async def _stop_runs(self, jobs: set[str]) -> None:
        """Cancel the runs of some jobs in this process and wait for their end."""
        await cancel_all(task for task, job in self._runs.items() if job in jobs)

    async def _run(self, kind: str, argument: JsonObject) -> JsonObject:
        """Run a job from its first step; recorded steps return at once."""
        job = cast(str, DBOS.workflow_id)
        task = cast(asyncio.Task[Any], asyncio.current_task())
        self._runs[task] = job
        try:
            if kind not in self._bodies:
                raise ConfigurationError(f"This process cannot run jobs of kind `{kind}`.", where=job)
            return await self._bodies[kind](argument, DbosRun(self, job))
        except Exception as error:
            await self.fail(job, error)
            raise
        finally:
            del self._runs[task]

    async def fail(self, job: str, error: Exception) -> None:
        """End a job so that it can be resumed: DBOS would record the error as the final outcome of the step."""
        self._unrecorded[job] = message = _message(error)
        await self.off_loop(self.records.note, job, error=message)
        await self.off_loop(self._client.cancel_workflow, job)
        del self._unrecorded[job]

    async def start(self, kind: str, argument: JsonObject, *, title: str, job: str | None = None) -> str:
        if kind not in self._bodies:
            raise ConfigurationError(f"Unknown kind of job `{kind}`.")
        job = job or secrets.token_hex(6)
        await self.off_loop(self.records.begin, job, kind=kind, title=title)

        async def begin() -> None:
            with SetWorkflowID(job), tool_errors(self.url):
                await DBOS.start_workflow_async(self._workflow, kind, argument)

        # In its own context: a job that is started by a step of another one is not a part of it.
        await asyncio.get_running_loop().create_task(begin(), context=contextvars.Context())
        return job

    async def wait(self, job: str) -> JobStatus:
        job = await self.full_id(job)
        while (found := await self.status(job)).state not in FINAL:
            if job in self._unrecorded and job not in self._runs.values():
                raise ToolError(
                    f"Job `{job}` has stopped, but the database did not record it: {self._unrecorded[job]}",
                    code=ErrorCode.STATE_UNAVAILABLE,
                    instruction=f"Fix the database, then run: trysquare jobs resume {job}",
                )
            await asyncio.sleep(POLL)
        return found

    async def cancel(self, job: str) -> None:
        job = await self.full_id(job)
        await super().cancel(job)
        await self._stop_runs({job})

    async def resume(self, job: str) -> None:
        found = await self.status(job)
        if found.state == "done":
            raise ToolError(
                f"Job `{found.job}` is done.",
                code=ErrorCode.JOB_NOT_RUNNING,
                instruction=f"Show its steps with: trysquare jobs show {found.job}",
            )
        if found.state in ("running", "asks") and not has_ended(found.holder or ""):
            raise ToolError(
                f"Job `{found.job}` is running in process {found.holder}.",
                code=ErrorCode.JOB_NOT_RUNNING,
                instruction=f"Follow it with: trysquare jobs show {found.job} --follow",
            )
        # A run that was cancelled elsewhere may not have ended yet; two must not wait for the same answer.
        await self._stop_runs({found.job})
        outcome = {"error": None, "question": None, "cancelled": False, "lives": 0}
        await self.off_loop(self.records.note, found.job, **outcome)
        await self.off_loop(self._resume, found.job)

    async def adopt(self) -> Sequence[str]:
        return await self.off_loop(self._adopt)

    def _adopt(self) -> list[str]:
        """Resume the jobs of dead processes. One live process does it for each."""
        orphans = self._orphans()
        adopted: list[str] = []
        for dead in sorted(set(orphans.values()) | (self.records.known() - self.records.alive())):
            if not self.records.claim_process(dead, adopter=self.process):
                continue
            # Read again: only now no other process adopts them.
            left = [job for job, holder in self._orphans().items() if holder == dead]
            adopted.extend(job for job in left if self._adopt_one(job))
            DBOS.delete_queue(QUEUE + dead)
            self.records.forget_process(dead)
        if adopted:
            logger.warning("adopted jobs of dead processes jobs=%s", ",".join(adopted))
        return adopted

    def _adopt_one(self, job: str) -> bool:
        if self.records.count_life(job) > LIVES:
            error = f"It was resumed {LIVES} times, and its process ended each time without a step."
            self.records.note(job, error=error)
            self._client.cancel_workflow(job)
            return False
        self._resume(job)
        return True

    def _orphans(self) -> dict[str, str]:
        """The jobs that dead processes hold or have queued, with their holders."""
        alive = self.records.alive()
        active = self._client.list_workflows(name=self.workflow, status=["PENDING", "ENQUEUED"], load_input=False)
        holders = {each.workflow_id: _holder(each) for each in active}
        return {job: holder for job, holder in holders.items() if holder is not None and holder not in alive}

    def _resume(self, job: str) -> None:
        self._client.resume_workflow(job, queue_name=QUEUE + self.process)
        note = self.records.notes([job]).get(job)
        if note is not None and note.cancelled:
            self._client.cancel_workflow(job)

    def require_own(self, job: str) -> None:
        """Raise where another process has adopted the job meanwhile."""
        rows = self._client.list_workflows(workflow_ids=[job], load_input=False)
        if not any(row.status == "PENDING" and row.executor_id == self.process for row in rows):
            raise dbos_error.DBOSWorkflowConflictIDError(job)


class DbosRun:
    def __init__(self, engine: DbosEngine, job: str) -> None:
        self.job = job
        self._engine = engine
        self._life = secrets.token_hex(8)

    async def step(self, name: str, work: ActionInput) -> JsonObject:
        async def run() -> JsonObject:
            try:
                return await work()
            except Exception as error:
                # Before DBOS would record it: it then finds that the job is cancelled, and does not.
                await self._engine.fail(self.job, error)
                raise

        return await DBOS.run_step_async({"name": name, "preemptible": True}, run)

    async def claim(self, name: str) -> bool:
        await self._engine.off_loop(self._engine.require_own, self.job)
        return await self._engine.off_loop(self._engine.records.claim_step, self.job, name, self._life)

    async def ask(
        self,
        name: str,
        question: str,
        choices: Sequence[str],
        *,
        default: str | None = None,
        timeout: float | None = None,
    ) -> str:
        if timeout is not None and default not in choices:
            raise ConfigurationError(f"The question `{name}` of a job has a timeout, but no default among its choices.")
        records, off_loop = self._engine.records, self._engine.off_loop
        asked = JobQuestion(name=name, text=question, choices=tuple(choices), default=default)
        asked = await off_loop(records.open_question, self.job, asked, timeout)
        choice = None
        while choice is None:
            # The answer comes from another process, which cannot wake this one.
            await asyncio.sleep(POLL)
            await off_loop(self._engine.require_own, self.job)
            await off_loop(records.answer_late, self.job, asked)
            choice = await off_loop(records.take_answer, self.job, name, self._life)
        await off_loop(records.put_question, self.job, None)
        return choice

    async def tell(self, done: int, total: int | None, message: str) -> None:
        note = self._engine.records.note
        await self._engine.off_loop(note, self.job, done=done, total=total, message=message, lives=0)


def _message(error: Exception) -> str:
    if isinstance(error, ToolError):
        return " ".join(part for part in (error.message, error.instruction) if part)
    if isinstance(error, SQLAlchemyError):
        return error_text(error)
    return str(error) or type(error).__name__


def _require_only_engine() -> None:
    from dbos._dbos import _dbos_global_instance  # pyright: ignore[reportPrivateUsage] - no public name

    if _dbos_global_instance is not None:
        raise ConfigurationError(
            "This process already has a job engine, or uses DBOS itself.",
            hint="Close the other one first, or run the jobs in their own process.",
        )
