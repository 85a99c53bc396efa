"""ExtMcpToolDecorator: the scenarios of the tool infrastructure's specification, one test each."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pydantic import Field

from trysquare import CallContext, Declarations, ExtMcpToolDecorator, Result, Tool, ToolArguments, call_tool
from trysquare.middleware import MiddlewareConfig, with_middleware
from trysquare.middleware.observability import TRACE
from trysquare.testing import call


class Greet(ToolArguments):
    name: str = Field(description="Who to greet")


async def greet(args: Greet) -> Result[str]:
    """Greet a person by name."""
    return Result.ok(f"Hello, {args.name}")


def greet_slowly(args: Greet) -> Result[str]:
    """Greet a person by name, in a thread."""
    return Result.ok(f"Hello, {args.name}")


async def fail(args: Greet) -> Result[str]:
    """Fail."""
    raise RuntimeError(f"no {args.name}")


def registered(function: Any = greet, *, prefix: str | None = None, **options: Any) -> Tool:
    declared = Declarations()
    ExtMcpToolDecorator(declared, prefix=prefix).tool(**options)(function)
    [made] = declared.toolset().tools()
    return made


class TestToolNameDecoration:
    def test_the_prefix_comes_from_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MCP_TOOL_PREFIX", "guide")
        assert registered().name == "guide_greet"

    def test_without_the_variable_there_is_no_prefix(self) -> None:
        assert registered().name == "greet"

    def test_a_given_prefix_stands_over_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MCP_TOOL_PREFIX", "guide")
        assert registered(prefix="mine").name == "mine_greet"

    def test_a_prefix_of_one_tool_stands_over_the_default(self) -> None:
        declared = Declarations()
        decorator = ExtMcpToolDecorator(declared, prefix="guide")
        decorator.tool(name="one", prefix="other")(greet)
        decorator.tool(name="two", prefix="")(greet)
        decorator.tool(name="three")(greet)
        assert [made.name for made in declared.toolset().tools()] == ["other_one", "two", "guide_three"]

    def test_serving_puts_no_second_prefix_before_a_registered_name(self) -> None:
        declared = Declarations()
        ExtMcpToolDecorator(declared, prefix="guide").tool()(greet)
        served = with_middleware(declared.toolset(), MiddlewareConfig(prefix="guide"))
        assert [made.name for made in served.tools()] == ["guide_greet", "guide_read_more"]

    def test_any_registrar_will_do(self) -> None:
        class Names:
            def __init__(self) -> None:
                self.taken: list[str] = []

            def add(self, made: Tool, /) -> None:
                self.taken.append(made.name)

        names = Names()
        ExtMcpToolDecorator(names, prefix="a_").tool(name="b")(greet)
        assert names.taken == ["a_b"]


class TestAutomaticToolLogging:
    @pytest.fixture(autouse=True)
    def all_levels(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(TRACE, logger="trysquare.tools")

    async def test_a_call_is_logged_at_trace_before_the_tool_runs(self, caplog: pytest.LogCaptureFixture) -> None:
        before: list[str] = []

        async def look(args: Greet) -> str:
            before.extend(caplog.messages)
            return "looked"

        await call(registered(look, prefix="guide"), "guide_look", name="Ada")
        assert before == ["Tool called: guide_look"]
        assert caplog.records[0].levelno == TRACE

    async def test_an_async_tool_succeeds_at_trace(self, caplog: pytest.LogCaptureFixture) -> None:
        await call(registered(), "greet", name="Ada")
        last = caplog.records[-1]
        assert (last.levelname, last.getMessage()) == ("TRACE", "Tool greet completed successfully")

    async def test_a_sync_tool_succeeds_at_debug(self, caplog: pytest.LogCaptureFixture) -> None:
        await call(registered(greet_slowly), "greet_slowly", name="Ada")
        last = caplog.records[-1]
        assert (last.levelno, last.getMessage()) == (logging.DEBUG, "Tool greet_slowly completed successfully")

    async def test_a_failure_is_an_error_and_raised_again(self, caplog: pytest.LogCaptureFixture) -> None:
        with pytest.raises(RuntimeError, match="no Ada"):
            await registered(fail).call({"name": "Ada"}, CallContext())
        last = caplog.records[-1]
        assert (last.levelno, last.getMessage()) == (logging.ERROR, "Tool fail failed: no Ada")


class TestToolIntegrationPattern:
    async def test_declared_functions_are_registered_with_their_built_descriptions(self) -> None:
        @ToolArguments.declare
        async def greet_person(args: Greet) -> Result[str]:
            """Greet a person by name."""
            return Result.ok(f"Hello, {args.name}")

        declared = Declarations()
        decorator = ExtMcpToolDecorator(declared, prefix="guide")
        for name, function in ToolArguments.get_declared_tools().items():
            decorator.tool(name=name, description=Greet.build_tool_description(function))(function)
        toolset = declared.toolset()
        [made] = toolset.tools()
        assert made.name == "guide_greet_person"
        assert made.description.startswith("Greet a person by name.")
        assert "`name` (string, required): Who to greet" in made.description
        assert (await call_tool(toolset, "guide_greet_person", {"name": "Ada"})).value == "Hello, Ada"

    def test_a_second_collection_registers_nothing_twice(self) -> None:
        @ToolArguments.declare
        async def once(args: Greet) -> None: ...

        assert list(ToolArguments.get_declared_tools()) == ["once"]
        assert ToolArguments.get_declared_tools() == {}

    def test_the_function_is_returned_unchanged(self) -> None:
        assert ExtMcpToolDecorator(Declarations()).tool()(greet) is greet
