"""References: names of branches, commits and remotes, none of which can be read as an option."""

from __future__ import annotations

import re

from trysquare.core.errors import InvalidArguments

_REFERENCE = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_./@{}^~+=%,#-]{0,249}")
_BRANCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+=%,#-]{0,199}")
_REMOTE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def checked_reference(given: str) -> str:
    """A branch, tag, commit or range of them."""
    if not _REFERENCE.fullmatch(given):
        raise _refused(given, "a branch, tag or commit")
    return given


def checked_branch(given: str) -> str:
    """The name of a branch."""
    parts = given.split("/")
    bad = any(part in ("", ".", "..") or part.startswith(".") or part.endswith((".lock", ".")) for part in parts)
    if not _BRANCH.fullmatch(given) or bad or ".." in given:
        raise _refused(given, "a branch")
    return given


def checked_remote(given: str) -> str:
    """The name of a remote; addresses are not taken, so that nothing is sent to where the person did not agree."""
    if not _REMOTE.fullmatch(given):
        raise _refused(given, "a remote")
    return given


def _refused(given: str, what: str) -> InvalidArguments:
    return InvalidArguments(
        f"`{given[:80]}` is no name of {what}.", instruction="Names begin with a letter or digit, such as main or v1.2."
    )
