"""A state file that git merged, with conflict markers or with the lines of both sides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bots.faults.desk import PLAN, Desk, desk
from tests.bots.git_checkouts import commit, git, repository
from trysquare.bots.workflow.merged import read_file
from trysquare.bots.workflow.state_file import UnreadableState, parse_state
from trysquare.bots.workflow.sync import NAME


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Desk, Desk]:
    """Two clones of a project, with a bot in each; the state file is committed."""
    repository(tmp_path / "ada")
    ada = desk(tmp_path / "ada")
    ada.close()
    commit(ada.project)
    git(tmp_path, "clone", "-q", str(ada.project), "bob")
    return ada, desk(tmp_path / "bob")


def merge(ada: Desk, bob: Desk) -> None:
    """Bob's work, merged into Ada's checkout."""
    for each in (ada, bob):
        commit(each.project)
    git(ada.project, "pull", "-q", "--no-rebase", str(bob.project), "main", fails=True)


def done(here: Desk, run: str = "main") -> set[str]:
    state = here.load(run).state
    return {str(each) for each in state.latest if state.is_completed(each)}


@pytest.mark.parametrize("attributes", ["", f"{NAME} merge=union\n"])
def test_two_people_in_different_behaviors_lose_nothing(clones: tuple[Desk, Desk], attributes: str) -> None:
    ada, bob = clones
    for each in clones if attributes else ():
        (each.project / ".gitattributes").write_text(attributes)
    ada.close()
    bob.open("discovery.initialize_project")
    bob.close()
    bob.close()
    merge(ada, bob)
    text = ada.file.read_text(encoding="utf-8")
    assert ("<<<<<<<" in text) == (not attributes)

    found = ada.load()
    assert any("conflict markers" in note or "merged by git" in note for note in found.notices.inconsistent)
    assert found.notices.recovered == ()
    assert done(ada) == {
        "shape.initialize_project", "shape.gather_context", "discovery.initialize_project", "discovery.gather_context",
    }  # fmt: skip
    assert str(found.state.current) in ("shape.validate_rules", "discovery.validate_rules")
    assert json.loads(ada.file.read_text(encoding="utf-8"))["version"] == found.state.version
    assert ada.load().notices.inconsistent == (), "the file is written anew, and reported once"


def test_the_lines_of_the_markers_are_named(clones: tuple[Desk, Desk]) -> None:
    ada, bob = clones
    ada.close()
    bob.open("discovery.initialize_project")
    merge(ada, bob)
    lines = ada.file.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines, start=1) if line.startswith("<<<<<<<"))
    [note] = [each for each in ada.load().notices.inconsistent if "conflict markers" in each]
    assert str(first) in note


def test_both_may_complete_the_same_action(clones: tuple[Desk, Desk]) -> None:
    ada, bob = clones
    ada.close()
    bob.close()
    bob.close()
    merge(ada, bob)
    assert done(ada) == {"shape.initialize_project", "shape.gather_context", "shape.validate_rules"}
    assert ada.current() == "discovery.initialize_project"


def test_a_conflict_that_cannot_be_united_is_named_and_set_aside(tmp_path: Path) -> None:
    here = desk(tmp_path)
    here.close()
    here.file.write_text("<<<<<<< ours\n{\n=======\n]\n>>>>>>> theirs\n")
    found = here.load()
    assert "conflict markers of git in the lines 1, 3, 5" in found.notices.recovered[0]
    assert done(here) == {"shape.initialize_project"}
    assert len(list(tmp_path.glob(f"{NAME}.corrupt-*"))) == 1


@pytest.mark.parametrize("text", ["{", "[", "", '{"current_action": "a" "b"}', "{,}", "}{"])
def test_what_was_not_merged_is_as_unreadable_as_ever(text: str) -> None:
    with pytest.raises(UnreadableState):
        parse_state(PLAN, text)


def test_a_gate_holds_in_a_merge(tmp_path: Path) -> None:
    repository(tmp_path / "ada")
    ada = desk(tmp_path / "ada", needs_proof=lambda at: at.action == "validate_rules")
    ada.close()
    ada.close()
    commit(ada.project)
    git(tmp_path, "clone", "-q", str(ada.project), "bob")
    bob = desk(tmp_path / "bob")
    bob.close()
    ada.open("discovery.gather_context")
    merge(ada, bob)
    assert "human" in ada.load().notices.warnings[0]
    assert "shape.validate_rules" not in done(ada)


def test_a_file_that_is_cut_off_between_two_lines_is_not_taken_for_a_merged_one() -> None:
    document = {
        "current_behavior": "mini.shape",
        "current_action": "mini.shape.gather_context",
        "behaviors": {"shape": {"current_action": "mini.shape.gather_context"}},
        "completed_actions": [],
    }
    lines = json.dumps(document, indent=2).splitlines()
    for end in range(1, len(lines)):
        with pytest.raises(ValueError):
            read_file("\n".join(lines[:end]))
