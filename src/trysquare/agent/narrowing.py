"""Narrowing to what exists: files, branches and lines of the workspace become the only ones that can be written."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from trysquare.grammar.narrowing import Facts, narrowed_tools
from trysquare.models.model import ToolOffer
from trysquare.workbench.tree import SKIPPED

MOST_FILES = 10_000
_MOST_COUNTED = 20 * 1024 * 1024
"""Bytes that are read to count lines; of a larger workspace nobody knows how long its longest file is."""
_GIT_SECONDS = 10


class WorkspaceNarrowing:
    """Narrows offers by what the workspace holds now. It is looked at once, and again after `forget`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._facts: Facts | None = None

    def __call__(self, offer: ToolOffer) -> ToolOffer | None:
        """The offer with arguments that name only what exists; None where nothing of the kind does."""
        if self._facts is None:
            self._facts = workspace_facts(self._root)
        schema = narrowed_tools({offer.name: offer.schema}, self._facts).get(offer.name)
        return None if schema is None else replace(offer, schema=schema)

    def forget(self) -> None:
        """The workspace has changed."""
        self._facts = None


def workspace_facts(root: Path) -> Facts:
    """What a workspace holds. Of what is too much to list, nothing is said."""
    files = _files(root)
    if len(files) > MOST_FILES:
        return Facts(branches=_branches(root))
    return Facts(files=files, branches=_branches(root), most_lines=_most_lines(root, files))


def _files(root: Path) -> list[str]:
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        prefix = os.path.relpath(folder, root)
        found.extend(name if prefix == "." else f"{prefix}/{name}" for name in sorted(names))
        if len(found) > MOST_FILES:
            break
    return [path for path in found if path.isprintable() and (root / path).is_file()]


def _branches(root: Path) -> list[str] | None:
    if not (root / ".git").exists():
        return None
    command = ("git", "-C", str(root), "for-each-ref", "--format=%(refname:short)", "refs/heads")
    try:
        told = subprocess.run(command, capture_output=True, timeout=_GIT_SECONDS, check=True, text=True)
    except (OSError, subprocess.SubprocessError):
        # Without git nobody knows them; the tool itself says what is wrong with a name.
        return None
    return told.stdout.split() or None


def _most_lines(root: Path, files: list[str]) -> int | None:
    left, most = _MOST_COUNTED, 1
    for path in files:
        try:
            left -= (root / path).stat().st_size
            if left < 0:
                return None
            most = max(most, (root / path).read_bytes().count(b"\n") + 1)
        except OSError:
            continue
    return most
