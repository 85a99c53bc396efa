"""Listing: what a server offers, in signatures that a call can be written from, or in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from trysquare.core.result import Result, dump_json
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text, cleaned_value
from trysquare.gateway.arguments import Detail
from trysquare.gateway.checking.signatures import inputs_text, one_line
from trysquare.gateway.server import Definition, ServerConfig

MOST_CHARACTERS = 40_000
_DESCRIPTION = 4_000

Form: TypeAlias = Callable[[Definition], Any]


def listing(server: ServerConfig, definitions: Sequence[Definition], detail: Detail, *, says: str = "") -> Result[Any]:
    """The answer to `list`. What would be too long is told in fewer words, with the way to the rest.

    What the server says of its own use is told as its words.
    """
    fields: JsonObject = {"server": server.name, **({"server_says": says} if says else {})}
    if not definitions:
        return Result.ok([], message=f"The server `{server.name}` offers no tools.", fields=fields)
    shown, given = _fitting(definitions, detail)
    asked = "" if given == detail else f" This is too long for {detail}: give `tool_name` to see one tool whole."
    return Result.ok(
        shown,
        instruction=f"Run one with action=execute, tool_name and tool_inputs.{asked}",
        fields=fields,
    )


def tool_listing(server: ServerConfig, definition: Definition, detail: Detail) -> Result[Any]:
    """The answer to `list` about one tool."""
    return Result.ok([FORMS[detail](definition)], fields={"server": server.name})


def whole(definition: Definition) -> JsonObject:
    """Everything about one tool."""
    told: JsonObject = {
        "name": definition.name,
        "description": cleaned_text(definition.description)[:_DESCRIPTION],
        "inputs": cleaned_value(definition.input_schema),
    }
    if definition.output_schema is not None:
        told["outputs"] = cleaned_value(definition.output_schema)
    if definition.annotations:
        told["annotations"] = cleaned_value(definition.annotations)
    return told


def brief(definition: Definition) -> JsonObject:
    """One tool in a line: its name, what it is for, and how its inputs are written."""
    purpose = one_line(definition.description or definition.title or "")
    return {"name": definition.name, "description": purpose, "inputs": inputs_text(definition)}


def bare(definition: Definition) -> str:
    """One tool by its name alone."""
    return definition.name


FORMS: dict[Detail, Form] = {"schemas": whole, "signatures": brief, "names": bare}


def _fitting(definitions: Sequence[Definition], detail: Detail) -> tuple[list[Any], Detail]:
    """The definitions in the form that was asked for, or in the next shorter one that is short enough."""
    order = list(FORMS)
    for form in order[order.index(detail) : -1]:
        shown = [FORMS[form](definition) for definition in definitions]
        if len(dump_json(shown)) <= MOST_CHARACTERS:
            return shown, form
    return [bare(definition) for definition in definitions], "names"
