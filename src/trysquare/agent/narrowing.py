"""Narrowing to what exists: files, branches and lines of the workspace become the only ones that can be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trysquare.grammar.narrowing import Facts, narrowed_tools
from trysquare.models.model import ToolOffer
from trysquare.workbench.facts import workspace_branches, workspace_files

MOST_FILES = 10_000
_MOST_COUNTED = 20 * 1024 * 1024
"""Bytes that are read to count lines; of a larger workspace nobody knows how long its longest file is."""


class WorkspaceNarrowing:
    """Narrows offers by what the workspace holds now. It is looked at once, and again after `forget`."""

    def __init__(self, root: Path, hidden: Sequence[str] = ()) -> None:
        self._root, self._hidden = root, hidden
        self._facts: Facts | None = None

    def __call__(self, offer: ToolOffer) -> ToolOffer | None:
        """The offer with arguments that name only what exists; None where nothing of the kind does."""
        if self._facts is None:
            self._facts = workspace_facts(self._root, self._hidden)
        schema = narrowed_tools({offer.name: offer.schema}, self._facts).get(offer.name)
        return None if schema is None else replace(offer, schema=schema)

    def forget(self) -> None:
        """The workspace has changed."""
        self._facts = None


def workspace_facts(root: Path, hidden: Sequence[str] = ()) -> Facts:
    """What a workspace holds and shows. Of what is too much to list, nothing is said."""
    files, branches = workspace_files(root, most=MOST_FILES + 1, hidden=hidden), workspace_branches(root) or None
    if len(files) > MOST_FILES:
        return Facts(branches=branches)
    return Facts(files=files, branches=branches, most_lines=_most_lines(root, files))


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
