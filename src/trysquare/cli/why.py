"""`trysquare why`: explain an error code or lint rule: cause, example, repair."""

from __future__ import annotations

import argparse
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from trysquare.cli.command import Command, option
from trysquare.cli.terminal import print_table
from trysquare.core.errors import ConfigurationError
from trysquare.core.text import closest_names

_ABOUT_CODE = "an error code or the name of a lint rule (default: list all)"
GROUPS = ("errors", "lint")


@cache
def pages() -> dict[str, Traversable]:
    """The page of every error code and lint rule, by its name."""
    found = [page for group in GROUPS for page in (files("trysquare") / "reference" / group).iterdir()]
    return {page.name.removesuffix(".md"): page for page in sorted(found, key=lambda page: page.name)}


def read_page(name: str) -> str:
    """The page of a code or rule, in any case of letters."""
    known = {each.lower(): each for each in pages()}
    exact = known.get(name.lower().replace("-", "_")) or known.get(name.lower().replace("_", "-"))
    if exact is None:
        near = closest_names(name.lower(), known)
        hint = f"Did you mean `{known[near[0]]}`?" if near else "Run `trysquare why` to list all of them."
        raise ConfigurationError(f"unknown error code or lint rule `{name}`.", where="why", hint=hint)
    return pages()[exact].read_text(encoding="utf-8")


def run(arguments: argparse.Namespace) -> None:
    """Print the page of a code, or one line for each."""
    if arguments.code is not None:
        print(read_page(arguments.code).rstrip())
        return
    causes = {name: page.read_text(encoding="utf-8").split("\n\n")[1] for name, page in pages().items()}
    print_table(("CODE", "CAUSE"), [(name, " ".join(cause.split())) for name, cause in causes.items()])


def _names(_: argparse.Namespace) -> list[str]:
    return list(pages())


_CODE = option("code", nargs="?", metavar="CODE", help=_ABOUT_CODE, complete=_names)
COMMAND = Command(run, (_CODE,), examples=("trysquare why TOOL_NOT_FOUND", "trysquare why"))
