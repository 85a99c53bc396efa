"""Middleware that traces each call with OpenTelemetry, and the set-up of its exporter."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Awaitable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from trysquare.core.context import CallContext
from trysquare.core.errors import ToolError
from trysquare.core.json import JsonObject
from trysquare.middleware.base import Layer

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from trysquare.core.result import Result
    from trysquare.core.tool import Tool

logger = logging.getLogger("trysquare.telemetry")

_PARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_LONGEST_STATE: Final = 512
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


def is_wanted(env: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment has an endpoint for traces and does not disable them."""
    off = env.get("OTEL_SDK_DISABLED", "").lower() == "true" or env.get("OTEL_TRACES_EXPORTER") == "none"
    return not off and any(env.get(name) for name in _ENDPOINTS)


@contextmanager
def tracing() -> Generator[None]:
    """Send traces during the block, if the environment has an endpoint for them."""
    if not is_wanted():
        yield
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning("an OTLP endpoint is set, but the extra is not installed: pip install 'trysquare[otel]'")
        yield
        return
    service = Resource.create({SERVICE_NAME: os.environ.get("OTEL_SERVICE_NAME", "trysquare")})
    provider = TracerProvider(resource=service)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()


_NAMES_PROVIDER = "OTEL_PYTHON_TRACER_PROVIDER" in os.environ
_inside: ContextVar[Any] = ContextVar("trysquare_span", default=None)
"""The span of the call that makes this one; None for a call from outside."""


def trace_calls(tool: Tool) -> Tool:
    """Trace each call of the tool, where the process has a tracer provider.

    A request of an MCP client has one `tools/call NAME` span, whose parent is the trace that the request's `_meta`
    names. Where a server library has opened that span already, it is completed and not doubled. Any other call (of an
    agent, a script, a tool) has an `execute_tool NAME` span of its own. Arguments and results are never recorded.
    """
    inner = tool.call

    def call(arguments: JsonObject, context: CallContext) -> Awaitable[Result[Any]]:
        api = _configured_api()
        return inner(arguments, context) if api is None else in_span(api, arguments, context)

    async def in_span(api: ModuleType, arguments: JsonObject, context: CallContext) -> Result[Any]:
        with _span_for(tool, context, api) as span:
            try:
                result = await inner(arguments, context)
            except ToolError as error:
                _record_failure(span, error.code.value)
                raise
            except Exception as error:
                _record_failure(span, type(error).__qualname__, kind=type(error).__qualname__)
                raise
            if not result.success:
                _record_failure(span, str(result.code or result.error_type))
            return result

    return tool.wrapped(call)


def _configured_api() -> ModuleType | None:
    """The OpenTelemetry API, if it was imported and has a provider that records."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None or (getattr(api, "_TRACER_PROVIDER", api) is None and not _NAMES_PROVIDER):
        # The API answers the same after reading the environment, which costs more than all of this.
        return None
    if isinstance(api.get_tracer_provider(), (api.ProxyTracerProvider, api.NoOpTracerProvider)):
        return None
    return api


@contextmanager
def _span_for(tool: Tool, context: CallContext, api: ModuleType) -> Generator[Span]:
    current: Span = api.get_current_span()
    # The open span of a client in this process is not the request's.
    is_client = getattr(current, "kind", None) is api.SpanKind.CLIENT
    # Only the spans of an SDK, which record, have attributes.
    opened: Mapping[str, Any] = {} if is_client else getattr(current, "attributes", None) or {}
    method = opened.get("mcp.method.name")
    if method == "tools/call" and opened.get("gen_ai.tool.name") == tool.name and not _inside.get():
        current.set_attributes(_own_attributes(tool))
        entered: AbstractContextManager[Span] = nullcontext(current)
    else:
        is_request = context.request_id is not None and method is None and not _inside.get()
        entered = _new_span(tool, context, current, api, is_request=is_request)
    with entered as span:
        token = _inside.set(span)
        try:
            yield span
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


def _request_attributes(context: CallContext) -> dict[str, str]:
    attributes = {"mcp.method.name": "tools/call", "jsonrpc.request.id": context.request_id or ""}
    version = context.meta.get("io.modelcontextprotocol/protocolVersion")
    return {**attributes, "mcp.protocol.version": version} if isinstance(version, str) else attributes


def _callers_trace(current: Span, context: CallContext, *, is_request: bool) -> Any:
    """The trace that the caller's `_meta` names; None continues the current one."""
    if "traceparent" not in context.meta or not (is_request or not current.get_span_context().is_valid):
        return None
    from opentelemetry.propagate import extract
    from opentelemetry.trace import get_current_span

    found = extract({name: text for name, text in context.meta.items() if isinstance(text, str)})
    return found if get_current_span(found).get_span_context().is_valid else None


def trace_meta(context: CallContext) -> Mapping[str, str]:
    """`traceparent` and `tracestate` for a request to another server: of the current span, else of the caller.

    Not `baggage`: it may say what the other server is not to know.
    """
    found: dict[str, str] = {}
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(found)
    if not found and isinstance(parent := context.meta.get("traceparent"), str) and _PARENT.fullmatch(parent):
        found["traceparent"] = parent
        if isinstance(state := context.meta.get("tracestate"), str) and len(state) <= _LONGEST_STATE:
            found["tracestate"] = state
    return found


def _own_attributes(tool: Tool) -> dict[str, str]:
    metadata = tool.metadata
    # `trysquare.tool.room` is the old name of the attribute, sent for one more release.
    names = {"trysquare.tool.toolset": metadata.toolset, "trysquare.tool.room": metadata.toolset}
    version = {} if metadata.version is None else {"trysquare.tool.version": metadata.version}
    return {"gen_ai.tool.type": "function", **names, **version}


def _record_failure(span: Span, code: str, *, kind: str = "tool_error") -> None:
    # Only the code: the text of an error may contain arguments.
    from opentelemetry.trace import StatusCode

    span.set_attributes({"error.type": kind, "trysquare.error.code": code})
    span.set_status(StatusCode.ERROR, code)


# A process without the API at a tool's first call has no tracer.
MIDDLEWARE = Layer(
    order=10, wrap=lambda tool, config: trace_calls(tool) if "opentelemetry.trace" in sys.modules else tool
)
