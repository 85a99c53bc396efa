"""Keys: every setting by its full name, such as `http.oauth.issuer`, and what kind of value it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from trysquare.core.nearest import nearest
from trysquare.settings.model import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One setting: its full name and what is known of its values."""

    name: str
    description: str
    default: Any
    is_list: bool
    is_path: bool
    is_secret: bool

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "TRYSQUARE_" + self.name.replace(".", "_").upper()


@cache
def all_keys() -> Mapping[str, Key]:
    """Every setting, by its full name, in the order of the model."""
    return {key.name: key for key in _keys(Settings, "")}


@cache
def all_sections() -> frozenset[str]:
    """The names of the tables: `http`, `http.oauth` and so on."""
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
    )


def _kinds(annotation: Any) -> set[Any]:
    """An annotation and all that stands inside it, with `tuple[…]` as `tuple`."""
    found = {getattr(annotation, "__origin__", annotation)}
    for inner in get_args(annotation):
        found |= _kinds(inner) if not isinstance(inner, str) else set()
    return found


def nearest_key(name: str) -> str | None:
    """The setting that was probably meant: by its whole name, or by its last part in any table."""
    whole = nearest(name, [*all_keys(), *all_sections()])
    if whole:
        return whole[0]
    by_last = {known.rpartition(".")[2]: known for known in all_keys()}
    last = nearest(name.rpartition(".")[2], by_last)
    return by_last[last[0]] if last else None
