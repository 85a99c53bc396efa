"""The bots' door: opens a bot's folder and yields its tools."""

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

from trysquare.bots.config import BotConfig
from trysquare.bots.definition import Changes
from trysquare.bots.naming import (
    bot_tool_name,
    close_tool_name,
    do_tool_name,
    find_tool_name,
    restart_tool_name,
)
from trysquare.bots.parameters import (
    BOT_LEVEL,
    CLOSE,
    DO,
    FIND,
    RESTART,
    BotArguments,
    Parameters,
    action_arguments,
)
from trysquare.bots.projects import LiveBot, OpenStore
from trysquare.bots.scanning.self_test import require_sound_rules
from trysquare.bots.tools.answers import Call
from trysquare.bots.tools.closing import close_action
from trysquare.bots.tools.delivery import Deliveries
from trysquare.bots.tools.descriptions import action_purpose, behavior_purpose, bot_purpose, described
from trysquare.bots.tools.forwarding import Target, forward
from trysquare.bots.tools.gateway import Finder, do
from trysquare.bots.tools.restarting import restart
from trysquare.core.consent import Approvals
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError
from trysquare.core.metadata import FAMILY, RESTART_RIGHT, ToolMetadata
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.toolset import ChangingToolset
from trysquare.core.types import JsonObject
from trysquare.files.watch import changes_below

logger = logging.getLogger("trysquare.bots")

ROOM = "bots"
_ALL = frozenset({"full", "levels", "gateway"})
_LEVELS = frozenset({"full", "levels"})
_FULL = frozenset({"full"})
_GATEWAY = frozenset({"gateway"})

Do = Callable[[Parameters, CallContext], Awaitable[Result[Any]]]


class BotToolset(ChangingToolset):
    """The tools of one bot, made again when its folder changes."""

    def __init__(self, bot: LiveBot, *, leave: Callable[[], None]) -> None:
        """`leave` ends the process, when a person asks for that."""
        super().__init__()
        self.bot = bot
        self._leave = leave
        self._deliveries = Deliveries()
        self._finder = Finder(lambda: self._found())
        self._tools = {tool.name: tool for tool in self._made()}

    def take_over(self, principal: str = "watch") -> Changes:
        """Read the folder again for somebody, and tell the listeners where the tools are others now."""
        changes = self.bot.reload(principal)
        if changes:
            self.replace(tools=self._made())
        return changes

    def _found(self) -> list[Tool]:
        return [tool for tool in self.tools() if tool.metadata.profiles != _GATEWAY]

    def _made(self) -> list[Tool]:
        definition = self.bot.definition
        made = [self._bot_tool(), self._close_tool(), self._restart_tool()]
        for behavior in definition.behaviors:
            made.append(self._behavior_tool(behavior.name))
            made += [self._action_tool(behavior.name, action.name) for action in definition.actions]
        return [*made, self._find_tool(), self._do_tool()]

    def _bot_tool(self) -> Tool:
        definition = self.bot.definition
        name, triggers = bot_tool_name(definition.name), definition.trigger_patterns
        purpose, doing = bot_purpose(definition), self._forwarding(name, Target())
        return _tool(self.bot.name, name, purpose, triggers, _ALL, doing, BOT_LEVEL)

    def _behavior_tool(self, behavior: str) -> Tool:
        definition = self.bot.definition
        name = next(each.name for each in definition.tool_names() if (each.behavior, each.action) == (behavior, None))
        triggers = definition.behavior(behavior).trigger_patterns
        purpose = behavior_purpose(behavior)
        doing = self._forwarding(name, Target(behavior=behavior))
        return _tool(self.bot.name, name, purpose, triggers, _LEVELS, doing, BOT_LEVEL)

    def _action_tool(self, behavior: str, action: str) -> Tool:
        definition = self.bot.definition
        name = f"{definition.name}_{behavior}_{action}"
        triggers = definition.triggers_of(behavior, action)
        doing = self._forwarding(name, Target(behavior=behavior, action=action))
        purpose = action_purpose(behavior, action)
        return _tool(self.bot.name, name, purpose, triggers, _FULL, doing, action_arguments(action))

    def _forwarding(self, name: str, target: Target) -> Do:
        async def run(parameters: Parameters, context: CallContext) -> Result[Any]:
            return await forward(self._call(name, parameters, context), target, self._deliveries, context)

        return run

    def _close_tool(self) -> Tool:
        name = close_tool_name(self.bot.name)

        async def run(parameters: Parameters, context: CallContext) -> Result[Any]:
            return await close_action(self._call(name, parameters, context), context)

        purpose = "Close the current action when the person says so."
        return _tool(self.bot.name, name, purpose, ("done", "close this step"), _ALL, run, CLOSE)

    def _restart_tool(self) -> Tool:
        async def run(parameters: Parameters, context: CallContext) -> Result[Any]:
            principal = context.principal.subject
            result = await run_in_thread(
                lambda: restart(self.bot, parameters, take_over=lambda: self.take_over(principal))
            )
            task = asyncio.current_task()
            if parameters.hard and task is not None:
                # The task that runs this call also sends its answer: when it is done, the answer is out.
                task.add_done_callback(lambda _: self._leave())
            return result

        purpose = "Read the bot's folder again when it has changed."
        name = restart_tool_name(self.bot.name)
        return _tool(self.bot.name, name, purpose, (), _LEVELS, run, RESTART, right=RESTART_RIGHT)

    def _find_tool(self) -> Tool:
        async def run(parameters: Parameters, context: CallContext) -> Result[Any]:
            return self._finder.find(self.bot, parameters)

        purpose = "Find a tool by parameters.query when none fits."
        return _tool(self.bot.name, find_tool_name(self.bot.name), purpose, (), _GATEWAY, run, FIND)

    def _do_tool(self) -> Tool:
        async def run(parameters: Parameters, context: CallContext) -> Result[Any]:
            return await do(self._found(), parameters, context)

        purpose = "Call parameters.tool when it is not listed."
        return _tool(self.bot.name, do_tool_name(self.bot.name), purpose, (), _GATEWAY, run, DO)

    def _call(self, tool: str, parameters: Parameters, context: CallContext) -> Call:
        named = _with_project(parameters)
        return Call.of(
            self.bot,
            self.bot.project(named.project),
            tool=tool,
            parameters=named,
            principal=context.principal.subject,
            client=context.client or "",
        )


def _with_project(parameters: Parameters) -> Parameters:
    """`confirm` may hold the path of the folder itself."""
    if not isinstance(parameters.confirm, str) or parameters.confirm.lower() in ("yes", "true"):
        return parameters
    given = {**parameters.given, "project": parameters.confirm}
    return replace(parameters, project=parameters.confirm, given=given)


def _tool(
    family: str,
    name: str,
    purpose: str,
    triggers: tuple[str, ...],
    profiles: frozenset[str],
    run: Do,
    taken: BotArguments,
    *,
    right: str | None = None,
) -> Tool:
    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        return await run(taken.parse(name, arguments), context)

    return Tool(
        name=name,
        description=described(purpose, triggers),
        arguments=taken,
        call=call,
        metadata=ToolMetadata(
            room=ROOM,
            category="workflow",
            profiles=profiles,
            usage=taken.usage(),
            trigger_words=triggers,
            read_only=False,
            destructive=False,
            result_limit=None,
            right=right,
            meta={FAMILY: family},
        ),
    )


def end_process() -> None:
    """End this process, and no other, in the way that lets a server finish what it is sending."""
    os.kill(os.getpid(), signal.SIGTERM)


@asynccontextmanager
async def bot_toolset(
    config: BotConfig, *, open_store: OpenStore, approvals: Approvals | None, leave: Callable[[], None] = end_process
) -> AsyncGenerator[BotToolset]:
    """The tools of one bot. What is wrong with its folder is found when the door opens."""
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


async def _follow(toolset: BotToolset) -> None:
    async for _ in changes_below(toolset.bot.config.folder):
        try:
            changes = await run_in_thread(toolset.take_over)
        except ConfigurationError as error:
            logger.warning(
                "The folder of %s has an error; the definition from before stays: %s", toolset.bot.name, error
            )
            continue
        if changes:
            logger.info("%s was read again; changed: %s", toolset.bot.name, ", ".join(changes.parts))
