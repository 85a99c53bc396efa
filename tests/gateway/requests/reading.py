"""The measured set: ten servers with their tools, and what people ask of them.

A request belongs to the development half or to the held-out half by its own text, and never changes sides. Search is
tuned on the development half alone; the held-out half is only measured.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.core.json import JsonObject
from trysquare.gateway.models import ToolDefinition

Kind: TypeAlias = Literal["keyword", "everyday", "impossible"]
KINDS: tuple[Kind, ...] = ("keyword", "everyday", "impossible")

_HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What somebody asks for, and the tools that would do: `server.tool`; none where nothing can."""

    text: str
    kind: Kind
    wanted: frozenset[str] = frozenset()

    @property
    def is_held_out(self) -> bool:
        """Whether this request is only measured, and never looked at while search is tuned."""
        return hashlib.sha256(self.text.encode()).digest()[0] % 2 == 1


def read_requests() -> list[Request]:
    """All requests, in the order of their files."""
    return [_request(line, kind) for kind in KINDS for line in _lines(_HERE / f"{kind}.txt")]


def read_practice() -> list[Request]:
    """More requests to tune on, for each tool and for none."""
    return _read_extra("practice")


def read_other_requests() -> list[Request]:
    """Requests by another hand, written from the servers alone: all of them are only measured."""
    return _read_extra("other")


def _read_extra(name: str) -> list[Request]:
    kinds: tuple[Kind, ...] = ("everyday", "impossible")
    return [_request(line, kind) for kind in kinds for line in _lines(_HERE / f"{name}_{kind}.txt")]


def read_servers() -> dict[str, list[ToolDefinition]]:
    """The tools of each server."""
    return {path.stem: _definitions(path) for path in sorted((_HERE / "servers").glob("*.txt"))}


def _request(line: str, kind: Kind) -> Request:
    text, _, wanted = line.partition(" => ")
    return Request(text=text, kind=kind, wanted=frozenset(wanted.split(" | ")) if wanted else frozenset())


def _definitions(path: Path) -> list[ToolDefinition]:
    """A tool is a line `name: description`; its inputs are indented below it, optional ones as `name?: text`."""
    blocks: list[list[str]] = []
    for line in _lines(path):
        if line.startswith(" "):
            blocks[-1].append(line.strip())
        else:
            blocks.append([line])
    return [_definition(first, inputs) for first, *inputs in blocks]


def _definition(first: str, inputs: list[str]) -> ToolDefinition:
    name, _, description = first.partition(": ")
    pairs = [line.partition(": ")[::2] for line in inputs]
    schema: JsonObject = {
        "type": "object",
        "properties": {key.removesuffix("?"): {"type": "string", "description": text} for key, text in pairs},
        "required": [key for key, _ in pairs if not key.endswith("?")],
    }
    return ToolDefinition(name=name, description=description, input_schema=schema)


def _lines(path: Path) -> list[str]:
    return [line.rstrip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
