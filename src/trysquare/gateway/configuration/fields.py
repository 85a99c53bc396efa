"""Fields of one entry, read by any of the names that clients give them, with errors that name key and line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from trysquare.core.errors import TrysquareError
from trysquare.gateway.configuration.shapes import ConfigText
from trysquare.gateway.configuration.variables import UnsetVariable
from trysquare.gateway.server import Place
from trysquare.settings.jsonc_tree import Member, Node

T = TypeVar("T")
Fill = Callable[[str], str]
"""Fills in the variables of a text."""


class WrongEntry(TrysquareError):
    """An entry cannot be used; says why and where."""

    def __init__(self, reason: str, place: Place) -> None:
        super().__init__(reason)
        self.reason, self.place = reason, place


@dataclass(frozen=True, kw_only=True, slots=True)
class Fields:
    """The members of an object. Values stay out of every error, since any of them may be a secret."""

    node: Node
    file: ConfigText
    fill: Fill = field(repr=False)
    within: str = ""
    """The name of the object inside its entry, with a dot; empty for the entry itself."""

    def as_written(self) -> Fields:
        """The same fields with their variables left as they stand in the file."""
        return replace(self, fill=str)

    def member(self, *names: str) -> Member | None:
        """The member of the first of some names that is there and not null."""
        members = {member.name: member for member in self.node.members or ()}
        found = (members[name] for name in names if name in members)
        return next((member for member in found if member.node.value is not None), None)

    def wrong(self, member: Member | None, problem: str) -> WrongEntry:
        """The error about one member, or about the whole."""
        place = self.file.place(self.node if member is None else member)
        return WrongEntry(problem if member is None else f"`{self.within}{member.name}` {problem}", place)

    def text(self, *names: str) -> str | None:
        """A text with its variables filled in."""
        return self._as(names, self._filled, "text")

    def flag(self, *names: str) -> bool | None:
        """True or false."""
        return self._as(names, lambda node: node.value if isinstance(node.value, bool) else None, "true or false")

    def number(self, *names: str) -> float | None:
        """A number that is not below zero."""
        return self._as(names, lambda node: number_of(node.value), "a number that is not negative")

    def count(self, *names: str) -> int | None:
        """A whole number that is not below zero."""
        return self._as(names, lambda node: count_of(node.value), "a whole number that is not negative")

    def texts(self, *names: str) -> tuple[str, ...] | None:
        """A list of texts, with numbers and truth values as their JSON."""
        member = self.member(*names)
        if member is None:
            return None
        if member.node.items is None:
            raise self.wrong(member, f"must be a list of texts, not {kind_of(member.node.value)}.")
        return tuple(self._part(member, f"[{place}]", item.node) for place, item in enumerate(member.node.items))

    def table(self, *names: str) -> dict[str, str] | None:
        """Texts by name. A null leaves its name out."""
        member = self.member(*names)
        if member is None:
            return None
        if member.node.members is None:
            raise self.wrong(member, f"must be an object of texts, not {kind_of(member.node.value)}.")
        inner = [each for each in member.node.members if each.node.value is not None]
        return {each.name: self._part(member, f".{each.name}", each.node) for each in inner}

    def inner(self, *names: str) -> Fields | None:
        """The fields of an object inside this one."""
        member = self.member(*names)
        if member is None:
            return None
        if member.node.members is None:
            raise self.wrong(member, f"must be an object, not {kind_of(member.node.value)}.")
        return Fields(node=member.node, file=self.file, fill=self.fill, within=f"{self.within}{member.name}.")

    def _as(self, names: Sequence[str], convert: Callable[[Node], T | None], expected: str) -> T | None:
        member = self.member(*names)
        if member is None:
            return None
        try:
            converted = convert(member.node)
        except UnsetVariable as error:
            raise self.wrong(member, f"cannot be filled in: {error}") from None
        if converted is None:
            raise self.wrong(member, f"must be {expected}, not {kind_of(member.node.value)}.")
        return converted

    def _filled(self, node: Node) -> str | None:
        return self.fill(node.value) if isinstance(node.value, str) else None

    def _part(self, member: Member, where: str, node: Node) -> str:
        spot = Member(start=node.start, name=f"{member.name}{where}", node=node, comma=None)
        text = plain_text(node.value)
        if text is None:
            raise self.wrong(spot, f"must be text, not {kind_of(node.value)}.")
        try:
            return self.fill(text) if isinstance(node.value, str) else text
        except UnsetVariable as error:
            raise self.wrong(spot, f"cannot be filled in: {error}") from None


def plain_text(value: Any) -> str | None:
    """A scalar as text, as a person means it who forgot the quotes."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            return None


def number_of(value: Any) -> float | None:
    """A number that is not below zero and ends, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e15 else None


def count_of(value: Any) -> int | None:
    """A whole number that is not below zero, or None."""
    number = number_of(value)
    return int(number) if number is not None and number.is_integer() else None


def kind_of(value: Any) -> str:
    """What a JSON value is, in words, without the value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a truth value"
        case int() | float():
            return "this number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
