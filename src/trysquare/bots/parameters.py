"""Parameters: what every tool of a bot takes, in one open object, so that many tools share one small schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from trysquare.bots.state_file import MAIN
from trysquare.core.errors import InvalidArguments
from trysquare.core.types import JsonObject

WIRE: JsonObject = {
    "type": "object",
    "properties": {"parameters": {"type": "object", "description": "project, run, answers …"}},
    "additionalProperties": False,
}
_TEXTS = ("project", "run", "request_key", "expected_action", "reason", "part", "query", "tool")
_LONGEST = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """The parameters of one call. `given` holds all of them, also those that only an action understands."""

    given: JsonObject = field(default_factory=dict[str, Any])
    project: str | None = None
    run: str = MAIN
    request_key: str | None = None
    expected_action: str | None = None
    reason: str | None = None
    part: str | None = None
    confirm: bool | str | None = None
    reject: bool = False
    skip: bool = False
    hard: bool = False
    fresh: bool = False
    """Whether parts that were delivered before are to be sent whole again."""

    def repeated(self, **more: Any) -> JsonObject:
        """The arguments of a call that goes on where this one was: the same project, run and scope, and what is new."""
        kept = {name: self.given[name] for name in ("project", "run", "scope") if name in self.given}
        inner = {**kept, **{name: value for name, value in more.items() if value is not None}}
        return {"parameters": inner} if inner else {}


class BotArguments:
    """The arguments of every tool of a bot. What a model put beside `parameters` is read as if it stood inside."""

    @property
    def wire(self) -> JsonObject:
        return WIRE

    @property
    def exact(self) -> JsonObject:
        return WIRE

    def parse(self, tool: str, raw: JsonObject) -> Parameters:
        """The parameters, or an error that says what is wrong with which of them."""
        beside = {name: value for name, value in raw.items() if name != "parameters"}
        inside = _object(tool, raw.get("parameters"))
        for name in beside.keys() & inside.keys():
            if beside[name] != inside[name]:
                raise _wrong(tool, f"`{name}` stands inside `parameters` and beside it, with two values")
        return read_parameters(tool, {**beside, **inside})


def read_parameters(tool: str, given: JsonObject) -> Parameters:
    """The parameters that all tools know, checked; the others are kept as they are."""
    texts = {name: _text(tool, given, name) for name in _TEXTS}
    reasons = [text for name in ("reject", "skip") if isinstance(text := given.get(name), str) and text.strip()]
    return Parameters(
        given=given,
        project=texts["project"],
        run=texts["run"] or MAIN,
        request_key=texts["request_key"],
        expected_action=texts["expected_action"],
        reason=texts["reason"] or (reasons[0] if reasons else None),
        part=texts["part"],
        confirm=_confirm(tool, given.get("confirm")),
        reject=_flag(tool, given, "reject"),
        skip=_flag(tool, given, "skip"),
        hard=_flag(tool, given, "hard"),
        fresh=_flag(tool, given, "fresh"),
    )


def _object(tool: str, raw: Any) -> JsonObject:
    if raw is None or raw == "":
        return {}
    if isinstance(raw, str):
        raw = _parsed(raw)
    if not isinstance(raw, Mapping):
        raise _wrong(tool, '`parameters` is one JSON object, such as {"run": "main"}')
    return dict(cast(Mapping[str, Any], raw))


def _parsed(text: str) -> Any:
    """Some models send the object as a text that holds it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _text(tool: str, given: JsonObject, name: str) -> str | None:
    value = given.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise _wrong(tool, f"`{name}` is a text")
    if len(value) > _LONGEST:
        raise _wrong(tool, f"`{name}` has more than {_LONGEST} characters")
    return value


def _flag(tool: str, given: JsonObject, name: str) -> bool:
    value = given.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    # `{"reject": "the reason"}` is what people write.
    if name in ("reject", "skip") and isinstance(value, str):
        return bool(value.strip())
    raise _wrong(tool, f"`{name}` is true or false")


def _confirm(tool: str, value: Any) -> bool | str | None:
    if value is None or isinstance(value, (bool, str)):
        return value or None
    raise _wrong(tool, "`confirm` is true, or the path of the project's folder")


def _wrong(tool: str, what: str) -> InvalidArguments:
    return InvalidArguments(f"{tool}: {what}.", instruction="Send the call again with that mended.")
