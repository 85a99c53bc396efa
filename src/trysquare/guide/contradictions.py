"""Contradictions: documents of one answer that give opposite directions on the same subject.

Two rules find them. Documents that name the same `topic` and another `stance` in their front matter disagree by their
own word. And of two documents, one that says to do something and one that says not to, in a line that
otherwise reads the same ("Always use tabs", "Never use tabs", "Avoid tabs"), disagree by their text. Code is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, islice, product

from trysquare.guide.documents import Document

MAX_DIRECTIONS = 2_000
MAX_CONTRADICTIONS = 50
MAX_QUOTED = 160


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    document: str
    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Contradiction:
    """Two places that cannot both be followed."""

    subject: str
    rule: str
    places: tuple[Place, Place]


def contradictions(documents: Sequence[Document]) -> list[Contradiction]:
    """The contradictions between documents, each pair of places once; the first fifty of them."""
    return list(islice(chain(_by_topic(documents), _by_direction(documents)), MAX_CONTRADICTIONS))


def _by_topic(documents: Sequence[Document]) -> Iterator[Contradiction]:
    topics: dict[str, dict[str, list[Document]]] = {}
    for document in documents:
        if document.topic and document.stance:
            stances = topics.setdefault(_fold(document.topic), {})
            stances.setdefault(_fold(document.stance), []).append(document)
    for topic, stances in topics.items():
        for one_side, other_side in combinations(stances.values(), 2):
            for one, other in product(one_side, other_side):
                yield Contradiction(subject=topic, rule="topic", places=(_stance(one), _stance(other)))


def _stance(document: Document) -> Place:
    text = f"topic: {document.topic}, stance: {document.stance}"
    return Place(document=str(document.id), line=document.topic_line, text=text[:MAX_QUOTED])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Direction:
    place: Place
    subject: str
    positive: bool


# Each rule: how a direction begins, whether it is a do or a do not, and what the rest then starts with. The
# longer forms come first, so that "do not use" is not read as "do".
_RULES: tuple[tuple[re.Pattern[str], bool, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), positive, start)
    for pattern, positive, start in (
        (r"(?:never|do not|don['\u2019]t|must not|should not|may not)\s+(?:ever\s+)?", False, ""),
        (r"(?:avoid|no)\s+", False, "use"),
        (r"(?:always|do|must|should|prefer to|please)\s+", True, ""),
        (r"prefer\s+", True, "use"),
        (r"(?=use\s)", True, ""),
    )
)
_BULLET = re.compile(r"\s*(?:[-+]|\d+[.)])?\s*")
_EMPHASIS = re.compile(r"[*`]+|__")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_SUBJECT_START = re.compile(r"^(?:you|we|the agent|agents)\s+", re.IGNORECASE)


def _by_direction(documents: Sequence[Document]) -> Iterator[Contradiction]:
    seen: dict[str, list[_Direction]] = {}
    found = (each for one in documents for each in _directions(str(one.id), one.text, one.first_line))
    for direction in islice(found, MAX_DIRECTIONS):
        for other in seen.get(direction.subject, ()):
            if other.positive != direction.positive and other.place.document != direction.place.document:
                yield Contradiction(subject=direction.subject, rule="direction", places=(other.place, direction.place))
        seen.setdefault(direction.subject, []).append(direction)


@lru_cache(maxsize=20_000)
def _directions(document: str, text: str, first_line: int) -> tuple[_Direction, ...]:
    """The directions that a document gives. Reading for them is most of the work, so it is done once for each text."""
    found: list[_Direction] = []
    for number, line in _prose(text, first_line):
        subject, positive = _direction(line) or ("", False)
        # A single word, as in "Always test", is too little to be held against another line.
        if " " in subject:
            place = Place(document=document, line=number, text=line.strip()[:MAX_QUOTED])
            found.append(_Direction(place=place, subject=subject, positive=positive))
    return tuple(found)


def _prose(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """The lines that are not code, with their numbers in the source."""
    fence = ""
    for number, line in enumerate(text.split("\n"), start=first_line):
        found = _FENCE.match(line)
        if not fence:
            fence = found[1] if found is not None else ""
            if found is None:
                yield number, line
        # A fence is closed by one of its own kind, at least as long, with nothing after it.
        elif found is not None and found[1].startswith(fence) and not line[found.end() :].strip():
            fence = ""


def _direction(line: str) -> tuple[str, bool] | None:
    plain = _EMPHASIS.sub("", line)
    bullet = _BULLET.match(plain)
    text = _SUBJECT_START.sub("", plain[bullet.end() if bullet else 0 :])
    for pattern, positive, start in _RULES:
        found = pattern.match(text)
        if found is not None:
            # "avoid tabs", "avoid using tabs" and "use tabs" are about the same.
            rest = _fold(text[found.end() :])
            return rest if not start or rest.startswith(f"{start} ") else f"{start} {rest}", positive
    return None


def _fold(text: str) -> str:
    words = re.sub(r"[^\w\s]", " ", text.lower()).split()
    return " ".join("use" if word == "using" else word for word in words)
