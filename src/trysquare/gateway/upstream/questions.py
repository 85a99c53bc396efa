"""Questions of a server behind the gateway: to the person, to the client's model, for its folders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from trysquare.core.client_requests import Answer, ClientRequest, ModelRequest, Question, RootsRequest
from trysquare.core.types import JsonObject


class CannotAsk(Exception):
    """A question that cannot be passed on; the text says why, for the server to read."""


def question_from_wire(method: str, params: JsonObject, *, server: str, key: str) -> ClientRequest:
    """What a server asks, as a request to our own client. The person is told who asks."""
    match method:
        case "elicitation/create":
            return _elicitation(params, server, key)
        case "sampling/createMessage":
            return _sampling(params, key)
        case "roots/list":
            return RootsRequest(key=key)
        case _:
            raise CannotAsk(f"Method not found: {method}")


def answer_to_wire(request: ClientRequest, answer: Answer) -> JsonObject:
    """What came back, as the server expects it."""
    match request:
        case Question():
            return {"action": answer.action, "content": dict(answer.content)} if answer.action == "accept" else {
                "action": answer.action
            }  # fmt: skip
        case ModelRequest():
            return {
                "role": "assistant",
                "content": {"type": "text", "text": str(answer.content.get("text", ""))},
                "model": str(answer.content.get("model") or "unknown"),
                "stopReason": "endTurn",
            }
        case RootsRequest():
            return {"roots": answer.content.get("roots") or []}


def _elicitation(params: JsonObject, server: str, key: str) -> Question:
    if params.get("mode", "form") != "form":
        raise CannotAsk("Only questions with a form can be passed on.")
    schema = params.get("requestedSchema")
    if not isinstance(schema, dict):
        raise CannotAsk("The question has no `requestedSchema`.")
    return Question(message=f"{server} asks: {params.get('message', '')}", schema=cast(JsonObject, schema), key=key)


def _sampling(params: JsonObject, key: str) -> ModelRequest:
    messages = params.get("messages")
    if not isinstance(messages, list) or params.get("tools"):
        raise CannotAsk("Only plain text can be passed on to the client's model.")
    wanted, system = params.get("maxTokens"), params.get("systemPrompt")
    return ModelRequest(
        prompt="\n\n".join(_text(message) for message in cast(list[Any], messages)),
        max_tokens=wanted if isinstance(wanted, int) else 1000,
        system=system if isinstance(system, str) else None,
        key=key,
    )


def _text(message: Any) -> str:
    content: Any = cast(Mapping[str, Any], message).get("content") if isinstance(message, dict) else None
    blocks = cast(list[Any], content if isinstance(content, list) else [content])
    texts = [cast(JsonObject, block).get("text") if isinstance(block, dict) else None for block in blocks]
    if not all(isinstance(text, str) for text in texts):
        raise CannotAsk("Only plain text can be passed on to the client's model.")
    return "\n".join(cast(list[str], texts))
