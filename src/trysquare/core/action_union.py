"""A tool with actions: exact as a union of models, flat on the wire.

Large model APIs refuse `oneOf` at the top of a schema. So the wire shows one object with an `action` enum and the
fields of all actions, each marked with the actions it belongs to, and validation holds the exact union.
"""

from __future__ import annotations

from typing import Any, cast

from pydantic import BaseModel

from trysquare.core.arguments import model_schema
from trysquare.core.errors import DeclarationError
from trysquare.core.types import JsonObject

DISCRIMINATOR = "action"


class ActionUnion:
    """The models of one tool's actions, and the schemas that they make together."""

    def __init__(self, models: tuple[type[BaseModel], ...]) -> None:
        self.models = models
        self._schemas = [model_schema(model) for model in models]
        for model, schema in zip(models, self._schemas, strict=True):
            if not _actions(schema):
                raise DeclarationError(
                    f"`{model.__name__}` is one of several argument models, so it needs a field "
                    f"`action: Literal[...]` that says which action it is for."
                )

    @property
    def exact(self) -> JsonObject:
        """Any one of the actions' schemas."""
        return {"type": "object", "oneOf": self._schemas}

    def flat(self) -> JsonObject:
        """One closed object with the fields of all actions."""
        properties: JsonObject = {DISCRIMINATOR: self._action_property()}
        for schema in self._schemas:
            for name, part in schema["properties"].items():
                if name != DISCRIMINATOR:
                    properties[name] = self._merged(name, part, properties.get(name))
        required = [name for name in properties if all(name in schema.get("required", ()) for schema in self._schemas)]
        for name in properties:
            self._mark(name, properties)
        flat: JsonObject = {"type": "object", "properties": properties}
        if required:
            flat["required"] = required
        return {**flat, "additionalProperties": False}

    def default_action(self) -> str | None:
        """The action of a call that names none, where one model has a default."""
        for schema in self._schemas:
            if (default := schema["properties"][DISCRIMINATOR].get("default")) is not None:
                return cast(str, default)
        return None

    def _action_property(self) -> JsonObject:
        choices = [action for schema in self._schemas for action in _actions(schema)]
        told = [schema["properties"][DISCRIMINATOR].get("description") for schema in self._schemas]
        description = next((text for text in told if text), "What to do")
        whole: JsonObject = {"type": "string", "enum": choices, "description": description}
        default = self.default_action()
        return whole if default is None else {**whole, "default": default}

    def _merged(self, name: str, part: JsonObject, known: JsonObject | None) -> JsonObject:
        if known is None or _shape(known) == _shape(part):
            return known or dict(part)
        options = known.get("anyOf", [_shape(known)])
        return {"description": known.get("description", name), "anyOf": [*options, _shape(part)]}

    def _mark(self, name: str, properties: JsonObject) -> None:
        owners = [action for schema in self._schemas if name in schema["properties"] for action in _actions(schema)]
        if name == DISCRIMINATOR or len(owners) == len(properties[DISCRIMINATOR]["enum"]):
            return
        text = properties[name].get("description", "")
        properties[name] = {**properties[name], "description": f"{text} ({', '.join(owners)})".strip()}


def fill_default_action(raw: JsonObject, default: str | None) -> JsonObject:
    """A call without an action means the default one."""
    return {**raw, DISCRIMINATOR: default} if default is not None and DISCRIMINATOR not in raw else raw


def _actions(schema: JsonObject) -> list[Any]:
    part = schema.get("properties", {}).get(DISCRIMINATOR, {})
    return [part["const"]] if "const" in part else list(part.get("enum", []))


def _shape(schema: JsonObject) -> JsonObject:
    return {key: value for key, value in schema.items() if key not in ("description", "default")}
