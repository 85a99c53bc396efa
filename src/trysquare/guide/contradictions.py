"""Contradictions: documents of one answer that give opposite directions on the same subject.

Two rules find them. Documents that name the same `topic` and another `stance` in their front matter disagree by their
own word. And of two documents, one that tells to do something and one that tells not to do the same, in a line that
otherwise reads the same ("Always use tabs", "Never use tabs"), disagree by their text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from trysquare.guide.document import Document

MAX_DIRECTIONS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a direction stands."""

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
    """All contradictions between documents, each pair of places once."""
    return [*_by_topic(documents), *_by_direction(documents)]


def _by_topic(documents: Sequence[Document]) -> Iterator[Contradiction]:
    topics: dict[str, list[Document]] = {}
    for document in documents:
        if document.topic and document.stance:
            topics.setdefault(document.topic.strip().lower(), []).append(document)
    for topic, members in topics.items():
        for one, other in combinations(members, 2):
            if _fold(one.stance or "") != _fold(other.stance or ""):
                yield Contradiction(subject=topic, rule="topic", places=(_stance(one), _stance(other)))


def _stance(document: Document) -> Place:
    return Place(document=str(document.id), line=1, text=f"topic: {document.topic}, stance: {document.stance}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Direction:
    place: Place
    subject: str
    positive: bool


# The longer forms first, so that "do not use" is not read as "do".
_NEGATIVE = re.compile(r"^(?:never|do not|don't|must not|should not|avoid|no)\s+(?:ever\s+)?", re.IGNORECASE)
_POSITIVE = re.compile(r"^(?:always|do|must|should|prefer to|prefer|please)\s+", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*+]|\d+[.)])?\s*(?:\*\*|__)?")
_SUBJECT_START = re.compile(r"^(?:you|we|the agent|agents)\s+", re.IGNORECASE)


def _by_direction(documents: Sequence[Document]) -> Iterator[Contradiction]:
    seen: dict[str, list[_Direction]] = {}
    for direction in _limited(each for document in documents for each in _directions(document)):
        for other in seen.get(direction.subject, ()):
            if other.positive != direction.positive and other.place.document != direction.place.document:
                yield Contradiction(subject=direction.subject, rule="direction", places=(other.place, direction.place))
        seen.setdefault(direction.subject, []).append(direction)


def _limited(directions: Iterable[_Direction]) -> Iterator[_Direction]:
    for count, direction in enumerate(directions):
        if count >= MAX_DIRECTIONS:
            return
        yield direction


def _directions(document: Document) -> Iterator[_Direction]:
    fenced = False
    for number, line in enumerate(document.text.splitlines(), start=1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and (found := _direction(line)) is not None:
            subject, positive = found
            place = Place(document=str(document.id), line=number, text=line.strip()[:160])
            yield _Direction(place=place, subject=subject, positive=positive)


def _direction(line: str) -> tuple[str, bool] | None:
    text = _SUBJECT_START.sub("", _BULLET.sub("", line).strip())
    for pattern, positive in ((_NEGATIVE, False), (_POSITIVE, True)):
        found = pattern.match(text)
        if found is not None:
            subject = _fold(text[found.end() :])
            return (subject, positive) if len(subject.split()) >= 2 else None
    return None


def _fold(text: str) -> str:
    words = re.sub(r"[^\w\s]", " ", text.lower()).split()
    # "avoid using tabs" and "use tabs" speak of the same thing.
    return " ".join("use" if word == "using" else word for word in words)
