"""Configuration of the guide: `guide.json` and the content folders."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trysquare.core.errors import ConfigurationError
from trysquare.guide.documents import Category, Collection

FILE = "guide.json"
NAME = re.compile(r"[\w][\w.-]{0,49}")

ExportFormat: TypeAlias = Literal["agents", "claude", "cursor"]
Name = Annotated[str, Field(pattern=r"^[\w][\w.-]{0,49}$")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of what is read."""

    depth: int = 8
    documents: int = 20_000
    """Documents of one category; more are reported, not read."""
    document_bytes: int = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class GuideConfig:
    """One project's guide: name, content folders and limits."""

    project: str
    root: Path
    folders: tuple[Path, ...]
    limits: Limits = field(default_factory=Limits)
    watch: bool = True


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class CategoryEntry(_Closed):
    """A category in `guide.json`."""

    dir: str | None = None
    patterns: list[str] = ["*.md"]
    description: str | None = None


class CollectionEntry(_Closed):
    """A collection in `guide.json`."""

    expressions: list[str]
    description: str | None = None


class PresetEntry(_Closed):
    """Flags and content that belong together, chosen by one name."""

    flags: dict[str, Any] = {}
    expressions: list[str] = []
    description: str | None = None


class ExportEntry(_Closed):
    """A file that is written from content and checked in."""

    path: str
    expression: str
    format: ExportFormat = "agents"


class GuideFile(_Closed):
    """`guide.json`: all of it is optional."""

    categories: dict[Name, CategoryEntry] = {}
    collections: dict[Name, CollectionEntry] = {}
    presets: dict[Name, PresetEntry] = {}
    exports: list[ExportEntry] = []
    write_paths: list[str] = []

    def category_values(self) -> dict[str, Category]:
        return {
            name: Category(
                name=name, folder=entry.dir or name, patterns=tuple(entry.patterns), description=entry.description
            )
            for name, entry in self.categories.items()
        }

    def collection_values(self) -> dict[str, Collection]:
        return {
            name: Collection(name=name, expressions=tuple(entry.expressions), description=entry.description)
            for name, entry in self.collections.items()
        }


def parse_guide_file(text: str, *, where: str) -> GuideFile:
    """Parse `guide.json`; errors name the line."""
    try:
        return GuideFile.model_validate(json.loads(text))
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{error.msg}.", where=f"{where}:{error.lineno}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(piece) for piece in first["loc"])
        hint = f"Known keys are {', '.join(GuideFile.model_fields)}." if first["type"] == "extra_forbidden" else None
        raise ConfigurationError(f"`{place}`: {first['msg'].lower()}.", where=where, hint=hint) from None


def dump_guide_file(file: GuideFile) -> str:
    """Serialize the file in a fixed order, without defaults."""
    return json.dumps(file.model_dump(exclude_defaults=True), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
