"""ToolArguments: base model of arguments, and unions of them by action."""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from trysquare.core.errors import DeclarationError
from trysquare.core.json import JsonObject, choices_of, properties_of
from trysquare.core.schema.build import normalize_schema, plain_object_schema, without_own_words
from trysquare.core.schema.describe import schema_markdown
from trysquare.core.schema.errors import unwrap_arguments, validate_arguments

T = TypeVar("T")


class DrainableRegistry(Generic[T]):
    """Values by name, in the order in which they were added."""

    def __init__(self, kind: str, advice: str = "another name with name=…") -> None:
        self._kind, self._advice = kind, advice
        self._things: dict[str, T] = {}
        # A plain lock: decorators run while modules are imported, where no event loop exists to hold an asyncio lock.
        self._lock = threading.Lock()

    def add(self, name: str, thing: T) -> None:
        """Add a value under a name that is still free."""
        with self._lock:
            if name in self._things:
                raise DeclarationError(f"{self._kind} `{name}` is declared twice. Give one of the two {self._advice}")
            self._things[name] = thing

    def all(self) -> dict[str, T]:
        """What is there now, and stays there."""
        with self._lock:
            return dict(self._things)

    def take(self) -> dict[str, T]:
        """What is there now; the registry is empty afterwards, so that nothing is registered twice."""
        with self._lock:
            taken, self._things = self._things, {}
            return taken


F = TypeVar("F", bound=Callable[..., Any])


class ToolArguments(BaseModel):
    """The arguments of one tool: closed, so that a wrong name is refused and never silently dropped."""

    # Validators are compiled at the first call: a server with a thousand tools starts without any of them.
    model_config = ConfigDict(extra="forbid", validate_assignment=True, defer_build=True)

    _declared: ClassVar[DrainableRegistry[Callable[..., Any]]] = DrainableRegistry("Tool")

    @classmethod
    def declare(cls, function: F) -> F:
        """Remember a function as a tool and return it unchanged. `Tools` is the fuller way."""
        ToolArguments._declared.add(function.__name__, function)
        return function

    @classmethod
    def get_declared_tools(cls) -> dict[str, Callable[..., Any]]:
        """The functions declared since the last time, once: a second call returns nothing."""
        return ToolArguments._declared.take()

    @classmethod
    def to_schema_markdown(cls) -> str:
        """The arguments as a Markdown list: name, type, required or optional, description."""
        return schema_markdown(model_schema(cls))

    @classmethod
    def build_tool_description(cls, function: Callable[..., Any]) -> str:
        """The function's docstring with the arguments listed after it."""
        text = inspect.getdoc(function) or ""
        return f"{text}\n\n{cls.to_schema_markdown()}".strip()


def model_schema(model: type[BaseModel]) -> JsonObject:
    """The closed schema of a model, tidied; pydantic is asked only for what is not plain."""
    is_plain = not _is_customised(model) and model.__pydantic_fields_complete__
    plain = plain_object_schema(model.model_fields) if is_plain else None
    whole = plain or model.model_json_schema(schema_generator=_ClosedSchemas)
    # A model's docstring is for readers of the code; the tool has a description of its own.
    body = {key: part for key, part in whole.items() if key != "description"}
    return normalize_schema({"properties": {}, **body, "additionalProperties": False})


class _ClosedSchemas(GenerateJsonSchema):
    """Closes the schema of every inner object whose author did not say what becomes of extra names."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        config = cast(type[BaseModel], schema["cls"]).model_config
        return _closed_unless(config.get("extra"), super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        own: ConfigDict = getattr(schema["cls"], "__pydantic_config__", None) or ConfigDict()
        extra = own.get("extra") or schema.get("config", {}).get("extra_fields_behavior")
        return _closed_unless(extra, super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        extra = schema.get("extra_behavior") or schema.get("config", {}).get("extra_fields_behavior")
        return _closed_unless(extra, super().typed_dict_schema(schema))


def _closed_unless(extra: str | None, schema: JsonSchemaValue) -> JsonSchemaValue:
    """The schema, closed unless `extra` is set. A model around a single value is not an object."""
    if extra is None and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def _is_customised(model: type[BaseModel]) -> bool:
    """Whether anything but the fields changes the model's schema."""
    if any(model.model_config.get(key) is not None for key in _SCHEMA_SETTINGS):
        return True
    hooks = ("__get_pydantic_json_schema__", "__get_pydantic_core_schema__")
    if any(hook in vars(base) for base in model.__mro__ if base not in BaseModel.__mro__ for hook in hooks):
        return True
    decorators = model.__pydantic_decorators__
    return any(validator.info.mode != "after" for validator in decorators.field_validators.values())


_SCHEMA_SETTINGS = (
    "json_schema_extra", "alias_generator", "schema_generator", "field_title_generator", "model_title_generator"
)  # fmt: skip


DISCRIMINATOR = "action"


class LazyArguments(ABC):
    """Arguments whose schemas are made when they are first needed."""

    @cached_property
    @abstractmethod
    def _wire(self) -> JsonObject: ...

    @property
    def wire(self) -> JsonObject:
        return self._wire

    @property
    def exact(self) -> JsonObject:
        return self._wire


class UnionArguments(LazyArguments):
    """Arguments given by one model for each action.

    Large model APIs refuse `oneOf` at the top of a schema. So clients see one object with an `action` enum and the
    fields of all actions, each marked with its actions; validation uses the exact union.
    """

    def __init__(self, models: tuple[type[BaseModel], ...]) -> None:
        self._schemas = {model: model_schema(model) for model in models}
        self._models: dict[Any, type[BaseModel]] = {}
        for model, schema in self._schemas.items():
            if not _actions(schema):
                raise DeclarationError(
                    f"`{model.__name__}` is one of several argument models, so it needs a field "
                    f"`action: Literal[...]` that says which action it is for."
                )
            for action in _actions(schema):
                if (other := self._models.setdefault(action, model)) is not model:
                    raise DeclarationError(
                        f"`{model.__name__}` and `{other.__name__}` are both for the action `{action}`. "
                        "Give each action one model."
                    )
        self._parts = [schema["properties"][DISCRIMINATOR] for schema in self._schemas.values()]
        defaults = [part["default"] for part in self._parts if part.get("default") is not None]
        # A call that names no action means the default one, where one model alone has one.
        self._default: JsonObject = {DISCRIMINATOR: defaults[0]} if len(defaults) == 1 else {}

    @property
    def exact(self) -> JsonObject:
        """Any one of the actions' schemas."""
        options = [{key: part for key, part in schema.items() if key != "$defs"} for schema in self._schemas.values()]
        return self._with_definitions({"type": "object", "oneOf": options})

    @cached_property
    def _wire(self) -> JsonObject:
        """One closed object with the fields of all actions."""
        # Without our own words: two actions may differ in nothing else, and then a field is still one field.
        schemas = [without_own_words(schema) for schema in self._schemas.values()]
        properties: JsonObject = {DISCRIMINATOR: self._action_property()}
        for schema in schemas:
            for name, part in schema["properties"].items():
                if name != DISCRIMINATOR:
                    properties[name] = _merged(name, part, properties.get(name))
        required = [name for name in properties if all(name in schema.get("required", ()) for schema in schemas)]
        for name in properties:
            self._mark(name, properties)
        flat: JsonObject = {"type": "object", "properties": properties}
        if required:
            flat["required"] = required
        return self._with_definitions({**flat, "additionalProperties": False})

    def parse(self, tool: str, raw: JsonObject) -> Any:
        given = unwrap_arguments(raw, self._wire["properties"])
        filled = given if DISCRIMINATOR in given else {**given, **self._default}
        model = self._model_for(filled)
        schema = self._wire if model is None else self._schemas[model]
        foreign = self._wire["properties"]
        return validate_arguments(self._check, tool=tool, raw=filled, schema=lambda: schema, foreign=foreign)

    def _model_for(self, arguments: JsonObject) -> type[BaseModel] | None:
        action = arguments.get(DISCRIMINATOR)
        return self._models.get(action) if isinstance(action, (str, int)) else None

    def _check(self, arguments: JsonObject, /, *, extra: Literal["forbid"] | None) -> Any:
        """Validate by the action's own model; without one, the action alone is what is wrong."""
        model = self._model_for(arguments)
        return model.model_validate(arguments, extra=extra) if model else self._only_action.model_validate(arguments)

    @cached_property
    def _only_action(self) -> type[BaseModel]:
        actions: Any = Literal[tuple(self._models)]
        return create_model("Action", __config__=ConfigDict(extra="ignore"), action=(actions, ...))

    def _with_definitions(self, schema: JsonObject) -> JsonObject:
        """The schema with what its parts refer to by name."""
        definitions: JsonObject = {}
        for own in self._schemas.values():
            for name, part in own.get("$defs", {}).items():
                if definitions.setdefault(name, part) != part:
                    raise DeclarationError(f"Two different types are called `{name}`. Rename one of them.")
        return {**schema, "$defs": definitions} if definitions else schema

    def _action_property(self) -> JsonObject:
        description = next((part["description"] for part in self._parts if part.get("description")), "What to do")
        whole: JsonObject = {"type": "string", "enum": list(self._models), "description": description}
        return {**whole, "default": self._default[DISCRIMINATOR]} if self._default else whole

    def _mark(self, name: str, properties: JsonObject) -> None:
        """Say which actions a field belongs to, unless it is all of them."""
        schemas = self._schemas.values()
        owners = [action for schema in schemas if name in schema["properties"] for action in _actions(schema)]
        if name == DISCRIMINATOR or len(owners) == len(self._models):
            return
        text = properties[name].get("description", "")
        properties[name] = {**properties[name], "description": f"{text} ({', '.join(map(str, owners))})".strip()}


def _merged(name: str, part: JsonObject, known: JsonObject | None) -> JsonObject:
    """One field that several actions have: the same, or any of its forms."""
    if known is None:
        return dict(part)
    if _shape(known) == _shape(part):
        return known
    options: list[Any] = []
    for form in (known, part):
        for option in _shape(form).get("anyOf", [_shape(form)]):
            if option not in options:
                options.append(option)
    return {"description": known.get("description") or part.get("description") or name, "anyOf": options}


def _actions(schema: JsonObject) -> list[Any]:
    return choices_of(properties_of(schema).get(DISCRIMINATOR))


def _shape(schema: JsonObject) -> JsonObject:
    return {key: value for key, value in schema.items() if key not in ("description", "default")}
