"""ToolArguments: the base of a tool's argument model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, ConfigDict
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from trysquare.core.plain_schema import plain_object_schema
from trysquare.core.registry import OnceRegistry
from trysquare.core.tidy_schema import tidy
from trysquare.core.types import JsonObject

F = TypeVar("F", bound=Callable[..., Any])


class ToolArguments(BaseModel):
    """The arguments of one tool: closed, so that a wrong name is refused and never silently dropped."""

    # Validators are compiled at the first call: a server with a thousand tools starts without any of them.
    model_config = ConfigDict(extra="forbid", validate_assignment=True, defer_build=True)

    _declared: ClassVar[OnceRegistry[Callable[..., Any]]] = OnceRegistry("Tool")

    @classmethod
    def declare(cls, function: F) -> F:
        """Remember a function as a tool and return it unchanged. `Declarations` is the fuller way."""
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
    whole = _plain_model_schema(model) or model.model_json_schema(schema_generator=_ClosedSchemas)
    # A model's docstring speaks to its readers; what the tool is for stands in the tool's own description.
    body = {key: part for key, part in whole.items() if key != "description"}
    return tidy({"properties": {}, **body, "additionalProperties": False})


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
    """The schema, closed unless `extra` says something. A model around a single value is no object of its own."""
    if extra is None and "properties" in schema:
        schema.setdefault("additionalProperties", False)
    return schema


def _plain_model_schema(model: type[BaseModel]) -> JsonObject | None:
    if _is_customised(model) or not model.__pydantic_fields_complete__:
        return None
    return plain_object_schema(model.model_fields)


def _is_customised(model: type[BaseModel]) -> bool:
    """Whether anything but the fields has a say in the model's schema."""
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


def schema_markdown(schema: JsonObject) -> str:
    """A schema's properties as a Markdown list."""
    properties = cast(dict[str, JsonObject], schema.get("properties", {}))
    if not properties:
        return "## Arguments\n\nNone."
    required = set(cast(list[str], schema.get("required", [])))
    lines = [_argument_line(name, part, name in required) for name, part in properties.items()]
    return "## Arguments\n\n" + "\n".join(lines)


def _argument_line(name: str, schema: JsonObject, required: bool) -> str:
    need = "required" if required else "optional"
    default = f", default {schema['default']!r}" if schema.get("default") is not None else ""
    description = f": {schema['description']}" if schema.get("description") else ""
    return f"- `{name}` ({type_text(schema)}, {need}{default}){description}"


def type_text(schema: Any) -> str:
    """A schema's type in a few words: `string`, `"warm" | "formal"`, `list of integer`.

    A schema from another server can hold anything, such as `true` for any value; it is told as `any`.
    """
    known = cast(JsonObject, schema) if isinstance(schema, dict) else {}
    if "const" in known:
        return _quoted(known["const"])
    if isinstance(choices := known.get("enum"), list):
        return " | ".join(_quoted(choice) for choice in cast(list[Any], choices))
    if isinstance(options := known.get("anyOf", known.get("oneOf")), list):
        return " | ".join(type_text(option) for option in cast(list[Any], options))
    if isinstance(fixed := known.get("prefixItems"), list):
        return f"[{', '.join(type_text(item) for item in cast(list[Any], fixed))}]"
    if known.get("type") == "array":
        return f"list of {type_text(known.get('items'))}"
    if "$ref" in known:
        return str(known["$ref"]).rsplit("/", 1)[-1]
    return str(known.get("type", "any"))


def _quoted(choice: Any) -> str:
    return (
        f'"{choice}"' if isinstance(choice, str) else str(choice).lower() if isinstance(choice, bool) else str(choice)
    )
