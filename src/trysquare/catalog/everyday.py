"""Everyday words: from what people say to the words that tools are described with, and never back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from trysquare.catalog.home_sayings import HOME_SAYINGS
from trysquare.catalog.life_sayings import LIFE_SAYINGS
from trysquare.catalog.office_sayings import OFFICE_SAYINGS
from trysquare.catalog.other_sayings import OTHER_SAYINGS
from trysquare.catalog.sayings import SAYINGS
from trysquare.catalog.spelling import Spelling
from trysquare.catalog.word_sayings import WORD_SAYINGS
from trysquare.catalog.words import spell_out, split_words, stem
from trysquare.catalog.work_sayings import WORK_SAYINGS
from trysquare.catalog.world_sayings import WORLD_SAYINGS

_TIMES = (
    "today tomorrow yesterday tonight now day week weekend weekday month year morning noon afternoon evening night"
    " hour minute monday tuesday wednesday thursday friday saturday sunday january february march april june july"
    " august september october november december spring summer autumn fall winter season daily weekly clock o soon"
    " late later next last moment right"
)
_FILLERS = (
    "back away again already yet still really maybe thing stuff somebody someone anybody anyone everything something"
    " anything nothing thanks ok okay well much many lot bit kind sort way good bad great nice sure quickly quick one"
    " two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand half first"
    " second third people anymore longer instead exactly straight every everybody everyone doing done going gone"
    " getting being become happen seem feel working work works old big small large little whole long short same"
    " different possible ready able enough together alone completely actually currently finally mr mrs ms dear hello"
    " st nd rd th him himself herself myself yourself ourselves themselves itself whose said came went ago ever never"
    " always often sometimes usually perhaps probably certainly definitely simply quite rather pretty almost nearly"
    " even however though although because unless since till over under before after behind between during without"
    " within along across against towards onto upon down yes nope anyway somehow terribly awfully dreadfully bloody"
    " lovely wonderful terrible awful less least whatever whichever whoever meanwhile otherwise kindly d got here"
)
_PEOPLE = (
    "man woman guy lady gentleman boy girl kid child children baby student pupil teacher professor lawyer landlord"
    " tenant neighbour neighbor boss chief friend mum mom mother dad father grandma grandpa grandmother grandfather"
    " brother sister son daughter wife husband uncle aunt cousin family parent supplier vendor engineer developer"
    " accountant secretary assistant bank company firm school club council insurance agency university government"
    " police church authority tax landlady roommate flatmate partner visitor recruiter plumber electrician handyman"
    " painter carpenter gardener cleaner babysitter nanny surgeon therapist musician singer actor actress tailor cook"
    " chef waiter driver pilot mechanic builder architect photographer nurse trainer coach tutor priest mayor"
    " grandson granddaughter nephew niece apprentice programmer designer colleague adviser advisor agent broker"
    " volunteer pensioner fiance fiancee spouse twin twins widow"
)
_DEEDS = (
    "get make put take give go come look show tell keep find see know say try bring let set do have out check read"
    " write add new open turn call run start delete remove erase create update edit change modify list search send"
    " stop cancel save store copy move convert scale record measure book order reserve rent ask speak learn"
)
_SHORTEST_MISSPELT = 6
_ALL_SAYINGS = (
    *SAYINGS,
    *WORK_SAYINGS,
    *WORD_SAYINGS,
    *OFFICE_SAYINGS,
    *HOME_SAYINGS,
    *LIFE_SAYINGS,
    *OTHER_SAYINGS,
    *WORLD_SAYINGS,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """What people mean by something, in the terms of tools."""

    about: tuple[str, ...]
    """What the tool is about; any of these will do."""
    further: tuple[str, ...] = ()
    """What tells the right one among the tools that are about it."""


def said_as(words: tuple[str, ...]) -> tuple[Meant, ...]:
    """What people mean by these words, stems all; nothing where it is not known."""
    return _table().get(words, ())


def said_nearly(word: str) -> tuple[Meant, ...]:
    """What people mean by a misspelt word. A short one is rather another word: `plant` is no slip for `plan`."""
    if len(word) < _SHORTEST_MISSPELT:
        return ()
    return tuple(meant for guess in _spelling().guesses(word, count=1) for meant in said_as((guess.term,)))


def sayings() -> Collection[tuple[str, ...]]:
    """Everything that people are known to say, as stems."""
    return _table().keys()


def parted_sayings(first: str) -> Collection[tuple[tuple[str, ...], int]]:
    """The sayings that begin with this stem and that people part, each with how many of its words come before."""
    return _parted().get(first, ())


@cache
def longest_saying() -> int:
    """How many words the longest known saying has."""
    return max(map(len, _table()))


@cache
def _table() -> dict[tuple[str, ...], tuple[Meant, ...]]:
    table: dict[tuple[str, ...], tuple[Meant, ...]] = {}
    for said, written in _ALL_SAYINGS:
        meant = _meant(written)
        for saying in said.split():
            key = _stems(saying)
            table[key] = tuple(dict.fromkeys((*table.get(key, ()), meant)))
    return table


@cache
def _parted() -> dict[str, list[tuple[tuple[str, ...], int]]]:
    parted: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for said, _ in _ALL_SAYINGS:
        for saying in said.split():
            before, mark, _ = saying.partition("*")
            if mark:
                words = _stems(saying)
                parted.setdefault(words[0], []).append((words, len(_stems(before))))
    return parted


def _stems(saying: str) -> tuple[str, ...]:
    return tuple(map(stem, split_words(spell_out(saying))))


@cache
def _spelling() -> Spelling:
    known = Spelling()
    for words in _table():
        if len(words) == 1:
            known.add(words[0])
    return known


def _meant(written: str) -> Meant:
    about, *further = written.split()
    return Meant(about=tuple(map(stem, about.split("|"))), further=tuple(map(stem, further)))


TIMES = frozenset(map(stem, _TIMES.split()))
"""Words that say when. They are about the calendar only where nothing else is asked for."""
FILLERS = frozenset(map(stem, _FILLERS.split()))
"""Words that carry a sentence along."""
PEOPLE = frozenset(map(stem, _PEOPLE.split()))
"""With whom, for whom, from whom: seldom what a tool is about."""
DEEDS = frozenset(map(stem, _DEEDS.split()))
"""Verbs of nearly every request: that a tool knows one says little."""
EVENTS = _meant("event|calendar|meeting|appointment list")
