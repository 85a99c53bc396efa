"""Capabilities: what the code tools need of the machine, tried for real."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from trysquare.core.errors import ToolError
from trysquare.core.threads import run_in_thread
from trysquare.workbench.config import WorkbenchConfig
from trysquare.workbench.repository.repository import git_folders
from trysquare.workbench.shell.sandbox import available_way, no_sandbox


def code_probes(root: Path) -> dict[str, Callable[[], Awaitable[str | None]]]:
    """Probes by capability: each answers None where it is there, else why it is not."""
    return {"bash": _bash, "git": lambda: _git(root)}


async def _bash() -> str | None:
    if shutil.which("bash") is None:
        return "bash is not installed"
    wanted = WorkbenchConfig(root=Path()).sandboxes
    way = await run_in_thread(lambda: available_way(wanted))
    return None if way is not None else no_sandbox(wanted).message


async def _git(root: Path) -> str | None:
    if shutil.which("git") is None:
        return "git is not installed"
    try:
        await run_in_thread(lambda: git_folders(root.resolve()))
    except ToolError as error:
        return error.message
    return await _bash()
