"""Loopback: what the runtime of local models offers only over HTTP, on a port of this machine and behind a key."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.models.transcript import Turn
from trysquare.models.vocabulary import Vocabulary

_REMEMBERED = 4_096


class Loopback:
    """Takes texts apart into tokens and puts dialogues into the model's template.

    It knows nothing of the runtime itself: llguidance keeps it, and would keep the weights with it.
    """

    def __init__(self, address: str, key: str, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._address = urlsplit(address)
        self._headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        self._connection: http.client.HTTPConnection | None = None
        self._asking = threading.Lock()
        self._taken_apart: dict[str, list[int]] = {}

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text, in which control tokens are text like any other."""
        if text not in self._taken_apart:
            if len(self._taken_apart) >= _REMEMBERED:
                self._taken_apart.clear()
            self._taken_apart[text] = self._vocabulary.exact(text, self._tokens(text, template=False))
        return list(self._taken_apart[text])

    def write_prompt(self, turns: Sequence[Turn]) -> list[int]:
        """The tokens of a dialogue in the model's own template, up to where its answer begins."""
        found = self._ask("/apply-template", {"messages": list(turns)})
        return self._tokens(str(found["prompt"]), template=True)

    def _tokens(self, text: str, *, template: bool) -> list[int]:
        body = {"content": text, "add_special": template, "parse_special": template}
        return cast(list[int], self._ask("/tokenize", body)["tokens"])

    def _ask(self, path: str, body: JsonObject) -> JsonObject:
        with self._asking:
            try:
                return self._sent(path, body)
            except (http.client.HTTPException, ConnectionError):
                # An idle connection was closed at the other end.
                self.close()
                return self._sent(path, body)

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _sent(self, path: str, body: JsonObject) -> JsonObject:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._address.hostname or "", self._address.port)
        self._connection.request("POST", path, json.dumps(body), self._headers)
        return checked(json.loads(self._connection.getresponse().read()))


def checked(found: Any) -> JsonObject:
    """An answer of the runtime, unless it is a refusal."""
    error: Any = cast(JsonObject, found).get("error") if isinstance(found, dict) else {"message": str(found)}
    if not error:
        return cast(JsonObject, found)
    said = cast(JsonObject, error)
    full = said.get("type") == "exceed_context_size_error"
    raise ToolError(
        f"The local model refused the request: {said.get('message')}",
        code=ErrorCode.MODEL_CONTEXT_FULL if full else ErrorCode.MODEL_REFUSED,
        instruction="Compact the dialogue, or set a longer context." if full else None,
    )
