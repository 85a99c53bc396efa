"""MiddlewareToolset, and the order and composition of the layers."""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trysquare import (
    CallContext,
    CombinedToolset,
    Consent,
    DeclarationError,
    Declarations,
    DynamicToolset,
    ErrorCode,
    Result,
    StaticToolset,
    Tool,
    ToolError,
    tool,
)
from trysquare.middleware import MiddlewareConfig, MiddlewareToolset, internal_toolset, with_middleware
from trysquare.middleware.observability import TRACE, CallMetrics
from trysquare.middleware.stack import layers
from trysquare.testing import call, make_context


async def greet(name: str) -> Result[str]:
    return Result.ok(f"Hello, {name}", next={"tool": "wave", "arguments": {}})


async def wave() -> str:
    return "o/"


def made(*functions: Callable[..., Any], **options: Any) -> StaticToolset:
    return StaticToolset([tool(function, **options) for function in functions])


def test_a_tool_is_wrapped_when_it_is_first_needed_and_then_kept() -> None:
    wrapped: list[str] = []

    def wrap(inner: Tool) -> Tool:
        wrapped.append(inner.name)
        return inner.with_call(inner.call)

    toolset = MiddlewareToolset(StaticToolset([tool(wave, name=f"wave_{number}") for number in range(100)]), wrap)
    assert wrapped == []
    assert toolset.find("wave_7") is toolset.find("wave_7")
    assert wrapped == ["wave_7"]
    assert toolset.tools()[7] is toolset.find("wave_7")
    assert len(wrapped) == 100


def test_each_module_with_a_layer_is_found_in_its_order() -> None:
    modules = [layer.wrap.__module__.rpartition(".")[2] for layer in layers()]
    assert modules == ["tracing", "observability", "prefix", "pagination", "approvals"]


async def test_only_the_layers_that_apply_to_a_tool_are_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def where() -> list[str]:
        return [
            Path(frame.filename).stem
            for frame in traceback.extract_stack()
            if re.search("middleware|prefix", frame.filename)
        ]

    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    plain = (await call(with_middleware(made(where, result_limit=None), MiddlewareConfig()), "where")).value
    assert set(plain or ()) == {"observability", "test_wrapped"}
    config = MiddlewareConfig(prefix="x", meter=CallMetrics())
    full = (await call(with_middleware(made(where), config), "x_where")).value
    assert {"pagination", "prefix"} <= set(full or ())


def test_a_tool_of_a_changed_set_is_found_without_searching_the_sets_inside() -> None:
    class Unsearchable(DynamicToolset):
        def find(self, name: str) -> Tool | None:
            raise AssertionError("searched")

    inner = Unsearchable([tool(greet)])
    toolset = with_middleware(CombinedToolset([inner, made(wave)]), MiddlewareConfig())
    assert toolset.find("greet") is not None
    inner.replace(tools=[tool(greet, name="welcome")])
    assert toolset.find("welcome") is not None
    assert toolset.find("wave") is not None


def test_an_unknown_name_is_not_found() -> None:
    toolset = with_middleware(made(greet), MiddlewareConfig(prefix="guide"))
    assert toolset.find("nothing") is None
    assert toolset.find("greet") is None, "whoever serves under a prefix serves no second name"


def test_names_that_collide_through_prefixes_are_refused_when_the_set_is_built() -> None:
    tools = StaticToolset([tool(wave, name="guide_wave", prefix=""), tool(wave)])
    with pytest.raises(DeclarationError, match="`guide_wave`"):
        with_middleware(tools, MiddlewareConfig(prefix="guide"))


def test_changes_of_the_set_inside_are_seen_and_told() -> None:
    inner = DynamicToolset([tool(greet)])
    toolset = with_middleware(inner, MiddlewareConfig(prefix="guide"))
    told: list[str] = []
    end = toolset.subscribe(told.append)
    assert toolset.find("guide_wave") is None
    inner.replace(tools=[tool(wave)])
    assert toolset.find("guide_wave") is not None
    assert toolset.find("guide_greet") is None
    assert told == ["tools"]
    end()
    inner.replace(tools=[])
    assert told == ["tools"]


def test_a_collision_that_a_change_brings_leaves_the_other_tools_reachable(caplog: pytest.LogCaptureFixture) -> None:
    inner = DynamicToolset([tool(greet)])
    toolset = with_middleware(inner, MiddlewareConfig(prefix="guide"))
    inner.replace(tools=[tool(wave), tool(wave, name="guide_wave", prefix=""), tool(greet)])
    assert toolset.find("guide_greet") is not None
    assert "Two tools are now called guide_wave" in caplog.text


def test_prompts_and_resources_pass_through_and_pages_are_added() -> None:
    declared = Declarations()
    declared.declare(wave)

    @declared.prompt()
    def ask() -> str:
        return "?"

    @declared.resource("memo://a")
    def memo() -> str:
        return "a"

    @declared.resource("memo://{name}/b")
    def template(name: str) -> str:
        return name

    toolset = with_middleware(declared.toolset(), MiddlewareConfig(prefix="x"))
    assert [prompt.name for prompt in toolset.prompts()] == ["ask"]
    assert toolset.find_prompt("ask") is not None
    assert [resource.uri for resource in toolset.resources()] == ["memo://a"]
    assert [one.uri_template for one in toolset.templates()] == ["memo://{name}/b", "trysquare://results/{handle}"]
    assert toolset.find_resource("memo://z/b") is not None
    assert toolset.find_resource("trysquare://results/abc") is not None


async def test_a_listed_tool_and_a_found_one_are_called_alike() -> None:
    toolset = with_middleware(made(greet, wave), MiddlewareConfig(prefix="guide"))
    listed = next(one for one in toolset.tools() if one.name == "guide_greet")
    for result in (
        await listed.call({"name": "Ada"}, CallContext()),
        await call(toolset, "guide_greet", name="Ada"),
    ):
        assert (result.value, result.next) == ("Hello, Ada", {"tool": "guide_wave", "arguments": {}})


async def test_the_log_and_the_meter_know_the_final_name(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(TRACE, logger="trysquare.tools")
    meter = CallMetrics()
    await call(with_middleware(made(wave), MiddlewareConfig(prefix="guide", meter=meter)), "guide_wave")
    assert caplog.messages == ["Tool called: guide_wave", "Tool guide_wave completed successfully"]
    assert [times.tool for times in meter.times()] == ["guide_wave"]


async def test_paging_asks_nobody_and_runs_nothing_since_limited_is_outside_consented() -> None:
    async def report(size: int) -> str:
        return "x" * size

    class Agreed:
        asked = 0

        def decide(self, request: Any, *, open_code: bool) -> Any:
            self.asked += 1
            from trysquare.core.approvals import ConsentDecision

            return ConsentDecision(state="approved")

        def ticket(self, *, continued: bool = False) -> str:
            raise AssertionError("nobody was asked through the client")

        def answer(self, request: Any, **more: Any) -> bool:
            raise AssertionError("nobody was asked through the client")

    approvals = Agreed()
    tools = made(report, consent=Consent(question="Report?"), result_limit=400)
    toolset, context = with_middleware(tools, MiddlewareConfig(prefix="a", approvals=approvals)), make_context()
    first = await call(toolset, "a_report", size=2000, context=context)
    assert first.next is not None
    second = await call(toolset, first.next["tool"], first.next["arguments"], context=context)
    assert ((second.page or {})["number"], approvals.asked) == (2, 1)


async def test_prompts_call_tools_limited_and_consented_and_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(TRACE, logger="trysquare.tools")

    async def long() -> str:
        return "x" * 2000

    async def wipe() -> str:
        raise AssertionError("nobody agreed")

    meter = CallMetrics()
    tools = StaticToolset([tool(long, result_limit=400), tool(wipe, consent=Consent(question="Wipe?"))])
    toolset = internal_toolset(tools, MiddlewareConfig(prefix="guide", meter=meter))
    assert ((await call(toolset, "long")).page or {})["of"] > 1
    assert (await call(toolset, "wipe")).code == ErrorCode.CONSENT_REQUIRED
    assert (caplog.messages, meter.times()) == ([], [])


async def test_a_failure_is_logged_once_under_the_final_name_and_reaches_the_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "trysquare")

    async def fail() -> None:
        raise ToolError("no such thing")

    result = await call(with_middleware(made(fail), MiddlewareConfig(prefix="a")), "a_fail")
    assert (result.error, caplog.messages) == ("no such thing", ["Tool a_fail failed: no such thing"])
    assert caplog.records[0].levelno == logging.INFO


async def test_a_crash_is_logged_once_with_its_incident(caplog: pytest.LogCaptureFixture) -> None:
    raised = ValueError("boom")

    async def fail() -> None:
        raise raised

    toolset = with_middleware(made(fail), MiddlewareConfig(prefix="a"))
    for _ in range(2):
        caplog.clear()
        result = await call(toolset, "a_fail")
        (record,) = caplog.records
        assert (record.levelno, record.getMessage()) == (logging.ERROR, "Tool a_fail failed: boom")
        (incident,) = re.findall(r"incident ([0-9a-f]{8})", result.error or "")
        assert incident in caplog.text
