"""The wrappers as a real MCP client meets them, in both eras of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from tests.in_process import in_process
from tests.support import about
from trysquare import CallContext, Consent, Result, StaticToolset, Tool, Toolset, tool
from trysquare.middleware import MiddlewareConfig, with_middleware
from trysquare.server import ServeOptions
from trysquare.store import StoredApprovals
from trysquare.store.database import open_database

ERAS = ("legacy", "2026-07-28")


@pytest.fixture
def approvals(tmp_path: Path) -> Iterator[StoredApprovals]:
    with closing(open_database(tmp_path / ".trysquare" / "state.db")) as database:
        yield StoredApprovals(database)


class Person:
    """Answers the question for consent, and remembers what was asked."""

    def __init__(self, action: str, **content: Any) -> None:
        self._result = types.ElicitResult.model_validate({"action": action, "content": content or None})
        self.asked: list[str] = []

    async def __call__(self, _context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params.message)
        return self._result


class Disk:
    def __init__(self) -> None:
        self.deleted: list[str] = []

    def toolset(self, approvals: StoredApprovals) -> Toolset:
        async def wipe(path: str) -> str:
            self.deleted.append(path)
            return "gone"

        made = tool(wipe, consent=Consent(question="Delete {path}?"))
        return with_middleware(StaticToolset([made]), MiddlewareConfig(prefix="disk", approvals=approvals))


def client_of(toolset: Toolset, era: str, options: ServeOptions | None = None, **callbacks: Any) -> Client:
    return Client(in_process(toolset, options or ServeOptions()), mode=era, **callbacks)


@pytest.mark.parametrize(("era", "how"), [("legacy", "elicitation"), ("2026-07-28", "input_required")])
async def test_a_person_is_asked_through_the_client_once_and_the_tool_runs_once(
    approvals: StoredApprovals, era: str, how: str
) -> None:
    disk, person = Disk(), Person("accept", approve=True)
    async with client_of(disk.toolset(approvals), era, elicitation_callback=person) as client:
        result = await client.call_tool("disk_wipe", {"path": "/tmp/a"})
    assert (result.is_error, disk.deleted) == (False, ["/tmp/a"])
    assert [question.partition("\n")[0] for question in person.asked] == ["Delete /tmp/a?"]
    [receipt] = approvals.receipts()
    assert (receipt.how, receipt.approved) == (how, True)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "person", [Person("accept", approve=False), Person("decline"), Person("cancel")], ids=["no", "decline", "cancel"]
)
async def test_a_person_who_does_not_agree_is_obeyed(approvals: StoredApprovals, era: str, person: Person) -> None:
    disk = Disk()
    async with client_of(disk.toolset(approvals), era, elicitation_callback=person) as client:
        result = await client.call_tool("disk_wipe", {"path": "/tmp/a"})
    assert (result.is_error, disk.deleted) == (True, [])
    assert about(result)["code"] == "CONSENT_REFUSED"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_gets_the_command_for_the_person(approvals: StoredApprovals, era: str) -> None:
    disk = Disk()
    async with client_of(disk.toolset(approvals), era) as client:
        refused = await client.call_tool("disk_wipe", {"path": "/tmp/a"})
        approval = about(refused)["approval"]
        assert approval["command"] == f"trysquare approve {approval['code']}"
        assert disk.deleted == []
        approvals.approve(approval["code"], by="ada")
        done = await client.call_tool("disk_wipe", {"path": "/tmp/a"})
    assert (done.is_error, disk.deleted) == (False, ["/tmp/a"])


@pytest.mark.parametrize("era", ERAS)
async def test_a_long_answer_is_read_to_its_end_by_cursor_and_by_resource(era: str) -> None:
    text = "".join(f"line {number}\n" for number in range(2000))

    async def report() -> str:
        return text

    toolset = with_middleware(StaticToolset([tool(report, result_limit=4000)]), MiddlewareConfig(prefix="a"))
    async with client_of(toolset, era) as client:
        long, reader = (await client.list_tools()).tools
        assert (long.input_schema["properties"], reader.name) == ({}, "a_read_more")
        answers = [(await client.call_tool("a_report", {})).structured_content or {}]
        while "next" in answers[-1]:
            following = answers[-1]["next"]
            answers.append((await client.call_tool(following["tool"], following["arguments"])).structured_content or {})
        handle = answers[0]["next"]["arguments"]["cursor"].partition(".")[0]
        addresses = [f"trysquare://results/{handle}.{number}" for number in range(1, len(answers) + 1)]
        pages = [(await client.read_resource(address)).contents[0] for address in addresses]
    assert "".join(answer["result"] for answer in answers) == text
    assert "".join(page.text for page in pages if isinstance(page, types.TextResourceContents)) == text


class Row(BaseModel):
    number: int
    note: str | None = None


class Report(BaseModel):
    title: str
    rows: list[Row]


ROWS = [Row(number=number) for number in range(400)]


@pytest.mark.parametrize("era", ERAS)
async def test_a_long_typed_answer_fits_its_schema_and_is_read_to_its_end(era: str) -> None:
    async def rows() -> list[Row]:
        return ROWS

    async def report() -> Report:
        return Report(title="All", rows=ROWS)

    async def numbers() -> dict[str, int]:
        return {f"number {row.number}": row.number for row in ROWS}

    made = [tool(function, result_limit=4000) for function in (rows, report, numbers)]
    async with client_of(with_middleware(StaticToolset(made), MiddlewareConfig()), era) as client:
        await client.list_tools()
        for name, path in (("rows", "result"), ("report", "rows"), ("numbers", None)):
            answer = await client.call_tool(name, {})
            link = answer.content[-1]
            assert isinstance(link, types.ResourceLink)
            assert (await client.read_resource(str(link.uri))).contents
            # Entries of which none may be a call are sent whole.
            seen = answer.structured_content or {}
            if path is None:
                assert (seen, about(answer)["page"]["structured"]) == (await numbers(), "whole")
                continue
            found = list(seen[path])
            while following := about(answer).get("next"):
                answer = await client.call_tool(following["tool"], following["arguments"])
                found += (answer.structured_content or {}).get(path, [])
            assert found == [row.model_dump() for row in ROWS]


@pytest.mark.parametrize("era", ERAS)
async def test_a_request_has_one_span(monkeypatch: pytest.MonkeyPatch, era: str) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    monkeypatch.setattr("mcp.shared._otel._tracer", provider.get_tracer("mcp-python-sdk"))

    async def greet() -> str:
        return "hello"

    toolset = with_middleware(StaticToolset([tool(greet)]), MiddlewareConfig())
    async with client_of(toolset, era) as client:
        await client.call_tool("greet", {})
    calls = [span for span in exporter.get_finished_spans() if "greet" in span.name]
    served = [span for span in calls if span.kind is trace.SpanKind.SERVER]
    assert [span.name for span in served] == ["tools/call greet"]
    assert (served[0].attributes or {})["trysquare.tool.toolset"] == "tools"
    assert [span.name for span in calls if span.kind is trace.SpanKind.INTERNAL] == []
    # In one process only the older era's client opens a span of its own; the trace goes on from there.
    sent = [span.get_span_context() for span in calls if span.kind is trace.SpanKind.CLIENT]
    assert [one.span_id for one in sent if one] == [one.span_id for one in [served[0].parent] if one]


@pytest.mark.parametrize("era", ERAS)
async def test_a_middleware_that_replaces_the_value_replaces_what_clients_read_of_it(era: str) -> None:
    async def count() -> int:
        return 1

    def doubled(inner: Tool) -> Tool:
        async def call(arguments: dict[str, Any], context: CallContext) -> Result[Any]:
            result = await inner.call(arguments, context)
            return replace(result, value=int(result.value or 0) + 1)

        return inner.wrapped(call)

    async with client_of(StaticToolset([doubled(tool(count))]), era) as client:
        assert (await client.call_tool("count", {})).structured_content == {"result": 2}
