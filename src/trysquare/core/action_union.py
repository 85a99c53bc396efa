"""A tool with actions: exact as a union of models, flat on the wire.

Large model APIs refuse `oneOf` at the top of a schema. So the wire shows one object with an `action` enum and the
fields of all actions, each marked with the actions it belongs to, and validation holds the exact union.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

from trysquare.core.arguments import model_schema
from trysquare.core.errors import DeclarationError
from trysquare.core.tidy_schema import without_own_words
from trysquare.core.types import JsonObject

DISCRIMINATOR = "action"


class ActionUnion:
    """The models of one tool's actions, and the schemas that they make together."""

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
                self._add(action, model)

    def _add(self, action: Any, model: type[BaseModel]) -> None:
        if action in self._models:
            raise DeclarationError(
                f"`{model.__name__}` and `{self._models[action].__name__}` are both for the action `{action}`. "
                "Give each action one model."
            )
        self._models[action] = model

    def actions(self) -> list[Any]:
        """Every action there is."""
        return list(self._models)

    def model_of(self, action: Any) -> type[BaseModel] | None:
        """The model for an action, or None if there is no such action."""
        return self._models.get(action) if isinstance(action, (str, int)) else None

    def schema_of(self, model: type[BaseModel]) -> JsonObject:
        """The closed schema of one action's model."""
        return self._schemas[model]

    @property
    def exact(self) -> JsonObject:
        """Any one of the actions' schemas."""
        options = [{key: part for key, part in schema.items() if key != "$defs"} for schema in self._schemas.values()]
        return self._with_definitions({"type": "object", "oneOf": options})

    def flat(self) -> JsonObject:
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

    def default_action(self) -> str | None:
        """The action of a call that names none: the default, where one model alone has one."""
        parts = [schema["properties"][DISCRIMINATOR] for schema in self._schemas.values()]
        defaults = [part["default"] for part in parts if part.get("default") is not None]
        return cast(str, defaults[0]) if len(defaults) == 1 else None

    def _with_definitions(self, schema: JsonObject) -> JsonObject:
        """The schema with what its parts refer to by name."""
        definitions: JsonObject = {}
        for own in self._schemas.values():
            for name, part in own.get("$defs", {}).items():
                if definitions.setdefault(name, part) != part:
                    raise DeclarationError(f"Two different types are called `{name}`. Rename one of them.")
        return {**schema, "$defs": definitions} if definitions else schema

    def _action_property(self) -> JsonObject:
        parts = [schema["properties"][DISCRIMINATOR] for schema in self._schemas.values()]
        description = next((part["description"] for part in parts if part.get("description")), "What to do")
        whole: JsonObject = {"type": "string", "enum": self.actions(), "description": description}
        default = self.default_action()
        return whole if default is None else {**whole, "default": default}

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


def fill_default_action(raw: JsonObject, default: str | None) -> JsonObject:
    """A call without an action means the default one."""
    return {**raw, DISCRIMINATOR: default} if default is not None and DISCRIMINATOR not in raw else raw


def _actions(schema: JsonObject) -> list[Any]:
    part = schema.get("properties", {}).get(DISCRIMINATOR, {})
    return [part["const"]] if "const" in part else list(part.get("enum", []))


def _shape(schema: JsonObject) -> JsonObject:
    return {key: value for key, value in schema.items() if key not in ("description", "default")}
