"""Lines: where in the text of a JSON document each value stands, so that a violation can name its line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from trysquare.bots.graph.nodes import Pointer

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def line_numbers(text: str) -> Mapping[Pointer, int]:
    """The line of every value in a valid JSON text, by its pointer; keys count as the place of their value."""
    found: dict[Pointer, int] = {(): 1}
    place: list[str | int] = []
    expects_key: list[bool] = []
    line, seen = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", seen, token.start())
        seen = token.start()
        word = token.group()
        if word in "{[":
            expects_key.append(word == "{")
            place.append("" if word == "{" else 0)
            if word == "[":
                found[tuple(place)] = _next_line(text, token.end(), line)
        elif word in "}]":
            expects_key.pop()
            place.pop()
        elif word == ",":
            _step(place, expects_key, found, _next_line(text, token.end(), line))
        elif word == ":":
            expects_key[-1] = False
        elif expects_key and expects_key[-1] and isinstance(place[-1], str):
            place[-1] = json.loads(word)
            found[tuple(place)] = line
    return found


def _step(place: list[str | int], expects_key: list[bool], found: dict[Pointer, int], line: int) -> None:
    last = place[-1]
    if isinstance(last, int):
        place[-1] = last + 1
        found[tuple(place)] = line
    else:
        expects_key[-1] = True


def _next_line(text: str, start: int, line: int) -> int:
    rest = re.compile(r"\s*").match(text, start)
    return line + (text.count("\n", start, rest.end()) if rest else 0)
