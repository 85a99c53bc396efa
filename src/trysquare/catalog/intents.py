"""Intents: whether something shall be looked at, made, changed or removed, in a request and in a tool's name."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from trysquare.catalog.words import stem

_AGREEING, _OTHER = 1.15, 0.95
_UNASKED_REMOVAL, _UNASKED_CHANGE = 0.7, 0.9
"""Hardly anybody wants something removed without a word that says so."""


class Intent(Enum):
    """What is to be done with the things that a tool is about."""

    LOOK = "look"
    MAKE = "make"
    CHANGE = "change"
    REMOVE = "remove"


_DONE_BY_TOOLS = {
    Intent.LOOK: (
        "get list read search find describe check show retrieve query view explain fetch lookup count inspect download"
        " open compare browse status info details history"
    ),
    Intent.MAKE: (
        "create add post send write push upload schedule publish insert new invite reply forward fork make generate"
        " book order submit comment import save start launch play record upsert"
    ),
    Intent.CHANGE: "update edit modify move rename set replace patch merge convert finalize assign mark toggle respond",
    Intent.REMOVE: "delete remove cancel erase drop discard revoke clear purge trash archive unsubscribe stop close",
}
_ASKED_BY_PEOPLE = {
    Intent.LOOK: (
        "show see look find search list read tell check open what which who whose whom where when why how any anything"
        " anybody anyone compare count explain remind"
    ),
    Intent.MAKE: (
        "make create add new write put start open build tell let give arrange organise organize send post invite"
        " schedule plan book save upload publish draft another file set jot compose remember begin launch charge"
    ),
    Intent.CHANGE: (
        "change move update edit correct fix rename swap replace adjust modify amend set turn mark shift postpone"
        " reschedule raise lower extend shorten assign improve convert sort tidy instead later earlier toggle switch"
    ),
    Intent.REMOVE: (
        "delete remove cancel erase drop discard forget throw trash bin scrap ditch wipe clear clean rid kill undo"
        " purge longer anymore unsubscribe quit stop tear wrong outdated untrue terminate end"
    ),
}


def _by_stem(written: dict[Intent, str]) -> dict[str, frozenset[Intent]]:
    found: dict[str, frozenset[Intent]] = {}
    for intent, words in written.items():
        for word in map(stem, words.split()):
            found[word] = found.get(word, frozenset()) | {intent}
    return found


_NOTHING: frozenset[Intent] = frozenset()
_TOOL_WORDS = _by_stem(_DONE_BY_TOOLS)
_REQUEST_WORDS = _by_stem(_ASKED_BY_PEOPLE)


def intents_of_tool(words: Iterable[str]) -> frozenset[Intent]:
    """What a tool does, by the first verb of its name; nothing where the name has none."""
    known = (_TOOL_WORDS[stem(word)] for word in words if stem(word) in _TOOL_WORDS)
    return next(known, _NOTHING)


def intents_of_request(words: Iterable[str]) -> frozenset[Intent]:
    """Everything that a request may want to have done."""
    return frozenset(intent for word in words for intent in _REQUEST_WORDS.get(stem(word), ()))


def agreement(asked: frozenset[Intent], done: frozenset[Intent]) -> float:
    """What a tool's score is worth for a request, by what it does and what is to be done."""
    if not done:
        return 1.0
    if asked & done:
        return _AGREEING
    if Intent.REMOVE in done:
        return _UNASKED_REMOVAL
    if Intent.CHANGE in done:
        return _UNASKED_CHANGE
    return _OTHER if asked else 1.0
