"""What is said about a wrong value: where it stands, what was expected, what it probably should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest
from trysquare.settings.keys import all_keys
from trysquare.settings.origin import DEFAULT, Layer

_EXPECTED: Mapping[str, str] = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "a text",
    "tuple_type": "a list",
    "path_type": "a path",
}


def configuration_error(error: ValidationError, given: Layer) -> ConfigurationError:
    """All wrong values in one error, a line for each."""
    details = error.errors(include_url=False)
    lines = dict.fromkeys(_line(detail, given) for detail in details)
    return ConfigurationError("\n".join(lines))


def _line(detail: ErrorDetails, given: Layer) -> str:
    name = _key_name(detail["loc"])
    origin = given[name].origin if name in given else DEFAULT
    shown = (
        "" if name in all_keys() and all_keys()[name].is_secret else f"; got {_short(_written(detail, name, given))}"
    )
    return f"{origin.place}: {name}: {_expectation(detail)}{shown}.{_suggestion(detail)}"


def _written(detail: ErrorDetails, name: str, given: Layer) -> Any:
    """The value as the user wrote it; a part of a list as it was taken out of it."""
    whole = ".".join(str(part) for part in detail["loc"]) == name
    return given[name].value if whole and name in given else detail.get("input")


def _key_name(location: tuple[int | str, ...]) -> str:
    """The setting's full name; what follows it is a place inside its value."""
    for length in range(len(location), 0, -1):
        name = ".".join(str(part) for part in location[:length])
        if name in all_keys():
            return name
    return ".".join(str(part) for part in location)


def _expectation(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "literal_error":
        return f"expected {context['expected']}"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}"
    text = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ").removeprefix("String should ")
    return text if text.startswith("expected") else f"expected {text}"


def _suggestion(detail: ErrorDetails) -> str:
    expected = str(detail.get("ctx", {}).get("expected", ""))
    near = nearest(str(detail.get("input")), expected.replace(" or ", ", ").replace("'", "").split(", "))
    return f" Did you mean {near[0]}?" if near and detail["type"] == "literal_error" else ""


def _short(value: Any) -> str:
    text = repr(str(value)) if hasattr(value, "__fspath__") else repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
