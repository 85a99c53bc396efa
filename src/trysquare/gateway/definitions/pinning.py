"""Pinning: what becomes of a server's record when the server describes its tools anew, or a person agrees."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from trysquare.core.types import JsonObject
from trysquare.gateway.server import ChangePolicy, Definition, FirstUse, ServerConfig
from trysquare.store.definitions import ServerRecord

if TYPE_CHECKING:
    from trysquare.gateway.definitions.drift import Change

MAX_GONE = 200


def described(
    record: ServerRecord,
    definitions: Sequence[Definition],
    *,
    changes: ChangePolicy = "hold",
    first_use: FirstUse = "trust",
) -> tuple[ServerRecord, tuple[str, ...]]:
    """The record after a server described its tools, and what there is to say about it.

    Tools keep their places, and new ones come last, so that what is shown changes only where it has to. What a human
    has not approved is held: the approved definition stays in use, or the tool is refused.
    """
    # Only a server that is asked needs it.
    from trysquare.gateway.definitions.drift import compare, suspicions

    told = _unique(definitions)
    if record.tools is None and first_use == "trust":
        odd = tuple(f"{one.name}: {reason}" for one in told for reason in suspicions(one))
        return replace(record, tools=[asdict(one) for one in told], held=[], gone=[]), odd
    are_new_held = first_use == "hold" or changes == "refuse"
    shown = {one.name: one for one in (Definition(**tool) for tool in record.tools or ())}
    gone = {one.name: one for one in (Definition(**tool) for tool in record.gone)}
    held: list[JsonObject] = []
    notes: list[str] = []
    # With those that are gone: a tool that goes and comes back is not new, and must not pass as such.
    for change in compare([*shown.values(), *gone.values()], told):
        if change.after is None and change.tool in gone:
            continue
        notes.extend(f"{change.tool}: {reason}" for reason in change.reasons)
        if change.after is None:
            gone[change.tool] = shown.pop(change.tool)
        elif change.grade == "dangerous" or (change.grade == "new" and are_new_held):
            held.append(_to_hold(change, change.after, refuses=True))
        elif change.grade == "changed" and changes != "accept":
            held.append(_to_hold(change, change.after, refuses=changes == "refuse"))
        else:
            shown[change.tool] = change.after
    _bring_back(shown, gone, told, held)
    after = replace(record, tools=_plain(shown), gone=_plain(gone)[-MAX_GONE:], held=held)
    return after, tuple(notes)


def approved(record: ServerRecord, seen: Sequence[JsonObject]) -> ServerRecord:
    """The record after a person agreed with held changes as they saw them. What changed since is still held."""
    agreed = [one for one in record.held if any(_is_same(one, other) for other in seen)]
    names = {str(one["tool"]) for one in agreed}
    shown = {str(tool["name"]): tool for tool in record.tools or ()}
    shown.update({str(one["tool"]): one["after"] for one in agreed})
    return replace(
        record,
        tools=list(shown.values()),
        gone=[tool for tool in record.gone if tool["name"] not in names],
        held=[one for one in record.held if one not in agreed],
    )


def is_over(record: ServerRecord, limits: ServerConfig) -> bool:
    """Whether a record holds more than is taken of a server."""
    lists = (record.tools or (), record.held, *record.offers.values())
    return record.size > 8 * limits.max_catalogue_bytes or any(len(each) > limits.max_tools for each in lists)


def trimmed(record: ServerRecord, limits: ServerConfig) -> ServerRecord:
    """The record with as much of each list as is taken of a server, from its beginning."""

    def cut(entries: Sequence[JsonObject]) -> list[JsonObject]:
        room, kept = limits.max_catalogue_bytes, list[JsonObject]()
        for entry in entries[: limits.max_tools]:
            room -= len(json.dumps(entry))
            if room < 0:
                break
            kept.append(entry)
        return kept

    return replace(
        record,
        tools=None if record.tools is None else cut(record.tools),
        held=cut(record.held),
        gone=cut(record.gone),
        offers={kind: cut(entries) for kind, entries in record.offers.items()},
    )


def _bring_back(
    shown: dict[str, Definition], gone: dict[str, Definition], told: Sequence[Definition], held: Sequence[JsonObject]
) -> None:
    """Show a tool again that was gone and is there now: as it was approved, if it changed and is not refused."""
    waiting = {one["tool"]: one["refuses"] for one in held}
    for one in told:
        if one.name in gone and not waiting.get(one.name, False):
            before = gone.pop(one.name)
            shown.setdefault(one.name, before if one.name in waiting else one)


def _is_same(held: JsonObject, seen: JsonObject) -> bool:
    return held["tool"] == seen["tool"] and held["after"] == seen["after"]


def _to_hold(change: Change, after: Definition, *, refuses: bool) -> JsonObject:
    return {
        "tool": change.tool,
        "reasons": list(change.reasons),
        "refuses": refuses,
        "before": None if change.before is None else asdict(change.before),
        "after": asdict(after),
    }


def _plain(definitions: dict[str, Definition]) -> list[JsonObject]:
    return [asdict(one) for one in definitions.values()]


def _unique(definitions: Sequence[Definition]) -> list[Definition]:
    """Each name once: of two tools that have the same name, a call could only mean the first."""
    found: dict[str, Definition] = {}
    for one in definitions:
        found.setdefault(one.name, one)
    return list(found.values())
