"""Request middleware: functions around the requests of clients, such as a list, a read or the start of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from trysquare.core.context import Principal
from trysquare.core.hints import function_name
from trysquare.core.json import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class McpRequest:
    """A request of a client, as a request middleware sees it."""

    method: str
    """The method of the protocol, such as `resources/read`."""
    params: JsonObject
    """What the client sent with it."""
    principal: Principal
    protocol_version: str
    """Empty before `initialize` is answered."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The `_meta` of its parameters."""
    client_info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Those of the HTTP request, in small letters; none over stdio."""


Proceed: TypeAlias = Callable[[], Awaitable[JsonObject]]
"""Answers the request: returns the result as the protocol has it, or raises."""
OnRequest: TypeAlias = Callable[[McpRequest, Proceed], Awaitable[JsonObject]]


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestMiddleware:
    """A function around requests, and the methods that it is for."""

    function: OnRequest
    methods: frozenset[str] = frozenset()
    """Empty for every method."""

    def applies_to(self, method: str) -> bool:
        """Whether requests of the method go through it."""
        return not self.methods or method in self.methods

    def around(self, request: McpRequest, proceed: Proceed) -> Proceed:
        """What answers the request with the function around it."""

        async def answer() -> JsonObject:
            result: Any = await self.function(request, proceed)
            if not isinstance(result, dict):
                raise TypeError(
                    f"`{function_name(self.function)}` returned {type(result).__name__} for `{request.method}`; "
                    "return the result of `await proceed()`, or a result of your own as a dict"
                )
            return cast(JsonObject, result)

        return answer


@runtime_checkable
class RequestToolset(Protocol):
    """A toolset whose server has request middleware."""

    @property
    def request_middleware(self) -> Sequence[RequestMiddleware]: ...


def request_middleware_of(toolset: object) -> Sequence[RequestMiddleware]:
    """The request middleware of a toolset, outermost first."""
    return toolset.request_middleware if isinstance(toolset, RequestToolset) else ()
