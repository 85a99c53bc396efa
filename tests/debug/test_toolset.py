"""The debugger's set of tools: its names, its size, and what holds for all of them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.debug.serving import Desktop, served

LARGEST = 12 * 1024
ORIGINAL = {
    "init": {"language", "mode", "framework", "workspace_root", "workspace_roots", "launch_config_name", "verbose"},
    "session_start": {
        "target", "pid", "host", "port", "language", "breakpoints", "args", "env", "cwd", "runtime_path",
        "launch_config_name", "workspace_root", "source_paths", "session_id", "subscribe_events", "module",
    },
    "execute": {"action", "until", "jump_target", "wait_for_stop", "collect_output", "session_id"},
    "step": {"action", "count", "session_id"},
    "inspect": {"target", "expression", "frame", "detailed", "session_id"},
    "breakpoint": {
        "action", "location", "column", "condition", "hit_condition", "log_message", "name", "access_type",
        "session_id",
    },
    "variable": {"action", "expression", "name", "value", "code", "frame", "session_id"},
    "session": {"action", "session_id", "keep_breakpoints"},
    "config": {"action", "key", "value", "language", "config_name"},
    "context": {"detail_level", "include_suggestions", "session_id"},
    "run_until": {"location", "alternative_locations", "condition", "session_id"},
    "adapter": {"action", "language", "version", "force"},
}  # fmt: skip
"""The tools that every debugger for agents of this family has, with their parameters."""
ADDED = ("watch", "explain", "trace", "who_wrote", "probe", "diff", "dump")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def desktop(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Desktop]:
    async with served(tmp_path_factory.mktemp("served")) as desktop:
        yield desktop


@pytest.fixture(scope="module")
async def schemas(desktop: Desktop) -> dict[str, dict[str, Any]]:
    tools = (await desktop.client.list_tools()).tools
    return {tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in tools}


async def test_the_list_of_tools_is_small(schemas: dict[str, dict[str, Any]]) -> None:
    text = json.dumps(list(schemas.values()), ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) < LARGEST


async def test_every_name_is_served(schemas: dict[str, dict[str, Any]]) -> None:
    assert set(schemas) == {f"debug_{name}" for name in [*ORIGINAL, *ADDED]}


@pytest.mark.parametrize("tool", ORIGINAL)
async def test_every_usual_parameter_is_there(tool: str, schemas: dict[str, dict[str, Any]]) -> None:
    known = set(schemas[f"debug_{tool}"]["inputSchema"]["properties"])
    assert ORIGINAL[tool] - known == set()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("config", {"action": "show"}),
        ("config", {"action": "display"}),
        ("config", {"action": "environment"}),
        ("session", {"action": "ls"}),
        ("adapter", {"action": "status"}),
    ],
)
async def test_actions_have_more_than_one_word(desktop: Desktop, tool: str, arguments: dict[str, Any]) -> None:
    await desktop.call(tool, **arguments)


async def test_a_setting_holds_for_the_calls_that_follow(desktop: Desktop, tmp_path: Path) -> None:
    program = tmp_path / "deep.py"
    program.write_text("def down(n):\n    return down(n - 1) if n else 0\n\n\ndown(30)\n", encoding="utf-8")
    await desktop.call("config", action="set", key="frames", value=3)
    await desktop.call("config", action="set", key="timing", value=1)
    await desktop.start(program)
    await desktop.refused("inspect", target="stack")
    session = await desktop.call(
        "session_start",
        target="deep.py",
        workspace_root=str(tmp_path),
        breakpoints=[{"file": "deep.py", "line": 2, "condition": "n == 0"}],
    )
    assert session["timing"]["milliseconds"] > 0
    stack = await desktop.call("inspect", target="stack")
    assert len(stack["data"]["stack"]) == stack["data"]["showing_frames"] == 3
    assert (stack["data"]["truncated"], stack["data"]["total_frames"]) == (True, 32)
    assert (await desktop.refused("config", action="set", key="frames", value=0))["code"] == "VALIDATION_INVALID_PARAM"
    await desktop.call("config", action="set", key="timing", value=0)


async def test_a_session_that_is_not_ready_is_said_to_be_what_it_is(desktop: Desktop, tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("print(1)\n", encoding="utf-8")
    ended = await desktop.start(tmp_path / "short.py")
    assert ended["data"]["exit_code"] == 0
    assert (await desktop.refused("step"))["code"] == "SESSION_TERMINATED"
    assert (await desktop.refused("step", session_id="nobody"))["code"] == "SESSION_NOT_FOUND"
