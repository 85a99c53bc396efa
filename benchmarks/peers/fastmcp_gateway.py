"""FastMCP 4's proxy over the servers of a file: `python -m benchmarks.peers.fastmcp_gateway CONFIG PORT`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fastmcp import FastMCP
from fastmcp.client.transports import ClientTransport, SSETransport, StdioTransport, StreamableHttpTransport
from fastmcp.server import create_proxy


def transport_of(entry: dict[str, Any]) -> ClientTransport:
    """How a server is reached."""
    if "command" in entry:
        return StdioTransport(entry["command"], entry.get("args", []), env=entry.get("env"), cwd=entry.get("cwd"))
    return (SSETransport if entry["type"] == "sse" else StreamableHttpTransport)(entry["url"])


def main(config: str, port: int) -> None:
    """Serve every server of the file. Its servers are asked for their era, whatever the client's is."""
    server: FastMCP[Any] = FastMCP("gateway")
    for name, entry in json.loads(Path(config).read_text(encoding="utf-8"))["mcpServers"].items():
        server.mount(create_proxy(transport_of(entry), mode="auto", name=name), namespace=name)
    server.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="ERROR")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
