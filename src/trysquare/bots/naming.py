"""Naming: what folders and files of a bot are called, in which order they come, and the tools that follow from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_TOOL_NAME = 64
"""What every large client accepts."""

RESERVED = frozenset({"tool", "close", "close_current_action", "restart", "restart_server", "find", "do"})
"""Words that tools of every bot end with; a behavior or an action of that name could be taken for one of them."""

_PREFIX = re.compile(r"(\d+)_(?=.)", re.ASCII)
_NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """A name as it stands on disk, parted into its number and what it is called."""

    raw: str
    name: str
    number: int | None = None

    @property
    def order(self) -> tuple[bool, int, str]:
        """By number, then by name; what has no number comes last."""
        return (self.number is None, self.number or 0, self.name)


def read_label(raw: str) -> Label:
    """Part `2_render` into 2 and `render`; only digits before an underscore are a prefix, so `2fa_login` has none."""
    found = _PREFIX.match(raw)
    if found is None:
        return Label(raw=raw, name=raw)
    return Label(raw=raw, name=raw[found.end() :], number=int(found[1]))


def clean_name(raw: str) -> str:
    """The name without its number."""
    return read_label(raw).name


def is_name(name: str) -> bool:
    """Whether a bot, a behavior or an action may be called so: small letters, digits, single underscores."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolName:
    """A tool that follows from a definition, and the parts that it is made of."""

    name: str
    behavior: str | None = None
    action: str | None = None


def bot_tool_name(bot: str) -> str:
    """The tool that continues wherever the work stands."""
    return f"{bot}_tool"


def close_tool_name(bot: str) -> str:
    """The tool that completes the current action."""
    return f"{bot}_close_current_action"


def restart_tool_name(bot: str) -> str:
    """The tool that reads the definition again."""
    return f"{bot}_restart_server"


def behavior_tool_name(bot: str, behavior: str) -> str:
    """The tool that continues in one behavior."""
    return f"{bot}_{behavior}_tool"


def action_tool_name(bot: str, behavior: str, action: str) -> str:
    """The tool that opens one action of a behavior."""
    return f"{bot}_{behavior}_{action}"


def find_tool_name(bot: str) -> str:
    """The tool that finds a tool of the bot, for clients that list few tools."""
    return f"{bot}_find"


def do_tool_name(bot: str) -> str:
    """The tool that calls any tool of the bot, for clients that list few tools."""
    return f"{bot}_do"


def tool_names(bot: str, behaviors: Iterable[str], actions: Iterable[str]) -> Iterator[ToolName]:
    """The tools of profile `full`: three of the bot, one for each behavior, one for each action of each behavior."""
    actions = tuple(actions)
    for name in (bot_tool_name(bot), close_tool_name(bot), restart_tool_name(bot)):
        yield ToolName(name=name)
    for behavior in behaviors:
        yield ToolName(name=behavior_tool_name(bot, behavior), behavior=behavior)
        for action in actions:
            yield ToolName(name=action_tool_name(bot, behavior, action), behavior=behavior, action=action)


def gateway_tool_names(bot: str) -> tuple[ToolName, ToolName]:
    """The two tools that only profile `gateway` lists."""
    return ToolName(name=find_tool_name(bot)), ToolName(name=do_tool_name(bot))
