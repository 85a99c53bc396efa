"""Answers: the one shape in which every tool of a bot tells what happened and what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trysquare.bots.definition import BotDefinition
from trysquare.bots.gates import Gates
from trysquare.bots.naming import bot_tool_name, close_tool_name
from trysquare.bots.parameters import Parameters
from trysquare.bots.plan import Plan, Position
from trysquare.bots.projects import BotProject, LiveBot
from trysquare.bots.state import Request
from trysquare.bots.window_rules import Notices
from trysquare.bots.workflow import RunState, open_actions
from trysquare.core.errors import ErrorCode
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
    definition: BotDefinition
    """The definition of this call, with the paths of its run: a reload meanwhile does not change it."""
    plan: Plan
    client: str = ""

    @staticmethod
    def of(
        bot: LiveBot, project: BotProject, *, tool: str, parameters: Parameters, principal: str, client: str = ""
    ) -> Call:
        """A call with the definition as it is now."""
        definition = bot.definition_of(parameters.run)
        return Call(
            bot=bot,
            project=project,
            tool=tool,
            parameters=parameters,
            principal=principal,
            client=client,
            definition=definition,
            plan=bot.plan,
        )

    def gates(self, state: RunState) -> Gates:
        """The gates of the run."""
        return Gates(definition=self.definition, strict=state.strict)

    def open_actions(self, state: RunState) -> list[Position]:
        """What is left to do in the run, in order."""
        return list(open_actions(self.plan, state, self.gates(state).is_defined))

    def action_next(self, position: Position) -> JsonObject:
        """The call that opens an action."""
        tool = f"{self.bot.name}_{position.behavior}_{position.action}"
        return {"tool": tool, "arguments": self.parameters.repeated()}

    def was_proposed(self) -> bool:
        """Whether this server proposed the folder for the run, which leaves no trace where nobody named it."""
        return (str(self.project.root), self.parameters.run) in self.bot.proposed

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
    failure: str | None = None
    """Why nothing came of the action; its instructions are handed out all the same."""
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
    if told.failure is not None:
        fields["status"] = "failed"
        if warnings := (*told.warnings, *told.notices.warnings):
            fields["warnings"] = list(warnings)
        return Result.failure(
            told.failure, code=ErrorCode.TOOL_FAILED, instruction=told.instruction, next=told.next, fields=fields
        )
    return Result.ok(
        message=told.message,
        instruction=told.instruction,
        next=told.next,
        warnings=(*told.warnings, *told.notices.warnings),
        fields=fields,
    )
