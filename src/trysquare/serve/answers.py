"""Answers: what has been answered so far in one call, carried by the client between its tries.

In 2026-07-28 a call that needs an answer ends with its questions, and the client calls again: the tool runs from its
start. What was asked and answered before travels in `requestState`, which the SDK's boundary seals: bound to the
method, the tool, the arguments, the principal and this service. So only an answer to a question that we put in this
very call counts.

The n-th question under a key gets the n-th answer under it, whatever its words are now: they may tell a time or a
count. An answer is not used for a question of another kind or schema, nor twice in one run; where the same words were
asked under another number, as happens to questions at the same time, they find their answer by their words. An exact
question gets an answer to these very words only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from trysquare.core.client_requests import Answer, ClientRequest, Question
from trysquare.core.errors import InputRequired
from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject
from trysquare.wire.questions import answer_from_wire, request_to_wire


class Answers:
    """The answers of one call, and the questions that are still open, each in a slot of its own."""

    def __init__(self, state: str | None, responses: Mapping[str, Any] | None) -> None:
        kept = _read_state(state)
        self._kept: dict[str, JsonObject] = kept.get("answered", {})
        self._count: dict[str, int] = {}
        self._used: set[str] = set()
        self.open: dict[str, ClientRequest] = {}
        """What was asked in this run and has no answer."""
        asked: dict[str, JsonObject] = kept.get("asked", {})
        for slot, response in (responses or {}).items():
            # Without the sealed note that we asked, a response proves nothing and is as good as none.
            if slot in asked and isinstance(response, dict):
                self._kept[slot] = {**asked[slot], "answer": response}

    def take(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        """The answers to these requests, by their keys. Raises `InputRequired` with all that is open in this run."""
        found = {request.key: self._find(request) for request in requests}
        if any(answer is None for answer in found.values()):
            raise InputRequired(dict(self.open))
        return {key: answer for key, answer in found.items() if answer is not None}

    def renew(self, used: str, fresh: str) -> None:
        """Put a fresh ticket in place of a used one."""
        for entry in self._kept.values():
            if entry.get("ticket") == used:
                entry["ticket"] = fresh

    def state(self) -> str:
        """What the client carries to its next try: the answers so far, and what is asked now."""
        asked = {slot: _note(request) for slot, request in self.open.items()}
        return json.dumps({"asked": asked, "answered": self._kept}, separators=(",", ":"))

    def wire(self) -> JsonObject:
        """The open questions as requests of the protocol."""
        return {slot: request_to_wire(request) for slot, request in self.open.items()}

    def _find(self, request: ClientRequest) -> Answer | None:
        number = self._count[request.key] = self._count.get(request.key, 0) + 1
        slot = self._answered_slot(request, number)
        if slot is None:
            self.open[self._free_slot(request.key, number)] = request
            return None
        self._used.add(slot)
        entry = self._kept[slot]
        answer = answer_from_wire(request, entry["answer"])
        ticket = entry.get("ticket")
        return answer if ticket is None else Answer(action=answer.action, content=answer.content, ticket=ticket)

    def _answered_slot(self, request: ClientRequest, number: int) -> str | None:
        note, own = _note(request), _slot(request.key, number)
        others = (slot for slot, entry in self._kept.items() if entry["key"] == request.key)
        for slot in (own, *others):
            if self._fits(slot, note, exactly=True):
                return slot
        is_exact = isinstance(request, Question) and request.exact
        return own if not is_exact and self._fits(own, note, exactly=False) else None

    def _fits(self, slot: str, note: JsonObject, *, exactly: bool) -> bool:
        entry = self._kept.get(slot)
        if entry is None or slot in self._used:
            return False
        return entry["shape"] == note["shape"] and (not exactly or entry["words"] == note["words"])

    def _free_slot(self, key: str, number: int) -> str:
        while (slot := _slot(key, number)) in self._kept or slot in self.open:
            number += 1
        return slot


def _slot(key: str, number: int) -> str:
    """The name of a question on the wire; no two of a call have the same."""
    plain = key.replace("#", "##")
    return plain if number == 1 else f"{plain}#{number}"


def _note(request: ClientRequest) -> JsonObject:
    """What is remembered of a question: its kind and schema, and its words."""
    wire = request_to_wire(request)
    shape: JsonObject = {"method": wire["method"]}
    ticket = None
    if isinstance(request, Question):
        shape["schema"], ticket = request.schema, request.ticket
    note: JsonObject = {"key": request.key, "shape": _fingerprint(shape), "words": _fingerprint(wire)}
    return note if ticket is None else {**note, "ticket": ticket}


def _read_state(state: str | None) -> JsonObject:
    # The boundary has verified the seal, so this is what `state` wrote.
    return cast(JsonObject, json.loads(state)) if state else {}


def _fingerprint(value: JsonObject) -> str:
    return hashlib.sha256(dump_json(value).encode("utf-8", "surrogatepass")).hexdigest()[:32]
