"""The tools that change content: what they write, what they refuse, and that nothing is half-written."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.guide.opened import agreeing, ask, opened, told, write_guide
from trysquare.app import App


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_guide(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
async def app(project: Path) -> AsyncGenerator[App]:
    async with opened(project) as app:
        yield app


def guide_file(project: Path) -> Any:
    return json.loads((project / "docs/guide/guide.json").read_text(encoding="utf-8"))


async def test_a_collection_is_named_fetched_changed_and_removed(app: App, project: Path) -> None:
    await told(app, "set_collection", name="backend", expressions=["lang/python", "docs"], description="Servers")
    assert "Use four spaces." in await told(app, "get_content", expression="backend")
    await told(app, "set_collection", name="backend", expressions=["lang/rust"])
    assert guide_file(project)["collections"] == {"backend": {"expressions": ["lang/rust"], "description": "Servers"}}
    assert await told(app, "get_content", expression="backend") == "Run cargo fmt."
    assert (await ask(app, "remove_content", kind="collection", name="backend")).code == "CONSENT_REQUIRED"
    await told(app, "remove_content", kind="collection", name="backend", context=agreeing())
    assert not (await ask(app, "get_content", expression="backend")).success


async def test_a_category_can_be_narrowed_and_described(app: App) -> None:
    await told(app, "set_category", name="python", folder="lang", patterns=["py*"], description="Only Python")
    assert await told(app, "get_content", expression="python") == "Use four spaces."
    listed = await told(app, "list_content")
    assert {"name": "python", "documents": 1, "description": "Only Python"} in listed


async def test_a_preset_sets_flags_that_neither_project_nor_user_has_set(app: App) -> None:
    await told(app, "set_preset", name="strict", flags={"workflow": True})
    assert not (await ask(app, "get_content", expression="rules/tickets")).success
    await told(app, "set_project_flag", name="preset", value="strict")
    assert await told(app, "get_content", expression="rules/tickets") == "Open a ticket first."
    await told(app, "set_project_flag", name="workflow", value=False)
    assert not (await ask(app, "get_content", expression="rules/tickets")).success


async def test_a_stored_document_is_added_changed_renamed_and_removed(app: App) -> None:
    await told(app, "set_document", id="lang/go", text="Run gofmt.", metadata={"title": "Go", "tags": ["backend"]})
    assert (await told(app, "get_content", expression="lang/go")).endswith("\n\nRun gofmt.")
    await told(app, "set_document", id="lang/go", text="Run gofumpt.")
    tagged = await ask(app, "get_content", expression="#backend & lang/go")
    assert str(tagged.value).endswith("\n\nRun gofumpt.")
    assert tagged.fields["documents"][0]["title"] == "Go"
    await told(app, "set_document", id="lang/go", rename="tools/go")
    assert not (await ask(app, "get_content", expression="lang/go")).success
    assert (await told(app, "get_content", expression="tools/go")).endswith("\n\nRun gofumpt.")
    await told(app, "remove_content", kind="document", name="tools/go", context=agreeing())
    assert not (await ask(app, "get_content", expression="tools/go")).success


async def test_a_stored_document_takes_the_place_of_a_file_and_gives_it_back(app: App) -> None:
    await told(app, "set_document", id="lang/python", text="Use tabs.")
    assert (await told(app, "get_content", expression="lang/python")).endswith("\n\nUse tabs.")
    await told(app, "remove_content", kind="document", name="lang/python", context=agreeing())
    assert await told(app, "get_content", expression="lang/python") == "Use four spaces."


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("set_collection", {"name": "x"}),
        ("set_collection", {"name": "x", "expressions": ["lang/,-"]}),
        ("set_collection", {"name": "../x", "expressions": ["lang"]}),
        ("set_category", {"name": "x", "folder": "../.."}),
        ("set_category", {"name": "x", "folder": "/etc"}),
        ("set_category", {"name": "x", "folder": "none"}),
        ("set_preset", {"name": "x", "flags": {"content-style": "wrong"}}),
        ("set_preset", {"name": "x", "expressions": ["&"]}),
        ("set_document", {"id": "lang/new"}),
        ("set_document", {"id": "nothing", "text": "x"}),
        ("set_document", {"id": "lang/../x", "text": "x"}),
        ("set_document", {"id": "nothing", "rename": "lang/x", "text": "x"}),
        ("set_document", {"id": "lang/x", "text": "x", "metadata": {"type": "wrong"}}),
        ("set_document", {"id": "lang/x", "text": "---\ntags: [\n---\nx"}),
    ],
)
async def test_what_cannot_be_stored_is_refused_and_nothing_is_written(
    app: App, project: Path, tool: str, arguments: dict[str, Any]
) -> None:
    result = await ask(app, tool, **arguments)
    assert not result.success
    assert result.code != "INTERNAL_ERROR", result.error
    assert not (project / "docs/guide/guide.json").exists()
    assert not (await ask(app, "get_content", expression="lang/x")).success


async def test_a_change_of_a_broken_guide_file_is_refused_and_the_file_stays_as_it_is(app: App, project: Path) -> None:
    file = project / "docs/guide/guide.json"
    file.write_text("{ not JSON", encoding="utf-8")
    result = await ask(app, "set_collection", name="x", expressions=["lang"])
    assert (result.success, result.code) == (False, "CONFIG_INVALID")
    assert file.read_text(encoding="utf-8") == "{ not JSON"


async def test_what_cannot_be_read_is_listed_with_why(app: App, project: Path) -> None:
    write_guide(project, {"lang/bad.md": "---\ntype: wrong\n---\nx\n"})
    [problem] = await told(app, "list_content", kind="problems")
    assert problem["path"] == "lang/bad.md"
    assert "type: wrong" in problem["reason"]


async def test_everything_that_there_is_can_be_listed(app: App) -> None:
    await told(app, "set_collection", name="all", expressions=["lang"])
    await told(app, "set_preset", name="strict", flags={"workflow": True})
    documents = await told(app, "list_content", kind="documents", category="lang")
    assert [each["id"] for each in documents] == ["lang/python", "lang/rust"]
    assert await told(app, "list_content", kind="commands") == {":review": "Review something"}
    assert [each["name"] for each in await told(app, "list_content", kind="collections")] == ["all"]
    assert await told(app, "list_content", kind="presets") == {"strict": {"flags": {"workflow": True}}}
