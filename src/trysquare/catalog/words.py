"""Words: how names, descriptions and queries become the terms that a search compares."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# camelCase, HTTPServer and snake_case come apart; a run of digits is a word of its own.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_SAY_NOTHING = (
    "a about all also am an and any are as at be been but by can could did do does each either else few for from "
    "had has have he her his how i if in into is it its just let like may me might more most must my need needs no "
    "nor not of off on once only or other our out own please shall she should so some such than that the their them "
    "then there these they this those through to too tool tools until up us use used user uses using very want "
    "wants was we were what when where whether which while who whom why will with would you your"
)
SAYS_NOTHING = frozenset(_SAY_NOTHING.split())
"""Words that tell nothing of what is looked for."""
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
