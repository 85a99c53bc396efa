"""What a second call of a tool would do, and where its key goes."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from trysquare import Tool, ToolArguments, tool
from trysquare.agents.journal import NullJournal, Repeat, keyed, repeat_of
from trysquare.core.json import JsonObject


class Create(ToolArguments):
    action: Literal["create", "change"]
    title: str
    request_key: str | None = None


class Look(ToolArguments):
    action: Literal["look"]


def calendar(args: Create | Look) -> str:
    """Look at a calendar or change it."""
    return args.action


def pay(amount: int, request_key: str = "") -> str:
    """Pay an amount."""
    return f"{amount} {request_key}"


def mail(to: str) -> str:
    """Send a mail."""
    return to


def close(parameters: dict[str, Any]) -> str:
    """Close an action."""
    return str(parameters)


CHANGE = {"action": "change", "title": "A walk"}


@pytest.mark.parametrize(
    ("one", "arguments", "repeat", "sent"),
    [
        (tool(pay), {"amount": 1}, "keyed", {"amount": 1, "request_key": "k"}),
        (tool(pay), {"amount": 1, "request_key": "made up"}, "keyed", {"amount": 1, "request_key": "k"}),
        (tool(mail), {"to": "Ada"}, "unknown", {"to": "Ada"}),
        (tool(mail, read_only=True), {"to": "Ada"}, "harmless", {"to": "Ada"}),
        (tool(mail, idempotent=True), {"to": "Ada"}, "harmless", {"to": "Ada"}),
        (tool(calendar), CHANGE, "keyed", {**CHANGE, "request_key": "k"}),
        (tool(calendar), {"action": "look"}, "unknown", {"action": "look"}),
        (tool(close, toolset="bots"), {"parameters": {"a": 1}}, "keyed", {"parameters": {"a": 1, "request_key": "k"}}),
        (tool(close, toolset="bots"), {}, "keyed", {"parameters": {"request_key": "k"}}),
        (tool(close), {"parameters": {}}, "unknown", {"parameters": {}}),
    ],
)  # fmt: skip
def test_a_call_carries_its_key_where_its_tool_takes_one(
    one: Tool, arguments: JsonObject, repeat: Repeat, sent: JsonObject
) -> None:
    before = dict(arguments)
    assert repeat_of(one, arguments) == repeat
    assert keyed(one, arguments, "k") == sent
    assert arguments == before


async def test_a_run_without_a_job_does_everything_at_once() -> None:
    journal = NullJournal()

    async def answer() -> JsonObject:
        return {"text": "Hello."}

    async def call(key: str) -> JsonObject:
        return {"key": key}

    assert journal.job is None
    assert await journal.step("answer 1", answer) == {"text": "Hello."}
    outcome = await journal.call("call 1.1 mail", "unknown", call)
    assert (outcome.value, outcome.unknown) == ({"key": "call 1.1 mail"}, None)
