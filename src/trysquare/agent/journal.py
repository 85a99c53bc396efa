"""Journal: where the loop puts every answer and every call, so that a run may be taken up where it was killed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast

from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

Repeat: TypeAlias = Literal["harmless", "keyed", "unknown"]
"""What a second call does: nothing new, nothing new because of its key, or nobody knows."""
REQUEST_KEY = "request_key"


@dataclass(frozen=True, kw_only=True, slots=True)
class CallOutcome:
    """What became of a call: its value, or the words for the model where nobody knows. Exactly one is there."""

    value: JsonObject | None = None
    unknown: str | None = None


class Journal(Protocol):
    """The record of a run's steps, in their order. Two steps of a run never have the same name."""

    @property
    def job(self) -> str | None:
        """The id of the job; None where nothing is recorded."""
        ...

    async def step(self, name: str, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """What `run` gave, now or in an earlier life of the job."""
        ...

    async def call(self, name: str, repeat: Repeat, run: Callable[[str], Awaitable[JsonObject]]) -> CallOutcome:
        """What a tool's call gave, now or in an earlier life. `run` gets the key that the call may carry.

        A call that may not be repeated, and that was in flight when its process died, is not sent again unless a
        person says so.
        """
        ...

    async def tell(self, done: int, total: int | None, message: str) -> None:
        """Show how far the run is. Nothing of it is recorded."""
        ...


class Unjournalled:
    """A journal of a run that does not outlive its process."""

    @property
    def job(self) -> str | None:
        return None

    async def step(self, name: str, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        return await run()

    async def call(self, name: str, repeat: Repeat, run: Callable[[str], Awaitable[JsonObject]]) -> CallOutcome:
        return CallOutcome(value=await run(name))

    async def tell(self, done: int, total: int | None, message: str) -> None:
        return None


def repeat_of(tool: Tool, arguments: JsonObject) -> Repeat:
    """What a second call of a tool does, as far as the tool says."""
    if tool.metadata.read_only or tool.metadata.idempotent:
        return "harmless"
    return "unknown" if _key_place(tool, arguments) is None else "keyed"


def keyed(tool: Tool, arguments: JsonObject, key: str) -> JsonObject:
    """The arguments with the key of the call, where the tool takes one. A key that the model made up gives way."""
    place = _key_place(tool, arguments)
    if place is None:
        return arguments
    if place == REQUEST_KEY:
        return {**arguments, REQUEST_KEY: key}
    given = arguments.get(place)
    inner = cast(JsonObject, given) if isinstance(given, dict) else {}
    return {**arguments, place: {**inner, REQUEST_KEY: key}}


def _key_place(tool: Tool, arguments: JsonObject) -> str | None:
    """The argument that takes the key: itself, or an object that has a place for it."""
    properties = _properties(_schema_for(tool, arguments))
    if REQUEST_KEY in properties:
        return REQUEST_KEY
    if tool.metadata.room == "bots" and "parameters" in properties:
        # The tools of a bot share one open object, which takes a key without naming it in every schema.
        return "parameters"
    return next((name for name, schema in properties.items() if REQUEST_KEY in _properties(schema)), None)


def _schema_for(tool: Tool, arguments: JsonObject) -> JsonObject:
    """The schema of the call: that of its action where the tool has actions, since not every one takes a key."""
    exact = tool.arguments.exact
    for option in cast(list[JsonObject], exact.get("oneOf", [])):
        named = cast(JsonObject, _properties(option).get("action", {}))
        if arguments.get("action") in (named.get("const"), *cast(list[Any], named.get("enum", []))):
            return option
    return exact


def _properties(schema: Any) -> JsonObject:
    found = cast(JsonObject, schema).get("properties") if isinstance(schema, dict) else None
    return cast(JsonObject, found) if isinstance(found, dict) else {}
