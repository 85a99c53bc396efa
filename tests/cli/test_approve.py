"""`trysquare approve`: only a person at a terminal lets a waiting call run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Run, Types

CALL = ("call", "remove", "what=all", "--tools", "demo_tools:tools")


@pytest.fixture
def code(run: Run) -> str:
    """The code of a call that waits."""
    found = re.search(r"trysquare approve (\S+)", run(*CALL).out)
    assert found is not None
    return found[1]


def test_without_a_code_the_waiting_calls_are_listed(run: Run, code: str) -> None:
    listing = run("approve").out
    assert code in listing
    assert "Remove all?" in listing
    [waiting] = run("approve", "--json").json
    assert (waiting["code"], waiting["arguments"]) == (code, {"what": "all"})


def test_nothing_waits_at_first_and_looking_makes_no_file(run: Run, project: Path, own_home: Path) -> None:
    assert run("approve").out == "No pending calls.\n"
    assert not list(own_home.rglob("state.db"))
    assert not (project / ".trysquare").exists()


def test_a_yes_lets_exactly_that_call_run_once(run: Run, types: Types, code: str) -> None:
    types("yes\n")
    ran = run("approve", code)
    assert ran.code == 0
    assert "Remove all?" in ran.out
    assert '"what": "all"' in ran.out
    assert "Approved by" in ran.out
    types(None)
    assert run(*CALL).out.startswith("removed all")
    assert "CONSENT_REQUIRED" in run(*CALL).out


def test_a_no_leaves_the_call_waiting(run: Run, types: Types, code: str) -> None:
    types("perhaps\nno\n")
    ran = run("approve", code)
    assert ran.code == 1
    assert "yes or no" in ran.err
    assert code in run("approve").out


def test_a_refusal_is_recorded(run: Run, code: str) -> None:
    assert "Refused by" in run("approve", code, "--refuse").out
    ran = run(*CALL)
    assert ran.code == 1
    assert "CONSENT_REFUSED" in ran.out


def test_without_a_terminal_nothing_is_approved(run: Run, code: str) -> None:
    ran = run("approve", code)
    assert ran.code == 2
    assert "stdin is not a terminal" in ran.err
    assert code in run("approve").out


def test_a_wrong_code_is_not_accepted(run: Run, types: Types, code: str) -> None:
    types("yes\n")
    ran = run("approve", "AAAA-AAAA")
    assert ran.code == 1
    assert "Unknown code" in ran.err


def test_a_code_without_any_state_says_where_to_look(run: Run) -> None:
    ran = run("approve", "AAAA-AAAA")
    assert ran.code == 2
    assert "--project FOLDER" in ran.err


def test_a_marked_project_keeps_its_state_in_itself_and_others_with_the_user(
    run: Run, project: Path, own_home: Path
) -> None:
    run(*CALL)
    assert (own_home / "state" / "trysquare" / "state.db").exists()
    assert not (project / ".trysquare").exists()
    (project / "trysquare.toml").write_text('tools = "demo_tools:tools"\n', encoding="utf-8")
    run("call", "remove", "what=all")
    assert (project / ".trysquare" / "state.db").exists()
    assert len(run("approve", "--json").json) == 2


def test_the_command_that_is_handed_out_works_from_any_folder(
    run: Run, types: Types, project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "trysquare.toml").write_text('tools = "demo_tools:tools"\n', encoding="utf-8")
    command = run("call", "remove", "what=all", "--json").json["approval"]["command"]
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    types("yes\n")
    assert "Approved by" in run(*shlex.split(command)[1:]).out


def test_receipts_tell_what_was_decided_by_whom_and_for_which_arguments(run: Run, code: str) -> None:
    assert run("approve", "--receipts").out == "No decisions yet.\n"
    run("approve", code, "--refuse")
    [receipt] = run("approve", "--receipts", "--json").json
    assert (receipt["tool"], receipt["approved"], receipt["how"], len(receipt["digest"])) == (
        "remove",
        False,
        "cli",
        64,
    )
    assert "refused" in run("approve", "--receipts").out
