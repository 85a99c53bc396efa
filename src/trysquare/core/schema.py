"""Arguments: from a function's signature to the schema that a client sees, and from a call to checked values."""

from __future__ import annotations

import inspect
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Protocol, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from trysquare.core.action_union import ActionUnion, fill_default_action
from trysquare.core.arguments import ToolArguments, model_schema
from trysquare.core.context import CallContext
from trysquare.core.docstrings import argument_descriptions
from trysquare.core.errors import DeclarationError, ErrorCode, InvalidArguments
from trysquare.core.healing import healed, unwrapped
from trysquare.core.plain_schema import plain_object_schema
from trysquare.core.tidy_schema import tidy
from trysquare.core.types import JsonObject

_building = threading.RLock()


class Arguments(Protocol):
    """What a tool takes."""

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


class ModelArguments:
    """Arguments given by one pydantic model."""

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model

    @property
    def wire(self) -> JsonObject:
        return self._wire

    @cached_property
    def _wire(self) -> JsonObject:
        return model_schema(self._model)

    @property
    def exact(self) -> JsonObject:
        return self.wire

    def parse(self, tool: str, raw: JsonObject) -> Any:
        inner = unwrapped(raw, self._model.model_fields)
        try:
            return self._model.model_validate(inner)
        except ValidationError as error:
            raise healed(error, tool=tool, raw=inner, schema=self.wire) from None


class UnionArguments:
    """Arguments given by one model for each action."""

    def __init__(self, models: tuple[type[BaseModel], ...]) -> None:
        self._union = ActionUnion(models)

    @property
    def wire(self) -> JsonObject:
        return self._wire

    @cached_property
    def _wire(self) -> JsonObject:
        return self._union.flat()

    @property
    def exact(self) -> JsonObject:
        return self._union.exact

    @cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        with _building:
            members: Any = Union[self._union.models]  # noqa: UP007 - built from a tuple
            exact: Any = Annotated[members, Field(discriminator="action")]
            return TypeAdapter[Any](exact)

    def parse(self, tool: str, raw: JsonObject) -> Any:
        filled = fill_default_action(unwrapped(raw, self.wire["properties"]), self._union.default_action())
        try:
            return self._adapter.validate_python(filled)
        except ValidationError as error:
            raise healed(_without_tags(error, filled), tool=tool, raw=filled, schema=self.wire) from None


def _without_tags(error: ValidationError, raw: JsonObject) -> ValidationError:
    """The same error with places as the caller knows them: pydantic puts the action's name in front."""
    lines: list[Any] = []
    for detail in error.errors(include_url=False):
        place = detail["loc"]
        if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
            kind, place = ("missing" if "action" not in raw else "enum"), ("action",)
            context = {"expected": detail.get("ctx", {}).get("expected_tags", "")}
            lines.append({"type": kind, "loc": place, "input": raw.get("action"), "ctx": context})
        else:
            lines.append({**detail, "loc": place[1:]})
    return ValidationError.from_exception_data(error.title, lines)


class FunctionArguments:
    """Arguments given by the parameters of a plain function. The model behind them is made at the first call."""

    def __init__(self, name: str, fields: dict[str, FieldInfo]) -> None:
        self._name = name
        self._fields = fields

    @property
    def wire(self) -> JsonObject:
        return self._wire

    @cached_property
    def _wire(self) -> JsonObject:
        plain = plain_object_schema(self._fields)
        return tidy(plain) if plain is not None else model_schema(self._model)

    @property
    def exact(self) -> JsonObject:
        return self.wire

    @cached_property
    def _model(self) -> type[BaseModel]:
        with _building:
            fields: Any = {name: (info.annotation, info) for name, info in self._fields.items()}
            return create_model(self._name, __config__=ConfigDict(extra="forbid"), **fields)

    def parse(self, tool: str, raw: JsonObject) -> Any:
        inner = unwrapped(raw, self._fields)
        try:
            checked = self._model.model_validate(inner)
        except ValidationError as error:
            raise healed(error, tool=tool, raw=inner, schema=self.wire) from None
        return {name: getattr(checked, name) for name in self._fields}


@dataclass(frozen=True, kw_only=True)
class GivenArguments:
    """Arguments whose schema comes from elsewhere, such as a server behind the gateway. They pass as they are."""

    wire: JsonObject

    @property
    def exact(self) -> JsonObject:
        return self.wire

    def parse(self, tool: str, raw: JsonObject) -> JsonObject:
        return raw


@dataclass(frozen=True, kw_only=True, slots=True)
class Signature:
    """How a function wants to be called: its arguments, and the names of its model and context parameters."""

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


def read_signature(function: Callable[..., Any]) -> Signature:
    """Read a function's signature: one `ToolArguments` parameter (or a union of them), or plain parameters."""
    hints = _hints(function)
    parameters = dict(inspect.signature(function).parameters)
    context = next((name for name in parameters if _is_context(hints.get(name))), None)
    parameters.pop(context or "", None)
    for parameter in parameters.values():
        _refuse_variadic(function, parameter)
    if len(parameters) == 1:
        [name] = parameters
        if models := _argument_models(hints.get(name)):
            arguments = ModelArguments(models[0]) if len(models) == 1 else UnionArguments(models)
            return Signature(arguments=arguments, model_parameter=name, context_parameter=context)
    fields = _fields(function, parameters, hints)
    return Signature(arguments=FunctionArguments(function.__name__, fields), context_parameter=context)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise DeclarationError(f"The annotations of `{function.__name__}` cannot be read: {error}.") from error


def _is_context(hint: Any) -> bool:
    return inspect.isclass(hint) and issubclass(hint, CallContext)


def _refuse_variadic(function: Callable[..., Any], parameter: inspect.Parameter) -> None:
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise DeclarationError(
            f"`{function.__name__}` takes `*{parameter.name}`; "
            f"a tool needs named parameters, so that its schema is closed."
        )


def _argument_models(hint: Any) -> tuple[type[BaseModel], ...]:
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if all(inspect.isclass(member) and issubclass(member, ToolArguments) for member in members):
        return cast(tuple[type[BaseModel], ...], members)
    return ()


def _fields(
    function: Callable[..., Any], parameters: dict[str, inspect.Parameter], hints: dict[str, Any]
) -> dict[str, FieldInfo]:
    described = argument_descriptions(inspect.getdoc(function) or "") if parameters else {}
    fields: dict[str, FieldInfo] = {}
    for name, parameter in parameters.items():
        if name not in hints:
            raise DeclarationError(
                f"Parameter `{name}` of `{function.__name__}` has no annotation. Write its type, e.g. `{name}: str`."
            )
        fields[name] = _field(hints[name], parameter.default, described.get(name))
    return fields


def _field(hint: Any, default: Any, described: str | None) -> FieldInfo:
    if default is inspect.Parameter.empty:
        info = FieldInfo.from_annotation(hint)
    else:
        info = FieldInfo.from_annotated_attribute(hint, default)
    if described and not info.description:
        info.description = described
    return info


def require_object(raw: Any) -> JsonObject:
    """The arguments as an object, or a clear refusal."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise InvalidArguments(
            f"Arguments must be a JSON object, not {type(raw).__name__}.",
            code=ErrorCode.VALIDATION_INVALID_REQUEST,
            instruction='Send the arguments as an object, such as {"name": "value"}.',
        )
    return cast(JsonObject, raw)
