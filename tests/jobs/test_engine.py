"""The engine in one process: steps, failures that can be taken up again, questions, and what is shown."""

from __future__ import annotations

import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from trysquare import ConfigurationError, ErrorCode, ToolError
from trysquare.core.errors import NotFound
from trysquare.core.json import JsonObject
from trysquare.jobs import JobQuestion, JobRun, RunEngine, jobs_file, open_engine, open_reader
from trysquare.jobs.database import connect
from trysquare.jobs.dbos import LIVES
from trysquare.jobs.records import Records


@pytest.fixture
def url(tmp_path: Path) -> str:
    return jobs_file(tmp_path)


@contextmanager
def refused(code: ErrorCode) -> Generator[None]:
    with pytest.raises(ToolError) as error:
        yield
    assert error.value.code is code


class Counting:
    """A body of two steps that counts how often each ran; the second fails while `broken`."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.broken: Exception | None = None

    async def __call__(self, argument: JsonObject, run: JobRun) -> JsonObject:
        first = await run.step("first", lambda: self._work("first"))
        await run.tell(1, 2, "the first is done")
        second = await run.step("second", lambda: self._work("second"))
        return {"sum": first["got"] + second["got"], "for": argument["name"]}

    async def _work(self, name: str) -> JsonObject:
        self.ran.append(name)
        if name == "second" and self.broken is not None:
            raise self.broken
        return {"got": len(self.ran)}


async def asking(argument: JsonObject, run: JobRun) -> JsonObject:
    async def ask() -> JsonObject:
        return {"choice": await run.ask("which", "Left or right?", ("left", "right"))}

    return await run.step("which", ask)


async def state_is(engine: RunEngine, job: str, state: str) -> None:
    found = await engine.status(job)
    with anyio.fail_after(30):
        while found.state != state:
            await anyio.sleep(0.02)
            found = await engine.status(job)


async def test_a_job_gives_its_result_its_steps_and_how_far_it_came(url: str) -> None:
    body = Counting()
    async with open_engine(url, {"count": body}) as engine:
        job = await engine.start("count", {"name": "Ada"}, title="counts for Ada")
        ended = await engine.wait(job)
        steps = await engine.steps(job)
    assert (ended.state, ended.result) == ("done", {"sum": 3, "for": "Ada"})
    assert (ended.kind, ended.title, ended.argument) == ("count", "counts for Ada", {"name": "Ada"})
    assert (ended.done, ended.total, ended.message) == (1, 2, "the first is done")
    assert [(step.name, step.value) for step in steps] == [("first", {"got": 1}), ("second", {"got": 2})]


async def test_a_job_is_started_once_under_its_id(url: str) -> None:
    body = Counting()
    async with open_engine(url, {"count": body}) as engine:
        for _ in range(2):
            await engine.start("count", {"name": "Ada"}, title="once", job="mine")
            await engine.wait("mine")
    assert body.ran == ["first", "second"]


async def test_a_job_that_failed_is_taken_up_behind_its_recorded_steps(url: str) -> None:
    body = Counting()
    body.broken = ToolError("The model is not there.", code=ErrorCode.MODEL_UNAVAILABLE, instruction="Start it.")
    async with open_engine(url, {"count": body}) as engine:
        job = await engine.start("count", {"name": "Ada"}, title="fails")
        failed = await engine.wait(job)
        assert (failed.state, failed.error) == ("failed", "The model is not there. Start it.")
        assert [step.name for step in await engine.steps(job)] == ["first"]

        body.broken = None
        await engine.resume(job)
        ended = await engine.wait(job)
    assert ended.state == "done"
    assert ended.error is None
    assert body.ran == ["first", "second", "second"]


async def test_a_job_goes_on_in_the_next_engine_when_the_first_was_closed_in_its_middle(url: str) -> None:
    started = anyio.Event()

    async def endless() -> JsonObject:
        started.set()
        await anyio.sleep_forever()
        return {}

    async def first_life(argument: JsonObject, run: JobRun) -> JsonObject:
        await run.step("one", lambda: _value(1))
        return await run.step("two", endless)

    async def second_life(argument: JsonObject, run: JobRun) -> JsonObject:
        one = await run.step("one", lambda: _value(111))
        return {"kept": one["value"], "new": (await run.step("two", lambda: _value(2)))["value"]}

    async with open_engine(url, {"x": first_life}) as engine:
        job = await engine.start("x", {}, title="")
        await started.wait()
    async with open_engine(url, {"x": second_life}) as engine:
        assert (await engine.status(job)).state == "interrupted"
        await engine.resume(job)
        assert (await engine.wait(job)).result == {"kept": 1, "new": 2}


async def _value(number: int) -> JsonObject:
    return {"value": number}


async def test_a_body_that_takes_other_steps_than_are_recorded_fails_and_says_so(url: str) -> None:
    async def first(argument: JsonObject, run: JobRun) -> JsonObject:
        await run.step("one", lambda: _value(1))
        raise ToolError("Stop here.")

    async def other(argument: JsonObject, run: JobRun) -> JsonObject:
        return await run.step("another", lambda: _value(2))

    async with open_engine(url, {"x": first}) as engine:
        job = await engine.start("x", {}, title="")
        await engine.wait(job)
    async with open_engine(url, {"x": other}) as engine:
        await engine.resume(job)
        ended = await engine.wait(job)
    assert ended.state == "failed"
    assert ended.error is not None
    assert "another" in ended.error


async def test_steps_that_run_at_the_same_time_are_kept_apart(url: str) -> None:
    async def body(argument: JsonObject, run: JobRun) -> JsonObject:
        got: dict[str, int] = {}

        async def one(number: int) -> None:
            got[str(number)] = (await run.step(f"step {number}", lambda: _value(number)))["value"]

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(one, number)
        return {"got": got}

    async with open_engine(url, {"x": body}) as engine:
        job = await engine.start("x", {}, title="")
        ended = await engine.wait(job)
        assert [step.name for step in await engine.steps(job)] == [f"step {number}" for number in range(10)]
    assert ended.result == {"got": {str(number): number for number in range(10)}}


async def test_a_question_waits_for_one_of_its_choices(url: str) -> None:
    async with open_engine(url, {"ask": asking}) as engine:
        job = await engine.start("ask", {}, title="")
        await state_is(engine, job, "asks")
        question = (await engine.status(job)).question
        assert question is not None
        assert (question.text, question.choices) == ("Left or right?", ("left", "right"))
        with refused(ErrorCode.VALIDATION_INVALID_PARAM):
            await engine.signal(job, "which", "up")
        await engine.signal(job, "which", "right")
        assert (await engine.wait(job)).result == {"choice": "right"}
        with refused(ErrorCode.JOB_NOT_RUNNING):
            await engine.signal(job, "which", "left")


async def test_a_question_that_nobody_answers_in_time_takes_its_default_also_in_the_next_process(url: str) -> None:
    async def body(argument: JsonObject, run: JobRun) -> JsonObject:
        async def ask() -> JsonObject:
            choices = ("left", "right")
            return {"choice": await run.ask("which", "?", choices, default="left", timeout=argument["seconds"])}

        return await run.step("which", ask)

    async with open_engine(url, {"ask": body}) as engine:
        job = await engine.start("ask", {"seconds": 0.01}, title="")
        assert (await engine.wait(job)).result == {"choice": "left"}
        patient = await engine.start("ask", {"seconds": 3600}, title="", job="patient")
        await state_is(engine, patient, "asks")
        asked = (await engine.status(patient)).question
        assert asked is not None
        assert (asked.default, asked.ends is not None) == ("left", True)
    dead = connect(url)
    late = Records(dead, clock=lambda: (asked.ends or 0) + 1)
    # What a process finds that adopts the job: the time of the question went on without one.
    again = late.open_question(patient, JobQuestion(name="which", text="?", choices=asked.choices, default="left"), 9)
    assert again == asked
    late.answer(patient, "which", "right")
    late.answer_late(patient, again)
    assert late.take_answer(patient, "which", "next") == "right"
    late.answer_late(patient, again)
    assert late.take_answer(patient, "which", "next") == "left"
    dead.dispose()


async def test_a_cancelled_job_stops_in_its_step_and_can_be_taken_up(url: str) -> None:
    async with open_engine(url, {"ask": asking}) as engine:
        job = await engine.start("ask", {}, title="")
        await state_is(engine, job, "asks")
        await engine.cancel(job)
        assert (await engine.status(job)).state == "cancelled"
        with refused(ErrorCode.JOB_NOT_RUNNING):
            await engine.cancel(job)
        await engine.resume(job)
        await state_is(engine, job, "asks")
        await engine.signal(job, "which", "left")
        assert (await engine.wait(job)).state == "done"


async def test_a_job_that_runs_or_is_done_is_not_taken_up(url: str) -> None:
    async with open_engine(url, {"ask": asking}) as engine:
        job = await engine.start("ask", {}, title="")
        await state_is(engine, job, "asks")
        with refused(ErrorCode.JOB_NOT_RUNNING):
            await engine.resume(job)
        await engine.signal(job, "which", "left")
        await engine.wait(job)
        with refused(ErrorCode.JOB_NOT_RUNNING):
            await engine.resume(job)


async def test_an_id_can_be_shortened_while_it_is_unambiguous(url: str) -> None:
    async with open_engine(url, {"count": Counting()}) as engine:
        for job in ("abc1", "abc21", "abc22", "abc23", "abc2", "xyz"):
            await engine.start("count", {"name": ""}, title="", job=job)
            await engine.wait(job)
        assert (await engine.status("x")).job == "xyz"
        # A whole id is that job, however many others begin like it.
        assert (await engine.status("abc2")).job == "abc2"
        with pytest.raises(NotFound, match=r"abc\d+, abc\d+"):
            await engine.status("abc")
        with refused(ErrorCode.JOB_NOT_FOUND):
            await engine.status("nope")
        assert [each.job for each in await engine.list(limit=2)] == ["xyz", "abc2"]


async def test_an_unknown_kind_is_refused(url: str) -> None:
    async with open_engine(url, {"count": Counting()}) as engine:
        with pytest.raises(ConfigurationError, match="`cuont`"):
            await engine.start("cuont", {}, title="")


async def test_a_process_has_one_engine_at_a_time(url: str) -> None:
    async with open_engine(url, {}):
        with pytest.raises(ConfigurationError, match="already"):
            async with open_engine(url, {}):
                pass


async def test_a_reader_sees_what_an_engine_does_and_runs_nothing(url: str) -> None:
    async with open_engine(url, {"ask": asking}) as engine, open_reader(url) as reader:
        job = await engine.start("ask", {}, title="seen")
        await state_is(engine, job, "asks")
        assert [(each.job, each.state) for each in await reader.list()] == [(job, "asks")]
        await reader.signal(job, "which", "left")
        await engine.wait(job)
        assert (await reader.status(job)).result == {"choice": "left"}


async def test_nothing_is_written_to_standard_output(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    async with open_engine(url, {"count": Counting()}) as engine:
        await engine.wait(await engine.start("count", {"name": ""}, title=""))
    assert capfd.readouterr() == ("", "")


async def test_projects_that_share_a_database_do_not_see_each_others_jobs(url: str) -> None:
    async with open_engine(url, {"count": Counting()}, project="one") as engine:
        await engine.wait(await engine.start("count", {"name": ""}, title="", job="mine"))
    async with open_reader(url, project="two") as other:
        assert list(await other.list()) == []
        with pytest.raises(NotFound, match="`mine`"):
            await other.cancel("mine")
    async with open_reader(url, project="one") as same:
        assert [each.job for each in await same.list()] == ["mine"]


async def test_a_job_that_ends_its_process_every_time_is_left_to_the_user(url: str) -> None:
    async def endless() -> JsonObject:
        await anyio.sleep_forever()
        return {}

    async def body(argument: JsonObject, run: JobRun) -> JsonObject:
        return await run.step("never", endless)

    async with open_engine(url, {"x": body}) as engine:
        await engine.start("x", {}, title="", job="job")
    for _ in range(LIVES):
        async with open_engine(url, {"x": body}) as engine:
            assert list(await engine.adopt()) == ["job"]
            await state_is(engine, "job", "running")
    async with open_engine(url, {"x": body}) as engine:
        assert list(await engine.adopt()) == []
        left = await engine.status("job")
    assert left.state == "failed"
    assert left.error is not None
    assert f"{LIVES} times" in left.error


async def test_a_job_in_a_file_reaches_for_no_network(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda *given: reached.append(given))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **_: reached.append(given))
    async with open_engine(url, {"count": Counting()}, adopting=True) as engine:
        await engine.wait(await engine.start("count", {"name": ""}, title=""))
    assert reached == []
