"""Delivery: an action's instructions, packed into its budget and sent once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, cast

from trysquare.bots.actions.built_in import execute
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.instructions import ALL_PARTS, Fetch, Pack, Part, listed, pack
from trysquare.bots.naming import bot_tool_name
from trysquare.bots.plan import Plan, Position
from trysquare.bots.saved import load_saved
from trysquare.bots.scope import read_scope
from trysquare.bots.tools.answers import Call, Told, answer
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.result import Result
from trysquare.core.types import JsonObject

_MOST_READERS = 256
_HANDLE = "/"
"""Stands in a handle between the action and the name of its part."""
_BROUGHT = ("answers", "evidence", "decisions", "assumptions")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """Who holds what was delivered: a client of a principal, at work on a run."""

    principal: str
    client: str
    project: str
    run: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """What a reader holds, and of which action."""

    position: Position
    digests: frozenset[str]


class Deliveries:
    """What was delivered to whom since this process started. A new process, like a new reader, starts with nothing."""

    def __init__(self) -> None:
        self._held: OrderedDict[Reader, Held] = OrderedDict()
        self._lock = threading.Lock()

    def held(self, reader: Reader, position: Position) -> frozenset[str]:
        """The digests that need not be sent again. Who asks for the same action again has lost them, and gets all."""
        with self._lock:
            known = self._held.get(reader)
        return frozenset() if known is None or known.position == position else known.digests

    def delivered(self, reader: Reader, position: Position, digests: Iterable[str]) -> None:
        """Note what a reader holds now."""
        with self._lock:
            self._held[reader] = Held(position=position, digests=frozenset(digests))
            self._held.move_to_end(reader)
            while len(self._held) > _MOST_READERS:
                self._held.popitem(last=False)


def deliver(call: Call, position: Position, notes: JsonObject, deliveries: Deliveries) -> Told:
    """Execute an action and pack what it says."""
    outcome = _executed(call, position, notes)
    reader = Reader(
        principal=call.principal, client=call.client, project=str(call.project.root), run=call.parameters.run
    )
    held = frozenset[str]() if call.parameters.fresh else deliveries.held(reader, position)
    packed = _packed(call, position, outcome, held)
    data: JsonObject = {"instructions": packed.to_json(fetching(call, position)), **outcome.data}
    digests = {*packed.digests(), *held}
    for following in combined_with(call.plan, position):
        more = _packed(call, following, _executed(call, following, notes), digests)
        data.setdefault("combined", {})[following.action] = more.to_json(fetching(call, following))
        digests.update(more.digests())
    deliveries.delivered(reader, position, digests)
    return Told(
        data=data,
        message=outcome.message,
        failure=outcome.failure,
        instruction=_what_to_do(packed),
        warnings=outcome.warnings,
        fields={"missing": list(outcome.missing)} if outcome.missing else {},
    )


def combined_with(plan: Plan, position: Position) -> list[Position]:
    """The actions that are handed out and closed together with one."""
    found: list[Position] = []
    while plan.policy(position) == "combine_next" and (after := plan.after(position)) is not None:
        found.append(after)
        position = after
    return found


def _packed(call: Call, position: Position, outcome: Outcome, held: AbstractSet[str]) -> Pack:
    budget = call.definition.gate(position.behavior, position.action).budget_tokens
    return pack(outcome.parts, budget=budget, held=held)


def fetching(call: Call, position: Position) -> Fetch:
    """How a part of an action's instructions is fetched: by a handle, with the tool that every profile lists."""

    def fetch(name: str) -> JsonObject:
        handle = f"{position.behavior}.{position.action}{_HANDLE}{name}"
        return {"tool": bot_tool_name(call.bot.name), "arguments": call.parameters.repeated(part=handle)}

    return fetch


def deliver_part(call: Call, position: Position, notes: JsonObject, handle: str) -> Result[Any]:
    """One part of an action's instructions, whole, by its handle, or by its name in this action. Nothing moves."""
    _require_alone(call)
    position, name = _meant(call, position, handle)
    parts = _executed(call, position, notes, only_reads=True).parts
    fetch = fetching(call, position)
    found = next((part for part in parts if part.name == name), None)
    if found is None and name != ALL_PARTS:
        names = ", ".join(f"`{part.name}`" for part in parts if not part.is_empty)
        raise NotFound(
            f"`{position.behavior}.{position.action}` has no part `{name[:80]}`. Its parts are {names}.",
            code=ErrorCode.RESOURCE_NOT_FOUND,
            next=fetch(ALL_PARTS),
        )
    content = listed(parts, fetch) if found is None else found.content
    told = Told(data={"part": name, "content": content}, action_state="in_work", next=call.close_next(position))
    return answer(call, position, told)


def _require_alone(call: Call) -> None:
    """What a call brings would be lost on the way to a part."""
    brought = [name for name in _BROUGHT if name in call.parameters.given]
    if brought:
        raise InvalidArguments(
            f"`part` only reads, so it cannot come with `{brought[0]}`.", instruction="Send two calls."
        )


def _meant(call: Call, position: Position, handle: str) -> tuple[Position, str]:
    where, slash, name = handle.partition(_HANDLE)
    behavior, _, action = where.partition(".")
    definition = call.definition
    known = behavior in (each.name for each in definition.behaviors) and action in (
        each.name for each in definition.actions
    )
    return (Position(behavior=behavior, action=action), name) if slash and known else (position, handle)


def _executed(call: Call, position: Position, notes: JsonObject, *, only_reads: bool = False) -> Outcome:
    definition = call.definition
    work = Work(
        definition=definition,
        behavior=definition.behavior(position.behavior),
        action=definition.action(position.action),
        project=call.project.root,
        parameters=call.parameters,
        scope=read_scope(call.parameters.given.get("scope")),
        saved=load_saved(call.project.root, definition),
        notes=notes,
        only_reads=only_reads,
    )
    outcome = execute(work)
    rejection = cast(JsonObject, notes.get("rejection") or {})
    if rejection.get("action") == f"{position.behavior}.{position.action}":
        sent_back = Part(name="sent_back", content=rejection, priority=200)
        return Outcome(
            parts=(sent_back, *outcome.parts), data=outcome.data, warnings=outcome.warnings,
            missing=outcome.missing, message=outcome.message, failure=outcome.failure,
        )  # fmt: skip
    return outcome


def _what_to_do(packed: Pack) -> str:
    said = "Follow data.instructions and show the person what came of it. Send `next` when they say that it is done."
    if packed.parts.unchanged:
        said += ' Parts under `unchanged` were delivered before; with {"fresh": true} all are sent whole.'
    if packed.parts.left_out:
        said += " Parts under `left_out` did not fit; `fetch` is the call that brings one."
    return said
