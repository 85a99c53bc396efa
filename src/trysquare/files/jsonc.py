"""Read and edit JSON with comments in position.

The text is parsed to a tree with positions, and an edit is an insertion or replacement in the text itself, so that
nothing else changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.json import JsonObject
from trysquare.files.edit import Edit, TextError, apply_edits, indent_at, line_break

_SPACE = " \t\r\n"
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_MAX_DEPTH = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A value and its position. `members` is set for objects only, `items` for arrays only."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] | None = None
    items: tuple[Member, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A member of an object, or an item of an array (without a name), with the position of the comma after it."""

    start: int
    name: str
    node: Node
    comma: int | None


def read_tree(text: str) -> Node | None:
    """Parse a text; None if it has only white space and comments."""
    reader = _Reader(text)
    start = reader.skip(1 if text.startswith("\ufeff") else 0)
    if start == len(text):
        return None
    node = reader.value(start, 0)
    rest = reader.skip(node.end)
    if rest != len(text):
        raise TextError(text, rest, "unexpected text after the first value")
    return node


def find(node: Node, name: str) -> Node | None:
    """Value of a name in an object; the last of duplicates counts."""
    return next((member.node for member in reversed(node.members or ()) if member.name == name), None)


def last_comment(text: str, start: int, end: int) -> tuple[int, int]:
    """Start and end of the last comment between two positions; the start, twice, if there is none."""
    position, begin, finish = start, start, start
    while position < end:
        if text[position] == "/":
            begin, position = position, _Reader(text).comment(position)
            finish = position
        else:
            position += 1
    return begin, finish


class _Reader:
    """Recursive-descent parser of one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def skip(self, position: int) -> int:
        """Next position after white space and comments."""
        while position < len(self._text):
            if self._text[position] in _SPACE:
                position += 1
            elif self._text[position] == "/":
                position = self.comment(position)
            else:
                break
        return position

    def comment(self, position: int) -> int:
        """End of the comment at a position."""
        if self._text.startswith("//", position):
            end = self._text.find("\n", position)
            end = len(self._text) if end < 0 else end
            return end - 1 if self._text[end - 1] == "\r" else end
        if self._text.startswith("/*", position):
            end = self._text.find("*/", position + 2)
            if end >= 0:
                return end + 2
            raise TextError(self._text, position, "unterminated comment; add `*/`")
        raise TextError(self._text, position, "expected a value or a comment, got `/`")

    def value(self, position: int, level: int) -> Node:
        if level > _MAX_DEPTH:
            raise TextError(self._text, position, f"more than {_MAX_DEPTH} levels of nesting")
        match self._text[position : position + 1]:
            case "{" | "[":
                return self._container(position, level)
            case '"':
                return self._string(position)
            case _:
                return self._scalar(position)

    def _scalar(self, position: int) -> Node:
        found = _SCALAR.match(self._text, position)
        if found is None:
            raise TextError(self._text, position, f"expected a value, got {self._found(position)}")
        try:
            value = json.loads(found.group())
        except ValueError:
            raise TextError(self._text, position, "the number has too many digits") from None
        return Node(start=position, end=found.end(), value=value)

    def _string(self, position: int) -> Node:
        found = _STRING.match(self._text, position)
        if found is None:
            raise TextError(self._text, position, "unterminated string, or an invalid escape in it")
        return Node(start=position, end=found.end(), value=json.loads(found.group()))

    def _container(self, start: int, level: int) -> Node:
        parts: list[Member] = []
        is_object = self._text[start] == "{"
        close = "}" if is_object else "]"
        position = self.skip(start + 1)
        while not self._text.startswith(close, position):
            name, inner = self._name(position) if is_object else ("", position)
            node = self.value(inner, level + 1)
            after, comma = self._after_value(node.end, close)
            parts.append(Member(start=position, name=name, node=node, comma=comma))
            position = after
        if not is_object:
            return Node(start=start, end=position + 1, value=[part.node.value for part in parts], items=tuple(parts))
        value = {part.name: part.node.value for part in parts}
        return Node(start=start, end=position + 1, value=value, members=tuple(parts))

    def _name(self, position: int) -> tuple[str, int]:
        """Name of a member, and the position of its value."""
        if not self._text.startswith('"', position):
            raise TextError(self._text, position, f"expected a name in double quotes, got {self._found(position)}")
        name = self._string(position)
        colon = self.skip(name.end)
        if not self._text.startswith(":", colon):
            raise TextError(self._text, colon, f"expected `:` after the name, got {self._found(colon)}")
        return name.value, self.skip(colon + 1)

    def _after_value(self, end: int, close: str) -> tuple[int, int | None]:
        """Position after a value and its comma, and the position of the comma."""
        position = self.skip(end)
        if self._text.startswith(",", position):
            return self.skip(position + 1), position
        if not self._text.startswith(close, position):
            raise TextError(self._text, position, f"expected `,` or `{close}`, got {self._found(position)}")
        return position, None

    def _found(self, position: int) -> str:
        return f"`{self._text[position]}`" if position < len(self._text) else "the end of the file"


def read_entry(text: str, path: Sequence[str]) -> Any | None:
    node = _node_at(read_tree(text), path)
    return None if node is None else node.value


def _node_at(node: Node | None, path: Sequence[str]) -> Node | None:
    for name in path:
        node = None if node is None else find(node, name)
    return node


def put_entry(text: str, path: Sequence[str], value: JsonObject) -> str:
    """Add or replace the value at a path."""
    root = read_tree(text)
    if root is None:
        return _with_document(text, _nested(path, value))
    node = root
    for depth, name in enumerate(path):
        if node.members is None:
            owner = f"`{path[depth - 1]}`" if depth else "The file"
            raise TextError(text, node.start, f"{owner} must be an object to contain `{name}`")
        inner = find(node, name)
        if inner is None:
            return _with_member(text, root, node, name, _nested(path[depth + 1 :], value))
        node = inner
    rendered = _render(value, text, _unit(text, root), indent_at(text, node.start), _is_one_line(text, root))
    return text[: node.start] + rendered + text[node.end :]


def remove_entry(text: str, path: Sequence[str]) -> str:
    """Remove the value at a path, if there is one."""
    while True:
        node = _node_at(read_tree(text), path[:-1])
        members = () if node is None or node.members is None else node.members
        positions = [position for position, member in enumerate(members) if member.name == path[-1]]
        if not positions:
            return text
        # Removing one of two duplicates would uncover the other.
        text = apply_edits(text, _removal(text, cast(Node, node), members, positions[-1]))


def append_item(text: str, path: Sequence[str], value: JsonObject) -> str:
    root, node = _array_at(text, path)
    unit, one_line = _unit(text, root), "\n" not in text[node.start : node.end] and bool(node.items)
    base = indent_at(text, node.items[0].start) if node.items else indent_at(text, node.start) + unit
    item = _render(value, text, unit, base, one_line)
    if not node.items:
        return _into_empty(text, node, item, base, one_line=False)
    return _with_last(text, node, node.items[-1], item, " " if one_line else line_break(text) + base)


def remove_item(text: str, path: Sequence[str], position: int) -> str:
    _, node = _array_at(text, path)
    return apply_edits(text, _removal(text, node, node.items or (), position))


def _array_at(text: str, path: Sequence[str]) -> tuple[Node, Node]:
    root = read_tree(text)
    node = _node_at(root, path)
    if root is None or node is None or node.items is None:
        raise TextError(text, 0 if node is None else node.start, "expected an array")
    return root, node


def _removal(text: str, owner: Node, members: Sequence[Member], position: int) -> list[Edit]:
    """Edits that remove a member, the white space before it, and one comma."""
    member = members[position]
    start = _before_white_space(text, member.start)
    before = _end(members[position - 1]) if position else owner.start + 1
    begun, ended = last_comment(text, before, member.start)
    if begun < ended == start and text.startswith("//", begun) and not _ends_line(text, member):
        # A line comment before the member needs its line break.
        start = member.start
    edits = [Edit(start=start, end=member.node.end)]
    comma = member.comma
    if comma is None and position > 0:
        comma = members[position - 1].comma
    if comma is not None:
        edits.append(Edit(start=comma, end=comma + 1))
    return edits


def _end(member: Member) -> int:
    """End of a member with its comma."""
    return member.node.end if member.comma is None else member.comma + 1


def _ends_line(text: str, member: Member) -> bool:
    """Whether only its comma and spaces follow a member on its line."""
    rest = text[member.node.end : member.comma]
    if member.comma is not None:
        rest += text[member.comma + 1 :]
    return rest.lstrip(" \t").startswith(("\n", "\r\n"))


def _before_white_space(text: str, position: int) -> int:
    """Position before the spaces and one line break before a position."""
    while position > 0 and text[position - 1] in " \t":
        position -= 1
    if text[:position].endswith("\r\n"):
        return position - 2
    return position - 1 if text[:position].endswith("\n") else position


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _with_document(text: str, value: JsonObject) -> str:
    """Add the first object to an empty file, or to one of comments."""
    end = line_break(text)
    gap = "" if not text.strip("\ufeff") or text.endswith("\n") else end
    return text + gap + _render(value, text, "  ", "", one_line=False) + end


def _with_member(text: str, root: Node, node: Node, name: str, value: Any) -> str:
    unit, one_line = _unit(text, root), _is_one_line(text, node if node.members else root)
    indent = _own_line_indent(text, node.members[0]) if node.members else None
    base = indent_at(text, node.start) + unit if indent is None else indent
    member = f"{json.dumps(name, ensure_ascii=False)}: {_render(value, text, unit, base, one_line)}"
    if not node.members:
        return _into_empty(text, node, member, base, one_line)
    return _with_last(text, node, node.members[-1], member, " " if one_line else line_break(text) + base)


def _with_last(text: str, node: Node, last: Member, member: str, gap: str) -> str:
    """Add a member after the last one, with or without a trailing comma."""
    position = last_comment(text, _end(last), node.end - 1)[1]
    if last.comma is not None:
        return f"{text[:position]}{gap}{member},{text[position:]}"
    end = last.node.end
    return f"{text[:end]},{text[end:position]}{gap}{member}{text[position:]}"


def _into_empty(text: str, node: Node, member: str, base: str, one_line: bool) -> str:
    position = last_comment(text, node.start + 1, node.end - 1)[1]
    if not one_line:
        end = line_break(text)
        closed = "\n" in text[position : node.end]
        member = f"{end}{base}{member}{'' if closed else end + indent_at(text, node.start)}"
    return text[:position] + member + text[position:]


def _render(value: Any, text: str, unit: str, base: str, one_line: bool) -> str:
    if one_line:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (line_break(text) + base).join(lines)


def _unit(text: str, root: Node) -> str:
    return (_own_line_indent(text, root.members[0]) if root.members else None) or "  "


def _own_line_indent(text: str, member: Member) -> str | None:
    """Indentation of a member that is first on its line."""
    start = text.rfind("\n", 0, member.start) + 1
    lead = text[start : member.start]
    return lead if start and not lead.strip(" \t") else None


def _is_one_line(text: str, node: Node) -> bool:
    """Whether an object with members is on one line."""
    return bool(node.members) and "\n" not in text[node.start : node.end]
