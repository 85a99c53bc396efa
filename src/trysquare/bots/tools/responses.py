"""Calls of bot tools and the one shape of their responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trysquare.bots.checkout_runs import require_here
from trysquare.bots.definition.folder import TOOL, close_tool_name, tool_name
from trysquare.bots.definition.model import BotDefinition
from trysquare.bots.gates import Gates, ask_human
from trysquare.bots.parameters import Parameters
from trysquare.bots.people import People, with_comment
from trysquare.bots.projects import BotProject, LiveBot
from trysquare.bots.workflow.conflicts import Notices
from trysquare.bots.workflow.machine import Approval, Entry, Plan, Position, RunState, open_actions
from trysquare.bots.workflow.runs import Change, Move, Request, Transition, refers_to
from trysquare.core.approvals import ConsentGrant
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode
from trysquare.core.json import JsonObject
from trysquare.core.result import Result

_MAX_SHOWN = 20
_DONE = "Tell the user that the workflow is complete."
ENDED = "Tell the user what is open; `next` opens the first of it."


@dataclass(frozen=True, kw_only=True, slots=True)
class BotCall:
    """One call of a bot tool in a project."""

    bot: LiveBot
    project: BotProject
    tool: str
    parameters: Parameters
    principal: str
    definition: BotDefinition
    """The definition with the paths of the run; a reload during the call does not change it."""
    plan: Plan
    client: str = ""
    task_id: str | None = None
    """The task of the call, whose later runs must change nothing again."""

    @staticmethod
    def of(bot: LiveBot, *, tool: str, parameters: Parameters, principal: str, client: str = "") -> BotCall:
        project = bot.project(parameters.project)
        home = bot.home(project.root)
        if not parameters.given.get("run"):
            parameters = replace(parameters, run=home.run)
        require_here(parameters.run, home)
        return BotCall(
            bot=bot,
            project=project,
            tool=tool,
            parameters=parameters,
            principal=principal,
            client=client,
            definition=bot.definition_of(parameters.run),
            plan=bot.plan,
        )

    @property
    def run(self) -> str:
        return self.parameters.run

    def after_delivery(self, handle: str) -> BotCall:
        """The same call, whose follow-up calls name this delivery."""
        given = {**self.parameters.given, "delivery": handle}
        return replace(self, parameters=replace(self.parameters, given=given, delivery=handle))

    def path(self, position: Position) -> str:
        return position.path(self.bot.name)

    def gates(self, state: RunState) -> Gates:
        return Gates.of(self.definition, state)

    def together(self, state: RunState, position: Position) -> tuple[Position, ...]:
        """An action and those that are delivered and closed with it in this run."""
        return self.plan.of(state).together(position)

    def people(self, notes: JsonObject) -> People:
        return People(definition=self.definition, notes=notes)

    def open_actions(self, state: RunState) -> list[Position]:
        return list(open_actions(self.plan, state, self.gates(state).is_defined))

    def was_proposed(self) -> bool:
        """Whether this server proposed the directory for the run, which is recorded nowhere else."""
        return (str(self.project.root), self.run) in self.bot.proposed

    @property
    def request(self) -> Request | None:
        """The call under its request key, or else under the id of its task, if it has one."""
        key = self.parameters.request_key or self.task_id
        return None if key is None else Request(key=key, tool=self.tool, arguments=self.parameters.given)

    def is_repeated(self) -> bool:
        """Whether a response is recorded under the request key. No gate applies to that response."""
        request = self.request
        return request is not None and self.project.state.was_answered(request, self.principal)

    def move(self, change: Move, *, kind: str, expected_version: int | None = None) -> Transition:
        return self.project.state.move(
            self._with_comment(change),
            kind=kind,
            principal=self.principal,
            run=self.run,
            expected_version=expected_version,
            request=self.request,
        )

    def _with_comment(self, change: Move) -> Move:
        """The change with the comment of this call, on the action that it opens, closes or rejects."""
        text = self.parameters.comment
        if text is None:
            return change

        def commented(state: RunState) -> Change:
            made = change(state)
            position = Position(behavior=made.answer["behavior"], action=made.answer["action"])
            return with_comment(made, position, text, by=self.principal)

        return commented

    def evidence(self, agreement: ConsentGrant | None) -> tuple[str, str | None]:
        """Who completes an action, and how a human approved it."""
        if agreement is None:
            return self.principal, None
        return agreement.by or self.principal, agreement.how or "asked"

    def approval(self, agreement: ConsentGrant | None) -> Approval:
        """What an agreement makes of a completion: only a signature proves it."""
        if agreement is None:
            return "claimed"
        return "confirmed" if agreement.signed is None else "proven"

    async def ask(
        self, question: str, binding: JsonObject, context: CallContext, *, strict: bool, gate: bool = False
    ) -> ConsentGrant:
        approvals = self.bot.approvals
        return await ask_human(
            self.tool, question, binding, approvals=approvals, context=context, gate=gate, strict=strict
        )

    async def ask_directory(self, binding: JsonObject, context: CallContext, *, strict: bool) -> ConsentGrant:
        return await self.ask(f"Let {self.bot.name} work in {self.project.root}?", binding, context, strict=strict)

    def action_next(self, position: Position) -> JsonObject:
        """The call that opens an action."""
        tool = tool_name(self.bot.name, position.behavior, position.action)
        return {"tool": tool, "arguments": self.parameters.repeated()}

    def close_next(self, position: Position) -> JsonObject:
        """The call that closes this action and no other."""
        arguments = self.parameters.repeated(expected_action=str(position))
        return {"tool": close_tool_name(self.bot.name), "arguments": arguments}

    def forward_next(self) -> JsonObject:
        """The call that continues at the current action."""
        return {"tool": tool_name(self.bot.name, TOOL), "arguments": self.parameters.repeated()}


@dataclass(frozen=True, kw_only=True, slots=True)
class BotResponse:
    """Contents of a response, without its position."""

    data: JsonObject = field(default_factory=dict[str, Any])
    action_completed: bool = False
    action_state: str = "awaiting_close"
    next: JsonObject | None = None
    message: str | None = None
    instruction: str | None = None
    status: str = "completed"
    failure: str | None = None
    """Why the action produced nothing, although its instructions are delivered."""
    warnings: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notices: Notices = field(default_factory=Notices)


def respond(call: BotCall, position: Position, response: BotResponse) -> Result[Any]:
    fields: JsonObject = {
        "status": response.status,
        "behavior": position.behavior,
        "action": position.action,
        "data": response.data,
        "project": str(call.project.root),
        "run": call.run,
        "action_completed": response.action_completed,
        "action_state": response.action_state,
        **response.fields,
    }
    for name in ("recovered", "inconsistent"):
        if notes := getattr(response.notices, name):
            fields[name] = list(notes)
    warnings = (*response.warnings, *response.notices.warnings)
    if response.failure is None:
        return Result.ok(
            message=response.message,
            instruction=response.instruction,
            next=response.next,
            warnings=warnings,
            fields=fields,
        )
    fields["status"] = "failed"
    if warnings:
        fields["warnings"] = list(warnings)
    return Result.failure(
        response.failure,
        code=ErrorCode.TOOL_FAILED,
        instruction=response.instruction,
        next=response.next,
        fields=fields,
    )


def already_closed(call: BotCall, state: RunState, expected: str) -> JsonObject | None:
    """The response to a close that is sent twice, which must not close the next action."""
    done = [
        entry
        for position, entry in state.latest.items()
        if entry.kind == "completed" and refers_to(call.plan, expected, position)
    ]
    last = max(done, key=lambda entry: entry.version, default=None)
    return None if last is None else closed_before(call, state, last)


def closed_before(call: BotCall, state: RunState, entry: Entry) -> JsonObject:
    following = None if state.finished else state.current
    return {
        **close_fields(entry.position, following, entry.approval, call.open_actions(state)),
        "already_closed": True,
        "message": f"{entry.position.action} was closed before; nothing was changed.",
    }


def nothing_left(call: BotCall, state: RunState) -> JsonObject:
    """The response to a close where the workflow has ended."""
    last, left = state.latest.get(state.current), call.open_actions(state)
    fields = close_fields(state.current, None, last.approval if last else "claimed", left)
    if not state.is_completed(state.current):
        # An edited state file can end a run at an open action.
        fields |= {"completed_action": None, "action_completed": False, "action_state": "in_work"}
    return {**fields, "already_closed": True, "message": f"{end_message(left)} Nothing was changed."}


def end_message(left: Sequence[Position]) -> str:
    """Whether the workflow is complete at its end."""
    if not left:
        return "The workflow is complete."
    return f"The workflow has ended but is not complete: {_count_open(len(left))}."


def _count_open(count: int) -> str:
    return "1 action is open" if count == 1 else f"{count} actions are open"


def end_fields(left: Sequence[Position]) -> JsonObject:
    """Whether the workflow is complete at its end, and the open actions if it is not."""
    if not left:
        return {"workflow_complete": True}
    return {
        "workflow_complete": False,
        "open_actions": [str(each) for each in left[:_MAX_SHOWN]],
        "open_count": len(left),
    }


def close_fields(
    completed: Position, following: Position | None, approval: Approval, left: Sequence[Position]
) -> JsonObject:
    """The fields of every response to a close; `left` are the open actions."""
    fields: JsonObject = {
        "behavior": completed.behavior,
        "action": completed.action,
        "completed_action": completed.action,
        "next_action": None if following is None else following.action,
        "approval": approval,
    }
    return fields if following is not None else {**fields, **end_fields(left), "next_behavior": None}


def respond_closed(call: BotCall, recorded: JsonObject, notices: Notices, *, replayed: bool = False) -> Result[Any]:
    """The result of the close tool, from its recorded response."""
    fields = dict(recorded)
    position = Position(behavior=fields.pop("behavior"), action=fields.pop("action"))
    message = fields.pop("message", None)
    warnings = tuple(fields.pop("warnings", ()))
    ends, done = "workflow_complete" in fields, bool(fields.get("workflow_complete"))
    if replayed:
        fields["replayed"] = True
    response = BotResponse(
        status=fields.pop("status", "completed"),
        action_completed=fields.pop("action_completed", True),
        action_state=fields.pop("action_state", "completed"),
        next=None if done else _first_open(call, fields) if ends else call.forward_next(),
        message=message or _close_message(position, fields),
        instruction=_DONE if done else ENDED if ends else "Send `next` to continue.",
        warnings=warnings,
        fields=fields,
        notices=notices,
    )
    return respond(call, position, response)


def _first_open(call: BotCall, fields: JsonObject) -> JsonObject:
    behavior, _, action = str(fields["open_actions"][0]).partition(".")
    return call.action_next(Position(behavior=behavior, action=action))


def _close_message(position: Position, fields: JsonObject) -> str:
    following = fields.get("next_action")
    if following is not None:
        elsewhere = f" of {fields['next_behavior']}" if fields.get("next_behavior") else ""
        return f"{position} is closed. The next action is {following}{elsewhere}."
    if fields.get("workflow_complete"):
        return f"{position} is closed. The workflow is complete."
    return f"{position} is closed. The workflow is not complete: {_count_open(fields.get('open_count', 0))}."
