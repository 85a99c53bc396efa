"""How a Python peer is started: `python -m benchmarks.peers.NAME stdio TOOLS` or `… http TOOLS PORT`.

`http-sessions` in place of `http` keeps a session for each client of 2025-11-25.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any


def serve(*, stdio: Callable[[int], Coroutine[Any, Any, None]], app: Callable[[int, bool], Any]) -> None:
    """Serve as the command line says. `app` gets the number of tools, and whether no sessions are kept."""
    logging.disable(logging.WARNING)
    transport, tools, *rest = sys.argv[1:]
    if transport == "stdio":
        asyncio.run(stdio(int(tools)))
    else:
        import uvicorn

        made = app(int(tools), transport == "http")
        uvicorn.run(made, host="127.0.0.1", port=int(rest[0]), log_config=None, access_log=False)
