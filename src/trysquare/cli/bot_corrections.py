"""`trysquare bot correct`: list the corrections of a bot, apply them, and take them back."""

from __future__ import annotations

import argparse
from typing import Any

from trysquare.bots.corrections import Corrections, Decision
from trysquare.bots.gates import ask_human
from trysquare.cli.bot_open import RUN, opened_bot
from trysquare.cli.command import Command, option
from trysquare.cli.terminal import TerminalCaller, print_report, require_terminal, styled
from trysquare.core.context import CallContext, local_principal
from trysquare.core.json import JsonObject


async def _correct(arguments: argparse.Namespace) -> None:
    """List the corrections, or decide on one of them at the terminal."""
    decided: tuple[Decision, int] | None = None
    if arguments.apply is not None:
        decided = ("apply", arguments.apply)
    elif arguments.take_back is not None:
        decided = ("take_back", arguments.take_back)
    with opened_bot(arguments) as bot:
        corrections = Corrections(bot, bot.project().state)
        if decided is not None:
            decision, number = decided
            context = CallContext(caller=TerminalCaller(), client="trysquare bot")
            correction = corrections.find(number)
            change = corrections.change(correction, decision)
            require_terminal("bot correct", "change a bot's folder", context.can_ask())
            if not arguments.json:
                _print([corrections.shown(correction)])
            verb = "Apply" if decision == "apply" else "Take back"
            binding: JsonObject = {"bot": bot.name, "correction": number, "file": change.file, "diff": change.diff}
            question = f"{verb} this correction of {bot.name}? {correction.text}"
            grant = await ask_human("bot correct", question, binding, approvals=bot.approvals, context=context)
            corrections.decide(number, decision, change, by=grant.by or local_principal().subject)
        found = [corrections.shown(each) for each in corrections.all()]
    print_report(found, lambda: _print(found), json=arguments.json)


def _print(found: list[dict[str, Any]]) -> None:
    if not found:
        print("No corrections.")
    for each in found:
        print(
            styled(f"{each['id']}: {each['text']}", "bold") + f" ({each['status'].replace('_', ' ')}, by {each['by']})"
        )
        if "problem" in each:
            print(styled(f"  {each['problem']}", "yellow"))
        for line in each.get("diff", "").splitlines():
            print(f"  {line}")


CORRECT = Command(
    _correct,
    (
        option("--apply", type=int, metavar="NUMBER", help="apply this correction, as a human in a terminal"),
        option("--take-back", type=int, metavar="NUMBER", help="take this applied correction back"),
        *RUN,
    ),
    "show corrections as a diff of the bot's directory, apply or take back",
    examples=(
        "trysquare bot correct --bot bots/release",
        "trysquare bot correct --apply 2 --bot bots/release",
    ),
)
