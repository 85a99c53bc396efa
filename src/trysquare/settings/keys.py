"""Setting keys, origins of values, and the error for wrong values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from trysquare.core.errors import ConfigurationError
from trysquare.core.text import closest_names
from trysquare.settings.model import CliOption, FromEnvironment, Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One setting by its full name, with what its declaration says."""

    name: str
    description: str
    default: Any
    is_list: bool
    is_path: bool
    is_secret: bool
    is_source: bool
    """Whether it names sources of tools, which may be files."""
    option: CliOption | None
    environment: FromEnvironment

    @property
    def variable(self) -> str:
        return "TRYSQUARE_" + self.name.replace(".", "_").upper()

    @property
    def flag(self) -> str:
        named = self.option.flag if self.option else None
        return named or "--" + self.name.replace("_", "-")


@cache
def all_keys() -> Mapping[str, Key]:
    """All settings by full name, in the order of the model."""
    return {key.name: key for key in _keys(Settings, "")}


@cache
def all_sections() -> frozenset[str]:
    """Names of the tables: `http`, `http.oauth` and so on."""
    names = [name.split(".")[:-1] for name in all_keys()]
    return frozenset(".".join(parts[:depth]) for parts in names for depth in range(1, len(parts) + 1))


def _keys(model: type[BaseModel], prefix: str) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from _keys(section, f"{prefix}{name}.")
        else:
            yield _key(f"{prefix}{name}", field)


def _key(name: str, field: FieldInfo) -> Key:
    kinds = _kinds(field.annotation)
    return Key(
        name=name,
        description=field.description or "",
        default=field.get_default(call_default_factory=True),
        is_list=tuple in kinds,
        is_path=Path in kinds,
        is_secret=SecretStr in kinds,
        is_source=name == "tools",
        option=next((each for each in field.metadata if isinstance(each, CliOption)), None),
        environment=next((each for each in field.metadata if isinstance(each, FromEnvironment)), FromEnvironment()),
    )


def _kinds(annotation: Any) -> set[Any]:
    """An annotation and everything inside it, with `tuple[…]` as `tuple`."""
    found = {getattr(annotation, "__origin__", annotation)}
    for inner in get_args(annotation):
        found |= _kinds(inner) if not isinstance(inner, str) else set()
    return found


def nearest_key(name: str) -> str | None:
    """Closest setting, by its full name or by its last part in any table."""
    whole = closest_names(name, [*all_keys(), *all_sections()])
    if whole:
        return whole[0]
    by_last = {known.rpartition(".")[2]: known for known in all_keys()}
    last = closest_names(name.rpartition(".")[2], by_last)
    return by_last[last[0]] if last else None


Source = Literal["default", "file", "environment", "option"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a value came from: the kind of source, and its location (`trysquare.toml:3`, `--prefix`)."""

    source: Source
    location: str


DEFAULT = Origin(source="default", location="default")


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A value as written, and its origin."""

    value: Any
    origin: Origin


Layer = Mapping[str, Given]
_EXPECTED: Mapping[str, str] = {
    "bool_type": "a boolean",
    "bool_parsing": "a boolean",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "a string",
    "tuple_type": "a list",
    "path_type": "a path",
}


def configuration_error(error: ValidationError, given: Layer) -> ConfigurationError:
    """One error for all wrong values, a line for each."""
    return ConfigurationError("\n".join(dict.fromkeys(_line(each, given) for each in error.errors(include_url=False))))


def _line(detail: ErrorDetails, given: Layer) -> str:
    name = _key_name(detail["loc"])
    origin = given[name].origin if name in given else DEFAULT
    is_secret = name in all_keys() and all_keys()[name].is_secret
    got = "" if is_secret else f", got {_short(_written(detail, name, given))}"
    # An argument without an option has no place of its own, and an option is called as its setting.
    place, is_named = origin.location, origin.location.strip("-").replace("-", "_") == name
    where = ": ".join(part for part in (place, "" if is_named else name) if part)
    return f"{where}: {_expectation(detail)}{got}.{_suggestion(detail)}"


def _written(detail: ErrorDetails, name: str, given: Layer) -> Any:
    """The value as written, or the item of a list that is wrong."""
    whole = ".".join(str(part) for part in detail["loc"]) == name
    return given[name].value if whole and name in given else detail.get("input")


def _key_name(location: tuple[int | str, ...]) -> str:
    """Full name of the setting; the rest of the location is inside its value."""
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
    expected = str(detail.get("ctx", {}).get("expected") or detail["msg"].partition("one of ")[2])
    given = str(detail.get("input")).rpartition("=")[2]
    near = closest_names(given, expected.replace(" or ", ", ").replace("'", "").split(", ")) if expected else []
    return f" Did you mean {near[0]}?" if near else ""


def _short(value: Any) -> str:
    text = repr(str(value)) if hasattr(value, "__fspath__") else repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
