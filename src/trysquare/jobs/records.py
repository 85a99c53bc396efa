"""What we keep of jobs beside the steps: who is alive, how far a job is, what it asks, and what it has sent."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from trysquare.jobs.engine import JobQuestion

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
    """What is shown of a job beside its steps."""

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
    """The tables, on the same database as the steps. Every method is one transaction."""

    def __init__(self, engine: sa.Engine, *, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock
        self._insert: Any = sqlite.insert if engine.dialect.name == "sqlite" else postgresql.insert

    def make_tables(self) -> None:
        """Make what is missing."""
        with self._engine.begin() as connection:
            for table in _TABLES.sorted_tables:
                connection.execute(CreateTable(table, if_not_exists=True))

    def have_tables(self) -> bool:
        """Whether a job was ever started here."""
        return sa.inspect(self._engine).has_table(_NOTES.name)

    def beat(self, process: str, *, silence: float) -> None:
        """Say that a process lives, and counts as dead after so many seconds of silence."""
        values = {"lives_until": self._now() + silence, "adopter": None}
        with self._engine.begin() as connection:
            connection.execute(
                self._insert(_PROCESSES)
                .values(id=process, **values)
                .on_conflict_do_update(index_elements=["id"], set_=values)
            )

    def alive(self) -> frozenset[str]:
        """The processes that were heard of lately."""
        with self._engine.connect() as connection:
            return frozenset(connection.execute(self._living(_PROCESSES)).scalars())

    def known(self) -> frozenset[str]:
        """Every process that has not taken its leave."""
        with self._engine.connect() as connection:
            return frozenset(connection.execute(sa.select(_PROCESSES.c.id)).scalars())

    def claim_process(self, dead: str, *, adopter: str) -> bool:
        """Become the one that takes up the jobs of a dead process. False where it lives, or another one does it."""
        free = sa.or_(
            _PROCESSES.c.adopter.is_(None),
            _PROCESSES.c.adopter.not_in(self._living(_PROCESSES.alias("living"))),
        )
        with self._engine.begin() as connection:
            # One that never beat, or took its leave, gets a row to hold the claim.
            connection.execute(self._insert(_PROCESSES).values(id=dead, lives_until=0.0).on_conflict_do_nothing())
            taken = connection.execute(
                sa.update(_PROCESSES)
                .where(_PROCESSES.c.id == dead, _PROCESSES.c.lives_until <= self._now(), free)
                .values(adopter=adopter)
            )
            return taken.rowcount == 1

    def forget_process(self, process: str) -> None:
        """Take a process off: it leaves, or its jobs have been taken up."""
        with self._engine.begin() as connection:
            connection.execute(sa.delete(_PROCESSES).where(_PROCESSES.c.id == process))

    def begin(self, job: str, *, kind: str, title: str) -> None:
        """Note a new job; one that is known stays as it is."""
        row = {"job": job, "kind": kind, "title": title, "done": 0, "message": "", "cancelled": False, "lives": 0}
        with self._engine.begin() as connection:
            connection.execute(self._insert(_NOTES).values(**row, updated=self._clock()).on_conflict_do_nothing())

    def tell(self, job: str, done: int, total: int | None, message: str) -> None:
        """Note how far a job is."""
        self._note(job, done=done, total=total, message=message, lives=0)

    def put_question(self, job: str, question: JobQuestion | None) -> None:
        """Note what a job asks, or that it asks no more."""
        text = None
        if question is not None:
            text = json.dumps({"name": question.name, "text": question.text, "choices": question.choices})
        self._note(job, question=text)

    def fail(self, job: str, error: str) -> None:
        """Note why a job ended."""
        self._note(job, error=error)

    def mark_cancelled(self, job: str) -> None:
        """Note that a person wants the job stopped, before it is stopped."""
        self._note(job, cancelled=True)

    def revive(self, job: str) -> None:
        """Forget how a job ended: a person has it taken up again."""
        self._note(job, error=None, question=None, cancelled=False, lives=0)

    def count_life(self, job: str) -> int:
        """How often a job was taken up from the dead since it last came further, this time included."""
        with self._engine.begin() as connection:
            counted = connection.execute(
                sa.update(_NOTES).where(_NOTES.c.job == job).values(lives=_NOTES.c.lives + 1).returning(_NOTES.c.lives)
            )
            return counted.scalar() or 0

    def _note(self, job: str, **values: Any) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.update(_NOTES).where(_NOTES.c.job == job).values(**values, updated=self._clock()))

    def notes(self, jobs: Iterable[str]) -> Mapping[str, Note]:
        """What is noted of some jobs."""
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(_NOTES).where(_NOTES.c.job.in_(list(jobs)))).mappings().all()
        return {row["job"]: _read_note(row) for row in rows}

    def claim_step(self, job: str, step: str, life: str) -> bool:
        """Whether this life of a job is the one that does a step which must not be done twice."""
        with self._engine.begin() as connection:
            connection.execute(self._insert(_CLAIMS).values(job=job, step=step, life=life).on_conflict_do_nothing())
            holder = connection.execute(sa.select(_CLAIMS.c.life).where(_CLAIMS.c.job == job, _CLAIMS.c.step == step))
            return holder.scalar() == life

    def answer(self, job: str, step: str, choice: str) -> None:
        """Keep a person's choice until the job takes it."""
        with self._engine.begin() as connection:
            connection.execute(
                self._insert(_ANSWERS)
                .values(job=job, step=step, choice=choice)
                .on_conflict_do_update(index_elements=["job", "step"], set_={"choice": choice})
            )

    def take_answer(self, job: str, step: str, life: str) -> str | None:
        """Take a person's choice, once, and with it the claim on the step."""
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
        # The clocks of several machines differ; that of their database is one.
        if self._engine.dialect.name == "postgresql":
            return sa.extract("epoch", sa.func.clock_timestamp())
        return sa.literal(self._clock())


def _read_note(row: Any) -> Note:
    question = None
    if row["question"] is not None:
        read = json.loads(row["question"])
        question = JobQuestion(name=read["name"], text=read["text"], choices=tuple(read["choices"]))
    return Note(
        kind=row["kind"],
        title=row["title"],
        done=row["done"],
        total=row["total"],
        message=row["message"],
        question=question,
        error=row["error"],
        cancelled=row["cancelled"],
        updated=row["updated"],
    )
