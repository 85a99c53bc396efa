"""Prompts: ours as MCP lists and renders them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trysquare.core.prompt import Prompt, PromptArgument, PromptMessage
from trysquare.core.types import JsonObject
from trysquare.wire.blocks import block_to_wire
from trysquare.wire.results import COMPLETE
from trysquare.wire.surrogates import replaced


def prompt_to_wire(prompt: Prompt, describe: Callable[[Prompt], str]) -> JsonObject:
    """One entry of `prompts/list`."""
    wire: JsonObject = {"name": prompt.name}
    if prompt.title is not None:
        wire["title"] = prompt.title
    wire["description"] = describe(prompt)
    if prompt.arguments:
        wire["arguments"] = [_argument_to_wire(argument) for argument in prompt.arguments]
    return wire


def messages_to_wire(prompt: Prompt, messages: Sequence[PromptMessage]) -> JsonObject:
    """The answer to `prompts/get`."""
    wire = [{"role": message.role, "content": block_to_wire(message.content)} for message in messages]
    return {"resultType": COMPLETE, "description": prompt.description, "messages": replaced(wire)}


def _argument_to_wire(argument: PromptArgument) -> JsonObject:
    wire: JsonObject = {"name": argument.name}
    if argument.description is not None:
        wire["description"] = argument.description
    return {**wire, "required": argument.required}
