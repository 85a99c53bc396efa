"""Answers: the one shape in which every tool of a bot tells what happened and what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trysquare.bots.naming import bot_tool_name, close_tool_name
from trysquare.bots.parameters import Parameters
from trysquare.bots.plan import Position
from trysquare.bots.projects import BotProject, LiveBot
from trysquare.bots.state import Request
from trysquare.bots.window_rules import Notices
from trysquare.core.result import Result
from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One call of a tool of a bot: which tool, in which project, with which parameters."""

    bot: LiveBot
    project: BotProject
    tool: str
    parameters: Parameters
    principal: str
    client: str = ""

    @property
    def request(self) -> Request | None:
        """What the call stands for under its request key, where it has one."""
        if self.parameters.request_key is None:
            return None
        return Request(key=self.parameters.request_key, tool=self.tool, arguments=self.parameters.given)

    def is_repeated(self) -> bool:
        """Whether it was answered before under its request key. Then no gate stands in the way of that answer."""
        request = self.request
        return request is not None and self.project.state.was_answered(request, self.principal)

    def close_next(self, position: Position) -> JsonObject:
        """The call that closes an action, and no other one."""
        expected = f"{position.behavior}.{position.action}"
        return {
            "tool": close_tool_name(self.bot.name),
            "arguments": self.parameters.repeated(expected_action=expected),
        }

    def forward_next(self) -> JsonObject:
        """The call that goes on wherever the run stands."""
        return {"tool": bot_tool_name(self.bot.name), "arguments": self.parameters.repeated()}

    def again_next(self, **more: Any) -> JsonObject:
        """This call once more, with something added."""
        return {"tool": self.tool, "arguments": self.parameters.repeated(**more)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What an answer says beside its position."""

    data: JsonObject = field(default_factory=dict[str, Any])
    action_completed: bool = False
    action_state: str = "awaiting_close"
    next: JsonObject | None = None
    message: str | None = None
    instruction: str | None = None
    status: str = "completed"
    warnings: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notices: Notices = field(default_factory=Notices)


def answer(call: Call, position: Position, told: Told) -> Result[Any]:
    """The answer of a tool: the seed's four fields first, then where the run stands."""
    fields: JsonObject = {
        "status": told.status,
        "behavior": position.behavior,
        "action": position.action,
        "data": told.data,
        "project": str(call.project.root),
        "run": call.parameters.run,
        "action_completed": told.action_completed,
        "action_state": told.action_state,
        **told.fields,
    }
    for name in ("recovered", "inconsistent"):
        if notes := getattr(told.notices, name):
            fields[name] = list(notes)
    return Result.ok(
        message=told.message,
        instruction=told.instruction,
        next=told.next,
        warnings=(*told.warnings, *told.notices.warnings),
        fields=fields,
    )
