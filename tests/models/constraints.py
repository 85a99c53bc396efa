"""Constraints of the tests' own: what one call looks like in every dialect, without the room that makes grammars."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from trysquare.models import ToolSpec

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string", "enum": ["a.py"]}},
    "required": ["path"],
    "additionalProperties": False,
}
OFFER = ToolSpec(name="read", description="Reads a file.", schema=SCHEMA, flat=SCHEMA)
CALL = '{"name":"read","args":{"path":"a.py"}}'


@dataclass(frozen=True)
class Piece:
    """A piece of a walk."""

    forced: str | None = None
    lark: str = ""
    choices: tuple[str, ...] = ()
    most_tokens: int | None = None


@dataclass
class ListedWalk:
    """A walk through pieces that are known beforehand."""

    pieces: list[Piece]
    taken: list[str] = field(default_factory=list)

    def next(self, *, tokens_left: int) -> Piece | None:
        return self.pieces[len(self.taken)] if len(self.taken) < len(self.pieces) else None

    def take(self, text: str) -> None:
        piece = self.pieces[len(self.taken)]
        assert piece.forced in (None, text)
        self.taken.append(text)


class OneCall:
    """Holds an answer to the one call `CALL`."""

    def lark(self, *, tokens: int | None = None) -> str:
        return f"start: {json.dumps(CALL)}"

    def gbnf(self, *, tokens: int | None = None) -> str:
        return f"root ::= {json.dumps(CALL)}"

    def json_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"name": {"const": "read"}, "args": SCHEMA},
            "required": ["name", "args"],
            "additionalProperties": False,
        }

    def walk(self) -> ListedWalk:
        return ListedWalk([Piece(forced=CALL)])
