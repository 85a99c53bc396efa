"""Steps that are played with a server over HTTP: profiles, search, approval by code, a killed server."""

from __future__ import annotations

import asyncio
import os
import pty

from examples.demo.stage import ERAS, HttpServer, Stage, envelope_of, text_of


async def choose_profiles(server: HttpServer) -> None:
    """One server, many listings: the address chooses the profile, and every tool stays callable by name."""
    stage = server.stage
    transcript = stage.transcript
    for era in ERAS:
        async with server.client(era, query="?profile=search") as client:
            transcript.sent(f"tools/list at /mcp?profile=search ({era})")
            names = [tool.name for tool in (await client.list_tools()).tools]
            transcript.received(", ".join(names))
            transcript.expect(set(names) == {"find_tools", "call_tool", "read_more"}, "three tools instead of all")
            unlisted = await client.call_tool("greet", {"name": "Ada"})
            transcript.expect(not unlisted.is_error, "greet is not listed and still works")


async def search_tools(server: HttpServer) -> None:
    """With the search profile a model finds a tool by what it needs, and calls it."""
    stage = server.stage
    transcript = stage.transcript
    async with server.client(query="?profile=search") as client:
        query = {"query": "divied one number by another", "limit": 2}
        transcript.sent("tools/call", "find_tools", query)
        found = await client.call_tool("find_tools", query)
        transcript.received(text_of(found), lines=2)
        transcript.expect("divide" in text_of(found), "divide, in spite of the typing error")
        call = {"name": "divide", "arguments": {"dividend": 1, "divisor": 4}}
        transcript.sent("tools/call", "call_tool", call)
        answer = await client.call_tool("call_tool", call)
        transcript.received(text_of(answer))
        transcript.expect("0.25" in text_of(answer), "the quotient")


async def approve_by_code(server: HttpServer) -> None:
    """A client that cannot ask: the human approves a one-time code in their own terminal."""
    stage = server.stage
    transcript = stage.transcript
    async with server.client() as client:
        transcript.sent("tools/call", "delete_note", {"title": "shopping"})
        waiting = await client.call_tool("delete_note", {"title": "shopping"})
        transcript.received(text_of(waiting), lines=1)
        code = str(envelope_of(waiting).get("approval", {}).get("code", ""))
        transcript.expect(bool(waiting.is_error) and bool(code), "a code, and nothing deleted")
        transcript.human(f"runs: trysquare approve {code}")
        output = await in_terminal(stage, ["approve", code], typed="yes\n")
        transcript.expect("Approved by" in output, "the question in full, a yes, and a receipt")
        done = await client.call_tool("delete_note", {"title": "shopping"})
        transcript.received(text_of(done), lines=1)
        transcript.expect(not done.is_error, "the same call runs, once")


async def in_terminal(stage: Stage, words: list[str], *, typed: str) -> str:
    """Run a command in a terminal, type into it, and return what it showed."""
    mine, theirs = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *stage.command(*words), stdin=theirs, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env=stage.environment(), cwd=stage.project,
        )  # fmt: skip
        os.write(mine, typed.encode())
        output, _ = await process.communicate()
    finally:
        os.close(mine)
        os.close(theirs)
    for line in output.decode().splitlines()[:3]:
        stage.transcript.human(f"sees: {line}")
    return output.decode()


async def kill_and_restart(server: HttpServer) -> None:
    """The server is killed and started again: clients go on, even with the next page of an answer from before."""
    stage = server.stage
    transcript = stage.transcript
    async with server.client() as client:
        transcript.sent("tools/call", "list_squares", {"count": 300})
        first = envelope_of(await client.call_tool("list_squares", {"count": 300}))
    transcript.note("kill -9 of the server")
    await server.kill()
    await server.start()
    transcript.note("started again at the same address")
    for era in ERAS:
        async with server.client(era) as client:
            transcript.sent("tools/call", first["next"]["tool"], first["next"]["arguments"])
            page = await client.call_tool(first["next"]["tool"], first["next"]["arguments"])
            transcript.received(text_of(page), lines=1)
            transcript.expect(not page.is_error, f"the second page, for a client of {era}")
