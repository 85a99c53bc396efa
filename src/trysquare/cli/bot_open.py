"""Opening the bots of a command line: those of its options or of the configuration."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

from trysquare.bots.projects import LiveBot
from trysquare.bots.workflow.runs import WorkflowRuns
from trysquare.bots.workflow.state_file import MAIN
from trysquare.cli.command import option
from trysquare.cli.options import JSON, add_place_options, load
from trysquare.core.errors import ConfigurationError
from trysquare.providers import bot_configs, open_approvals, open_states, state_file, workflow_store
from trysquare.store.lazy import LazyDatabase

_HOME = ""
ABOUT_BOT = "the bot; required unless the configuration names exactly one"
RUN = (
    JSON,
    option("--run", default=_HOME, metavar="RUN", help="the run (default: main, or that of the branch or worktree)"),
    option("--bot", metavar="FOLDER", action="append", default=argparse.SUPPRESS, help=ABOUT_BOT),
    add_place_options,
)
"""Options of the commands that work on one run."""


@contextmanager
def opened_bots(arguments: argparse.Namespace) -> Generator[list[LiveBot]]:
    """Open the bots of the options or the configuration on the project's state."""
    loaded = load(arguments)
    configs = bot_configs(loaded.settings, loaded.origins)
    if not configs:
        raise ConfigurationError("no bot is configured.", where="bot", hint="Name one with --bot FOLDER.")
    with open_states() as states, closing(LazyDatabase(state_file(loaded.settings, loaded.origins))) as state:
        open_store = partial(workflow_store, loaded.settings, states)
        # The working directory names the project.
        bots = [
            LiveBot(
                replace(config, project_named=True),
                open_store=open_store,
                approvals=open_approvals(loaded.settings, loaded.origins, state),
            )
            for config in configs
        ]
        try:
            yield bots
        finally:
            for bot in bots:
                bot.close()


@contextmanager
def opened_bot(arguments: argparse.Namespace) -> Generator[LiveBot]:
    """Open the only bot; several are a `ConfigurationError`."""
    with opened_bots(arguments) as bots:
        if len(bots) > 1:
            names = ", ".join(bot.name for bot in bots)
            raise ConfigurationError(
                f"several bots are configured: {names}.", where="bot", hint="Name one with --bot FOLDER."
            )
        if getattr(arguments, "run", None) == _HOME:
            arguments.run = bots[0].home(bots[0].project().root).run
        yield bots[0]


def require_run(state: WorkflowRuns, run: str, where: str = "bot history") -> None:
    known = sorted((*(each.name for each in state.runs()), *state.damaged()))
    if run not in known and (known or run != MAIN):
        raise ConfigurationError(
            f"unknown run `{run}`.", where=where, hint=f"Known runs: {', '.join(known) or 'none'}."
        )
