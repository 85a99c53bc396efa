"""The bots that a command of `trysquare bot` is about, opened on the project's state."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from trysquare.app import LazyApprovals, LazyState, bot_configs, guide_states, state_file, workflow_store
from trysquare.bots.projects import LiveBot
from trysquare.cli.options import load
from trysquare.core.errors import ConfigurationError


@contextmanager
def opened_bots(arguments: argparse.Namespace) -> Generator[list[LiveBot]]:
    """The bots that the options or the configuration name."""
    loaded = load(arguments)
    configs = bot_configs(loaded.settings, loaded.origins)
    if not configs:
        raise ConfigurationError("no bot is named.", where="bot", hint="Name one with --bot FOLDER.")
    state = LazyState(state_file(loaded.settings, loaded.origins))
    with guide_states() as states:
        try:
            open_store = partial(workflow_store, loaded.settings, states)
            # The person who runs the command stands in the project: that names it.
            yield [
                LiveBot(replace(config, project_named=True), open_store=open_store, approvals=LazyApprovals(state))
                for config in configs
            ]
        finally:
            state.close()


def one_bot(bots: Sequence[LiveBot]) -> LiveBot:
    """The only bot, or an error that asks which one is meant."""
    if len(bots) == 1:
        return bots[0]
    names = ", ".join(bot.name for bot in bots)
    raise ConfigurationError(f"which bot is meant? There are {names}.", where="bot", hint="Name one with --bot FOLDER.")
