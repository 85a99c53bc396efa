"""Tools of a bot, and `open_bot`, which opens its folder."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from trysquare.bots.definition import folder as names
from trysquare.bots.definition.check import require_sound_rules
from trysquare.bots.definition.model import Changes
from trysquare.bots.parameters import (
    BOT_LEVEL,
    CLOSE,
    DO,
    FIND,
    RESTART,
    BotArguments,
    Parameters,
    action_arguments,
    behavior_arguments,
)
from trysquare.bots.projects import BotConfig, LiveBot, OpenStore
from trysquare.bots.prompts import bot_prompts, introduction
from trysquare.bots.tools.admin import Finder, do, restart
from trysquare.bots.tools.close import close_action
from trysquare.bots.tools.delivery import DeliveryLog
from trysquare.bots.tools.forward import Target, describe, forward
from trysquare.bots.tools.responses import BotCall
from trysquare.core.approvals import Approvals
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError
from trysquare.core.host_paths import relative_to
from trysquare.core.json import JsonObject
from trysquare.core.metadata import FAMILY, RESTART_RIGHT, TaskOptions, ToolMetadata
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.toolset import DynamicToolset
from trysquare.files.watch import changes_below

logger = logging.getLogger("trysquare.bots")

TOOLSET = "bots"
_ALL = frozenset({"full", "levels", "gateway"})
_LEVELS = frozenset({"full", "levels"})
_FULL = frozenset({"full"})
_GATEWAY = frozenset({"gateway"})

Run = Callable[[str, Parameters, CallContext], Awaitable[Result[Any]]]
"""Runs the tool of a name."""


class BotToolset(DynamicToolset):
    """The tools of one bot, rebuilt when its folder changes."""

    def __init__(self, bot: LiveBot, *, leave: Callable[[], None]) -> None:
        """`leave` ends the process, for a hard restart."""
        super().__init__()
        self.bot = bot
        self._leave = leave
        self._deliveries = DeliveryLog()
        self._finder = Finder(lambda: self._findable())
        self._tools = {tool.name: tool for tool in self._build()}
        self._prompts = {prompt.name: prompt for prompt in bot_prompts(bot)}

    def reload(self, principal: str = "watch") -> Changes:
        """Reload the definition, and notify the listeners if the tools changed."""
        changes = self.bot.reload(principal)
        if changes:
            self.replace(tools=self._build(), prompts=bot_prompts(self.bot))
        return changes

    def introduction(self) -> str:
        """Where the work stands, for the instructions of the server."""
        return introduction(self.bot)

    def _findable(self) -> list[Tool]:
        return [tool for tool in self.tools() if tool.metadata.profiles != _GATEWAY]

    def _build(self) -> list[Tool]:
        definition = self.bot.definition
        about = f"Continue {self.bot.name} at its current action."
        closing, done = "Close the current action when the user says so.", ("done", "close this step")
        restarting = "Reload the bot's definition when its folder has changed."
        tools = [
            self._tool(names.TOOL, about, definition.trigger_patterns, _ALL, BOT_LEVEL, self._forward(Target())),
            # A close that waits for a decision may run again: it changes nothing a second time under its task's id.
            self._tool(names.CLOSE, closing, done, _ALL, CLOSE, self._close, repeats=True),
            self._tool(names.RESTART, restarting, (), _LEVELS, RESTART, self._restart, right=RESTART_RIGHT),
        ]
        for behavior in definition.behaviors:
            suffix, about = f"{behavior.name}_{names.TOOL}", f"Continue {behavior.name} at its current action."
            run = self._forward(Target(behavior=behavior.name))
            actions = definition.actions_of(behavior.name)
            level = behavior_arguments([action.name for action in actions])
            tools.append(self._tool(suffix, about, behavior.trigger_patterns, _LEVELS, level, run))
            for action in actions:
                about = f"{action.name.replace('_', ' ').capitalize()} for {behavior.name}."
                triggers = definition.triggers_of(behavior.name, action.name)
                run = self._forward(Target(behavior=behavior.name, action=action.name))
                arguments = action_arguments(action.name)
                tools.append(self._tool(f"{behavior.name}_{action.name}", about, triggers, _FULL, arguments, run))
        return [
            *tools,
            self._tool(names.FIND, "Find a tool by parameters.query when none fits.", (), _GATEWAY, FIND, self._find),
            self._tool(names.DO, "Call parameters.tool when it is not listed.", (), _GATEWAY, DO, self._do),
        ]

    def _forward(self, target: Target) -> Run:
        async def run(name: str, parameters: Parameters, context: CallContext) -> Result[Any]:
            chosen = target if parameters.action is None else replace(target, action=parameters.action)
            return await forward(self._call(name, parameters, context), chosen, self._deliveries, context)

        return run

    async def _close(self, name: str, parameters: Parameters, context: CallContext) -> Result[Any]:
        call = replace(self._call(name, parameters, context), task_id=context.task_id)
        return await close_action(call, context)

    async def _restart(self, name: str, parameters: Parameters, context: CallContext) -> Result[Any]:
        principal = context.principal.subject
        result = await run_in_thread(lambda: restart(self.bot, parameters, reload=lambda: self.reload(principal)))
        task = asyncio.current_task()
        if parameters.hard and task is not None:
            # The task that runs this call also sends its response: when it is done, the response is sent.
            task.add_done_callback(lambda _: self._leave())
        return result

    async def _find(self, name: str, parameters: Parameters, context: CallContext) -> Result[Any]:
        return await self._finder.find(self.bot, parameters)

    async def _do(self, name: str, parameters: Parameters, context: CallContext) -> Result[Any]:
        return await do(self._findable(), parameters, context)

    def _tool(
        self,
        suffix: str,
        purpose: str,
        triggers: tuple[str, ...],
        profiles: frozenset[str],
        arguments: BotArguments,
        run: Run,
        *,
        right: str | None = None,
        repeats: bool = False,
    ) -> Tool:
        name = names.tool_name(self.bot.name, suffix)

        async def call(given: JsonObject, context: CallContext) -> Result[Any]:
            result = await run(name, arguments.parse(name, given), context)
            return self._for_remote(result) if context.is_remote else result

        metadata = ToolMetadata(
            toolset=TOOLSET,
            category="workflow",
            profiles=profiles,
            usage=arguments.usage(),
            trigger_words=triggers,
            read_only=False,
            destructive=False,
            result_limit=None,
            # A gate that waits for a decision in the console.
            task=TaskOptions(after=None, repeats=repeats),
            right=right,
            meta={FAMILY: self.bot.name},
        )
        description = describe(purpose, triggers)
        # Documented as in guide/tools/README.md.
        return Tool(name=name, description=description, arguments=arguments, call=call, metadata=metadata)

    def _for_remote(self, result: Result[Any]) -> Result[Any]:
        """The result with the paths of the project relative to it, as later calls may name them."""
        config = self.bot.config
        return relative_to((config.project.resolve(), config.folder.resolve()), result)

    def _call(self, tool: str, parameters: Parameters, context: CallContext) -> BotCall:
        principal, client = context.principal.subject, context.client or ""
        return BotCall.of(self.bot, tool=tool, parameters=_with_project(parameters), principal=principal, client=client)


def _with_project(parameters: Parameters) -> Parameters:
    """`confirm` may be the path of the project directory."""
    if not isinstance(parameters.confirm, str) or parameters.confirm.lower() in ("yes", "true"):
        return parameters
    given = {**parameters.given, "project": parameters.confirm}
    return replace(parameters, project=parameters.confirm, given=given)


def end_process() -> None:
    """End this process with SIGTERM, so that a server finishes pending responses."""
    os.kill(os.getpid(), signal.SIGTERM)


@asynccontextmanager
async def open_bot(
    config: BotConfig, *, open_store: OpenStore, approvals: Approvals | None, leave: Callable[[], None] = end_process
) -> AsyncGenerator[BotToolset]:
    """Lifespan of one bot's tools. An invalid folder fails here."""
    bot = await run_in_thread(lambda: LiveBot(config, open_store=open_store, approvals=approvals))
    await run_in_thread(lambda: require_sound_rules(bot.definition))
    toolset = BotToolset(bot, leave=leave)
    watching = asyncio.create_task(_follow(toolset)) if config.watch else None
    try:
        yield toolset
    finally:
        if watching is not None:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
        await run_in_thread(bot.close)


async def _follow(toolset: BotToolset) -> None:
    async for _ in changes_below(toolset.bot.config.folder):
        try:
            changes = await run_in_thread(toolset.reload)
        except ConfigurationError as error:
            logger.warning("bot reload failed; keeping the previous definition: bot=%s %s", toolset.bot.name, error)
            continue
        if changes:
            logger.info("bot reloaded: bot=%s changed=%s", toolset.bot.name, ", ".join(changes.parts))
