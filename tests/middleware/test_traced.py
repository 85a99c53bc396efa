"""traced: one span a call, after the conventions, and none where nobody traces."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from trysquare import CallContext, ErrorCode, Result, StaticToolset, Tool, ToolError, call_tool, tool
from trysquare.core.errors import InputRequired
from trysquare.middleware.tracing import trace_calls
from trysquare.testing import call, make_context


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    # The API lets a process set its provider once; a test needs its own.
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    yield exporter
    provider.shutdown()


def one(exporter: InMemorySpanExporter) -> ReadableSpan:
    [span] = exporter.get_finished_spans()
    return span


def context_of(span: ReadableSpan) -> trace.SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def request_span(name: str) -> Any:
    """A span as the MCP SDK opens it for a request."""
    attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": name}
    return trace.get_tracer("mcp-python-sdk").start_as_current_span(
        f"tools/call {name}", kind=SpanKind.SERVER, attributes=attributes
    )


async def greet(name: str) -> str:
    return f"Hello, {name}"


async def test_a_call_from_elsewhere_gets_a_span_of_its_own(spans: InMemorySpanExporter) -> None:
    await call(trace_calls(tool(greet, version="2")), "greet", name="Ada")
    span = one(spans)
    assert (span.name, span.kind, span.status.status_code) == (
        "execute_tool greet",
        SpanKind.INTERNAL,
        StatusCode.UNSET,
    )
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "greet",
        "gen_ai.tool.type": "function",
        "trysquare.tool.toolset": "tools",
        "trysquare.tool.room": "tools",
        "trysquare.tool.version": "2",
    }


async def test_a_request_of_a_client_gets_a_server_span_below_the_clients_trace(spans: InMemorySpanExporter) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    meta = {
        "traceparent": f"00-{trace_id}-b7ad6b7169203331-01",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    }
    context = replace(make_context(meta=meta), request_id="7")
    with trace.get_tracer("http").start_as_current_span("POST /mcp"):
        await call(trace_calls(tool(greet)), "greet", name="Ada", context=context)
    span, _ = spans.get_finished_spans()
    assert (span.name, span.kind) == ("tools/call greet", SpanKind.SERVER)
    attributes = span.attributes or {}
    assert (attributes["mcp.method.name"], attributes["jsonrpc.request.id"]) == ("tools/call", "7")
    assert attributes["mcp.protocol.version"] == "2026-07-28"
    assert format(context_of(span).trace_id, "032x") == trace_id


async def test_the_sdks_span_of_the_request_is_completed_and_not_doubled(spans: InMemorySpanExporter) -> None:
    with request_span("greet"):
        await call(trace_calls(tool(greet)), "greet", name="Ada")
    span = one(spans)
    assert span.name == "tools/call greet"
    assert (span.attributes or {})["trysquare.tool.toolset"] == "tools"


async def test_a_tool_that_calls_tools_has_them_as_children(spans: InMemorySpanExporter) -> None:
    async def twice(name: str, context: CallContext) -> str:
        results = [await call_tool(StaticToolset([trace_calls(tool(greet))]), "greet", {"name": name}, context)]
        results.append(await call_tool(StaticToolset([trace_calls(tool(greet))]), "greet", {"name": name}, context))
        return str(len(results))

    with request_span("twice"):
        await call(trace_calls(tool(twice)), "twice", name="Ada")
    inner_one, inner_two, outer = spans.get_finished_spans()
    assert [span.name for span in (inner_one, inner_two, outer)] == ["execute_tool greet"] * 2 + ["tools/call twice"]
    assert {span.parent.span_id for span in (inner_one, inner_two) if span.parent} == {context_of(outer).span_id}


async def test_a_tool_that_calls_itself_is_told_apart_from_its_request(spans: InMemorySpanExporter) -> None:
    async def fall(depth: int, context: CallContext) -> int:
        if depth:
            await call_tool(StaticToolset([made[0]]), "fall", {"depth": depth - 1}, context)
        return depth

    made: list[Tool] = [trace_calls(tool(fall))]
    with request_span("fall"):
        await call(made[0], "fall", depth=2)
    assert [span.name for span in spans.get_finished_spans()] == ["execute_tool fall"] * 2 + ["tools/call fall"]


async def test_the_callers_trace_is_taken_from_meta_where_no_span_is_open(spans: InMemorySpanExporter) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    context = make_context(meta={"traceparent": f"00-{trace_id}-b7ad6b7169203331-01", "other": 3})
    await call(trace_calls(tool(greet)), "greet", name="Ada", context=context)
    assert format(context_of(one(spans)).trace_id, "032x") == trace_id


@pytest.mark.parametrize("header", ["garbage", "00-zz-zz-01", ""])
async def test_a_malformed_trace_header_is_no_reason_to_fail(spans: InMemorySpanExporter, header: str) -> None:
    context = make_context(meta={"traceparent": header})
    assert (await call(trace_calls(tool(greet)), "greet", name="Ada", context=context)).success
    assert one(spans).parent is None


async def test_a_returned_failure_is_told_by_its_code_alone(spans: InMemorySpanExporter) -> None:
    async def fail() -> Result[str]:
        return Result.failure("ada's password is hunter2", code=ErrorCode.STATE_CONFLICT)

    await call(trace_calls(tool(fail)), "fail")
    span = one(spans)
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "STATE_CONFLICT")
    assert (span.attributes or {})["error.type"] == "tool_error"
    assert "hunter2" not in span.to_json()


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [(ToolError("hunter2"), "tool_error", "TOOL_FAILED"), (ValueError("hunter2"), "ValueError", "ValueError")],
)
async def test_a_raised_error_is_told_without_its_text(
    spans: InMemorySpanExporter, error: Exception, kind: str, code: str
) -> None:
    async def fail() -> None:
        raise error

    await call(trace_calls(tool(fail)), "fail")
    attributes = one(spans).attributes or {}
    assert (attributes["error.type"], attributes["trysquare.error.code"]) == (kind, code)
    assert "hunter2" not in one(spans).to_json()


async def test_a_question_to_the_person_is_no_error(spans: InMemorySpanExporter) -> None:
    async def ask() -> None:
        raise InputRequired({})

    with pytest.raises(InputRequired):
        await trace_calls(tool(ask)).call({}, CallContext())
    assert one(spans).status.status_code is StatusCode.UNSET


def test_without_a_provider_nothing_of_opentelemetry_is_imported() -> None:
    script = """
import asyncio, sys
from trysquare import tool, CallContext
from trysquare.middleware.tracing import trace_calls
async def greet() -> str:
    return "hello"
print(asyncio.run(trace_calls(tool(greet)).call({}, CallContext())).value)
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("hello\n", "")


async def test_an_imported_api_without_a_provider_makes_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise AssertionError("no span may be begun")

    monkeypatch.setattr(trace, "_TRACER_PROVIDER", trace.ProxyTracerProvider())
    monkeypatch.setattr(trace, "get_tracer", refuse)
    assert (await call(trace_calls(tool(greet)), "greet", name="Ada")).success
