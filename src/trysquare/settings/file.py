"""The configuration file: `trysquare.toml`, or `[tool.trysquare]` in `pyproject.toml`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from trysquare.core.errors import ConfigurationError
from trysquare.settings.keys import Given, Key, Origin, all_keys, all_sections, nearest_key
from trysquare.settings.model import split_source

if TYPE_CHECKING:
    from trysquare.files.toml import KeyPath

OWN_FILE = "trysquare.toml"
SHARED_FILE = "pyproject.toml"
SHARED_TABLE: KeyPath = ("tool", "trysquare")
ALL_SETTINGS_HINT = "Run `trysquare config` to list all settings."


@dataclass(frozen=True, kw_only=True)
class ConfigurationFile:
    """A file with settings: its path, its text, and the table of settings in it."""

    path: Path
    text: str
    prefix: KeyPath
    table: Mapping[str, Any]
    note: str | None = None
    """Message to the user about the choice of this file."""

    def location(self, path: KeyPath) -> str:
        """File and line of a key, or of the table around it."""
        whole = (*self.prefix, *path)
        while whole and whole not in self._lines:
            whole = whole[:-1]
        return f"{self.path}:{self._lines[whole]}" if whole else str(self.path)

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        from trysquare.files.toml import key_lines

        return key_lines(self.text)


def find_file(folder: Path) -> ConfigurationFile | None:
    """Configuration file of a directory; `trysquare.toml` wins over `pyproject.toml`, with a note."""
    own, shared = folder / OWN_FILE, folder / SHARED_FILE
    # os.path, not Path: for a name that no file system can hold it returns False instead of raising.
    table_elsewhere = _shared_table(shared) if os.path.isfile(shared) else None
    if not os.path.isfile(own):
        return table_elsewhere
    note = f"{own} is used; [tool.trysquare] in {shared} is not read." if table_elsewhere else None
    return read_file(own, note=note)


def read_file(path: Path, *, note: str | None = None) -> ConfigurationFile:
    if path.name == SHARED_FILE:
        found = _shared_table(path)
        if found is None:
            raise ConfigurationError("The file has no [tool.trysquare] table.", where=str(path))
        return found
    text = _text(path)
    return ConfigurationFile(path=path, text=text, prefix=(), table=_parsed(path, text), note=note)


def _shared_table(path: Path) -> ConfigurationFile | None:
    text = _text(path)
    if "trysquare" not in text:
        return None
    tool = _parsed(path, text).get("tool", {})
    table = cast(dict[str, Any], tool).get("trysquare") if isinstance(tool, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict):
        raise ConfigurationError("`tool.trysquare` must be a table: write [tool.trysquare].", where=str(path))
    return ConfigurationFile(path=path, text=text, prefix=SHARED_TABLE, table=cast(dict[str, Any], table))


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigurationError("File not found.", where=str(path)) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigurationError("The file is not UTF-8.", where=f"{path}:{line}", hint="Save it as UTF-8.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError(f"Cannot read the file: {reason}.", where=str(path)) from None


def _parsed(path: Path, text: str) -> dict[str, Any]:
    # Imported here: many servers are started without a file.
    import tomllib

    # TOML allows \r\n but tomllib refuses a lone \r, so only the pair is folded.
    folded = text.replace("\r\n", "\n")
    try:
        return tomllib.loads(folded)
    except tomllib.TOMLDecodeError as error:
        message, line = _syntax_error(str(error), folded)
        raise ConfigurationError(f"Invalid TOML: {message}.", where=f"{path}:{line}") from None
    except RecursionError:
        raise ConfigurationError("Invalid TOML: nested too deeply.", where=str(path)) from None


def _syntax_error(error: str, text: str) -> tuple[str, int]:
    message, _, location = error.partition(" (at ")
    words = location.replace(",", " ").split()
    line = int(words[1]) if words[:1] == ["line"] else text.rstrip("\n").count("\n") + 1
    return message[:1].lower() + message[1:], line


def file_layer(file: ConfigurationFile) -> dict[str, Given]:
    layer: dict[str, Given] = {}
    for path, value in _leaves(file, file.table, ()):
        name = ".".join(path)
        origin = Origin(source="file", location=file.location(path))
        layer[name] = Given(value=resolved(all_keys()[name], value, file.path.parent), origin=origin)
    return layer


def _leaves(file: ConfigurationFile, table: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for part, value in table.items():
        inner = (*path, part)
        name = ".".join(inner)
        if name in all_keys():
            yield inner, value
        elif name not in all_sections():
            raise _unknown(file, inner)
        elif not isinstance(value, dict):
            raise ConfigurationError(f"`{name}` must be a table: write [{name}].", where=file.location(inner))
        else:
            yield from _leaves(file, cast(dict[str, Any], value), inner)


def _unknown(file: ConfigurationFile, path: KeyPath) -> ConfigurationError:
    name = ".".join(path)
    near = nearest_key(name)
    hint = f"Did you mean `{near}`?" if near else ALL_SETTINGS_HINT
    return ConfigurationError(f"Unknown setting `{name}`.", where=file.location(path), hint=hint)


def resolved(key: Key, value: Any, base: Path) -> Any:
    """The value with relative paths resolved from where they were written."""
    if not (key.is_path or key.is_source):
        return value
    if isinstance(value, str) and key.is_source:
        is_file = split_source(value)[2]
        return str(base / os.path.expanduser(value)) if is_file and "\0" not in value else value
    if isinstance(value, str):
        # os.path, not Path: an unknown `~user` stays as it was written, and does not raise.
        return base / (value if "\0" in value else os.path.expanduser(value))
    if isinstance(value, (list, tuple)):
        return [resolved(key, part, base) for part in cast(list[Any], value)]
    return value
