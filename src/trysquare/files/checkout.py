"""Which branch and worktree of a git repository a directory belongs to, read from git's files.

No git process is started: neither hooks nor the repository's configuration are used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_HEAD = re.compile(r"ref:\s*refs/heads/(?P<branch>\S.*)")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_DEFAULTS = ("main", "master")
_MAX_BYTES = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    """What is checked out around a directory."""

    root: Path
    """Directory of the working tree."""
    branch: str | None = None
    """None for a detached head."""
    commit: str | None = None
    """The commit of a detached head."""
    worktree: str | None = None
    """Name of a linked worktree; None for the main one."""
    is_default: bool = False
    """Whether the branch is the repository's default branch, as far as its files say."""


def find_checkout(folder: Path) -> Checkout | None:
    """The checkout that a directory is in; None outside of git, or where its files cannot be read."""
    for root in (folder, *folder.parents):
        own = root / ".git"
        if own.exists():
            return _read(root, own)
    return None


def _read(root: Path, own: Path) -> Checkout | None:
    linked = own if own.is_dir() else _linked(root, own)
    if linked is None or (head := _text(linked / "HEAD")) is None:
        return None
    common = _common(linked)
    found = _HEAD.fullmatch(head)
    branch = found["branch"] if found is not None else _rebased(linked)
    return Checkout(
        root=root,
        branch=branch,
        commit=head if branch is None and _COMMIT.fullmatch(head) else None,
        worktree=linked.name if linked.parent.name == "worktrees" and linked.parent.parent == common else None,
        is_default=branch is not None and branch == _default(common),
    )


def _linked(root: Path, file: Path) -> Path | None:
    """The directory that a `.git` file names: of a linked worktree or a submodule."""
    text = _text(file)
    if text is None or not text.startswith("gitdir:"):
        return None
    return (root / text.removeprefix("gitdir:").strip()).resolve()


def _common(folder: Path) -> Path:
    """The directory that all worktrees share."""
    text = _text(folder / "commondir")
    return folder if text is None else (folder / text).resolve()


def _rebased(folder: Path) -> str | None:
    """The branch that is being rebased; its head is detached meanwhile."""
    for name in ("rebase-merge", "rebase-apply"):
        text = _text(folder / name / "head-name")
        if text is not None and text.startswith("refs/heads/"):
            return text.removeprefix("refs/heads/")
    return None


def _default(common: Path) -> str | None:
    text = _text(common / "refs/remotes/origin/HEAD")
    prefix = "ref: refs/remotes/origin/"
    if text is not None and text.startswith(prefix):
        return text.removeprefix(prefix)
    packed = _text(common / "packed-refs", limit=16 * 1024 * 1024) or ""
    for name in _DEFAULTS:
        if (common / "refs/heads" / name).is_file() or re.search(rf"^\S+ refs/heads/{name}$", packed, re.MULTILINE):
            return name
    # Before the first commit no branch exists yet.
    found = _HEAD.fullmatch(_text(common / "HEAD") or "")
    is_empty = not any((common / "refs/heads").glob("*")) and "refs/heads/" not in packed
    return found["branch"] if found is not None and is_empty else None


def _text(path: Path, *, limit: int = _MAX_BYTES) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(limit).decode("utf-8", "replace").strip()
    except OSError:
        return None
