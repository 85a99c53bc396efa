"""Read JSON with comments and trailing commas into a tree that knows where everything stands."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from trysquare.settings.text_edits import TextError

_SPACE = " \t\r\n"
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_MOST_LEVELS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A value and where it stands in the text. `members` is set for objects only, `items` for arrays only."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] | None = None
    items: tuple[Item, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A name and its value in an object, and the comma after it, if there is one."""

    start: int
    name: str
    node: Node
    comma: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """A value in an array, and the comma after it, if there is one."""

    node: Node
    comma: int | None


def read_tree(text: str) -> Node | None:
    """The value in a text, or None if there is nothing but white space and comments."""
    reader = _Reader(text)
    start = reader.skip(1 if text.startswith("\ufeff") else 0)
    if start == len(text):
        return None
    node = reader.value(start, 0)
    rest = reader.skip(node.end)
    if rest != len(text):
        raise TextError(text, rest, "nothing may follow the first value of the file")
    return node


def find(node: Node, name: str) -> Node | None:
    """The value of a name in an object. Of two with the same name the last counts, as in every parser."""
    return next((member.node for member in reversed(node.members or ()) if member.name == name), None)


def end_of_trivia(text: str, start: int, end: int) -> int:
    """Where the last comment between two positions ends, or the start if there is none.

    A line comment ends before its line break.
    """
    return last_comment(text, start, end)[1]


def last_comment(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the last comment between two positions begins and ends; the start, twice, if there is none."""
    place, begun, ended = start, start, start
    while place < end:
        if text[place] == "/":
            begun, place = place, _Reader(text).comment(place)
            ended = place
        else:
            place += 1
    return begun, ended


class _Reader:
    """Reads values at positions of one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, place: int) -> int:
        """The next position that is neither white space nor comment."""
        while place < len(self._text):
            if self._text[place] in _SPACE:
                place += 1
            elif self._text[place] == "/":
                place = self.comment(place)
            else:
                break
        return place

    def comment(self, place: int) -> int:
        """Where the comment that starts here ends."""
        if self._text.startswith("//", place):
            end = self._text.find("\n", place)
            end = len(self._text) if end < 0 else end
            return end - 1 if self._text[end - 1] == "\r" else end
        if self._text.startswith("/*", place):
            end = self._text.find("*/", place + 2)
            if end >= 0:
                return end + 2
            raise TextError(self._text, place, "this comment has no end; add `*/`")
        raise TextError(self._text, place, "a value or a comment was expected, not `/`")

    def value(self, place: int, level: int) -> Node:
        """The value that starts here."""
        if level > _MOST_LEVELS:
            raise TextError(self._text, place, f"more than {_MOST_LEVELS} levels of nesting")
        match self._text[place : place + 1]:
            case "{":
                return self._object(place, level)
            case "[":
                return self._array(place, level)
            case '"':
                return self._string(place)
            case _:
                return self._scalar(place)

    def _scalar(self, place: int) -> Node:
        found = _SCALAR.match(self._text, place)
        if found is None:
            raise TextError(self._text, place, f"a value was expected, not {self._shown(place)}")
        try:
            value = json.loads(found.group())
        except ValueError:
            raise TextError(self._text, place, "this number has more digits than can be read") from None
        return Node(start=place, end=found.end(), value=value)

    def _string(self, place: int) -> Node:
        found = _STRING.match(self._text, place)
        if found is None:
            raise TextError(self._text, place, "this text has no end, or an escape in it that JSON does not know")
        return Node(start=place, end=found.end(), value=json.loads(found.group()))

    def _array(self, start: int, level: int) -> Node:
        items: list[Item] = []
        place = self.skip(start + 1)
        while not self._text.startswith("]", place):
            node = self.value(place, level + 1)
            place, comma = self._after_value(node.end, "]")
            items.append(Item(node=node, comma=comma))
        return Node(start=start, end=place + 1, value=[item.node.value for item in items], items=tuple(items))

    def _object(self, start: int, level: int) -> Node:
        members: list[Member] = []
        place = self.skip(start + 1)
        while not self._text.startswith("}", place):
            if not self._text.startswith('"', place):
                raise TextError(self._text, place, f"a name in double quotes was expected, not {self._shown(place)}")
            name = self._string(place)
            colon = self.skip(name.end)
            if not self._text.startswith(":", colon):
                raise TextError(self._text, colon, f"`:` was expected after the name, not {self._shown(colon)}")
            node = self.value(self.skip(colon + 1), level + 1)
            after, comma = self._after_value(node.end, "}")
            members.append(Member(start=place, name=name.value, node=node, comma=comma))
            place = after
        value = {member.name: member.node.value for member in members}
        return Node(start=start, end=place + 1, value=value, members=tuple(members))

    def _after_value(self, end: int, close: str) -> tuple[int, int | None]:
        """Where to read on after a value, and its comma."""
        place = self.skip(end)
        if self._text.startswith(",", place):
            return self.skip(place + 1), place
        if not self._text.startswith(close, place):
            raise TextError(self._text, place, f"`,` or `{close}` was expected, not {self._shown(place)}")
        return place, None

    def _shown(self, place: int) -> str:
        return f"`{self._text[place]}`" if place < len(self._text) else "the end of the file"
