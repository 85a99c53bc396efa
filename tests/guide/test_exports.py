"""Exports: what is written where, when a file has drifted and why, and what is never overwritten or allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.guide.opened import agreeing, ask, opened, told, write_guide
from trysquare.app import App
from trysquare.guide.retrieval import BY_TYPE


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    write_guide(root)
    return root


async def exported(app: App, **arguments: Any) -> Any:
    return await told(app, "export_content", context=agreeing(), **arguments)


def files_of(project: Path) -> dict[Path, bytes]:
    """Every file of the project but its state."""
    files = (path for path in project.rglob("*") if path.is_file() and ".trysquare" not in path.parts)
    return {path: path.read_bytes() for path in files}


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert before in text
    file.write_text(text.replace(before, after), encoding="utf-8")


async def test_agents_md_holds_each_document_with_what_to_do_with_it(project: Path) -> None:
    async with opened(project) as app:
        done = await exported(app, expression="lang/python,rules")
    assert done == {"files": {"AGENTS.md": "missing"}, "written": ["AGENTS.md"]}
    body = (project / "AGENTS.md").read_text(encoding="utf-8").split("-->\n", 1)[1]
    assert body.split("\n\n") == [
        "## Python",
        "Use four spaces.",
        f"_{BY_TYPE['agent/instruction']}_",
        "## tests",
        "Every change has a test.",
        f"_{BY_TYPE['agent/requirements']}_",
        "<!-- trysquare guide end -->\n",
    ]


async def test_text_that_people_wrote_around_the_part_stays(project: Path) -> None:
    file = project / "AGENTS.md"
    file.write_text("# Ours\n\nHello.\n", encoding="utf-8")
    async with opened(project) as app:
        await exported(app, expression="lang/python")
        edit(file, "Hello.", "Hello again.")
        file.write_text(file.read_text(encoding="utf-8") + "\nBye.\n", encoding="utf-8")
        edit(project / "docs/guide/lang/python.md", "four", "eight")
        done = await exported(app)
    text = file.read_text(encoding="utf-8")
    assert done["files"] == {"AGENTS.md": "content changed"}
    assert text.startswith("# Ours\n\nHello again.\n")
    assert text.endswith("\nBye.\n")
    assert "Use eight spaces." in text
    assert "Use four spaces." not in text


async def test_a_check_tells_why_each_file_has_drifted_and_writes_nothing(project: Path) -> None:
    async with opened(project) as app:
        await exported(app, expression="lang")
        await exported(app, expression="docs", format="claude")
        await exported(app, expression="lang", format="cursor")
        same = await told(app, "check_exports")
        assert set(same["files"].values()) == {"same"}
        edit(project / "docs/guide/lang/rust.md", "cargo fmt", "clippy")
        edit(project / "CLAUDE.md", "JSON", "XML")
        (project / ".cursor/rules/lang-python.mdc").unlink()
        before = files_of(project)
        drifted = await told(app, "check_exports")
        assert files_of(project) == before
    assert drifted == snapshot(
        {
            "files": {
                "AGENTS.md": "content changed",
                "CLAUDE.md": "edited by hand",
                ".cursor/rules/lang-python.mdc": "missing",
                ".cursor/rules/lang-rust.mdc": "content changed",
            },
            "written": [],
        }
    )


async def test_a_part_that_was_edited_by_hand_is_refused_and_then_nothing_at_all_is_written(project: Path) -> None:
    async with opened(project) as app:
        await exported(app, expression="lang")
        await exported(app, expression="docs", format="claude")
        edit(project / "CLAUDE.md", "JSON", "XML")
        edit(project / "docs/guide/lang/rust.md", "cargo fmt", "clippy")
        refused = await ask(app, "export_content", context=agreeing())
        assert (refused.success, refused.code) == (False, "STATE_CONFLICT")
        assert "CLAUDE.md" in str(refused.error)
        assert "clippy" not in (project / "AGENTS.md").read_text(encoding="utf-8")
        await exported(app, overwrite_edits=True)
    assert "JSON" in (project / "CLAUDE.md").read_text(encoding="utf-8")


async def test_a_cursor_rule_is_a_file_for_each_document_whose_head_belongs_to_the_people(project: Path) -> None:
    rule = project / ".cursor/rules/rules-tests.mdc"
    async with opened(project) as app:
        await exported(app, expression="lang,rules", format="cursor")
        assert rule.read_text(encoding="utf-8").startswith(
            '---\ndescription: "rules/tests"\nalwaysApply: true\n---\n<!--'
        )
        edit(rule, "alwaysApply: true", "globs: '*.py'\nalwaysApply: false")
        assert set((await told(app, "check_exports"))["files"].values()) == {"same"}
        edit(project / "docs/guide/rules/tests.md", "a test", "two tests")
        await exported(app)
    text = rule.read_text(encoding="utf-8")
    assert "globs: '*.py'" in text
    assert "two tests" in text


async def test_a_rule_whose_document_is_gone_is_reported_and_removed(project: Path) -> None:
    rules = project / ".cursor/rules"
    async with opened(project) as app:
        await exported(app, expression="lang", format="cursor")
        (rules / "own.mdc").write_text("Mine.\n", encoding="utf-8")
        (project / "docs/guide/lang/rust.md").unlink()
        drifted = await told(app, "check_exports")
        assert drifted["files"][".cursor/rules/lang-rust.mdc"] == "left over"
        await exported(app)
    assert sorted(path.name for path in rules.iterdir()) == ["lang-python.mdc", "own.mdc"]


async def test_a_budget_by_flag_does_not_shorten_an_export(project: Path) -> None:
    async with opened(project) as app:
        await ask(app, "set_project_flag", name="content-budget", value=1)
        await exported(app, expression="lang")
    assert "Run cargo fmt." in (project / "AGENTS.md").read_text(encoding="utf-8")


async def test_exports_are_remembered_one_for_each_place(project: Path) -> None:
    async with opened(project) as app:
        await exported(app, expression="lang")
        await exported(app, expression="docs")
    remembered = json.loads((project / "docs/guide/guide.json").read_text(encoding="utf-8"))
    assert remembered == {"exports": [{"expression": "docs", "path": "AGENTS.md"}]}


async def test_an_export_needs_consent_and_a_check_does_not(project: Path) -> None:
    async with opened(project) as app:
        refused = await ask(app, "export_content", expression="lang")
        none = await ask(app, "check_exports")
    assert refused.code == "CONSENT_REQUIRED"
    assert not (project / "AGENTS.md").exists()
    assert (none.success, "no exports" in str(none.error)) == (False, True)


@pytest.mark.parametrize(
    "path",
    ["../AGENTS.md", "/etc/motd", "docs/../../x.md", "", ".", "a\0b", "AGENTS.md/../../x", "README.md", "AGENTS.mdx",
     ".git/hooks/pre-commit"],
)  # fmt: skip
async def test_a_tool_writes_only_where_exports_usually_go(project: Path, path: str) -> None:
    before = files_of(project)
    async with opened(project) as app:
        result = await ask(app, "export_content", expression="lang", path=path, context=agreeing())
    if path == "":
        assert result.success, "an empty path is the usual place"
        return
    assert (result.success, result.code) == (False, "VALIDATION_INVALID_PARAM")
    assert files_of(project) == before


async def test_a_link_that_leads_outside_is_not_followed(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project / ".cursor").mkdir()
    (project / ".cursor/rules").symlink_to(outside)
    async with opened(project) as app:
        result = await ask(app, "export_content", expression="lang", format="cursor", context=agreeing())
    assert not result.success
    assert list(outside.iterdir()) == []


async def test_the_user_can_allow_a_path_and_revoke_it(project: Path) -> None:
    async with opened(project) as app:
        unasked = await ask(app, "allow_path", path="docs/rules")
        allowed = await told(app, "allow_path", path="docs/rules", context=agreeing())
        await exported(app, expression="lang", path="docs/rules/lang.md")
        await told(app, "allow_path", path="docs/rules", allowed=False, context=agreeing())
        refused = await ask(app, "export_content", expression="lang", path="docs/rules/b.md", context=agreeing())
        again = await exported(app, expression="lang", path="docs/rules/lang.md")
        twice = await ask(app, "allow_path", path="docs/rules", allowed=False, context=agreeing())
    assert unasked.code == "CONSENT_REQUIRED"
    assert allowed["write_paths"] == ["AGENTS.md", "CLAUDE.md", ".cursor/rules", "docs/rules"]
    assert (project / "docs/rules/lang.md").exists()
    assert not refused.success
    assert again["files"] == {"docs/rules/lang.md": "same"}, "an export that is known stays allowed"
    assert twice.code == "RESOURCE_NOT_FOUND"


async def test_a_document_that_quotes_the_marks_does_not_break_its_export(project: Path) -> None:
    write_guide(project, {"odd/marks.md": "Before\n<!-- trysquare guide end -->\nafter.\r\nLast.\n"})
    async with opened(project) as app:
        await exported(app, expression="odd")
        assert (await told(app, "check_exports"))["files"] == {"AGENTS.md": "same"}
        await exported(app, expression="odd")
    text = (project / "AGENTS.md").read_text(encoding="utf-8")
    assert text.count("trysquare guide end") == 1
    assert text.endswith("<!-- trysquare guide end -->\n")


@pytest.mark.parametrize("is_changed", [False, True])
async def test_an_export_whose_end_mark_was_removed_is_neither_doubled_nor_takes_text_with_it(
    project: Path, is_changed: bool
) -> None:
    file = project / "AGENTS.md"
    async with opened(project) as app:
        await exported(app, expression="lang/python")
        edit(file, "<!-- trysquare guide end -->\n", "Mine.\n")
        if is_changed:
            edit(file, "four", "three")
        before = file.read_text(encoding="utf-8")
        refused = await ask(app, "export_content", context=agreeing())
        assert "AGENTS.md" in str(refused.error)
        assert file.read_text(encoding="utf-8") == before
        await exported(app, overwrite_edits=True)
        after = file.read_text(encoding="utf-8")
        assert after.count("trysquare guide begin") == after.count("trysquare guide end") == 1
        assert after.endswith("Mine.\n")
        assert (await exported(app))["files"] == {"AGENTS.md": "same"}
