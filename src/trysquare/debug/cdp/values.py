"""Values of JavaScript as the inspector describes them, as texts."""

from __future__ import annotations

import json
from typing import Any, cast

from trysquare.core.types import JsonObject


def value_text(remote: JsonObject) -> str:
    """A remote object as a short text, from its preview where it has one."""
    if "unserializableValue" in remote:
        return str(remote["unserializableValue"])
    kind = remote.get("type")
    if kind == "undefined":
        return "undefined"
    if kind == "string":
        return json.dumps(remote.get("value"), ensure_ascii=False)
    if "value" in remote and kind != "object":
        return json.dumps(remote["value"])
    if remote.get("subtype") == "null":
        return "null"
    if kind == "function":
        return str(remote.get("description", "function")).split("{")[0].strip()[:80] or "function"
    if remote.get("subtype") == "error":
        return str(remote.get("description", "Error")).splitlines()[0]
    preview = remote.get("preview")
    return _preview_text(cast(JsonObject, preview)) if isinstance(preview, dict) else str(remote.get("description", ""))


def value_type(remote: JsonObject) -> str:
    """The name of a value's class, or its kind."""
    return str(remote.get("className") or remote.get("subtype") or remote.get("type") or "")


def _preview_text(preview: JsonObject) -> str:
    entries = cast(list[JsonObject], preview.get("entries") or [])
    properties = cast(list[JsonObject], preview.get("properties") or [])
    name = str(preview.get("description") or "")
    if preview.get("type") not in ("object", "function"):
        return _part_text({**preview, "value": name})
    more = ", …" if preview.get("overflow") else ""
    if entries:
        shown = ", ".join(_entry_text(entry) for entry in entries)
        return f"{name} {{{shown}{more}}}"
    if preview.get("subtype") == "array":
        return f"[{', '.join(_part_text(each) for each in properties)}{more}]"
    shown = ", ".join(f"{each.get('name')}: {_part_text(each)}" for each in properties)
    return f"{{{shown}{more}}}" if name in ("Object", "") else f"{name} {{{shown}{more}}}"


def _entry_text(entry: JsonObject) -> str:
    value = _preview_text(cast(JsonObject, entry.get("value") or {}))
    return f"{_preview_text(cast(JsonObject, entry['key']))} => {value}" if "key" in entry else value


def _part_text(part: JsonObject) -> str:
    value: Any = part.get("value")
    return json.dumps(value, ensure_ascii=False) if part.get("type") == "string" else str(value)
