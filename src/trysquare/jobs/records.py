"""Tables next to those of DBOS: processes, notes, claims, answers; the heartbeat."""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.schema import CreateTable

from trysquare.jobs.engine import JobQuestion, Liveness

_TABLES = sa.MetaData()
_PROCESSES = sa.Table(
    "trysquare_processes",
    _TABLES,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("lives_until", sa.Double, nullable=False),
    sa.Column("adopter", sa.Text),
)
_NOTES = sa.Table(
    "trysquare_notes",
    _TABLES,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("done", sa.Integer, nullable=False),
    sa.Column("total", sa.Integer),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("question", sa.Text),
    sa.Column("error", sa.Text),
    sa.Column("cancelled", sa.Boolean, nullable=False),
    sa.Column("lives", sa.Integer, nullable=False),
    sa.Column("updated", sa.Double, nullable=False),
)
_CLAIMS = sa.Table(
    "trysquare_claims",
    _TABLES,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("step", sa.Text, primary_key=True),
    sa.Column("life", sa.Text, nullable=False),
)
_ANSWERS = sa.Table(
    "trysquare_answers",
    _TABLES,
    sa.Column("job", sa.Text, primary_key=True),
    sa.Column("step", sa.Text, primary_key=True),
    sa.Column("choice", sa.Text, nullable=False),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """Metadata of a job in addition to its steps."""

    kind: str
    title: str
    done: int
    total: int | None
    message: str
    question: JobQuestion | None
    error: str | None
    cancelled: bool
    updated: float


class Records:
    """The tables, in the same database as the steps. Every method is one transaction."""

    def __init__(self, engine: sa.Engine, *, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock
        self._insert: Any = sqlite.insert if engine.dialect.name == "sqlite" else postgresql.insert

    def make_tables(self) -> None:
        with self._engine.begin() as connection:
            for table in _TABLES.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))

    def have_tables(self) -> bool:
        """Whether a job was ever started here."""
        return sa.inspect(self._engine).has_table(_NOTES.name)

    def beat(self, process: str, *, silence: float) -> None:
        """Record a heartbeat; the process counts as dead after so many seconds without one."""
        values = {"lives_until": self._now() + silence, "adopter": None}
        with self._engine.begin() as connection:
            connection.execute(
                self._insert(_PROCESSES)
                .values(id=process, **values)
                .on_conflict_do_update(index_elements=["id"], set_=values)
            )

    def alive(self) -> frozenset[str]:
        """The processes with a recent heartbeat."""
        with self._engine.connect() as connection:
            return frozenset(connection.execute(self._living(_PROCESSES)).scalars())

    def known(self) -> frozenset[str]:
        """Every process that has not closed."""
        with self._engine.connect() as connection:
            return frozenset(connection.execute(sa.select(_PROCESSES.c.id)).scalars())

    def claim_process(self, dead: str, *, adopter: str) -> bool:
        """Become the adopter of a dead process. False where it is alive or another adopter is."""
        free = sa.or_(
            _PROCESSES.c.adopter.is_(None), _PROCESSES.c.adopter.not_in(self._living(_PROCESSES.alias("living")))
        )
        with self._engine.begin() as connection:
            # A process without a row gets one for the claim.
            connection.execute(self._insert(_PROCESSES).values(id=dead, lives_until=0.0).on_conflict_do_nothing())
            claimed = connection.execute(
                sa.update(_PROCESSES)
                .where(_PROCESSES.c.id == dead, _PROCESSES.c.lives_until <= self._now(), free)
                .values(adopter=adopter)
            )
            return claimed.rowcount == 1

    def forget_process(self, process: str) -> None:
        """Remove a process that closes, or whose jobs were adopted."""
        with self._engine.begin() as connection:
            connection.execute(sa.delete(_PROCESSES).where(_PROCESSES.c.id == process))

    def begin(self, job: str, *, kind: str, title: str) -> None:
        row = {"job": job, "kind": kind, "title": title, "done": 0, "message": "", "cancelled": False, "lives": 0}
        with self._engine.begin() as connection:
            connection.execute(self._insert(_NOTES).values(**row, updated=self._clock()).on_conflict_do_nothing())

    def count_life(self, job: str) -> int:
        """Increment and return the number of adoptions since the last progress."""
        with self._engine.begin() as connection:
            counted = connection.execute(
                sa.update(_NOTES).where(_NOTES.c.job == job).values(lives=_NOTES.c.lives + 1).returning(_NOTES.c.lives)
            )
            return counted.scalar() or 0

    def put_question(self, job: str, question: JobQuestion | None) -> None:
        """Record the question of a job, or that it has none."""
        self.note(job, question=None if question is None else json.dumps(asdict(question)))

    def note(self, job: str, **values: Any) -> None:
        """Change columns of a job's note."""
        with self._engine.begin() as connection:
            connection.execute(sa.update(_NOTES).where(_NOTES.c.job == job).values(**values, updated=self._clock()))

    def notes(self, jobs: Iterable[str]) -> Mapping[str, Note]:
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(_NOTES).where(_NOTES.c.job.in_(list(jobs)))).mappings().all()
        return {row["job"]: _read_note(row) for row in rows}

    def asking(self) -> list[str]:
        """The jobs with a question that nobody has answered, whether they run or not."""
        with self._engine.connect() as connection:
            return list(connection.execute(sa.select(_NOTES.c.job).where(_NOTES.c.question.is_not(None))).scalars())

    def claim_step(self, job: str, step: str, life: str) -> bool:
        """Whether this run of a job may do a step that must not be done twice."""
        with self._engine.begin() as connection:
            connection.execute(self._insert(_CLAIMS).values(job=job, step=step, life=life).on_conflict_do_nothing())
            holder = connection.execute(sa.select(_CLAIMS.c.life).where(_CLAIMS.c.job == job, _CLAIMS.c.step == step))
            return holder.scalar() == life

    def answer(self, job: str, step: str, choice: str) -> None:
        """Store the choice of a human until the job takes it."""
        with self._engine.begin() as connection:
            connection.execute(
                self._insert(_ANSWERS)
                .values(job=job, step=step, choice=choice)
                .on_conflict_do_update(index_elements=["job", "step"], set_={"choice": choice})
            )

    def open_question(self, job: str, question: JobQuestion, timeout: float | None) -> JobQuestion:
        """Record the question of a job. One that an earlier run has asked keeps its end."""
        note = self.notes([job]).get(job)
        before = None if note is None else note.question
        ends = None if timeout is None else self._clock() + timeout
        if before is not None and replace(before, ends=None) == question:
            ends = before.ends
        question = replace(question, ends=ends)
        self.put_question(job, question)
        return question

    def answer_late(self, job: str, question: JobQuestion) -> None:
        """Store the default of a question whose time has ended, unless a human was faster."""
        if question.ends is None or question.default is None or self._clock() < question.ends:
            return
        values = {"job": job, "step": question.name, "choice": question.default}
        with self._engine.begin() as connection:
            connection.execute(self._insert(_ANSWERS).values(**values).on_conflict_do_nothing())

    def take_answer(self, job: str, step: str, life: str) -> str | None:
        """Take the choice of a human, once, and with it the claim on the step."""
        with self._engine.begin() as connection:
            taken = connection.execute(
                sa.delete(_ANSWERS).where(_ANSWERS.c.job == job, _ANSWERS.c.step == step).returning(_ANSWERS.c.choice)
            ).scalar()
            if taken is not None:
                connection.execute(
                    sa.update(_CLAIMS).where(_CLAIMS.c.job == job, _CLAIMS.c.step == step).values(life=life)
                )
            return taken

    def _living(self, processes: Any) -> Any:
        return sa.select(processes.c.id).where(processes.c.lives_until > self._now())

    def _now(self) -> Any:
        # The clocks of several machines differ; the database has one.
        if self._engine.dialect.name == "postgresql":
            return sa.extract("epoch", sa.func.clock_timestamp())
        return sa.literal(self._clock())


def _read_note(row: Any) -> Note:
    values = {each.name: row[each.name] for each in fields(Note)}
    if values["question"] is not None:
        read: dict[str, Any] = json.loads(values["question"])
        choices = tuple(read.pop("choices"))
        values["question"] = JobQuestion(**read, choices=choices)
    return Note(**values)


logger = logging.getLogger("trysquare.jobs")


def process_name() -> str:
    """A unique name of this process, with its host and process id."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}"


def has_ended(process: str) -> bool:
    """Whether a process of this machine has ended; False for one of another machine."""
    host, _, rest = process.rpartition("-")[0].rpartition("-")
    if host != socket.gethostname()[:40] or not rest.isdigit():
        return False
    try:
        os.kill(int(rest), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False


class Heartbeat:
    """Heartbeat thread of a process; `after` is called after each beat."""

    def __init__(
        self, records: Records, process: str, pulse: Liveness, after: Callable[[], object] = lambda: None
    ) -> None:
        self._records = records
        self._process = process
        self._pulse = pulse
        self._after = after
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trysquare-heartbeat", daemon=True)

    def start(self) -> None:
        """Beat once, then start the thread."""
        self._records.beat(self._process, silence=self._pulse.silence)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pulse.every):
            try:
                self._records.beat(self._process, silence=self._pulse.silence)
                self._after()
            except SQLAlchemyError as error:
                # The database may come back. Until then others may adopt the jobs, which fences this process.
                logger.warning("heartbeat failed process=%s error=%s", self._process, error)
