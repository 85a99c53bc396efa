"""traced: OpenTelemetry spans after the conventions for MCP and for tool execution.

A request of an MCP client has one `tools/call NAME` span, whose parent is the trace that the request's `_meta` names.
Where the SDK or another server library has opened that span already, it is completed here and not doubled. A call that
comes another way (an agent, a script, a tool that calls a tool) gets an `execute_tool NAME` span of its own. Without a
configured tracer provider nothing happens, and nothing is imported. Arguments and answers are never recorded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any

from trysquare.core.context import CallContext
from trysquare.core.errors import ToolError
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_NAMES_PROVIDER = "OTEL_PYTHON_TRACER_PROVIDER" in os.environ
_inside: ContextVar[Any] = ContextVar("trysquare_span", default=None)
"""The span of the call that this one is made in; None for a call from outside."""


def traced(tool: Tool) -> Tool:
    """Trace each call of the tool, where the process has a tracer provider."""
    inner = tool.call

    def call(arguments: JsonObject, context: CallContext) -> Awaitable[Result[Any]]:
        api = _configured_api()
        return inner(arguments, context) if api is None else in_span(api, arguments, context)

    async def in_span(api: ModuleType, arguments: JsonObject, context: CallContext) -> Result[Any]:
        with _span_for(tool, context, api) as span:
            try:
                result = await inner(arguments, context)
            except Exception as error:
                _tell_error(span, error)
                raise
            if not result.success:
                _tell_failure(span, str(result.code or result.error_type))
            return result

    return tool.wrapped(call)


def _configured_api() -> ModuleType | None:
    """The OpenTelemetry API, if somebody imported it and set a provider that records."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None or (getattr(api, "_TRACER_PROVIDER", api) is None and not _NAMES_PROVIDER):
        # The API itself would say so too, after a look into the environment that costs more than all of this.
        return None
    if isinstance(api.get_tracer_provider(), (api.ProxyTracerProvider, api.NoOpTracerProvider)):
        return None
    return api


@contextmanager
def _span_for(tool: Tool, context: CallContext, api: ModuleType) -> Generator[Span]:
    current: Span = api.get_current_span()
    # A client in this same process leaves its own span open around ours; that one is not the request's.
    opened: Mapping[str, Any] = {} if getattr(current, "kind", None) is api.SpanKind.CLIENT else _attributes(current)
    method = opened.get("mcp.method.name")
    if method == "tools/call" and opened.get("gen_ai.tool.name") == tool.name and not _inside.get():
        current.set_attributes(_own_attributes(tool))
        with _within(current):
            yield current
        return
    is_request = context.request_id is not None and method is None and not _inside.get()
    with _new_span(tool, context, current, api, is_request=is_request) as span, _within(span):
        yield span


@contextmanager
def _within(span: Span) -> Generator[None]:
    token = _inside.set(span)
    try:
        yield
    finally:
        _inside.reset(token)


def _new_span(
    tool: Tool, context: CallContext, current: Span, api: ModuleType, *, is_request: bool
) -> AbstractContextManager[Span]:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool.name, **_own_attributes(tool)}
    if is_request:
        attributes |= _request_attributes(context)
    return api.get_tracer("trysquare").start_as_current_span(
        f"{'tools/call' if is_request else 'execute_tool'} {tool.name}",
        kind=api.SpanKind.SERVER if is_request else api.SpanKind.INTERNAL,
        attributes=attributes,
        context=_callers_trace(current, context, is_request=is_request),
        record_exception=False,
        set_status_on_exception=False,
    )


def _attributes(span: Span) -> Mapping[str, Any]:
    # The API's spans show no attributes; those of an SDK, which record, do.
    return getattr(span, "attributes", None) or {}


def _request_attributes(context: CallContext) -> dict[str, str]:
    attributes = {"mcp.method.name": "tools/call", "jsonrpc.request.id": context.request_id or ""}
    version = context.meta.get("io.modelcontextprotocol/protocolVersion")
    return {**attributes, "mcp.protocol.version": version} if isinstance(version, str) else attributes


def _callers_trace(current: Span, context: CallContext, *, is_request: bool) -> Any:
    """The trace that the caller's `_meta` names, if it names one; None goes on with the present one."""
    if "traceparent" not in context.meta or not (is_request or not current.get_span_context().is_valid):
        return None
    from opentelemetry.propagate import extract
    from opentelemetry.trace import get_current_span

    found = extract({name: text for name, text in context.meta.items() if isinstance(text, str)})
    return found if get_current_span(found).get_span_context().is_valid else None


def _own_attributes(tool: Tool) -> dict[str, str]:
    attributes = {"gen_ai.tool.type": "function", "trysquare.tool.room": tool.metadata.room}
    return (
        attributes if tool.metadata.version is None else {**attributes, "trysquare.tool.version": tool.metadata.version}
    )


def _tell_error(span: Span, error: Exception) -> None:
    if isinstance(error, ToolError):
        _tell_failure(span, error.code.value)
    else:
        _tell_failure(span, type(error).__qualname__, kind=type(error).__qualname__)


def _tell_failure(span: Span, code: str, *, kind: str = "tool_error") -> None:
    # Only the code: the text of an error may hold what the caller sent.
    from opentelemetry.trace import StatusCode

    span.set_attributes({"error.type": kind, "trysquare.error.code": code})
    span.set_status(StatusCode.ERROR, code)
