"""Prompts: messages that a user picks in a client, made by functions."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast, get_args

from trysquare.core.content import Content, Text
from trysquare.core.context import CallContext
from trysquare.core.docstrings import read_docstring
from trysquare.core.errors import DeclarationError, ErrorCode, InvalidArguments, ToolError
from trysquare.core.hints import declaring, docstring_of, function_name
from trysquare.core.injection import ValueSources
from trysquare.core.json import JsonObject, as_object
from trysquare.core.metadata import Icon
from trysquare.core.result import Result
from trysquare.core.signature import Signature, inspect_signature
from trysquare.core.tool import function_runner

PROMPTS_SCOPE = "prompts"
"""The scope that a scoped token needs for prompts, which belong to no toolset."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptArgument:
    """One argument of a prompt, always a string."""

    name: str
    description: str | None = None
    required: bool = False
    title: str | None = None
    """What people are shown in place of the name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptMessage:
    """One message of a rendered prompt."""

    content: Content | str
    role: Literal["user", "assistant"] = "user"


Render: TypeAlias = Callable[[dict[str, str], CallContext], Awaitable[Sequence[PromptMessage]]]
Complete: TypeAlias = Callable[[str, str, dict[str, str]], Awaitable[Sequence[str]]]
"""Completions for an argument: its name, what was typed, the other arguments."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """A template that the user asks for by name, rendered to messages."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]
    render: Render
    title: str | None = None
    complete: Complete | None = None
    examples: tuple[tuple[str, str], ...] = ()
    """Invocations and what each shows: `("@guide lang/python", "the Python guidelines")`."""
    icons: tuple[Icon, ...] = ()
    tags: frozenset[str] = frozenset()
    """Words to choose by, as a tool has them."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


def prompt(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    complete: Complete | None = None,
    examples: tuple[tuple[str, str], ...] = (),
    icons: tuple[Icon, ...] = (),
    tags: frozenset[str] = frozenset(),
    meta: Mapping[str, Any] | None = None,
    values: ValueSources | None = None,
) -> Prompt:
    """Make a prompt from a function that takes string arguments and returns text, a message, or messages."""
    final_name = name or function_name(function)
    with declaring(function):
        signature = inspect_signature(function, values)
        if inspect.signature(function).return_annotation in (None, "None"):
            raise DeclarationError(f"The prompt `{final_name}` returns None; let it return text or messages.")
    schema = signature.arguments.wire
    run = function_runner(function, signature)

    async def render(given: dict[str, str], context: CallContext) -> Sequence[PromptMessage]:
        return _as_messages(final_name, await run(parse_strings(signature, final_name, given), context))

    return Prompt(
        name=final_name,
        title=title,
        description=description or read_docstring(docstring_of(function)).prose,
        arguments=tuple(
            PromptArgument(name=name, description=part.get("description"), required=name in schema.get("required", ()))
            for name, part in schema["properties"].items()
        ),
        render=render,
        complete=complete,
        examples=examples,
        icons=icons,
        tags=frozenset(tags),
        meta=meta or {},
    )


def parse_strings(signature: Signature, name: str, given: dict[str, str]) -> Any:
    """The arguments of a prompt or a resource, which come as strings, as the types of the parameters."""
    properties: JsonObject = signature.arguments.wire["properties"]
    read = {key: _from_json(text, as_object(properties.get(key))) for key, text in given.items()}
    try:
        return signature.arguments.parse(name, read)
    except InvalidArguments as error:
        # The corrected call would be a tool's; whoever asked for a prompt or a resource reads the message.
        raise InvalidArguments(error.message, code=error.code) from None


def _from_json(text: str, schema: JsonObject) -> Any:
    """A list or an object, which is written as JSON; other texts as they are."""
    if schema.get("type") not in ("array", "object"):
        return text
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def _as_messages(name: str, returned: Any) -> Sequence[PromptMessage]:
    if isinstance(returned, (str, PromptMessage, Result)) or not isinstance(returned, Iterable):
        return (_as_message(name, returned),)
    return tuple(_as_message(name, part) for part in cast(Iterable[Any], returned))


def _as_message(name: str, part: Any) -> PromptMessage:
    message = part if isinstance(part, PromptMessage) else PromptMessage(content=part)
    content: Any = message.content
    if isinstance(content, Result):
        content = cast(Result[Any], content).to_text()
    if isinstance(content, str):
        return replace(message, content=Text(text=content))
    if isinstance(content, get_args(Content)):
        return message
    wrong = type(content).__name__
    text = f"The prompt `{name}` returned {wrong} where text, a message or a content block was expected."
    raise ToolError(text, code=ErrorCode.TOOL_FAILED)
