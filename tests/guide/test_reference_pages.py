"""The guide's pages name all that there is: each tool, flag, key, filter and limit, with the words of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from tests.docs.pages import ROOT, read_page
from tests.guide.updating_process import opened_guide
from trysquare.guide import contradictions, expression, flags, selection
from trysquare.guide import retrieval as instructions
from trysquare.guide import templates as render
from trysquare.guide import templates as sandbox
from trysquare.guide.config import CategoryEntry, CollectionEntry, ExportEntry, GuideFile, Limits, PresetEntry
from trysquare.guide.documents import DocumentType
from trysquare.guide.tools.content import GetContent

DOCS = ROOT / "docs"
CONTENT = DOCS / "agents" / "content.md"


def rows(page: Path) -> dict[str, str]:
    """The rows of a page's tables by the first name in their first column."""
    found: dict[str, str] = {}
    for _, line in read_page(page).prose:
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) > 1:
            for name in re.findall(r"`([^`]+)`", cells[0]) or [cells[0]]:
                found.setdefault(name, " | ".join(cells[1:]))
    return found


async def test_each_tool_has_its_line_and_says_whether_it_needs_consent(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    lines = rows(DOCS / "reference" / "guide-tools.md")
    async with opened_guide(tmp_path) as toolset:
        for tool in toolset.tools():
            assert lines.get(tool.name), tool.name
            assert ("Needs consent" in lines[tool.name]) == (tool.metadata.consent is not None), tool.name
    assert {name for name in GetContent.model_fields if name != "project"} <= lines.keys()


def test_each_known_flag_has_its_line_with_its_scope_default_and_effect() -> None:
    lines = rows(DOCS / "reference" / "flags.md")
    for flag in flags.KNOWN:
        kind, scope, default, effect = lines[flag.name].split(" | ")
        assert scope == flag.scope
        assert default == ("none" if flag.default is None else f"`{str(flag.default).replace('True', 'true')}`")
        assert effect == flag.effect
        assert all(f"`{choice}`" in kind for choice in flag.choices)


def test_each_key_of_guide_json_has_its_line() -> None:
    lines = rows(DOCS / "reference" / "guide-json.md")
    assert lines.keys() >= GuideFile.model_fields.keys()
    entries = {
        "categories": CategoryEntry,
        "collections": CollectionEntry,
        "presets": PresetEntry,
        "exports": ExportEntry,
    }
    for key, entry in entries.items():
        for name in entry.model_fields:
            assert f"`{name}`" in lines[key], f"{key}: {name}"


def test_each_type_has_its_line_with_what_it_tells() -> None:
    lines = rows(CONTENT)
    for kind in get_args(DocumentType):
        assert lines[kind].startswith(instructions.BY_TYPE[kind]), kind


def test_each_filter_of_templates_is_named() -> None:
    text = CONTENT.read_text(encoding="utf-8")
    for name in sandbox._BUILT_IN | sandbox._OWN:  # pyright: ignore[reportPrivateUsage]
        assert f"`{name}`" in text, name


@pytest.mark.parametrize(
    ("page", "what", "figures"),
    [
        (CONTENT, "depth of directories in a category", [Limits().depth]),
        (CONTENT, "documents of a category", [Limits().documents]),
        (CONTENT, "size of a document", [Limits().document_bytes]),
        (CONTENT, "template", [render.MAX_TEMPLATE // 1024, render.MAX_RENDERED, sandbox.MAX_TURNS]),
        (
            CONTENT,
            "contradictions in one result",
            [contradictions.MAX_CONTRADICTIONS, contradictions.MAX_DIRECTIONS],
        ),
        (CONTENT, "flags", [flags.MAX_CHARACTERS]),
        (DOCS / "reference" / "expressions.md", "length of an expression", [expression.MAX_LENGTH]),
        (DOCS / "reference" / "expressions.md", "names, tags and patterns in one", [expression.MAX_OPERANDS]),
        (
            DOCS / "reference" / "expressions.md",
            "collections inside collections",
            [selection.MAX_COLLECTION_DEPTH, selection.MAX_COLLECTIONS_OPENED],
        ),
    ],
)
def test_each_limit_is_the_one_of_the_code(page: Path, what: str, figures: list[int]) -> None:
    lines = [line for _, line in read_page(page).prose if line.startswith(f"| {what} |")]
    assert any(all(f"{figure:,}" in line for figure in figures) for line in lines), (what, lines)
