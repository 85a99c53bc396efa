"""The doors to the vault's tools: every way in which a call can reach a tool, with a human behind it or without."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import fastmcp
import mcp_types as types
from fastmcp.client.elicitation import ElicitResult as FastMcpAnswer
from fastmcp.client.transports import FastMCPTransport
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.attacks.vault import Vault
from tests.in_process import in_process
from tests.server.clients import served_http
from tests.support import about
from trysquare.catalog import with_catalog
from trysquare.integrations.fastmcp import TrysquareProvider

ROOT = Path(__file__).parents[2]
VERSIONS = {"2026-07-28": "2026-07-28", "2025-11-25": "legacy"}


class Human:
    """Gives one answer after the other, the last one again and again, and remembers what was asked."""

    def __init__(self, *answers: tuple[str, dict[str, Any] | None]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def answer(self, message: str) -> tuple[Any, dict[str, Any] | None]:
        self.asked.append(message)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    async def __call__(self, context: object, params: Any) -> types.ElicitResult:
        action, content = self.answer(params.message)
        return types.ElicitResult(action=action, content=content)

    async def in_fastmcp(self, message: str, *_: Any) -> FastMcpAnswer[Any]:
        action, content = self.answer(message)
        return FastMcpAnswer(action=action, content=content)


Call: TypeAlias = Callable[..., Any]
"""`await call(name, arguments, meta=None)` gives the code of the failure, or None where it succeeded."""
Door: TypeAlias = Callable[[Vault, Human | None], AbstractAsyncContextManager[Call]]


def _code(result: Any) -> str | None:
    return about(result)["code"] if result.is_error else None


def _calling(client: Any) -> Call:
    async def call(name: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None) -> str | None:
        try:
            return _code(await client.call_tool(name, arguments, meta=meta))
        except MCPError as error:
            return (error.error.data or {}).get("code", "PROTOCOL_ERROR")

    return call


def _options(human: Human | None) -> dict[str, Any]:
    return {} if human is None else {"elicitation_callback": human}


def build_server_door(mode: str, *, catalog: bool = False) -> Door:
    @asynccontextmanager
    async def door(vault: Vault, human: Human | None) -> AsyncGenerator[Call]:
        toolset = with_catalog(vault.toolset) if catalog else vault.toolset
        async with Client(in_process(toolset), mode=mode, **_options(human)) as client:  # pyright: ignore[reportArgumentType]
            call = _calling(client)

            async def through(name: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None) -> Any:
                return await call("call_tool", {"name": name, "arguments": arguments}, meta)

            yield through if catalog else call

    return door


def http_door(mode: str) -> Door:
    @asynccontextmanager
    async def door(vault: Vault, human: Human | None) -> AsyncGenerator[Call]:
        async with served_http(vault.toolset) as url, Client(f"{url}/mcp", mode=mode, **_options(human)) as client:  # pyright: ignore[reportArgumentType]
            yield _calling(client)

    return door


def stdio_door(mode: str) -> Door:
    @asynccontextmanager
    async def door(vault: Vault, human: Human | None) -> AsyncGenerator[Call]:
        command = ["-m", "tests.attacks.vault", str(vault.record)]
        parameters = StdioServerParameters(command=sys.executable, args=command, cwd=ROOT)
        async with Client(parameters, mode=mode, **_options(human)) as client:  # pyright: ignore[reportArgumentType]
            yield _calling(client)

    return door


def fastmcp_door(mode: str) -> Door:
    @asynccontextmanager
    async def door(vault: Vault, human: Human | None) -> AsyncGenerator[Call]:
        server = fastmcp.FastMCP("host", providers=[TrysquareProvider(vault.toolset)])
        asking: dict[str, Any] = {} if human is None else {"elicitation_handler": human.in_fastmcp}
        client: fastmcp.Client[FastMCPTransport] = fastmcp.Client(server, mode=mode, **asking)
        async with client:

            async def call(name: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None) -> Any:
                return _code(await client.call_tool(name, arguments, meta=meta, raise_on_error=False))

            yield call

    return door


MCP_DOORS: dict[str, Door] = {
    f"{name} {version}": make(mode)
    for version, mode in VERSIONS.items()
    for name, make in {
        "build_server": build_server_door,
        "catalogue's call_tool": lambda mode: build_server_door(mode, catalog=True),
        "http_app": http_door,
        "serve_stdio": stdio_door,
        "TrysquareProvider": fastmcp_door,
    }.items()
}
