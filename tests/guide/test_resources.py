"""Resources and skills: every document at its address, with digests of exactly what is read there."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.guide.opened import agreeing, ask, opened, write_guide
from trysquare import CallContext, ToolError
from trysquare.app import App
from trysquare.core.errors import NotFound

ODD = {
    "odd/SKILL.md": "Called like the skill itself.\n",
    "odd/a b&c.md": "Blank and sign.\n",
    "odd/a-b-c.md": "Hyphens.\n",
    "odd/größe.md": "Ein Maß.\r\nZwei Maß.\r\n",
    "Odd_/x.md": "A category whose name becomes the same.\n",
    "lang/template.md": "---\ntemplate: true\n---\nThis is {{ document.id }}.\n",
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[App]:
    write_guide(tmp_path / "shop")
    write_guide(tmp_path / "shop", ODD)
    async with opened(tmp_path / "shop") as app:
        yield app


async def read(app: App, uri: str) -> str:
    resource = app.toolset.find_resource(uri)
    assert resource is not None
    [contents] = await resource.read(uri, {}, CallContext())
    assert contents.text is not None
    return contents.text


async def test_every_listed_address_can_be_read(app: App) -> None:
    listed = [each for each in app.toolset.resources() if each.uri.startswith(("guide:", "skill:"))]
    assert len(listed) > 10
    hidden = "guide://shop/rules/tickets"
    assert hidden in [each.uri for each in listed]
    for each in listed:
        if each.uri != hidden:
            assert await read(app, each.uri)
    with pytest.raises(NotFound, match="hidden by a flag"):
        await read(app, hidden)


async def test_an_address_names_its_project(app: App, tmp_path: Path) -> None:
    write_guide(tmp_path / "bank", {"lang/python.md": "Bank's Python.\n"})
    await ask(app, "set_project", name="bank", root=str(tmp_path / "bank"), context=agreeing())
    assert await read(app, "guide://bank/lang/python") == "Bank's Python.\n"
    assert await read(app, "guide://shop/lang/python") == "Use four spaces.\n"
    assert await read(app, "guide+get://bank/lang") == "Bank's Python."


async def test_an_expression_is_read_as_one_text(app: App) -> None:
    text = await read(app, "guide+get://shop/lang/python+rust,docs")
    assert text.split("\n\n") == [
        "<!-- lang/python -->", "Use four spaces.", "<!-- lang/rust -->", "Run cargo fmt.",
        "<!-- docs/api -->", "The API speaks JSON.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "uri",
    [
        "guide://shop/lang/../../../etc/passwd",
        "guide://shop/lang/%2e%2e/%2e%2e/secret",
        "guide://shop/_commands/review",
        "guide://shop/lang/none",
        "guide://nobody/lang/python",
        "guide+get://shop/lang/../../*",
    ],
)
async def test_an_address_that_leads_nowhere_is_refused(app: App, uri: str) -> None:
    with pytest.raises(ToolError):
        await read(app, uri)


async def test_a_templates_parts_are_completed(app: App) -> None:
    template = next(each for each in app.toolset.templates() if each.uri_template.startswith("guide://"))
    assert template.complete is not None
    assert await template.complete("project", "s", {}) == ["shop"]
    assert await template.complete("category", "l", {"project": "shop"}) == ["lang"]
    assert await template.complete("name", "P", {"project": "shop", "category": "lang"}) == ["python"]


async def test_digests_and_sizes_are_those_of_what_is_read(app: App) -> None:
    skills = [each.skill for each in app.toolset.resources() if each.skill is not None]
    names = [skill.frontmatter["name"] for skill in skills]
    assert sorted(names) == ["docs", "lang", "odd", "odd-2", "rules"]
    files = [file for skill in skills for file in skill.files]
    assert len({file.uri for file in files}) == len(files)
    for file in files:
        data = (await read(app, file.uri)).encode()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (file.digest, file.size), file.uri


async def test_a_skill_holds_what_flags_and_templates_make_of_its_documents(app: App) -> None:
    assert await read(app, "skill://shop/lang/template.md") == "This is lang/template.\n"
    assert "tickets" not in await read(app, "skill://shop/rules/SKILL.md")
    assert app.toolset.find_resource("skill://shop/rules/tickets.md") is None
    await ask(app, "set_project_flag", name="workflow", value=True)
    assert "tickets" in await read(app, "skill://shop/rules/SKILL.md")
    assert await read(app, "skill://shop/rules/tickets.md") == "Open a ticket first.\n"


async def test_a_document_named_like_the_file_of_its_skill_is_served_under_another_name(app: App) -> None:
    assert (await read(app, "skill://shop/odd-2/SKILL.md")).startswith("---\nname:")
    assert await read(app, "skill://shop/odd-2/SKILL_.md") == "Called like the skill itself.\n"
