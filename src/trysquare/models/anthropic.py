"""Anthropic: the Messages API, with its own tool calling."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.models.counting import estimate_tokens
from trysquare.models.endpoint import Endpoint, Refused, read_refusal
from trysquare.models.messages import CallRequest, Message
from trysquare.models.model import ModelAnswer, ModelRequest, StopReason
from trysquare.models.options import ModelOptions
from trysquare.models.transcript import holds_calls

DEFAULT_URL = "https://api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
_VERSION = "2023-06-01"
_DEFAULT_CONTEXT = 200_000


class AnthropicModel:
    """A model behind the Messages API."""

    def __init__(self, name: str, endpoint: Endpoint, options: ModelOptions) -> None:
        self._name = name
        self._endpoint = endpoint
        self._options = options

    @property
    def name(self) -> str:
        """The model's name at its server."""
        return self._name

    @property
    def context_tokens(self) -> int:
        """How many tokens a dialogue may have."""
        return self._options.context_tokens or _DEFAULT_CONTEXT

    def count(self, text: str) -> int:
        """About how many tokens a text has."""
        return estimate_tokens(text)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """Answer with text, with calls, or with both."""
        try:
            found = await self._endpoint.post("/v1/messages", {"model": self._name, **_body(request)})
        except Refused as refused:
            variable = self._options.key_variable or KEY_VARIABLE
            raise read_refusal(refused.refusal, self._name, key_variable=variable) from refused
        return _answer(found, request, self._options)


def _body(request: ModelRequest) -> JsonObject:
    system = "\n\n".join(message.text for message in request.messages if message.role == "system")
    body: JsonObject = {"max_tokens": request.max_tokens, "messages": _turns(request.messages)}
    if system:
        body["system"] = system
    body.update(_sampling(request))
    if request.tools:
        body["tools"] = [{"name": t.name, "description": t.description, "input_schema": t.flat} for t in request.tools]
        body["tool_choice"] = {
            "type": "any" if request.must_call else "auto",
            "disable_parallel_tool_use": not request.parallel,
        }
    return body


def _sampling(request: ModelRequest) -> JsonObject:
    # Newer models refuse a request that sets both temperature and top_p.
    sampling = request.sampling
    fields: JsonObject = {"temperature": min(sampling.temperature, 1.0)}
    if sampling.top_k:
        fields["top_k"] = sampling.top_k
    return fields


def _turns(messages: tuple[Message, ...]) -> list[JsonObject]:
    """The dialogue in turns of user and assistant; the results of one round stand in one turn, as the API wants."""
    turns: list[JsonObject] = []
    for message in messages:
        if message.role == "system" or not (blocks := _blocks(message)):
            continue
        role = "assistant" if message.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[JsonObject]:
    if message.role == "tool":
        result: JsonObject = {"type": "tool_result", "tool_use_id": message.answers, "content": message.text}
        return [{**result, "is_error": True} if message.failed else result]
    text: list[JsonObject] = []
    # The API refuses empty texts.
    if message.text.strip() and not holds_calls(message):
        text = [{"type": "text", "text": message.text}]
    uses: list[JsonObject] = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in message.calls
    ]
    return text + uses


def _answer(found: JsonObject, request: ModelRequest, options: ModelOptions) -> ModelAnswer:
    content: Any = found.get("content")
    if not isinstance(content, list):
        raise ToolError(
            "The model's server sent an answer without content.",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Check that the address is the one of a Messages API.",
        )
    blocks = [cast(JsonObject, block) for block in cast(list[Any], content) if isinstance(block, dict)]
    calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    usage: Any = found.get("usage")
    read = sum(_count(usage, key) for key in _PROMPT_COUNTS)
    return ModelAnswer(
        text="".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text"),
        calls=calls,
        stop=_stop(found.get("stop_reason"), calls),
        held="native" if request.tools else "free",
        usage=options.usage(read, _count(usage, "output_tokens")),
    )


_PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _count(usage: Any, key: str) -> int:
    found: Any = cast(JsonObject, usage).get(key) if isinstance(usage, dict) else None
    return found if isinstance(found, int) else 0


def _call(block: JsonObject) -> CallRequest:
    return CallRequest(id=str(block.get("id")), name=str(block.get("name")), arguments=dict(block.get("input") or {}))


def _stop(reason: Any, calls: tuple[CallRequest, ...]) -> StopReason:
    if reason == "refusal":
        return "refused"
    if reason in ("max_tokens", "model_context_window_exceeded"):
        return "length"
    return "calls" if calls else "text"


@asynccontextmanager
async def open_anthropic(
    name: str, url: str, options: ModelOptions, env: Mapping[str, str]
) -> AsyncGenerator[AnthropicModel]:
    """A model behind the Messages API; nothing is sent before the first request."""
    variable = options.key_variable or KEY_VARIABLE
    key = env.get(variable, "")
    if not key:
        raise ToolError(
            f"The model anthropic:{name} needs a key.",
            code=ErrorCode.MODEL_REFUSED,
            instruction=f"Set the environment variable {variable}.",
        )
    headers = {"x-api-key": key, "anthropic-version": _VERSION}
    endpoint = Endpoint(url, headers, timeout=options.timeout, retries=options.retries)
    try:
        yield AnthropicModel(name, endpoint, options)
    finally:
        await endpoint.close()
