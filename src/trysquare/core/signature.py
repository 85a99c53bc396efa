"""Function signatures as tool arguments: the schema that clients see, and calls parsed into checked values."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Protocol, Union, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.fields import FieldInfo

from trysquare.core.arguments import LazyArguments, ToolArguments, UnionArguments, model_schema
from trysquare.core.context import CallContext
from trysquare.core.docstrings import read_docstring
from trysquare.core.errors import DeclarationError
from trysquare.core.hints import bound_names, docstring_of, function_name, hints_of, location_of
from trysquare.core.injection import InjectionPlan, ValueSources, plan_injection
from trysquare.core.json import JsonObject, properties_of
from trysquare.core.schema.build import (
    annotation_schema,
    closed_object_schema,
    normalize_schema,
    plain_field_schema,
    with_default,
    without_own_words,
)
from trysquare.core.schema.errors import WRAPPER_KEYS, unwrap_arguments, validate_arguments
from trysquare.core.text import truncated_repr

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
        if self.default is inspect.Parameter.empty:
            # `Annotated[int, Field(default=1)]` has its default in the annotation.
            has_field = any(isinstance(part, FieldInfo) for part in _metadata(self.hint))
            return not has_field or self.field().is_required()
        return isinstance(self.default, FieldInfo) and self.default.is_required()

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


class _UndefinedName(DeclarationError):
    """A type of an argument names a class that is not defined yet, or never."""


def _missing_name(model: type[BaseModel]) -> str:
    try:
        model.model_rebuild(force=True)
    except PydanticUndefinedAnnotation as error:
        return f": name `{error.name}` is not defined"
    except PydanticUserError:
        pass
    return ""


class FunctionArguments(_OneModelArguments):
    """Arguments given by the parameters of a plain function. The model behind them is made at the first call."""

    def __init__(self, name: str, parameters: dict[str, Parameter], location: str | None = None) -> None:
        self._name = name
        self._parameters = parameters
        self._location = location

    @cached_property
    def _wire(self) -> JsonObject:
        plain = closed_object_schema(self._parameters, Parameter.plain_schema, Parameter.is_required)
        if plain is not None:
            return normalize_schema(plain)
        try:
            return model_schema(self._model)
        except (PydanticUndefinedAnnotation, PydanticUserError) as error:
            if error.code not in ("undefined-annotation", "class-not-fully-defined"):
                raise
            raise _UndefinedName(
                f"An argument of `{self._name}` has a type that is not complete{_missing_name(self._model)}. "
                "Define or import what its annotations name.",
                location=self._location,
            ) from error

    @cached_property
    def _model(self) -> type[BaseModel]:
        # The model's own names differ from the parameters', which may be names that pydantic keeps to itself.
        infos = {name: parameter.field() for name, parameter in self._parameters.items()}
        fields: Any = {_PARAMETER + name: (info.annotation, info) for name, info in infos.items()}
        # A union may have choices that no JSON is; the others are listed.
        config = ConfigDict(
            extra="forbid", alias_generator=lambda name: name.removeprefix(_PARAMETER), arbitrary_types_allowed=True
        )
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


_NOTHING = InjectionPlan()


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """The arguments of a function, the name of its model parameter, and the parameters that are filled in."""

    arguments: Arguments
    model_parameter: str | None = None
    injected: InjectionPlan = _NOTHING
    returns: Any = None
    """The return annotation; None where there is none."""

    def bind(self, parsed: Any, context: CallContext) -> dict[str, Any]:
        """The keyword arguments of one call, without those of dependencies."""
        bound: dict[str, Any] = dict(parsed) if self.model_parameter is None else {self.model_parameter: parsed}
        for name, source in self.injected.sources.items():
            bound[name] = source(context)
        return bound


def inspect_signature(function: Callable[..., Any], values: ValueSources | None = None) -> Signature:
    """Read a function's signature: one `ToolArguments` parameter (or a union of them), or plain parameters.

    `values` are what the lifespans of its module yield.
    """
    _refuse_unbound(function)
    hints = hints_of(function)
    every = _parameters(function)
    injected = plan_injection(function, every, hints, values)
    parameters = {name: each for name, each in every.items() if name not in injected.names()}
    for parameter in every.values():
        _refuse_unnamed(function, parameter, hints.get(parameter.name), every)
    if len(parameters) == 1:
        [name] = parameters
        if models := _argument_models(hints.get(name)):
            arguments = ModelArguments(models[0]) if len(models) == 1 else UnionArguments(models)
            _require_schema(function, arguments, {})
            return Signature(arguments=arguments, model_parameter=name, injected=injected, returns=hints.get("return"))
    named = _named_parameters(function, parameters, hints)
    arguments = FunctionArguments(function_name(function), named, location_of(function))
    _require_schema(function, arguments, named)
    return Signature(arguments=arguments, injected=injected, returns=hints.get("return"))


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters that a call can give; those that a partial function has filled in are not among them."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise DeclarationError(
            f"`{function_name(function)}` has no signature that can be read ({error}). Write a function around it."
        ) from None
    filled = bound_names(function)
    return {name: each for name, each in parameters.items() if name not in filled}


def _require_schema(function: Callable[..., Any], arguments: Arguments, parameters: Mapping[str, Parameter]) -> None:
    """Make the schema now: a type that has none is the author's mistake, and must not wait for a client to find it."""
    try:
        _ = arguments.wire
    except (_UndefinedName, PydanticUndefinedAnnotation):
        # A model may name a class that is written further down; the schema is made when it is first needed.
        return
    except (PydanticUserError, ValueError, TypeError) as error:
        reason = str(error).split("\n", 1)[0]
        for name, parameter in parameters.items():
            if not _has_schema(parameter.hint):
                raise DeclarationError(
                    f"Parameter `{name}` of `{function_name(function)}` has the type `{_type_name(parameter.hint)}`, "
                    "which has no JSON schema. Use a type of JSON, a dataclass or a pydantic model; or have it filled "
                    f"in: `{name}: Annotated[{_type_name(parameter.hint)}, Depends(function)]`, or by a lifespan that "
                    "is declared above and yields this type."
                ) from error
        raise DeclarationError(f"A parameter of `{function_name(function)}` has no JSON schema: {reason}") from error


def argument_names(arguments: Arguments) -> tuple[str, ...] | None:
    """The names that a call can give; None while one of the types is not defined."""
    try:
        return tuple(properties_of(arguments.wire))
    except (_UndefinedName, PydanticUndefinedAnnotation):
        return None


def _has_schema(hint: Any) -> bool:
    try:
        TypeAdapter(hint).json_schema()
    except (PydanticUserError, ValueError, TypeError):
        return False
    return True


def _type_name(hint: Any) -> str:
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return bare.__name__ if isinstance(bare, type) and not get_args(bare) else str(bare)


def _refuse_unbound(function: Any) -> None:
    name = function_name(function)
    if isinstance(function, classmethod):
        raise DeclarationError(
            f"`{name}` is a class method that has no class yet. Declare it after its class: `tools.tool(Class.{name})`."
        )
    if not callable(function):
        raise DeclarationError(f"A value of type `{type(function).__name__}` is not a function. Declare a function.")
    if inspect.isclass(function):
        raise DeclarationError(f"`{name}` is a class. Declare a function, or a method of an instance of it.")
    holder = getattr(function, "__qualname__", "").rpartition(".")[0]
    first = next(iter(_parameters(function)), None)
    if inspect.isfunction(function) and holder and not holder.endswith("<locals>") and first in ("self", "cls"):
        raise DeclarationError(
            f"`{name}` is a method of a class. Declare it on an instance: `tools.tool({holder}().{name})`."
        )


def _refuse_unnamed(
    function: Callable[..., Any], parameter: inspect.Parameter, hint: Any, every: Mapping[str, inspect.Parameter]
) -> None:
    name = function_name(function)
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        is_list, item = parameter.kind is inspect.Parameter.VAR_POSITIONAL, "str" if hint is None else _type_name(hint)
        advice = f"Write `{parameter.name}: {f'list[{item}]' if is_list else f'dict[str, {item}]'}` instead."
        if {each.kind for each in every.values()} == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            advice = "If it is the inner function of a decorator, put `@functools.wraps(function)` above it."
        raise DeclarationError(
            f"`{name}` takes `{'*' if is_list else '**'}{parameter.name}`; a tool needs named parameters, so that its "
            f"schema is closed. {advice}"
        )
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise DeclarationError(
            f"`{name}` takes `{parameter.name}` by position only; remove the `/`, since a call names its arguments."
        )


def _argument_models(hint: Any) -> tuple[type[BaseModel], ...]:
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if all(inspect.isclass(member) and issubclass(member, ToolArguments) for member in members):
        return cast(tuple[type[BaseModel], ...], members)
    return ()


def _named_parameters(
    function: Callable[..., Any], parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> dict[str, Parameter]:
    described = read_docstring(docstring_of(function)).arguments if parameters else {}
    named: dict[str, Parameter] = {}
    for name, parameter in parameters.items():
        # Without an annotation any JSON value is taken; `trysquare check` asks for a type.
        hint = hints.get(name, Any)
        described_by = _text_in(hint) or described.get(name)
        _refuse_wrong_default(function, parameter, hint)
        named[name] = Parameter(hint=_without_texts(hint), default=parameter.default, described=described_by)
    return named


_PLAIN: Mapping[Any, tuple[type[Any], ...]] = {int: (int,), float: (int, float), str: (str,), bool: (int,)}
"""Plain types, and the types of their values."""


def _refuse_wrong_default(function: Callable[..., Any], parameter: inspect.Parameter, hint: Any) -> None:
    """Refuse a default that is plainly of another type: a call without the argument would pass it on unchecked."""
    default = parameter.default
    expected = _PLAIN.get(hint) if isinstance(hint, type) else None
    is_plain = isinstance(default, (str, int, float, list, dict, tuple, set))
    if expected is not None and is_plain and not isinstance(default, expected):
        raise DeclarationError(
            f"`{parameter.name}` of `{function_name(function)}` is annotated `{_type_name(hint)}`, and its default is "
            f"{truncated_repr(default)}. Change one of them."
        )


def _metadata(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _text_in(hint: Any) -> str | None:
    """The description in `Annotated[str, "text"]`, or in PEP 727's `Doc("text")`."""
    for part in _metadata(hint):
        text = part if isinstance(part, str) else getattr(part, "documentation", None)
        if isinstance(text, str) and text.strip():
            return text.strip()
    return None


def _without_texts(hint: Any) -> Any:
    """The annotation without plain texts: a type with nothing else beside it is a plain type."""
    kept = tuple(part for part in _metadata(hint) if not isinstance(part, str))
    if get_origin(hint) is not Annotated or len(kept) == len(_metadata(hint)):
        return hint
    bare = get_args(hint)[0]
    return Annotated[(bare, *kept)] if kept else bare  # pyright: ignore[reportInvalidTypeForm]
