"""traced: OpenTelemetry spans after the conventions for MCP and for tool execution.

The MCP SDK opens a `tools/call NAME` span for each request and takes the caller's trace from `_meta`. Such a span is
completed here and not doubled. A call that comes another way (a prompt, an agent, a tool that calls a tool) gets an
`execute_tool NAME` span of its own. Without a configured tracer provider nothing happens, and nothing is imported.
Arguments and answers are never recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
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

_completed: ContextVar[Any] = ContextVar("trysquare_completed_span", default=None)
"""The request's span that a call completes already: a call inside that call needs one of its own."""


def traced(tool: Tool) -> Tool:
    """Trace each call of the tool, where the process has a tracer provider."""
    inner = tool.call

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        api = _configured_api()
        if api is None:
            return await inner(arguments, context)
        with _span_for(tool, context, api) as span:
            try:
                result = await inner(arguments, context)
            except Exception as error:
                _tell_error(span, error)
                raise
            if not result.success:
                _tell_failure(span, str(result.code or result.error_type))
            return result

    return tool.with_call(call)


def _configured_api() -> ModuleType | None:
    """The OpenTelemetry API, if somebody imported it and set a provider that records."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None or isinstance(api.get_tracer_provider(), (api.ProxyTracerProvider, api.NoOpTracerProvider)):
        return None
    return api


@contextmanager
def _span_for(tool: Tool, context: CallContext, api: ModuleType) -> Generator[Span]:
    current: Span = api.get_current_span()
    if _is_request_of(tool, current) and _completed.get() is not current:
        current.set_attributes(_own_attributes(tool))
        token = _completed.set(current)
        try:
            yield current
        finally:
            _completed.reset(token)
        return
    with api.get_tracer("trysquare").start_as_current_span(
        f"execute_tool {tool.name}",
        kind=api.SpanKind.INTERNAL,
        attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool.name, **_own_attributes(tool)},
        context=_callers_trace(current, context),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


def _is_request_of(tool: Tool, span: Span) -> bool:
    # The API's spans show no attributes; those of an SDK, which record, do.
    attributes: Mapping[str, Any] = getattr(span, "attributes", None) or {}
    return attributes.get("mcp.method.name") == "tools/call" and attributes.get("gen_ai.tool.name") == tool.name


def _callers_trace(current: Span, context: CallContext) -> Any:
    """The trace that the caller's `_meta` names, where no span of this process is open; else None."""
    if current.get_span_context().is_valid or "traceparent" not in context.meta:
        return None
    from opentelemetry.propagate import extract

    return extract({name: text for name, text in context.meta.items() if isinstance(text, str)})


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
