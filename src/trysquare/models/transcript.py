"""Transcript: a dialogue as plain turns of text, for models that know nothing of tool calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypedDict

from trysquare.models.messages import CallRequest, Message


class Turn(TypedDict):
    """One turn as chat templates know it."""

    role: str
    content: str


def holds_calls(message: Message) -> bool:
    """Whether the text of an assistant's turn already is its calls, as it is in a held answer."""
    return bool(message.calls) and all(json.dumps(call.name) in message.text for call in message.calls)


def write_calls(calls: Sequence[CallRequest]) -> str:
    """Calls as the grammar writes them: one object, or an array of several."""
    written = [{"name": call.name, "args": call.arguments} for call in calls]
    return json.dumps(written[0] if len(written) == 1 else written, ensure_ascii=False, separators=(",", ":"))


def plain_turns(messages: Sequence[Message]) -> list[Turn]:
    """The dialogue with calls and results in words; turns of one role that follow one another become one."""
    names = {call.id: call.name for message in messages for call in message.calls}
    turns: list[Turn] = []
    for message in messages:
        turn = _turn(message, names)
        if turns and turns[-1]["role"] == turn["role"]:
            # Templates of many models want user and assistant in turn.
            turns[-1]["content"] += "\n\n" + turn["content"]
        else:
            turns.append(turn)
    return turns


def _turn(message: Message, names: Mapping[str, str]) -> Turn:
    if message.role == "tool":
        name = names.get(message.answers or "", "the tool")
        what = "Failure" if message.failed else "Result"
        return Turn(role="user", content=f"{what} of {name}:\n{message.text}")
    if message.calls and not holds_calls(message):
        lines = [message.text, write_calls(message.calls)] if message.text else [write_calls(message.calls)]
        return Turn(role=message.role, content="\n".join(lines))
    return Turn(role=message.role, content=message.text)
