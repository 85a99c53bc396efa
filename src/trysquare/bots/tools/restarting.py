"""Restarting: the bot's folder is read again, in place. No other process is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trysquare.bots.definition import Changes
from trysquare.bots.naming import bot_tool_name
from trysquare.bots.parameters import Parameters
from trysquare.bots.projects import LiveBot
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.types import JsonObject


def restart(bot: LiveBot, parameters: Parameters, *, take_over: Callable[[], Changes]) -> Result[Any]:
    """Read the folder again and tell what changed."""
    try:
        changes = take_over()
    except ConfigurationError as error:
        raise ToolError(
            f"The bot's folder cannot be read, and the definition from before stays: {error}",
            code=ErrorCode.CONFIG_INVALID,
            instruction="Tell the person, or mend the file that is named; then call again.",
        ) from None
    fields: JsonObject = {
        "status": "restarting" if parameters.hard else "reloaded",
        "changed": list(changes.parts),
        "files": {"added": list(changes.added), "changed": list(changes.changed), "removed": list(changes.removed)},
        "tools": len(bot.definition.tool_names()),
        "digest": bot.definition.digest[:16],
    }
    if bot.definition.missing:
        fields["missing"] = list(bot.definition.missing)
    return Result.ok(
        message=_said(bot, changes),
        instruction="The state of the work is untouched; `next` goes on with it.",
        next={"tool": bot_tool_name(bot.name), "arguments": {}},
        warnings=bot.definition.warnings,
        fields=fields,
    )


def _said(bot: LiveBot, changes: Changes) -> str:
    if not changes:
        return f"{bot.name} was read again; nothing has changed."
    return f"{bot.name} was read again; changed: {', '.join(changes.parts)}."
