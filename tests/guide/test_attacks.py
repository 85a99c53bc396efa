"""Attacks: no door of the guide leads to a file outside its folders, whatever path it is given."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.files.attacks import LINKS, SECRET, TRAVERSALS, make_stage
from tests.guide.opened import agreeing, ask, opened
from trysquare import CallContext, TrysquareError
from trysquare.app import App
from trysquare.testing import make_context

PATHS = [*TRAVERSALS, *LINKS]


@pytest.fixture(autouse=True)
def no_log() -> Iterator[None]:
    """Refusals are logged with the path, and no report of a test can hold half a character."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project whose guide has the traps as a category, beside secrets in the project and above it."""
    made = tmp_path / "shop"
    (made / "docs").mkdir(parents=True)
    (made / "secret.md").write_text(SECRET)
    (tmp_path / "secret.md").write_text(SECRET)
    make_stage(made / "docs")
    (made / "docs" / "inside").rename(made / "docs" / "guide")
    guide = made / "docs" / "guide"
    (guide / "lang").mkdir()
    (guide / "lang" / "python.md").write_text("Use four spaces.")
    for name, target in (("link.md", "../../secret.md"), ("abs.md", str(made / "secret.md")), ("up", "../../..")):
        (guide / "lang" / name).symlink_to(target)
    return made


@pytest.fixture
async def app(root: Path) -> AsyncIterator[App]:
    async with opened(root) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_outside_changes(root: Path) -> Iterator[None]:
    outside = [root / "secret.md", root.parent / "secret.md", root / "docs" / "secret.md",
               root / "docs" / "outside" / "secret.md", root / "docs" / "inside-sibling" / "secret.md"]  # fmt: skip
    folders = [root / "docs" / "outside", root / "docs" / "inside-sibling", root.parent]
    before = [sorted(each.name for each in folder.iterdir()) for folder in folders]
    yield
    assert [path.read_text() for path in outside] == [SECRET] * len(outside)
    assert [sorted(each.name for each in folder.iterdir()) for folder in folders] == before


def says_nothing(result: Any) -> None:
    """No secret, no crash: an answer that was foreseen."""
    told = result.to_json_str()
    assert SECRET not in told
    assert "INTERNAL_ERROR" not in told, told
    assert "root:x:" not in told


async def call_with(app: App, tool: str, arguments: Mapping[str, Any], context: CallContext | None = None) -> Any:
    return await ask(app, tool, context=context, **arguments)


async def told_or_refused(answer: Awaitable[object]) -> str:
    """All that somebody gets to see: the answer, or why there is none."""
    try:
        return str(await answer)
    except TrysquareError as error:
        return str(error)


async def test_get_content(app: App):
    for path in PATHS:
        for arguments in (
            {"expression": path}, {"expression": f"lang/{path}"}, {"expression": "lang", "pattern": path},
            {"expression": f"lang,-lang/{path}"}, {"expression": f"#{path}"}, {"expression": "lang", "project": path},
        ):  # fmt: skip
            says_nothing(await call_with(app, "get_content", arguments))


async def test_get_content_of_everything_that_is_listed(app: App):
    for expression in ("lang,a", "lang/*", "a/*", "lang/up/*", "lang/link"):
        says_nothing(await ask(app, "get_content", expression=expression))
    listed = await ask(app, "list_content", kind="documents")
    assert listed.value is not None
    assert {each["id"] for each in listed.value} == {"a/c", "lang/python"}


async def test_a_categorys_folder(app: App):
    for number, path in enumerate(PATHS):
        made = await ask(app, "set_category", name=f"odd{number}", folder=path)
        says_nothing(made)
        says_nothing(await ask(app, "get_content", expression=f"odd{number}"))
        says_nothing(await ask(app, "get_content", expression=f"odd{number}/*secret*"))


async def test_names_of_what_is_stored(app: App):
    for path in PATHS:
        for arguments in ({"id": path, "text": "mine"}, {"id": f"lang/{path}", "text": "mine"},
                          {"id": "lang/mine", "text": "mine", "rename": f"lang/{path}"}):  # fmt: skip
            says_nothing(await call_with(app, "set_document", arguments))
        for tool in ("set_category", "set_collection", "set_preset"):
            more = {"expressions": ["lang"]} if tool == "set_collection" else {}
            says_nothing(await call_with(app, tool, {"name": path, **more}))
        says_nothing(await ask(app, "set_project_flag", name=path, value=True))
    says_nothing(await ask(app, "get_content", expression="lang"))


async def test_projects(app: App, root: Path):
    for path in PATHS:
        for arguments in ({"name": "evil", "root": path}, {"name": path, "root": str(root)},
                          {"name": "evil", "root": str(root), "content": [path]}):  # fmt: skip
            if arguments["root"] == "/":
                continue  # a root that the person names and agrees to is theirs to name
            says_nothing(await call_with(app, "set_project", arguments, agreeing()))


def addresses(path: str) -> Iterator[str]:
    # As it is, encoded, encoded twice, and with only the dots and slashes encoded.
    clean = path.encode("utf-8", "replace").decode()
    for form in (clean, quote(clean, safe=""), quote(quote(clean, safe=""), safe=""),
                 clean.replace(".", "%2e").replace("/", "%2f")):  # fmt: skip
        for project in ("shop", "..", "%2e%2e"):
            yield f"guide://{project}/lang/{form}"
            yield f"guide://{project}/{form}"
            yield f"guide+get://{project}/{form}"
            yield f"skill://{project}/lang/{form}"
            yield f"skill://{project}/{form}"


async def test_resources(app: App):
    for path in PATHS:
        for address in addresses(path):
            found = app.toolset.find_resource(address)
            if found is None:
                continue
            assert SECRET not in await told_or_refused(found.read(address, {}, make_context())), address


async def test_resources_that_are_listed(app: App):
    for resource in app.toolset.resources():
        contents = await resource.read(resource.uri, {}, make_context())
        assert all(SECRET not in (each.text or "") for each in contents)


async def test_includes_of_templates(app: App, root: Path):
    for number, path in enumerate(PATHS):
        quoted = json.dumps(path.encode("utf-8", "replace").decode().replace("\0", "\\0"))
        text = f"---\ntemplate: true\nincludes: [{quoted}]\n---\n{{% include {quoted} %}}"
        (root / "docs" / "guide" / "lang" / f"evil{number}.md").write_text(text)
    says_nothing(await ask(app, "get_content", expression="lang"))
    for number in range(0, len(PATHS), 10):
        says_nothing(await ask(app, "get_content", expression=f"lang/evil{number}"))


async def test_commands(app: App):
    (prompt,) = [each for each in app.toolset.prompts() if each.name.endswith("guide")]
    for path in PATHS:
        for words in ({"arg1": f":{path}"}, {"arg1": f":lang/{path}"}, {"arg1": path}, {"arg1": "lang", "arg2": path}):
            assert SECRET not in await told_or_refused(prompt.render(words, make_context(tools=app.toolset)))


async def test_exports(app: App, root: Path):
    for path in PATHS:
        says_nothing(await ask(app, "allow_path", context=agreeing(), path=path))
        for format in ("agents", "cursor"):
            made = await ask(
                app, "export_content", context=agreeing(), expression="lang/python", format=format, path=path
            )
            says_nothing(made)


async def test_exports_through_links_in_the_project(app: App, root: Path):
    (root / "AGENTS.md").symlink_to("../secret.md")
    (root / "CLAUDE.md").symlink_to(root.parent / "secret.md")
    (root / ".cursor").symlink_to("..")
    for format in ("agents", "claude", "cursor"):
        says_nothing(await ask(app, "export_content", context=agreeing(), expression="lang/python", format=format))
    assert not (root.parent / "rules").exists()


async def test_a_guide_json_that_names_paths(root: Path):
    guide = root / "docs" / "guide"
    usable = [path.encode("utf-8", "replace").decode() for path in PATHS]
    file = {
        "categories": {f"odd{number}": {"dir": path} for number, path in enumerate(usable)},
        "exports": [{"path": path or "x", "expression": "lang/python"} for path in usable],
        "write_paths": usable,
    }
    (guide / "guide.json").write_text(json.dumps(file))
    async with opened(root) as app:
        for number in range(len(usable)):
            says_nothing(await ask(app, "get_content", expression=f"odd{number}"))
        says_nothing(await ask(app, "check_exports"))
        says_nothing(await ask(app, "export_content", context=agreeing()))
        says_nothing(await ask(app, "list_content", kind="problems"))
