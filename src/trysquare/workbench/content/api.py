"""Api: requests to a service that speaks JSON, with failures that say whether the request may have taken effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio
import httpx2
from pydantic_core import from_json

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import folded
from trysquare.workbench.fetching import trusting

MAX_ANSWER = 5_000_000
_SECONDS = 30.0
_TRIES = 4
_LONGEST_WAIT = 30.0
_PERHAPS_DONE = (500, 502, 504)
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class ServiceRefused(ToolError):
    """The service answered, and did not do it."""

    default_code = ErrorCode.UPSTREAM_REFUSED

    def __init__(self, message: str, *, status: int, code: ErrorCode | None = None, instruction: str) -> None:
        super().__init__(message, code=code, instruction=instruction)
        self.status = status


class ServiceLost(ToolError):
    """The request was sent, and nobody knows whether it took effect."""

    default_code = ErrorCode.UPSTREAM_LOST


@dataclass(frozen=True, kw_only=True, slots=True)
class Api:
    """One service: its name for people, its address, and the setting that holds its token."""

    service: str
    url: str
    token_setting: str

    async def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        query: Mapping[str, str | int] | None = None,
        body: JsonObject | None = None,
    ) -> JsonObject:
        """Send a request and read the answer. One that the service puts off is sent again after the time it names."""
        async with await http_client(self.url) as client:
            request = client.build_request(
                method, self.url.rstrip("/") + path, params=dict(query or {}), json=body, headers=dict(headers)
            )
            for _ in range(_TRIES - 1):
                answer = await self._sent(client, request)
                if answer.status != 429:
                    return self._read(method, answer)
                await anyio.sleep(answer.wait)
            return self._read(method, await self._sent(client, request))

    async def _sent(self, client: httpx2.AsyncClient, request: httpx2.Request) -> _Answer:
        try:
            response = await client.send(request, stream=True)
            try:
                body = await self._bounded(response)
            finally:
                await response.aclose()
        except _NEVER_SENT as error:
            raise ToolError(
                f"{self.service} cannot be reached: {folded(str(error) or type(error).__name__)}.",
                code=ErrorCode.UPSTREAM_UNAVAILABLE,
                instruction="Nothing was done. Try again later, or tell the person.",
            ) from None
        except httpx2.HTTPError as error:
            raise self._lost(f"the connection broke before it answered ({type(error).__name__})") from None
        return _Answer(status=response.status_code, wait=_wait(response), body=body)

    async def _bounded(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > MAX_ANSWER:
                raise self._lost(f"the answer has more than {MAX_ANSWER:,} bytes")
        return bytes(body)

    def _read(self, method: str, answer: _Answer) -> JsonObject:
        if answer.status in _PERHAPS_DONE and method != "GET":
            raise self._lost(f"it answered {answer.status}")
        if not 200 <= answer.status < 300:
            raise self._refusal(answer)
        if not answer.body:
            return {}
        value = answer.json()
        if value is None:
            raise self._lost(f"what {folded(self.url)} answered is no JSON object")
        return value

    def _refusal(self, answer: _Answer) -> ServiceRefused:
        said = _said(answer.json() or {}).rstrip(".")
        code, instruction = _meaning(answer.status, self.token_setting)
        return ServiceRefused(
            f"{self.service} answered {answer.status}{f': {said}' if said else ''}.",
            status=answer.status,
            code=code,
            instruction=instruction,
        )

    def _lost(self, why: str) -> ServiceLost:
        return ServiceLost(
            f"Nobody knows whether {self.service} did it: {why}.",
            instruction="Look whether it was done before you send it again.",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    status: int
    wait: float
    """Seconds after which the service wants to be asked again, where it puts a request off."""
    body: bytes

    def json(self) -> JsonObject | None:
        """The body as a JSON object, or None where it is something else."""
        try:
            value = from_json(self.body)
        except ValueError:
            return None
        return cast(JsonObject, value) if isinstance(value, dict) else None


async def http_client(url: str) -> httpx2.AsyncClient:
    """A client for one service, which goes where it is sent and nowhere else."""
    return httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False, verify=await trusting(url))


def _meaning(status: int, token_setting: str) -> tuple[ErrorCode, str]:
    if status in (401, 403):
        return ErrorCode.UPSTREAM_REFUSED, f"Tell the person to check {token_setting} and what it may do."
    if status in (404, 410):
        return ErrorCode.RESOURCE_NOT_FOUND, "Check the id; it may also be that it is not shared with us."
    if status == 409:
        return ErrorCode.STATE_CONFLICT, "Look at the present state first."
    if status == 429 or status >= 500:
        return ErrorCode.UPSTREAM_UNAVAILABLE, "Try again later."
    return ErrorCode.UPSTREAM_REFUSED, "Change the arguments as the message says."


def _said(answer: JsonObject) -> str:
    """What a service says of its refusal: Notion at the top, Google below `error`."""
    error: Any = answer.get("error", answer)
    told: Any = cast(JsonObject, error).get("message") if isinstance(error, dict) else error
    return folded(str(told)) if told and isinstance(told, str) else ""


def _wait(response: httpx2.Response) -> float:
    try:
        return min(max(float(response.headers.get("retry-after", "1")), 0.0), _LONGEST_WAIT)
    except ValueError:
        return 1.0
