"""`trysquare bot start`: start a run, at the depth of a preset."""

from __future__ import annotations

import argparse

from trysquare.bots.definition.folder import TOOL, tool_name
from trysquare.bots.parameters import BOT_LEVEL
from trysquare.bots.tools.responses import BotCall
from trysquare.bots.tools.starting import start
from trysquare.cli.bot_open import RUN, opened_bot
from trysquare.cli.command import Command, option
from trysquare.cli.terminal import TerminalCaller, print_json
from trysquare.core.context import CallContext, local_principal


async def _start(arguments: argparse.Namespace) -> None:
    """Start a run; who starts one whose preset takes away a proof has to agree in a terminal."""
    with opened_bot(arguments) as bot:
        tool = tool_name(bot.name, TOOL)
        given = {"run": arguments.run} | ({} if arguments.preset is None else {"preset": arguments.preset})
        parameters, principal = BOT_LEVEL.read(tool, given), local_principal().subject
        call = BotCall.of(bot, tool=tool, parameters=parameters, principal=principal, client="trysquare bot")
        state = await start(call, CallContext(caller=TerminalCaller(), client="trysquare bot"))
        applying = bot.plan.of(state).applying()
    preset = None if state.depth is None else state.depth.name
    if arguments.json:
        print_json(
            {
                "run": call.run,
                "preset": preset,
                "actions": applying,
                "current_action": str(state.current),
                "version": state.version,
            }
        )
        return
    depth = "with all actions" if preset is None else f"with the preset {preset}"
    print(f"Run {call.run} starts {depth}: {applying} apply. Its first action is {state.current}.")


START = Command(
    _start,
    (option("--preset", metavar="NAME", help="a depth of the bot, such as quick (default: all actions)"), *RUN),
    "start a run, at the depth of a preset",
    examples=(
        "trysquare bot start --preset quick",
        "trysquare bot start --preset thorough --run hotfix --bot bots/release",
    ),
)
