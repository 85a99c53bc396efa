"""The client, over every transport and in both eras of the protocol: what a script sees of a server."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.client.sample import tools
from trysquare import Answer, Client, ErrorCode, Image, ToolError
from trysquare.client import ElicitRequest, LogMessage, Progress, Visit

SAMPLE = Path(__file__).with_name("sample.py")
VERSIONS = ("2025-11-25", "2026-07-28")
TRANSPORTS = ("memory", "stdio", "http")


@contextmanager
def serving() -> Generator[str]:
    command = [sys.executable, str(SAMPLE), "--http"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(word for line in process.stderr for word in line.split() if word.startswith("http://"))
        finally:
            process.terminate()
            process.wait(timeout=30)


@asynccontextmanager
async def client_over(transport: str, version: str, **options: Any) -> AsyncGenerator[Client]:
    if transport == "memory":
        async with Client(tools, protocol_version=version, **options) as client:
            yield client
    elif transport == "stdio":
        async with Client.stdio([sys.executable, str(SAMPLE)], protocol_version=version, **options) as client:
            yield client
    else:
        with serving() as address:
            async with Client(address, protocol_version=version, **options) as client:
                yield client


def answer(question: ElicitRequest | Visit) -> dict[str, Any]:
    return {"approve": True} if question.message.startswith("Wipe") else {"colour": "red"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_call_that_the_server_runs_as_a_task_returns_its_result(version: str, tmp_path: Path) -> None:
    command = [sys.executable, str(SAMPLE)]
    async with Client.stdio(command, cwd=tmp_path, protocol_version=version, elicitation_handler=answer) as client:
        assert (await client.call_tool("bake", {"what": "bread"})).data == "red bread"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_client_does_everything_that_a_server_offers(transport: str, version: str, tmp_path: Path) -> None:
    logs: list[LogMessage] = []
    steps: list[Progress] = []
    async with client_over(
        transport,
        version,
        elicitation_handler=answer,
        sampling_handler=lambda request: f"said {request.prompt}",
        roots=[tmp_path],
        log_handler=logs.append,
    ) as client:
        info = client.server_info
        assert (info.version, info.name, info.instructions) == (version, "sample", "Use it in tests.")
        assert [tool.name for tool in await client.list_tools()][:3] == ["add", "weather", "count"]
        assert (await client.call_tool("weather", {"city": "Oslo"})).data == {"city": "Oslo", "sky": "clear"}
        assert (await client.call_tool("count", {"to": 3}, progress_handler=steps.append)).text == "done"
        assert steps == [Progress(done=at, total=3, message=f"at {at}") for at in range(3)]
        assert [(log.level, log.data) for log in logs] == [("warning", "counted")]
        assert (await client.call_tool("wipe", {"what": "it"})).text == "wiped it"
        assert (await client.call_tool("paint")).text == "accept red"
        assert (await client.call_tool("consult")).text == f"said Well? in {tmp_path.as_uri()}"
        assert (await client.call_tool("picture")).content == (Image(data="iVBORw0KGgo=", mime_type="image/png"),)
        assert [prompt.name for prompt in await client.list_prompts()] == ["hello"]
        assert (await client.get_prompt("hello", {"name": "Ada"})).text == "Greet Ada."
        assert (await client.complete("name", "A", prompt="hello")).values == ("Ada", "Alan")
        assert "note:///all" in [resource.uri for resource in await client.list_resources()]
        assert "note://{topic}" in [template.uri for template in await client.list_resource_templates()]
        assert (await client.read_resource("note://tea")).text == "About tea."
        await client.ping()


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_failed_call_raises_or_is_a_result_with_its_code(version: str) -> None:
    async with client_over("memory", version) as client:
        failed = await client.call_tool("fail", raise_on_error=False)
        assert (failed.is_error, failed.code, failed.instruction) == (True, "TOOL_FAILED", "Leave it.")
        assert failed.next == {"tool": "add", "arguments": {"a": 1}}
        with pytest.raises(ToolError) as raised:
            await client.call_tool("add", {"a": "one"})
        assert raised.value.code.startswith("VALIDATION_")
        with pytest.raises(ToolError) as raised:
            await client.call_tool("ad", {})
        assert raised.value.code == ErrorCode.TOOL_NOT_FOUND
        assert (await client.call_tool("ad", raise_on_error=False)).code == "TOOL_NOT_FOUND"
        for wrong in ([1], "a", [["a", 1]], 5):
            with pytest.raises(ToolError) as raised:
                await client.call_tool("add", cast(Any, wrong))
            assert raised.value.code == ErrorCode.VALIDATION_INVALID_REQUEST
        with pytest.raises(ToolError) as raised:
            await client.read_resource("nothing://here")
        assert raised.value.code == ErrorCode.RESOURCE_NOT_FOUND


@pytest.mark.parametrize("version", VERSIONS)
async def test_consent_is_asked_for_and_without_a_handler_refused(version: str) -> None:
    async with client_over("memory", version) as client:
        assert (await client.call_tool("wipe", {"what": "it"}, raise_on_error=False)).code == "CONSENT_REQUIRED"
    async with client_over("memory", version, elicitation_handler=lambda question: None) as client:
        assert (await client.call_tool("wipe", {"what": "it"}, raise_on_error=False)).code == "CONSENT_REFUSED"
    async with client_over("memory", version, elicitation_handler=lambda question: Answer(action="cancel")) as client:
        assert (await client.call_tool("paint")).text == "cancel"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_call_can_be_cancelled_or_run_out_of_time_and_the_next_one_works(transport: str, version: str) -> None:
    async with client_over(transport, version) as client:
        began = asyncio.Event()
        call = asyncio.ensure_future(client.call_tool("hang", progress_handler=lambda step: began.set()))
        await began.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        with pytest.raises(ToolError) as raised:
            await client.call_tool("hang", timeout=0.05)
        assert raised.value.code == ErrorCode.TOOL_TIMEOUT
        assert (await client.call_tool("add", {"a": 1})).data == 2


async def test_a_file_is_started_and_a_server_that_cannot_be_reached_says_why(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        'from trysquare import Tools\ntools = Tools("own")\n\n\n@tools.tool\ndef one() -> int:\n    return 1\n',
        encoding="utf-8",
    )
    async with Client("own.py", cwd=tmp_path) as client:
        assert (client.server_info.name, (await client.call_tool("one")).data) == ("own", 1)
    for server, reason in (
        (Client("wrong.py", cwd=tmp_path), "wrong.py: The server exited with status 2"),
        (Client.stdio(["no-such-command"]), "was not found"),
        (Client("http://127.0.0.1:9/mcp"), "Cannot connect"),
    ):
        with pytest.raises(ToolError, match=reason) as raised:
            await server.__aenter__()
        assert raised.value.code == ErrorCode.UPSTREAM_UNAVAILABLE


async def test_a_token_is_sent_and_a_missing_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRYSQUARE_HTTP_TOKENS", "secret-of-the-server")
    with serving() as address:
        with pytest.raises(ToolError, match="requires a login") as raised:
            await Client(address).__aenter__()
        assert "bearer" in str(raised.value.instruction)
        async with Client(address, bearer="secret-of-the-server") as client:
            assert (await client.call_tool("add", {"a": 1})).data == 2


async def test_a_server_that_dies_fails_the_call_and_not_the_program(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(
        "import os\nfrom trysquare import Tools\ntools = Tools()\n@tools.tool\ndef die() -> str:\n    os._exit(7)\n",
        encoding="utf-8",
    )
    async with Client("dying.py", cwd=tmp_path) as client:
        with pytest.raises(ToolError, match="status 7"):
            await client.call_tool("die")


async def test_a_client_that_is_not_connected_says_how_to_connect() -> None:
    client = Client(tools)
    with pytest.raises(RuntimeError, match="async with"):
        await client.list_tools()
    async with client:
        assert (await client.call_tool("add", {"a": 1})).data == 2
    async with client:
        assert (await client.call_tool("add", {"a": 2})).data == 3


async def test_tools_in_memory_can_be_served_with_the_settings_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "trysquare.toml").write_text('prefix = "my"\ntools = ["not.there"]\n', encoding="utf-8")
    async with Client(tools, project=tmp_path) as client:
        assert (await client.call_tool("my_add", {"a": 1})).data == 2
