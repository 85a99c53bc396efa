"""Delivery of an action's instructions within its token budget, unchanged parts only once."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from trysquare.bots.actions import ActionInput, ActionOutput, run_action
from trysquare.bots.artifacts import load_saved
from trysquare.bots.definition.model import Gate
from trysquare.bots.instructions import ALL_PARTS, Fetch, Pack, Part, listed, pack
from trysquare.bots.parameters import read_scope
from trysquare.bots.people import comments_on
from trysquare.bots.tools.responses import BotCall, BotResponse, respond
from trysquare.bots.workflow.machine import Position
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.json import JsonObject, as_object
from trysquare.core.result import Result

_MAX_READERS = 256
_HANDLE = "/"
"""Separates the action from the name of its part in a handle."""
_SAVED = ("answers", "evidence", "decisions", "assumptions")

Reader: TypeAlias = tuple[str, str, str]
"""Who received a delivery: principal, project and run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivered:
    reader: Reader
    position: Position
    digests: frozenset[str]


class DeliveryLog:
    """Digests of delivered parts by the handle of their delivery, since this process started.

    Whoever sends the handle has the delivery in their conversation. A new conversation, a sub-agent and one whose
    history was cut do not know it, and get everything.
    """

    def __init__(self) -> None:
        self._delivered: OrderedDict[str, Delivered] = OrderedDict()
        self._lock = threading.Lock()

    def digests(self, handle: str | None, reader: Reader, position: Position) -> frozenset[str]:
        """The digests that need not be sent again. A second request for the same action gets everything."""
        with self._lock:
            last = None if handle is None else self._delivered.get(handle)
        if last is None or last.reader != reader or last.position == position:
            return frozenset()
        return last.digests

    def add(self, reader: Reader, position: Position, digests: Iterable[str]) -> str:
        """Record a delivery; returns its handle."""
        handle = secrets.token_hex(4)
        with self._lock:
            self._delivered[handle] = Delivered(reader=reader, position=position, digests=frozenset(digests))
            while len(self._delivered) > _MAX_READERS:
                self._delivered.popitem(last=False)
        return handle


def deliver(call: BotCall, position: Position, notes: JsonObject, deliveries: DeliveryLog) -> BotResponse:
    """Run an action and pack its instructions."""
    output = _run(call, position, notes)
    reader = (call.principal, str(call.project.root), call.run)
    given = None if call.parameters.fresh else call.parameters.delivery
    known = deliveries.digests(given, reader, position)
    packed = _pack(call, position, output, known)
    data: JsonObject = {"instructions": packed.to_json(_fetch_call(call, position)), **output.data}
    digests = {*packed.digests(), *known}
    for following in call.plan.together(position)[1:]:
        more = _pack(call, following, _run(call, following, notes), digests)
        data.setdefault("combined", {})[following.action] = more.to_json(_fetch_call(call, following))
        digests.update(more.digests())
    handle = deliveries.add(reader, position, digests)
    data["delivery"] = {"handle": handle, "to": " with ".join(filter(None, (call.principal, call.client)))}
    return BotResponse(
        data=data,
        message=output.message,
        failure=output.failure,
        instruction=_instruction(packed, output, call.definition.gates[position]),
        warnings=output.warnings,
        fields={"missing": list(output.missing)} if output.missing else {},
    )


def _pack(call: BotCall, position: Position, output: ActionOutput, known: AbstractSet[str]) -> Pack:
    budget = call.definition.gates[position].budget_tokens
    return pack(output.parts, budget=budget, held=known)


def _fetch_call(call: BotCall, position: Position) -> Fetch:
    """Build the calls that fetch a part by its handle, with the tool that every profile lists."""

    def fetch(name: str) -> JsonObject:
        arguments = call.parameters.repeated(part=f"{position}{_HANDLE}{name}")
        return {**call.forward_next(), "arguments": arguments}

    return fetch


def deliver_part(call: BotCall, position: Position, notes: JsonObject, handle: str) -> Result[Any]:
    """One part of an action's instructions, complete, by its handle or by its name in this action. Nothing moves."""
    if (given := next((name for name in _SAVED if name in call.parameters.given), None)) is not None:
        raise InvalidArguments(
            f"`part` only reads and cannot be combined with `{given}`.", instruction="Send two calls."
        )
    position, name = _resolve(call, position, handle)
    parts = _run(call, position, notes, only_reads=True).parts
    fetch = _fetch_call(call, position)
    found = next((part for part in parts if part.name == name), None)
    if found is None and name != ALL_PARTS:
        names = ", ".join(f"`{part.name}`" for part in parts if not part.is_empty)
        raise NotFound(
            f"`{position}` has no part `{name[:80]}`. Its parts are {names}.",
            code=ErrorCode.RESOURCE_NOT_FOUND,
            next=fetch(ALL_PARTS),
        )
    data = {"part": name, "content": listed(parts, fetch) if found is None else found.content}
    return respond(call, position, BotResponse(data=data, action_state="in_work", next=call.close_next(position)))


def _resolve(call: BotCall, position: Position, handle: str) -> tuple[Position, str]:
    path, slash, name = handle.partition(_HANDLE)
    behavior, _, action = path.partition(".")
    named = Position(behavior=behavior, action=action)
    return (named, name) if slash and named in call.definition.gates else (position, handle)


def _run(call: BotCall, position: Position, notes: JsonObject, *, only_reads: bool = False) -> ActionOutput:
    definition, root = call.definition, call.project.root
    output = run_action(
        ActionInput(
            definition=definition,
            behavior=definition.behavior(position.behavior),
            action=definition.action(position.action),
            project=root,
            parameters=call.parameters,
            scope=read_scope(call.parameters.given.get("scope")),
            saved=load_saved(root, definition),
            only_reads=only_reads,
        )
    )
    added: list[Part] = []
    rejection = as_object(notes.get("rejection"))
    if rejection.get("action") == str(position):
        added.append(Part(name="sent_back", content=rejection, priority=200))
    if comments := comments_on(notes, position):
        added.append(Part(name="comments", content=comments, priority=190))
    return replace(output, parts=(*added, *output.parts)) if added else output


def _instruction(packed: Pack, output: ActionOutput, gate: Gate) -> str:
    if output.failure is None and output.data.get("clean", True):
        text = "Follow data.instructions and show the user the result. Send `next` when they say that it is done."
    else:
        text = "Follow data.instructions, repair what was found, and send this call again. "
        text += "Send `next` when the user says that it is done"
        text += "; it is refused while the rules find an error." if gate.requires_clean else "."
    if packed.parts.unchanged:
        text += (
            " Parts under `unchanged` are those of the delivery that you named; if you do not have them, send the call "
            "without `delivery`."
        )
    if packed.parts.left_out:
        text += " Parts under `left_out` did not fit; call `fetch` to get one."
    return text
