"""Runs of branches and worktrees: which one a directory is in, and which files it has."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from trysquare.bots.workflow.machine import RunsOf
from trysquare.bots.workflow.state_file import MAIN
from trysquare.bots.workflow.transaction import Home
from trysquare.core.errors import InvalidArguments
from trysquare.files.checkout import Checkout, find_checkout

_KINDS = ("branch", "worktree", "detached")
_MAX_NAME = 40


def home_of(folder: Path, runs: RunsOf) -> Home:
    """The run of a directory where a call names none; outside of git, the main run."""
    if runs == "project":
        return Home()
    checkout = find_checkout(folder)
    return Home(run=MAIN if checkout is None else _run_of(checkout, runs), is_alone=True)


def _run_of(checkout: Checkout, runs: RunsOf) -> str:
    if runs == "worktree":
        return MAIN if checkout.worktree is None else _name("worktree", checkout.worktree)
    if checkout.branch is None:
        return _name("detached", (checkout.commit or "head")[:12])
    return MAIN if checkout.is_default else _name("branch", checkout.branch)


def _name(kind: str, given: str) -> str:
    """A name for a run; one that had to be changed keeps apart from others by its digest."""
    short = re.sub(r"[^a-z0-9_.-]+", "-", given.lower()).strip("-.")[:_MAX_NAME]
    if short == given:
        return f"{kind}.{given}"
    digest = hashlib.sha256(given.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{kind}.{short or 'x'}-{digest}"


def is_of_checkout(run: str) -> bool:
    """Whether a run belongs to a checkout. Git keeps its files apart, so they are at the paths of the definition."""
    return run.partition(".")[0] in _KINDS and "." in run


def require_here(run: str, home: Home) -> None:
    """Refuse to work on the run of a checkout that is elsewhere: its files are not here."""
    if is_of_checkout(run) and home.is_alone and run != home.run:
        raise InvalidArguments(
            f"Run `{run}` belongs to another checkout; this one is `{home.run}`. Nothing was done.",
            instruction="Leave `run` out to work here, or ask the user to check that branch or worktree out.",
        )
