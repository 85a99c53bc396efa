"""Checking a whole content: what cannot be read, what leads nowhere, and what contradicts itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guide.opened import write_guide
from trysquare.guide.lint import Finding, check_content
from trysquare.guide.projects import Projects
from trysquare.providers import guide_config, open_states
from trysquare.settings import Settings


def checked(root: Path, documents: dict[str, str], guide_file: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """What a check finds, as kinds and places, over some documents and a `guide.json`."""
    folder = write_guide(root, documents)
    (folder / "guide.json").write_text(json.dumps(guide_file or {}), encoding="utf-8")
    return [(finding.kind, finding.where) for finding in findings(root)]


def findings(root: Path) -> list[Finding]:
    settings = Settings.model_validate({"project": root, "guide": [root / "docs/guide"]})
    with open_states() as states:
        projects = Projects(guide_config(settings), project_state=states.of_project, user_state=states.of_user())
        try:
            return check_content(projects.get())
        finally:
            projects.close()


def test_sound_content_has_no_findings(tmp_path: Path) -> None:
    collections = {"inner": {"expressions": ["lang/python"]}, "outer": {"expressions": ["inner", "docs"]}}
    documents = {"lang/python.md": "Use four spaces.\n", "docs/api.md": "JSON.\n"}
    assert checked(tmp_path, documents, {"collections": collections}) == []


@pytest.mark.parametrize(
    ("documents", "guide_file", "found"),
    [
        ({"lang/a.md": "---\ntype: wrong\n---\nx\n"}, {}, [("unreadable", "lang/a.md")]),
        ({"lang/a.md": "x"}, {"categories": {"gone": {"dir": "gone"}}}, [("unreadable", "gone")]),
        ({"lang/a.md": "x"}, {"collections": {"c": {"expressions": ["no"]}}}, [("reference", "collection c")]),
        ({"lang/a.md": "x"}, {"presets": {"p": {"expressions": ["lang/b"]}}}, [("reference", "preset p")]),
        ({"lang/a.md": "x"}, {"exports": [{"path": "A.md", "expression": "&"}]}, [("reference", "export A.md")]),
        ({"lang/a.md": "---\ntemplate: true\n---\n{{ open"}, {}, [("template", "lang/a")]),
        ({"lang/a.md": "Always use tabs\n", "lang/b.md": "\nNever use tabs\n"}, {}, [("contradiction", "lang/a:1")]),
    ],
)  # fmt: skip
def test_each_kind_of_fault_is_found_with_its_place(
    tmp_path: Path, documents: dict[str, str], guide_file: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert checked(tmp_path, documents, guide_file) == found


def test_a_cycle_is_reported_for_each_collection_in_it(tmp_path: Path) -> None:
    collections = {
        "one": {"expressions": ["two", "lang"]},
        "two": {"expressions": ["one", "lang"]},
    }
    checked(tmp_path, {"lang/a.md": "x"}, {"collections": collections})
    first, second = (finding.message for finding in findings(tmp_path))
    assert "`one`" in first
    assert "(one > two > one)" in first
    assert "`two`" in second
    assert "(two > one > two)" in second
