"""Endpoint: JSON over HTTP to a model's server, patient with one that is busy and plain about one that refuses."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject

if TYPE_CHECKING:
    import httpx2

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 60.0
_SHOWN = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """An answer that is no success."""

    status: int
    message: str

    @property
    def about_length(self) -> bool:
        """Whether the dialogue was too long for the model, by the words that servers use for it."""
        text = self.message.lower()
        return self.status in (400, 413) and (
            "context length" in text
            or "context_length" in text
            or "context size" in text
            or "too long" in text
            or "too many tokens" in text
        )


class Refused(Exception):
    """A request that the server will not answer, however often it is sent."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Endpoint:
    """One server. The key goes into headers only, and never into a message."""

    def __init__(
        self, base: str, headers: Mapping[str, str], *, timeout: float, retries: int, first_wait: float = 0.5
    ) -> None:
        self.base = base.rstrip("/")
        self._headers = dict(headers)
        self._timeout = timeout
        self._retries = retries
        self._first_wait = first_wait
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        """Let the connections go."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def post(self, path: str, body: JsonObject) -> JsonObject:
        """The JSON object that comes back. `Refused` where the server says no; a `ToolError` where it is not there."""
        return await self._send("POST", path, body)

    async def get(self, path: str) -> JsonObject:
        """The JSON object at a path."""
        return await self._send("GET", path, None)

    async def _send(self, method: str, path: str, body: JsonObject | None) -> JsonObject:
        outcome = await self._once(method, path, body)
        for attempt in range(self._retries):
            if isinstance(outcome, dict):
                return outcome
            await anyio.sleep(outcome.wait if outcome.wait is not None else self._pause(attempt))
            outcome = await self._once(method, path, body)
        if isinstance(outcome, dict):
            return outcome
        raise ToolError(
            f"The model's server at {self.base} did not answer in {self._retries + 1} attempts: {outcome.why}",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Check that the server runs and that the address is right, or wait and try again.",
        )

    def _pause(self, attempt: int) -> float:
        # Half of it by chance, so that many clients of a busy server do not come back in step.
        longest = min(self._first_wait * 2**attempt, _LONGEST_WAIT)
        return longest / 2 + random.random() * longest / 2

    async def _once(self, method: str, path: str, body: JsonObject | None) -> JsonObject | _Trouble:
        import httpx2

        client = await self._opened()
        try:
            response = await client.request(method, self.base + path, json=body)
        except httpx2.TransportError as error:
            return _Trouble(why=f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        except httpx2.InvalidURL as error:
            raise ToolError(
                f"`{self.base}` is no address of a server: {error}.",
                code=ErrorCode.MODEL_UNAVAILABLE,
                instruction="Name the model as openai:NAME@http://HOST:PORT/v1.",
            ) from error
        if response.status_code in _BUSY:
            return _Trouble(why=_said(response), wait=_asked_wait(response))
        if not response.is_success:
            raise Refused(Refusal(status=response.status_code, message=_said(response)))
        return _object(response, self.base + path)

    async def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            # Reading the certificates takes a while: not on the loop, and not where no TLS is spoken.
            verify = await run_in_thread(httpx2.create_ssl_context) if self.base.startswith("https:") else False
            self._client = httpx2.AsyncClient(headers=self._headers, timeout=self._timeout, verify=verify)
        return self._client


@dataclass(frozen=True, kw_only=True, slots=True)
class _Trouble:
    why: str
    wait: float | None = None


def _said(response: httpx2.Response) -> str:
    """What the server says of a failure, short."""
    text = response.text.strip()
    try:
        found: Any = response.json()
    except ValueError:
        found = None
    if isinstance(found, dict):
        error: Any = cast(JsonObject, found).get("error", cast(JsonObject, found).get("message", text))
        text = str(cast(JsonObject, error).get("message", error)) if isinstance(error, dict) else str(error)
    return f"{response.status_code} {text[:_SHOWN]}".strip()


def _asked_wait(response: httpx2.Response) -> float | None:
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)


def _object(response: httpx2.Response, url: str) -> JsonObject:
    try:
        found: Any = json.loads(response.content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ToolError(
            f"{url} answered with something that is no JSON object: {response.text[:120]!r}",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Check that the address is the one of a model's API.",
        )
    return cast(JsonObject, found)


def read_refusal(refusal: Refusal, name: str, *, key_variable: str | None) -> ToolError:
    """A refusal as the error that a person can act on."""
    if refusal.about_length:
        return ToolError(
            f"The dialogue is too long for {name}: {refusal.message}", code=ErrorCode.MODEL_CONTEXT_FULL,
            instruction="Compact the dialogue, or choose a model with a longer context.",
        )  # fmt: skip
    if refusal.status in (401, 403):
        variable = f" Set the environment variable {key_variable} to a valid key." if key_variable else ""
        return ToolError(
            f"{name} does not accept the key: {refusal.message}", code=ErrorCode.MODEL_REFUSED,
            instruction=f"Check the key.{variable}",
        )  # fmt: skip
    if refusal.status == 404:
        return ToolError(
            f"There is no model {name} at this server: {refusal.message}", code=ErrorCode.MODEL_REFUSED,
            instruction="Check the model's name and the address, which ends in /v1 for most servers.",
        )  # fmt: skip
    return ToolError(f"{name} refused the request: {refusal.message}", code=ErrorCode.MODEL_REFUSED)
