"""Anthropic Messages API, with its own tool calling."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.tokens import estimate_tokens
from trysquare.models import base
from trysquare.net.http import HttpRefused, JsonClient

DEFAULT_URL = "https://api.anthropic.com"
KEY_VARIABLE = "ANTHROPIC_API_KEY"
_VERSION = "2023-06-01"
_DEFAULT_CONTEXT = 200_000


class AnthropicModel:
    """A model behind the Messages API."""

    count = staticmethod(estimate_tokens)

    def __init__(self, name: str, client: JsonClient, options: base.ModelOptions) -> None:
        self.name, self._client, self._options = name, client, options
        self.context_tokens = options.context_tokens or _DEFAULT_CONTEXT

    async def answer(self, request: base.ModelRequest) -> base.ModelResponse:
        try:
            found = await self._client.post("/v1/messages", {"model": self.name, **_body(request)})
        except HttpRefused as refused:
            variable = self._options.key_variable or KEY_VARIABLE
            raise base.read_refusal(refused, self.name, key_variable=variable) from refused
        return _answer(found, request, self._options)


def _body(request: base.ModelRequest) -> JsonObject:
    system = "\n\n".join(message.text for message in request.messages if message.role == "system")
    body: JsonObject = {"max_tokens": request.max_tokens, "messages": _turns(request.messages)}
    if system:
        body["system"] = system
    # Newer models reject a request that sets both temperature and top_p.
    body["temperature"] = min(request.sampling.temperature, 1.0)
    if request.sampling.top_k:
        body["top_k"] = request.sampling.top_k
    if request.tools:
        body["tools"] = [{"name": t.name, "description": t.description, "input_schema": t.flat} for t in request.tools]
        body["tool_choice"] = {
            "type": "any" if request.must_call else "auto",
            "disable_parallel_tool_use": not request.parallel,
        }
    return body


def _turns(messages: tuple[base.Message, ...]) -> list[JsonObject]:
    """Turns of user and assistant; the results of one round are in one turn, as the API requires."""
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


def _blocks(message: base.Message) -> list[JsonObject]:
    if message.role == "tool":
        result: JsonObject = {"type": "tool_result", "tool_use_id": message.answers, "content": message.text}
        return [{**result, "is_error": True} if message.failed else result]
    # The API rejects empty texts.
    has_text = message.text.strip() and not base.holds_calls(message)
    blocks: list[JsonObject] = [{"type": "text", "text": message.text}] if has_text else []
    calls = message.calls
    return blocks + [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in calls]


def _answer(found: JsonObject, request: base.ModelRequest, options: base.ModelOptions) -> base.ModelResponse:
    content: Any = found.get("content")
    if not isinstance(content, list):
        raise ToolError(
            "The model's server sent a response without content.",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Check that the URL is that of a Messages API.",
        )
    blocks = [as_object(block) for block in as_list(content)]
    calls = tuple(
        base.CallRequest(id=str(block.get("id")), name=str(block.get("name")), arguments=as_object(block.get("input")))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    usage = as_object(found.get("usage"))
    return base.ModelResponse(
        text="".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text"),
        calls=calls,
        stop=_STOPS.get(str(found.get("stop_reason")), "calls" if calls else "text"),
        constrained_by="native" if request.tools else "free",
        usage=options.usage(
            sum(base.token_count(usage, key) for key in _PROMPT_COUNTS), base.token_count(usage, "output_tokens")
        ),
    )


_PROMPT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_STOPS: Mapping[str, base.StopReason] = {
    "refusal": "refused", "max_tokens": "length", "model_context_window_exceeded": "length",
}  # fmt: skip


@asynccontextmanager
async def open_anthropic(
    name: str, url: str, options: base.ModelOptions, env: Mapping[str, str]
) -> AsyncGenerator[AnthropicModel]:
    """A model behind the Messages API."""
    variable = options.key_variable or KEY_VARIABLE
    if not (key := env.get(variable, "")):
        raise ToolError(
            f"The model anthropic:{name} requires an API key.",
            code=ErrorCode.MODEL_REFUSED,
            instruction=f"Set the environment variable {variable}.",
        )
    async with options.client(url, {"x-api-key": key, "anthropic-version": _VERSION}) as client:
        yield AnthropicModel(name, client, options)
