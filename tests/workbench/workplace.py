"""A workspace on disk with the code tools over it, for the tests of what callers see."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import missing_component
from trysquare import CallContext, Principal, Toolset, call_tool
from trysquare.core.context import SilentCaller
from trysquare.processes.sandbox.backends import available_sandbox
from trysquare.processes.sandbox.landlock_exec import missing as missing_landlock
from trysquare.testing import ScriptedCaller, approve
from trysquare.workbench import WorkbenchConfig, open_workbench


@dataclass(frozen=True, kw_only=True, slots=True)
class Workplace:
    """The tools, their workspace, and who calls them."""

    toolset: Toolset
    root: Path
    caller: str = "ann"
    agrees: bool = False
    """Whether a human agrees to every call that needs consent; else nobody can be asked."""

    def of(self, caller: str) -> Workplace:
        """The same tools for somebody else."""
        return replace(self, caller=caller)

    async def send(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its envelope, success or not."""
        caller = ScriptedCaller([approve()] * 9) if self.agrees else SilentCaller()
        context = CallContext(principal=Principal(subject=self.caller), caller=caller)
        return (await call_tool(self.toolset, tool, arguments, context)).to_json()

    async def done(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed."""
        told = await self.send(tool, **arguments)
        assert told["success"], told
        return told

    async def refused(self, tool: str, /, **arguments: Any) -> tuple[str, str]:
        """Call a tool that must fail; returns the code and the message."""
        told = await self.send(tool, **arguments)
        assert not told["success"], told
        return told["error"]["code"], told["error"]["message"]

    def write(self, path: str, text: str | bytes) -> Path:
        """Write a file behind the tools' back."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file


@asynccontextmanager
async def workplace(root: Path, **options: Any) -> AsyncGenerator[Workplace]:
    """A workspace in a folder, with its tools."""
    os.makedirs(root, exist_ok=True)
    async with open_workbench(WorkbenchConfig(root=root, **options)) as toolset:
        yield Workplace(toolset=toolset, root=root)


def need_sandbox(*ways: str) -> None:
    """End the test where commands cannot be held this way."""
    if ways == ("landlock",) and (reason := missing_landlock()) is not None:
        pytest.skip(reason)
    if available_sandbox(ways or ("bubblewrap", "landlock")) is None:
        missing_component(f"a sandbox ({', '.join(ways) or 'any'})", "install the Debian package bubblewrap")


def make_repository(root: Path) -> None:
    """A git repository with one commit on `main`."""
    if shutil.which("git") is None:
        missing_component("git", "install the Debian package git")
    root.mkdir(parents=True, exist_ok=True)
    (root / "a.txt").write_text("one\n", encoding="utf-8")
    for command in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "Ann"],
        ["config", "user.email", "ann@example.org"],
        ["add", "a.txt"],
        ["commit", "--quiet", "--no-verify", "--message=first"],
    ):
        git(root, *command)


def git(root: Path, *arguments: str) -> str:
    """Run git as its user would."""
    ran = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return ran.stdout
