"""Inspector's command line, the reference client, run against a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.e2e.stdio_process import REPOSITORY
from tests.support import node_command
from trysquare.core.json import JsonObject

LAUNCHER = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
Era = Literal["modern", "legacy"]

FAILED_CALL = 5
"""The exit code for a tool that answered with an error."""
NOT_PORTABLE = 6
"""The exit code for schemas that some client would refuse."""


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """What Inspector printed, and how it ended."""

    code: int
    output: str
    errors: str

    @property
    def result(self) -> JsonObject:
        """The server's answer. Inspector prints one JSON value."""
        parsed: Any = json.loads(self.output)
        return parsed["result"]


async def inspected(target: Sequence[str], era: Era, *arguments: str) -> Inspected:
    """Run one method against a server: a command (stdio), or `--server-url ADDRESS --transport http`."""
    process = await asyncio.create_subprocess_exec(
        *node_command(LAUNCHER),
        *("--cli", "-q", "--format", "json", "--protocol-era", era),
        *arguments,
        *target,
        cwd=REPOSITORY,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(90):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Inspected(code=process.returncode or 0, output=output.decode("utf-8"), errors=errors.decode("utf-8"))
