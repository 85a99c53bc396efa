"""What is kept beside the steps, against a model of it: who lives, who takes up for whom, who sends, who answers."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support import size
from trysquare.jobs import JobQuestion, jobs_file
from trysquare.jobs.database import connect
from trysquare.jobs.records import Records, has_ended, process_name

SILENCE = 5.0
PROCESSES = st.sampled_from(["p1", "p2", "p3"])
STEPS = st.sampled_from(["s1", "s2"])
LIVES = st.sampled_from(["l1", "l2", "l3"])
CHOICES = st.sampled_from(["again", "skip"])


class RecordsMachine(RuleBasedStateMachine):
    """Everything that processes and people do to the records, in any order, on a clock of its own."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.engine = connect(jobs_file(Path(self.folder.name)))
        self.now = 1_000.0
        self.records = Records(self.engine, clock=lambda: self.now)
        self.records.make_tables()
        self.heard: dict[str, float] = {}
        self.adopters: dict[str, str | None] = {}
        self.senders: dict[str, str] = {}
        self.answers: dict[str, str] = {}

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.engine.dispose()
            self.folder.cleanup()

    def lives(self, process: str) -> bool:
        return process in self.heard and self.heard[process] + SILENCE > self.now

    @rule(seconds=st.sampled_from([0.5, 2.0, 6.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(process=PROCESSES)
    def beat(self, process: str) -> None:
        self.records.beat(process, silence=SILENCE)
        self.heard[process] = self.now
        self.adopters[process] = None

    @rule(process=PROCESSES)
    def leave(self, process: str) -> None:
        self.records.forget_process(process)
        self.heard.pop(process, None)
        self.adopters.pop(process, None)

    @rule(dead=PROCESSES, adopter=PROCESSES)
    def claim_process(self, dead: str, adopter: str) -> None:
        holder = self.adopters.get(dead)
        free = not self.lives(dead) and (holder is None or not self.lives(holder))
        assert self.records.claim_process(dead, adopter=adopter) is free
        # To ask leaves a row behind, also of a process that nobody has heard of.
        self.heard.setdefault(dead, 0.0 - SILENCE)
        self.adopters[dead] = adopter if free else holder

    @rule(step=STEPS, life=LIVES)
    def claim_step(self, step: str, life: str) -> None:
        sender = self.senders.setdefault(step, life)
        assert self.records.claim_step("job", step, life) is (sender == life)

    @rule(step=STEPS, choice=CHOICES)
    def answer(self, step: str, choice: str) -> None:
        self.records.answer("job", step, choice)
        self.answers[step] = choice

    @rule(step=STEPS, life=LIVES)
    def take_answer(self, step: str, life: str) -> None:
        expected = self.answers.pop(step, None)
        assert self.records.take_answer("job", step, life) == expected
        if expected is not None and step in self.senders:
            self.senders[step] = life

    @invariant()
    def the_living_are_those_that_were_heard_of(self) -> None:
        if hasattr(self, "records"):
            assert self.records.alive() == {process for process in self.heard if self.lives(process)}
            assert self.records.known() == set(self.heard)


RecordsMachine.TestCase.settings = settings(max_examples=size(20, 300), stateful_step_count=25, deadline=None)
TestRecords = RecordsMachine.TestCase


@pytest.fixture
def records(tmp_path: Path) -> Records:
    made = Records(connect(jobs_file(tmp_path)))
    made.make_tables()
    return made


def test_of_many_that_want_to_take_up_for_a_dead_process_one_does(records: Records) -> None:
    def claim(number: int) -> bool:
        adopter = f"living-{number}"
        records.beat(adopter, silence=60.0)
        return records.claim_process("dead", adopter=adopter)

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(claim, range(8))) == 1


def test_of_many_lives_one_may_send(records: Records) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda number: records.claim_step("job", "mail", f"life-{number}"), range(8))) == 1


def test_a_note_keeps_the_last_text(records: Records) -> None:
    records.begin("job", kind="agent", title="builder: it")
    records.begin("job", kind="other", title="again")
    records.note("job", done=3, total=None, message="three")
    records.put_question("job", JobQuestion(name="call 1", text="Sent?", choices=("again", "skip")))
    note = records.notes(["job", "unknown"])["job"]
    assert (note.kind, note.title, note.done, note.total, note.message) == ("agent", "builder: it", 3, None, "three")
    assert note.question == JobQuestion(name="call 1", text="Sent?", choices=("again", "skip"))
    records.note("job", error="It broke.")
    records.note("job", cancelled=True)
    records.note("job", error=None, question=None, cancelled=False)
    note = records.notes(["job"])["job"]
    assert (note.question, note.error, note.cancelled) == (None, None, False)


def test_a_process_of_this_machine_that_is_gone_is_known_to_be() -> None:
    host, _, _ = process_name().rpartition("-")[0].rpartition("-")
    assert not has_ended(process_name())
    assert has_ended(f"{host}-999999999-abcdef01")
    assert not has_ended("another-machine-999999999-abcdef01")
    assert not has_ended("nonsense")
