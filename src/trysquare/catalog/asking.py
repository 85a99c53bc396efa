"""Asking: what a request asks for, word by word, each with its weight and with what it may stand for.

People tell more than what they look for: names, times, small talk. A word counts by what it is and where it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from trysquare.catalog.everyday import (
    DEEDS,
    EVENTS,
    FILLERS,
    PEOPLE,
    TIMES,
    Meant,
    longest_saying,
    parted_sayings,
    said_as,
)
from trysquare.catalog.intents import intents_of_request
from trysquare.catalog.words import SAYS_NOTHING, spell_out, split_words, stem

_TOKEN = re.compile(r"[\w.\-]*\w")
_FILE_NAME = re.compile(
    r"[\w\-.]+\.(?:txt|md|pdf|docx?|xlsx?|pptx?|csv|json|ya?ml|xml|html?|py|js|ts|css|png|jpe?g|gif|zip|log|ini|toml|cfg|sql|sh)"
)
_ADDRESS = re.compile(r"(?:www\.)?[\w\-]+\.(?:com|org|net|io|dev|edu|gov|eu|de|uk|fr)(?:\.\w+)?")
_BEFORE_ASIDES = "about after around at before by for from in into of on since until with"
_PREPOSITIONS = frozenset(_BEFORE_ASIDES.split())
_BEFORE_BESIDES = _PREPOSITIONS | frozenset(("called", "named", "who", "which", "than", "through", "as"))
_OF_ANYTHING = frozenset(map(stem, ("sell", "sold", "cost", "price", "product", "shop")))
"""Anything may be sold: beside these, no thing tells that the request is about something else."""
_SOME_PEOPLE = frozenset(("him", "her", "them", "somebody", "someone", "everybody", "everyone", "he", "she", "they"))
_SOMEBODY = stem("somebody")
_OPENINGS = (
    "what which who whose where when why how is are was were am do does did has have had can could will would may might"
    " should any show"
)
_QUESTIONS = frozenset(_OPENINGS.split())
_AFTER_NAMES = frozenset(("is", "are", "and", "has", "was", "will", "works", "lives", "left", "likes", "s"))
_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|tomorrow|today|tonight|\d{1,2}(?:st|nd|rd|th))\b", re.IGNORECASE
)
_HOUR = re.compile(
    r"\b(?:at (?:(?:half|quarter) (?:past|to) )?(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon"
    r"|\d{1,2})|\d{1,2} ?[ap]m)\b",
    re.IGNORECASE,
)
_TELLING_VERBS = "tell say write let inform remind ask remember note mind forget announce reply answer wish mail drop"
_TELLING = frozenset(map(stem, _TELLING_VERBS.split()))
_OBJECT_STARTS = "a an the my our your his her their this that these those some me us"
_BEFORE_OBJECTS = frozenset(_OBJECT_STARTS.split())
_BEFORE_TOLD = frozenset(("that", "if", "whether"))
_QUESTION_WORDS = frozenset(("who", "what", "when", "where", "why", "how"))
_QUOTED = re.compile(r'["\u201c][^"\u201c\u201d]+["\u201d]')
_TOLD = 0.3
"""What shall be told, noted or typed tells little of the tool that does it."""
_SLIGHT, _DEED, _ASIDE, _PLAIN, _SAYING = 0.15, 0.4, 0.6, 1.0, 1.5
_IN_PASSING = 0.6
"""What something else counts that is said beside the thing itself."""
_CUE = 1.0
"""A saying without any word that says what it is about: it may be said of much else."""
_WIDEST_GAP = 4
"""How many words people put into a saying that they part."""
_CARRYING = FILLERS | DEEDS | TIMES
_UNKNOWN_SHARE = 0.55
"""A word that no tool knows counts less against a tool: people tell more than what they look for."""
_ELSEWHERE_SHARE, _ELSEWHERE_DEED = 1.6, 2.4
"""A word that is known to be about something else counts more against a tool than one that may be a mere name."""
_UNKNOWN_DEED = 0.75
"""But a request that begins with a deed that no tool knows most likely asks for something else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One thing that a request names: the word's own term, and what it may stand for."""

    term: str
    own: tuple[str, ...]
    """The terms of its own words."""
    stands_for: tuple[Meant, ...] = ()
    weight: float = _PLAIN
    """How much it counts where some tool knows it."""
    unknown_weight: float = _PLAIN * _UNKNOWN_SHARE
    """How much it counts where no tool does."""
    elsewhere_weight: float = _PLAIN * _ELSEWHERE_SHARE
    """How much it counts where it is known to be about something that no tool here is about."""
    is_deed: bool = False
    """Whether the request begins with it and goes on with what it is to be done to."""
    is_chief: bool = False
    """Whether it is the thing itself that the request is about, or its deed, and nothing beside it."""

    @property
    def is_saying(self) -> bool:
        """Whether it is several words that mean something together."""
        return " " in self.term

    @property
    def is_slight(self) -> bool:
        """Whether it tells next to nothing: a time, a number, a word that carries the sentence or is to be told."""
        return self.weight <= _TOLD

    @property
    def is_thing(self) -> bool:
        """Whether it is a word of its own that tells what the request is about, and no deed."""
        return not self.is_saying and self.weight >= _PLAIN

    @property
    def is_slight_elsewhere(self) -> bool:
        """Whether it tells next to nothing even where it is about something else."""
        return self.elsewhere_weight <= _TOLD

    @property
    def is_firm_elsewhere(self) -> bool:
        """Whether it is what the request itself is about, or its deed, and nothing that is said in passing."""
        return self.is_chief and self.elsewhere_weight >= _ELSEWHERE_SHARE


_AT_AN_HOUR = Asked(
    term="day hour", own=(), stands_for=(EVENTS,), weight=_SAYING, unknown_weight=0.0, elsewhere_weight=0.0
)
"""A day and an hour make an appointment, whatever it is about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Word:
    text: str
    stem: str
    said: str
    """Its stem in a saying, where all people are somebody."""
    is_first: bool = False
    is_name: bool = False
    is_aside: bool = False
    """Whether it follows a preposition: it tells where, when or with whom, not what."""
    is_told: bool = False
    """Whether it is what shall be told or noted, not what shall be done."""
    is_deed: bool = False
    """Whether it is what shall be done to something: the first word, before `the`, `my` or `me`."""
    is_sold: bool = False
    """Whether it is said beside a word of selling."""
    is_chief: bool = False
    """Whether it is the thing itself: not what comes after a preposition, nor a word before another: `yoga class`."""


def asked(query: str) -> list[Asked]:
    """What a request asks for, each term once."""
    things = _things(_put_together(_words(spell_out(query))))
    if things and all(one.term in TIMES for one in things):
        return [replace(one, stands_for=(EVENTS,)) for one in things]
    return [*things, _AT_AN_HOUR] if _DAY.search(query) and _HOUR.search(query) else things


def is_question(query: str) -> bool:
    """Whether somebody wants to know something, and nothing shall be changed."""
    first = next(iter(split_words(spell_out(query))), "")
    return first in _QUESTIONS


def _words(query: str) -> list[_Word]:
    words: list[_Word] = []
    aside = False
    told_from = _start_of_told(query)
    quoted = [range(*found.span()) for found in _QUOTED.finditer(query) if len(found[0]) < len(query)]
    for found in _TOKEN.finditer(query):
        token = found[0]
        is_told = found.start() >= told_from or any(found.start() in span for span in quoted)
        for text in _parts(token):
            is_name = _is_capital(token) and (bool(words) or _begins_with_name(query))
            said = _SOMEBODY if is_name or text in _SOME_PEOPLE else stem(text)
            words.append(
                _Word(
                    text=text,
                    stem=stem(text),
                    said=said,
                    is_first=not words,
                    is_name=is_name,
                    is_aside=aside,
                    is_told=is_told,
                )
            )
            aside = text in _PREPOSITIONS or (aside and text in SAYS_NOTHING)
    return _with_deed(_with_chiefs(words), query)


def _with_chiefs(words: list[_Word]) -> list[_Word]:
    """The words, with those marked that are the thing itself: in `cancel the yoga class on Monday` it is the class."""
    found: list[_Word] = []
    is_sold = any(one.stem in _OF_ANYTHING for one in words[1:])
    is_beside = is_sold
    for at, word in enumerate(words):
        after = words[at + 1] if at + 1 < len(words) else None
        is_to = word.text == "to" and after is not None and after.text in _BEFORE_OBJECTS
        is_beside = is_beside or is_to or (at > 0 and word.text in _BEFORE_BESIDES)
        goes_on = word.text not in SAYS_NOTHING and after is not None and _is_thing(after)
        is_chief = word.stem in _OF_ANYTHING or not (is_beside or goes_on)
        found.append(replace(word, is_chief=is_chief, is_sold=is_sold))
    return found


def _is_thing(word: _Word) -> bool:
    is_other = word.text in SAYS_NOTHING or word.stem in _CARRYING or word.text in _BEFORE_BESIDES
    return not is_other and not word.is_name and not word.text.isdecimal()


def _with_deed(words: list[_Word], query: str) -> list[_Word]:
    """The words, with the first marked where it is a deed of its own kind, and none that is asked of many tools."""
    if len(words) < 2 or words[1].text not in _BEFORE_OBJECTS or is_question(query):
        return words
    first, *others = words
    is_told_by_many = first.stem in DEEDS or bool(intents_of_request([first.text]))
    return words if is_told_by_many else [replace(first, is_deed=True), *others]


def _start_of_told(query: str) -> int:
    """Where that begins which shall be told or noted: after `tell them that` or `let her know`, or at the very end."""
    if is_question(query):
        return len(query)
    verb = ""
    has_hearer = False
    for found in _TOKEN.finditer(query):
        text = found[0].lower()
        if verb == "tell" and has_hearer and text in _BEFORE_OBJECTS:
            return found.start()
        has_hearer = verb == "tell" and text not in SAYS_NOTHING
        if verb == "ask" and text in _QUESTION_WORDS:
            return found.start()
        if (verb and text in _BEFORE_TOLD) or (verb == "let" and text == "know"):
            return found.end()
        verb = stem(text) if stem(text) in _TELLING else verb
    return len(query)


def _put_together(words: list[_Word]) -> list[_Word]:
    """The words with parted sayings in one piece: `call the party off` as `call off the party`."""
    for at, word in enumerate(words):
        for saying, cut in parted_sayings(word.stem):
            start = _start_of_rest(words, at, saying, cut)
            if start is not None:
                end = start + len(saying) - cut
                words = [*words[: at + cut], *words[start:end], *words[at + cut : start], *words[end:]]
                break
    return words


def _start_of_rest(words: list[_Word], at: int, saying: tuple[str, ...], cut: int) -> int | None:
    """Where the second part of a parted saying begins, a few words after the first; none where it does not come."""
    stems = tuple(word.stem for word in words[at : at + cut + _WIDEST_GAP + len(saying)])
    if stems[:cut] != saying[:cut]:
        return None
    rest = saying[cut:]
    gaps = range(1, _WIDEST_GAP + 1)
    return next((at + cut + gap for gap in gaps if stems[cut + gap : cut + gap + len(rest)] == rest), None)


def _is_capital(token: str) -> bool:
    """Whether it is written as a name is; a day and a month are too, and are none."""
    return token[:1].isupper() and stem(token.lower()) not in TIMES


def _begins_with_name(query: str) -> bool:
    second = split_words(query)[1:2]
    return bool(second) and second[0] in _AFTER_NAMES and not is_question(query)


def _parts(token: str) -> list[str]:
    """The words of a token: a file's name is about a file, and `stand-up` and `LinkedIn` may be known as one word."""
    if _FILE_NAME.fullmatch(token):
        return ["file"]
    if _ADDRESS.fullmatch(token):
        return ["website"]
    words = split_words(token)
    joined = "".join(words)
    return [joined] if len(words) > 1 and "." not in token and said_as((stem(joined),)) else words


def _things(words: list[_Word]) -> list[Asked]:
    found: dict[str, Asked] = {}
    at = 0
    while at < len(words):
        length, one = _saying(words, at)
        if one is not None and one.term not in found:
            found[one.term] = one
        at += length
    return list(found.values())


def _saying(words: list[_Word], at: int) -> tuple[int, Asked | None]:
    """The longest known saying that begins here, or the word by itself; and how many words it takes."""
    for length in range(min(longest_saying(), len(words) - at), 1, -1):
        said = words[at : at + length]
        if meant := said_as(tuple(word.said for word in said)) or said_as(tuple(word.stem for word in said)):
            own = tuple(word.stem for word in said if word.text not in SAYS_NOTHING)
            term = " ".join(word.stem for word in said)
            one = Asked(term=term, own=own, stands_for=meant, is_chief=said[-1].is_chief)
            if all(word.is_told for word in said):
                return length, _told(one)
            if all(map(_says_little, said)):
                is_deed = said[0].is_first and said[0].stem in DEEDS
                against = _ELSEWHERE_DEED if is_deed else _SLIGHT
                return length, replace(one, weight=_CUE, elsewhere_weight=against)
            against = _ELSEWHERE_SHARE * (_PLAIN if one.is_chief else _IN_PASSING)
            return length, replace(one, weight=_SAYING, elsewhere_weight=against)
    return 1, _single(words[at])


def _told(one: Asked) -> Asked:
    return replace(one, weight=_TOLD, unknown_weight=_SLIGHT, elsewhere_weight=_SLIGHT)


def _says_little(word: _Word) -> bool:
    return word.text in SAYS_NOTHING or word.said == _SOMEBODY or word.stem in _CARRYING


def _single(word: _Word) -> Asked | None:
    if word.text in SAYS_NOTHING or (len(word.text) == 1 and word.text.isascii()):
        return None
    weight = _weight(word)
    if word.is_name or word.stem in PEOPLE:
        unknown = _SLIGHT
    else:
        unknown = _UNKNOWN_DEED if word.is_first and weight == _PLAIN else weight * _UNKNOWN_SHARE
    meant = said_as((word.stem,))
    elsewhere = _elsewhere(word, weight, unknown)
    one = Asked(
        term=word.stem,
        own=(word.stem,),
        stands_for=meant,
        weight=weight,
        unknown_weight=unknown,
        elsewhere_weight=elsewhere,
        is_deed=word.is_deed,
        is_chief=word.is_chief,
    )
    return _told(one) if word.is_told and not one.is_slight else one


def _elsewhere(word: _Word, weight: float, unknown: float) -> float:
    if word.stem in PEOPLE:
        return unknown
    if word.is_name:
        return _ELSEWHERE_SHARE * _ASIDE
    if word.is_first:
        return _ELSEWHERE_DEED
    if word.is_sold:
        return _TOLD
    return unknown if weight <= _DEED else _ELSEWHERE_SHARE * (weight if word.is_chief else _IN_PASSING)


def _weight(word: _Word) -> float:
    if word.stem in TIMES or word.stem in FILLERS or word.text.isdecimal():
        return _SLIGHT
    if word.stem in DEEDS:
        return _DEED
    return _ASIDE if word.is_aside or word.stem in PEOPLE else _PLAIN
