"""`trysquare bot approve|reject`: the person in charge decides about the current action, in their own terminal."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from trysquare.bots.naming import close_tool_name
from trysquare.bots.parameters import CLOSE
from trysquare.bots.projects import LiveBot
from trysquare.bots.tools.answers import Call
from trysquare.bots.tools.closing import close_action
from trysquare.cli import approve as approving
from trysquare.cli.bot_projects import one_bot, opened_bots
from trysquare.cli.output import print_json
from trysquare.cli.terminal import TerminalCaller
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError
from trysquare.core.result import Result
from trysquare.core.types import JsonObject


def approve(arguments: argparse.Namespace) -> int:
    """Close the current action with proof, or approve the code of a close that waits."""
    if arguments.code is not None:
        return _decide_code(arguments, refuse=False)
    return _decide(arguments, {}, proof=True)


def reject(arguments: argparse.Namespace) -> int:
    """Send the current action back to work, or refuse the code of a close that waits."""
    if arguments.code is not None:
        return _decide_code(arguments, refuse=True)
    if not arguments.reason:
        raise ConfigurationError("say why.", where="bot reject", hint='Add --reason "…".')
    return _decide(arguments, {"reject": True, "reason": arguments.reason}, proof=False)


def _decide_code(arguments: argparse.Namespace, *, refuse: bool) -> int:
    arguments.refuse, arguments.receipts = refuse, False
    return approving.run(arguments)


def _decide(arguments: argparse.Namespace, given: JsonObject, *, proof: bool) -> int:
    with opened_bots(arguments) as bots:
        call = _call(one_bot(bots), {**given, "run": arguments.run})
        context = CallContext(caller=TerminalCaller(), client="trysquare bot")
        if proof and not context.can_ask():
            raise ConfigurationError(
                "only a person can approve, and stdin is no terminal.",
                where="bot approve",
                hint="Run it in a terminal.",
            )
        result = asyncio.run(_closed(call, context, proof=proof))
    if arguments.json:
        print_json(result.to_json())
    else:
        print(result.message)
        for warning in result.warnings:
            print(f"Warning: {warning}")
    return 0


async def _closed(call: Call, context: CallContext, *, proof: bool) -> Result[Any]:
    return await close_action(call, context, proof=proof)


def _call(bot: LiveBot, given: JsonObject) -> Call:
    tool = close_tool_name(bot.name)
    return Call.of(
        bot,
        bot.project(),
        tool=tool,
        parameters=CLOSE.read(tool, given),
        principal=CallContext().principal.subject,
        client="trysquare bot",
    )
