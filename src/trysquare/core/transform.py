"""transform_tool: a tool made of another one, with other names, descriptions, defaults and fixed arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Unpack

from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError, InvalidArguments, ToolError
from trysquare.core.json import JsonObject, as_object, properties_of
from trysquare.core.metadata import Example, MetadataOptions, checked_options
from trysquare.core.result import Result
from trysquare.core.schema.build import normalize_schema
from trysquare.core.schema.errors import argument_error, unwrap_arguments
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool, tool

if TYPE_CHECKING:
    from trysquare.core.schema.validator import InputValidator

_UNSET: Final[Any] = object()
_KEPT = ("consent", "right")


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """How an argument of a tool is listed by the tool that `transform_tool` makes of it. What is left out stays."""

    name: str | None = None
    description: str | None = None
    default: Any = _UNSET
    """Its value where a call leaves it out. The argument is optional then."""
    required: bool = False
    """Whether a call must give it, although the tool has a default."""
    fixed: Any = _UNSET
    """Its value in every call, or a function that takes the context and returns it. The argument is not listed."""
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else must hold, in words of JSON Schema: `{"maximum": 10}`."""

    def __post_init__(self) -> None:
        if self.required and self.default is not _UNSET:
            raise DeclarationError("An argument with a default is not required: leave out one of the two.")
        listed = self.name or self.description or self.has_default or self.required or self.schema
        if self.is_fixed and listed:
            raise DeclarationError("A fixed argument is not listed: leave out its name, description and the rest.")

    @property
    def is_fixed(self) -> bool:
        """Whether every call has the same value, or one of the context."""
        return self.fixed is not _UNSET

    @property
    def has_default(self) -> bool:
        """Whether it brings a default of its own."""
        return self.default is not _UNSET

    def listed(self, part: JsonObject) -> JsonObject:
        """The schema of the argument, made of the one that the tool has."""
        changed: JsonObject = {**part, **self.schema}
        if self.description is not None:
            changed["description"] = self.description
        if self.has_default:
            changed["default"] = self.default
        elif self.required:
            changed.pop("default", None)
        return changed


_SAME = Argument()


def transform_tool(
    source: Tool | Callable[..., Any],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    arguments: Mapping[str, Argument] | None = None,
    **options: Unpack[MetadataOptions],
) -> Tool:
    """Make a tool of another tool or of a function: renamed, described anew, with other arguments.

    `arguments` are those that change, by their present names. `options` are as for `Tools.tool`; consent and rights are
    always those of the tool that is called in the end. Calls and errors use the new names only.
    """
    made = source if isinstance(source, Tool) else tool(source)
    if kept := [option for option in _KEPT if option in options]:
        raise DeclarationError(f"`{kept[0]}` stays that of `{made.name}`. Set it where that tool is declared.")
    names = _Names(tool=made, name=name or made.name, changes=arguments or {})
    listed = _Transformed(names)
    names.check(listed.wire)

    async def call(given: JsonObject, context: CallContext) -> Result[Any]:
        inward = await names.inward(listed.parse(names.name, given), context)
        try:
            result = await made.call(inward, context)
        except InvalidArguments as error:
            raise names.reworded(error) from error
        except ToolError as error:
            error.next = names.outward(error.next)
            raise
        following = names.outward(result.next)
        return result if following is result.next else replace(result, next=following)

    metadata = replace(made.metadata, **{"examples": names.examples(), **checked_options(options)})
    return made.wrapped(
        call,
        name=names.name,
        title=title or made.title,
        description=description or made.description,
        arguments=listed,
        metadata=metadata,
        output=made.output if metadata.output_schema else None,
    )


class _Transformed:
    """The arguments of the new tool. They are validated under their new names, so that errors use them."""

    def __init__(self, names: _Names) -> None:
        self._names = names

    @cached_property
    def wire(self) -> JsonObject:
        """The closed object of the arguments that are listed."""
        whole, changes = self._names.tool.input_schema, self._names.changes
        needed, properties, required = whole.get("required", ()), dict[str, Any](), list[str]()
        for name, part in properties_of(whole).items():
            change = changes.get(name, _SAME)
            if change.is_fixed:
                continue
            final = change.name or name
            if final in properties:
                raise DeclarationError(f"`{self._names.name}` would have two arguments `{final}`. Rename one of them.")
            properties[final] = change.listed(as_object(part))
            if change.required or (name in needed and not change.has_default):
                required.append(final)
        return normalize_schema({**whole, "properties": properties, "required": required})

    @property
    def exact(self) -> JsonObject:
        """The same: what narrows it further is checked by the tool that is called."""
        return self.wire

    @cached_property
    def _validator(self) -> InputValidator:
        from trysquare.core.schema.validator import input_validator

        return input_validator(self.wire)

    def parse(self, tool: str, raw: JsonObject) -> JsonObject:
        """The arguments under their new names; what is only written differently is read, as for any tool."""
        if self._validator.accepts(raw):
            return raw
        from trysquare.core.schema.coercion import coercions
        from trysquare.core.schema.draft import ArgumentsDraft

        inner = unwrap_arguments(raw, self.wire["properties"])
        given = {key: value for key, value in inner.items() if not self._is_blank(key, value)}
        draft = ArgumentsDraft(given, self.wire, self._validator.compiled.problems)
        draft.try_values(draft.problems(), coercions)
        if problems := draft.problems():
            raise argument_error(draft, problems, lambda fitting: {"tool": tool, "arguments": fitting})
        return draft.arguments

    def _is_blank(self, name: str, value: Any) -> bool:
        """Whether an optional argument is given as null or "" where neither fits, as some clients do."""
        from trysquare.core.schema.validator import compile_schema

        if value not in (None, "") or name not in self.wire["properties"] or name in self.wire.get("required", ()):
            return False
        part = {**as_object(self.wire["properties"][name]), "$defs": self.wire.get("$defs", {})}
        return not compile_schema(part).fits(value)


@dataclass(frozen=True, kw_only=True)
class _Names:
    """The arguments of a tool, and what the new one calls them."""

    tool: Tool
    name: str
    changes: Mapping[str, Argument]

    @cached_property
    def _final(self) -> dict[str, str]:
        """The new names of the arguments that are listed."""
        known = properties_of(self.tool.input_schema)
        changes = {name: self.changes.get(name, _SAME) for name in known}
        return {name: change.name or name for name, change in changes.items() if not change.is_fixed}

    def check(self, listed: JsonObject) -> None:
        """Refuse changes of arguments that the tool does not have, and values that do not fit."""
        from trysquare.core.schema.validator import compile_schema

        whole = self.tool.input_schema
        known = properties_of(whole)
        for name, change in self.changes.items():
            if name not in known:
                near = closest_names(name, known)
                hint = f"Did you mean `{near[0]}`?" if near else f"It has {', '.join(f'`{one}`' for one in known)}."
                raise DeclarationError(f"`{self.tool.name}` has no argument `{name}`. {hint}")
            part = as_object(known[name] if change.is_fixed else listed["properties"][self._final[name]])
            value = change.fixed if change.is_fixed else change.default
            if value is _UNSET or (change.is_fixed and callable(value)):
                continue
            if not compile_schema({**part, "$defs": whole.get("$defs", {})}).fits(value):
                raise DeclarationError(f"`{name}` of `{self.tool.name}` cannot be {value!r}.")

    async def inward(self, given: JsonObject, context: CallContext) -> JsonObject:
        """The arguments of the tool that is called."""
        arguments: JsonObject = {name: given[final] for name, final in self._final.items() if final in given}
        for name, change in self.changes.items():
            if change.is_fixed:
                value = change.fixed(context) if callable(change.fixed) else change.fixed
                arguments[name] = await value if inspect.isawaitable(value) else value
            elif change.has_default:
                arguments.setdefault(name, change.default)
        return arguments

    def outward(self, following: JsonObject | None) -> JsonObject | None:
        """A proposed call of the tool as one of the new one; any other as it is."""
        if following is None or following.get("tool") != self.tool.name:
            return following
        return {**following, "tool": self.name, "arguments": self._renamed(as_object(following.get("arguments")))}

    def reworded(self, error: InvalidArguments) -> InvalidArguments:
        """What the tool says of its arguments, with their new names."""
        message, instruction = error.message, error.instruction or ""
        for name, final in self._final.items():
            message, instruction = (text.replace(f"`{name}`", f"`{final}`") for text in (message, instruction))
        return InvalidArguments(
            message, code=error.code, instruction=instruction, next=self.outward(error.next), fields=error.fields
        )

    def examples(self) -> tuple[Example, ...]:
        """The examples of the tool, with the new names."""
        return tuple(replace(each, arguments=self._renamed(each.arguments)) for each in self.tool.metadata.examples)

    def _renamed(self, arguments: Mapping[str, Any]) -> JsonObject:
        return {self._final[name]: part for name, part in arguments.items() if name in self._final}
