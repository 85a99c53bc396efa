"""ToolMetadata: purpose, use, behaviour and consent of a tool."""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Union, get_args, get_origin, get_type_hints

from trysquare.core.errors import DeclarationError
from trysquare.core.json import JsonObject
from trysquare.core.text import closest_names, truncated_repr

if TYPE_CHECKING:
    from trysquare.core.context import CallContext

UNPREFIXED = "trysquare/unprefixed_name"
"""The key of `meta` with a tool's name without prefix, which descriptions use."""
FAMILY = "trysquare/family"
"""The key of `meta` that tools made from one definition share."""
Requirement: TypeAlias = Literal["required", "optional", "conditional"]
RESTART_RIGHT = "server:restart"
"""The right to end or restart the server."""
CONSOLE_RIGHT = "console"
"""The right to sign in to the console, and to decide there what waits for a human."""
RIGHTS = (RESTART_RIGHT, CONSOLE_RIGHT)
"""Every right. A token has none unless it was given one by name."""
PAGE_READER = "page_reader"
"""The category of the tool that reads on in long answers; it is listed where one of the others may give one."""
UI_EXTENSION = "io.modelcontextprotocol/ui"
"""The extension of clients that show pages beside tools: MCP Apps."""
APP_MIME_TYPE = "text/html;profile=mcp-app"
ALL_PROFILES = frozenset({"full", "levels", "gateway"})


@dataclass(frozen=True, slots=True)
class Icon:
    """A picture that clients show for a server, a tool, a prompt or a resource: `Icon("https://example.com/i.png")`."""

    src: str
    """An `https:` address, or a `data:` URI."""
    mime_type: str | None = None
    sizes: tuple[str, ...] = ()
    """Such as `48x48`, or `any` for one that scales."""

    def to_wire(self) -> JsonObject:
        """The icon as the protocol has it."""
        wire: JsonObject = {"src": self.src, "mimeType": self.mime_type, "sizes": list(self.sizes)}
        return {key: value for key, value in wire.items() if value}


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One concrete call and what it shows."""

    arguments: JsonObject
    explanation: str


@dataclass(frozen=True, slots=True)
class Consent:
    """A human must agree before the tool runs. `question` may name arguments in braces: "Delete {path}?".

    A name that is not an argument is refused where the tool is declared. Two braces stand for one: "Send {{}}?".
    """

    question: str
    _: KW_ONLY
    always: bool = True
    """Ask for each call; False asks once for the same arguments of the same principal within `ttl`."""
    ttl: float = 600.0
    actions: frozenset[str] = frozenset()
    """Of a tool with actions, those that ask; empty means that every call does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskOptions:
    """Calls of the tool may run as tasks: the client gets a task at once, and the result when it asks for it.

    Only clients that support tasks get one; others wait for the result, as for any call.
    """

    required: bool = False
    """Whether the tool can be called as a task only, and not by clients without tasks."""
    after: float | None = 0.0
    """Seconds for which the call is answered directly, before it becomes a task; None waits until the function says
    so, with `context.become_task()`. What the tool asks before is asked in the call itself."""
    ttl: float = 3600.0
    """Seconds for which the result is kept."""
    poll: float = 1.0
    """Seconds between two looks of the client."""
    repeats: bool | None = None
    """Whether the function may run again after its server died while it ran; None where the tool is read-only or
    idempotent. `context.request_id` is the same in every run. Where it may not, the task fails instead."""
    resumes: bool = False
    """Whether the function goes on from what it stored with `context.checkpoint()`: once it has stored something, it
    may run again whatever `repeats` says."""
    on_cancel: Callable[[Mapping[str, Any], CallContext], Awaitable[None]] | None = None
    """Called with the checkpoints of a task that is cancelled while its function does not run: to end elsewhere what
    it began there. While the function runs, it is cancelled itself."""

    def __post_init__(self) -> None:
        wrong = [name for name in ("ttl", "poll") if getattr(self, name) <= 0]
        if wrong or (self.after is not None and self.after < 0):
            raise DeclarationError(f"`{wrong[0] if wrong else 'after'}` of a task is a time in seconds, above 0.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolMetadata:
    """Everything about a tool that is neither its name, its schema nor its code."""

    category: str | None = None
    requirement: Requirement = "optional"
    """Whether an agent always gets the tool, finds it by search, or has it only where `needs` is met."""
    needs: tuple[str, ...] = ()
    """The capabilities without which the tool cannot work (`git`, `network`, `notion` …); each is probed for real."""
    use_when: str | None = None
    avoid_when: str | None = None
    limits: str | None = None
    """What the tool cannot do, in one line."""
    usage: str | None = None
    """General usage, for the third section of the full description."""
    examples: tuple[Example, ...] = ()
    trigger_words: tuple[str, ...] = ()
    consent: Consent | None = None
    consent_literal: str | None = None
    """The exact text that an argument must hold before a destructive call, where the tool uses that pattern."""
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    version: str | None = None
    deprecated: str | None = None
    """Why not to use the tool any more, and what instead."""
    timeout: float | None = None
    """Seconds a call may take; None means no limit of its own."""
    task: TaskOptions | None = None
    """How calls run as tasks; None answers each of them directly."""
    result_limit: int | None = 40_000
    """Characters of a result before it is cut into pages; None leaves it whole."""
    output_schema: bool = True
    """Whether the return annotation is listed as the tool's output schema, and its values are held to it."""
    prefix: str | None = None
    """This tool's own name prefix: None takes the default, "" none."""
    pinned: bool = False
    """Listed in every profile."""
    right: str | None = None
    """A right that the caller needs in addition to the toolset, such as `server:restart`."""
    toolset: str = "tools"
    """The toolset that the tool belongs to; profiles and scopes are chosen by it."""
    profiles: frozenset[str] = ALL_PROFILES
    """The profiles in which the tool is listed. Whatever is listed, every tool stays callable by name."""
    verbatim: bool = False
    """Listed with the whole description, however long; others are listed with its first 600 characters."""
    tags: frozenset[str] = frozenset()
    """Words to choose tools by, which search finds too; `_meta` has them."""
    icons: tuple[Icon, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])


class MetadataOptions(TypedDict, total=False):
    """The fields of `ToolMetadata` as keyword arguments of `declare` and `tool`."""

    category: str | None
    requirement: Requirement
    needs: tuple[str, ...]
    use_when: str | None
    avoid_when: str | None
    limits: str | None
    usage: str | None
    examples: tuple[Example, ...]
    trigger_words: tuple[str, ...]
    consent: Consent | str | None
    """A text is the question."""
    consent_literal: str | None
    read_only: bool | None
    destructive: bool | None
    idempotent: bool | None
    open_world: bool | None
    version: str | None
    deprecated: str | None
    timeout: float | None
    task: TaskOptions | bool | None
    result_limit: int | None
    output_schema: bool
    prefix: str | None
    pinned: bool
    right: str | None
    toolset: str
    profiles: frozenset[str]
    verbatim: bool
    tags: frozenset[str]
    icons: tuple[Icon, ...]
    meta: Mapping[str, Any]


def checked_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a declaration, with collections as the fields have them. Refuses unknown ones and wrong types."""
    known = _option_types()
    checked: dict[str, Any] = {}
    for name, given in options.items():
        if name not in known:
            near = closest_names(name, ("name", "title", "description", *known))
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise DeclarationError(f"There is no option `{name}`.{hint}")
        kinds, choices = known[name]
        value = _as_held(given, kinds)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise DeclarationError(f"`{name}` cannot be {truncated_repr(value)}: it takes {_kinds(kinds)}.")
        if choices and value not in choices:
            raise DeclarationError(f"`{name}` cannot be {value!r}: it is one of {', '.join(map(repr, choices))}.")
        checked[name] = value
    if isinstance(question := checked.get("consent"), str):
        checked["consent"] = Consent(question)
    if (consent := checked.get("consent")) is not None and not _is_question(consent.question):
        raise DeclarationError(f"`consent` needs a question for the user, not {truncated_repr(consent.question)}.")
    if "task" in checked and isinstance(checked["task"], bool):
        checked["task"] = TaskOptions() if checked["task"] else None
    for name in ("timeout", "result_limit"):
        if (limit := checked.get(name)) is not None and limit <= 0:
            raise DeclarationError(f"`{name}` cannot be {limit}: it is more than 0, or None for no limit.")
    return checked


def _is_question(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip())


def _as_held(given: Any, kinds: tuple[type[Any], ...]) -> Any:
    """A collection as the one that the field has."""
    held: Any = next((kind for kind in kinds if kind in (tuple, frozenset)), None)
    return held(given) if held is not None and isinstance(given, (list, set, frozenset, tuple)) else given


@cache
def _option_types() -> Mapping[str, tuple[tuple[type[Any], ...], tuple[Any, ...]]]:
    """The types of each option, and its values where only some are valid."""
    return {name: _types(hint) for name, hint in get_type_hints(MetadataOptions).items()}


def _types(hint: Any) -> tuple[tuple[type[Any], ...], tuple[Any, ...]]:
    origin = get_origin(hint)
    if origin is Literal:
        return (str,), get_args(hint)
    members = get_args(hint) if origin in (Union, types.UnionType) else (hint,)
    kinds = tuple(get_origin(member) or member for member in members)
    return (*kinds, int) if float in kinds else kinds, ()


def _kinds(kinds: tuple[type[Any], ...]) -> str:
    names = {type(None): "None", float: "a number", bool: "True or False", str: "a text", int: "an integer"}
    shown = [names.get(kind, f"a {kind.__name__}") for kind in kinds if kind is not int or float not in kinds]
    return " or ".join(shown)
