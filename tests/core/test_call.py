"""call_tool: the one way in. Whatever happens inside, a result comes out."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import re
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, SecretStr

from tests.support import quoted_names
from trysquare import CallContext, Declarations, ErrorCode, Result, StaticToolset, ToolError, call_tool
from trysquare.core.call import guard_crash
from trysquare.core.errors import InputRequired
from trysquare.testing import call, make_context

tools = Declarations()


@tools.declare
async def greet(name: str) -> str:
    return f"Hello, {name}"


@tools.declare
async def refuse(kind: str) -> None:
    raise ToolError("Not today.", code=ErrorCode.STATE_CONFLICT, instruction="Come back tomorrow.")


class Surprise(RuntimeError):
    pass


async def crash_async() -> None:
    raise Surprise("the secret password is hunter2")


def crash_sync() -> None:
    raise Surprise("the secret password is hunter2")


async def exit_async() -> None:
    raise SystemExit(3)


def exit_sync() -> None:
    raise SystemExit(3)


def stop_iteration() -> None:
    raise StopIteration


async def cancel_itself() -> None:
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


for function in (crash_async, crash_sync, exit_async, exit_sync, stop_iteration, cancel_itself):
    tools.declare(function)


async def test_a_call_finds_the_tool_and_returns_its_result() -> None:
    assert (await call_tool(tools.toolset(), "greet", {"name": "Ada"})).value == "Hello, Ada"


async def test_a_tool_without_arguments_may_be_called_without_any() -> None:
    own = Declarations()

    @own.declare
    async def ping() -> str:
        return "pong"

    assert (await call_tool(own.toolset(), "ping")).value == "pong"
    assert (await call_tool(own.toolset(), "ping", None, CallContext())).value == "pong"


async def test_a_foreseen_failure_is_told_to_the_model_and_logged_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "trysquare.call")
    result = await call(tools, "refuse", kind="secret value")
    assert result.to_json() == snapshot(
        {
            "success": False,
            "error": {"code": "STATE_CONFLICT", "message": "Not today."},
            "error_type": "state_conflict",
            "instruction": "Come back tomorrow.",
        }
    )
    [record] = caplog.records
    assert (record.levelname, record.getMessage(), record.exc_info) == ("DEBUG", "refuse: STATE_CONFLICT", None)


@pytest.mark.parametrize(
    "name", ["crash_async", "crash_sync", "exit_async", "exit_sync", "stop_iteration", "cancel_itself"]
)
async def test_a_crash_is_told_by_an_incident_id_alone_and_the_log_has_the_rest(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = await call(tools, name)
    told = result.to_json_str() + result.to_text()
    assert "hunter2" not in told
    assert "Traceback" not in told
    assert (result.code, result.error_type) == (ErrorCode.INTERNAL_ERROR, "crash")
    assert result.error
    found = re.search(r"\(incident ([0-9a-f]{8})\)", result.error)
    assert found
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert name in record.getMessage()
    assert found[1] in record.getMessage()
    assert record.exc_info
    assert (await call(tools, "greet", name="Ada")).value == "Hello, Ada"


async def test_an_unknown_tool_is_told_with_the_nearest_names() -> None:
    result = await call(tools, "gret")
    assert (result.code, result.error_type) == (ErrorCode.TOOL_NOT_FOUND, "tool_not_found")
    assert quoted_names(result.error) == ["gret", "greet"]
    assert result.next == {"tool": "greet", "arguments": {}}
    assert (await call(tools, "gret", name="Ada")).next == {"tool": "greet", "arguments": {"name": "Ada"}}
    assert (await call(tools, "gret", name="A" * 5_000)).next is None
    assert (await call(tools, "nothing like it")).next is None


@pytest.mark.parametrize("name", ["", "x" * 1_000_000, "\ud800", "a\nb"])
async def test_an_unknown_name_of_any_kind_gets_a_short_answer(name: str) -> None:
    result = await call(tools, name)
    assert result.code is ErrorCode.TOOL_NOT_FOUND
    assert len(result.to_json_str().encode()) < 400


async def test_a_tool_beyond_the_scopes_of_a_principal_does_not_exist_for_it() -> None:
    own = Declarations()

    @own.declare(toolset="bots")
    async def build() -> str:
        return "built"

    allowed, refused = make_context(scopes=["bots"]), make_context(scopes=["guide"])
    assert (await call(own, "build", context=allowed)).value == "built"
    result = await call(own, "build", context=refused)
    assert result.error == "Unknown tool `build`."


async def test_a_call_does_not_list_the_tools() -> None:
    class Unlistable(StaticToolset):
        def tools(self) -> Any:
            raise AssertionError("listed")

    assert (await call(Unlistable(tools.toolset().tools()), "greet", name="Ada")).success


async def test_a_question_passes_through_as_it_is() -> None:
    own = Declarations()

    @own.declare
    async def ask_again() -> None:
        raise InputRequired({"answer": "?"})

    @own.declare
    def ask_again_from_a_thread() -> None:
        raise InputRequired({"answer": "?"})

    for name in ("ask_again", "ask_again_from_a_thread"):
        with pytest.raises(InputRequired):
            await call(own, name)


async def test_deep_and_long_arguments_pass_to_tools_that_take_them() -> None:
    own = Declarations()

    @own.declare
    async def size(thing: Any) -> int:
        return len(thing)

    @own.declare
    async def echo(thing: Any) -> Any:
        return thing

    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert (await call(own, "size", thing="x" * 10_000_000)).value == 10_000_000
    assert (await call(own, "size", thing=deep)).value == 1
    (await call(own, "echo", thing=deep)).to_json_str().encode()
    (await call(own, "echo", thing="\ud800")).to_json_str().encode()


async def returning(value: Any) -> Any:
    return value


async def raising(error: BaseException) -> Any:
    raise error


async def test_prompts_and_resources_crash_behind_the_same_wall(caplog: pytest.LogCaptureFixture) -> None:
    assert await guard_crash("Prompt x", returning(3)) == 3
    with pytest.raises(ToolError, match="gone"):
        await guard_crash("Prompt x", raising(ToolError("gone")))
    assert caplog.records == []
    for error in (Surprise("hunter2"), SystemExit(1), asyncio.CancelledError()):
        with pytest.raises(ToolError, match=r"^Prompt x .*\(incident [0-9a-f]{8}\)") as told:
            await guard_crash("Prompt x", raising(error))
        assert told.value.code is ErrorCode.INTERNAL_ERROR
        assert "hunter2" not in told.value.message


async def test_a_result_is_returned_as_the_tool_made_it() -> None:
    own = Declarations()
    made = Result.ok(1, fields={"status": "open"})

    @own.declare
    async def status() -> Result[int]:
        return made

    assert await call(own, "status") == dataclasses.replace(made, structured={"result": 1})


class Login(BaseModel):
    user: str
    password: SecretStr


async def test_a_crash_is_logged_without_the_values_of_secret_arguments(caplog: pytest.LogCaptureFixture) -> None:
    own = Declarations()

    @own.declare
    def connect(api_key: str, logins: list[Login]) -> None:
        try:
            raise ValueError(f"bad key {api_key!r}")
        except ValueError as error:
            raise Surprise(f"{logins[0].password.get_secret_value()} for {logins[0].user}") from error

    arguments = {"api_key": 'quoted "key"', "logins": [{"user": "ada", "password": "hunter2"}]}
    result = await call(own, "connect", arguments)
    assert result.code is ErrorCode.INTERNAL_ERROR
    assert "Traceback" in caplog.text
    assert "Surprise" in caplog.text
    assert "for ada" in caplog.text
    assert "hunter2" not in caplog.text
    assert 'quoted "key"' not in caplog.text
    [record] = caplog.records
    assert record.exc_info is None, "a handler would write the exception's own text"


async def test_a_prompts_crash_is_logged_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ToolError):
        await guard_crash("Prompt x", raising(Surprise("token hunter2")), arguments={"token": "hunter2"})
    assert "Surprise" in caplog.text
    assert "hunter2" not in caplog.text
