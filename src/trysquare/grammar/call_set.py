"""CallSet: which tools an answer may call, and the fixed text around a call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.grammar.loosening import read_loosely
from trysquare.grammar.schema_reading import read_schema
from trysquare.grammar.shapes import ShapeTree

BEFORE_NAME = '{"name":"'
AFTER_NAME = '","args":'
"""Written compactly: where whitespace is free, a model can fill its whole answer with spaces."""
MOST_CALLS = 8
_PLAIN = re.compile(r"[A-Za-z0-9_.\-]*")
"""A name without anything that JSON writes in another way, as nearly all names of tools are."""


@dataclass(frozen=True, kw_only=True)
class CallSet:
    """The tools that may be called in one answer, by name, with the exact schemas of their arguments."""

    tools: Mapping[str, JsonObject]
    parallel: bool = False
    """An answer is then an array of calls, also where it has only one."""
    most_calls: int = MOST_CALLS
    loosely: bool = False
    """Whether a part of a schema that no grammar can express is left out, instead of refusing the whole set."""

    def __post_init__(self) -> None:
        if not self.tools:
            raise ToolError(
                "No tool may be called, so no call can be written.",
                code=ErrorCode.GRAMMAR_UNSUPPORTED,
                instruction="Offer at least one tool, or ask for plain text.",
            )
        if self.most_calls < 1:
            raise ToolError(
                f"An answer must have room for one call; most_calls is {self.most_calls}.",
                code=ErrorCode.GRAMMAR_UNSUPPORTED,
                instruction="Set most_calls to 1 or more.",
            )

    @cached_property
    def written_names(self) -> dict[str, str]:
        """Each name as it stands between its quotes in JSON, with the name itself."""
        return {written(name): name for name in self.tools}

    def tree(self, name: str) -> ShapeTree:
        """The shapes of a tool's arguments, read when they are first asked for."""
        if name not in self._trees:
            self._trees[name] = self.read(name)
        return self._trees[name]

    def read(self, name: str, *, label: str = "") -> ShapeTree:
        """The shapes of a tool's arguments, with the label before every name in their table."""
        if self.loosely:
            return read_loosely(self.tools[name], label=label, tool=name)
        return read_schema(self.tools[name], label=label)

    @cached_property
    def _trees(self) -> dict[str, ShapeTree]:
        return {}

    @property
    def opening(self) -> str:
        """What stands before the first call."""
        return "[" if self.parallel else ""

    def endings(self, calls: int) -> tuple[str, ...]:
        """What may follow the closing brace of the call with this number, the first being 1."""
        if not self.parallel:
            return ("",)
        return ("]",) if calls >= self.most_calls else (",", "]")


def written(name: str) -> str:
    """A name as it stands between its quotes in JSON."""
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)[1:-1]
