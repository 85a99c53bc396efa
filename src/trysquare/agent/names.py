"""KnownNames: the tools that an answer may name, and what a name was meant to be where it is nearly right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trysquare.core.shortening import short
from trysquare.models.model import ToolOffer

_PREFIXES = ("functions.", "function.", "tools.", "tool.", "mcp.")
_CLOSE = 0.8
_AHEAD = 0.1
"""How much nearer than the second name the nearest must be: anything less is a guess."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """A tool, and the action that a name stood for where it was an action's."""

    name: str
    action: str | None = None


class KnownNames:
    """The names of tools and of their actions."""

    def __init__(self, actions: Mapping[str, Iterable[str]]) -> None:
        """`actions` has the actions of each tool; none for a tool without them."""
        self._names = tuple(actions)
        self._actions: dict[str, list[str]] = {}
        for name, own in actions.items():
            for action in own:
                self._actions.setdefault(action, []).append(name)
        self._folded = _unambiguous((_fold(name), name) for name in self._names)

    @classmethod
    def of_offers(cls, offers: Iterable[ToolOffer]) -> KnownNames:
        """The names that a request offered."""
        return cls({offer.name: actions_of(offer) for offer in offers})

    def resolve(self, name: str) -> Resolved | None:
        """The tool that a name means; None where it means none, or could mean several."""
        if name in self._names:
            return Resolved(name=name)
        bare = _without_prefix(name)
        folded = self._folded.get(_fold(bare))
        if folded is not None:
            return Resolved(name=folded)
        return self._by_action(bare) or self._by_spelling(bare)

    def unknown(self, name: str) -> str:
        """Why a name was not taken, with the names that there are."""
        known = ", ".join(self._names[:20]) + (" …" if len(self._names) > 20 else "")
        return f"there is no tool `{short(name)}`; there are {known}"

    def _by_action(self, name: str) -> Resolved | None:
        """`file.read` or `file_read` for the action of a tool, or `grep` where one tool alone has it."""
        for tool in self._names:
            action = name.removeprefix(tool)[1:]
            if name.startswith(tool) and name[len(tool) : len(tool) + 1] in ("_", ".", ":", "/") and action:
                return Resolved(name=tool, action=action) if tool in self._actions.get(action, ()) else None
        owners = self._actions.get(name, [])
        return Resolved(name=owners[0], action=name) if len(owners) == 1 else None

    def _by_spelling(self, name: str) -> Resolved | None:
        if not 3 <= len(name) <= 100:
            return None
        wanted = _fold(name)
        close = difflib.get_close_matches(wanted, self._folded, n=2, cutoff=_CLOSE)
        if not close:
            return None
        ratios = [difflib.SequenceMatcher(None, match, wanted).ratio() for match in close]
        if len(ratios) > 1 and ratios[0] - ratios[1] < _AHEAD:
            return None
        return Resolved(name=self._folded[close[0]])


def actions_of(offer: ToolOffer) -> tuple[str, ...]:
    """The actions of a tool as it is offered; none where it has only one way to be called."""
    action = offer.flat.get("properties", {}).get("action", {})
    return tuple(str(one) for one in action.get("enum", ()))


def _without_prefix(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def _fold(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_").replace(".", "_")


def _unambiguous(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The pairs whose first part stands for one name alone."""
    found: dict[str, set[str]] = {}
    for folded, name in pairs:
        found.setdefault(folded, set()).add(name)
    return {folded: next(iter(names)) for folded, names in found.items() if len(names) == 1}
