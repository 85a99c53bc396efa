"""load_settings: file, environment and options as one checked value, each part with its origin."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, SecretStr, ValidationError

from trysquare.core.errors import ConfigurationError
from trysquare.settings.environment import CONFIG_VARIABLE, environment_layer
from trysquare.settings.keys import Key, all_keys, all_sections
from trysquare.settings.model import Settings
from trysquare.settings.origin import DEFAULT, Given, Layer, Origin
from trysquare.settings.problems import configuration_error
from trysquare.settings.toml_file import (
    OWN_FILE,
    SHARED_FILE,
    ConfigurationFile,
    file_layer,
    find_file,
    read_file,
    resolved,
)

MASK = "********"


@dataclass(frozen=True, kw_only=True, slots=True)
class Effective:
    """One setting as it holds now."""

    key: Key
    value: Any
    origin: Origin

    @property
    def shown(self) -> Any:
        """The value as JSON, with secrets masked."""
        return _shown(self.value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """The settings, where each came from, and what the user should know about it."""

    settings: Settings
    origins: Mapping[str, Origin]
    file: Path | None
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files on which the settings depend, also those that are not there."""
        here = [self.settings.project / name for name in (OWN_FILE, SHARED_FILE)]
        return tuple(str(each) for each in (*here, *([self.file] if self.file else ())))

    def effective(self) -> list[Effective]:
        """Every setting with its value and origin, in the order of the model."""
        return [
            Effective(key=key, value=value_of(self.settings, name), origin=self.origins.get(name, DEFAULT))
            for name, key in all_keys().items()
        ]

    def is_set(self, name: str) -> bool:
        """Whether anybody set this, as opposed to its default."""
        return name in self.origins


def load_settings(cli: Mapping[str, Given], env: Mapping[str, str], cwd: Path, *, config: Path | None = None) -> Loaded:
    """The effective settings: the file, over it the environment, over it the command line's options."""
    options = {name: _resolved_option(name, given, cwd) for name, given in cli.items()}
    environment = environment_layer(env, cwd)
    file = _file(options, environment, env, cwd, config)
    layers: list[Layer] = [file_layer(file) if file else {}, environment, options]
    given = {name: value for layer in layers for name, value in layer.items()}
    project_default = Given(value=cwd, origin=DEFAULT)
    return Loaded(
        settings=_checked({"project": project_default, **given}),
        origins={name: value.origin for name, value in given.items()},
        file=file.path if file else None,
        notes=(file.note,) if file and file.note else (),
    )


def _resolved_option(name: str, given: Given, cwd: Path) -> Given:
    return Given(value=resolved(all_keys()[name], given.value, cwd), origin=given.origin)


def _file(
    options: Layer, environment: Layer, env: Mapping[str, str], cwd: Path, config: Path | None
) -> ConfigurationFile | None:
    named = config or (Path(env[CONFIG_VARIABLE]) if env.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return read_file(cwd / named.expanduser())
    project = options.get("project") or environment.get("project")
    return find_file(project.value if project else cwd)


def _checked(given: Layer) -> Settings:
    nested = _empty_tables()
    for name, value in given.items():
        *tables, last = name.split(".")
        inner = nested
        for table in tables:
            inner = inner.setdefault(table, {})
        inner[last] = value.value
    try:
        settings = Settings.model_validate(nested)
    except ValidationError as error:
        raise configuration_error(error, given) from None
    _check_folder(settings, given["project"].origin)
    return settings


def _empty_tables() -> dict[str, Any]:
    """Every table, still empty: then they are all checked as parts of one whole, which is built once."""
    nested: dict[str, Any] = {}
    for section in sorted(all_sections()):
        inner = nested
        for part in section.split("."):
            inner = inner.setdefault(part, {})
    return nested


def _check_folder(settings: Settings, origin: Origin) -> None:
    if not os.path.isdir(settings.project):
        raise ConfigurationError(f"project: {settings.project} is no folder.", where=origin.place)


def value_of(settings: Settings, name: str) -> Any:
    """The value of a setting by its full name."""
    inner: Any = settings
    for part in name.split("."):
        inner = getattr(inner, part)
    return inner


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
