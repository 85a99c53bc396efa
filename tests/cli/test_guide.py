"""`trysquare guide`: list, check, projects and export, as a person runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.guide.opened import write_guide

GUIDE = ("--guide", "docs/guide")


@pytest.fixture
def content(project: Path) -> Path:
    return write_guide(project)


def test_list_shows_what_there_is(run: Run, project: Path, content: Path) -> None:
    (content / "guide.json").write_text('{"collections": {"all": {"expressions": ["lang", "docs"]}}}', encoding="utf-8")
    shown = run("guide", "list", *GUIDE)
    assert shown.code == 0
    assert "5 documents in project" in shown.out
    assert "lang, docs" in shown.out
    assert run("guide", "list", "--json", *GUIDE).json["categories"]["lang"] == ["lang/python", "lang/rust"]


def test_check_fails_where_something_is_wrong(run: Run, content: Path) -> None:
    sound = run("guide", "check", *GUIDE)
    assert (sound.code, sound.out) == (0, "OK: no problems found.\n")
    (content / "lang/bad.md").write_text("---\ntype: wrong\n---\n", encoding="utf-8")
    wrong = run("guide", "check", *GUIDE)
    assert wrong.code == 1
    assert "unreadable  lang/bad.md" in wrong.out
    assert run("guide", "check", "--json", *GUIDE).json[0]["where"] == "lang/bad.md"


def test_projects_names_the_default(run: Run, project: Path, content: Path) -> None:
    shown = run("guide", "projects", *GUIDE)
    assert f"{project.name} (default)  {project}" in shown.out
    assert [one["name"] for one in run("guide", "projects", "--json", *GUIDE).json] == [project.name]


def test_an_export_is_written_remembered_checked_and_written_again(run: Run, project: Path, content: Path) -> None:
    first = run("guide", "export", "lang", *GUIDE)
    assert (first.code, first.out) == (0, "Created AGENTS.md\n")
    assert run("guide", "export", "--check", *GUIDE).code == 0
    (content / "lang/rust.md").write_text("Run clippy.\n", encoding="utf-8")
    drifted = run("guide", "export", "--check", *GUIDE)
    assert drifted.code == 1
    row, total = drifted.out.splitlines()
    assert row.startswith("drifted  AGENTS.md: ")
    assert "1 drifted" in total
    assert run("guide", "export", "--check", "--json", *GUIDE).json["files"] == {"AGENTS.md": "content changed"}
    assert run("guide", "export", *GUIDE).out == "Updated AGENTS.md\n"
    assert "Run clippy." in (project / "AGENTS.md").read_text(encoding="utf-8")


def test_an_edited_part_is_overwritten_by_force_only(run: Run, project: Path, content: Path) -> None:
    run("guide", "export", "lang", *GUIDE)
    file = project / "AGENTS.md"
    file.write_text(file.read_text(encoding="utf-8").replace("four", "five"), encoding="utf-8")
    refused = run("guide", "export", *GUIDE)
    assert refused.code == 1
    assert "Edited by hand" in refused.err
    assert "five" in file.read_text(encoding="utf-8")
    assert run("guide", "export", "--force", *GUIDE).out == "Updated AGENTS.md, overwriting edits\n"
    assert "four" in file.read_text(encoding="utf-8")


def test_a_check_of_one_expression_writes_and_remembers_nothing(run: Run, project: Path, content: Path) -> None:
    missing = run("guide", "export", "lang", "--format", "claude", "--check", *GUIDE)
    assert (missing.code, "CLAUDE.md: missing" in missing.out) == (1, True)
    assert not (project / "CLAUDE.md").exists()
    assert not (content / "guide.json").exists()


def test_an_export_goes_to_the_given_path_but_never_outside(run: Run, project: Path, content: Path) -> None:
    assert run("guide", "export", "lang", "--output", "notes/lang.md", *GUIDE).code == 0
    assert (project / "notes/lang.md").exists()
    outside = run("guide", "export", "lang", "--output", "../lang.md", *GUIDE)
    assert outside.code == 1
    assert "inside the project" in outside.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("guide", "expot"), 2, "did you mean `export`?"),
        (("guide", "list"), 2, "no content directory is configured"),
        (("guide", "list", "--guide", "none"), 2, "directory not found"),
        (("guide", "export", *GUIDE), 2, "no exports are configured"),
        (("guide", "export", "nope", *GUIDE), 1, "Unknown category or collection `nope`"),
        (("guide", "export", "lang", "--format", "word", *GUIDE), 2, "unknown value"),
    ],
)
def test_wrong_use_says_what_to_do(run: Run, content: Path, words: tuple[str, ...], code: int, message: str) -> None:
    ended = run(*words)
    assert (ended.code, message in ended.err) == (code, True), ended.err
    assert ended.out == ""


def test_looking_leaves_no_trace(run: Run, project: Path, content: Path, own_home: Path) -> None:
    before = sorted(project.rglob("*"))
    for words in (("list",), ("check",), ("projects",)):
        run("guide", *words, *GUIDE)
    assert sorted(path for path in project.rglob("*") if "__pycache__" not in path.parts) == before
    assert not list(own_home.iterdir())
