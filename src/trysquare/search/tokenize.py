"""Terms of names, descriptions and queries: words, stems, synonyms, misspellings."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

from trysquare.core.text import edit_distance

# camelCase, HTTPServer and snake_case come apart; a run of digits is a word of its own.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_SAY_NOTHING = (
    "a about all also am an and any are as at be been but by can could did do does each either else few for from "
    "had has have he her his how i if in into is it its just let like may me might more most must my need needs no "
    "nor not of off on once only or other our out own please shall she should so some such than that the their them "
    "then there these they this those through to too tool tools until up us use used uses using very want "
    "wants was we were what when where whether which while who whom why will with would you your"
)
SAYS_NOTHING = frozenset(_SAY_NOTHING.split())
"""Words that say nothing about the subject of a query."""
_SUFFIXES = (
    ("ations", "ate"), ("ation", "ate"), ("ments", ""), ("ment", ""), ("ings", ""), ("ing", ""), ("ies", "y"),
    ("ied", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ers", "er"), ("ed", ""),
    ("es", "e"), ("s", ""),
)  # fmt: skip
_SHORTEST_STEM = 3

_SYNONYMS = (
    ("delete", "remove", "erase", "drop", "discard"),
    ("create", "make", "add", "new", "insert"),
    ("get", "fetch", "read", "retrieve", "show", "view", "open"),
    ("find", "search", "query", "lookup", "locate"),
    ("update", "edit", "change", "modify", "alter"),
    ("run", "execute", "launch", "start", "invoke"),
    ("stop", "halt", "end", "kill", "terminate", "cancel"),
    ("list", "enumerate"),
    ("send", "post", "deliver"),
    ("rename", "move"),
    ("copy", "duplicate", "clone"),
    ("folder", "directory"),
    ("email", "mail"),
    ("picture", "image", "photo"),
    ("repository", "repo"),
    ("save", "store", "write"),
)


def split_words(text: str) -> list[str]:
    """The words of a text or a name in lower case, without accents, nothing left out."""
    return [plain for word in _WORD.findall(text) if (plain := _plain(word))]


def terms(text: str) -> list[str]:
    """The terms of a text: its words without those that say nothing, each in its base form."""
    return [stem(word) for word in split_words(text) if word not in SAYS_NOTHING]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its ending, roughly: enough that `deleting`, `deletes` and `delete` meet."""
    for suffix, instead in _SUFFIXES:
        base = word[: -len(suffix)]
        if word.endswith(suffix) and len(base) >= _SHORTEST_STEM and not _keeps(word, suffix):
            return _ended(base + instead)
    return _ended(word)


def _keeps(word: str, suffix: str) -> bool:
    """Whether what looks like a suffix belongs to the word: `class`, `news`, `document`."""
    if suffix == "s":
        return word.endswith(("ss", "us", "is", "news"))
    return suffix in ("ment", "ments") and len(word) - len(suffix) < 2 * _SHORTEST_STEM - 1


def _ended(base: str) -> str:
    """One form for `create` and `creat(ing)`, `stop` and `stopp(ed)`."""
    if len(base) > _SHORTEST_STEM and base.endswith("e"):
        return base[:-1]
    doubled = len(base) > _SHORTEST_STEM and base[-1] == base[-2] and base[-1] in "bdgmnprt"
    return base[:-1] if doubled else base


def _plain(word: str) -> str:
    if word.isascii():
        return word.lower()
    decomposed = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).lower()


_FIRST_OF = {stem(word): stem(group[0]) for group in _SYNONYMS for word in group}


def meaning(term: str) -> str:
    """One term for all that mean about the same in the name of a tool."""
    return _FIRST_OF.get(term, term)


_SHORTEST_MEANT, _SHORTEST_TYPED = 4, 5
"""Shorter words are one slip away from too many others."""
_TWO_SLIPS = 8
_LONGEST_ENDING, _BEGUN_SHARE = 5, 0.6
_SHORT = 5
"""In a word of so few letters one letter makes another word: `coast` is not a typo of `cost`."""


class Spelling:
    """Known terms by their trigrams, so that near ones are found without comparing with all."""

    def __init__(self) -> None:
        self._by_trigram: dict[str, set[str]] = {}

    def add(self, term: str) -> None:
        for trigram in _trigrams(term):
            self._by_trigram.setdefault(trigram, set()).add(term)

    def remove(self, term: str) -> None:
        for trigram in _trigrams(term):
            holders = self._by_trigram.get(trigram, set())
            holders.discard(term)
            if not holders:
                self._by_trigram.pop(trigram, None)

    def guesses(self, term: str, *, count: int = 3) -> list[tuple[str, float]]:
        """Known terms within one slip, or two for long words, nearest first, and how near each is: 1 is the same."""
        if len(term) < _SHORTEST_TYPED:
            return []
        allowed = 2 if len(term) >= _TWO_SLIPS else 1
        found = sorted(
            (distance, known)
            for known in self._candidates(term)
            if (distance := edit_distance(term, known, allowed)) <= allowed
            and (len(term) > _SHORT or _is_likely_slip(term, known))
        )
        return [(known, 1.0 - 0.25 * distance) for distance, known in found[:count]]

    def beginnings(self, word: str) -> list[tuple[str, float]]:
        """The longest known term that a word begins with, within one slip: its ending is misspelt, so no stem fits."""
        found = [
            (distance - len(known), known)
            for known in self._candidates(word)
            if len(known) > _SHORT
            and 0 < len(word) - len(known) <= _LONGEST_ENDING
            and (distance := edit_distance(word[: len(known)], known, 1)) <= 1
        ]
        return [(known, _BEGUN_SHARE) for _, known in sorted(found)[:1]]

    def _candidates(self, term: str) -> list[str]:
        shared: Counter[str] = Counter()
        for trigram in _trigrams(term):
            shared.update(self._by_trigram.get(trigram, ()))
        return [known for known, _ in shared.most_common(40) if len(known) >= _SHORTEST_MEANT and known[0] == term[0]]


def _is_likely_slip(typed: str, meant: str) -> bool:
    """Whether a letter was left out, or two letters were swapped."""
    return len(typed) < len(meant) or sorted(typed) == sorted(meant)


def _trigrams(term: str) -> set[str]:
    padded = f"^{term}$"
    return {padded[start : start + 3] for start in range(len(padded) - 2)}
