"""The fuzzed tools over stdio, as a process of its own: `python -m tests.fuzz.stdio_server`."""

from __future__ import annotations

import asyncio
import logging

from tests.fuzz.toolset import fuzz_toolset

from trysquare.serve.server import ServeOptions
from trysquare.serve.stdio import serve_stdio

if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(serve_stdio(fuzz_toolset(), ServeOptions(name="fuzz", version="1")))
