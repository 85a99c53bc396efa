"""Pydantic AI: our models as models of pydantic-ai, held to the grammar of the agent's own tools.

An agent of pydantic-ai gives its tools with every request. The grammar is made of them, so that a local model can
write nothing but a valid call of one of them. Where plain text is an answer too, it is one more tool in the grammar.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.grammar import CallGrammar
from trysquare.models import CallRequest, Message, Model, ModelRequest, Sampling, ToolSpec
from trysquare.models import ModelResponse as ModelAnswer

SPEAK = "answer_in_words"
"""The tool that stands for an answer in plain text."""
_SPEAK_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def pydantic_ai_model(model: Model) -> FunctionModel:
    """One of our models for an agent of pydantic-ai: `Agent(pydantic_ai_model(model), tools=…)`."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offers = tuple(_offers(info))
        found = await model.answer(_request(messages, info, offers))
        return _response(found, model.name)

    return FunctionModel(answer, model_name=model.name)


def _offers(info: AgentInfo) -> Iterator[ToolSpec]:
    tools: Sequence[ToolDefinition] = [*info.function_tools, *info.output_tools]
    for tool in tools:
        schema = tool.parameters_json_schema
        yield ToolSpec(name=tool.name, description=tool.description or "", schema=schema, flat=schema)
    if tools and info.allow_text_output:
        about = "Answers the user in plain words, once nothing is left to call."
        yield ToolSpec(name=SPEAK, description=about, schema=_SPEAK_SCHEMA, flat=_SPEAK_SCHEMA)


def _request(messages: list[ModelMessage], info: AgentInfo, offers: tuple[ToolSpec, ...]) -> ModelRequest:
    settings = cast(JsonObject, info.model_settings or {})
    system = "\n\n".join(part for part in (info.instructions or "", _describe_tools(offers)) if part)
    first = (Message(role="system", text=system),) if system else ()
    return ModelRequest(
        messages=(*first, *(message for each in messages for message in _messages(each))),
        tools=offers,
        constraint=CallGrammar(offers) if offers else None,
        must_call=bool(offers),
        max_tokens=settings.get("max_tokens", 1024),
        sampling=Sampling(
            temperature=settings.get("temperature", 0.0), top_p=settings.get("top_p", 1.0), seed=settings.get("seed")
        ),
    )


def _describe_tools(offers: tuple[ToolSpec, ...]) -> str:
    """The tools in words, for models that are held by a grammar and get no `tools`."""
    if not offers:
        return ""
    lines = [
        f"- {offer.name}: {offer.description} {json.dumps(offer.schema.get('properties', {}))}" for offer in offers
    ]
    return "\n".join(['Answer with one call, {"name":…,"args":{…}}. The tools:', *lines])


def _messages(message: ModelMessage) -> Iterator[Message]:
    if isinstance(message, ModelResponse):
        calls = tuple(
            CallRequest(id=part.tool_call_id, name=part.tool_name, arguments=part.args_as_dict())
            for part in message.parts
            if isinstance(part, ToolCallPart)
        )
        text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        yield Message(role="assistant", text=text, calls=calls)
        return
    for part in message.parts:
        if isinstance(part, SystemPromptPart):
            yield Message(role="system", text=part.content)
        elif isinstance(part, UserPromptPart):
            yield Message(role="user", text=_user_text(part))
        elif isinstance(part, ToolReturnPart):
            text, failed = part.model_response_str(), part.outcome != "success"
            yield Message(role="tool", text=text, answers=part.tool_call_id, failed=failed)
        elif isinstance(part, RetryFeedbackPart):
            yield Message(role="user", text=part.model_response())
        else:
            raise _not_text(type(part).__name__)


def _user_text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    texts = [item for item in part.content if isinstance(item, str)]
    if len(texts) < len(part.content):
        raise _not_text("a prompt with images or files")
    return "\n".join(texts)


def _not_text(what: str) -> ToolError:
    return ToolError(
        f"{what} is not supported: this model reads text only.",
        code=ErrorCode.MODEL_REFUSED,
        instruction="Send text.",
    )


def _response(answer: ModelAnswer, name: str) -> ModelResponse:
    usage = RequestUsage(input_tokens=answer.usage.prompt_tokens, output_tokens=answer.usage.completion_tokens)
    parts: list[TextPart | ToolCallPart] = [
        TextPart(content=str(call.arguments.get("text", "")))
        if call.name == SPEAK
        else ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.id)
        for call in answer.calls
    ]
    return ModelResponse(parts=parts or [TextPart(content=answer.text)], usage=usage, model_name=name)
