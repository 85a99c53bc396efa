"""The debugger's tools as a caller has them, without a server between."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from trysquare import CallContext, Principal, Toolset, call_tool
from trysquare.debug import DebugConfig, open_debugger

STARTS_PROCESSES = True  # the programs that are debugged


def find_toolchains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilers that were installed for one user are found by that user's home, which tests do not have."""
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    for variable, folder in (("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")):
        if variable not in os.environ and (home / folder).is_dir():
            monkeypatch.setenv(variable, str(home / folder))


@dataclass(frozen=True, kw_only=True, slots=True)
class Tools:
    """The tools, the folder in which they work, and who calls them."""

    toolset: Toolset
    folder: Path
    principal: str = "ann"

    def of(self, principal: str) -> Tools:
        """The same tools for somebody else."""
        return Tools(toolset=self.toolset, folder=self.folder, principal=principal)

    def write(self, name: str, text: str) -> Path:
        """Write a program into the folder."""
        file = self.folder / name
        file.write_text(dedent(text), encoding="utf-8")
        return file

    async def send(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its envelope, success or not."""
        context = CallContext(principal=Principal(subject=self.principal))
        return (await call_tool(self.toolset, tool, arguments, context)).to_json()

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that has to succeed, and return what it tells."""
        envelope = await self.send(tool, **arguments)
        assert envelope["success"], envelope
        return envelope

    async def refused(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that has to fail, and return the envelope."""
        envelope = await self.send(tool, **arguments)
        assert not envelope["success"], envelope
        return envelope

    async def start(self, program: Path, *lines: int, **more: Any) -> dict[str, Any]:
        """Start a program with breakpoints at lines of it."""
        breakpoints = [{"file": program.name, "line": line} for line in lines]
        return await self.call("session_start", **{"target": program.name, "breakpoints": breakpoints, **more})

    async def sessions(self) -> list[dict[str, Any]]:
        """What `session list` tells."""
        return (await self.call("session", action="list"))["data"]["sessions"]


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[Tools]:
    """The tools in a folder; all that they started has ended when the block is left."""
    async with open_debugger(DebugConfig(root=folder)) as toolset:
        yield Tools(toolset=toolset, folder=folder)


def status_of(envelope: dict[str, Any]) -> str:
    """Where the program stands."""
    return envelope["data"]["execution_state"]["status"]


def line_of(envelope: dict[str, Any]) -> int:
    """The line at which the program stands."""
    return int(envelope["data"]["location"].split(" in ")[0].rsplit(":", 1)[1])


@contextmanager
def running(*command: str, user: int | None = None) -> Generator[subprocess.Popen[str]]:
    """A program that nobody debugs, once it has written something."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, user=user, cwd="/"
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def goes_on(process: subprocess.Popen[str]) -> bool:
    """Whether a program still writes."""
    assert process.stdout is not None
    return all(process.stdout.readline() for _ in range(3)) and process.poll() is None
