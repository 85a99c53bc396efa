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
from trysquare.bots.instructions import Pack, Part, pack
from trysquare.bots.plan import Plan, Position
from trysquare.bots.saved import load_saved
from trysquare.bots.scope import read_scope
from trysquare.bots.tools.answers import Call, Told, answer
from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.result import Result
from trysquare.core.types import JsonObject

_MOST_READERS = 256


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
    data: JsonObject = {"instructions": packed.to_json(), **outcome.data}
    digests = {*packed.digests(), *held}
    for following in combined_with(call.bot.plan, position):
        more = _packed(call, following, _executed(call, following, notes), digests)
        data.setdefault("combined", {})[following.action] = more.to_json()
        digests.update(more.digests())
    deliveries.delivered(reader, position, digests)
    return Told(
        data=data,
        message=outcome.message,
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
    budget = call.bot.definition.gate(position.behavior, position.action).budget_tokens
    return pack(outcome.parts, budget=budget, held=held)


def deliver_part(call: Call, position: Position, notes: JsonObject, name: str) -> Result[Any]:
    """One part of an action's instructions, whole. Nothing moves."""
    outcome = _executed(call, position, notes)
    found = next((part for part in outcome.parts if part.name == name), None)
    if found is None:
        names = ", ".join(f"`{part.name}`" for part in outcome.parts if part.content)
        raise NotFound(
            f"`{position.behavior}.{position.action}` has no part `{name[:80]}`. Its parts are {names}.",
            code=ErrorCode.RESOURCE_NOT_FOUND,
        )
    told = Told(data={"part": name, "content": found.content}, action_state="in_work", next=call.close_next(position))
    return answer(call, position, told)


def _executed(call: Call, position: Position, notes: JsonObject) -> Outcome:
    definition = call.bot.definition
    work = Work(
        definition=definition,
        behavior=definition.behavior(position.behavior),
        action=definition.action(position.action),
        project=call.project.root,
        parameters=call.parameters,
        scope=read_scope(call.parameters.given.get("scope")),
        saved=load_saved(call.project.root, definition),
        notes=notes,
    )
    outcome = execute(work)
    rejection = cast(JsonObject, notes.get("rejection") or {})
    if rejection.get("action") == f"{position.behavior}.{position.action}":
        sent_back = Part(name="sent_back", content=rejection, priority=200)
        return Outcome(
            parts=(sent_back, *outcome.parts), data=outcome.data, warnings=outcome.warnings,
            missing=outcome.missing, message=outcome.message,
        )  # fmt: skip
    return outcome


def _what_to_do(packed: Pack) -> str:
    said = "Follow data.instructions and show the person what came of it. Send `next` when they say that it is done."
    if packed.unchanged:
        said += ' Parts under `unchanged` were delivered before; with {"fresh": true} all are sent whole.'
    if packed.left_out:
        said += ' Parts under `left_out` did not fit; fetch one by its name: the same call with {"part": "NAME"}.'
    return said
