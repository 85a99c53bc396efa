"""Project and user flags: resolution and known flags."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from trysquare.core.errors import InvalidArguments
from trysquare.core.text import closest_names
from trysquare.store.content import FlagValue

Scope: TypeAlias = Literal["project", "feature", "both"]
"""Where a flag may be set: for a project, for all of a user's projects, or both."""

Source: TypeAlias = Literal["project", "feature", "preset", "default", "unset"]

MAX_CHARACTERS = 10_000
MAX_NUMBER = 2**53
"""Larger ones are not the same number in every JSON reader."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownFlag:
    """A flag with an effect of its own."""

    name: str
    scope: Scope
    default: FlagValue | None
    effect: str
    choices: tuple[str, ...] = ()
    kind: type = str


KNOWN: tuple[KnownFlag, ...] = (
    KnownFlag(
        name="content-style", scope="both", default="headings", choices=("plain", "headings", "full"),
        effect="How documents are joined: plain text, with a heading each, or with a heading and their metadata.",
    ),
    KnownFlag(
        name="content-budget", scope="both", default=None, kind=int,
        effect="Tokens of one answer where a call names no budget.",
    ),
    KnownFlag(
        name="startup-instruction", scope="both", default=None,
        effect="An expression whose content `@guide` delivers when it is called without arguments.",
    ),
    KnownFlag(
        name="preset", scope="project", default=None,
        effect="The preset whose flags hold where neither project nor user has set them.",
    ),
    KnownFlag(
        name="report-conflicts", scope="both", default=True, kind=bool,
        effect="Whether answers name documents that contradict one another.",
    ),
)  # fmt: skip
_BY_NAME = {flag.name: flag for flag in KNOWN}


@dataclass(frozen=True, kw_only=True, slots=True)
class Resolved:
    """A flag's value and where it comes from."""

    name: str
    value: FlagValue | None
    source: Source


def resolve(
    name: str,
    *,
    project: Mapping[str, FlagValue],
    feature: Mapping[str, FlagValue],
    preset: Mapping[str, FlagValue] | None = None,
) -> Resolved:
    """The effective value: project, then user, then preset, then default."""
    defaults = {flag.name: flag.default for flag in KNOWN if flag.default is not None}
    layers: dict[Source, Mapping[str, FlagValue]]
    layers = {"project": project, "feature": feature, "preset": preset or {}, "default": defaults}
    for source, values in layers.items():
        if name in values:
            return Resolved(name=name, value=values[name], source=source)
    return Resolved(name=name, value=None, source="unset")


def checked(name: str, value: Any, *, scope: Literal["project", "feature"]) -> FlagValue | None:
    """The value if this flag may have it in this scope; None means remove."""
    if not _NAME.fullmatch(name):
        raise InvalidArguments(
            f"Invalid flag name `{name[:80]}`. Use up to 64 letters, digits, `-`, `_` and `.`, such as `content-style`."
        )
    known = _BY_NAME.get(name)
    if known is not None and known.scope not in ("both", scope):
        raise InvalidArguments(f"`{name}` is a {known.scope} flag and cannot be set for the {scope}.")
    if value is None:
        return None
    if isinstance(value, int) and abs(value) > MAX_NUMBER:
        raise InvalidArguments(f"`{name}` takes a number of at most {MAX_NUMBER:,}.")
    return _generic(name, value) if known is None else _known(known, value)


def _known(flag: KnownFlag, value: Any) -> FlagValue:
    if flag.choices and value not in flag.choices:
        close = closest_names(str(value), flag.choices)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        raise InvalidArguments(f"`{flag.name}` is one of {', '.join(flag.choices)}; got {value!r:.80}.{hint}")
    if not isinstance(value, flag.kind) or (flag.kind is int and isinstance(value, bool)):
        raise InvalidArguments(f"`{flag.name}` takes a value of type {flag.kind.__name__}; got {value!r:.80}.")
    if flag.kind is int and value < 0:
        raise InvalidArguments(f"`{flag.name}` cannot be negative; got {value!r:.80}.")
    return _short_enough(flag.name, cast(FlagValue, value))


def _generic(name: str, value: Any) -> FlagValue:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArguments(f"`{name}` takes a finite number; got {value!r:.80}.")
    if isinstance(value, (bool, str, int, float)):
        return _short_enough(name, value)
    if isinstance(value, list) and all(isinstance(each, str) for each in cast(list[Any], value)):
        return _short_enough(name, cast(list[str], value))
    raise InvalidArguments(f"`{name}` takes a boolean, a number, a string or a list of strings; got {value!r:.80}.")


def _short_enough(name: str, value: FlagValue) -> FlagValue:
    length = sum(len(each) for each in value) if isinstance(value, list) else len(str(value))
    if length > MAX_CHARACTERS:
        raise InvalidArguments(f"`{name}` takes at most {MAX_CHARACTERS:,} characters; got {length:,}.")
    return value


def holds(wanted: Any, actual: FlagValue | None) -> bool:
    """Whether a document's `requires-<flag>` is met: true means any value that is not false."""
    if isinstance(wanted, bool):
        return bool(actual) == wanted
    choices: list[Any] = cast(list[Any], wanted) if isinstance(wanted, list) else [wanted]
    # A flag equals a value, or contains it if it is a list.
    return any(each in actual if isinstance(actual, list) else each == actual for each in choices)
