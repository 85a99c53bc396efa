"""Steps that are played in each era of the protocol, over stdio: what one conversation with the server shows."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import mcp_types as types
from mcp import Client

from examples.demo.stage import MODERN, Human, Stage, envelope_of, text_of
from examples.demo.transcript import Transcript
from trysquare.core.result import dump_json
from trysquare.core.tokens import count_tokens


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """One client in front of one server, and the human behind the client."""

    client: Client
    human: Human
    transcript: Transcript
    era: str

    async def call(self, name: str, arguments: dict[str, object], *, lines: int = 4) -> types.CallToolResult:
        """Call a tool, and show the call and its answer."""
        self.transcript.sent("tools/call", name, arguments)
        result = await self.client.call_tool(name, arguments)
        self.transcript.received(text_of(result), lines=lines)
        return result


@asynccontextmanager
async def converse(stage: Stage, *options: str, era: str = MODERN) -> AsyncGenerator[Conversation]:
    """A conversation with a server of its own, started with these options."""
    human = Human(transcript=stage.transcript)
    async with stage.stdio(era, human, *options) as client:
        yield Conversation(client=client, human=human, transcript=stage.transcript, era=era)


async def list_tools(talk: Conversation) -> None:
    """The tools that a model sees, and what they cost it."""
    talk.transcript.sent("tools/list")
    tools = (await talk.client.list_tools()).tools
    costs = {tool.name: definition_tokens(tool) for tool in tools}
    for tool in tools:
        first = (tool.description or "").splitlines()[0]
        talk.transcript.received(f"{tool.name:<14}{costs[tool.name]:>5} tokens  {first}")
    talk.transcript.expect("greet" in costs, f"{len(tools)} tools for {sum(costs.values())} tokens")


def definition_tokens(tool: types.Tool) -> int:
    """What a tool's definition costs a model."""
    return count_tokens(
        dump_json({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
    )


async def call_well(talk: Conversation) -> None:
    """A call that fits."""
    result = await talk.call("greet", {"name": "Ada", "tone": "formal"})
    talk.transcript.expect(envelope_of(result).get("value") == "Good day, Ada", "the greeting, and what to do with it")


async def call_corrected(talk: Conversation) -> None:
    """A call with a wrong argument, whose answer carries the corrected call; that one is sent as it is."""
    refused = await talk.call("greet", {"nme": "Ada", "tone": "wrm"})
    corrected = envelope_of(refused).get("next", {})
    talk.transcript.expect(bool(refused.is_error) and bool(corrected), "an error that carries the corrected call")
    repaired = await talk.call(corrected["tool"], corrected["arguments"])
    talk.transcript.expect(not repaired.is_error, "the corrected call succeeds unchanged")


async def show_progress(talk: Conversation) -> None:
    """A call that reports how far it is."""
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        talk.transcript.received(f"progress {progress:g} of {total or 0:g}: {message}")

    talk.transcript.sent("tools/call", "count_slowly", {"steps": 3})
    await talk.client.call_tool("count_slowly", {"steps": 3}, progress_callback=on_progress)
    talk.transcript.expect(seen == [1, 2, 3], "three reports before the answer")


async def ask_for_consent(talk: Conversation) -> None:
    """A tool that deletes asks you first, outside of the model's reach. No keeps the note, yes lets it go."""
    talk.human.approve = False
    refused = await talk.call("delete_note", {"title": "shopping"})
    kept = await talk.client.call_tool("read_note", {"title": "shopping"})
    talk.transcript.expect(bool(refused.is_error) and not kept.is_error, "nothing is deleted without the human")
    talk.human.approve = True
    agreed = await talk.call("delete_note", {"title": "shopping"})
    talk.transcript.expect(not agreed.is_error and len(talk.human.questions) == 2, "one question for each call")


async def page_through(talk: Conversation) -> None:
    """An answer that is too large comes as a beginning and a call for the next page; nothing is lost."""
    result = await talk.call("list_squares", {"count": 300})
    pages = [envelope_of(result)]
    while following := pages[-1].get("next"):
        result = await talk.client.call_tool(following["tool"], following["arguments"])
        pages.append(envelope_of(result))
    last = str(pages[-1].get("value", ""))
    talk.transcript.received(last.splitlines()[-1] if last else "")
    talk.transcript.expect(len(pages) > 1 and "300 squared is 90000" in last, f"the last line, on page {len(pages)}")


async def get_prompt(talk: Conversation) -> None:
    """A prompt that a human asks for by name, and which itself calls a tool."""
    talk.transcript.sent("prompts/get", "letter", {"to": "Ada"})
    result = await talk.client.get_prompt("letter", {"to": "Ada"})
    text = "\n".join(one.content.text for one in result.messages if isinstance(one.content, types.TextContent))
    talk.transcript.received(text)
    talk.transcript.expect("Hello, Ada" in text, "the greeting of the tool inside the prompt")


async def read_resources(talk: Conversation) -> None:
    """Resources: a note, and the full description of a tool, which the list shows only in short."""
    for uri, word in (("note://holiday", "Vienna"), ("trysquare://tools/greet", "```json")):
        talk.transcript.sent("resources/read", uri)
        result = await talk.client.read_resource(uri)
        text = "\n".join(part.text for part in result.contents if isinstance(part, types.TextResourceContents))
        talk.transcript.received(text, lines=3)
        talk.transcript.expect(word in text, f"`{word}` in {uri}")


async def survive_crash(talk: Conversation) -> None:
    """A tool that crashes: the model learns an incident id and no more, and the server lives on."""
    crashed = await talk.call("divide", {"dividend": 1, "divisor": 0})
    talk.transcript.expect("ZeroDivisionError" not in text_of(crashed), "an incident id instead of a traceback")
    alive = await talk.call("divide", {"dividend": 1, "divisor": 4})
    talk.transcript.expect(envelope_of(alive).get("value") == 0.25, "the next call works")
