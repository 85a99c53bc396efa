"""Known heads: a client sends the same head with every request of a connection, so that each is read once.

A request whose head was read before, byte by byte the same, and whose body came with it, needs no parser: what is known
of the head holds for it as well. Everything else goes through uvicorn's parser.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, Final, NamedTuple, cast

from trysquare.serve.heads import HEAD_IN_SCOPE
from trysquare.serve.whole_responses import WholeCycle, WholeResponses

_END: Final = b"\r\n\r\n"
_MOST_HEADS: Final = 8
"""Heads that are kept of one connection: they differ in the length of the body, and a client's own numbers."""
_LONGEST_HEAD: Final = 8 * 1024


class Head(NamedTuple):
    """What was read of a head: the scope of its requests, without what each has for itself, and how long a body is."""

    scope: dict[str, Any]
    length: int


class KnownHeads(WholeResponses):
    """uvicorn's protocol for connections over which many requests of one client come."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._application: Any = cast(Any, self).app
        self._heads: dict[bytes, Head] = {}
        self._begun = 0
        """Messages that the parser has seen the beginning of."""
        self._is_between = True
        """Whether the parser waits for the beginning of a message."""
        self._idle_since = math.inf

    def data_received(self, data: bytes) -> None:
        end = data.find(_END)
        head = self._heads.get(data[:end])
        if head is None or len(data) != end + len(_END) + head.length or not self._is_free():
            self._parse(data, end)
            return
        self._idle_since = math.inf
        self._begin(head, data[end + len(_END) :])

    def on_message_begin(self) -> None:
        self._begun += 1
        self._is_between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._is_between = True
        super().on_message_complete()

    def _is_free(self) -> bool:
        is_idle = self.cycle is None or self.cycle.response_complete  # pyright: ignore[reportUnnecessaryComparison]
        return is_idle and self._is_between and self.limit_concurrency is None

    def _parse(self, data: bytes, end: int) -> None:
        begun, was_between = self._begun, self._is_between
        super().data_received(data)
        is_one = was_between and self._is_between and self._begun == begun + 1
        if is_one and 0 < end < _LONGEST_HEAD:
            self._learn(data[:end], data[end + len(_END) :])

    def _learn(self, head: bytes, body: bytes) -> None:
        """Keep what the parser made of a whole request that has just come, and of which nothing has been done yet."""
        cycle = self.cycle
        is_usual = cycle.keep_alive and not cycle.waiting_for_100_continue and not cycle.response_complete
        if not is_usual or bytes(cycle.body) != body or _length(cycle.scope) != len(body):
            return
        if len(self._heads) >= _MOST_HEADS:
            del self._heads[next(iter(self._heads))]
        self._heads[head] = Head({**cycle.scope, HEAD_IN_SCOPE: {}}, len(body))

    def _begin(self, head: Head, body: bytes) -> None:
        scope = head.scope.copy()
        scope["state"] = self.app_state.copy()
        heard = asyncio.Event()
        heard.set()
        self.cycle = cycle = WholeCycle(
            scope=cast(Any, scope),
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=heard,
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        cycle.body, cycle.more_body = cast(bytearray, body), False
        self._start_asgi_task(cycle, self._application)

    # A timer for each wait between two requests would be most of what a wait costs: one looks now and then instead.

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.flush_head()
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()

    def _unset_keepalive_if_required(self) -> None:
        self._idle_since = math.inf

    def _look(self) -> None:
        self.timeout_keep_alive_task = None
        rest = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if rest <= 0:
            self.timeout_keep_alive_handler()
        elif rest < math.inf:
            self.timeout_keep_alive_task = self.loop.call_later(rest, self._look)


def _length(scope: Any) -> int | None:
    """How long the body is by its head; None where that is said in any other way than once and in digits."""
    names = [name for name, _ in scope["headers"]]
    if names.count(b"content-length") != 1 or b"transfer-encoding" in names or b"upgrade" in names:
        return None
    value: bytes = dict(scope["headers"])[b"content-length"]
    return int(value) if value.isdigit() else None
