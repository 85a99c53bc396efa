"""Bot, behavior and action tools: open an action and deliver its instructions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from trysquare.bots.actions import LOCATION, produced_files
from trysquare.bots.definition.folder import tool_name
from trysquare.bots.gates import check_jump, file_digests
from trysquare.bots.parameters import OF_ACTION
from trysquare.bots.people import People
from trysquare.bots.run_files import defined_digests
from trysquare.bots.tools.admin import View, locate, propose_location, require_project
from trysquare.bots.tools.close import ask_for_definition, closed_gate_before, require_no_gate_before, weakened
from trysquare.bots.tools.correcting import decide, decision_of, keep
from trysquare.bots.tools.delivery import DeliveryLog, deliver, deliver_part
from trysquare.bots.tools.responses import ENDED, BotCall, BotResponse, end_fields, end_message, respond
from trysquare.bots.tools.starting import (
    ask_for_depth,
    asks_for_depth,
    chosen,
    require_agreed,
    require_applies,
    require_no_preset,
    with_start,
)
from trysquare.bots.workflow import machine
from trysquare.bots.workflow.conflicts import Notices
from trysquare.bots.workflow.machine import INITIALIZE, Approval, Closed, Plan, Position, RunState, StateConflict
from trysquare.bots.workflow.runs import Change, Transition
from trysquare.core.approvals import ConsentGrant
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.store.audit import utc_now

CORRECT = "correct_bot"
_MAX_TRIGGERS = 5
_MAX_DESCRIPTION = 1_000


def describe(purpose: str, triggers: Iterable[str]) -> str:
    """The description of a tool: its purpose and at most five trigger patterns."""
    chosen = list(dict.fromkeys(triggers))[:_MAX_TRIGGERS]
    lines = [purpose, "Trigger patterns: " + ", ".join(chosen)] if chosen else [purpose]
    return "\n".join(lines)[:_MAX_DESCRIPTION]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a tool opens: an action, the current one of a behavior, or the current one of the run."""

    behavior: str | None = None
    action: str | None = None

    def position(self, plan: Plan, state: RunState) -> Position:
        if self.behavior is not None and self.action is not None:
            return Position(behavior=self.behavior, action=self.action)
        return machine.current_in(plan, state, self.behavior)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenView(View):
    gate: bool = False
    """Whether the position is an open gate that the run passed and returns to."""
    depth_agreement: ConsentGrant | None = None
    """A human's agreement to what the preset of a new run takes away."""


async def forward(call: BotCall, target: Target, deliveries: DeliveryLog, context: CallContext) -> Result[Any]:
    """Open the action of a target and deliver its instructions."""
    if target.action == CORRECT and (decision := decision_of(call)) is not None:
        return await decide(call, *decision, context)
    view = await run_in_thread(lambda: _open_or_view(call, target, deliveries))
    if not isinstance(view, OpenView):
        return view
    view = replace(view, depth_agreement=await ask_for_depth(call, view.state, context))
    agreement = await _ask(call, view, context)
    return await run_in_thread(lambda: _open(call, target, view, agreement, deliveries))


def _open_or_view(call: BotCall, target: Target, deliveries: DeliveryLog) -> Result[Any] | OpenView:
    """The result where nobody has to be asked, all in one thread; else what was found."""
    view = _view(call, target)
    position = view.position
    if call.parameters.part is not None:
        return deliver_part(call, position, view.notes, call.parameters.part)
    if call.is_repeated():
        return _open(call, target, view, None, deliveries)
    if target.behavior is None and view.state.finished:
        return _ended(call, view)
    _require_understood(call, view.state, position)
    if target.action is not None and target.action in call.plan.independent:
        require_no_preset(call)
        return _independent(call, view, deliveries)
    if not view.location.settled and position.action == INITIALIZE:
        return propose_location(call, position, view.location, view.loaded.notices)
    require_project(call, view.location)
    require_applies(call, view.state, position)
    require_no_gate_before(call, view.state, position)
    _require_mine(call, view.state, view.notes, position)
    is_weaker = bool(weakened(call, view.state, view.notes))
    asks = is_weaker or bool(asks_for_depth(call, view.state)) or _asks_to_jump(call, view) or view.asks_for_directory()
    return view if asks else _open(call, target, view, None, deliveries)


def _require_mine(call: BotCall, state: RunState, notes: JsonObject, position: Position) -> None:
    """Refuse to take up again what others completed, and to complete their action by opening it."""
    people, gates = call.people(notes), call.gates(state)
    if machine.jump_of(state, position) == "reopened":
        people.require_sender_back(call.principal, position)
    if position.action != INITIALIZE and gates.policy(position) == "auto":
        people.require_assignee(call.principal, (position,))


def _require_understood(call: BotCall, state: RunState, position: Position) -> None:
    """Refuse parameters of an action that the call does not open: they would be lost."""
    understood = {name for each in call.together(state, position) for name in OF_ACTION.get(each.action, ())}
    for name in call.parameters.given:
        owner = next((action for action, names in OF_ACTION.items() if name in names), None)
        if owner is None or name in understood:
            continue
        known = any(each.name == owner for each in call.definition.actions)
        hint = f" Send it to `{tool_name(call.bot.name, position.behavior, owner)}`." if known else ""
        raise InvalidArguments(
            f"{call.tool}: `{name}` belongs to {owner}, and another action is current. Nothing was done.",
            code=ErrorCode.VALIDATION_UNKNOWN_PARAM,
            instruction=f"Remove `{name}`.{hint}",
        )


def _view(call: BotCall, target: Target) -> OpenView:
    loaded = call.project.load(call.run)
    loaded = replace(loaded, state=chosen(call, loaded.state))
    position, is_gate = _resolve(call, target, loaded.state)
    notes = call.project.state.notes(call.run) if call.project.is_known(loaded) else {}
    location = locate(call, position, loaded, notes)
    return OpenView(loaded=loaded, position=position, notes=notes, location=location, gate=is_gate)


def _resolve(call: BotCall, target: Target, state: RunState) -> tuple[Position, bool]:
    """The action of a target. The bot's own tool returns to an open gate that the run has passed."""
    position = target.position(call.plan, state)
    gate = closed_gate_before(call, state, position) if target.behavior is None else None
    return (position, False) if gate is None else (gate, True)


def _asks_to_jump(call: BotCall, view: OpenView) -> bool:
    # Returning to a gate is always allowed.
    return not view.gate and check_jump(call.plan, machine.jump_of(view.state, view.position), view.position)


async def _ask(call: BotCall, view: OpenView, context: CallContext) -> ConsentGrant | None:
    """Ask a human for everything that opening needs; returns the approval of the directory."""
    state = view.state
    await ask_for_definition(call, state, view.notes, context)
    if _asks_to_jump(call, view):
        path, jump = call.path(view.position), machine.jump_of(state, view.position)
        binding: JsonObject = {"run": call.run, "open": path, "version": state.version}
        reason = "completed already" if jump == "reopened" else "out of order"
        await call.ask(f"Open {path} although it is {reason}?", binding, context, strict=state.strict)
    if not view.asks_for_directory():
        return None
    place: JsonObject = {"project": str(call.project.root), "run": call.run}
    return await call.ask_directory(place, context, strict=state.strict)


def _open(
    call: BotCall, target: Target, view: OpenView, agreement: ConsentGrant | None, deliveries: DeliveryLog
) -> Result[Any]:
    moved = _already_open(call, view)
    if moved is None:
        moved = call.move(lambda state: _change(call, target, view, agreement, state), kind="open")
    position = Position(behavior=moved.answer["behavior"], action=moved.answer["action"])
    notices = view.loaded.notices + moved.notices
    if moved.answer.get("finished"):
        return _end(call, moved.state, position, notices)
    if moved.answer["asks"]:
        return propose_location(call, position, view.location, notices)
    call = replace(call, plan=call.plan.of(moved.state))
    response = replace(deliver(call, position, view.notes, deliveries), notices=notices)
    call = call.after_delivery(response.data["delivery"]["handle"])
    people = call.people(view.notes)
    return respond(call, position, _response(call, position, moved.answer, response, people))


def _already_open(call: BotCall, view: OpenView) -> Transition | None:
    """The result without a move, where the action is current and its instructions were delivered."""
    state, position = view.state, view.position
    if view.loaded.raised or call.parameters.request_key is not None or call.parameters.comment is not None:
        return None
    if position != state.current or not state.delivered or state.finished:
        return None
    made = _change(call, Target(behavior=position.behavior, action=position.action), view, None, state)
    return Transition(state=state, answer=made.answer) if made.state == state else None


def _change(call: BotCall, target: Target, view: OpenView, agreement: ConsentGrant | None, state: RunState) -> Change:
    """The pure change: start the run at its depth, open the action, and complete it where it closes itself."""
    consent, before = view.depth_agreement, state
    state = chosen(call, state, agreed=consent is not None)
    require_agreed(call, state, agreed=consent is not None)
    made = _opened(call, target, view, agreement, state)
    return replace(made, audit=with_start(call, before, made.audit, consent))


def _opened(call: BotCall, target: Target, view: OpenView, agreement: ConsentGrant | None, state: RunState) -> Change:
    at = utc_now()
    position, is_gate = _resolve(call, target, state)
    require_applies(call, state, position)
    require_no_gate_before(call, state, position)
    if not is_gate:
        _require_same(call.plan, view, state, position)
    _require_mine(call, state, view.notes, position)
    opened = machine.open_action(call.plan, state, position, at=at, by=call.principal)
    answer = {"behavior": position.behavior, "action": position.action, "jump": opened.jump, "asks": False}
    if state.depth is not None:
        answer["preset"] = state.depth.name
    if position.action == INITIALIZE and view.location.asks:
        return Change.opened(opened, {**answer, "asks": True})
    if agreement is not None and agreement.signed is not None:
        agreement = None  # The directory was signed, and not the close of this action.
    approval = _approval(call, view, agreement, position)
    if approval is None:
        return Change.opened(opened, answer)
    by, how = call.evidence(agreement)
    files = None if agreement is None else _files(call, position)
    closed = machine.close(call.plan, opened.state, at=at, approval=approval, by=by, how=how, files=files)
    return _complete(call, opened.added, closed, answer)


def _files(call: BotCall, position: Position) -> dict[str, str]:
    made = produced_files(call.definition, call.definition.behavior(position.behavior), position.action)
    return defined_digests(file_digests(call.project.root, made), call.run)


def _approval(call: BotCall, view: OpenView, agreement: ConsentGrant | None, position: Position) -> Approval | None:
    """The approval of an opened action that is completed at once; None where it is not."""
    if position.action == INITIALIZE and view.location.new and view.location.confirmed:
        return call.approval(agreement)
    gates = call.gates(view.state)
    # A directory that was confirmed before is not asked for again, unless a human has to prove every step.
    resumed = position.action == INITIALIZE and not gates.needs_proof(position)
    return "auto" if resumed or gates.policy(position) == "auto" else None


def _complete(call: BotCall, added: tuple[Any, ...], closed: Closed, answer: JsonObject) -> Change:
    done = {
        **answer,
        "completed": True,
        "next_action": None if closed.next is None else closed.next.action,
        "next_behavior": closed.next_behavior,
    }
    # A close that is meant for this action must not close the one after it.
    notes: JsonObject = {"completed_by_itself": closed.state.version}
    if closed.completed.action == INITIALIZE:
        notes[LOCATION] = str(call.project.root)
    return Change(state=closed.state, added=(*added, *closed.added), answer=done, notes=notes, audit={"auto": True})


def _require_same(plan: Plan, view: OpenView, state: RunState, position: Position) -> None:
    """Refuse a jump that nobody approved because the state moved in between."""
    jump = machine.jump_of(state, position)
    if position == view.position and jump == machine.jump_of(view.state, view.position):
        return
    if plan.jump_policy(jump) != "allow":
        raise StateConflict(
            "The state changed during the approval, so nothing was opened.", instruction="Send the same call again."
        )


def _response(
    call: BotCall, position: Position, answer: JsonObject, delivered: BotResponse, people: People
) -> BotResponse:
    fields: JsonObject = dict(delivered.fields)
    fields |= people.shown(position)
    if "preset" in answer:
        fields["preset"] = answer["preset"]
    if answer["jump"] != "in_order":
        fields["jump"] = answer["jump"]
    if not answer.get("completed"):
        return replace(delivered, fields=fields, next=call.close_next(position))
    return replace(
        delivered,
        fields={**fields, "next_action": answer["next_action"]},
        action_completed=True,
        action_state="completed",
        next=call.forward_next(),
        message=f"Working in {call.project.root}." if position.action == INITIALIZE else None,
        instruction="This action is complete. Continue with `next`.",
    )


def _independent(call: BotCall, view: OpenView, deliveries: DeliveryLog) -> Result[Any]:
    """Deliver and audit an independent action; nothing moves."""
    kept: JsonObject = {}
    if view.location.settled:
        body = {"action": call.path(view.position)}
        call.project.state.record("independent", call.principal, body, run=call.run)
        kept = {"corrections": keep(call)} if view.position.action == CORRECT else {}
    delivered = deliver(call, view.position, view.notes, deliveries)
    response = replace(
        delivered,
        data={**delivered.data, **kept},
        action_state="independent",
        next=call.forward_next(),
        notices=view.loaded.notices,
        instruction="This action is not part of the workflow: it moves nothing and is not closed. "
        "`next` continues the workflow.",
    )
    return respond(call, view.position, response)


def _ended(call: BotCall, view: OpenView) -> Result[Any]:
    """Report the end. With a request key that is recorded too: a repeated call must open nothing later."""
    state, notices = view.state, view.loaded.notices
    position = state.current
    if call.request is not None:
        moved = call.move(lambda state: _no_change(position, state), kind="open")
        state, notices = moved.state, notices + moved.notices
    return _end(call, state, position, notices)


def _no_change(position: Position, state: RunState) -> Change:
    if not state.finished:
        raise StateConflict(
            "The workflow was continued meanwhile, so nothing was opened.", instruction="Send the same call again."
        )
    return Change(state=state, answer={"behavior": position.behavior, "action": position.action, "finished": True})


def _end(call: BotCall, state: RunState, position: Position, notices: Notices) -> Result[Any]:
    """The workflow has ended. It is not complete while an action is open."""
    left, done = call.open_actions(state), state.is_completed(position)
    response = BotResponse(
        action_completed=done,
        action_state="completed" if done else "in_work",
        next=call.action_next(left[0]) if left else None,
        message=end_message(left),
        instruction=ENDED if left else "Nothing is left to do. To reopen an action, call its tool.",
        fields={**end_fields(left), "next_action": None},
        notices=notices,
    )
    return respond(call, position, response)
