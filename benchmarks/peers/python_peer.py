"""How a Python peer is started: `python -m benchmarks.peers.NAME stdio TOOLS` or `… http TOOLS PORT`."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any


def serve(*, stdio: Callable[[int], Coroutine[Any, Any, None]], app: Callable[[int], Any]) -> None:
    """Serve as the command line says."""
    logging.disable(logging.WARNING)
    transport, tools, *rest = sys.argv[1:]
    if transport == "stdio":
        asyncio.run(stdio(int(tools)))
    else:
        import uvicorn

        uvicorn.run(app(int(tools)), host="127.0.0.1", port=int(rest[0]), log_config=None, access_log=False)
