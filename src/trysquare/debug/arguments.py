"""Arguments with an action that has more than one word for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from pydantic import model_validator

from trysquare.core.arguments import ToolArguments


class ActionArguments(ToolArguments):
    """Arguments with an `action`. The schema shows one word for each; those in `also` are understood as well."""

    also: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def with_usual_action(cls, given: Any) -> Any:
        """The same arguments with the action's usual word."""
        arguments = cast(dict[str, Any], given) if isinstance(given, dict) else {}
        action = arguments.get("action")
        if isinstance(action, str) and action in cls.also:
            return {**arguments, "action": cls.also[action]}
        return cast(Any, given)
