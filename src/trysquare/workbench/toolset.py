"""The workbench's door: opens the workspace and yields its tools."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import ConfigurationError
from trysquare.core.tool import Tool
from trysquare.core.toolset import CombinedToolset, FixedToolset, Toolset
from trysquare.processes.nursery import Nursery, open_nursery
from trysquare.workbench.bench import Bench
from trysquare.workbench.config import WorkbenchConfig
from trysquare.workbench.finding.grep import Grep
from trysquare.workbench.repository.repository import repository_places
from trysquare.workbench.shell.sandbox import Sandbox
from trysquare.workbench.tools.bash import bash_tool
from trysquare.workbench.tools.code_edit import code_edit_tool
from trysquare.workbench.tools.file import file_tool
from trysquare.workbench.tools.git import git_tool
from trysquare.workbench.tools.navigate import navigate_tool
from trysquare.workbench.tools.search import search_tool
from trysquare.workbench.tools.test import test_tool
from trysquare.workbench.undo_journal import UndoJournal
from trysquare.workbench.workspace import Workspace
from trysquare.wrappers.prefixed import final_name, prefixed

TOOLS: tuple[Callable[[Bench], Tool], ...] = (
    file_tool,
    code_edit_tool,
    search_tool,
    navigate_tool,
    git_tool,
    bash_tool,
    test_tool,
)


@asynccontextmanager
async def workbench_toolset(config: WorkbenchConfig) -> AsyncGenerator[Toolset]:
    """The tools of one workspace. Every process that they started has ended when the block is left."""
    workspace = _opened(config)
    async with AsyncExitStack() as stack:
        stack.callback(workspace.close)
        nursery = await stack.enter_async_context(open_nursery())
        sandbox = Sandbox(config, workspace.root, nursery, lambda: repository_places(workspace.root))
        bench = Bench(
            config=config,
            workspace=workspace,
            sandbox=sandbox,
            grep=Grep(workspace, nursery),
            undo=UndoJournal(workspace.root),
        )
        yield FixedToolset(_named([_made(make, bench, nursery) for make in TOOLS], config.prefix))


def _made(make: Callable[[Bench], Tool], bench: Bench, nursery: Nursery) -> Tool:
    """A tool on a bench without what is hidden from it."""
    made = make(bench)
    hidden = bench.config.hidden_from(made.name)
    if not hidden:
        return made
    workspace = bench.workspace.hiding([pattern for pattern in hidden if not pattern.startswith("/")])
    own = replace(bench, workspace=workspace, grep=Grep(workspace, nursery), sandbox=bench.sandbox.hiding(hidden))
    return make(own)


@asynccontextmanager
async def workbench_toolsets(
    roots: Sequence[Path], *, project: Path, further: Iterable[Tool] = (), hidden: Sequence[str] = ()
) -> AsyncGenerator[Toolset]:
    """The tools of each workspace; where there are several, their names begin with the folder's."""
    async with AsyncExitStack() as stack:
        toolsets: list[Toolset] = [FixedToolset(further)]
        for root in roots:
            prefix = re.sub(r"[^A-Za-z0-9_-]", "_", root.name) if len(roots) > 1 else ""
            config = WorkbenchConfig(root=root, project=project, prefix=prefix, hidden=tuple(hidden))
            toolsets.append(await stack.enter_async_context(workbench_toolset(config)))
        yield CombinedToolset(toolsets)


def _named(tools: list[Tool], prefix: str) -> list[Tool]:
    """The tools under names of their own, where there are others of the same kind."""
    own = {each.name for each in tools}

    def rename(name: str) -> str:
        return final_name(name, prefix) if name in own else name

    return [prefixed(each, prefix=prefix, rename=rename) for each in tools] if prefix else tools


def _opened(config: WorkbenchConfig) -> Workspace:
    try:
        return Workspace(config.root)
    except OSError as error:
        raise ConfigurationError(
            f"the workspace cannot be opened: {error.strerror or error}.", where=str(config.root), hint="Name a folder."
        ) from None
