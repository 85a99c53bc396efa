"""A program for tests: a gateway of its own that calls a server behind a login.

python -m tests.gateway.login_process URL SECRETS COUNT      calls it COUNT times
python -m tests.gateway.login_process URL SECRETS hold       holds the lock of its login until it is killed
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.gateway.remote_servers import channels, remote
from tests.gateway.toys import hear_nothing, words
from trysquare.gateway.pool.pool import open_pool
from trysquare.gateway.upstream.oauth import login_lock
from trysquare.store import Secrets


async def main(url: str, secrets: str, what: str) -> None:
    """Call the server, or hold the lock."""
    config = remote(url)
    if what == "hold":
        async with login_lock(config):
            sys.stdout.write("held\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
    async with open_pool({"far": config}, on_change=hear_nothing, transports=channels(Secrets(Path(secrets)))) as pool:
        for number in range(int(what)):
            assert await words(pool, "echo", number, server="far") == str(number)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
