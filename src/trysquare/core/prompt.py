"""Prompt: a text that a person asks for by name, made of messages."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from trysquare.core.content import Content, Text
from trysquare.core.context import CallContext
from trysquare.core.docstrings import summary_text
from trysquare.core.errors import InvalidArguments
from trysquare.core.result import Result
from trysquare.core.running import run_function
from trysquare.core.schema import Signature, function_name, read_signature
from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptArgument:
    """One argument of a prompt. Prompts take text only."""

    name: str
    description: str | None = None
    required: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptMessage:
    """One message of a rendered prompt."""

    content: Content
    role: Literal["user", "assistant"] = "user"


Render: TypeAlias = Callable[[dict[str, str], CallContext], Awaitable[Sequence[PromptMessage]]]
Complete: TypeAlias = Callable[[str, str, dict[str, str]], Awaitable[Sequence[str]]]
"""Completions for an argument: its name, what was typed, the other arguments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """A text that a person asks for by name."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]
    render: Render
    title: str | None = None
    complete: Complete | None = None
    examples: tuple[tuple[str, str], ...] = ()
    """Invocations and what each shows: `("@guide lang/python", "the Python guidelines")`."""


def prompt(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: str | None = None,
    complete: Complete | None = None,
    examples: tuple[tuple[str, str], ...] = (),
) -> Prompt:
    """Make a prompt of a function that takes text arguments and returns text, a message, or messages."""
    final_name = name or function_name(function)
    docstring = inspect.getdoc(function) or ""
    signature = read_signature(function)

    async def render(given: dict[str, str], context: CallContext) -> Sequence[PromptMessage]:
        bound = signature.bind(_parsed(signature, final_name, given), context)
        return _as_messages(await run_function(function, bound, context))

    return Prompt(
        name=final_name,
        title=title,
        description=summary_text(docstring),
        arguments=_arguments(signature.arguments.wire),
        render=render,
        complete=complete,
        examples=examples,
    )


def _arguments(schema: JsonObject) -> tuple[PromptArgument, ...]:
    required = schema.get("required", ())
    return tuple(
        PromptArgument(name=name, description=part.get("description"), required=name in required)
        for name, part in schema["properties"].items()
    )


def _parsed(signature: Signature, name: str, given: dict[str, str]) -> Any:
    try:
        return signature.arguments.parse(name, dict(given))
    except InvalidArguments as error:
        # The corrected call would be a tool's; a prompt is asked for by a person, who reads the message.
        raise InvalidArguments(error.message, code=error.code) from None


def _as_messages(returned: Any) -> Sequence[PromptMessage]:
    if isinstance(returned, Result):
        return (PromptMessage(content=Text(text=cast(Result[Any], returned).to_text())),)
    if isinstance(returned, str):
        return (PromptMessage(content=Text(text=returned)),)
    if isinstance(returned, PromptMessage):
        return (returned,)
    return tuple(message if isinstance(message, PromptMessage) else _as_messages(message)[0] for message in returned)
