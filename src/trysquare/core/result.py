"""Result[T]: what every tool returns, and the one envelope in which it travels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic_core import PydanticSerializationError, to_jsonable_python

from trysquare.core.content import Content
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Result(Generic[T]):
    """A tool's answer: what came out, what to tell the person, what the agent should do next.

    `message` is for the person, `instruction` for the agent, `next` the exact call that follows, if one does.
    `fields` are a room's own top-level fields of the envelope. `raw` is a value that is JSON already: it passes
    through to the client unread.
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
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def ok(
        cls,
        value: T | None = None,
        *,
        message: str | None = None,
        instruction: str | None = None,
        warnings: tuple[str, ...] = (),
        next: JsonObject | None = None,
        fields: Mapping[str, Any] | None = None,
        content: tuple[Content, ...] = (),
    ) -> Result[T]:
        """The call did what it was asked to."""
        return cls(
            success=True,
            value=value,
            message=message,
            instruction=instruction,
            warnings=warnings,
            next=next,
            fields=fields or {},
            content=content,
        )

    @classmethod
    def failure(
        cls,
        error: str,
        error_type: str | None = None,
        *,
        code: ErrorCode = ErrorCode.TOOL_FAILED,
        exception: BaseException | None = None,
        message: str | None = None,
        instruction: str | None = None,
        next: JsonObject | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Result[T]:
        """The call failed, and the text says why."""
        return cls(
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

    @classmethod
    def from_error(cls, error: ToolError) -> Result[T]:
        """The failure that a raised `ToolError` stands for."""
        return cls.failure(
            error.message, code=error.code, instruction=error.instruction, next=error.next, fields=error.fields
        )

    def to_json(self) -> JsonObject:
        """The envelope: only what is set, in a fixed order, nothing but JSON inside."""
        envelope: JsonObject = {"success": self.success}
        if self.value is not None:
            envelope["value"] = jsonable(self.value)
        elif self.raw is not None:
            envelope["value"] = json.loads(self.raw)
        if self.error is not None:
            envelope["error"] = {"code": (self.code or ErrorCode.TOOL_FAILED).value, "message": self.error}
            envelope["error_type"] = self.error_type
        if self.exception is not None:
            envelope["exception_type"] = type(self.exception).__name__
            envelope["exception_message"] = str(self.exception)
        for name in ("message", "instruction", "next"):
            if (part := getattr(self, name)) is not None:
                envelope[name] = part
        if self.warnings:
            envelope["warnings"] = list(self.warnings)
        for name, part in self.fields.items():
            envelope[name] = jsonable(part)
        return envelope

    def to_json_str(self) -> str:
        """The envelope as compact JSON text."""
        return dump_json(self.to_json())

    def to_text(self) -> str:
        """The envelope for a client that reads only text: complete, and as short as it can be."""
        return render_text(self.to_json())


def render_text(envelope: JsonObject) -> str:
    """Render an envelope as text: the answer first, then what to do about it."""
    lines: list[str] = []
    error: JsonObject | None = envelope.get("error")
    if error is not None:
        lines.append(f"Error {error['code']}: {error['message']}")
    if message := envelope.get("message"):
        lines.append(message)
    if "value" in envelope:
        value = envelope["value"]
        lines.append(value if isinstance(value, str) else dump_json(value))
    rest = {name: part for name, part in envelope.items() if name not in _RENDERED}
    if rest:
        lines.append(dump_json(rest))
    lines.extend(f"Warning: {warning}" for warning in envelope.get("warnings", ()))
    if instruction := envelope.get("instruction"):
        lines.append(f"Instruction: {instruction}")
    if following := envelope.get("next"):
        lines.append(f"Next: {dump_json(following)}")
    return "\n".join(lines) or "Done."


_RENDERED = frozenset({"success", "error", "error_type", "message", "value", "warnings", "instruction", "next"})


def dump_json(value: Any) -> str:
    """Compact JSON text, readable: characters of other scripts stay as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def jsonable(value: Any) -> Any:
    """Any value as plain JSON: models, dataclasses, paths, dates; what has no JSON form becomes its text."""
    if value is None or isinstance(value, (str, bool)):
        return value
    try:
        return to_jsonable_python(value, by_alias=True, fallback=str, inf_nan_mode="strings")
    except (PydanticSerializationError, UnicodeError, ValueError):
        # Cycles and bytes that are no text: the answer must still arrive, and say what it was.
        return str(value)
