"""Output: what a tool's return annotation says: the schema that is listed, and the check of what the tool returns."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import enum
import inspect
import logging
import types
import uuid
from dataclasses import replace
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import PydanticUserError, TypeAdapter, WithJsonSchema
from pydantic.errors import PydanticSchemaGenerationError

from trysquare.core.content import BLOCKS, Content, Text, content_of
from trysquare.core.json import JsonObject, objects_in
from trysquare.core.result import Result, dump_json, jsonable
from trysquare.core.schema.build import annotation_schema, normalize_schema
from trysquare.core.text import truncate

if TYPE_CHECKING:
    from trysquare.core.schema.validator import SchemaValidator

logger = logging.getLogger("trysquare.call")

RESULT = "result"
"""Key of a value that is no object, in structured content: protocol 2025-11-25 takes only objects there."""
_UNWRAP = "x-fastmcp-wrap-result"
"""The word of FastMCP's client for it: with it the client gives its user the value itself."""
_SHORT = (int, float, bool, type(None), complex, datetime.date, datetime.time, datetime.timedelta, uuid.UUID)
_PLAIN = (str, bool, int, float)
_SAYS_NOTHING = (Any, object, None, type(None), inspect.Signature.empty, bytes, bytearray, memoryview)
_STREAMS = (
    collections.abc.Iterator, collections.abc.Iterable, collections.abc.Generator, collections.abc.AsyncIterator,
    collections.abc.AsyncIterable, collections.abc.AsyncGenerator,
)  # fmt: skip
_LISTS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Set, *_STREAMS)
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_TYPES, _MAPS, _LISTED = ("items", "additionalProperties"), ("properties", "$defs"), ("anyOf", "oneOf", "prefixItems")
_WORDS = frozenset(
    {"type", "enum", "const", "format", "description", "required", "$ref", "allOf", *_TYPES, *_MAPS, *_LISTED}
)
"""What is listed of a schema. Bounds and patterns are promises about arguments; of a result they only cost tokens."""


class Output:
    """A return annotation. The schema is made when it is first needed."""

    def __init__(self, annotation: Any = None) -> None:
        self._annotation = _plain(annotation)
        self.is_short = _is_short(self._annotation)
        """Whether no value of the type is long."""
        self.exact: type[Any] | None = self._annotation if self._annotation in _PLAIN else None
        """A type of which a value that is JSON fits."""

    @classmethod
    def listed(cls, schema: JsonObject) -> Output:
        """The output of a tool elsewhere, whose schema is known and whose values are relayed."""
        made = cls()
        made.__dict__["schema"] = schema
        return made

    @cached_property
    def schema(self) -> JsonObject | None:
        """The schema of the structured content: one object at the top; None where the annotation says nothing."""
        found = _schema_of(self._annotation)
        if found is None or any("$defs" in part for part in objects_in(list(found.values()))):
            # A type that refers to itself inside one that only we can read: no place where its name means the same.
            return None
        # Compact first: a default of null means that an argument may be left out, but a result has the null in it.
        compact = normalize_schema(_compact(found))
        definitions = compact.pop("$defs", None)
        if (reference := compact.get("$ref")) is not None:
            compact = dict(definitions[str(reference).rpartition("/")[2]])
        if compact.get("type") != "object":
            wrapper: JsonObject = {"type": "object", "properties": {RESULT: compact}, "required": [RESULT]}
            compact = {**wrapper, _UNWRAP: True}
        return {**compact, "$defs": definitions} if definitions else compact

    @property
    def wraps(self) -> bool:
        """Whether a value stands in the structured content under `result`."""
        return self.schema is not None and _UNWRAP in self.schema

    @cached_property
    def adapter(self) -> TypeAdapter[Any] | None:
        """What reads a value as the type; None for types that pydantic does not know."""
        return _adapter(self._annotation)

    @cached_property
    def validator(self) -> SchemaValidator:
        from trysquare.core.schema.validator import compile_schema

        return compile_schema(self.schema)

    def structured(self, value: Any, blocks: list[Content]) -> JsonObject:
        """The structured content of a value of this type, unchecked. Pictures inside are added to `blocks`."""
        plain = jsonable(value, blocks)
        return {RESULT: plain} if self.wraps else plain


def as_result(name: str, returned: Any, output: Output) -> Result[Any]:
    """What a function returned, as a result: pictures and files as content, the value checked against its type."""
    result = cast(Result[Any], returned) if isinstance(returned, Result) else Result(success=True, value=returned)
    if not result.success or result.raw is not None or result.relayed is not None:
        return result
    if result.structured is not None:
        is_checked = result.structured_for is not None or output.schema is None
        fits = is_checked or output.validator.fits(result.structured)
        return result if fits else _misfit(name, result, output, result.structured)
    items = _items(result.value)
    if items is not None:
        return _shown(name, result, items, output)
    if type(result.value) in _BYTES:
        result = replace(result, value=bytes(cast(Any, result.value)).decode())
    if output.schema is None:
        return result
    blocks: list[Content] = []
    structured = output.structured(result.value, blocks)
    if output.validator.fits(structured):
        if returned is result.value and not blocks:
            return Result(success=True, value=result.value, structured=structured, structured_for=result.value)
        content = (*blocks, *result.content)
        return replace(result, structured=structured, structured_for=result.value, content=content)
    read = _read_as(output, result.value)
    if read is not None and output.validator.fits(again := output.structured(read, [])):
        return replace(result, value=read, structured=again, structured_for=read)
    finite = _with_nulls(structured)
    if finite != structured and output.validator.fits(finite):
        return replace(result, structured=finite, content=(*blocks, *result.content))
    return _misfit(name, replace(result, content=(*blocks, *result.content)), output, structured)


def refreshed(name: str, result: Result[Any], output: Output) -> Result[Any]:
    """The result whose value a middleware replaced, with structured content of the new one."""
    return as_result(name, replace(result, structured=None, structured_for=None), output)


def _shown(name: str, result: Result[Any], items: list[Any], output: Output) -> Result[Any]:
    """The result with its items as content; in structured content, their names stand in place of pictures and files."""
    inner: list[Content] = []
    content = [_as_block(item, inner) for item in items]
    shown = replace(result, value=None, content=(*content, *inner, *result.content))
    if output.schema is None:
        return shown
    names = [str(item) if isinstance(item, BLOCKS) else item for item in items]
    structured = output.structured(names if isinstance(result.value, (list, tuple)) else names[0], [])
    fits = output.validator.fits(structured)
    return replace(shown, structured=structured) if fits else _misfit(name, shown, output, structured)


def _read_as(output: Output, value: Any) -> Any:
    """The JSON of a value that can be read as the type, such as a `dict` for a model with defaults; None for others."""
    try:
        adapter = output.adapter
        return adapter and adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True)
    except ValueError:
        return None


def _misfit(name: str, result: Result[Any], output: Output, structured: JsonObject) -> Result[Any]:
    """The failure for a value of another type: clients refuse it, so the model gets it as text."""
    problems = output.validator.problems(structured)
    where = "".join(f" (at {'.'.join(map(str, problem.path))})" for problem in problems[:1] if problem.path)
    logger.warning("%s returned a value that does not fit its return annotation%s", name, where)
    shown = result.to_text()
    # A client reads the text, a person the log: what to change is for the author.
    wrong = "the tool's return annotation is wrong"
    if _with_nulls(structured) != structured:
        wrong = (
            "the tool returned NaN or infinity, which JSON does not have: annotate `float | None` for a null instead"
        )
    return Result.failure(
        f"`{name}` ran, but what it returned does not fit its return annotation{where}: {truncate(shown, 2_000)}",
        "invalid_result",
        instruction=f"Do not repeat the call: it has run. Use the value above, and tell the user that {wrong}.",
    )


_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})


def _with_nulls(plain: Any) -> Any:
    """JSON with null in place of what stands for a number that JSON does not have."""
    if isinstance(plain, dict):
        return {name: _with_nulls(part) for name, part in cast(JsonObject, plain).items()}
    if isinstance(plain, list):
        return [_with_nulls(part) for part in cast(list[Any], plain)]
    return None if isinstance(plain, str) and plain in _NOT_FINITE else plain


def _items(value: Any) -> list[Any] | None:
    """A value that is content, or a list with some, with blocks in place of what is one; None for other values."""
    if type(value) in _NEVER_BLOCKS:
        return None
    if not isinstance(value, (list, tuple)):
        return None if (block := content_of(value)) is None else [block]
    # By type, not by item: a list may have a million of them.
    kinds = {cast(Any, type(item)) for item in cast(list[Any], value)}
    if hasattr(cast(Any, value), "_fields") or not any(map(_may_be_block, kinds)):
        return None
    items = _flat(cast(list[Any], value))
    return items if any(isinstance(item, BLOCKS) for item in items) else None


_BYTES = (bytes, bytearray, memoryview)
_NEVER_BLOCKS = frozenset({str, int, float, bool, type(None), dict})


def _may_be_block(kind: type[Any]) -> bool:
    if kind in _NEVER_BLOCKS:
        return False
    return issubclass(kind, (*BLOCKS, *_BYTES, list, tuple)) or kind.__module__.startswith(("PIL.", "matplotlib."))


def _flat(items: list[Any]) -> list[Any]:
    """The items with blocks in place of what is one; lists of blocks among them are opened."""
    flat: list[Any] = []
    for item in items:
        inner = [content_of(part) or part for part in cast(list[Any], item)] if isinstance(item, (list, tuple)) else []
        if any(isinstance(part, BLOCKS) for part in inner):
            flat.extend(inner)
        else:
            flat.append(content_of(item) or item)
    return flat


def _as_block(item: Any, inner: list[Content]) -> Content:
    if isinstance(item, BLOCKS):
        return item
    plain = jsonable(item, inner)
    return Text(text=plain if isinstance(plain, str) else dump_json(plain))


def _plain(annotation: Any) -> Any:
    """The type of the value: without `Result[…]`, `Annotated`, names of types and what is awaited.

    An `Annotated` with a schema of the author's own stays.
    """
    while True:
        origin = get_origin(annotation)
        if (named := getattr(annotation, "__value__", None)) is not None and not isinstance(annotation, type):
            annotation = named
        elif origin is Annotated and any(isinstance(part, WithJsonSchema) for part in get_args(annotation)[1:]):
            return annotation
        elif origin in (Result, Annotated, Required, NotRequired, collections.abc.Awaitable, collections.abc.Coroutine):
            annotation = get_args(annotation)[-1 if origin is collections.abc.Coroutine else 0]
        else:
            return None if annotation is Result else annotation


def _is_short(annotation: Any) -> bool:
    if annotation is None or get_origin(annotation) is Literal:
        return True
    members = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    short = (*_SHORT, decimal.Decimal, enum.Enum)
    return all(isinstance(member, type) and issubclass(member, short) for member in members)


def _schema_of(annotation: Any) -> JsonObject | None:
    """The schema of a type; None where it says nothing or has none."""
    if annotation in _SAYS_NOTHING or annotation is Result or _has_blocks(annotation):
        return None
    if (plain := annotation_schema(annotation)) is not None:
        return plain
    origin, members = get_origin(annotation) or annotation, get_args(annotation)
    if is_typeddict(origin):
        return _typed_dict(annotation)
    if origin is Annotated:
        own = next((part.json_schema for part in members[1:] if isinstance(part, WithJsonSchema)), None)
        return own or _schema_of(members[0])
    if (known := _pydantic_schema(annotation)) is not None:
        return known
    if origin in _STREAMS and members:
        return _schema_of(list[members[0]])
    if origin in _LISTS:
        items = _schema_of(_plain(members[0])) if members else None
        return {"type": "array", "items": items} if items else {"type": "array"}
    if origin in _OBJECTS:
        values = _schema_of(_plain(members[1])) if len(members) == 2 else None
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if origin in (Union, types.UnionType):
        options = [_schema_of(_plain(member)) if member is not type(None) else {"type": "null"} for member in members]
        return None if None in options else {"anyOf": options}
    return None


def _typed_dict(annotation: Any) -> JsonObject:
    # Our own, since pydantic refuses `typing.TypedDict` before Python 3.12.
    hints = get_type_hints(annotation, include_extras=True)
    properties = {name: _schema_of(_plain(hint)) or {} for name, hint in hints.items()}
    # The names of required keys are not known where annotations are texts: `NotRequired` itself is.
    required = [
        name
        for name, hint in hints.items()
        if get_origin(hint) is Required
        or (get_origin(hint) is not NotRequired and name in annotation.__required_keys__)
    ]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _pydantic_schema(annotation: Any) -> JsonObject | None:
    adapter = _adapter(annotation)
    try:
        return adapter and _without_docstrings(adapter.json_schema(mode="serialization"))
    except _UNKNOWN as error:
        return _unknown(annotation, error)


_UNKNOWN = (PydanticSchemaGenerationError, PydanticUserError, NameError, TypeError, ValueError)


def _adapter(annotation: Any) -> TypeAdapter[Any] | None:
    try:
        return TypeAdapter(annotation)
    except _UNKNOWN as error:
        return _unknown(annotation, error)


def _unknown(annotation: Any, error: Exception) -> None:
    logger.debug("No output schema for %r: %s", annotation, str(error).split("\n", 1)[0])


def _has_blocks(annotation: Any) -> bool:
    """Whether a type names content blocks, or what becomes one."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return _may_be_block(annotation) and annotation not in (list, tuple) and not hasattr(annotation, "_fields")
    return any(map(_has_blocks, get_args(annotation)))


def _without_docstrings(schema: JsonObject) -> JsonObject:
    """A model's docstring is for readers of the code."""
    definitions = {
        name: {key: part for key, part in definition.items() if key != "description"}
        for name, definition in cast(dict[str, JsonObject], schema.get("$defs", {})).items()
    }
    own = {key: part for key, part in schema.items() if key != "description"}
    return {**own, "$defs": definitions} if definitions else own


def _compact(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    compact: JsonObject = {}
    for key, part in cast(JsonObject, schema).items():
        if key in _MAPS:
            compact[key] = {name: _compact(each) for name, each in cast(JsonObject, part).items()}
        elif key in _LISTED:
            compact[key] = [_compact(each) for each in cast(list[Any], part)]
        elif key in _TYPES:
            if inner := isinstance(part, dict) and _compact(part):
                compact[key] = inner
        elif key in _WORDS:
            compact[key] = part
    return compact
