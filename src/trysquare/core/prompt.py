"""Prompt: a text that a person asks for by name, made of messages."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from trysquare.core.content import Content, Text
from trysquare.core.context import CallContext
from trysquare.core.docstrings import argument_descriptions, summary_text
from trysquare.core.errors import DeclarationError, ErrorCode, InvalidArguments


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
    docstring = inspect.getdoc(function) or ""
    parameters = inspect.signature(function, eval_str=True).parameters
    context = next((key for key, value in parameters.items() if value.annotation is CallContext), None)
    arguments = _arguments(function, context, argument_descriptions(docstring))
    known = {argument.name for argument in arguments}

    async def render(given: dict[str, str], context_value: CallContext) -> Sequence[PromptMessage]:
        _check(given, arguments, known)
        bound: dict[str, Any] = dict(given)
        if context is not None:
            bound[context] = context_value
        returned = function(**bound)
        return _as_messages(await returned if inspect.isawaitable(returned) else returned)

    return Prompt(
        name=name or function.__name__,
        title=title,
        description=summary_text(docstring),
        arguments=arguments,
        render=render,
        complete=complete,
        examples=examples,
    )


def _arguments(
    function: Callable[..., Any], context: str | None, described: dict[str, str]
) -> tuple[PromptArgument, ...]:
    found: list[PromptArgument] = []
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if name == context:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise DeclarationError(f"Prompt `{function.__name__}` takes `*{name}`; name its arguments one by one.")
        required = parameter.default is inspect.Parameter.empty
        found.append(PromptArgument(name=name, description=described.get(name), required=required))
    return tuple(found)


def _check(given: dict[str, str], arguments: tuple[PromptArgument, ...], known: set[str]) -> None:
    missing = [argument.name for argument in arguments if argument.required and argument.name not in given]
    unknown = [name for name in given if name not in known]
    if missing:
        raise InvalidArguments(f"Missing: {', '.join(missing)}.", code=ErrorCode.VALIDATION_MISSING_PARAM)
    if unknown:
        raise InvalidArguments(
            f"Unknown: {', '.join(unknown)}. The arguments are {', '.join(sorted(known)) or 'none'}.",
            code=ErrorCode.VALIDATION_UNKNOWN_PARAM,
        )


def _as_messages(returned: Any) -> Sequence[PromptMessage]:
    if isinstance(returned, str):
        return (PromptMessage(content=Text(text=returned)),)
    if isinstance(returned, PromptMessage):
        return (returned,)
    return tuple(returned)
