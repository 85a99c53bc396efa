"""Opening a run: from what somebody asked to a model, tools and a folder that are ready, and closed afterwards."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from trysquare.agent.capabilities import Probe, local_probes
from trysquare.agent.definition import AgentDefinition, load_definition
from trysquare.agent.holding import held_calls
from trysquare.agent.journal import Journal
from trysquare.agent.loop import run_agent
from trysquare.agent.narrowing import WorkspaceNarrowing
from trysquare.agent.policy import Policy
from trysquare.agent.request import AgentRequest
from trysquare.agent.run import LOCAL_ANSWER_TOKENS, AgentOutcome, AgentRun
from trysquare.agent.workspace import working_copy
from trysquare.agent.writing.toolset import WRITING, writing_toolset
from trysquare.core.consent import Approvals
from trysquare.core.context import CallContext, Principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject
from trysquare.models.choosing import FORMS, open_model
from trysquare.models.model import Model
from trysquare.models.options import model_options
from trysquare.settings.model import Settings
from trysquare.workbench.config import WorkbenchConfig
from trysquare.workbench.content.capabilities import content_probes
from trysquare.workbench.content.config import content_config
from trysquare.workbench.repository.repository import repository_places
from trysquare.workbench.shell.hidden import matching_places

AGENTS_FOLDER = "agents"
"""Where a project keeps agents of its own."""
OpenToolset: TypeAlias = Callable[[Settings], AbstractAsyncContextManager[Toolset]]
OpenModel: TypeAlias = Callable[[str | None], AbstractAsyncContextManager[Model]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What runs are opened from: the settings, the way to tools and models, and where consent is kept."""

    settings: Settings
    open_toolset: OpenToolset
    approvals: Approvals
    open_model: OpenModel

    @property
    def agents_folder(self) -> Path:
        """Where the project keeps agents of its own."""
        return self.settings.project / AGENTS_FOLDER


def configured_model(settings: Settings, spec: str | None) -> AbstractAsyncContextManager[Model]:
    """The model that a request names, or else the settings."""
    wanted = spec or settings.model
    if wanted is None:
        raise ConfigurationError("no model is named.", where="--model", hint=f"Use one of {'; '.join(FORMS)}.")
    return open_model(wanted, model_options(**settings.models.model_dump()))


@asynccontextmanager
async def opened_run(
    request: AgentRequest, around: Surroundings, context: CallContext | None = None, *, job: str | None = None
) -> AsyncGenerator[AgentRun]:
    """The run that a request asks for. Its folder is the project, or a copy that is gone afterwards."""
    definition = request.applied(load_definition(request.agent, folder=around.agents_folder))
    async with AsyncExitStack() as stack:
        root = around.settings.project.resolve()
        if definition.workspace == "copy":
            root = await stack.enter_async_context(working_copy(root, without=everywhere_hidden(definition.policy)))
        # The model comes first: without one, nothing else is worth opening.
        model = await stack.enter_async_context(around.open_model(request.model))
        toolset = await stack.enter_async_context(around.open_toolset(settings_for(around.settings, definition, root)))
        if WRITING in definition.bundles:
            # A job finds its draft again; a run that is none begins a new one.
            name = job or f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
            toolset = writing_toolset(toolset, root=root, name=name, model=model, task=request.task)
            stack.callback(toolset.close)
        yield AgentRun(
            definition=definition,
            task=request.task,
            model=model,
            toolset=toolset,
            root=root,
            context=_context(request, context),
            approvals=around.approvals,
            probes=run_probes(root, around.settings),
            constraint=held_calls,
            answer_tokens=_answer_tokens(request, around.settings),
            narrow=WorkspaceNarrowing(root, everywhere_hidden(definition.policy))
            if _is_local(request, around.settings)
            else None,
        )


def settings_for(settings: Settings, definition: AgentDefinition, root: Path) -> Settings:
    """The settings with the rooms that an agent works with, in its folder; and without agents, which call no others."""
    rooms = {"workbench": (root,), "debug": settings.debug or "debug" in definition.rooms, "agents": False}
    hidden = (*settings.hidden, *_hidden(definition.policy))
    original = settings.project.resolve()
    if root != original and (denied := everywhere_hidden(definition.policy)):
        # A command in the copy could look at the original, which lies where it always does.
        places = (*matching_places(original, denied), *repository_places(original))
        hidden = (*hidden, *map(str, places))
    # Definitions name tools as their authors do.
    return settings.model_copy(update={**rooms, "project": root, "prefix": None, "hidden": hidden})


def _hidden(policy: Policy) -> list[str]:
    """What a policy denies, as the workbench takes it: a path that a tool may not touch is not in its answers."""
    return [f"{rule.tool}={path}" for rule in policy.rules if rule.hides for path in rule.paths]


def everywhere_hidden(policy: Policy) -> list[str]:
    """The paths that a policy denies to every tool, without those that the workbench guards by itself."""
    entries = tuple(path for rule in policy.rules if rule.hides and rule.tool == "*" for path in rule.paths)
    return list(WorkbenchConfig(root=Path(), hidden=tuple(f"*={path}" for path in entries)).hidden_from(""))


def run_probes(root: Path, settings: Settings) -> dict[str, Probe]:
    """The probes of everything that a tool of ours may need."""
    return {**local_probes(root), **content_probes(content_config(settings.content))}


def _answer_tokens(request: AgentRequest, settings: Settings) -> int | None:
    return settings.models.answer_tokens or (LOCAL_ANSWER_TOKENS if _is_local(request, settings) else None)


def _is_local(request: AgentRequest, settings: Settings) -> bool:
    """Whether the model runs here: thousands of file names are no schema for a server."""
    return (request.model or settings.model or "").startswith("local:")


def _context(request: AgentRequest, context: CallContext | None) -> CallContext:
    own = context or CallContext(client="trysquare agent")
    return own if request.principal is None else replace(own, principal=Principal(subject=request.principal))


async def run_request(
    request: AgentRequest, around: Surroundings, journal: Journal, context: CallContext | None = None
) -> AgentOutcome:
    """Run what a request asks for, to its end. Without a context there is nobody who could be asked."""
    async with opened_run(request, around, context, job=journal.job) as run:
        return await run_agent(run, journal)


async def run_kept_request(
    kept: JsonObject, journal: Journal, around: Surroundings, context: CallContext | None = None
) -> JsonObject:
    """The same for a job, which keeps its request as JSON."""
    outcome = await run_request(AgentRequest.from_json(kept), around, journal, context)
    return outcome.to_json()
