"""Result: what every tool returns, relayed results, and a result as JSON and as text."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from math import isfinite
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink, content_of
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list
from trysquare.core.text import encodable


def _read_relayed(body: bytes) -> tuple[str | None, Any, tuple[Content, ...]]:
    """Text, structured and other content of a relayed result. Anything but a JSON object counts as its text."""
    try:
        wire = from_json(body)
    except ValueError:
        wire = None
    if not isinstance(wire, dict):
        return body.decode(errors="replace"), None, ()
    answer = cast(JsonObject, wire)
    blocks = [cast(JsonObject, block) for block in as_list(answer.get("content")) if isinstance(block, dict)]
    texts = [_text(block, "text") for block in blocks if block.get("type") == "text"]
    content = tuple(piece for block in blocks if (piece := read_block(block)) is not None)
    return "\n".join(texts) if texts else None, answer.get("structuredContent"), content


def _repeats(text: str, value: Any) -> bool:
    """Whether a text is the value as JSON, as most servers write it."""
    try:
        return from_json(text) == value
    except ValueError:
        return False


def read_block(block: Mapping[str, Any]) -> Content | None:
    """A content block other than text; None for an unknown type."""
    match block.get("type"):
        case "image" | "audio" as kind:
            make = Image if kind == "image" else Audio
            return make(data=_text(block, "data"), mime_type=_text(block, "mimeType"))
        case "resource_link":
            return ResourceLink(
                uri=_text(block, "uri"), name=_text(block, "name"), mime_type=_text(block, "mimeType") or None
            )
        case "resource":
            return _embedded(block.get("resource"))
        case _:
            return None


def _embedded(resource: Any) -> ResourceContents | None:
    if not isinstance(resource, dict):
        return None
    embedded = cast(JsonObject, resource)
    kind = "blob" if "blob" in embedded else "text"
    uri, mime_type = _text(embedded, "uri"), _text(embedded, "mimeType") or None
    held = _text(embedded, kind)
    if kind == "blob":
        return ResourceContents(uri=uri, mime_type=mime_type, blob=held)
    return ResourceContents(uri=uri, mime_type=mime_type, text=held)


def _text(block: Mapping[str, Any], name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""


T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, kw_only=True, slots=True)
class Result(Generic[T]):
    """A tool's result: the value, a message, and what to do next.

    `message` is for the user, `instruction` for the agent, `next` the exact call that follows, if one does.
    `fields` are names of the tool's own beside the value. `raw` is a value that is JSON already: it passes through to
    the client unread. `relayed` is the whole answer of another server, the JSON object of its `tools/call`, which goes
    to an MCP client without being read; beside it only `meta` counts. `structured` is the value as structured content,
    which fits the tool's output schema; `page` says which part of a long answer this is.
    """

    success: bool
    value: T | None = None
    message: str | None = None
    instruction: str | None = None
    error: str | None = None
    error_type: str | None = None
    code: ErrorCode | None = None
    exception: BaseException | None = None
    warnings: tuple[str, ...] = ()
    next: JsonObject | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    content: tuple[Content, ...] = ()
    raw: bytes | None = None
    relayed: bytes | None = None
    structured: JsonObject | None = None
    structured_for: Any = field(default=None, repr=False, compare=False)
    """The value that `structured` was made of: a middleware may have put another in its place."""
    page: JsonObject | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    # Static, with a type of its own: `Result.ok("text")` is a `Result[str]` for a type checker by itself.
    @staticmethod
    def ok(
        value: V | None = None,
        *,
        message: str | None = None,
        instruction: str | None = None,
        warnings: tuple[str, ...] = (),
        next: JsonObject | None = None,
        fields: Mapping[str, Any] | None = None,
        content: tuple[Content, ...] = (),
        structured: JsonObject | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Result[V]:
        """The call did what it was asked to. `meta` is for the program that calls: no model reads it.

        With `structured` the value is only the text that a model reads, and `structured` the structured content.
        """
        return Result(
            success=True,
            value=value,
            message=message,
            instruction=instruction,
            warnings=warnings,
            next=next,
            fields=fields or {},
            content=content,
            structured=structured,
            meta=meta or {},
        )

    @staticmethod
    def failure(
        error: str,
        error_type: str | None = None,
        *,
        code: ErrorCode = ErrorCode.TOOL_FAILED,
        exception: BaseException | None = None,
        message: str | None = None,
        instruction: str | None = None,
        next: JsonObject | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Result[Any]:
        """The call failed, and the text says why."""
        # Not `Result[Any](…)`: typing would set an attribute on an object that has no place for it.
        return Result(
            success=False,
            error=error,
            error_type=error_type or code.value.lower(),
            code=code,
            exception=exception,
            message=message,
            instruction=instruction,
            next=next,
            fields=fields or {},
        )

    @staticmethod
    def relay(body: bytes, *, is_error: bool = False, meta: Mapping[str, Any] | None = None) -> Result[Any]:
        """The answer of another server as it came: its whole result of `tools/call`, and our label for `_meta`."""
        code = ErrorCode.TOOL_FAILED if is_error else None
        return Result(success=not is_error, code=code, relayed=body, meta=meta or {})

    @staticmethod
    def from_error(error: ToolError) -> Result[Any]:
        """The failure that a raised `ToolError` stands for."""
        failure = Result.failure(error.message, code=error.code, instruction=error.instruction, next=error.next)
        return replace(failure, fields=error.fields, meta=error.meta)

    def opened(self) -> Result[Any]:
        """The same result with a relayed one parsed, for callers other than MCP clients."""
        if self.relayed is None:
            return self
        text, structured, content = _read_relayed(self.relayed)
        read = replace(self, value=structured, content=content, relayed=None)
        if not self.success:
            return replace(read, error=text or "The other server's tool failed without a message.")
        if structured is None:
            return replace(read, value=text, message=None)
        return replace(read, message=None if text is None or _repeats(text, structured) else text)

    def to_json(self) -> JsonObject:
        """The envelope: only what is set, in a fixed order, nothing but JSON inside."""
        return envelope_of(self.opened())

    def to_json_str(self) -> str:
        """The envelope as compact JSON text."""
        return dump_json(self.to_json())

    def to_text(self) -> str:
        """The result for a reader of text: complete, and as short as it can be. Binary content is named."""
        opened = self.opened()
        texts = [text for piece in opened.content if (text := _shown(piece, opened)) is not None]
        envelope = envelope_of(opened)
        return "\n".join(texts) if texts and envelope == _BARE else "\n".join([render_text(envelope), *texts])


_BARE = {"success": True}
_NULL = {"result": None}
NO_VALUE = "Done. The tool returned no value."


def _shown(piece: Content, result: Result[Any]) -> str | None:
    """A content block for a reader of text. What `next` reads on needs no link."""
    if isinstance(piece, ResourceContents) and piece.text is not None:
        return piece.text
    return None if isinstance(piece, ResourceLink) and result.page is not None else str(piece)


def envelope_of(result: Result[Any], blocks: list[Content] | None = None) -> JsonObject:
    """Everything of a result as one JSON object; pictures and bytes inside its value are added to `blocks`."""
    envelope: JsonObject = {"success": result.success}
    if result.value is not None:
        envelope["value"] = _plain(result, blocks)
    elif result.raw is not None:
        envelope["value"] = read_json(result.raw)
    elif result.structured == _NULL:
        # The declared type has a null, and this is it.
        envelope["value"] = None
    if not result.success:
        envelope |= _failure(result)
    envelope |= guidance_of(result)
    for name, part in result.fields.items():
        envelope[name] = jsonable(part, blocks)
    return envelope


def _plain(result: Result[Any], blocks: list[Content] | None) -> Any:
    """The value as JSON. Where it is structured content already, as a whole and without doubt, it is not made again."""
    structured = result.structured
    if structured is not None and result.page is None and result.structured_for is not None:
        if "result" not in structured:
            return structured
        if isinstance(result.value, _NO_OBJECTS):
            return structured["result"]
    return jsonable(result.value, blocks)


_NO_OBJECTS = (str, int, float, list, tuple)


def _failure(result: Result[Any]) -> JsonObject:
    failure: JsonObject = {}
    if result.error is not None:
        failure["error"] = {"code": (result.code or ErrorCode.TOOL_FAILED).value, "message": encodable(result.error)}
        failure["error_type"] = encodable(result.error_type or ErrorCode.TOOL_FAILED.lower())
    if result.exception is not None:
        failure["exception_type"] = type(result.exception).__name__
        failure["exception_message"] = encodable(str(result.exception))
    return failure


def guidance_of(result: Result[Any]) -> JsonObject:
    """What a result says beside its value: only what is set, in a fixed order."""
    if result.message is result.instruction is result.next is result.page is None and not result.warnings:
        return {}
    parts = {"message": result.message, "instruction": result.instruction, "next": result.next}
    guidance: JsonObject = {name: jsonable(part) for name, part in parts.items() if part is not None}
    if result.warnings:
        guidance["warnings"] = [encodable(warning) for warning in result.warnings]
    return guidance if result.page is None else {**guidance, "page": result.page}


def render_text(envelope: JsonObject) -> str:
    """Render an envelope as text: the answer first, then what to do about it."""
    lines = _answer_lines(envelope)
    if not envelope.keys() <= _RENDERED:
        rest = {name: part for name, part in envelope.items() if name not in _RENDERED}
        if isinstance(rest.get("output"), str):
            # What a tool wrote for reading stays as it was written: in JSON every line break would be an escape.
            lines.extend(filter(None, [rest.pop("output").removesuffix("\n")]))
        if rest:
            lines.append(dump_json(rest))
    if warnings := envelope.get("warnings"):
        lines.extend(f"Warning: {warning}" for warning in warnings)
    if instruction := envelope.get("instruction"):
        lines.append(f"Instruction: {instruction}")
    if following := envelope.get("next"):
        lines.append(f"Next: {dump_json(following)}")
    return "\n".join(lines) if lines else NO_VALUE


def _answer_lines(envelope: JsonObject) -> list[str]:
    lines: list[str] = []
    if "error" in envelope:
        lines.append(_error_line(envelope["error"], envelope.get("error_type")))
    if message := envelope.get("message"):
        lines.append(message)
    if "value" in envelope:
        value = envelope["value"]
        lines.append(value if isinstance(value, str) else dump_json(value))
    return lines


_RENDERED = frozenset({"success", "error", "error_type", "message", "value", "warnings", "instruction", "next", "page"})


def _error_line(error: Any, error_type: str | None) -> str:
    if not isinstance(error, dict):
        return f"Error: {dump_json(error)}"
    known = cast(JsonObject, error)
    code = str(known.get("code"))
    kind = f" ({error_type})" if error_type and error_type != code.lower() else ""
    return f"Error {code}{kind}: {known.get('message')}"


def dump_json(value: Any) -> str:
    """A JSON value as compact text, readable: characters of other scripts stay as they are."""
    return to_json(value, inf_nan_mode="strings").decode()


def jsonable(value: Any, blocks: list[Content] | None = None) -> Any:
    """Any value as plain JSON: models, dataclasses, paths, dates; what has no JSON form becomes its text.

    The result can always be sent: it goes once through JSON, which leaves no NaN and no lone surrogate. Pictures and
    bytes in it are named where they stand, and added to `blocks`.
    """
    if value is None or isinstance(value, bool):
        return value
    kind = cast(Any, type(value))
    if kind is str:
        return value if value.isascii() else encodable(value)
    if (kind is int and value.bit_length() < 64) or (kind is float and isfinite(value)):
        return value
    found: list[Content] = [] if blocks is None else blocks
    before = len(found)
    try:
        return from_json(to_json(value, by_alias=True, fallback=partial(_named, found), inf_nan_mode="strings"))
    except (PydanticSerializationError, ValueError):
        del found[before:]
        return _by_force(value, found)


def _named(blocks: list[Content], value: Any) -> Any:
    """What JSON has no form for: a content block by its name, an array as a list, anything else as its text."""
    if (block := content_of(value)) is not None:
        blocks.append(block)
        return str(block)
    listed = getattr(value, "tolist", None)
    return str(value) if listed is None or isinstance(value, type) else listed()


def _by_force(value: Any, blocks: list[Content]) -> Any:
    """The JSON of a value that has none as it is: cleaned, or else its text."""
    try:
        plain = to_jsonable_python(_opened(value, blocks), by_alias=True, fallback=partial(_named, blocks))
        return from_json(to_json(cleaned(plain), inf_nan_mode="strings"))
    except Exception:  # noqa: BLE001 - a cycle, too deep, or code of the value's own; the answer must still arrive
        return encodable(_READABLE.repr(value))


def _opened(value: Any, blocks: list[Content]) -> Any:
    """The value with models and dataclasses as objects, and with bytes as text or, where they are none, by name."""
    if content_of(value) is not None:
        return _named(blocks, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(cast(bytes, value)).decode()
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True)
    elif is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, dict):
        return {cleaned(key): _opened(part, blocks) for key, part in cast(dict[Any, Any], value).items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_opened(part, blocks) for part in cast(list[Any], value)]
    return cleaned(value)


def cleaned(value: Any) -> Any:
    """The same value without lone surrogates and numbers too long for any reader."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {cleaned(key): cleaned(part) for key, part in cast(dict[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(part) for part in cast(list[Any], value)]
    return hex(value) if isinstance(value, int) and value.bit_length() > _MAX_BITS else value


def read_json(raw: bytes) -> Any:
    """The value of JSON bytes; the text of what is not JSON."""
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError:
        return encodable(raw.decode(errors="replace"))


_MAX_BITS = 14_000
"""Python itself refuses to read or write longer numbers as digits."""


class _Readable(reprlib.Repr):
    """The text of a value, without the depth that nobody could read."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 8
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = 1000
        self.maxstring = self.maxother = 10_000

    def repr_int(self, x: int, level: int) -> str:
        return hex(x) if x.bit_length() > _MAX_BITS else repr(x)


_READABLE = _Readable()


def answered(
    output: str,
    *,
    modified_files: Sequence[str] = (),
    data: JsonObject | None = None,
    message: str | None = None,
    instruction: str | None = None,
    warnings: Sequence[str] = (),
    next: JsonObject | None = None,
) -> Result[Any]:
    fields = _fields(output, modified_files, data)
    return Result.ok(message=message, instruction=instruction, warnings=tuple(warnings), next=next, fields=fields)


def failed(
    error: str,
    *,
    code: ErrorCode,
    output: str,
    modified_files: Sequence[str] = (),
    data: JsonObject | None = None,
    instruction: str | None = None,
) -> Result[Any]:
    """The work was tried, and did not come out right: there is something to read all the same."""
    return Result.failure(error, code=code, instruction=instruction, fields=_fields(output, modified_files, data))


def _fields(output: str, modified_files: Sequence[str], data: JsonObject | None) -> JsonObject:
    fields: JsonObject = {"output": output, "modified_files": list(modified_files)}
    return fields if data is None else {**fields, "data": data}
