"""Attempts to end or restart the server without the right to do so."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import Attack
from tests.bots.bot_folders import write_bot
from tests.server.clients import served_http
from tests.server.test_http import connected
from tests.support import about
from trysquare import call_tool
from trysquare.bots import BotConfig, open_bot
from trysquare.bots.workflow.runs import open_workflows
from trysquare.server import HttpOptions, StoredTokens
from trysquare.store.database import open_database
from trysquare.store.tokens import Tokens

VERSIONS = ("legacy", "2026-07-28")
RESTART = {"parameters": {"hard": True}}


@asynccontextmanager
async def bot_over_http(
    tmp_path: Path, *, scopes: Iterable[str] | None = None, tokens: bool = True
) -> AsyncGenerator[tuple[str, str | None, list[str]]]:
    """The minimal bot over HTTP: its address, a stored token, and what was done to the process."""
    project = tmp_path / "project"
    project.mkdir()
    ended: list[str] = []
    config = BotConfig(folder=write_bot(tmp_path / "bot"), project=project, project_named=True, watch=False)
    database = open_database(tmp_path / "tokens" / "state.db")
    try:
        stored = Tokens(database)
        token = stored.create("eve", by="operator", scopes=scopes)[0] if tokens else None
        http = HttpOptions(verifier=StoredTokens(stored.find)) if tokens else HttpOptions()
        async with (
            open_bot(
                config,
                open_store=lambda root: open_workflows(None, root),
                approvals=None,
                leave=lambda: ended.append("left"),
            ) as toolset,
            served_http(toolset, http=http) as address,
        ):
            yield address, token, ended
    finally:
        database.close()


def code_of(told: Any) -> str | None:
    """The error code of an answer, or None where the call succeeded."""
    return about(told).get("code")


@pytest.mark.parametrize("mode", VERSIONS)
@pytest.mark.parametrize("scopes", [None, ["bots"]], ids=["all toolsets", "bots only"])
async def test_a_token_without_the_right_does_not_restart_the_server(
    tmp_path: Path, attack: Attack, mode: str, scopes: list[str] | None
) -> None:
    attack(door=f"HTTP {mode}", attempt=f"restart with a token for {scopes or 'all toolsets'}")
    async with (
        bot_over_http(tmp_path, scopes=scopes) as (address, token, ended),
        connected(f"{address}/mcp", mode, token=token) as client,
    ):
        for name, arguments in (
            ("mini_restart_server", RESTART),
            ("mini_restart_server", {}),
            ("mini_do", {"parameters": {"tool": "mini_restart_server", "hard": True}}),
        ):
            told = await client.call_tool(name, arguments)
            assert code_of(told) == "PERMISSION_DENIED"
            assert about(told)["right"] == "server:restart"
    assert ended == []


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_caller_without_a_token_does_not_restart_an_open_server(
    tmp_path: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"HTTP {mode}, no tokens", attempt="restart the server")
    async with (
        bot_over_http(tmp_path, tokens=False) as (address, _, ended),
        connected(f"{address}/mcp", mode) as client,
    ):
        assert code_of(await client.call_tool("mini_restart_server", RESTART)) == "PERMISSION_DENIED"
    assert ended == []


@pytest.mark.parametrize("mode", VERSIONS)
@pytest.mark.parametrize("scopes", [["server:restart"], ["bots", "server:restart"]], ids=str)
async def test_a_token_with_the_right_restarts_the_server(tmp_path: Path, mode: str, scopes: list[str]) -> None:
    async with (
        bot_over_http(tmp_path, scopes=scopes) as (address, token, ended),
        connected(f"{address}/mcp", mode, token=token) as client,
    ):
        assert code_of(await client.call_tool("mini_restart_server", RESTART)) is None
    assert ended == ["left"]


async def test_the_user_of_this_machine_has_the_right(tmp_path: Path) -> None:
    config = BotConfig(folder=write_bot(tmp_path / "bot"), project=tmp_path, project_named=True, watch=False)
    async with open_bot(
        config, open_store=lambda root: open_workflows(None, root), approvals=None, leave=lambda: None
    ) as toolset:
        assert (await call_tool(toolset, "mini_restart_server")).success
