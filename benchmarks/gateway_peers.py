"""Every gateway that is measured: how it is started over a file with servers, and how a tool behind it is called."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.gateway_client import Caller, EventsCaller, Refused, StreamableCaller
from benchmarks.peers.gateways import (
    MCP_HUB,
    MCP_PROXY,
    fastmcp_command,
    mcp_hub_command,
    mcp_hub_environment,
    mcp_proxy_command,
)
from benchmarks.peers.known import BASELINE, BASELINE_VARIABLE, ROOT, TITLES, node, python_path
from tests.gateway.torture.fronts import end, free_port, own_environment, write_config

SERVERS = ROOT / "examples" / "gateway" / "node_modules" / "@modelcontextprotocol"
_PATIENCE = 90.0
_PAUSE = 0.01
Named = tuple[str, dict[str, Any]]
"""The name of a tool of the gateway, and its arguments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of gateway."""

    title: str
    command: Callable[[Path, int, Path], list[str]]
    """By the file with servers, the port, and a folder for its state."""
    caller: Callable[[int, str], Caller]
    """By the port and the server that is called."""
    name: Callable[[str, str, dict[str, Any]], Named]
    """By server, tool and inputs."""
    environment: Callable[[Path], dict[str, str]] = own_environment


def _ours(config: Path, port: int, folder: Path) -> list[str]:
    words = ["serve", "--gateway", str(config), "--project", str(folder), "--http", f"127.0.0.1:{port}"]
    return [sys.executable, "-m", "trysquare", *words]


def _our_kind(peer: str) -> Kind:
    return Kind(
        title=TITLES[peer],
        command=_ours,
        caller=lambda port, server: StreamableCaller(port),
        name=lambda server, tool, inputs: (
            f"mcp_{server}",
            {"action": "execute", "tool_name": tool, "tool_inputs": inputs},
        ),
        environment=lambda folder: {**own_environment(folder), "PYTHONPATH": python_path(peer)},
    )


TRYSQUARE, FASTMCP, PROXY, HUB = "trysquare", "fastmcp", "mcp-proxy", "mcp-hub"
OURS = (TRYSQUARE, BASELINE)
KINDS: Mapping[str, Kind] = {
    TRYSQUARE: _our_kind(TRYSQUARE),
    BASELINE: _our_kind(BASELINE),
    FASTMCP: Kind(
        title="FastMCP 4 proxy",
        command=lambda config, port, folder: [*fastmcp_command(config), str(port)],
        caller=lambda port, server: StreamableCaller(port),
        name=lambda server, tool, inputs: (f"{server}_{tool}", inputs),
    ),
    PROXY: Kind(
        title=f"mcp-proxy {MCP_PROXY}",
        command=lambda config, port, folder: mcp_proxy_command(config, port),
        caller=lambda port, server: StreamableCaller(port, f"/servers/{server}/mcp/"),
        name=lambda server, tool, inputs: (tool, inputs),
    ),
    HUB: Kind(
        title="mcp-hub 4.2",
        command=lambda config, port, folder: mcp_hub_command(config, port),
        caller=lambda port, server: EventsCaller(port),
        name=lambda server, tool, inputs: (f"{server}__{tool}", inputs),
        environment=mcp_hub_environment,
    ),
}


def known_kinds() -> list[str]:
    """The gateways that can be measured here."""
    if not SERVERS.is_dir():
        raise SystemExit("The MCP servers of the example are missing: run `make servers`.")
    missing = set[str]() if MCP_HUB.is_dir() else {HUB}
    if BASELINE_VARIABLE not in os.environ:
        missing.add(BASELINE)
    return [name for name in KINDS if name not in missing]


def real_servers(folder: Path) -> dict[str, dict[str, Any]]:
    """The servers from npm."""
    memory = folder / "memory.jsonl"
    return {
        "everything": _entry("server-everything", "stdio"),
        "memory": {**_entry("server-memory"), "env": {"MEMORY_FILE_PATH": str(memory)}},
        "files": _entry("server-filesystem", str(folder)),
    }


def _entry(package: str, *words: str) -> dict[str, Any]:
    return {"command": str(node()), "args": [str(SERVERS / package / "dist" / "index.js"), *words]}


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """A gateway that was started."""

    kind: Kind
    port: int
    pid: int
    started: float

    async def opened(self, server: str) -> Caller:
        """A client for a server. The gateway may still be starting."""
        until = time.monotonic() + _PATIENCE
        while True:
            caller = self.kind.caller(self.port, server)
            try:
                await caller.open()
            except (OSError, EOFError, Refused):
                caller.close()
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(_PAUSE)
            else:
                return caller

    async def answer(self, caller: Caller, server: str, tool: str, inputs: dict[str, Any]) -> bytes:
        """What the gateway answers."""
        name, arguments = self.kind.name(server, tool, inputs)
        return await caller.call(name, arguments)

    async def until_answered(self, server: str, tool: str, inputs: dict[str, Any], expected: bytes) -> float:
        """Seconds until a call is answered rightly, tried again while it is not."""
        began = time.monotonic()
        caller = await self.opened(server)
        try:
            while True:
                answer = await self._tried(caller, server, tool, inputs)
                if expected in answer:
                    return time.monotonic() - began
                if time.monotonic() - began > _PATIENCE:
                    raise RuntimeError(f"{self.kind.title} does not answer rightly: {answer[:300]!r}")
                await asyncio.sleep(_PAUSE)
        finally:
            caller.close()

    async def _tried(self, caller: Caller, server: str, tool: str, inputs: dict[str, Any]) -> bytes:
        try:
            return await self.answer(caller, server, tool, inputs)
        except Refused as error:
            return str(error).encode()

    def memory(self) -> float:
        """MB of the gateway and whatever helps it, without the servers behind it, each shared page counted once."""
        whole = psutil.Process(self.pid)
        own = [one for one in (whole, *whole.children(recursive=True)) if one.pid == self.pid or not _is_server(one)]
        return sum(_proportional(one.pid) for one in own) / 1e6


def _is_server(process: psutil.Process) -> bool:
    words = " ".join(process.cmdline())
    return "chaos_process" in words or str(SERVERS) in words


def _proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


@contextlib.asynccontextmanager
async def running(name: str, servers: Mapping[str, dict[str, Any]], folder: Path) -> AsyncGenerator[Running]:
    """A gateway over some servers, ended at the end of the block."""
    kind, port = KINDS[name], free_port()
    command = kind.command(write_config(servers, folder), port, folder)
    with (folder / "log").open("w") as log:
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command, env=kind.environment(folder), cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            yield Running(kind=kind, port=port, pid=process.pid, started=started)
        finally:
            await end(process)


@contextlib.asynccontextmanager
async def plain_server(folder: Path) -> AsyncGenerator[Running]:
    """A server of ours with tools of its own, to compare with."""
    port = free_port()
    words = ["serve", "--tools", "benchmarks.peers.trysquare_tools:tools", "--project", str(folder)]
    command = [sys.executable, "-m", "trysquare", *words, "--http", f"127.0.0.1:{port}"]
    environment = {**own_environment(folder), "BENCH_TOOLS": "75", "PATH": os.environ["PATH"]}
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=ROOT, stdin=asyncio.subprocess.DEVNULL
    )
    kind = Kind(
        title="a plain tool",
        command=_ours,
        caller=lambda port, server: StreamableCaller(port),
        name=lambda server, tool, inputs: (tool, inputs),
    )
    try:
        yield Running(kind=kind, port=port, pid=process.pid, started=time.monotonic())
    finally:
        await end(process)


def text_within(answer: bytes) -> str:
    """The text of a whole result, however large."""
    return json.loads(answer)["result"]["content"][0]["text"]
