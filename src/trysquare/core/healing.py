"""Argument errors that heal: what is wrong, what was expected, the nearest name, and the corrected call."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trysquare.core.arguments import type_text
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.types import JsonObject

WRAPPER_KEYS = ("args", "arguments", "parameters", "params", "input", "kwargs")
_MAX_PROBLEMS = 8
_MAX_SHOWN = 80


def unwrapped(raw: JsonObject, properties: Mapping[str, Any]) -> JsonObject:
    """The arguments themselves, where a model put them one level too deep: `{"args": {…}}`."""
    if len(raw) != 1:
        return raw
    [(key, inner)] = raw.items()
    if key not in WRAPPER_KEYS or key in properties or not isinstance(inner, dict):
        return raw
    return cast(JsonObject, inner)


def nearest(name: str, names: Iterable[str], *, count: int = 1) -> list[str]:
    """The closest of some names, best first: by spelling, and by one name holding the other."""
    known = list(names)
    folded = {_fold(candidate): candidate for candidate in reversed(known)}
    close = difflib.get_close_matches(_fold(name), folded, n=count, cutoff=0.6)
    found = [folded[match] for match in close]
    if len(name) > 2:
        holding = [candidate for candidate in known if _fold(name) in _fold(candidate)]
        found.extend(candidate for candidate in holding if candidate not in found)
    return found[:count]


def _fold(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")


def healed(error: ValidationError, *, tool: str, raw: JsonObject, schema: JsonObject) -> InvalidArguments:
    """The error that a model reads: one short message, and in `next` the corrected call."""
    return _Healer(tool=tool, raw=raw, schema=schema).heal(error)


class _Healer:
    """Collects what is wrong with one call, and mends a copy of its arguments as it goes."""

    def __init__(self, *, tool: str, raw: JsonObject, schema: JsonObject) -> None:
        self._tool = tool
        self._raw = raw
        self._properties = cast(dict[str, JsonObject], schema.get("properties", {}))
        self._mended: JsonObject = dict(raw)
        self._open: list[str] = []
        self._renamed: set[str] = set()

    def heal(self, error: ValidationError) -> InvalidArguments:
        details = error.errors(include_url=False, include_context=True)
        # Unknown names first: a misspelt name explains why the right one is missing.
        unknown = [self._unknown(detail) for detail in details if detail["type"] == "extra_forbidden"]
        others = [self._other(detail) for detail in details if detail["type"] != "extra_forbidden"]
        problems = [problem for problem in (*unknown, *others) if problem]
        shown = problems[:_MAX_PROBLEMS]
        if len(problems) > len(shown):
            shown.append(f"and {len(problems) - len(shown)} more.")
        return InvalidArguments(
            " ".join(shown),
            code=_code(details),
            instruction=self._instruction(),
            next={"tool": self._tool, "arguments": self._mended},
        )

    def _instruction(self) -> str:
        if self._open:
            return f"Fill in {_listed(self._open)} and send the call in `next`."
        return "Send the corrected call in `next`."

    def _unknown(self, detail: ErrorDetails) -> str:
        first, *deeper = detail["loc"]
        if deeper:
            return f"`{_place(detail)}` is not known there."
        name = str(first)
        value = self._mended.pop(name, None)
        free = [known for known in self._properties if known not in self._raw and known not in self._renamed]
        close = nearest(name, free)
        if not close:
            return (
                f"There is no argument `{_short(name)}`; the arguments are {_listed(list(self._properties)) or 'none'}."
            )
        self._renamed.add(close[0])
        self._mended[close[0]] = value
        return f"There is no argument `{_short(name)}`; `{close[0]}` is meant, it seems."

    def _other(self, detail: ErrorDetails) -> str:
        if not detail["loc"]:
            return _sentence(detail["msg"])
        name = str(detail["loc"][0])
        schema = self._properties.get(name, {})
        if detail["type"] == "missing" and len(detail["loc"]) == 1:
            return self._missing(name, schema)
        return self._wrong(detail, name, schema)

    def _missing(self, name: str, schema: JsonObject) -> str:
        if name in self._renamed:
            return ""
        self._mended[name] = self._blank(name, schema)
        about = f", {schema['description']}" if schema.get("description") else ""
        return f"`{name}` is missing ({type_text(schema)}{about})."

    def _wrong(self, detail: ErrorDetails, name: str, schema: JsonObject) -> str:
        expected = type_text(schema) if len(detail["loc"]) == 1 and schema else None
        given = _short(repr(detail.get("input")))
        if len(detail["loc"]) == 1:
            self._mended[name] = self._guess(name, schema, detail.get("input"))
        said = f"must be {expected}" if expected and detail["type"] in _TYPE_ERRORS else _sentence(detail["msg"], "")
        return f"`{_place(detail)}` {said}; got {given}."

    def _guess(self, name: str, schema: JsonObject, given: Any) -> Any:
        """The value that was probably meant, or a blank to fill in."""
        choices = cast(list[Any], schema.get("enum", [schema["const"]] if "const" in schema else []))
        if len(choices) == 1 and "const" not in schema:
            return choices[0]
        texts = {str(choice): choice for choice in choices if "const" not in schema}
        if texts and (close := nearest(str(given), texts)):
            return texts[close[0]]
        if schema.get("type") == "string" and isinstance(given, (int, float)) and not isinstance(given, bool):
            return str(given)
        if schema.get("type") == "array" and not isinstance(given, (list, dict, type(None))):
            return [given]
        return self._blank(name, schema)

    def _blank(self, name: str, schema: JsonObject) -> str:
        self._open.append(name)
        return f"<{type_text(schema)}>"


_TYPE_ERRORS = frozenset(
    {"literal_error", "enum", "string_type", "int_type", "int_parsing", "int_from_float", "float_type", "float_parsing",
     "bool_type", "bool_parsing", "list_type", "dict_type", "model_type", "none_required"}
)  # fmt: skip


def _code(details: list[ErrorDetails]) -> ErrorCode:
    kinds = {detail["type"] for detail in details}
    if "extra_forbidden" in kinds:
        return ErrorCode.VALIDATION_UNKNOWN_PARAM
    if "missing" in kinds:
        return ErrorCode.VALIDATION_MISSING_PARAM
    return ErrorCode.VALIDATION_INVALID_PARAM


def _place(detail: ErrorDetails) -> str:
    head, *rest = detail["loc"]
    text = str(head) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
    return _short(text)


def _sentence(text: str, end: str = ".") -> str:
    text = text.removeprefix("Value error, ").rstrip(".")
    return text[:1].lower() + text[1:] + end


def _short(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return clean if len(clean) <= _MAX_SHOWN else clean[: _MAX_SHOWN - 1] + "…"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
