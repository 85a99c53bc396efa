"""`trysquare bot`: make and check workflow bots, see where their runs stand, and decide about them."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from trysquare.cli.options import SOURCES, add_place_options

_BOT = next(option for option in SOURCES if option.key == "bot")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add what can be done with bots."""
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    new = actions.add_parser("new", help="write a small bot that works, to change into your own")
    new.add_argument("name", metavar="NAME", help="its name: small letters, digits and underscores")
    new.add_argument("--into", metavar="FOLDER", type=Path, default=Path(), help="where its folder is made")
    check = actions.add_parser("check", help="prove that a bot's folder is right")
    check.add_argument("folder", metavar="PATH", type=Path, help="the bot's folder")
    _configure_runs(actions)
    for name, action in actions.choices.items():
        action.add_argument("--json", action="store_true", help="print JSON")
        if name not in ("new", "check"):
            action.add_argument("--run", default="main", metavar="RUN", help="which run (default: main)")
            action.add_argument(
                _BOT.flag, dest=_BOT.key, metavar=_BOT.metavar, action="append", default=argparse.SUPPRESS,
                help="the bot; needed where the configuration names none or several",
            )  # fmt: skip
            add_place_options(action)


def _positive(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return number


def _configure_runs(actions: Any) -> None:
    actions.add_parser("status", help="where every run stands")
    history = actions.add_parser("history", help="what was completed, by whom, and how it was approved")
    history.add_argument("--events", action="store_true", help="every change instead of the completions")
    history.add_argument("--limit", type=_positive, default=1_000, metavar="N", help="most lines to show")
    diff = actions.add_parser("diff", help="what differs between two runs, or two versions of one, files and all")
    diff.add_argument("before", metavar="BEFORE", help="RUN, RUN@VERSION, @VERSION, or . for the folder as it is")
    diff.add_argument("after", metavar="AFTER", help="the same")
    rewind = actions.add_parser("rewind", help="set a run back to where it stood; nothing is deleted")
    rewind.add_argument("version", type=int, metavar="VERSION")
    rewind.add_argument("--reason", metavar="TEXT", help="why")
    fork = actions.add_parser("fork", help="begin a run where another one stands, or stood")
    fork.add_argument("name", metavar="NEW_RUN")
    fork.add_argument("--at", type=int, metavar="VERSION", help="the version to begin from (default: now)")
    loosen = actions.add_parser("loosen", help="take a run out of strict mode, as a human in a terminal")
    loosen.add_argument("--reason", metavar="TEXT", help="why")
    approve = actions.add_parser("approve", help="close the current action as the person in charge, or approve a code")
    approve.add_argument("code", metavar="CODE", nargs="?", help="the code that a close named")
    reject = actions.add_parser("reject", help="send the current action back to work, or refuse a code")
    reject.add_argument("code", metavar="CODE", nargs="?", help="the code that a close named")
    reject.add_argument("--reason", metavar="TEXT", help="why; needed without a code")


_MODULES = {
    "new": "bot_folder",
    "check": "bot_folder",
    "status": "bot_runs",
    "history": "bot_runs",
    "diff": "bot_diff",
    "rewind": "bot_runs",
    "fork": "bot_runs",
    "loosen": "bot_runs",
    "approve": "bot_decisions",
    "reject": "bot_decisions",
}


def run(arguments: argparse.Namespace) -> int:
    """Do it, and return the exit code."""
    module = importlib.import_module(f"trysquare.cli.{_MODULES[arguments.action]}")
    return cast(Callable[[argparse.Namespace], int], getattr(module, arguments.action))(arguments)
