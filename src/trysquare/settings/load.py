"""Load the settings from file, environment and options, with the origin of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, SecretStr, ValidationError

from trysquare.core.errors import ConfigurationError
from trysquare.core.text import closest_names
from trysquare.settings.file import ALL_SETTINGS_HINT, ConfigurationFile, file_layer, find_file, read_file, resolved
from trysquare.settings.keys import DEFAULT, Given, Key, Layer, Origin, all_keys, all_sections, configuration_error
from trysquare.settings.model import Settings

CONFIG_VARIABLE = "TRYSQUARE_CONFIG"
NO_SETTINGS = frozenset({CONFIG_VARIABLE, "TRYSQUARE_TRACEBACK", "TRYSQUARE_FULL", "TRYSQUARE_STARTED_BY"})
"""Variables that are not settings: the file to read, tracebacks, the size of the tests, the parent process."""
MASK = "********"


def environment_layer(environment: Mapping[str, str], folder: Path) -> dict[str, Given]:
    layer = dict(_aliases(environment))
    by_variable = {key.variable: key for key in all_keys().values()}
    for variable, text in environment.items():
        if not variable.startswith("TRYSQUARE_") or variable in NO_SETTINGS:
            continue
        key = by_variable.get(variable)
        if key is None:
            near = closest_names(variable, by_variable)
            hint = f"Did you mean ${near[0]}?" if near else ALL_SETTINGS_HINT
            raise ConfigurationError("Unknown setting.", where=f"${variable}", hint=hint)
        if text or key.environment.keep_empty:
            value = [part.strip() for part in text.split(",") if part.strip()] if key.is_list else text
            layer[key.name] = Given(value=resolved(key, value, folder), origin=_origin(variable))
    return layer


def _aliases(environment: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    for key in all_keys().values():
        alias = key.environment.alias
        if alias is not None and (text := environment.get(alias)) is not None:
            # Of a switch only the word `true` counts, as in the other servers that read the variable.
            value = text == "true" if isinstance(key.default, bool) else text
            yield key.name, Given(value=value, origin=_origin(alias))


def _origin(variable: str) -> Origin:
    return Origin(source="environment", location=f"${variable}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Effective:
    """Effective value of one setting."""

    key: Key
    value: Any
    origin: Origin

    @property
    def shown(self) -> Any:
        """The value as JSON, with secrets masked."""
        return _shown(self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """The settings, the origin of each, and notes to the user."""

    settings: Settings
    origins: Mapping[str, Origin]
    file: Path | None
    notes: tuple[str, ...] = ()

    def effective(self) -> list[Effective]:
        """Every setting with its value and origin, in the order of the model."""
        return [
            Effective(key=key, value=value_of(self.settings, name), origin=self.origins.get(name, DEFAULT))
            for name, key in all_keys().items()
        ]

    def is_set(self, name: str) -> bool:
        """Whether the setting was given by any source."""
        return name in self.origins


def load_settings(cli: Mapping[str, Given], env: Mapping[str, str], cwd: Path, *, config: Path | None = None) -> Loaded:
    """Effective settings: options win over the environment, and the environment over the file."""
    options = {
        name: Given(value=resolved(all_keys()[name], given.value, cwd), origin=given.origin)
        for name, given in cli.items()
    }
    environment = environment_layer(env, cwd)
    file = _file(options, environment, env, cwd, config)
    layers: list[Layer] = [file_layer(file) if file else {}, environment, options]
    given = {name: value for layer in layers for name, value in layer.items()}
    return Loaded(
        settings=_validate({"project": Given(value=cwd, origin=DEFAULT), **given}),
        origins={name: value.origin for name, value in given.items()},
        file=file.path if file else None,
        notes=(file.note,) if file and file.note else (),
    )


def _file(
    options: Layer, environment: Layer, env: Mapping[str, str], cwd: Path, config: Path | None
) -> ConfigurationFile | None:
    named = config or (Path(env[CONFIG_VARIABLE]) if env.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return read_file(cwd / os.path.expanduser(named))
    project = options.get("project") or environment.get("project")
    return find_file(project.value if project else cwd)


def _validate(given: Layer) -> Settings:
    nested: dict[str, Any] = {}
    # Every table is there, even if empty: then all are validated as parts of one model, which is built once.
    for section in sorted(all_sections()):
        _table(nested, section.split("."))
    for name, value in given.items():
        *tables, last = name.split(".")
        _table(nested, tables)[last] = value.value
    try:
        settings = Settings.model_validate(nested)
    except ValidationError as error:
        raise configuration_error(error, given) from None
    if not os.path.isdir(settings.project):
        where = given["project"].origin.location
        raise ConfigurationError(f"project: {settings.project} is not a directory.", where=where)
    return settings


def _table(nested: dict[str, Any], path: list[str]) -> dict[str, Any]:
    for part in path:
        nested = nested.setdefault(part, {})
    return nested


def value_of(settings: Settings, name: str) -> Any:
    return attrgetter(name)(settings)


def _shown(value: Any) -> Any:
    match value:
        case SecretStr():
            return MASK
        case Path():
            return str(value)
        case tuple():
            return [_shown(part) for part in cast(tuple[Any, ...], value)]
        case BaseModel():
            return value.model_dump(mode="json")
        case _:
            return value
