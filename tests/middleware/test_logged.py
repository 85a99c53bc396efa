"""logged: which line is written at which level, and what never stands in one."""

from __future__ import annotations

import asyncio
import logging

import pytest
from pydantic import SecretStr

from trysquare import CallContext, ErrorCode, Result, StaticToolset, ToolError, call_tool, tool
from trysquare.core.errors import ConsentNeeded, InputRequired
from trysquare.middleware.observability import TRACE, log_calls
from trysquare.testing import call


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(TRACE, logger="trysquare.tools")


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "trysquare.tools"]


async def greet(name: str) -> str:
    return f"Hello, {name}"


def greet_slowly(name: str) -> str:
    return f"Hello, {name}"


def test_trace_is_a_registered_level_below_debug() -> None:
    assert logging.getLevelName(TRACE) == "TRACE"
    assert TRACE < logging.DEBUG


async def test_an_async_tool_succeeds_at_trace(caplog: pytest.LogCaptureFixture) -> None:
    await call(log_calls(tool(greet)), "greet", name="Ada")
    assert lines(caplog) == [("TRACE", "Tool called: greet"), ("TRACE", "Tool greet completed successfully")]


async def test_a_sync_tool_succeeds_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    await call(log_calls(tool(greet_slowly)), "greet_slowly", name="Ada")
    assert lines(caplog)[-1] == ("DEBUG", "Tool greet_slowly completed successfully")


async def test_the_first_line_is_written_before_the_tool_runs(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[str, str]] = []

    async def look() -> None:
        seen.extend(lines(caplog))

    await call(log_calls(tool(look)), "look")
    assert seen == [("TRACE", "Tool called: look")]


async def test_a_raised_error_is_logged_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await log_calls(tool(fail)).call({}, CallContext())
    assert lines(caplog)[-1] == ("ERROR", "Tool fail failed: boom")


async def test_a_returned_failure_is_an_answer_and_no_error_of_the_server(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> Result[str]:
        return Result.failure("the secret recipe is gone", code=ErrorCode.STATE_CONFLICT)

    await call(log_calls(tool(fail)), "fail")
    assert lines(caplog)[-1] == ("INFO", "Tool fail returned a failure: STATE_CONFLICT")


@pytest.mark.parametrize("waiting", [InputRequired({}), ConsentNeeded("ask")])
async def test_waiting_for_a_person_is_no_failure(caplog: pytest.LogCaptureFixture, waiting: BaseException) -> None:
    async def ask() -> None:
        raise waiting

    with pytest.raises(type(waiting)):
        await log_calls(tool(ask)).call({}, CallContext())
    assert lines(caplog)[-1] == ("INFO", "Tool ask waits for the user")


async def test_a_cancelled_call_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(call_tool(StaticToolset([log_calls(tool(wait))]), "wait"))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert lines(caplog)[-1] == ("INFO", "Tool wait was cancelled")


def login(user: str, password: SecretStr, api_key: str = "") -> str:
    raise ToolError(f"{user} with {password.get_secret_value()!r} and {api_key} was refused")


@pytest.mark.parametrize("secret", ["hunter2", 'it\'s "quoted"\n', "ключ от двери", "x" * 5000])
async def test_values_of_secret_arguments_never_stand_in_a_line(caplog: pytest.LogCaptureFixture, secret: str) -> None:
    await call(log_calls(tool(login)), "login", user="ada", password=secret, api_key=secret)
    last = lines(caplog)[-1][1]
    assert secret not in last
    assert "***" in last
    assert secret[:12] not in last


async def test_a_secret_of_the_wrong_type_stays_out_of_the_argument_errors_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    await call(log_calls(tool(login)), "login", user="ada", password=["hunter2", {"old": "swordfish"}])
    last = lines(caplog)[-1][1]
    assert last.startswith("Tool login failed: `password`")
    assert "hunter2" not in last
    assert "swordfish" not in last


async def test_a_shortened_secret_is_recognised_too(caplog: pytest.LogCaptureFixture) -> None:
    async def fetch(auth: dict[str, str]) -> None:
        raise ToolError("refused: " + auth["token"][:20] + "…")

    await call(log_calls(tool(fetch)), "fetch", auth={"token": "abcdefghijklmnopqrstuvwxyz0123456789"})
    assert lines(caplog)[-1][1] == "Tool fetch failed: refused: ***…"


async def test_an_answer_is_what_the_tool_returned() -> None:
    assert (await call(log_calls(tool(greet)), "greet", name="Ada")).value == "Hello, Ada"
