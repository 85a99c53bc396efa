"""Context shared by the tools of one workspace, read versions, argument types."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias, Unpack

from pydantic import Field

from trysquare.core.metadata import MetadataOptions
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool, tool
from trysquare.processes.sandbox.job import Outcome, SandboxJob
from trysquare.workbench.grep import Grep
from trysquare.workbench.sandbox import Sandbox
from trysquare.workbench.undo import UndoLog
from trysquare.workbench.workspace import WorkbenchConfig, Workspace, changed_between, display_path, snapshot

MAX_FILES = 500
MAX_CACHED = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadVersion:
    """Version of a file that a caller has read."""

    version: str
    content: str | None = None
    """Omitted for a large file; with it, a conflict can report what changed since."""


class ReadVersions:
    """Latest version of each file that each caller has read, bounded."""

    def __init__(self) -> None:
        self._versions: OrderedDict[tuple[str, str], ReadVersion] = OrderedDict()
        self._lock = threading.Lock()

    def remember(self, caller: str, path: str, version: str, content: str) -> None:
        cached = content if len(content) <= MAX_CACHED else None
        with self._lock:
            self._versions[caller, path] = ReadVersion(version=version, content=cached)
            self._versions.move_to_end((caller, path))
            while len(self._versions) > MAX_FILES:
                self._versions.popitem(last=False)

    def forget(self, caller: str, path: str) -> None:
        with self._lock:
            self._versions.pop((caller, path), None)

    def of(self, caller: str, path: str) -> ReadVersion | None:
        with self._lock:
            return self._versions.get((caller, path))


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceContext:
    """Services and state that the tools of one workspace share."""

    config: WorkbenchConfig
    workspace: Workspace
    sandbox: Sandbox
    grep: Grep
    undo: UndoLog
    read_versions: ReadVersions = field(default_factory=ReadVersions)
    writing: threading.Lock = field(default_factory=threading.Lock)
    """Held from the check before a change until the change is made."""


KIND = "x-trysquare-kind"

ExistingFile: TypeAlias = Annotated[
    str, Field(description="File, relative to the workspace", min_length=1, json_schema_extra={KIND: "existing_file"})
]
WorkspacePath: TypeAlias = Annotated[
    str, Field(description="File, relative to the workspace", min_length=1, json_schema_extra={KIND: "workspace_path"})
]
Directory: TypeAlias = Annotated[
    str, Field(description="Folder, relative to the workspace", json_schema_extra={KIND: "workspace_path"})
]
Line: TypeAlias = Annotated[int, Field(description="Counted from 1", ge=1, json_schema_extra={KIND: "line"})]
Branch: TypeAlias = Annotated[str, Field(description="Branch", min_length=1, json_schema_extra={KIND: "branch"})]
Version: TypeAlias = Annotated[
    str | None, Field(description="Of the file as you read it; one that changed since is left alone")
]

MAX_NAMED = 200


def workbench_tool(function: Callable[..., Any], **options: Unpack[MetadataOptions]) -> Tool:
    """Make a tool with the metadata that all tools of the workbench share."""
    shared: MetadataOptions = {
        "toolset": "workbench", "requirement": "required", "open_world": False, "result_limit": None,
    }  # fmt: skip
    shared.update(options)
    return tool(function, **shared)


async def run_tracked(ctx: WorkspaceContext, job: SandboxJob) -> tuple[Outcome, list[str] | None]:
    """Run a job and list the files that it changed; None in place of the list if the workspace is too large."""
    before = await run_in_thread(lambda: snapshot(ctx.workspace))
    outcome = await ctx.sandbox.run(job)
    after = await run_in_thread(lambda: snapshot(ctx.workspace))
    if before is None or after is None:
        return outcome, None
    return outcome, [display_path(path) for path in changed_between(before, after)[:MAX_NAMED]]
