"""JSON client of a web service, and work that runs once per request key."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from trysquare.core.errors import ErrorCode, ToolError, require_extra
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import folded
from trysquare.net.http import error_message, error_text, json_object, open_client, read_body, retry_after, was_sent
from trysquare.store.database import Transactions
from trysquare.store.idempotency import RecordedAnswer, claim, finish, release

if TYPE_CHECKING:
    import httpx2


T = TypeVar("T")
MAX_ANSWER = 5_000_000
_SECONDS = 30.0
_TRIES = 4
_LONGEST_WAIT = 30.0
_PERHAPS_DONE = (500, 502, 504)


class ServiceRefused(ToolError):
    """The service rejected the request."""

    default_code = ErrorCode.UPSTREAM_REFUSED

    def __init__(self, message: str, *, status: int, code: ErrorCode | None = None, instruction: str) -> None:
        super().__init__(message, code=code, instruction=instruction)
        self.status = status


class ResponseLost(ToolError):
    """The request was sent; whether it took effect is unknown."""

    default_code = ErrorCode.UPSTREAM_LOST


@dataclass(frozen=True, kw_only=True, slots=True)
class Api:
    """One service: display name, URL, and the setting of its token."""

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
        """Send a request and return its JSON; a 429 is retried after `Retry-After`."""
        async with await http_client(self.url) as client:
            request = client.build_request(
                method, self.url.rstrip("/") + path, params=dict(query or {}), json=body, headers=dict(headers)
            )
            for _ in range(_TRIES - 1):
                answer = await self._sent(client, request)
                if answer.status != 429:
                    return self._read(method, answer)
                await asyncio.sleep(answer.wait)
            return self._read(method, await self._sent(client, request))

    async def _sent(self, client: httpx2.AsyncClient, request: httpx2.Request) -> _Answer:
        import httpx2

        try:
            response = await client.send(request, stream=True)
            try:
                body = await read_body(response, MAX_ANSWER)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            if was_sent(error):
                raise self._lost(f"the connection was lost before the response ({type(error).__name__})") from None
            raise ToolError(
                f"Cannot connect to {self.service}: {folded(error_text(error))}.",
                code=ErrorCode.UPSTREAM_UNAVAILABLE,
                instruction="Nothing was changed. Retry once the network works, or ask the user.",
            ) from None
        if body is None:
            raise self._lost(f"the response is larger than {MAX_ANSWER:,} bytes")
        wait = retry_after(response.headers.get("retry-after", ""))
        return _Answer(status=response.status_code, wait=1.0 if wait is None else min(wait, _LONGEST_WAIT), body=body)

    def _read(self, method: str, answer: _Answer) -> JsonObject:
        if answer.status in _PERHAPS_DONE and method != "GET":
            raise self._lost(f"it answered {answer.status}")
        if not 200 <= answer.status < 300:
            reason = folded(error_message(json_object(answer.body) or {})).rstrip(".")
            code, instruction = _meaning(answer.status, self.token_setting)
            raise ServiceRefused(
                f"{self.service} answered {answer.status}{f': {reason}' if reason else ''}.",
                status=answer.status,
                code=code,
                instruction=instruction,
            )
        if not answer.body:
            return {}
        value = json_object(answer.body)
        if value is None:
            raise self._lost(f"the response of {folded(self.url)} is not a JSON object")
        return value

    def _lost(self, why: str) -> ResponseLost:
        return ResponseLost(
            f"Unknown whether {self.service} applied the request: {why}.",
            instruction="Check whether it took effect before sending it again.",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    status: int
    wait: float
    """Seconds to wait before a retry."""
    body: bytes


async def http_client(url: str) -> httpx2.AsyncClient:
    """A client of one service, without redirects."""
    require_extra("content", "httpx2", feature="This tool", code=ErrorCode.UPSTREAM_UNAVAILABLE)
    return await open_client(url, timeout=_SECONDS)


def _meaning(status: int, token_setting: str) -> tuple[ErrorCode, str]:
    if status in (401, 403):
        return ErrorCode.UPSTREAM_REFUSED, f"Ask the user to check {token_setting} and its permissions."
    if status in (404, 410):
        return ErrorCode.RESOURCE_NOT_FOUND, "Check the id; the resource may not be shared with this account."
    if status == 409:
        return ErrorCode.STATE_CONFLICT, "Read the current state first."
    if status == 429 or status >= 500:
        return ErrorCode.UPSTREAM_UNAVAILABLE, "Retry after a pause."
    return ErrorCode.UPSTREAM_REFUSED, "Change the arguments according to the message."


RETENTION = 10 * 365 * 86400.0
"""Seconds for which a publication is recorded: a job may be resumed long after its first attempt."""


async def run_once(
    state: Transactions, key: str, *, tool: str, principal: str, digest: str, work: Callable[[], Awaitable[JsonObject]]
) -> tuple[JsonObject, bool]:
    """The result of the work, of this call or of an earlier one with this key; and whether it ran now.

    Work that failed without an effect releases its key. Where the effect is unknown, the key stays claimed, so that
    the work does not run again.
    """

    async def write(change: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with state.write() as connection:
                return change(connection)

        return await run_in_thread(run)

    claimed = await write(lambda rows: claim(rows, key, tool=tool, principal=principal, digest=digest, now=time.time()))
    if isinstance(claimed, RecordedAnswer):
        return claimed.result, False
    try:
        done = await work()
    except ToolError as error:
        if not isinstance(error, ResponseLost):
            await write(lambda rows: release(rows, claimed))
        raise
    await write(lambda rows: finish(rows, claimed, done, now=time.time(), retention=RETENTION))
    return done, True
