"""The guide's door: what it costs, what it leaves on the disk, and that its lists follow every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guide.opened import ask, opened, settings_for, told, write_guide
from trysquare import ConfigurationError, StaticToolset
from trysquare.app import App, open_app
from trysquare.catalog import ProfileChoice
from trysquare.catalog.lint.engine import lint
from trysquare.catalog.toolset import listed
from trysquare.core.errors import NotFound
from trysquare.core.toolset import Change
from trysquare.files.root import DirectoryRoot


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    write_guide(root)
    return root


def addresses(app: App) -> list[str]:
    return [each.uri for each in app.toolset.resources() if each.uri.startswith(("guide:", "skill:"))]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("profile", "count"), [("levels", 9), ("gateway", 3)])
async def test_narrower_profiles_keep_what_is_read_and_every_tool_stays_callable(
    project: Path, profile: str, count: int
) -> None:
    async with opened(project) as app:
        names = [tool.name for tool in listed(app.toolset, ProfileChoice(default=profile))]
        assert names[:3] == ["guide_get_content", "guide_search_content", "guide_list_content"]
        # Documents may be long, so the tool that reads on is listed beside them.
        assert (len(names), names[-1]) == (count + 1, "read_more")
        assert app.toolset.find("guide_set_document") is not None


async def test_the_descriptions_keep_every_rule(project: Path) -> None:
    async with opened(project) as app:
        own = [tool for tool in app.toolset.tools() if not tool.reads_pages]
        assert lint(StaticToolset(own, prompts=app.toolset.prompts())) == []


async def test_only_the_guides_names_get_its_prefix(project: Path) -> None:
    async with opened(project, include_example_tools=True) as app:
        assert app.toolset.find("guide_get_content") is not None
        assert app.toolset.find("greet") is not None
        assert app.toolset.find("get_content") is None
    async with opened(project, include_example_tools=True, prefix="all") as app:
        assert app.toolset.find("all_get_content") is not None
        assert app.toolset.find("all_greet") is not None
        assert app.toolset.find("guide_get_content") is None


async def test_listing_and_reading_leave_no_trace_on_the_disk(project: Path, own_home: Path) -> None:
    async with opened(project) as app:
        assert addresses(app)
        assert (await ask(app, "get_content", expression="lang")).success
        assert (await ask(app, "list_project_flags")).success
        assert (await ask(app, "search_content", query="cargo")).success
    assert names_in(project) == ["docs"]
    assert names_in(own_home) == []


async def test_flags_and_documents_go_to_the_project_and_the_users_flags_to_the_user(
    project: Path, own_home: Path
) -> None:
    async with opened(project) as app:
        await ask(app, "set_feature_flag", name="workflow", value=True)
        assert not (project / ".trysquare").exists()
        assert (own_home / "state/trysquare/state.db").exists()
        await ask(app, "set_project_flag", name="workflow", value=False)
        assert (project / ".trysquare/state.db").exists()


async def test_nothing_is_read_before_somebody_asks(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: DirectoryRoot, path: str, **_: object) -> bytes:
        raise NotFound(path) if path == "guide.json" else AssertionError(f"{path} was read at the start")

    monkeypatch.setattr(DirectoryRoot, "read_bytes", refuse)
    async with opened(project) as app:
        assert app.toolset.find("guide_get_content") is not None


async def test_a_folder_that_is_not_there_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="directory not found"):
        async with open_app(settings_for(tmp_path)):
            pass


async def test_a_guide_file_that_cannot_be_read_stops_the_start_with_its_line(project: Path) -> None:
    (project / "docs/guide/guide.json").write_text('{"collections": {\n', encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"guide\.json:2"):
        async with opened(project):
            pass


async def test_a_guide_file_that_breaks_while_running_is_reported_and_reloaded_without_a_restart(project: Path) -> None:
    file = project / "docs/guide/guide.json"
    async with opened(project) as app:
        assert (await ask(app, "get_content", expression="lang")).success
        file.write_text('{"colections": {}}', encoding="utf-8")
        broken = await ask(app, "get_content", expression="lang")
        file.write_text('{"collections": {"all": {"expressions": ["lang"]}}}', encoding="utf-8")
        mended = await ask(app, "get_content", expression="all")
    assert (broken.success, broken.code) == (False, "CONFIG_INVALID")
    assert "colections" in str(broken.error)
    assert mended.success, mended.error


async def test_the_lists_follow_flags_and_stored_documents(project: Path) -> None:
    heard: list[Change] = []
    async with opened(project) as app:
        app.toolset.subscribe(heard.append)
        before = addresses(app)
        skill = next(each for each in app.toolset.resources() if each.uri == "skill://shop/rules/SKILL.md")
        assert skill.skill is not None
        await ask(app, "set_document", id="lang/go", text="Run gofmt.")
        assert {"resources", "guide://shop/lang/go"} <= set(heard)
        assert "guide://shop/lang/python" not in heard
        assert set(addresses(app)) - set(before) == {"guide://shop/lang/go"}
        heard.clear()
        await ask(app, "set_project_flag", name="workflow", value=True)
        changed = next(each for each in app.toolset.resources() if each.uri == "skill://shop/rules/SKILL.md")
        assert changed.skill is not None
    assert {"resources", "guide://shop/rules/tickets", "skill://shop/rules/SKILL.md"} <= set(heard)
    assert len(changed.skill.files) == len(skill.skill.files) + 1


async def test_flags_that_another_process_set_show_in_the_lists(project: Path) -> None:
    async with opened(project) as app, opened(project) as other:
        before = [each.skill for each in app.toolset.resources() if each.uri == "skill://shop/rules/SKILL.md"]
        await ask(other, "set_project_flag", name="workflow", value=True)
        after = [each.skill for each in app.toolset.resources() if each.uri == "skill://shop/rules/SKILL.md"]
    assert before != after


async def heard_of(change: Change, app: App, do: Callable[[int], object]) -> None:
    """Change something on disk until the change is heard: the watch begins a moment after the start."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hear(told: Change) -> None:
        if told == change:
            loop.call_soon_threadsafe(event.set)

    end = app.toolset.subscribe(hear)
    try:
        async with asyncio.timeout(30):
            for attempt in range(1000):
                do(attempt)
                try:
                    await asyncio.wait_for(event.wait(), 1)
                except TimeoutError:
                    continue
                return
    finally:
        end()


async def test_edits_on_disk_are_announced_to_subscribers(project: Path) -> None:
    file = project / "docs/guide/lang/python.md"
    async with opened(project) as app:
        await heard_of("guide://shop/lang/python", app, lambda n: file.write_text(f"Edit {n}.\n", encoding="utf-8"))
        new = project / "docs/guide/lang/zig.md"
        await heard_of("resources", app, lambda n: new.write_text(f"Zig {n}.\n", encoding="utf-8"))
        assert "guide://shop/lang/zig" in addresses(app)
        await heard_of("guide://shop/lang/zig", app, lambda _: new.unlink(missing_ok=True))
        assert "guide://shop/lang/zig" not in addresses(app)


async def test_a_search_sees_what_was_stored_and_lets_go_when_its_project_is_closed(project: Path) -> None:
    async with opened(project) as app:
        assert next(hit["id"] for hit in (await told(app, "search_content", query="cargo"))) == "lang/rust"
        await ask(app, "set_document", id="lang/go", text="Cargo is not for Go.")
        hits = await told(app, "search_content", query="cargo")
        assert {hit["id"] for hit in hits[:2]} == {"lang/rust", "lang/go"}
        for query in ("!?", "quantum entanglement"):
            nearest = await ask(app, "search_content", query=query, limit=3)
            assert [hit["fit"] for hit in nearest.value or ()] == ["unsure"] * 3
            assert nearest.message is not None
