"""A program for tests: a pool of toy servers, each with a stray of its own, that waits to be killed.

    python gateway_process.py COUNT MARK

It writes one line when all servers have been called.
"""

from __future__ import annotations

import asyncio
import sys

from tests.gateway.toys import hear_nothing, toy, words
from trysquare.gateway.pool.pool import open_pool


async def main(count: int, mark: str) -> None:
    """Start the servers, say so, and wait."""
    servers = {f"toy{number}": toy(f"toy{number}", env={"TOY_MARK": mark}) for number in range(count)}
    async with open_pool(servers, on_change=hear_nothing) as pool:
        await asyncio.gather(*(words(pool, "stray", server=name) for name in servers))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
