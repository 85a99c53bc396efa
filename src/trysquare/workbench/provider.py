"""Lifespan of the workbench: workspaces, their tools, capability probes."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.prefix import final_name, prefix_name
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.toolset import CombinedToolset, StaticToolset, Toolset
from trysquare.processes.sandbox.backends import available_sandbox, sandbox_unavailable
from trysquare.processes.supervisor import ProcessSupervisor, supervise
from trysquare.workbench.context import WorkspaceContext
from trysquare.workbench.git import git_folders, repository_paths
from trysquare.workbench.grep import Grep
from trysquare.workbench.sandbox import Sandbox
from trysquare.workbench.tools.bash import bash_tool
from trysquare.workbench.tools.code_edit import code_edit_tool
from trysquare.workbench.tools.file import file_tool
from trysquare.workbench.tools.git import git_tool
from trysquare.workbench.tools.navigate import navigate_tool
from trysquare.workbench.tools.search import search_tool
from trysquare.workbench.tools.test import test_tool
from trysquare.workbench.undo import UndoLog
from trysquare.workbench.workspace import WorkbenchConfig, Workspace


def code_probes(root: Path) -> dict[str, Callable[[], Awaitable[str | None]]]:
    """Capability probes; each returns None if available, else the reason."""
    return {"bash": _bash, "git": lambda: _git(root)}


async def _bash() -> str | None:
    if shutil.which("bash") is None:
        return "bash is not installed"
    wanted = WorkbenchConfig(root=Path()).sandboxes
    backend = await run_in_thread(lambda: available_sandbox(wanted))
    return None if backend is not None else sandbox_unavailable(wanted).message


async def _git(root: Path) -> str | None:
    if shutil.which("git") is None:
        return "git is not installed"
    try:
        await run_in_thread(lambda: git_folders(root.resolve()))
    except ToolError as error:
        return error.message
    return await _bash()


TOOLS: tuple[Callable[[WorkspaceContext], Tool], ...] = (
    file_tool,
    code_edit_tool,
    search_tool,
    navigate_tool,
    git_tool,
    bash_tool,
    test_tool,
)


@asynccontextmanager
async def open_workbench(config: WorkbenchConfig) -> AsyncGenerator[Toolset]:
    """Open the tools of one workspace. Processes that they started have ended when the block is left."""
    try:
        workspace = Workspace(config.root)
    except OSError as error:
        raise ConfigurationError(
            f"cannot open the workspace: {error.strerror or error}.", where=str(config.root), hint="Name a directory."
        ) from None
    async with AsyncExitStack() as stack:
        stack.callback(workspace.close)
        supervisor = await stack.enter_async_context(supervise())
        sandbox = Sandbox(config, workspace.root, supervisor, lambda: repository_paths(workspace.root))
        ctx = WorkspaceContext(
            config=config,
            workspace=workspace,
            sandbox=sandbox,
            grep=Grep(workspace, supervisor),
            undo=UndoLog(workspace.root),
        )
        yield StaticToolset(_with_prefix([_build_tool(make, ctx, supervisor) for make in TOOLS], config.prefix))


def _build_tool(make: Callable[[WorkspaceContext], Tool], ctx: WorkspaceContext, supervisor: ProcessSupervisor) -> Tool:
    """Build a tool whose context hides the paths that are hidden from it."""
    tool = make(ctx)
    hidden = ctx.config.hidden_from(tool.name)
    if not hidden:
        return tool
    workspace = ctx.workspace.hiding([pattern for pattern in hidden if not pattern.startswith("/")])
    own = replace(ctx, workspace=workspace, grep=Grep(workspace, supervisor), sandbox=ctx.sandbox.hiding(hidden))
    return make(own)


@asynccontextmanager
async def open_workbenches(
    roots: Sequence[Path], *, project: Path, further: Iterable[Tool] = (), hidden: Sequence[str] = ()
) -> AsyncGenerator[Toolset]:
    """Open the tools of several workspaces; with more than one, names get the directory's name as prefix."""
    async with AsyncExitStack() as stack:
        toolsets: list[Toolset] = [StaticToolset(further)]
        for root in roots:
            prefix = re.sub(r"[^A-Za-z0-9_-]", "_", root.name) if len(roots) > 1 else ""
            config = WorkbenchConfig(root=root, project=project, prefix=prefix, hidden=tuple(hidden))
            toolsets.append(await stack.enter_async_context(open_workbench(config)))
        yield CombinedToolset(toolsets)


def _with_prefix(tools: list[Tool], prefix: str) -> list[Tool]:
    own = {each.name for each in tools}

    def rename(name: str) -> str:
        return final_name(name, prefix) if name in own else name

    return [prefix_name(each, prefix=prefix, rename=rename) for each in tools] if prefix else tools
