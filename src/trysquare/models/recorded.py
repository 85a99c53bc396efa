"""Recorded: requests and answers as JSON, for a file that can be read and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from trysquare.core.types import JsonObject
from trysquare.models.messages import CallRequest, Message, Usage
from trysquare.models.model import ModelAnswer, ModelRequest


def request_json(request: ModelRequest) -> JsonObject:
    """A request as JSON. Of a constraint only that there was one: it follows from the tools."""
    return {
        "messages": [message_json(message) for message in request.messages],
        "tools": [
            {"name": tool.name, "description": tool.description, "schema": tool.schema} for tool in request.tools
        ],
        "held": request.constraint is not None,
        "must_call": request.must_call,
        "parallel": request.parallel,
        "max_tokens": request.max_tokens,
        "sampling": asdict(request.sampling),
    }


def message_json(message: Message) -> JsonObject:
    """A turn as JSON, without what it has not."""
    found: JsonObject = {"role": message.role, "text": message.text}
    if message.calls:
        found["calls"] = [asdict(call) for call in message.calls]
    if message.answers is not None:
        found["answers"] = message.answers
    if message.failed:
        found["failed"] = True
    return found


def answer_json(answer: ModelAnswer) -> JsonObject:
    """An answer as JSON."""
    return {
        "text": answer.text,
        "calls": [asdict(call) for call in answer.calls],
        "stop": answer.stop,
        "held": answer.held,
        "usage": asdict(answer.usage),
        "choice": dict(answer.choice),
    }


def read_answer_json(found: JsonObject) -> ModelAnswer:
    """An answer from its JSON; a `KeyError`, `TypeError` or `ValueError` where it is none."""
    calls = cast(list[Any], found.get("calls", []))
    return ModelAnswer(
        text=found["text"],
        calls=tuple(CallRequest(id=call["id"], name=call["name"], arguments=call["arguments"]) for call in calls),
        stop=found.get("stop", "calls" if calls else "text"),
        held=found.get("held", "free"),
        usage=Usage(**found.get("usage", {})),
        choice=found.get("choice", {}),
    )


def respelled(value: Any, spelling: Mapping[str, str]) -> Any:
    """A JSON value with texts put in place of others, such as a word in place of this machine's folder."""
    if isinstance(value, str):
        for text, instead in spelling.items():
            value = value.replace(text, instead)
        return value
    if isinstance(value, list):
        return [respelled(item, spelling) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: respelled(item, spelling) for key, item in cast(JsonObject, value).items()}
    return value
