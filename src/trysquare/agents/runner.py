"""Opening of a run: model, tools, working copy."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from trysquare.agents.capabilities import local_probes
from trysquare.agents.definition import AgentDefinition, load_definition
from trysquare.agents.journal import Journal
from trysquare.agents.loop import run_agent
from trysquare.agents.policy import Policy
from trysquare.agents.run import (
    LOCAL_ANSWER_TOKENS,
    AgentOutcome,
    AgentRequest,
    AgentRun,
    WorkspaceNarrowing,
    call_constraint,
)
from trysquare.agents.writing.toolset import WRITING, WritingToolset
from trysquare.content import content_config, content_probes
from trysquare.core.approvals import Approvals
from trysquare.core.context import CallContext, Principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.core.toolset import Toolset
from trysquare.files.globs import is_under
from trysquare.models import Model, model_options, open_model
from trysquare.models.registry import FORMS
from trysquare.settings import Settings
from trysquare.workbench import WorkbenchConfig
from trysquare.workbench.git import repository_paths
from trysquare.workbench.sandbox import matching_paths

SKIPPED = frozenset(
    {".trysquare", ".venv", "venv", "node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache",
     ".tox", ".nox"}
)  # fmt: skip
"""Generated files and local state, which a copy does not need."""
MAX_FILES = 100_000
MAX_BYTES = 2 * 1024**3


@asynccontextmanager
async def working_copy(root: Path, *, without: Sequence[str] = ()) -> AsyncGenerator[Path]:
    """A temporary copy of a directory without the paths that match a pattern."""
    base = Path(await run_in_thread(lambda: tempfile.mkdtemp(prefix="trysquare-copy-")))
    try:
        yield await run_in_thread(lambda: _copied(root, base / (root.name or "project"), without))
    finally:
        await run_in_thread(lambda: shutil.rmtree(base, ignore_errors=True))


def _copied(root: Path, target: Path, without: Sequence[str]) -> Path:
    _require_small(root)

    def ignored(folder: str, names: list[str]) -> set[str]:
        inside = Path(folder).relative_to(root)
        return {
            name
            for name in names
            if name in SKIPPED
            or not _is_plain(os.path.join(folder, name))
            or is_under((inside / name).as_posix(), without)
        }

    # Links are copied as links, so that nothing outside becomes part of the copy.
    shutil.copytree(root, target, symlinks=True, ignore=ignored)
    pointer = target / ".git"
    if pointer.is_file():
        # A worktree's `.git` points to the original repository, which a command could change.
        pointer.unlink()
    return target


def _is_plain(path: str) -> bool:
    """Whether a path can be copied: not a socket, pipe or device."""
    return os.path.islink(path) or os.path.isfile(path) or os.path.isdir(path)


def _require_small(root: Path) -> None:
    files = size = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED]
        files += len(names)
        size += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
        if files > MAX_FILES or size > MAX_BYTES:
            raise ConfigurationError(
                f"the project is too large to copy (limits: {MAX_FILES:,} files, {MAX_BYTES // 1024**3} GB).",
                where=str(root),
                hint="Name a smaller directory with --project.",
            )


AGENTS_FOLDER = "agents"
OpenToolset: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[Toolset]]
OpenModel: TypeAlias = Callable[[str | None], AbstractAsyncContextManager[Model]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentEnvironment:
    """Settings, providers and approvals that runs are opened with."""

    settings: Settings
    open_toolset: OpenToolset
    approvals: Approvals
    open_model: OpenModel

    @property
    def agents_folder(self) -> Path:
        return self.settings.project / AGENTS_FOLDER


def configured_model(settings: Settings, spec: str | None) -> AbstractAsyncContextManager[Model]:
    """The model of the request, else of the settings."""
    wanted = spec or settings.model
    if wanted is None:
        raise ConfigurationError("no model is configured.", where="--model", hint=f"Use one of {'; '.join(FORMS)}.")
    return open_model(wanted, model_options(**settings.models.model_dump()))


@asynccontextmanager
async def open_run(
    request: AgentRequest, environment: AgentEnvironment, context: CallContext | None = None, *, job: str | None = None
) -> AsyncGenerator[AgentRun]:
    """Open a run in the project, or in a temporary copy of it."""
    definition = request.applied(load_definition(request.agent, folder=environment.agents_folder))
    settings, context = environment.settings, context or CallContext(client="trysquare agent")
    if request.principal is not None:
        context = replace(context, principal=Principal(subject=request.principal))
    context = replace(context, job=job)
    # A server gets no schema with thousands of file names.
    is_local = (request.model or settings.model or "").startswith("local:")
    async with AsyncExitStack() as stack:
        root = settings.project.resolve()
        if definition.workspace == "copy":
            root = await stack.enter_async_context(working_copy(root, without=hidden_everywhere(definition.policy)))
        model = await stack.enter_async_context(environment.open_model(request.model))
        toolset = await stack.enter_async_context(environment.open_toolset(settings_for(settings, definition, root)))
        if WRITING in definition.bundles:
            # A resumed job finds its draft again.
            name = job or f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
            toolset = WritingToolset(toolset, root=root, name=name, model=model, task=request.task)
            stack.callback(toolset.close)
        yield AgentRun(
            definition=definition,
            task=request.task,
            model=model,
            toolset=toolset,
            root=root,
            context=context,
            approvals=environment.approvals,
            probes={**local_probes(root), **content_probes(content_config(settings.content))},
            constraint=call_constraint,
            answer_tokens=settings.models.answer_tokens or (LOCAL_ANSWER_TOKENS if is_local else None),
            narrow=WorkspaceNarrowing(root, hidden_everywhere(definition.policy)) if is_local else None,
        )


def settings_for(settings: Settings, definition: AgentDefinition, root: Path) -> Settings:
    """Settings with the toolsets of an agent in its directory, and without agents."""
    toolsets = {"workbench": (root,), "debugger": settings.debugger or "debug" in definition.toolsets, "agents": False}
    # Denied paths do not appear in results either.
    denying = [rule for rule in definition.policy.rules if rule.hides]
    hidden = (*settings.hidden, *(f"{rule.tool}={path}" for rule in denying for path in rule.paths))
    original = settings.project.resolve()
    if root != original and (denied := hidden_everywhere(definition.policy)):
        # A command in the copy could read the original.
        paths = (*matching_paths(original, denied), *repository_paths(original))
        hidden = (*hidden, *map(str, paths))
    # Definitions name tools without a prefix.
    return settings.model_copy(update={**toolsets, "project": root, "prefix": None, "hidden": hidden})


def hidden_everywhere(policy: Policy) -> list[str]:
    """Paths that a policy denies to every tool, except those that the workbench protects itself."""
    entries = tuple(path for rule in policy.rules if rule.hides and rule.tool == "*" for path in rule.paths)
    return list(WorkbenchConfig(root=Path(), hidden=tuple(f"*={path}" for path in entries)).hidden_from(""))


async def run_request(
    request: AgentRequest, environment: AgentEnvironment, journal: Journal, context: CallContext | None = None
) -> AgentOutcome:
    """Run a request to its end. Without a context nobody can be asked."""
    async with open_run(request, environment, context, job=journal.job) as run:
        return await run_agent(run, journal)


async def run_stored_request(
    request: JsonObject, journal: Journal, environment: AgentEnvironment, context: CallContext | None = None
) -> JsonObject:
    """As `run_request`, from and to the JSON of a job."""
    return (await run_request(AgentRequest(**request), environment, journal, context)).to_json()
