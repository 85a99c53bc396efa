"""Documents that a behavior builds, and the one interface of their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

from trysquare.bots.documents import formats
from trysquare.bots.documents.edits import Edits, Merged, Pointer, Problem
from trysquare.bots.documents.merge import merge_records
from trysquare.bots.documents.shapes import MARKDOWN_SCHEMA, filled, names_of, schema_problems, shape_problems
from trysquare.bots.graph import digest_of
from trysquare.bots.rendering.template import Record
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject

Node: TypeAlias = tuple[Pointer, Any, str]
"""A value that a rule reads: where it stands, the value, and its name for a reader."""
Format: TypeAlias = Literal["json", "yaml", "markdown"]
ENDINGS: Mapping[str, Format] = {".json": "json", ".yaml": "yaml", ".yml": "yaml", ".md": "markdown"}


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document of a project, as it was read."""

    path: str
    text: str
    value: Any
    read_lines: Callable[[], Mapping[Pointer, int]]

    @cached_property
    def lines(self) -> Mapping[Pointer, int]:
        return self.read_lines()

    @cached_property
    def digest(self) -> str:
        return digest_of(self.text)

    def line(self, pointer: Sequence[str | int]) -> int:
        """The line of a value, or of the nearest value around it."""
        at = tuple(pointer)
        while at and at not in self.lines:
            at = at[:-1]
        return self.lines.get(at, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """The parts of a document in a scope."""

    paths: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """Names of the scope that the document does not have."""

    def holds(self, where: str) -> bool:
        return any(where == path or where.startswith(f"{path} > ") for path in self.paths)


@dataclass(frozen=True, kw_only=True)
class DocumentType:
    """A type of document. Each method has a default for JSON, YAML and Markdown; a type of your own overrides some."""

    targets: ClassVar[tuple[str, ...]] = ()
    """What `applies_to` of a rule can name, besides `file` and a JSONPath."""
    builders: ClassVar[tuple[str, ...]] = ()
    """What `builder` of a render config can name."""

    name: str = "json"
    format: Format = "json"
    schema: JsonObject | None = None
    shape: Any = None
    """What the template holds; without a schema, every document has at least that."""

    def parse(self, text: str) -> Any:
        """The value of a text; raises `formats.DocumentError` with the line."""
        return formats.parse(self.format, text)

    def lines(self, text: str) -> Mapping[Pointer, int]:
        """The line of every value of a text; by default of no value, where the type has a `parse` of its own."""
        return formats.lines(self.format, text) if not self._has_own("parse") else {}

    def dump(self, value: Any, text: str) -> str:
        """The text of a changed value; `text` is what it was read from."""
        if self._has_own("parse"):
            raise formats.DocumentError(f"the document type {self.name} has no `dump`, which writes a changed document")
        return formats.dump(self.format, value, text)

    def problems(self, value: Any) -> Iterable[Problem]:
        """Everything that is wrong with a value."""
        if self.schema is not None:
            return schema_problems(self.schema, value)
        return [] if self.shape is None else shape_problems(self.shape, value, self.format)

    def select(self, kind: str, value: Any) -> Iterable[Node]:
        """The values of one of `targets`."""
        return ()

    def choose(self, wanted: Mapping[str, tuple[str, ...]], value: Any) -> Chosen | None:
        """The parts of a scope, or None where the type has no names to scope by."""
        return None

    def value_schema(self) -> JsonObject | None:
        """A schema of the value, by which `bot check` finds unknown names; None if nothing tells."""
        if self.format == "markdown":
            return MARKDOWN_SCHEMA
        return self.schema if self.schema is not None else names_of(self.shape)

    def view(self, value: Any) -> JsonObject:
        """What a template sees. Names that a schema knows and an item lacks are empty, and not those around it."""
        schema = self.value_schema()
        seen = value if schema is None else filled(value, schema, schema)
        return seen if isinstance(seen, dict) else {"items": seen}  # pyright: ignore[reportUnknownVariableType]

    def view_schema(self) -> JsonObject | None:
        """A schema of what a template sees."""
        known = self.value_schema()
        if known is None or known.get("type") == "object" or "properties" in known:
            return known
        return {"type": "object", "properties": {"items": known}, "$defs": known.get("$defs", {})}

    def build(self, builder: str, value: Any) -> str:
        """The output of one of `builders`."""
        known = ", ".join(self.builders) or "none"
        raise InvalidArguments(f"The document type {self.name} has no builder `{builder}`; it has {known}.")

    def merge(self, value: Any, edits: Edits, current: Record) -> Merged:
        """A value with the edits of a page; `current` is the page of the present value, read back."""
        return merge_records(value, edits, current)

    def _has_own(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(DocumentType, method)
