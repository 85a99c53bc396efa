"""Edit one entry of a JSON file that people wrote: comments, order, spacing and trailing commas all stay.

The text is read into a small tree that knows where each value stands. An edit is then an insertion or a replacement
in the text itself, so nothing else can change. Pure functions: text in, text out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.settings.jsonc_tree import Item, Member, Node, end_of_trivia, find, last_comment, read_tree
from trysquare.settings.text_edits import Edit, TextError, apply_edits, indent_at, line_break


def read_entry(text: str, path: Sequence[str]) -> Any | None:
    """The value at a path of names, or None where there is none."""
    node = read_tree(text)
    for name in path:
        node = None if node is None else find(node, name)
    return None if node is None else node.value


def put_entry(text: str, path: Sequence[str], value: JsonObject) -> str:
    """The text with the value at a path, put there or in place of what was there."""
    root = read_tree(text)
    if root is None:
        return _with_document(text, _nested(path, value))
    node = root
    for depth, name in enumerate(path):
        if node.members is None:
            owner = f"`{path[depth - 1]}`" if depth else "The file"
            raise TextError(text, node.start, f"{owner} must be an object, to hold `{name}`")
        inner = find(node, name)
        if inner is None:
            return _with_member(text, root, node, name, _nested(path[depth + 1 :], value))
        node = inner
    rendered = _render(value, text, _unit(text, root), indent_at(text, node.start), _is_one_line(text, root))
    return apply_edits(text, [Edit(start=node.start, end=node.end, text=rendered)])


def remove_entry(text: str, path: Sequence[str]) -> str:
    """The text without the value at a path; the same text where there is none."""
    while True:
        node = read_tree(text)
        for name in path[:-1]:
            node = None if node is None else find(node, name)
        members = () if node is None or node.members is None else node.members
        places = [place for place, member in enumerate(members) if member.name == path[-1]]
        if not places:
            return text
        # A name may stand twice, and taking one away would uncover the other.
        text = apply_edits(text, _removal(text, cast(Node, node), members, places[-1]))


def append_item(text: str, path: Sequence[str], value: JsonObject) -> str:
    """The text with one more value at the end of the array at a path."""
    root, node = _array_at(text, path)
    unit, one_line = _unit(text, root), "\n" not in text[node.start : node.end] and bool(node.items)
    first = node.items[0].node.start if node.items else node.start
    base = indent_at(text, first) if node.items else indent_at(text, node.start) + unit
    item = _render(value, text, unit, base, one_line)
    if not node.items:
        return _into_empty(text, node, item, base, one_line=False)
    return _with_last(text, node, node.items[-1], item, " " if one_line else line_break(text) + base)


def remove_item(text: str, path: Sequence[str], place: int) -> str:
    """The text without one value of the array at a path."""
    _, node = _array_at(text, path)
    return apply_edits(text, _removal(text, node, node.items or (), place))


def _array_at(text: str, path: Sequence[str]) -> tuple[Node, Node]:
    root = node = read_tree(text)
    for name in path:
        node = None if node is None else find(node, name)
    if root is None or node is None or node.items is None:
        raise TextError(text, 0 if node is None else node.start, "a list was expected here")
    return root, node


def _removal(text: str, owner: Node, members: Sequence[Member | Item], place: int) -> list[Edit]:
    """The member, the white space before it, and the one comma that it needed."""
    member = members[place]
    first = member.start if isinstance(member, Member) else member.node.start
    start = _before_white_space(text, first)
    begun, ended = last_comment(text, _end_before(owner, members, place), first)
    if begun < ended == start and text.startswith("//", begun) and not _ends_line(text, member):
        # A comment to the end of the line needs that end: without it, what follows would become part of it.
        start = first
    edits = [Edit(start=start, end=member.node.end)]
    comma = member.comma
    if comma is None and place > 0:
        comma = members[place - 1].comma
    if comma is not None:
        edits.append(Edit(start=comma, end=comma + 1))
    return edits


def _end_before(owner: Node, members: Sequence[Member | Item], place: int) -> int:
    """Where what stands before a member ends: the opening bracket, or the member before with its comma."""
    if place == 0:
        return owner.start + 1
    before = members[place - 1]
    return before.node.end if before.comma is None else before.comma + 1


def _ends_line(text: str, member: Member | Item) -> bool:
    """Whether nothing but the member's comma and spaces follow it on its line."""
    rest = text[member.node.end :] if member.comma is None else text[member.node.end : member.comma]
    if member.comma is not None:
        rest += text[member.comma + 1 :]
    return rest.lstrip(" \t").startswith(("\n", "\r\n"))


def _before_white_space(text: str, position: int) -> int:
    """Back over the spaces before a position, and over one line break."""
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
    """An empty file, or one of comments only, gets its first object."""
    end = line_break(text)
    gap = "" if not text.strip("\ufeff") or text.endswith("\n") else end
    return text + gap + _render(value, text, "  ", "", one_line=False) + end


def _with_member(text: str, root: Node, node: Node, name: str, value: Any) -> str:
    unit, one_line = _unit(text, root), _is_one_line(text, node if node.members else root)
    base = _member_indent(text, node, unit)
    member = f"{json.dumps(name, ensure_ascii=False)}: {_render(value, text, unit, base, one_line)}"
    if not node.members:
        return _into_empty(text, node, member, base, one_line)
    return _with_last(text, node, node.members[-1], member, " " if one_line else line_break(text) + base)


def _with_last(text: str, node: Node, last: Member | Item, member: str, gap: str) -> str:
    """The text with a member after the one that was the last, trailing comma or not."""
    place = end_of_trivia(text, last.node.end if last.comma is None else last.comma + 1, node.end - 1)
    if last.comma is not None:
        return apply_edits(text, [Edit(start=place, end=place, text=f"{gap}{member},")])
    comma = Edit(start=last.node.end, end=last.node.end, text=",")
    if place == last.node.end:
        return apply_edits(text, [Edit(start=place, end=place, text=f",{gap}{member}")])
    return apply_edits(text, [comma, Edit(start=place, end=place, text=f"{gap}{member}")])


def _into_empty(text: str, node: Node, member: str, base: str, one_line: bool) -> str:
    place = end_of_trivia(text, node.start + 1, node.end - 1)
    if one_line:
        return apply_edits(text, [Edit(start=place, end=place, text=member)])
    end = line_break(text)
    closed = "\n" in text[place : node.end]
    tail = "" if closed else end + indent_at(text, node.start)
    return apply_edits(text, [Edit(start=place, end=place, text=f"{end}{base}{member}{tail}")])


def _render(value: Any, text: str, unit: str, base: str, one_line: bool) -> str:
    if one_line:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (line_break(text) + base).join(lines)


def _unit(text: str, root: Node) -> str:
    """One step of indentation, as the file has it."""
    if root.members:
        unit = _own_line_indent(text, root.members[0])
        if unit:
            return unit
    return "  "


def _member_indent(text: str, node: Node, unit: str) -> str:
    if node.members:
        indent = _own_line_indent(text, node.members[0])
        if indent is not None:
            return indent
    return indent_at(text, node.start) + unit


def _own_line_indent(text: str, member: Member) -> str | None:
    """The indentation of a member that stands first on its line."""
    start = text.rfind("\n", 0, member.start) + 1
    lead = text[start : member.start]
    return lead if start and not lead.strip(" \t") else None


def _is_one_line(text: str, node: Node) -> bool:
    """Whether an object with members is written on one line, so that a new one joins it there."""
    return bool(node.members) and "\n" not in text[node.start : node.end]
