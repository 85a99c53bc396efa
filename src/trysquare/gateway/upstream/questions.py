"""Questions of a server behind the gateway: to the user, to the client's model, for its folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast, get_args

from trysquare.core.client_requests import Answer, ClientRequest, ModelRequest, Question, RootsRequest, Visit
from trysquare.core.context import LogLevel
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text, cleaned_value

_WEB: Final = ("https://", "http://")
_PASSED_ON: Final = frozenset(
    {"messages", "modelPreferences", "systemPrompt", "temperature", "maxTokens", "stopSequences", "metadata"}
)
"""What a server may say of the text that it wants. `includeContext` would mean its own connection."""

_LONGEST_LOG = 16_000
_LOGGER = 80


class CannotAsk(Exception):
    """A question that cannot be passed on; the text says why, for the server to read."""


def question_from_wire(method: str, params: JsonObject, *, server: str, key: str) -> ClientRequest:
    """What a server asks, as a request to our own client. The user is told who asks."""
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
        case Visit():
            return {"action": answer.action}
        case ModelRequest():
            if isinstance(whole := answer.content.get("whole"), dict):
                return cast(JsonObject, whole)
            return {
                "role": "assistant",
                "content": {"type": "text", "text": str(answer.content.get("text", ""))},
                "model": str(answer.content.get("model") or "unknown"),
                "stopReason": "endTurn",
            }
        case RootsRequest():
            return {"roots": answer.content.get("roots") or []}


def log_from_wire(params: JsonObject, server: str) -> tuple[LogLevel, Any, str] | None:
    """A log message of a server with its name, cleaned and not too long; None for one of no known level."""
    level, given = params.get("level"), params.get("logger")
    if level is None or level not in get_args(LogLevel):
        return None
    from trysquare.core.result import dump_json
    from trysquare.core.shortening import short

    data = cleaned_value(params.get("data"))
    text = data if isinstance(data, str) else dump_json(data)
    logger = f"{server}/{short(cleaned_text(given), _LOGGER)}" if isinstance(given, str) and given else server
    return level, data if len(text) <= _LONGEST_LOG else short(text, _LONGEST_LOG), logger


def _elicitation(params: JsonObject, server: str, key: str) -> Question | Visit:
    message = f"{server} asks: {params.get('message', '')}"
    if params.get("mode", "form") == "url":
        url, name = params.get("url"), params.get("elicitationId")
        if not isinstance(url, str) or not url.lower().startswith(_WEB):
            raise CannotAsk("Only addresses of the web can be passed on for the user to open.")
        return Visit(message=message, url=url, id=name if isinstance(name, str) else "", key=key)
    schema = params.get("requestedSchema")
    if params.get("mode", "form") != "form" or not isinstance(schema, dict):
        raise CannotAsk("The question has no `requestedSchema`, or is of a mode that cannot be passed on.")
    return Question(message=message, schema=cast(JsonObject, schema), key=key)


def _sampling(params: JsonObject, key: str) -> ModelRequest:
    """The whole request passes on, but for what belongs to the connection between the two of us."""
    if params.get("tools") or params.get("task"):
        raise CannotAsk("Requests with tools or tasks cannot be passed on to the client's model.")
    whole = {name: part for name, part in params.items() if name in _PASSED_ON and part is not None}
    _require_messages(whole)
    system = whole.get("systemPrompt")
    return ModelRequest(
        prompt="\n\n".join(_texts(cast(list[Any], whole["messages"]))),
        max_tokens=cast(int, whole["maxTokens"]),
        system=system if isinstance(system, str) else None,
        whole=whole,
        key=key,
    )


def _require_messages(whole: JsonObject) -> None:
    from mcp_types import CreateMessageRequestParams
    from pydantic import ValidationError

    try:
        CreateMessageRequestParams.model_validate(whole)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(step)[:40] for step in first["loc"])
        raise CannotAsk(f"The request does not fit the protocol: `{place}`: {first['msg']}.") from None


def _texts(messages: list[Any]) -> Iterator[str]:
    """What the messages say in words, for clients that take nothing else."""
    for message in messages:
        content: Any = cast(Mapping[str, Any], message).get("content")
        blocks = cast(list[Any], content if isinstance(content, list) else [content])
        yield "\n".join(cast(JsonObject, block).get("text", "") for block in blocks if isinstance(block, dict))
