"""Whatever bytes come in over stdio, the server answers the next good call and writes nothing but JSON."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random

import pytest

from tests.e2e.stdio_process import StdioProcess, started_process
from tests.fuzz.frames import modern_meta, random_frame
from tests.fuzz.properties import parsed_strictly, require_no_traceback, unexplained_tracebacks
from tests.fuzz.shares import share
from tests.support import size
from trysquare.core.json import JsonObject

pytestmark = pytest.mark.timeout(size(120, 1800))

BATCH = 50
ERAS = ("2025-11-25", "2026-07-28")
SERVER = (str(Path(sys.executable).parent / "trysquare"), "serve", "--tools", "tests.fuzz.toolset:tools")


@pytest.fixture(params=ERAS)
async def server(request: pytest.FixtureRequest) -> AsyncGenerator[tuple[StdioProcess, str]]:
    """A server that has chosen its era, and what it must not have done in the end."""
    async with started_process(SERVER) as process:
        await _greet(process, request.param)
        yield process, request.param
        assert await process.close() == 0
    assert process.faults == []
    for line in process.lines:
        parsed_strictly(line)
        require_no_traceback(line.decode("utf-8"))
    assert unexplained_tracebacks(process.stderr.decode("utf-8", "replace")) == []


async def _greet(process: StdioProcess, era: str) -> None:
    if era == "2026-07-28":
        answer = await process.ask("server/discover", {"_meta": modern_meta()}, "greeting")
    else:
        client = {"name": "fuzz", "version": "1"}
        params: JsonObject = {"protocolVersion": era, "capabilities": {}, "clientInfo": client}
        answer = await process.ask("initialize", params, "greeting")
        await process.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert "result" in answer


async def _require_good_call(process: StdioProcess, era: str, number: int) -> None:
    params: JsonObject = {"name": "add", "arguments": {"left": number}}
    if era == "2026-07-28":
        params["_meta"] = modern_meta()
    answer = await process.ask("tools/call", params, f"good-{number}")
    assert answer["result"]["structuredContent"]["result"] == number + 1, answer


async def test_random_frames_do_no_harm(server: tuple[StdioProcess, str]) -> None:
    process, era = server
    count = share("frames over stdio") // len(ERAS)
    random = Random(f"frames {era}")
    for number in range(0, count, BATCH):
        frames = [random_frame(random) for _ in range(min(BATCH, count - number))]
        await process.send(*frames)
        try:
            await _require_good_call(process, era, number)
        except TimeoutError:
            raise AssertionError(f"no answer after {frames}") from None


def _call(era: str, request_id: str, name: str, arguments: str) -> bytes:
    meta = f',"_meta":{json.dumps(modern_meta())}' if era == "2026-07-28" else ""
    return (
        f'{{"jsonrpc":"2.0","id":"{request_id}","method":"tools/call",'
        f'"params":{{"name":"{name}","arguments":{arguments}{meta}}}}}'
    ).encode()


EXTREMES = {
    "deep-lists": '{"value":' + "[" * 100_000 + "]" * 100_000 + "}",
    "deep-objects": '{"value":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
    "ten-megabytes": '{"value":"' + "x" * 10_000_000 + '"}',
    "ten-megabytes-unknown": '{"value":1,"bogus":"' + "x" * 10_000_000 + '"}',
    "many-names": "{" + ",".join(f'"n{number}":{number}' for number in range(100_000)) + "}",
    "long-number": '{"value":' + "9" * 100_000 + "}",
    "surrogates": '{"value":"\\ud800 \\udfff","\\ud800":1}',
    "nul": '{"value":"\\u0000"}',
    "not-a-number": '{"value":NaN}',
    "same-name-twice": '{"value":1,"value":2}',
}


async def test_extreme_calls_are_answered_or_refused(server: tuple[StdioProcess, str]) -> None:
    process, era = server
    for number, (name, arguments) in enumerate(EXTREMES.items()):
        before = len(process.lines)
        await process.send(_call(era, name, "anything", arguments))
        await _require_good_call(process, era, number)
        answered = functools.partial(_is_answered, process, name, before)
        await process.wait_until(answered)
        assert answered(), f"no answer to {name}"


def _is_answered(process: StdioProcess, request_id: str, since: int) -> bool:
    answers = [parsed_strictly(line).get("id", "none") for line in process.lines[since:]]
    return request_id in answers or None in answers


async def test_invalid_bytes_before_the_first_request_do_no_harm() -> None:
    random = Random("before the first request")
    async with started_process(SERVER) as process:
        await process.send(*(frame for frame in (random_frame(random) for _ in range(20)) if b'"method"' not in frame))
        await _greet(process, "2025-11-25")
        await _require_good_call(process, "2025-11-25", 1)
        assert await process.close() == 0


async def test_a_frame_that_never_ends_does_not_keep_the_server_alive() -> None:
    async with started_process(SERVER) as process:
        await _greet(process, "2025-11-25")
        assert process._process.stdin is not None
        process._process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ec')
        assert await process.close() == 0
