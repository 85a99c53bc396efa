"""Result[T]: what every tool returns, and the one envelope in which it travels."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

from trysquare.core.content import Content
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.relayed import Relayed, read_relayed
from trysquare.core.types import JsonObject

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, kw_only=True, slots=True)
class Result(Generic[T]):
    """A tool's answer: what came out, what to tell the person, what the agent should do next.

    `message` is for the person, `instruction` for the agent, `next` the exact call that follows, if one does.
    `fields` are a room's own top-level fields of the envelope. `raw` is a value that is JSON already: it passes
    through to the client unread. `relayed` is the whole answer of another server; beside it only `meta` counts.
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
    relayed: Relayed | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    # Static, with a type of its own: `Result.ok("text")` is a `Result[str]` for a type checker without saying so.
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
    ) -> Result[V]:
        """The call did what it was asked to."""
        return Result(
            success=True,
            value=value,
            message=message,
            instruction=instruction,
            warnings=warnings,
            next=next,
            fields=fields or {},
            content=content,
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
        relayed, code = Relayed(body=body, is_error=is_error), ErrorCode.TOOL_FAILED if is_error else None
        return Result(success=not is_error, code=code, relayed=relayed, meta=meta or {})

    @staticmethod
    def from_error(error: ToolError) -> Result[Any]:
        """The failure that a raised `ToolError` stands for."""
        return Result(
            success=False,
            error=error.message,
            error_type=error.code.value.lower(),
            code=error.code,
            instruction=error.instruction,
            next=error.next,
            fields=error.fields,
            meta=error.meta,
        )

    def opened(self) -> Result[Any]:
        """The same answer in our own parts, for callers that do not speak MCP: what another server said is read now."""
        if self.relayed is None:
            return self
        read = read_relayed(self.relayed.body)
        if self.success:
            return replace(self, value=read.value, message=read.message, content=read.content, relayed=None)
        told = read.text or "The other server's tool failed and does not say why."
        return replace(self, value=read.structured, error=told, content=read.content, relayed=None)

    def to_json(self) -> JsonObject:
        """The envelope: only what is set, in a fixed order, nothing but JSON inside."""
        return _envelope(self.opened())

    def to_json_str(self) -> str:
        """The envelope as compact JSON text."""
        return dump_json(self.to_json())

    def to_text(self) -> str:
        """The envelope for a client that reads only text: complete, and as short as it can be."""
        return render_text(self.to_json())


def _envelope(result: Result[Any]) -> JsonObject:
    envelope: JsonObject = {"success": result.success}
    if result.value is not None:
        envelope["value"] = jsonable(result.value)
    elif result.raw is not None:
        envelope["value"] = _parsed(result.raw)
    if result.error is not None:
        envelope["error"] = {"code": (result.code or ErrorCode.TOOL_FAILED).value, "message": clean(result.error)}
        envelope["error_type"] = clean(result.error_type or ErrorCode.TOOL_FAILED.lower())
    if result.exception is not None:
        envelope["exception_type"] = type(result.exception).__name__
        envelope["exception_message"] = clean(str(result.exception))
    if result.message is not None:
        envelope["message"] = clean(result.message)
    if result.instruction is not None:
        envelope["instruction"] = clean(result.instruction)
    if result.next is not None:
        envelope["next"] = jsonable(result.next)
    if result.warnings:
        envelope["warnings"] = [clean(warning) for warning in result.warnings]
    for name, part in result.fields.items():
        envelope[name] = jsonable(part)
    return envelope


def render_text(envelope: JsonObject) -> str:
    """Render an envelope as text: the answer first, then what to do about it."""
    lines = _answer_lines(envelope)
    rest = {name: part for name, part in envelope.items() if name not in _RENDERED}
    if isinstance(rest.get("output"), str):
        # What a room wrote for reading stays as it was written: in JSON every line break would be an escape.
        lines.extend(filter(None, [rest.pop("output").removesuffix("\n")]))
    if rest:
        lines.append(dump_json(rest))
    lines.extend(f"Warning: {warning}" for warning in envelope.get("warnings", ()))
    if instruction := envelope.get("instruction"):
        lines.append(f"Instruction: {instruction}")
    if following := envelope.get("next"):
        lines.append(f"Next: {dump_json(following)}")
    return "\n".join(lines) or "Done."


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


_RENDERED = frozenset({"success", "error", "error_type", "message", "value", "warnings", "instruction", "next"})


def _error_line(error: Any, error_type: str | None) -> str:
    if not isinstance(error, dict):
        return f"Error: {dump_json(error)}"
    told = cast(JsonObject, error)
    code = str(told.get("code"))
    kind = f" ({error_type})" if error_type and error_type != code.lower() else ""
    return f"Error {code}{kind}: {told.get('message')}"


def dump_json(value: Any) -> str:
    """A JSON value as compact text, readable: characters of other scripts stay as they are."""
    return to_json(value, inf_nan_mode="strings").decode()


def jsonable(value: Any) -> Any:
    """Any value as plain JSON: models, dataclasses, paths, dates; what has no JSON form becomes its text.

    What comes out can always be sent: it goes once through JSON, which leaves no NaN and no half of a character.
    """
    if value is None or isinstance(value, bool):
        return value
    if type(value) is str:
        return clean(value)
    try:
        return from_json(to_json(value, by_alias=True, fallback=str, inf_nan_mode="strings"))
    except (PydanticSerializationError, ValueError):
        return _by_force(value)


def _by_force(value: Any) -> Any:
    """What to send of a value that is no JSON as it stands: cleaned, or else its text."""
    try:
        plain = to_jsonable_python(cleaned(value), by_alias=True, fallback=str, bytes_mode="base64")
        return from_json(to_json(cleaned(plain), inf_nan_mode="strings"))
    except Exception:  # noqa: BLE001 - a cycle, too deep, or code of the value's own; the answer must still arrive
        return clean(_READABLE.repr(value))


def cleaned(value: Any) -> Any:
    """The same value without what JSON cannot hold: halves of characters, and numbers beyond every reader."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {cleaned(key): cleaned(part) for key, part in cast(dict[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [cleaned(part) for part in cast(list[Any], value)]
    return hex(value) if isinstance(value, int) and value.bit_length() > _MAX_BITS else value


def clean(text: str) -> str:
    """The same text, or where it holds lone surrogates the text with `?` in their place."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def _parsed(raw: bytes) -> Any:
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError:
        return clean(raw.decode(errors="replace"))


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
