"""Typed fields of one entry under any of their names, with errors that name key and line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from trysquare.core.errors import TrysquareError
from trysquare.files.jsonc import Member, Node
from trysquare.gateway.config.file import ConfigText
from trysquare.gateway.config.variables import UnsetVariable
from trysquare.gateway.models import ConfigLocation

T = TypeVar("T")
_KINDS: dict[type, str] = {type(None): "null", bool: "a boolean", int: "this number", str: "a string", list: "a list"}
Fill = Callable[[str], str]
"""Fills in the variables of a string."""


class InvalidEntry(TrysquareError):
    def __init__(self, reason: str, location: ConfigLocation) -> None:
        super().__init__(reason)
        self.reason, self.location = reason, location


@dataclass(frozen=True, kw_only=True, slots=True)
class Fields:
    """The members of an object. Errors contain no values, since any may be a secret."""

    node: Node
    file: ConfigText
    fill: Fill = field(repr=False)
    within: str = ""
    """Path of the object inside its entry, with a trailing dot."""

    def as_written(self) -> Fields:
        """The same fields with unfilled variables."""
        return replace(self, fill=str)

    def member(self, *names: str) -> Member | None:
        """The first member of these names that is not null."""
        members = {member.name: member for member in self.node.members or ()}
        found = (members[name] for name in names if name in members)
        return next((member for member in found if member.node.value is not None), None)

    def wrong(self, member: Member | None, problem: str) -> InvalidEntry:
        location = self.file.location(self.node if member is None else member)
        return InvalidEntry(problem if member is None else f"`{self.within}{member.name}` {problem}", location)

    def text(self, *names: str) -> str | None:
        return self._as(names, lambda node: self.fill(node.value) if isinstance(node.value, str) else None, "a string")

    def flag(self, *names: str) -> bool | None:
        return self._as(names, lambda node: node.value if isinstance(node.value, bool) else None, "a boolean")

    def number(self, *names: str) -> float | None:
        return self._as(names, lambda node: number_of(node.value), "a non-negative number")

    def count(self, *names: str) -> int | None:
        def convert(node: Node) -> int | None:
            number = number_of(node.value)
            return int(number) if number is not None and number.is_integer() else None

        return self._as(names, convert, "a non-negative integer")

    def texts(self, *names: str) -> tuple[str, ...] | None:
        """A list of strings; numbers and booleans are converted."""
        member = self.member(*names)
        if member is None:
            return None
        if member.node.items is None:
            raise self.wrong(member, f"must be a list of strings, not {kind_of(member.node.value)}.")
        return tuple(self._part(member, f"[{index}]", item.node) for index, item in enumerate(member.node.items))

    def table(self, *names: str) -> dict[str, str] | None:
        """Strings by name, without nulls."""
        member = self.member(*names)
        if member is None:
            return None
        if member.node.members is None:
            raise self.wrong(member, f"must be an object of strings, not {kind_of(member.node.value)}.")
        inner = [each for each in member.node.members if each.node.value is not None]
        return {each.name: self._part(member, f".{each.name}", each.node) for each in inner}

    def inner(self, *names: str) -> Fields | None:
        member = self.member(*names)
        if member is None:
            return None
        if member.node.members is None:
            raise self.wrong(member, f"must be an object, not {kind_of(member.node.value)}.")
        return replace(self, node=member.node, within=f"{self.within}{member.name}.")

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

    def _part(self, member: Member, where: str, node: Node) -> str:
        part = Member(start=node.start, name=f"{member.name}{where}", node=node, comma=None)
        text = plain_text(node.value)
        if text is None:
            raise self.wrong(part, f"must be a string, not {kind_of(node.value)}.")
        try:
            return self.fill(text) if isinstance(node.value, str) else text
        except UnsetVariable as error:
            raise self.wrong(part, f"cannot be filled in: {error}") from None


def plain_text(value: Any) -> str | None:
    """A scalar as a string, for users who forgot the quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else None


def number_of(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e15 else None


def kind_of(value: object) -> str:
    """The type of a JSON value in words."""
    return _KINDS.get(int if isinstance(value, float) else type(value), "an object")
