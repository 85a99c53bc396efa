"""Whatever is called, edited, deleted, filled or killed: no completion is lost, made twice, or made without proof."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.bots.faults import crashing
from tests.bots.faults.tool_machine import Tools
from tests.bots.faults.tool_site import LAWS, Site
from tests.support import size
from trysquare.bots.gates import Gates
from trysquare.bots.workflow import conflicts as window_rules
from trysquare.store.idempotency import Claim
from trysquare.store.workflows import WorkflowRows

SETTINGS = settings(
    max_examples=size(250, 10_000),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.timeout(3600)
def test_no_tool_loses_a_completion_or_makes_one_twice_or_without_proof() -> None:
    run_state_machine_as_test(Tools, settings=SETTINGS)


def test_the_machine_knows_every_tool() -> None:
    site = Site()
    for bot, law in LAWS.items():
        found = site.loop.run_until_complete(site.servers[0].toolset(bot)).tools()
        others = {f"{bot}_{name}" for name in ("close_current_action", "restart_server", "find", "do")}
        assert {tool.name for tool in found} == {*law.tools(), *others}
    site.remove()


def _no_proof() -> AbstractContextManager[object]:
    return mock.patch.object(Gates, "needs_proof", return_value=False)


def _edits_pass() -> AbstractContextManager[object]:
    return mock.patch.object(window_rules, "passed_gate", return_value=None)


def _keys_forget() -> AbstractContextManager[object]:
    def claim(_rows: WorkflowRows, key: str, **names: str) -> Claim:
        return Claim(key=key, tool=names["tool"], principal=names["principal"], token=secrets.token_hex(8))

    def forget(*_: object, **__: object) -> None:
        return None

    return mock.patch.multiple(WorkflowRows, claim=claim, finish=forget, find_answer=forget)


def _torn() -> AbstractContextManager[object]:
    """Each statement is a transaction of its own."""
    execute = crashing.Connection.execute

    def committed(connection: Any, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        done = execute(connection, sql, parameters)
        if not sql.startswith("SELECT") and "RETURNING" not in sql:
            execute(connection, "COMMIT")
            execute(connection, "BEGIN IMMEDIATE")
        return done

    return mock.patch.object(crashing.Connection, "execute", committed)


BREAKS = {
    "a gate that asks nobody": _no_proof,
    "edits that pass every gate": _edits_pass,
    "request keys that are forgotten": _keys_forget,
    "changes that are made by halves": _torn,
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS)
def test_the_machine_finds(broken: Callable[[], AbstractContextManager[object]]) -> None:
    """A machine that finds nothing must have looked: each of these faults of the program makes it fail."""
    quick = settings(
        SETTINGS,
        max_examples=2000,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        print_blob=False,
    )
    with broken(), pytest.raises(AssertionError):
        run_state_machine_as_test(Tools, settings=quick)


def test_a_run_that_ended_at_an_open_action_does_not_report_it_completed() -> None:
    """Step by step, since chance takes long to get there: the pointer of an ended run is moved to an open action."""
    who: dict[str, Any] = {"server": 0, "bot": "mini", "run": "main", "points": 0, "keyed": False, "fault": "none"}
    machine = Tools()
    machine.begin("none")
    for how, pick in (("drop", 0), ("pointer", 4), ("pointer", 0)):
        machine.finish(**who)
        machine.edit(bot="mini", run="main", how=how, pick=pick)
    ended = machine.run(0, "mini_tool", {})
    closed = machine.run(0, "mini_close_current_action", {})
    assert (ended.fields["action"], ended.fields["action_completed"]) == ("initialize_project", False)
    assert (closed.fields["completed_action"], closed.fields["action_completed"]) == (None, False)
    machine.hand.forget("mini")
    machine.teardown()


def test_the_machine_finds_an_edit_that_drops_what_no_file_ever_showed() -> None:
    """Step by step, since chance takes long to get there: a close that could not be shown, an edit, and a call."""
    who: dict[str, Any] = {"server": 0, "bot": "mini", "run": "main", "points": 0, "keyed": False}
    shown = dict.fromkeys(("main", "story-12"), 2**50)
    machine = Tools()
    machine.begin("none")
    machine.finish(**who, fault="none")
    machine.finish(**who, fault="shut")
    machine.edit(bot="mini", run="main", how="pointer", pick=0)
    with (
        mock.patch.object(window_rules, "_exported_versions", return_value=shown),
        pytest.raises(AssertionError, match="was lost"),
    ):
        machine.finish(**who, fault="none")
    machine.teardown()
