"""OpenAI bodies: requests and answers of the chat completions API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.models.held_calls import new_ids
from trysquare.models.messages import CallRequest, Message
from trysquare.models.model import HowHeld, ModelAnswer, ModelRequest, Sampling, StopReason
from trysquare.models.options import ModelOptions
from trysquare.models.transcript import holds_calls, plain_turns


def plain_body(request: ModelRequest) -> JsonObject:
    """A request whose dialogue is plain text."""
    return {"messages": plain_turns(request.messages), **_limits(request)}


def native_body(request: ModelRequest) -> JsonObject:
    """A request that offers the tools in the server's own way."""
    body: JsonObject = {"messages": [_native(message) for message in request.messages], **_limits(request)}
    if request.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.flat}}
            for t in request.tools
        ]
        body["tool_choice"] = "required" if request.must_call else "auto"
        body["parallel_tool_calls"] = request.parallel
    return body


def _limits(request: ModelRequest) -> JsonObject:
    return {"max_tokens": request.max_tokens, **sampling_fields(request.sampling)}


def sampling_fields(sampling: Sampling) -> JsonObject:
    """How to sample, in the names of the API; what has its default is left to the server."""
    fields: JsonObject = {"temperature": sampling.temperature}
    if sampling.top_p < 1.0:
        fields["top_p"] = sampling.top_p
    if sampling.seed is not None:
        fields["seed"] = sampling.seed
    return fields


def _native(message: Message) -> JsonObject:
    if message.role == "tool":
        text = f"FAILED: {message.text}" if message.failed else message.text
        return {"role": "tool", "tool_call_id": message.answers, "content": text}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    return {
        "role": "assistant",
        "content": None if holds_calls(message) else message.text or None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.calls
        ],
    }


def read_answer(found: JsonObject, request: ModelRequest, options: ModelOptions, held: HowHeld) -> ModelAnswer:
    """What a completion says."""
    choice = _first_choice(found)
    message = _dict(choice.get("message"))
    calls, unread = _calls(message.get("tool_calls"), request.messages)
    text = "\n".join(part for part in (_text(message.get("content")), *unread) if part)
    usage = _dict(found.get("usage"))
    return ModelAnswer(
        text=text or _text(message.get("refusal")),
        calls=calls,
        stop=_stop(choice, message, calls),
        held=held,
        usage=options.usage(_count(usage, "prompt_tokens"), _count(usage, "completion_tokens")),
    )


def has_tool_calls(found: JsonObject) -> bool:
    """Whether a completion holds calls in the server's own way, readable or not."""
    return bool(_dict(_first_choice(found).get("message")).get("tool_calls"))


def _first_choice(found: JsonObject) -> JsonObject:
    choices = found.get("choices")
    if not isinstance(choices, list) or not choices:
        raise ToolError(
            f"The model's server sent an answer without choices: {json.dumps(found)[:200]}",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Check that the address is the one of a chat completions API.",
        )
    return _dict(cast(list[Any], choices)[0])


def _calls(found: Any, messages: Sequence[Message]) -> tuple[tuple[CallRequest, ...], list[str]]:
    """The calls that can be read, and the others as text for whoever reads text."""
    calls: list[CallRequest] = []
    unread: list[str] = []
    ids = new_ids(messages)
    for entry in cast(list[Any], found) if isinstance(found, list) else []:
        function = _dict(_dict(entry).get("function"))
        name, arguments = str(function.get("name", "")), _arguments(function.get("arguments"))
        if arguments is None:
            unread.append(f'{{"name":{json.dumps(name)},"args":{function.get("arguments")}}}')
        else:
            id = _text(_dict(entry).get("id"))
            calls.append(CallRequest(id=id or next(ids), name=name, arguments=arguments))
    return tuple(calls), unread


def _arguments(found: Any) -> JsonObject | None:
    """The arguments, which the API sends as a text of JSON and some servers as an object."""
    if isinstance(found, str):
        try:
            found = json.loads(found or "{}")
        except ValueError:
            return None
    return cast(JsonObject, found) if isinstance(found, dict) else None


def _stop(choice: JsonObject, message: JsonObject, calls: tuple[CallRequest, ...]) -> StopReason:
    if message.get("refusal") or choice.get("finish_reason") == "content_filter":
        return "refused"
    if choice.get("finish_reason") == "length":
        return "length"
    return "calls" if calls else "text"


def _count(usage: JsonObject, name: str) -> int:
    found = usage.get(name)
    return found if isinstance(found, int) else 0


def _text(found: Any) -> str:
    """A text, or the texts among the parts of which some servers make a message; thinking is none of it."""
    if isinstance(found, list):
        parts = [_dict(part) for part in cast(list[Any], found)]
        return "".join(_text(part.get("text")) for part in parts if part.get("type") in ("text", "output_text"))
    return found if isinstance(found, str) else ""


def _dict(found: Any) -> JsonObject:
    return cast(JsonObject, found) if isinstance(found, dict) else {}
