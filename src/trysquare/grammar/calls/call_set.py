"""The tools that a response may call, and the state of a call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.grammar.dialects.lark import lark_rules
from trysquare.grammar.narrowing import read_loosely
from trysquare.grammar.schema.reader import Unsupported, read_schema
from trysquare.grammar.schema.shapes import ShapeTree

BEFORE_NAME = '{"name":"'
AFTER_NAME = '","args":'
"""Compact: where whitespace is free, a model can fill its response with spaces."""
MOST_CALLS = 8
_PLAIN = re.compile(r"[A-Za-z0-9_.\-]*")
"""A name that JSON writes without escapes, as nearly all tool names."""


@dataclass(frozen=True, kw_only=True)
class CallSet:
    """The tools that one response may call, by name, with the exact schemas of their arguments."""

    tools: Mapping[str, JsonObject]
    parallel: bool = False
    """Whether a response is an array of calls, also of a single one."""
    most_calls: int = MOST_CALLS
    loosely: bool = False
    """Whether parts of a schema that no grammar can express are left out instead of rejected."""

    def __post_init__(self) -> None:
        if not self.tools:
            raise ToolError(
                "No tools to call.",
                code=ErrorCode.GRAMMAR_UNSUPPORTED,
                instruction="Offer at least one tool, or ask for plain text.",
            )
        if self.most_calls < 1:
            raise ToolError(
                f"most_calls is {self.most_calls}; it must be at least 1.",
                code=ErrorCode.GRAMMAR_UNSUPPORTED,
                instruction="Set most_calls to 1 or more.",
            )

    @cached_property
    def written_names(self) -> dict[str, str]:
        """Names by their JSON text."""
        return {written(name): name for name in self.tools}

    def tree(self, name: str) -> ShapeTree:
        """The shapes of a tool's arguments, cached; the names in their table start with that of the tool."""
        if name not in self._trees:
            read = partial(read_loosely, tool=name) if self.loosely else read_schema
            try:
                self._trees[name] = read(self.tools[name], label=f"{name}#")
            except Unsupported as refusal:
                raise Unsupported(refusal.keyword, refusal.pointer, refusal.why, tool=name) from refusal
        return self._trees[name]

    @cached_property
    def _trees(self) -> dict[str, ShapeTree]:
        return {}

    @property
    def opening(self) -> str:
        return "[" if self.parallel else ""

    def endings(self, calls: int) -> tuple[str, ...]:
        """What may follow the closing brace of a call, numbered from 1."""
        if not self.parallel:
            return ("",)
        return ("]",) if calls >= self.most_calls else (",", "]")


def written(name: str) -> str:
    """A name as JSON writes it between quotes."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)[1:-1]


def names_lark(names: Iterable[str], before: str) -> str:
    """The start of a call with any of the names, up to the opening brace of the arguments."""
    known = json.dumps({"enum": list(names)}, ensure_ascii=False)
    return f"start: {literal(before + BEFORE_NAME[:-1])} name {literal(AFTER_NAME[1:] + '{')}\nname: %json {known}\n"


def call_lark(name: str, schema: JsonObject, before: str, endings: Iterable[str]) -> str:
    """A whole call of one tool with what precedes and may follow it; a comma leads to the next call's name."""
    # The next call's start is included, because tokenizers have tokens such as `},{"`.
    after = [literal("}" + ending + (BEFORE_NAME if ending == "," else "")) for ending in endings]
    start = f"start: {literal(before + BEFORE_NAME + written(name) + AFTER_NAME)} args ({' | '.join(after)})\n"
    return start + lark_rules(schema, root="args")


def literal(text: str) -> str:
    """A Lark string literal."""
    return json.dumps(text, ensure_ascii=False)


_STRUCTURE = re.compile(rb'[{}\[\]]|"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A brace, a bracket, or a whole string."""
_DEPTHS = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_INSIDE_AND_QUOTE = re.compile(rb'(?:[^"\\]|\\.)*+"', re.DOTALL)


class CallState(Enum):
    """What comes next in a call: `START` its opening brace, `END` its closing one, `COMPLETE` only the end."""

    START = "start"
    NAME_KEY = "name key"
    NAME_VALUE = "name value"
    ARGUMENTS_KEY = "arguments key"
    ARGUMENTS = "arguments"
    END = "end"
    COMPLETE = "complete"


def call_length(text: bytes) -> int | None:
    """Bytes of the object that a text starts with; None while it is incomplete."""
    depth = 0
    for part in _STRUCTURE.finditer(text):
        depth += _DEPTHS.get(part.group(), 0)
        if not depth:
            return part.end()
    return None


def string_end(text: bytes, start: int) -> int | None:
    """Offset after the closing quote of the string whose content starts at `start`; None while it is open."""
    found = _INSIDE_AND_QUOTE.match(text, start)
    return found.end() if found else None


def state_of(text: bytes) -> CallState:
    """The state of a call after this prefix of it."""
    if not text:
        return CallState.START
    if len(text) < len(BEFORE_NAME) - 1:
        return CallState.NAME_KEY
    name_end = string_end(text, len(BEFORE_NAME))
    if name_end is None:
        return CallState.NAME_VALUE
    arguments = name_end + len(AFTER_NAME) - 1
    if len(text) < arguments:
        return CallState.ARGUMENTS_KEY
    length = call_length(text[arguments:])
    if length is None:
        return CallState.ARGUMENTS
    return CallState.COMPLETE if len(text) > arguments + length else CallState.END
