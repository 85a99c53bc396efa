"""The tables of the settings page, made from the model: a description is written once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from trysquare.settings import Settings
from trysquare.settings.keys import Key, all_keys

MARK = "<!-- The tables below are made from the settings; `python -m tests.docs.refresh` writes them. -->\n"
_KINDS: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", Path: "path"}


def settings_tables() -> str:
    """All settings, a table for each section."""
    sections: dict[str, list[Key]] = {}
    for key in all_keys().values():
        sections.setdefault(key.name.rpartition(".")[0], []).append(key)
    return "".join(_table(name, keys) for name, keys in sections.items())


def _table(section: str, keys: list[Key]) -> str:
    heading = f"`[{section}]`" if section else "At the top"
    rows = "".join(f"| `{key.name}` | {_kind(key)} | {_default(key)} | {key.description} |\n" for key in keys)
    return f"\n## {heading}\n\n| setting | type | default | meaning |\n|---|---|---|---|\n{rows}"


def _kind(key: Key) -> str:
    if key.is_list:
        return "list of " + ("paths" if key.is_path else "secrets" if key.is_secret else "strings")
    annotation = _annotation(key.name)
    return next((_KINDS[kind] for kind in (annotation, *get_args(annotation)) if kind in _KINDS), "string")


def _annotation(name: str) -> Any:
    *sections, last = name.split(".")
    model: Any = Settings
    for section in sections:
        model = model.model_fields[section].annotation
    return model.model_fields[last].annotation


def _default(key: Key) -> str:
    return "".join(_default_parts(key.default))


def _default_parts(default: Any) -> Iterator[str]:
    if default is None or default == ():
        yield "none"
    elif default == Path("."):
        yield "the working directory"
    elif isinstance(default, bool):
        yield f"`{str(default).lower()}`"
    else:
        yield f'`"{default}"`' if isinstance(default, str) else f"`{default}`"
