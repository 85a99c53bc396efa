"""What a tool raises never ends the server; cancellation, Ctrl-C and questions still pass."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.server.clients import served_http
from tests.support import about
from trysquare import Declarations, ErrorCode, ToolError, call_tool
from trysquare.core.call import guard_crash
from trysquare.core.errors import InputRequired
from trysquare.testing import call


class Odd(BaseException):
    """An exception that `except Exception` does not see."""


KINDS: list[Callable[[], BaseException]] = [
    KeyboardInterrupt,
    GeneratorExit,
    SystemExit,
    asyncio.CancelledError,
    lambda: Odd("odd"),
    lambda: BaseExceptionGroup("some", [KeyboardInterrupt(), Odd()]),
    lambda: StopIteration(1),
    lambda: StopAsyncIteration(1),
]


@pytest.fixture
def raising_tools() -> Declarations:
    """Two tools, one of each kind, that raise what their module's list holds at a number."""
    own = Declarations()

    @own.declare
    def from_thread(number: int) -> None:
        raise KINDS[number]()

    @own.declare
    async def on_loop(number: int) -> None:
        raise KINDS[number]()

    @own.declare
    async def in_group() -> None:
        async def ask() -> None:
            raise InputRequired({"answer": "?"})

        async with asyncio.TaskGroup() as group:
            group.create_task(ask())

    return own


@pytest.fixture(autouse=True)
def _a_handler_of_our_own() -> Any:  # pyright: ignore[reportUnusedFunction]
    """As in a served process: Ctrl-C is handled by the event loop, not by Python's own handler."""

    def on_sigint(signum: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_sigint)
    yield on_sigint
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", ["from_thread", "on_loop"])
@pytest.mark.parametrize("number", range(len(KINDS)))
async def test_whatever_a_tool_raises_is_a_crash_of_that_tool(
    raising_tools: Declarations, name: str, number: int
) -> None:
    result = await call(raising_tools, name, number=number)
    assert result.code is ErrorCode.INTERNAL_ERROR


@pytest.mark.parametrize("kind", KINDS)
async def test_whatever_a_prompt_or_resource_raises_is_its_own_crash(kind: Callable[[], BaseException]) -> None:
    async def work() -> None:
        raise kind()

    with pytest.raises(ToolError) as told:
        await guard_crash("Prompt x", work())
    assert told.value.code is ErrorCode.INTERNAL_ERROR


async def test_a_question_in_a_task_group_is_still_a_question(raising_tools: Declarations) -> None:
    with pytest.raises(InputRequired):
        await call(raising_tools, "in_group")


async def test_a_call_that_is_cancelled_or_closed_ends() -> None:
    own, started = Declarations(), asyncio.Event()

    @own.declare
    async def wait() -> None:
        started.set()
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait())

    work = asyncio.ensure_future(call_tool(own.toolset(), "wait"))
    await started.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


def test_a_call_whose_loop_has_gone_is_closed_without_a_crash(caplog: pytest.LogCaptureFixture) -> None:
    own = Declarations()

    @own.declare
    async def wait() -> None:
        await asyncio.Event().wait()

    async def begin() -> Any:
        work = call_tool(own.toolset(), "wait")
        work.send(None)
        return work

    work = asyncio.run(begin())
    work.close()
    assert caplog.records == []


async def test_ctrl_c_is_not_taken_for_a_crash() -> None:
    own = Declarations()

    @own.declare
    async def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        await call(own, "interrupted")


SERVED = """
import asyncio
from trysquare import Declarations
tools = Declarations()
class Odd(BaseException): pass
RAISED = {"keyboard": KeyboardInterrupt, "generator": GeneratorExit, "exit": SystemExit, "odd": Odd,
          "cancel": asyncio.CancelledError}
@tools.declare
def plain(kind: str) -> str:
    '''Raise in a thread.'''
    raise RAISED[kind]()
@tools.declare
async def loop(kind: str) -> str:
    '''Raise on the loop.'''
    raise RAISED[kind]()
@tools.prompt
async def asked(kind: str) -> str:
    '''Raise in a prompt.'''
    raise RAISED[kind]()
@tools.resource("x://one")
def read() -> str:
    '''Raise in a resource.'''
    raise KeyboardInterrupt
@tools.declare
async def echo(text: str) -> str:
    '''Give a text back.'''
    return text
@tools.declare
async def hang() -> str:
    '''Wait for ever.'''
    await asyncio.Event().wait()
    return ""
"""


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_over_stdio_lives_on(tmp_path: Any, mode: Any) -> None:
    (tmp_path / "raising.py").write_text(SERVED, encoding="utf-8")
    command = [sys.executable, "-m", "trysquare", "serve", "--project", str(tmp_path), "--tools", "raising:tools"]
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=tmp_path, env=dict(os.environ))
    with anyio.fail_after(60):
        async with Client(stdio_client(parameters), mode=mode) as client:
            for kind in ("keyboard", "generator", "exit", "odd", "cancel"):
                for name in ("plain", "loop"):
                    answer = await client.call_tool(name, {"kind": kind})
                    assert answer.is_error
                    assert about(answer)["code"] == "INTERNAL_ERROR"
                with pytest.raises(Exception, match="incident"):
                    await client.get_prompt("asked", {"kind": kind})
            with pytest.raises(Exception, match="incident"):
                await client.read_resource("x://one")
            assert not (await client.call_tool("echo", {"text": "a"})).is_error


async def test_a_server_over_http_lives_on(raising_tools: Declarations) -> None:
    async with served_http(raising_tools.toolset()) as url, Client(f"{url}/mcp") as client:
        for number in range(len(KINDS)):
            for name in ("from_thread", "on_loop"):
                answer = await client.call_tool(name, {"number": number})
                assert about(answer)["code"] == "INTERNAL_ERROR"


def test_ctrl_c_ends_a_server_over_stdio_while_a_call_hangs(tmp_path: Any) -> None:
    (tmp_path / "raising.py").write_text(SERVED, encoding="utf-8")
    command = [sys.executable, "-m", "trysquare", "serve", "--project", str(tmp_path), "--tools", "raising:tools"]
    served = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert served.stdin is not None
        assert served.stdout is not None
        about = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}'
        hello = f'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{about}}}\n'
        hang = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang","arguments":{}}}\n'
        echo = '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}\n'
        served.stdin.write(hello)
        served.stdin.flush()
        served.stdout.readline()
        served.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n' + hang + echo)
        served.stdin.flush()
        served.stdout.readline()
        served.send_signal(signal.SIGINT)
        served.wait(timeout=30)
    finally:
        served.kill()
        served.wait()
        for stream in (served.stdin, served.stdout):
            if stream is not None:
                stream.close()
