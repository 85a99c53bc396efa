"""The text that came for a value: where the value ends in it, and how a string is closed that was cut."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json import JSONDecodeError, JSONDecoder
from math import isfinite
from typing import NoReturn

from trysquare.grammar.admission import admits
from trysquare.grammar.shapes import Shape

_INSIDE = re.compile(r'(?:[^"\\\x00-\x1f\x7f]|\\(?:["\\bfnrt]|u[0-9a-fA-F]{4}))*+')
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_MENDED = {0: "\\", 1: "0020", 2: "020", 3: "20", 4: "0"}
"""How an escape goes on, by how many of its characters stand behind the backslash."""


class TextRefused(Exception):
    """Text that does not fit its piece."""


def inside_end(text: str, shortest: int, longest: int | None) -> tuple[int, str]:
    """Where the text behind a string's closing quote begins, and what closes the string if the text was cut before."""
    inside = _INSIDE.match(text)
    end = inside.end() if inside else 0
    if text[end : end + 1] == '"':
        _check_inside(text[:end], shortest, longest)
        return end + 1, ""
    cut = text[end:]
    if cut and not _CUT_ESCAPE.match(cut):
        raise TextRefused("this cannot stand in a string")
    mended = _MENDED[len(cut) - 1] if cut else ""
    _check_inside(text + mended, shortest, longest)
    return len(text), mended + '"'


def _check_inside(inside: str, shortest: int, longest: int | None) -> None:
    length = len(json.loads(f'"{inside}"'))
    if length < shortest:
        raise TextRefused(f"the string is shorter than {shortest} characters")
    if longest is not None and length > longest:
        raise TextRefused(f"the string is longer than {longest} characters")


def free_end(text: str, shape: Shape, named: Mapping[str, Shape]) -> int:
    """Where a value ends with which a text begins."""
    try:
        value, end = JSONDecoder(parse_constant=_no_constant, parse_float=_finite).raw_decode(text)
    except JSONDecodeError as error:
        raise TextRefused(f"it does not begin with a JSON value ({error.msg})") from error
    if not admits(shape, value, named):
        raise TextRefused("the value does not fit the schema")
    return end


def _finite(text: str) -> float:
    if not isfinite(value := float(text)):
        raise TextRefused(f"{text} is too large a number")
    return value


def _no_constant(name: str) -> NoReturn:
    raise TextRefused(f"{name} is no JSON value")
