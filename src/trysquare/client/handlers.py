"""Handlers of a client: what answers a server's questions, and what receives its progress and logs."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from trysquare.core.context import (
    Answer,
    Capability,
    ClientRequest,
    ElicitRequest,
    LogLevel,
    RootsRequest,
    SamplingRequest,
    Visit,
)
from trysquare.core.errors import CapabilityMissing, NobodyToAsk
from trysquare.core.json import JsonObject

T = TypeVar("T")
MaybeAsync: TypeAlias = T | Awaitable[T]


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One progress report of a call."""

    done: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LogMessage:
    """One log message that a server sent during a call."""

    level: LogLevel
    data: Any
    logger: str = ""


ProgressHandler: TypeAlias = Callable[[Progress], MaybeAsync[None]]
LogHandler: TypeAlias = Callable[[LogMessage], MaybeAsync[None]]
Filled: TypeAlias = Mapping[str, Any] | str | float | bool | list[str]
"""The fields of a form, or the value that a question for one asks for."""
ElicitationHandler: TypeAlias = Callable[[ElicitRequest | Visit], MaybeAsync[Answer | Filled | None]]
"""The user's answer: what they filled in, an `Answer`, or None for a refusal."""
SamplingHandler: TypeAlias = Callable[[SamplingRequest], MaybeAsync[str | JsonObject]]
"""The model's answer: its text, or the protocol's whole `CreateMessageResult`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Handlers:
    """What a client can do for a server; a server is offered only what has a handler."""

    elicitation: ElicitationHandler | None = None
    sampling: SamplingHandler | None = None
    roots: Sequence[str | Path] | None = None
    """Directories that the client works in, as paths or URIs."""
    log: LogHandler | None = None
    log_level: LogLevel = "info"
    """The least severe messages to receive."""

    def capabilities(self) -> list[Capability]:
        known: list[tuple[Capability, object]] = [
            ("elicitation", self.elicitation),
            ("elicitation.url", self.elicitation),
            ("sampling", self.sampling),
            ("roots", self.roots),
        ]
        return [name for name, handler in known if handler is not None]


class HandlingCaller:
    """The caller of a client's requests: passes what the server sends to the handlers."""

    asks_by = "client"
    """How a receipt names this way of asking."""

    def __init__(self, handlers: Handlers, progress: ProgressHandler | None = None) -> None:
        self._handlers = handlers
        self._progress = progress
        self._offered = frozenset(handlers.capabilities())

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        if self._progress is not None:
            await _awaited(self._progress(Progress(done=done, total=total, message=message)))

    async def log(self, level: LogLevel, message: str) -> None:
        await self.relay_log(level, message, "")

    async def relay_log(self, level: LogLevel, data: Any, logger: str) -> None:
        if self._handlers.log is not None:
            await _awaited(self._handlers.log(LogMessage(level=level, data=data, logger=logger)))

    def lowest_log_level(self) -> LogLevel | None:
        return None if self._handlers.log is None else self._handlers.log_level

    def can_ask(self) -> bool:
        return self.offers("elicitation")

    def offers(self, capability: Capability) -> bool:
        return capability in self._offered

    async def ask(self, question: ElicitRequest) -> Answer:
        if not self.can_ask():
            raise NobodyToAsk(question.message)
        return await self._answer(question)

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        return {wanted.key: await self._answer(wanted) for wanted in requests}

    async def _answer(self, wanted: ClientRequest) -> Answer:
        handlers = self._handlers
        if isinstance(wanted, (ElicitRequest, Visit)) and handlers.elicitation is not None:
            return _as_answer(await _awaited(handlers.elicitation(wanted)))
        if isinstance(wanted, SamplingRequest) and handlers.sampling is not None:
            said = await _awaited(handlers.sampling(wanted))
            return Answer(action="accept", content={"text": said} if isinstance(said, str) else {"whole": said})
        if isinstance(wanted, RootsRequest) and handlers.roots is not None:
            return Answer(action="accept", content={"roots": [{"uri": _uri(root)} for root in handlers.roots]})
        raise CapabilityMissing(wanted.needs)


def _as_answer(given: Answer | Filled | None) -> Answer:
    if isinstance(given, Answer):
        return given
    if given is None:
        return Answer(action="decline")
    return Answer(action="accept", content=given if isinstance(given, Mapping) else {"value": given})


def _uri(root: str | Path) -> str:
    return root if isinstance(root, str) and "://" in root else Path(root).resolve().as_uri()


async def _awaited(value: MaybeAsync[T]) -> T:
    return cast(T, await value if inspect.isawaitable(value) else value)
