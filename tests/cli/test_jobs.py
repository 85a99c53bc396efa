"""`trysquare jobs`."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot

from tests.cli.conftest import Run
from trysquare import ToolError
from trysquare.agents import runner as opening
from trysquare.agents.journal import Journal, agent_bodies
from trysquare.cli import jobs
from trysquare.cli.jobs import watch
from trysquare.core.json import JsonObject
from trysquare.jobs import JobQuestion, JobStatus, jobs_file, open_engine

HERE = ("--project", ".")


async def answer() -> JsonObject:
    return {"answer": {"text": "", "calls": [{"name": "file", "arguments": {"action": "read", "path": "a.txt"}}]}}


async def read(key: str) -> JsonObject:
    return {"text": "hello", "success": True}


async def run_to_the_end(argument: JsonObject, journal: Journal) -> JsonObject:
    await journal.step("answer 1", answer)
    await journal.call("call 1.1 file", "harmless", read)
    await journal.report(1, 40, "file read a.txt: ok")
    if argument.get("breaks"):
        raise ToolError("The model is not there.", instruction="Start it.")
    return {"status": "finished", "summary": "It is done."}


def start_job(project: Path, job: str, **argument: Any) -> None:
    """A job that has ended, one way or the other."""

    async def start() -> None:
        folder = project / ".trysquare"
        folder.mkdir(exist_ok=True)
        async with open_engine(jobs_file(folder), agent_bodies(run_to_the_end)) as engine:
            await engine.start("agent", argument, title=f"builder: {job}", job=job)
            await engine.wait(job)

    anyio.run(start)


def test_without_jobs_the_list_says_so_and_makes_nothing(run: Run, project: Path) -> None:
    assert "No jobs" in run("jobs", "list", *HERE).out
    assert run("jobs", "list", "--json", *HERE).json == []
    assert not (project / ".trysquare").exists()


def test_a_job_is_listed_shown_and_replayed(run: Run, project: Path) -> None:
    start_job(project, "abc123")
    listing = re.sub(r"\d{4}-\S+ \S+", "TIME               ", run("jobs", "list", *HERE).out)
    assert [line.split() for line in listing.splitlines()] == [
        ["JOB", "STATE", "DONE", "UPDATED", "TITLE"],
        ["abc123", "done", "1/40", "TIME", "builder:", "abc123"],
    ]
    shown = re.sub(r"\d{4}-\S+ \S+|\S+-\d+-[0-9a-f]{8}", "X", run("jobs", "show", "abc", *HERE).out)
    heading, *_, answer, call, result = re.sub(r" +\d+\.\d s", " 0.0 s", shown).splitlines()
    assert heading.split() == ["abc123", "done", "builder:", "abc123"]
    assert answer.strip() == 'answer 1 0.0 s  → file {"action": "read", "path": "a.txt"}'
    assert call.strip() == "call 1.1 file 0.0 s  hello"
    assert result.endswith(" It is done.")
    replayed = re.sub(r"\d+\.\d s", "0.0 s", run("jobs", "replay", "abc123", *HERE).out).splitlines()
    assert replayed[1:-1] == [
        "── answer 1 (0.0 s)",
        '→ file {"action": "read", "path": "a.txt"}',
        "── call 1.1 file (0.0 s)",
        "hello",
    ]
    assert replayed[-1].startswith("2 steps ")
    one = run("jobs", "replay", "abc123", "--step", "call 1.1 file", *HERE).out
    assert re.sub(r"\d+\.\d s", "0.0 s", one) == snapshot("""\
── call 1.1 file (0.0 s)
{
  "value": {
    "text": "hello",
    "success": true
  }
}
""")


def test_programs_read_jobs_and_steps_as_json(run: Run, project: Path) -> None:
    start_job(project, "abc123", task="do it")
    [listed] = run("jobs", "list", "--json", *HERE).json
    shown = run("jobs", "show", "abc123", "--json", *HERE).json
    steps = run("jobs", "replay", "abc123", "--json", *HERE).json
    assert listed == {key: value for key, value in shown.items() if key != "steps"}
    assert (shown["state"], shown["argument"]) == ("done", {"task": "do it"})
    assert shown["steps"] == steps
    assert [step["name"] for step in steps] == ["answer 1", "call 1.1 file"]


def test_a_failed_job_goes_on_behind_its_record_and_ends(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_job(project, "abc123", breaks=True)
    shown = run("jobs", "show", "abc123", *HERE).out
    assert "The model is not there." in shown
    assert "trysquare jobs resume abc123\n" in shown

    async def repaired(kept: JsonObject, journal: Journal, *_: object) -> JsonObject:
        return await run_to_the_end({}, journal)

    monkeypatch.setattr(opening, "run_stored_request", repaired)
    resumed = run("jobs", "resume", "abc123", *HERE)
    assert (resumed.code, resumed.out) == (0, "It is done.\n")
    first, *lines = resumed.err.splitlines()
    assert "abc123" in first
    assert "2 recorded steps" in first
    assert lines[-1].startswith("abc123 done 1/40 ")


def test_a_job_that_fails_again_says_how_to_go_on(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start_job(project, "abc123", breaks=True)

    async def still(kept: JsonObject, journal: Journal, *_: object) -> JsonObject:
        return await run_to_the_end(kept, journal)

    monkeypatch.setattr(opening, "run_stored_request", still)
    resumed = run("jobs", "resume", "abc123", *HERE)
    assert resumed.code == 1
    failed, advice = resumed.err.splitlines()[-2:]
    assert "abc123" in failed
    assert "The model is not there." in failed
    assert advice.endswith("trysquare jobs resume abc123")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["show", "nope"], 1, "`nope`"),
        (["cancel", "abc123"], 1, "done"),
        (["resume", "abc123"], 1, "done"),
        (["resume", "abc123", "--answer", "again"], 1, "has no open question"),
        (["replay", "abc123", "--step", "x"], 1, "`x`"),
    ],
)
def test_an_impossible_command_is_refused(run: Run, project: Path, words: list[str], code: int, said: str) -> None:
    start_job(project, "abc123")
    ran = run("jobs", *words, *HERE)
    assert ran.code == code
    assert said in ran.err


class Asking:
    """Jobs of which one asks, until it is answered."""

    def __init__(self) -> None:
        self.answered: list[tuple[str, str]] = []
        self._looks = 0

    async def status(self, job: str) -> JobStatus:
        self._looks += 1
        ended = bool(self.answered) or self._looks > 3
        question = JobQuestion(name="call 1", text="Was it sent?", choices=("again", "skip"))
        return JobStatus(
            job=job, kind="agent", title="", state="done" if ended else "asks", created=0.0, updated=0.0, done=1,
            total=4, message="a\nlong  message", question=None if ended else question,
        )  # fmt: skip

    async def signal(self, job: str, name: str, choice: str) -> None:
        self.answered.append((name, choice))

    async def list(self, *, limit: int = 100) -> list[JobStatus]:
        return []

    async def asking(self) -> list[JobStatus]:
        return []

    async def steps(self, job: str) -> list[Any]:
        return []

    async def cancel(self, job: str) -> None:
        raise AssertionError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "EVERY", 0.01)


async def test_progress_without_a_terminal_is_a_line_for_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    await watch(Asking(), "abc")
    asks, question, advice, done = shown.getvalue().splitlines()
    assert (asks, done) == ("abc asks 1/4 a long message", "abc done 1/4 a long message")
    assert question == "Was it sent?"
    assert advice.endswith("trysquare jobs resume abc --answer again|skip")


async def test_progress_on_a_terminal_rewrites_one_line_and_asks_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, typed, asking = Terminal(), Terminal("perhaps\nagain\n"), Asking()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("sys.stdin", typed)
    monkeypatch.setenv("NO_COLOR", "1")
    await watch(asking, "abc")
    assert asking.answered == [("call 1", "again")]
    asks, question, *prompts = re.sub(r"\d+:\d\d  ", "0:00  ", shown.getvalue()).rstrip("\n").split("\n")
    assert asks == "\r\x1b[2K0:00  abc asks 1/4 a long message"
    assert question == "Was it sent?"
    assert [line.count("(again/skip)") for line in prompts] == [1, 1]
    assert prompts[-1].endswith("\r\x1b[2K0:00  abc done 1/4 a long message")
