"""The parts of a run by themselves: budgets, what is bounded, when a model is stuck, bundles, copies and facts."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare import ConfigurationError, Tool, tool
from trysquare.agents import AgentRequest
from trysquare.agents.budget import Budget, Spent, exhausted
from trysquare.agents.capabilities import BUNDLES, Bundle, bundle, local_probes, match_bundle, probe_all
from trysquare.agents.completion import Evidence, StuckDetector
from trysquare.agents.conversation import Notes
from trysquare.agents.jobs import InProcessJobs
from trysquare.agents.run import AgentOutcome, WorkspaceNarrowing, workspace_facts
from trysquare.agents.runner import working_copy
from trysquare.agents.tool_calls import CallRecord, bounded
from trysquare.agents.toolbox import offer_of
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.models import CallRequest, Usage


def named(name: str, *needs: str) -> Tool:
    async def work(path: str = "", request_key: str = "") -> str:
        """Work."""
        return path

    return tool(work, name=name, needs=needs)


def record(name: str = "look", text: str = "seen", *, success: bool = True, **arguments: object) -> CallRecord:
    return CallRecord(call=CallRequest(id="1", name=name, arguments=dict(arguments)), text=text, success=success)


@given(st.text(max_size=400), st.integers(min_value=120, max_value=300))
def test_a_bounded_text_is_never_longer_than_its_limit_and_keeps_both_ends(text: str, limit: int) -> None:
    short = bounded(text, limit)
    assert len(short) <= limit
    if text and len(text) > limit:
        assert short[0] == text[0]
        assert short[-1] == text[-1]
    else:
        assert short == text


@pytest.mark.parametrize(
    ("budget", "spent"),
    [
        (Budget(steps=2), Spent(steps=2)),
        (Budget(tokens=10), Spent(usage=Usage(prompt_tokens=6, completion_tokens=4))),
        (Budget(seconds=1.5), Spent(seconds=1.6)),
        (Budget(cost=0.1), Spent(usage=Usage(cost=0.1))),
    ],
)
def test_a_budget_ends_with_any_of_its_parts(budget: Budget, spent: Spent) -> None:
    assert exhausted(budget, spent) is not None
    assert exhausted(budget, Spent()) is None


def test_steps_in_which_everything_fails_bring_a_warning_and_then_end_the_run() -> None:
    watch = StuckDetector()
    verdicts = [watch.observe([record(success=False, text=f"no {step}", step=step)]) for step in range(6)]
    assert [verdict.warning is not None for verdict in verdicts[:5]] == [False, False, True, True, True]
    assert "6 steps" in (verdicts[5].stopped or "")


def test_a_step_that_brings_something_new_starts_the_count_anew() -> None:
    watch = StuckDetector()
    for step in range(20):
        verdict = watch.observe([record(success=step % 3 == 0, text=f"{step}", step=step)])
        assert verdict.stopped is None


def test_the_same_call_with_another_answer_gets_more_patience_where_it_only_reads() -> None:
    reading, changing = StuckDetector(lambda record: True), StuckDetector()
    stopped = [
        next(step for step in range(1, 30) if watch.observe([record(text=f"{step}")]).stopped is not None)
        for watch in (reading, changing)
    ]
    assert stopped == [12, 6]


def test_notes_are_kept_closed_and_bounded() -> None:
    notes = Notes()
    notes.decide("use sqlite")
    assert notes.open_task("write tests") == "Task 1 is open."
    notes.open_task("write docs")
    notes.close_task(1)
    assert notes.lines() == ["- decided: use sqlite", "- open task 2: write docs"]
    with pytest.raises(InvalidArguments, match="Open tasks: 2"):
        notes.close_task(9)


def ran_tests(passed: bool, **arguments: object) -> CallRecord:
    call = CallRequest(id="1", name="test", arguments=dict(arguments))
    return CallRecord(call=call, text="", success=passed, passed=passed)


def changed(*files: str) -> CallRecord:
    return CallRecord(call=CallRequest(id="1", name="file", arguments={}), text="", success=True, modified_files=files)


@pytest.mark.parametrize(
    ("records", "passed"),
    [
        ([], False),
        ([ran_tests(True)], True),
        ([ran_tests(True), changed("a")], False),
        ([changed("a"), ran_tests(True)], True),
        ([ran_tests(True), ran_tests(False)], False),
        ([ran_tests(False, run="one"), ran_tests(True, run="other")], False),
        ([ran_tests(False, run="one"), ran_tests(True, run="one")], True),
        ([ran_tests(False, run="one"), ran_tests(True)], True),
        ([ran_tests(False), ran_tests(True, run="one")], False),
    ],
)
def test_tests_passed_only_if_nothing_changed_since_and_none_that_failed_is_left_out(
    records: list[CallRecord], passed: bool
) -> None:
    ledger = Evidence()
    for one in records:
        ledger.note(one)
    assert ledger.tests_passed is passed


def test_a_bundle_lists_what_is_missing_and_why() -> None:
    capabilities = {"git": "git is not installed", "network": None}
    fitting = match_bundle(
        Bundle(required=("file", "gone"), optional=("git_*", "feed", "file")),
        [named("file"), named("git_log", "git"), named("feed", "network"), named("other")],
        capabilities,
    )
    assert [tool.name for tool in fitting.required] == ["file"]
    assert [tool.name for tool in fitting.optional] == ["feed"]
    assert fitting.missing_required.keys() == {"gone"}
    assert fitting.missing_optional == {"git_log": "git is not installed"}


def test_a_bundle_that_does_not_exist_is_refused_with_the_nearest() -> None:
    assert bundle("code") is BUNDLES["code"]
    with pytest.raises(ConfigurationError, match="`code`"):
        bundle("codes")


async def test_a_need_that_nobody_can_probe_counts_as_missing(tmp_path: Path) -> None:
    capabilities = await probe_all([named("a", "moonlight")], local_probes(tmp_path))
    assert "moonlight" in (capabilities["moonlight"] or "")


async def test_git_is_probed_for_real(tmp_path: Path) -> None:
    capabilities = await probe_all([named("a", "git")], local_probes(tmp_path))
    assert capabilities["git"], "a folder that is not a repository"


async def test_a_copy_is_whole_but_for_what_can_be_made_again_and_gone_afterwards(tmp_path: Path) -> None:
    for name in ("src/a.py", "node_modules/x.js", ".trysquare/state.db", ".git/HEAD"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "out").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    async with working_copy(tmp_path) as copy:
        found = sorted(str(path.relative_to(copy)) for path in copy.rglob("*") if not path.is_dir())
        assert found == [".git/HEAD", "src/a.py"]
        assert (copy / "out").is_symlink()
    assert not copy.exists()


async def test_the_copy_of_a_worktree_does_not_lead_back_to_its_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /somewhere/.git/worktrees/x\n", encoding="utf-8")
    async with working_copy(tmp_path) as copy:
        assert not (copy / ".git").exists()


def test_a_model_never_sees_the_key_that_makes_a_call_safe_to_repeat() -> None:
    offer = offer_of(named("a"))
    assert list(offer.schema["properties"]) == ["path"]
    assert list(offer.flat["properties"]) == ["path"]


def test_facts_are_the_files_and_lines_that_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1\n2\n3\n", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.py").write_text("1\n", encoding="utf-8")
    facts = workspace_facts(tmp_path)
    assert (facts.files, facts.branches, facts.most_lines) == (["a.py", "sub/b.py"], None, 4)


def test_a_marked_argument_is_narrowed_to_files_that_exist_until_the_workspace_changes(tmp_path: Path) -> None:
    marked: JsonObject = {"type": "string", "x-trysquare-kind": "existing_file"}
    offer = offer_of(named("a"))
    schema: JsonObject = {**offer.schema, "properties": {"path": marked}}
    (tmp_path / "a.py").touch()
    narrow = WorkspaceNarrowing(tmp_path)

    def allowed() -> list[str]:
        narrowed = narrow(replace(offer, schema=schema))
        assert narrowed is not None
        return narrowed.schema["properties"]["path"]["enum"]

    assert allowed() == ["a.py"]
    (tmp_path / "b.py").touch()
    assert allowed() == ["a.py"]
    narrow.forget()
    assert allowed() == ["a.py", "b.py"]


async def test_a_run_that_is_cancelled_before_its_first_step_is_cancelled() -> None:
    async def start(request: AgentRequest, journal: object) -> AgentOutcome:
        raise AssertionError("it must not start")

    jobs = InProcessJobs(start)
    started = await jobs.start(AgentRequest(agent="coder", task="Work"), principal="ada")
    cancelled = await jobs.cancel(started.job, principal="ada")
    assert (started.state, cancelled.state) == ("running", "cancelled")
