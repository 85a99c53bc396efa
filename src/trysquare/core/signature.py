"""Function signatures as tool arguments: the schema that clients see, and calls parsed into checked values."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Union, cast, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    ConfigDict,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo

from trysquare.core.arguments import LazyArguments, ToolArguments, UnionArguments, model_schema
from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError
from trysquare.core.json import JsonObject
from trysquare.core.schema.build import (
    annotation_schema,
    closed_object_schema,
    normalize_schema,
    plain_field_schema,
    with_default,
    without_own_words,
)
from trysquare.core.schema.errors import WRAPPER_KEYS, unwrap_arguments, validate_arguments

_PARAMETER = "parameter_"


class Arguments(Protocol):
    """The arguments of a tool."""

    @property
    def wire(self) -> JsonObject:
        """One flat closed object: the schema that clients see."""
        ...

    @property
    def exact(self) -> JsonObject:
        """What validation holds; the same as `wire`, or narrower."""
        ...

    def parse(self, tool: str, raw: JsonObject) -> Any:
        """The checked value, or `InvalidArguments` with the corrected call."""
        ...


class _OneModelArguments(LazyArguments):
    """Arguments that one pydantic model validates."""

    def _validate(self, tool: str, raw: JsonObject, model: type[BaseModel]) -> Any:
        is_wrapped = len(raw) == 1 and next(iter(raw)) in WRAPPER_KEYS
        inner = unwrap_arguments(raw, self._wire["properties"]) if is_wrapped else raw
        try:
            return model.model_validate(inner, extra="forbid")
        except ValidationError:
            return validate_arguments(model.model_validate, tool=tool, raw=inner, schema=lambda: self._wire)


class ModelArguments(_OneModelArguments):
    """Arguments given by one pydantic model."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    @cached_property
    def _wire(self) -> JsonObject:
        return without_own_words(self.exact)

    @property
    def exact(self) -> JsonObject:
        return self._exact

    @cached_property
    def _exact(self) -> JsonObject:
        return model_schema(self._model)

    def parse(self, tool: str, raw: JsonObject) -> Any:
        return self._validate(tool, raw, self._model)


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One parameter of a plain function. Pydantic's view of it is made only where it is needed."""

    hint: Any
    default: Any
    described: str | None

    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty or (
            isinstance(self.default, FieldInfo) and self.default.is_required()
        )

    def field(self) -> FieldInfo:
        if self.default is inspect.Parameter.empty:
            info = FieldInfo.from_annotation(self.hint)
        else:
            info = FieldInfo.from_annotated_attribute(self.hint, self.default)
        if self.described and not info.description:
            info.description = self.described
        return info

    def plain_schema(self) -> JsonObject | None:
        """The schema of a plain parameter, or None if pydantic has to be asked."""
        schema = None if isinstance(self.default, FieldInfo) else annotation_schema(self.hint)
        if schema is None:
            return plain_field_schema(self.field())
        if self.described:
            schema["description"] = self.described
        return schema if self.is_required() else with_default(schema, self.default)


class FunctionArguments(_OneModelArguments):
    """Arguments given by the parameters of a plain function. The model behind them is made at the first call."""

    def __init__(self, name: str, parameters: dict[str, Parameter]) -> None:
        self._name = name
        self._parameters = parameters

    @cached_property
    def _wire(self) -> JsonObject:
        plain = closed_object_schema(self._parameters, Parameter.plain_schema, Parameter.is_required)
        return normalize_schema(plain) if plain is not None else model_schema(self._model)

    @cached_property
    def _model(self) -> type[BaseModel]:
        # The model's own names differ from the parameters', which may be names that pydantic keeps to itself.
        infos = {name: parameter.field() for name, parameter in self._parameters.items()}
        fields: Any = {_PARAMETER + name: (info.annotation, info) for name, info in infos.items()}
        config = ConfigDict(extra="forbid", alias_generator=lambda name: name.removeprefix(_PARAMETER))
        return create_model(self._name, __config__=config, **fields)

    def parse(self, tool: str, raw: JsonObject) -> JsonObject:
        values = self._validate(tool, raw, self._model).__dict__
        return {name: values[_PARAMETER + name] for name in self._parameters}


@dataclass(frozen=True, kw_only=True)
class PassthroughArguments:
    """Arguments whose schema comes from elsewhere, such as a server behind the gateway. They pass as they are."""

    wire: JsonObject

    @property
    def exact(self) -> JsonObject:
        return self.wire

    def parse(self, tool: str, raw: JsonObject) -> JsonObject:
        return raw


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """The arguments of a function, and the names of its model and context parameters."""

    arguments: Arguments
    model_parameter: str | None = None
    context_parameter: str | None = None

    def bind(self, parsed: Any, context: CallContext) -> dict[str, Any]:
        """The keyword arguments of one call."""
        bound: dict[str, Any] = dict(parsed) if self.model_parameter is None else {self.model_parameter: parsed}
        if self.context_parameter is not None:
            bound[self.context_parameter] = context
        return bound


def function_name(function: Callable[..., Any]) -> str:
    """The name under which a function was written; a callable object goes by its class."""
    return getattr(function, "__name__", None) or type(function).__name__


def inspect_signature(function: Callable[..., Any]) -> Signature:
    """Read a function's signature: one `ToolArguments` parameter (or a union of them), or plain parameters."""
    hints = _hints(function)
    parameters = dict(inspect.signature(function).parameters)
    context = next((name for name in parameters if _is_context(hints.get(name))), None)
    parameters.pop(context or "", None)
    for parameter in parameters.values():
        _refuse_unnamed(function, parameter)
    if len(parameters) == 1:
        [name] = parameters
        if models := _argument_models(hints.get(name)):
            arguments = ModelArguments(models[0]) if len(models) == 1 else UnionArguments(models)
            _require_schema(function, arguments)
            return Signature(arguments=arguments, model_parameter=name, context_parameter=context)
    arguments = FunctionArguments(function_name(function), _named_parameters(function, parameters, hints))
    _require_schema(function, arguments)
    return Signature(arguments=arguments, context_parameter=context)


def context_parameter(function: Callable[..., Any]) -> str | None:
    """The name of the parameter that takes the context, whatever it is called."""
    return next((name for name, hint in _hints(function).items() if _is_context(hint) and name != "return"), None)


def _require_schema(function: Callable[..., Any], arguments: Arguments) -> None:
    """Make the schema now: a type that has none is the author's mistake, and must not wait for a client to find it."""
    try:
        _ = arguments.wire
    except PydanticUndefinedAnnotation:
        # A model may name a class that is written further down; the schema is made when it is first needed.
        return
    except (PydanticUserError, ValueError) as error:
        reason = str(error).split("\n", 1)[0]
        raise DeclarationError(f"A parameter of `{function_name(function)}` has no JSON schema: {reason}") from error


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    written = function if inspect.isroutine(function) else getattr(function, "func", type(function).__call__)
    try:
        return get_type_hints(written, include_extras=True)
    except (NameError, TypeError) as error:
        raise DeclarationError(
            f"The annotations of `{function_name(function)}` cannot be read: {error}. "
            "They must be defined at the top of the module."
        ) from error


def _is_context(hint: Any) -> bool:
    return hint is CallContext or CallContext in get_args(hint)


def _refuse_unnamed(function: Callable[..., Any], parameter: inspect.Parameter) -> None:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise DeclarationError(
            f"`{function_name(function)}` takes `*{parameter.name}`; "
            "a tool needs named parameters, so that its schema is closed."
        )
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise DeclarationError(
            f"`{function_name(function)}` takes `{parameter.name}` by position only; "
            "remove the `/`, since a call names its arguments."
        )


def _argument_models(hint: Any) -> tuple[type[BaseModel], ...]:
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if all(inspect.isclass(member) and issubclass(member, ToolArguments) for member in members):
        return cast(tuple[type[BaseModel], ...], members)
    return ()


def _named_parameters(
    function: Callable[..., Any], parameters: dict[str, inspect.Parameter], hints: dict[str, Any]
) -> dict[str, Parameter]:
    described = argument_descriptions(inspect.getdoc(function) or "") if parameters else {}
    named: dict[str, Parameter] = {}
    for name, parameter in parameters.items():
        if name not in hints:
            raise DeclarationError(
                f"Parameter `{name}` of `{function_name(function)}` has no annotation. "
                f"Write its type, e.g. `{name}: str`."
            )
        named[name] = Parameter(hint=hints[name], default=parameter.default, described=described.get(name))
    return named


_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Examples?|Notes?):\s*$", re.MULTILINE)
_ENTRY = re.compile(r"^(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")


def summary_text(docstring: str) -> str:
    """The docstring up to its first section."""
    found = _SECTION.search(docstring)
    return docstring[: found.start()].strip() if found else docstring.strip()


def argument_descriptions(docstring: str) -> dict[str, str]:
    """What an `Args:` section says of each argument, continued lines joined."""
    lines = _arguments_section(docstring)
    described: dict[str, str] = {}
    current, indent = "", 0
    for line in lines:
        entry = _ENTRY.match(line)
        if entry and (not current or len(entry[1]) <= indent):
            current, indent = entry[2], len(entry[1])
            described[current] = entry[3].strip()
        elif current and line.strip():
            described[current] += " " + line.strip()
    return described


def _arguments_section(docstring: str) -> list[str]:
    for found in _SECTION.finditer(docstring):
        if found[1] in ("Args", "Arguments", "Parameters"):
            following = _SECTION.search(docstring, found.end())
            return docstring[found.end() : following.start() if following else None].splitlines()
    return []
