"""Editing: changes to a text by exact match and by line, as pure functions."""

from __future__ import annotations

import difflib

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.workbench.text import Text

_MOST_PLACES = 10
_SHOWN = 120


def replace_once(text: Text, old: str, new: str, path: str) -> Text:
    """Put `new` in the place of `old`, which must occur exactly once."""
    if not old:
        raise InvalidArguments("`old` is empty. Send the text that is to be replaced.")
    # As it was given first: a file may mix line ends, and what was copied from it should be found.
    sought = next((form for form in (old, text.adapted(old)) if form in text.content), None)
    if sought is None:
        raise _not_there(text, old, path)
    if text.content.count(sought) > 1:
        raise _several(text, sought, path)
    return text.having(text.content.replace(sought, text.adapted(new), 1))


def replace_lines(text: Text, first: int, last: int, given: str, path: str) -> Text:
    """Put other lines in the place of those from `first` to `last`."""
    lines = text.lines()
    _check_range(lines, first, last, path)
    fresh = text.adapted(given)
    was_ended = lines[last - 1].endswith(("\n", "\r"))
    if fresh and was_ended and not fresh.endswith(text.newline):
        fresh += text.newline
    return text.having("".join([*lines[: first - 1], fresh, *lines[last:]]))


def insert_lines(text: Text, number: int, given: str, path: str) -> Text:
    """Put lines before the line of this number; the number after the last one appends."""
    lines = text.lines()
    if not 1 <= number <= len(lines) + 1:
        raise InvalidArguments(
            f"`{path}` has {len(lines)} lines, so `line_number` can be 1 to {len(lines) + 1}, not {number}."
        )
    fresh = text.adapted(given)
    if not fresh.endswith(text.newline):
        fresh += text.newline
    before = "".join(lines[: number - 1])
    if before and not before.endswith(("\n", "\r")):
        before += text.newline
    return text.having(before + fresh + "".join(lines[number - 1 :]))


def delete_lines(text: Text, first: int, last: int, path: str) -> Text:
    """Take lines out."""
    lines = text.lines()
    _check_range(lines, first, last, path)
    return text.having("".join([*lines[: first - 1], *lines[last:]]))


def append_text(text: Text, given: str) -> Text:
    """Add to the end, on a line of its own."""
    before = text.content
    if before and not before.endswith(("\n", "\r")):
        before += text.newline
    return text.having(before + text.adapted(given))


def difference(before: str, after: str, *, most: int = 60) -> str:
    """What changed between two texts, as a unified diff of bounded length."""
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), "as you read it", "now", lineterm="", n=1)
    )
    shown = [line[:_SHOWN] for line in lines[:most]]
    return "\n".join([*shown, f"… {len(lines) - most} more lines"] if len(lines) > most else shown)


def _check_range(lines: list[str], first: int, last: int, path: str) -> None:
    if not 1 <= first <= last <= len(lines):
        raise InvalidArguments(
            f"`{path}` has {len(lines)} lines, so lines {first} to {last} cannot be meant.",
            instruction="Read the lines again: `start_line` must not be after `end_line`, nor after the last line.",
        )


def _not_there(text: Text, old: str, path: str) -> ToolError:
    wanted = old.strip().split("\n", 1)[0].strip()
    lines = text.lines()
    near = difflib.get_close_matches(wanted, {line.strip() for line in lines[:20_000]}, n=1, cutoff=0.6)
    number = next((at for at, line in enumerate(lines, 1) if near and line.strip() == near[0]), None)
    hint = f" The nearest line is {number}: {near[0][:_SHOWN]}" if number is not None else ""
    return ToolError(
        f"`old` does not occur in `{path}`.{hint}",
        code=ErrorCode.FILE_CONFLICT,
        instruction="Read the file, and copy the text exactly, with its spaces and line breaks.",
        next={"tool": "file", "arguments": {"action": "read", "path": path}},
    )


def _several(text: Text, sought: str, path: str) -> ToolError:
    places: list[int] = []
    at = text.content.find(sought)
    while at >= 0 and len(places) < _MOST_PLACES:
        places.append(text.content.count("\n", 0, at) + 1)
        at = text.content.find(sought, at + 1)
    return ToolError(
        f"`old` occurs {text.content.count(sought)} times in `{path}`, in lines {', '.join(map(str, places))}.",
        code=ErrorCode.FILE_CONFLICT,
        instruction="Add lines before or after it, so that it occurs once, or edit by line with `code_edit`.",
        fields={"lines": places},
    )
