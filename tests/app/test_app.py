"""open_app: from settings to one toolset."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from trysquare import CallContext, ConfigurationError, Consent, Declarations, StaticToolset, Toolset, call_tool, tool
from trysquare import app as app_module
from trysquare.app import App, open_app
from trysquare.providers import ENTRY_POINTS, OpenToolset, Origins, ToolProvider, state_file
from trysquare.server.options import state_keys
from trysquare.settings import Origin, Settings
from trysquare.settings.model import HttpSettings, LimitSettings
from trysquare.store import LazyDatabase

tools = Declarations()


@tools.declare
def echo(text: str) -> str:
    """Say it again."""
    return text


@tools.declare(consent=Consent(question="Remove {what}?"))
def remove(what: str) -> str:
    """Remove a thing."""
    return what


@tools.declare(consent_literal="WIPE")
def wipe(confirm: Literal["WIPE"]) -> str:
    """Wipe everything."""
    return confirm


@tools.declare(result_limit=300)
def lines(count: int) -> str:
    """Many lines."""
    return "\n".join("line" for _ in range(count))


@tools.prompt()
async def greeting(context: CallContext) -> str:
    """Greet with the help of a tool."""
    return str((await context.call_tool("echo", {"text": "hello"})).value)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the provider of Python modules hold the tools of this module."""

    @asynccontextmanager
    async def opened(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
        yield tools.toolset()

    provider = ToolProvider(name="tools", key="tools", open=opened)
    monkeypatch.setattr(app_module, "tool_providers", lambda *_, **options: (provider,))


def settings(tmp_path: Path, **more: object) -> Settings:
    return Settings.model_validate({"project": tmp_path, "tools": ["any:thing"], **more})


async def test_the_toolset_is_wrapped_and_catalogued(served: None, tmp_path: Path) -> None:
    async with open_app(settings(tmp_path, prefix="demo")) as app:
        assert [tool.name for tool in app.plain.tools()] == ["echo", "remove", "wipe", "lines"]
        assert app.toolset.find("demo_echo") is not None
        assert app.toolset.find("find_tools") is not None
        assert (await call_tool(app.toolset, "demo_echo", {"text": "x"})).value == "x"


async def test_prompts_call_tools_directly_by_their_own_names(served: None, tmp_path: Path) -> None:
    async with open_app(settings(tmp_path, prefix="demo")) as app:
        prompt = app.toolset.find_prompt("greeting")
        assert prompt is not None
        [message] = await prompt.render({}, CallContext(direct=app.serve_options().direct))
        assert message.content.text == "hello"  # pyright: ignore[reportAttributeAccessIssue]


async def test_a_direct_call_still_needs_consent(served: None, tmp_path: Path) -> None:
    async with open_app(settings(tmp_path)) as app:
        result = await call_tool(app.direct, "remove", {"what": "all"})
        assert result.code == "CONSENT_REQUIRED"


async def test_listing_and_calling_leave_no_trace_and_consent_opens_the_state(
    served: None, tmp_path: Path, own_home: Path
) -> None:
    async with open_app(settings(tmp_path)) as app:
        await call_tool(app.toolset, "echo", {"text": "x"})
        assert not app.state.path.exists()
        await call_tool(app.toolset, "remove", {"what": "all"})
        assert app.state.path.exists()
        assert app.state.path.is_relative_to(own_home)


async def test_a_state_that_cannot_be_opened_fails_only_the_call_that_needs_it(
    served: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    async with open_app(settings(tmp_path)) as app:
        result = await call_tool(app.toolset, "remove", {"what": "all"})
        assert result.code == "STATE_UNAVAILABLE"
        assert (await call_tool(app.toolset, "echo", {"text": "x"})).success


async def test_the_configured_limit_holds_where_a_tool_chose_none(served: None, tmp_path: Path) -> None:
    limits = LimitSettings(result_characters=500)
    async with open_app(settings(tmp_path, limits=limits)) as app:
        echo, lines = app.plain.find("echo"), app.plain.find("lines")
        assert echo is not None
        assert lines is not None
        assert (echo.metadata.result_limit, lines.metadata.result_limit) == (500, 300)


async def test_strict_asks_a_person_where_a_model_could_type_the_literal(served: None, tmp_path: Path) -> None:
    async with open_app(settings(tmp_path)) as lenient:
        assert (await call_tool(lenient.toolset, "wipe", {"confirm": "WIPE"})).success
    async with open_app(settings(tmp_path, strict=True)) as strict:
        result = await call_tool(strict.toolset, "wipe", {"confirm": "WIPE"})
    assert result.code == "CONSENT_REQUIRED"
    assert not result.success


async def test_handles_are_shared_where_several_processes_serve(served: None, tmp_path: Path) -> None:
    async with open_app(settings(tmp_path)) as app:
        handle = app.serve_options(shared=True).handles.put({"a": 1}, principal="me")
    async with open_app(settings(tmp_path)) as later:
        handles = later.serve_options(shared=True).handles
        assert handles.get(handle, principal="me") == {"a": 1}
        handles.drop(handle)


async def test_colliding_names_are_a_configuration_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @asynccontextmanager
    async def opened(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
        yield StaticToolset([tool(echo)])

    providers = (
        ToolProvider(name="one", key="tools", open=opened),
        ToolProvider(name="two", key="project", open=opened),
    )
    monkeypatch.setattr(app_module, "tool_providers", lambda *_, **options: providers)
    with pytest.raises(ConfigurationError, match="`echo`"):
        async with open_app(settings(tmp_path)):
            pass


async def test_a_provider_can_open_first_without_changing_the_order_of_the_tools(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    order: list[str] = []

    def opening(name: str) -> OpenToolset:
        @asynccontextmanager
        async def opened(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
            order.append(name)
            yield StaticToolset([replace(tool(echo), name=name)])

        return opened

    providers = (
        ToolProvider(name="one", key="tools", open=opening("one")),
        ToolProvider(name="two", key="project", open=opening("two"), opens_first=True),
    )
    monkeypatch.setattr(app_module, "tool_providers", lambda *_, **options: providers)
    async with open_app(settings(tmp_path)) as app:
        assert [one.name for one in app.plain.tools()] == ["one", "two"]
    assert order == ["two", "one"]


async def test_what_a_provider_opened_is_closed_when_a_later_one_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed: list[str] = []

    @asynccontextmanager
    async def good(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
        try:
            yield StaticToolset()
        finally:
            closed.append("good")

    @asynccontextmanager
    async def bad(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
        raise ConfigurationError("no")
        yield StaticToolset()

    providers = (ToolProvider(name="one", key="tools", open=good), ToolProvider(name="two", key="project", open=bad))
    monkeypatch.setattr(app_module, "tool_providers", lambda *_, **options: providers)
    with pytest.raises(ConfigurationError):
        async with open_app(settings(tmp_path)):
            pass
    assert closed == ["good"]


def _installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str) -> None:
    """A distribution with one provider."""
    info = tmp_path / "packages" / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nacme = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))


@asynccontextmanager
async def open_acme(settings: Settings, origins: Origins) -> AsyncGenerator[Toolset]:
    yield StaticToolset([tool(echo)])


async def test_an_installed_provider_is_opened_where_the_settings_name_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _installed(monkeypatch, tmp_path, f"{__name__}:open_acme")
    async with open_app(settings(tmp_path, tools=[], providers=["acme"])) as app:
        assert (await call_tool(app.toolset, "echo", {"text": "hello"})).value == "hello"
    async with open_app(settings(tmp_path, tools=[])) as app:
        assert app.plain.tools() == ()


@pytest.mark.parametrize(("name", "expected"), [("acne", "`acme`"), ("acme", "import failed")])
async def test_a_provider_that_is_unknown_or_fails_is_a_configuration_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, expected: str
) -> None:
    _installed(monkeypatch, tmp_path, "no_such_module_of_acme:open")
    with pytest.raises(ConfigurationError, match=expected):
        async with open_app(settings(tmp_path, tools=[], providers=[name])):
            pass


def test_the_example_tools_are_imported_only_when_they_are_wanted(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from trysquare.app import open_app\n"
        "from trysquare.settings.load import load_settings\n"
        "import os\n"
        "async def main():\n"
        "    async with open_app(load_settings({}, os.environ, Path('.')).settings) as app:\n"
        "        print('trysquare.example_tools' in sys.modules, app.plain.find('greet') is not None)\n"
        "asyncio.run(main())\n"
    )
    for value, expected in (("true", "True True\n"), ("yes", "False False\n"), (None, "False False\n")):
        env = {"PATH": "", **({"MCP_INCLUDE_EXAMPLE_TOOLS": value} if value else {})}
        ran = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env, cwd=tmp_path
        )
        assert ran.stdout == expected


def test_state_lives_in_a_marked_project_and_else_with_the_user(tmp_path: Path, own_home: Path) -> None:
    plain = Settings(project=tmp_path)
    option = {"project": Origin(source="option", location="--project")}
    file = {"tools": Origin(source="file", location="trysquare.toml:1")}
    assert state_file(plain, {}) == own_home / "state" / "trysquare" / "state.db"
    assert state_file(plain, option) == tmp_path / ".trysquare" / "state.db"
    assert state_file(plain, file) == tmp_path / ".trysquare" / "state.db"
    (tmp_path / ".trysquare").mkdir()
    assert state_file(plain, {}) == tmp_path / ".trysquare" / "state.db"


def test_state_keys_come_from_the_settings_and_their_file(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("\n" + "b" * 32 + "\n\n", encoding="utf-8")
    http = HttpSettings.model_validate({"state_keys": ["a" * 32], "state_keys_file": tmp_path / "keys"})
    assert state_keys(Settings(http=http)) == (b"a" * 32, b"b" * 32)


def test_a_missing_file_of_keys_is_told(tmp_path: Path) -> None:
    http = HttpSettings(state_keys_file=tmp_path / "none")
    with pytest.raises(ConfigurationError, match=r"http\.state_keys_file") as refused:
        state_keys(Settings(http=http))
    assert refused.value.where == str(tmp_path / "none")


def test_a_state_that_was_never_needed_is_closed_without_a_trace(tmp_path: Path) -> None:
    state = LazyDatabase(tmp_path / "state.db")
    state.close()
    assert not list(tmp_path.iterdir())


def test_an_app_serves_what_its_settings_say(tmp_path: Path) -> None:
    import asyncio

    async def options() -> tuple[str | None, str | None, int, float | None]:
        server = {"name": "mine", "instructions": "Be kind."}
        limits = {"timeout": 5, "page_size": 7}
        async with open_app(Settings.model_validate({"project": tmp_path, "server": server, "limits": limits})) as app:
            assert isinstance(app, App)
            known = app.serve_options()
            return known.name, known.instructions, known.page_size, known.call_timeout

    assert asyncio.run(options()) == ("mine", "Be kind.", 7, 5.0)


async def test_a_module_that_is_served_alone_names_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from trysquare import Tools\ntools = Tools('weather', instructions='Ask.', version='3')\n"
    (tmp_path / "weather_server_alone.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    alone = settings(tmp_path, tools=["weather_server_alone"])
    async with open_app(alone) as app:
        options = app.serve_options()
        assert (options.name, options.instructions, options.version) == ("weather", "Ask.", "3")
    async with open_app(settings(tmp_path, tools=["weather_server_alone"], server={"name": "mine"})) as app:
        assert (app.serve_options().name, app.serve_options().instructions) == ("mine", "Ask.")
    async with open_app(alone.model_copy(update={"include_example_tools": True})) as app:
        assert (app.serve_options().name, app.serve_options().instructions) == (None, None)
