"""A client that begins a task, prints its id, and looks at it until it is killed."""

from __future__ import annotations

import asyncio
import sys

import httpx2

from tests.server.task_calls import TaskClient, over_http


async def main(url: str) -> None:
    async with httpx2.AsyncClient(timeout=60) as http:
        client = TaskClient(over_http(http, url))
        task = await client.begin("once", name="Ada", asks=False)
        sys.stdout.write(f"{task}\n")
        sys.stdout.flush()
        await client.until(task)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
