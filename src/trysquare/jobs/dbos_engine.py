"""The engine on DBOS, which journals steps on SQLite and on PostgreSQL. Nothing but this and the reader knows it.

DBOS gives exactly what a job needs: what a step gave is recorded before the next one starts, and an execution that has
lost its job to another one is fenced off when it wants to record. It does not notice that a process has died; the
heartbeat and `adopt` do. Each process has a queue of its own, so that a job is taken up by the one that asked for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import secrets
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import anyio
import anyio.to_thread
import sqlalchemy as sa
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.exc import SQLAlchemyError

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.jobs.database import clear_errors, connect, one_opener, plain
from trysquare.jobs.dbos_reader import APPLICATION, QUEUE, DbosReader, hear_dbos, holder_of, refuse_pickle
from trysquare.jobs.engine import FINAL, JobBody, JobQuestion, JobStatus, Pulse, Work
from trysquare.jobs.heartbeat import Heartbeat, has_ended, process_name

logger = logging.getLogger("trysquare.jobs")

JOURNAL_VERSION = "1"
"""Changes when the journals of older jobs can no longer be followed. DBOS takes up only jobs of its own version."""
LIVES = 5
"""How often a job is taken up from the dead without coming further: one that kills its process is left to a person."""
WATCH = 0.2
"""Seconds between two looks at what another process may have changed."""


class DbosEngine(DbosReader):
    """Runs jobs in this process."""

    def __init__(
        self,
        url: str,
        engine: sa.Engine,
        bodies: Mapping[str, JobBody],
        *,
        project: str,
        adopting: bool,
        pulse: Pulse,
    ) -> None:
        super().__init__(url, engine, project)
        self.process = process_name()
        self._bodies = bodies
        self._lives: dict[asyncio.Task[Any], str] = {}
        self._unrecorded: dict[str, str] = {}
        self._heart = Heartbeat(self.records, self.process, pulse, self._adopt if adopting else None)
        self._workflow = self._registered()

    @staticmethod
    async def launched(
        url: str, bodies: Mapping[str, JobBody], *, project: str, adopting: bool, pulse: Pulse
    ) -> DbosEngine:
        """An engine that is ready to start jobs."""
        _refuse_second()
        refuse_pickle()
        hear_dbos()
        engine = await anyio.to_thread.run_sync(connect, url)
        made = DbosEngine(url, engine, bodies, project=project, adopting=adopting, pulse=pulse)
        try:
            await made.off_loop(made._prepare)
            # On the thread of the event loop: DBOS runs bodies on the loop that it sees here.
            DBOS.launch()
        except BaseException:
            made._heart.stop()
            DBOS.destroy(destroy_registry=True)
            engine.dispose()
            raise
        return made

    def _prepare(self) -> None:
        with one_opener(self._engine, self.url):
            self.records.make_tables()
            DBOS.migrate(self.url)
        self._client.register_queue(QUEUE + self.process, polling_interval_sec=WATCH)
        self._heart.start()

    def _registered(self) -> Any:
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

        async def live(kind: str, argument: JsonObject) -> JsonObject:
            return await self._live(kind, argument)

        return DBOS.workflow(name=self.workflow, max_recovery_attempts=None)(live)

    async def close(self) -> None:
        """Stop what runs here, so that it can be taken up elsewhere, and take leave."""
        await self._end_lives(set(self._lives.values()))
        await anyio.to_thread.run_sync(self._heart.stop)
        try:
            await self.off_loop(DBOS.delete_queue, QUEUE + self.process)
            await self.off_loop(self.records.forget_process, self.process)
        finally:
            await anyio.to_thread.run_sync(lambda: DBOS.destroy(destroy_registry=True))
            # DBOS made its own threads those of the whole loop, and has just ended them.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
            await super().close()

    async def _end_lives(self, jobs: set[str]) -> None:
        """Stop what runs here of some jobs, and wait until it has stopped."""
        tasks = [task for task, job in self._lives.items() if job in jobs]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _live(self, kind: str, argument: JsonObject) -> JsonObject:
        """One life of a job, from its first step on; what is recorded goes by at once."""
        job = cast(str, DBOS.workflow_id)
        task = cast(asyncio.Task[Any], asyncio.current_task())
        self._lives[task] = job
        try:
            if kind not in self._bodies:
                raise ConfigurationError(f"This process cannot run jobs of the kind `{kind}`.", where=job)
            return await self._bodies[kind](argument, DbosRun(self, job))
        except Exception as error:
            await self.fail(job, error)
            raise
        finally:
            del self._lives[task]

    async def fail(self, job: str, error: Exception) -> None:
        """End a job so that it can be taken up again: what went wrong is noted, and nothing of it recorded.

        DBOS would record the error as the step's outcome for good. A job that was stopped may go on another day.
        """
        self._unrecorded[job] = said = _said(error)
        await self.off_loop(self.records.fail, job, said)
        await self.off_loop(self._client.cancel_workflow, job)
        del self._unrecorded[job]

    async def start(self, kind: str, argument: JsonObject, *, title: str, job: str | None = None) -> str:
        if kind not in self._bodies:
            raise ConfigurationError(f"There is no kind of job called `{kind}`.")
        job = job or secrets.token_hex(6)
        await self.off_loop(self.records.begin, job, kind=kind, title=title)

        async def begin() -> None:
            with SetWorkflowID(job), clear_errors(self.url):
                await DBOS.start_workflow_async(self._workflow, kind, argument)

        # In a context of its own: a job that is started by a step of another one is not a part of it.
        await asyncio.get_running_loop().create_task(begin(), context=contextvars.Context())
        return job

    async def wait(self, job: str) -> JobStatus:
        job = await self.full_id(job)
        while (found := await self.status(job)).state not in FINAL:
            if job in self._unrecorded and job not in self._lives.values():
                raise ToolError(
                    f"Job `{job}` has stopped, and that could not be recorded: {self._unrecorded[job]}",
                    code=ErrorCode.STATE_UNAVAILABLE,
                    instruction=f"Mend what is wrong there, then: trysquare jobs resume {job}",
                )
            await anyio.sleep(WATCH)
        return found

    async def cancel(self, job: str) -> None:
        job = await self.full_id(job)
        await super().cancel(job)
        await self._end_lives({job})

    async def resume(self, job: str) -> None:
        found = await self.status(job)
        if found.state == "done":
            raise ToolError(
                f"Job `{found.job}` is done.",
                code=ErrorCode.JOB_NOT_RUNNING,
                instruction=f"See what it did with: trysquare jobs show {found.job}",
            )
        if found.state in ("running", "asks") and not has_ended(found.holder or ""):
            raise ToolError(
                f"Job `{found.job}` is running, in the process {found.holder}.",
                code=ErrorCode.JOB_NOT_RUNNING,
                instruction=f"Watch it with: trysquare jobs show {found.job} --follow",
            )
        # A life that was cancelled from elsewhere may not have noticed yet; two must not wait for the same answer.
        await self._end_lives({found.job})
        await self.off_loop(self.records.revive, found.job)
        await self.off_loop(self._take_up, found.job)

    async def adopt(self) -> Sequence[str]:
        return await self.off_loop(self._adopt)

    def _adopt(self) -> list[str]:
        """Take up what dead processes held. Only one of the living does it for each."""
        orphans = self._orphans()
        taken: list[str] = []
        for dead in sorted(set(orphans.values()) | (self.records.known() - self.records.alive())):
            if not self.records.claim_process(dead, adopter=self.process):
                continue
            # Only now is it certain that nobody else takes them up: look again.
            left = [job for job, holder in self._orphans().items() if holder == dead]
            taken.extend(job for job in left if self._adopted(job))
            DBOS.delete_queue(QUEUE + dead)
            self.records.forget_process(dead)
        if taken:
            logger.warning("Took up %d jobs of processes that have died: %s", len(taken), ", ".join(taken))
        return taken

    def _adopted(self, job: str) -> bool:
        if self.records.count_life(job) > LIVES:
            self.records.fail(job, f"It was taken up {LIVES} times, and its process ended each time without a step.")
            self._client.cancel_workflow(job)
            return False
        self._take_up(job)
        return True

    def _orphans(self) -> dict[str, str]:
        """The jobs that a process holds, or has queued for itself, which is not among the living."""
        alive = self.records.alive()
        held = self._client.list_workflows(name=self.workflow, status=["PENDING", "ENQUEUED"], load_input=False)
        holders = {each.workflow_id: holder_of(each) for each in held}
        return {job: holder for job, holder in holders.items() if holder is not None and holder not in alive}

    def _take_up(self, job: str) -> None:
        self._client.resume_workflow(job, queue_name=QUEUE + self.process)
        note = self.records.notes([job]).get(job)
        if note is not None and note.cancelled:
            self._client.cancel_workflow(job)

    def require_own(self, job: str) -> None:
        """Stop whoever works on a job that another process has taken up meanwhile."""
        rows = self._client.list_workflows(workflow_ids=[job], load_input=False)
        if not any(row.status == "PENDING" and row.executor_id == self.process for row in rows):
            raise dbos_error.DBOSWorkflowConflictIDError(job)


class DbosRun:
    """What one life of a job sees of its engine."""

    def __init__(self, engine: DbosEngine, job: str) -> None:
        self.job = job
        self._engine = engine
        self._life = secrets.token_hex(8)

    async def step(self, name: str, work: Work) -> JsonObject:
        async def run() -> JsonObject:
            try:
                return await work()
            except Exception as error:
                # Before DBOS records it: then it finds that the job is no longer its own, and does not.
                await self._engine.fail(self.job, error)
                raise

        return await DBOS.run_step_async({"name": name, "preemptible": True}, run)

    async def claim(self, name: str) -> bool:
        await self._engine.off_loop(self._engine.require_own, self.job)
        return await self._engine.off_loop(self._engine.records.claim_step, self.job, name, self._life)

    async def ask(self, name: str, question: str, choices: Sequence[str]) -> str:
        records, off_loop = self._engine.records, self._engine.off_loop
        await off_loop(records.put_question, self.job, JobQuestion(name=name, text=question, choices=tuple(choices)))
        choice = None
        while choice is None:
            # A person answers in another process, so there is nothing here that could wake this one.
            await anyio.sleep(WATCH)
            await off_loop(self._engine.require_own, self.job)
            choice = await off_loop(records.take_answer, self.job, name, self._life)
        await off_loop(records.put_question, self.job, None)
        return choice

    async def tell(self, done: int, total: int | None, message: str) -> None:
        await self._engine.off_loop(self._engine.records.tell, self.job, done, total, message)


def _said(error: Exception) -> str:
    if isinstance(error, ToolError):
        return " ".join(part for part in (error.message, error.instruction) if part)
    if isinstance(error, SQLAlchemyError):
        return plain(error)
    return str(error) or type(error).__name__


def _refuse_second() -> None:
    from dbos._dbos import _dbos_global_instance  # pyright: ignore[reportPrivateUsage] - there is no public question

    if _dbos_global_instance is not None:
        raise ConfigurationError(
            "This process has an engine of jobs already, or uses DBOS itself; there can be one only.",
            hint="Close the other one first, or run the jobs in a process of their own.",
        )
