"""Projects of other tools as bots: what is read, what is written, and where the work then stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import size
from trysquare import ConfigurationError
from trysquare.bots.definition.check import check_folder
from trysquare.bots.definition.checklists import Group, Item, Outline, read_groups, read_outline
from trysquare.bots.definition.folder import MAX_TOOL_NAME
from trysquare.bots.definition.imported import bot_of, write_imported
from trysquare.cli.main import main

TASKS = """---
description: "Tasks"
---

# Tasks: Photo albums

**Input**: `/specs/001-photo-albums/`

<!--
- [ ] T000 A sample that is none
-->

## Phase 1: Setup (Shared Infrastructure)

**Purpose**: A project that starts

- [x] T001 Create the project per plan
- [X] T002 [P] Configure the linter in pyproject.toml

---

## Phase 2: User Story 1 - Albums (Priority: P1)

### Tests for User Story 1

- [ ] T003 [P] [US1] Contract test for `GET /albums` in tests/test_albums.py

### Implementation for User Story 1

- [x] T004 [US1] Album model in src/models/album.py
  with a name and a date
- [ ] T005 [US1] Gather context
"""
CHANGE = "## 1. Database\n- [x] 1.1 Add the column\n- [ ] 1.2 Migrate\n\n## 2. Pages\n- [ ] 2.1 Show it\n"


def write(root: Path, **files: str) -> Path:
    for path, text in files.items():
        file = root / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def speckit(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    feature = root / "specs" / "001-photo-albums"
    feature.mkdir(parents=True)
    (feature / "tasks.md").write_text(TASKS, encoding="utf-8")
    (feature / "spec.md").write_text("# Albums\n", encoding="utf-8")
    (feature / "plan.md").write_text("# Plan\n", encoding="utf-8")
    (root / "specs" / "002-login").mkdir()
    (root / "specs" / "002-login" / "spec.md").write_text("# Login\n", encoding="utf-8")
    memory = root / ".specify" / "memory"
    memory.mkdir(parents=True)
    (memory / "constitution.md").write_text("# Constitution\n", encoding="utf-8")
    return root


@pytest.fixture
def openspec(tmp_path: Path) -> Path:
    changes = tmp_path / "site" / "openspec" / "changes"
    for name, tasks in (("add-search", CHANGE), ("remove-login", "- [ ] Remove it\n"), ("archive/2026-old", "- [x] a")):
        (changes / name).mkdir(parents=True)
        (changes / name / "tasks.md").write_text(tasks, encoding="utf-8")
        (changes / name / "proposal.md").write_text("## Why\n", encoding="utf-8")
    (changes.parent / "project.md").write_text("# Site\n", encoding="utf-8")
    return tmp_path / "site"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["bot", "import", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def state_of(project: Path) -> dict[str, Any]:
    return json.loads((project / "workflow_state.json").read_text(encoding="utf-8"))


def test_one_feature_of_spec_kit_has_a_behavior_for_each_phase(
    speckit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(speckit)
    report = run(capsys, ".")
    assert (report["layout"], report["bot"], report["items"], report["done"]) == ("spec-kit", "photo_albums", 5, 3)
    assert [each["name"] for each in report["behaviors"]] == ["phase_1_setup", "phase_2_user_story_1"]
    assert report["left_out"] == ["specs/002-login: no tasks.md"]
    checked = check_folder(speckit / "photo_albums")
    assert checked.findings == ()
    assert checked.definition is not None
    names = [each.name for each in checked.definition.actions_of("phase_2_user_story_1")]
    # What is done comes first, so that a walk never comes to it again.
    assert [name[:13] for name in names] == ["t004_album_mo", "t003_contract", "t005_gather_c"]
    said = json.dumps([each.instructions for each in checked.definition.behaviors])
    assert "specs/001-photo-albums/spec.md" in said
    assert ".specify/memory/constitution.md" in json.dumps(checked.definition.instructions)
    [model] = [each for each in checked.definition.actions if each.name.startswith("t004")]
    assert "with a name and a date" in model.instructions
    assert "under Implementation for User Story 1" in model.instructions[-1]


def test_checked_items_are_completed_and_the_first_open_one_is_current(
    speckit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(speckit)
    report = run(capsys, ".")
    state = state_of(speckit)
    assert state["current_action"] == f"photo_albums.{report['current_action']}"
    assert report["current_action"].startswith("phase_2_user_story_1.t003")
    completed = [each["action_state"].rpartition(".")[2][:4] for each in state["completed_actions"]]
    assert completed == ["t001", "t002", "t004"]
    assert state["completed_actions"][0]["reason"] == "checked in specs/001-photo-albums/tasks.md:17"
    assert {each["approval"] for each in state["completed_actions"]} == {"claimed"}


def test_several_changes_of_openspec_are_a_behavior_each_without_the_archive(
    openspec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(openspec)
    report = run(capsys, ".", "--into", "bots")
    assert (report["layout"], report["bot"]) == ("OpenSpec", "site")
    assert [(each["name"], each["items"]) for each in report["behaviors"]] == [("add_search", 3), ("remove_login", 1)]
    assert check_folder(openspec / "bots" / "site").findings == ()


def test_the_folder_of_one_change_has_a_behavior_for_each_of_its_headings(openspec: Path) -> None:
    outline = read_outline(openspec / "openspec" / "changes" / "add-search")
    assert (outline.layout, outline.name) == ("OpenSpec", "add-search")
    assert [group.title for group in outline.groups] == ["1. Database", "2. Pages"]
    assert bot_of(outline).behaviors == ("database", "pages")


def test_a_preview_writes_nothing(
    speckit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(speckit)
    before = sorted(speckit.rglob("*"))
    report = run(capsys, ".", "--dry-run")
    assert report["written"] is False
    assert report["items"] == 5
    assert sorted(speckit.rglob("*")) == before


def test_nothing_is_overwritten(
    speckit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(speckit)
    run(capsys, ".")
    before = {path: path.read_bytes() for path in speckit.rglob("*") if path.is_file()}
    assert main(["bot", "import", "."]) == 2
    assert "already exists" in capsys.readouterr().err
    # The same bot elsewhere would continue the run of the first.
    assert main(["bot", "import", ".", "--into", "bots"]) == 2
    assert "--name" in capsys.readouterr().err
    assert not (speckit / "bots" / "photo_albums").exists()
    kept = {path: path.read_bytes() for path in before if "state.db" not in path.name}
    assert kept == {path: data for path, data in before.items() if "state.db" not in path.name}


@pytest.mark.parametrize(
    ("files", "path", "words"),
    [
        ({"src__main.py": "pass"}, ".", ["neither", "openspec/changes", "TODO.md"]),
        ({"NOTES.md": "# Notes\n\n- a point\n"}, "NOTES.md", ["no checkbox", "- [ ] text"]),
        ({".specify__x.md": "", "specs__001-a__spec.md": "# A"}, ".", ["no feature has tasks", "specs/001-a"]),
        ({"openspec__project.md": "# A"}, ".", ["no active change has tasks"]),
        ({"a.txt": ""}, "missing", ["no such file"]),
    ],
)
def test_what_is_not_recognized_is_said_as_that(
    files: dict[str, str], path: str, words: list[str], tmp_path: Path
) -> None:
    write(tmp_path, **files)
    with pytest.raises(ConfigurationError) as caught:
        read_outline(tmp_path / path)
    assert [word for word in words if word not in str(caught.value)] == []


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"- [ ] \xff")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        read_outline(tmp_path / "a.md")


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("- [ ] a\n- [x] b\n", {"Tasks": ["a", "b"]}),
        ("# T\n\n- [ ] a\n\n## B\n\n- [ ] b\n\n## C\n\ntext\n", {"T": ["a"], "B": ["b"]}),
        ("# A\n- [ ] a\n# B\n1. [x] b\n", {"A": ["a"], "B": ["b"]}),
        ("T\n=\n\nA\n---\n\n* [ ] a\n\nB\n---\n+ [ ] b\n", {"A": ["a"], "B": ["b"]}),
        ("# T\n## A\n### B\n- [ ] a\n### C\n- [ ] b\n", {"B": ["a"], "C": ["b"]}),
        ("# T\n## A\n- [ ] a\n```\n- [ ] no\n```\n- [ ] b\n  - [x] c\n", {"A": ["a", "b", "c"]}),
        ("# T\n## A\n```\n- [ ] after a fence that never ends\n", {"A": ["after a fence that never ends"]}),
        ("# T\r\n## A\r\n- [ ] a\r\n- [link](x)\r\n- [a] b\r\n", {"A": ["a"]}),
    ],
)
def test_checkboxes_are_grouped_by_the_highest_headings_that_tell_them_apart(
    text: str, groups: dict[str, list[str]]
) -> None:
    found = read_groups(text)[1]
    assert {group.title: [item.text for item in group.items] for group in found} == groups


def outline_of(root: Path, titles: list[tuple[str, list[str]]]) -> Outline:
    groups = tuple(
        Group(title=title, file="a.md", items=tuple(Item(text=text, done=False, line=1) for text in texts))
        for title, texts in titles
    )
    return Outline(layout="Markdown", root=root, name="a", title="A", groups=groups)


TEXTS = st.one_of(
    st.text(min_size=1, max_size=120),
    st.sampled_from(
        ["close", "Tool", "gather context", "Initialize project", "restart server", "写", "a b", "b", "1", "1: 2"]
    ),
)


@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=12)), min_size=1, max_size=5))
@settings(max_examples=size(25, 300), deadline=None)
def test_any_texts_give_a_bot_in_which_check_finds_nothing(
    tmp_path_factory: pytest.TempPathFactory, titles: list[tuple[str, list[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("bot") / "a"
    bot = bot_of(outline_of(folder, titles))
    write_imported(bot, folder)
    checked = check_folder(folder)
    assert checked.findings == ()
    assert checked.definition is not None
    names = [tool.name for tool in checked.definition.tool_names()]
    assert len(names) == 3 + len(titles) + sum(len(texts) for _, texts in titles)
    assert max(map(len, names)) <= MAX_TOOL_NAME


def test_a_name_that_is_too_long_for_those_of_the_tools_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="too long"):
        bot_of(outline_of(tmp_path, [("A long heading of a list", ["a"])]), "a" * 50)


def test_a_list_of_which_all_is_done_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(write(tmp_path, **{"TODO.md": "- [x] a\n- [x] b\n"}))
    assert run(capsys, "TODO.md")["current_action"] is None
    assert state_of(tmp_path)["workflow_complete"] is True
