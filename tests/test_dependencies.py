"""What is imported is declared with bounds, and a package that is missing is reported with the extra that has it."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.bots.bot_folders import write_bot
from trysquare import ErrorCode, ToolError
from trysquare.app import open_app
from trysquare.bots import load_bot
from trysquare.cli.doctor import EXTRAS
from trysquare.cli.main import main
from trysquare.core.json import JsonObject
from trysquare.gateway.results.query_worker import Refused, query
from trysquare.models import open_model
from trysquare.settings import Settings
from trysquare.testing import call

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "trysquare"
PROJECT: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECORDER = SOURCE / "debug" / "recorder"
"""Runs inside a program under test, with the packages of that program."""


def base() -> list[Requirement]:
    return [Requirement(line) for line in PROJECT["dependencies"]]


def extras() -> dict[str, list[Requirement]]:
    """The requirements of each extra, without the one that collects the others."""
    found = {name: [Requirement(line) for line in lines] for name, lines in PROJECT["optional-dependencies"].items()}
    del found["all"]
    return found


def declared() -> list[Requirement]:
    return [*base(), *(each for lines in extras().values() for each in lines)]


def imported() -> Iterator[tuple[str, str]]:
    """The file and the top-level name of every import of another distribution."""
    for path in sorted(path for path in SOURCE.rglob("*.py") if not path.is_relative_to(RECORDER)):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            tops = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"trysquare"}
            yield from ((path.relative_to(SOURCE).as_posix(), top) for top in sorted(tops))


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    loose = [
        str(each)
        for each in declared()
        if not {">=", "<"} <= {specifier.operator for specifier in each.specifier} and each.url is None
    ]
    assert loose == []


def test_every_import_is_of_a_declared_dependency() -> None:
    known = {canonicalize_name(each.name) for each in declared()}
    owners = packages_distributions()
    undeclared = [
        f"{file}: {top}"
        for file, top in imported()
        if not known & {canonicalize_name(owner) for owner in (top, *owners.get(top, ()))}
        # Only pytest itself imports its plugin.
        and (file, top) != ("pytest_plugin.py", "pytest")
    ]
    assert undeclared == [], "Declare its distribution in pyproject.toml, in the base or in the extra of its part."


def test_all_collects_every_extra() -> None:
    [collected] = [Requirement(line) for line in PROJECT["optional-dependencies"]["all"]]
    assert collected.extras == extras().keys()


def test_doctor_looks_for_a_package_of_every_extra() -> None:
    known = {name: {each.name for each in lines} for name, lines in extras().items()}
    assert EXTRAS.keys() == known.keys()
    assert [extra for extra, package in EXTRAS.items() if package not in known[extra]] == []


def required_extras() -> Iterator[tuple[str, list[str]]]:
    """The extra and the packages of every call of `require_extra`."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "require_extra":
                extra, *packages = (ast.literal_eval(argument) for argument in node.args)
                yield extra, packages


def test_an_extra_that_an_error_names_has_the_package() -> None:
    known = {name: {each.name for each in lines} for name, lines in extras().items()}
    calls = list(required_extras())
    assert len(calls) > 5
    owners = packages_distributions()

    def is_known(extra: str, package: str) -> bool:
        return any(canonicalize_name(name) in known[extra] for name in (package, *owners.get(package, ())))

    assert [call for call in calls if not all(is_known(call[0], package) for package in call[1])] == []


def installing(extra: str) -> str:
    return f"Install it with: pip install 'trysquare[{extra}]'"


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages of the extras, as if they were not installed."""
    for name in ("httpx2", "httpcore2", "jsonschema", "jsonpath"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("absent")
async def test_a_model_behind_an_api_names_its_extra() -> None:
    with pytest.raises(ToolError) as missing:
        async with open_model("openai:m@http://127.0.0.1:1/v1"):
            pass
    assert missing.value.code == ErrorCode.MODEL_UNAVAILABLE
    assert missing.value.message == "A model behind an HTTP API requires the package httpx2, which is not installed."
    assert missing.value.instruction == installing("models")


async def called(folder: Path, tool: str, arguments: JsonObject, **settings: Any) -> tuple[Any, Any]:
    """The code and the instruction that a tool of the opened settings answers with."""
    async with open_app(Settings(project=folder, **settings)) as app:
        result = await call(app.toolset, tool, arguments)
    return result.code, result.instruction


@pytest.mark.usefixtures("absent")
async def test_content_tools_name_their_extra(tmp_path: Path) -> None:
    content = {"content": {"google_token": "x"}, "workbench": [tmp_path]}
    feed = await called(tmp_path, "rss_feed", {"action": "fetch", "url": "https://a.example"}, **content)
    assert feed == (ErrorCode.FETCH_FAILED, installing("content"))
    events = await called(tmp_path, "calendar", {"action": "get_event", "event_id": "1"}, **content)
    assert events == (ErrorCode.UPSTREAM_UNAVAILABLE, installing("content"))


@pytest.mark.usefixtures("absent")
async def test_the_schema_of_an_answer_names_its_extra(tmp_path: Path) -> None:
    wanted = {"action": "generate_structured", "prompt": "p", "json_schema": {"type": "object"}}
    model = {"model": "openai:m@http://127.0.0.1:1/v1", "workbench": [tmp_path]}
    assert await called(tmp_path, "logit", wanted, **model) == (ErrorCode.MODEL_UNAVAILABLE, installing("models"))


@pytest.mark.usefixtures("absent")
async def test_a_remote_server_behind_the_gateway_names_its_extra(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"far": {"url": "https://a.example/mcp"}}}), encoding="utf-8")
    answer = await called(tmp_path, "mcp_far", {"action": "list"}, gateway=[file])
    assert answer == (ErrorCode.UPSTREAM_UNAVAILABLE, installing("gateway"))


@pytest.mark.usefixtures("absent")
def test_signing_in_names_its_extra(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"far": {"url": "https://a.example/mcp"}}}), encoding="utf-8")
    assert main(["gateway", "login", "far", "--gateway", str(file)]) == 1
    assert installing("login") in capsys.readouterr().err


@pytest.mark.usefixtures("absent")
def test_a_path_into_a_large_result_names_its_extra() -> None:
    with pytest.raises(Refused) as missing:
        query({"path": "$.a", "offset": 0, "budget": 100}, b"{}")
    assert "pip install 'trysquare[gateway]'" in (missing.value.instruction or "")


@pytest.mark.usefixtures("absent")
def test_schemas_of_bots_name_their_extra(tmp_path: Path) -> None:
    scanner = {"kind": "schema", "applies_to": "story", "schema": {"type": "object"}}
    rule = {"description": "A rule.", "scanner": scanner}
    bot = write_bot(tmp_path, {"behaviors/1_shape/3_rules/a_rule.json": rule})
    with pytest.raises(ToolError) as missing:
        load_bot(bot)
    assert missing.value.instruction == installing("bots")


def closure() -> set[str]:
    """The distributions of a base install."""
    found: set[str] = set()
    waiting = [each for each in base() if each.marker is None or each.marker.evaluate()]
    while waiting:
        requirement = waiting.pop()
        if (name := canonicalize_name(requirement.name)) in found:
            continue
        found.add(name)
        try:
            lines = requires(requirement.name) or []
        except PackageNotFoundError:
            continue
        environments = [{"extra": extra} for extra in requirement.extras or {""}]
        waiting += [
            inner
            for inner in map(Requirement, lines)
            if inner.marker is None or any(inner.marker.evaluate(environment) for environment in environments)
        ]
    return found


BASE_ONLY = """
import sys
from importlib.abc import MetaPathFinder

hidden = set(HIDDEN)

class Hide(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Hide())

import asyncio
import json
from pathlib import Path

from trysquare.app import open_app
from trysquare.core.call import call_tool
from trysquare.server import http_app
from trysquare.settings import Settings

async def main(folder):
    given = Path(folder)
    settings = Settings(
        project=given, include_example_tools=True, workbench=[given], debugger=True, gateway=[given / "mcp.json"],
        bot=[Path(BOT)],
    )
    async with open_app(settings) as app:
        found = await call_tool(app.toolset, "greet", {"name": "Ada"})
        http_app(app.toolset)
        print(json.dumps([found.success, len(app.toolset.tools()) > 20]))

asyncio.run(main(sys.argv[1]))
"""


def test_a_base_install_opens_every_provider_that_needs_no_extra(tmp_path: Path) -> None:
    inside = closure()
    hidden = [top for top, owners in packages_distributions().items() if not {*map(canonicalize_name, owners)} & inside]
    assert {"mcp", "mcp_types", "starlette", "anyio", "httpx2", "jsonschema", "jinja2", "dbos"} <= set(hidden)
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {}}), encoding="utf-8")
    bot = write_bot(tmp_path / "bots")
    program = BASE_ONLY.replace("HIDDEN", repr(hidden)).replace("BOT", repr(str(bot)))
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == [True, True]


SERVED = """
import sys
from trysquare.cli.main import main

code = main(["serve", "--tools", "trysquare.example_tools:tools"])
print(code, *sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def test_a_stdio_server_loads_no_package_that_it_does_not_need() -> None:
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "greet", "arguments": {"name": "Ada"}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    ended = subprocess.run(
        [sys.executable, "-c", SERVED], input=lines, capture_output=True, text=True, timeout=100, check=True
    )
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [1, 2, 3]
    code, *loaded = ended.stderr.splitlines()[-1].split()
    assert code == "0"
    assert "msgspec" in loaded
    unneeded = {"mcp", "mcp_types", "starlette", "anyio", "httpx2", "httpcore2", "jsonschema", "uvicorn", "jwt", "yaml"}
    assert unneeded & set(loaded) == set()


def test_the_oldest_versions_that_are_tried_are_the_declared_ones() -> None:
    text = (ROOT / "constraints" / "oldest.txt").read_text(encoding="utf-8")
    pins = {name: Version(version) for name, version in re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", text, re.MULTILINE)}
    untried = [
        f"{requirement} is tried with {pins[canonicalize_name(requirement.name)]}"
        for requirement in declared()
        for specifier in requirement.specifier
        if specifier.operator == ">=" and pins[canonicalize_name(requirement.name)] != Version(specifier.version)
    ]
    assert untried == [], "Raise the lower bound to the version that is tried, or run `make lock` after lowering one."
