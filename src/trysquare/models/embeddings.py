"""Sentence encoder behind an OpenAI-compatible `/embeddings` address."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.net.http import HttpRefused, JsonClient
from trysquare.search.vectors import Vectors, vectors_folder

_SECONDS = 30.0
_MOST_CHARACTERS = 2_000


class RemoteEncoder:
    """Encodes by one request; blocks, and so runs in threads of its own. Every failure is an `OSError`."""

    def __init__(self, url: str, model: str, key: str) -> None:
        self._url, self._model = url.rstrip("/").removesuffix("/embeddings"), model
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        digest = hashlib.sha256(f"{self._url} {model}".encode()).hexdigest()
        self.name = f"embeddings-{digest[:12]}"
        # What the model returns is known only from its answer.
        self.width = len(self.encode(["tool"])[0])

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        body: JsonObject = {"model": self._model, "input": [text[:_MOST_CHARACTERS] or " " for text in texts]}
        try:
            # A loop for one request: this runs in a thread that has none.
            found = asyncio.run(self._post(body))
        except (ToolError, HttpRefused) as error:
            raise ConnectionError(str(error)) from None
        return _rows(found, len(texts), self._url)

    async def _post(self, body: JsonObject) -> JsonObject:
        client = JsonClient(
            self._url,
            self._headers,
            service="The embeddings server",
            unavailable=ErrorCode.MODEL_UNAVAILABLE,
            timeout=_SECONDS,
            retries=0,
        )
        try:
            return await client.post("/embeddings", body)
        finally:
            await client.close()


def _rows(found: JsonObject, count: int, url: str) -> Sequence[Sequence[float]]:
    """The vectors in the order of the texts, whatever order the answer has."""
    entries = [as_object(entry) for entry in as_list(found.get("data"))]
    ordered = sorted(entries, key=lambda entry: entry["index"] if isinstance(entry.get("index"), int) else 0)
    rows = [as_list(entry.get("embedding")) for entry in ordered]
    numbers = all(rows) and all(isinstance(value, (int, float)) for row in rows for value in row)
    if len(rows) != count or not numbers:
        raise ConnectionError(f"{url}/embeddings did not return {count} vectors")
    return cast(Sequence[Sequence[float]], rows)


def remote_vectors(url: str, model: str, key: str, env: Mapping[str, str] = os.environ) -> Vectors:
    """Vectors of an encoder behind an address, which is asked when the first are wanted."""
    return Vectors(lambda: RemoteEncoder(url, model, key), folder=vectors_folder(env), remote=True)
