"""Clients of the TypeScript SDK get every progress report over stdio, also the last one, however busy they are.

They drop a report that they read in one piece with the result of its call, so that the server has to keep them apart.
"""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from tests.e2e.stdio_process import REPOSITORY
from tests.support import NODE_PROJECT, node_command, node_program

pytestmark = pytest.mark.node

CALLS = 64
SERVER = [sys.executable, "-m", "tests.server.sample"]
PACKAGES = {"1": "@modelcontextprotocol/sdk/package.json", "2": "@modelcontextprotocol/client/package.json"}


@pytest.mark.parametrize("busy", [0, 60], ids=["idle", "busy"])
@pytest.mark.parametrize("together", [1, 8])
@pytest.mark.parametrize(("sdk", "era"), [("1", "legacy"), ("2", "legacy"), ("2", "2026-07-28")])
async def test_every_report_of_every_call_arrives(sdk: str, era: str, together: int, busy: int) -> None:
    node_command(PACKAGES[sdk])
    script = str(NODE_PROJECT / "progress.mjs")
    process = await asyncio.create_subprocess_exec(
        *(node_program(), script, sdk, era, str(CALLS), str(together), str(busy)),
        *SERVER,
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(100):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert json.loads(output) == {"1": CALLS, "2": CALLS, "3": CALLS}
