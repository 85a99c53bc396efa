"""Answers: what a person has said so far in one call, carried by the client between its tries.

In the 2026-07-28 era a call that needs an answer ends with its questions, and the client calls again. What was
asked and answered before travels in `requestState`, which the SDK's boundary seals: bound to the method, the tool,
the arguments, the principal and this service. So only an answer to a question that we put in this very call counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from trysquare.core.client_requests import Answer, ClientRequest
from trysquare.core.result import dump_json
from trysquare.core.types import JsonObject
from trysquare.wire.questions import answer_from_wire, request_to_wire


class Answers:
    """The answers of one call, and the questions that are still open."""

    def __init__(self, state: str | None, responses: Mapping[str, Any] | None) -> None:
        kept = _read_state(state)
        self._kept: dict[str, JsonObject] = kept.get("answered", {})
        asked: dict[str, str] = kept.get("asked", {})
        for key, response in (responses or {}).items():
            # Without the sealed note that we asked, a response proves nothing and is as good as none.
            if key in asked and isinstance(response, dict):
                self._kept[key] = {"asked": asked[key], "answer": response}

    def find(self, request: ClientRequest) -> Answer | None:
        """The answer to this very question, if the person has given one."""
        kept = self._kept.get(request.key)
        if kept is None or kept["asked"] != _fingerprint(request):
            return None
        return answer_from_wire(request, kept["answer"])

    def state_for(self, open_requests: Mapping[str, ClientRequest]) -> str:
        """What the client carries to its next try: the answers so far, and what is asked now."""
        asked = {key: _fingerprint(request) for key, request in open_requests.items()}
        return json.dumps({"asked": asked, "answered": self._kept}, separators=(",", ":"))


def _read_state(state: str | None) -> JsonObject:
    # The boundary has verified the seal, so this is what `state_for` wrote.
    return cast(JsonObject, json.loads(state)) if state else {}


def _fingerprint(request: ClientRequest) -> str:
    text = dump_json(request_to_wire(request))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
