"""What a configuration says beside how to reach a server: limits, timeouts, which tools, and `x-trysquare`."""

from __future__ import annotations

from typing import Any

from trysquare.core.nearest import nearest
from trysquare.gateway.configuration.fields import Fields
from trysquare.gateway.configuration.shapes import SETTINGS_KEY

_SECONDS = ("timeout", "start_timeout", "idle")
_COUNTS = (
    "concurrency",
    "result_bytes",
    "max_line",
    "max_tools",
    "max_catalogue_bytes",
    "max_definition_bytes",
)
_CHOICES = {
    "sharing": ("shared", "caller"),
    "changes": ("hold", "refuse", "accept"),
    "first_use": ("trust", "hold"),
}
OWN_KEYS = (*_SECONDS, *_COUNTS, *_CHOICES, "redact", "pass_env", "description")
"""What may stand under `x-trysquare`."""
_MILLISECONDS_FROM = 1000.0
_AT_LEAST_ONE = ("timeout", "start_timeout", *(name for name in _COUNTS if name != "result_bytes"))


def read_settings(fields: Fields, common: Fields | None) -> dict[str, Any]:
    """The settings of one server, by the names that `ServerConfig` has for them; its own before the common ones."""
    own = fields.inner(SETTINGS_KEY)
    shared = _own(common) if common is not None else {}
    single = _own(own) if own is not None else {}
    found = {**shared, **_of_clients(fields), **single}
    if passed := shared.get("pass_env", frozenset()) | single.get("pass_env", frozenset()):
        found["pass_env"] = passed
    return found


def _of_clients(fields: Fields) -> dict[str, Any]:
    """What other clients have words for too."""
    found: dict[str, Any] = {"exclude_tools": _excluded(fields)}
    timeout, description = fields.number("timeout"), fields.text("description")
    if timeout:
        found["timeout"] = in_seconds(timeout)
    if description is not None:
        found["description"] = description
    included = _included(fields)
    if included is not None:
        found["include_tools"] = included
    return found


def in_seconds(timeout: float) -> float:
    """A timeout in seconds. Clients disagree about the unit: from 1000 on it is taken for milliseconds."""
    return timeout / 1000 if timeout >= _MILLISECONDS_FROM else timeout


def _included(fields: Fields) -> frozenset[str] | None:
    member = fields.member("includeTools", "tools")
    if member is None or member.node.items is None:
        return None
    names = frozenset(fields.texts(member.name) or ())
    return None if "*" in names else names


def _excluded(fields: Fields) -> frozenset[str]:
    keys = ("excludeTools", "disabledTools", "disabled_tools")
    return frozenset(name for key in keys for name in fields.texts(key) or ())


def _own(fields: Fields) -> dict[str, Any]:
    _refuse_unknown(fields)
    found: dict[str, Any] = {key: fields.number(key) for key in _SECONDS}
    found |= {key: fields.count(key) for key in _COUNTS}
    found |= {key: _choice(fields, key) for key in _CHOICES}
    found |= {key: _names(fields, key) for key in ("redact", "pass_env")}
    found["description"] = fields.text("description")
    for key in _AT_LEAST_ONE:
        if found[key] == 0:
            raise fields.wrong(fields.member(key), "must be more than zero.")
    return {key: value for key, value in found.items() if value is not None}


def _refuse_unknown(fields: Fields) -> None:
    for member in fields.node.members or ():
        if member.name not in OWN_KEYS:
            near = nearest(member.name, OWN_KEYS)
            known = f"The nearest is `{near[0]}`." if near else f"Known are {', '.join(OWN_KEYS)}."
            raise fields.wrong(member, f"is no setting. {known}")


def _choice(fields: Fields, key: str) -> str | None:
    chosen, known = fields.text(key), _CHOICES[key]
    if chosen is not None and chosen not in known:
        *others, last = (f'"{one}"' for one in known)
        raise fields.wrong(fields.member(key), f"must be {', '.join(others)} or {last}.")
    return chosen


def _names(fields: Fields, key: str) -> frozenset[str] | None:
    names = fields.texts(key)
    return None if names is None else frozenset(names)
