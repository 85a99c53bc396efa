"""Questions to the client: ours as MCP's requests, and MCP's answers as ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from trysquare.core.client_requests import Answer, ClientRequest, ModelRequest, Question, RootsRequest, Visit
from trysquare.core.types import JsonObject


def request_to_wire(request: ClientRequest) -> JsonObject:
    """A request to the client, as the method and parameters that carry it."""
    match request:
        case Question():
            params: JsonObject = {"mode": "form", "message": request.message, "requestedSchema": request.schema}
            return {"method": "elicitation/create", "params": params}
        case Visit():
            visit: JsonObject = {"mode": "url", "message": request.message, "url": request.url}
            params = {**visit, "elicitationId": request.id} if request.id else visit
            return {"method": "elicitation/create", "params": params}
        case ModelRequest():
            return {"method": "sampling/createMessage", "params": _sampling_params(request)}
        case RootsRequest():
            return {"method": "roots/list", "params": {}}


def answer_from_wire(request: ClientRequest, answer: Mapping[str, Any]) -> Answer:
    """What the client sent back, as our answer. Whatever does not fit counts as not answered."""
    match request:
        case Question() | Visit():
            return _elicited(answer)
        case ModelRequest():
            content = {"text": _sampled_text(answer), "model": answer.get("model")}
            whole = {} if request.whole is None else {"whole": dict(answer)}
            return Answer(action="accept", content={**content, **whole})
        case RootsRequest():
            return Answer(action="accept", content={"roots": answer.get("roots") or []})


def _sampling_params(request: ModelRequest) -> JsonObject:
    if request.whole is not None:
        return request.whole
    message = {"role": "user", "content": {"type": "text", "text": request.prompt}}
    params: JsonObject = {"messages": [message], "maxTokens": request.max_tokens}
    return params if request.system is None else {**params, "systemPrompt": request.system}


def _elicited(answer: Mapping[str, Any]) -> Answer:
    action = answer.get("action")
    if action == "accept":
        content = answer.get("content")
        return Answer(action="accept", content=cast(JsonObject, content) if isinstance(content, dict) else {})
    return Answer(action="decline" if action == "decline" else "cancel")


def _sampled_text(answer: Mapping[str, Any]) -> str:
    content = answer.get("content")
    blocks = cast(list[Any], content if isinstance(content, list) else [content])
    texts = [cast(JsonObject, block).get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))
