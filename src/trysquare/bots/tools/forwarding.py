"""Forwarding: the bot tool, the behavior tools and the action tools. Each opens one action and hands it out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from trysquare.bots.actions.built_in import produced_files
from trysquare.bots.actions.initialize_project import LOCATION
from trysquare.bots.gates import ask_person, check_jump, file_digests
from trysquare.bots.parameters import require_understood
from trysquare.bots.plan import INITIALIZE, Plan, Position
from trysquare.bots.run_files import defined_digests
from trysquare.bots.state import Change, Loaded, Moved
from trysquare.bots.tools.answers import Call, Told, answer
from trysquare.bots.tools.delivery import Deliveries, combined_with, deliver, deliver_part
from trysquare.bots.tools.locating import Location, locate, propose_location, require_project
from trysquare.bots.tools.outcomes import end_fields, ended_text
from trysquare.bots.tools.passing import ask_for_definition, closed_gate_before, require_behind_no_gate, weakened
from trysquare.bots.window_rules import Notices
from trysquare.bots.workflow import Approval, Closed, RunState, close, current_in, jump_of, open_action
from trysquare.core.consent import Agreement
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.store.audit import utc_now


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What a tool leads to: an action, the current one of a behavior, or the current one of all."""

    behavior: str | None = None
    action: str | None = None

    def position(self, plan: Plan, state: RunState) -> Position:
        """The action that is meant as things stand."""
        if self.behavior is not None and self.action is not None:
            return Position(behavior=self.behavior, action=self.action)
        return current_in(plan, state, self.behavior)


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a call found before it changed anything."""

    loaded: Loaded
    position: Position
    notes: JsonObject
    location: Location
    gate: bool = False
    """Whether the position is a gate that the run stands behind, and goes back to."""


async def forward(call: Call, target: Target, deliveries: Deliveries, context: CallContext) -> Result[Any]:
    """Open the action that the target means, and hand out its instructions."""
    view = await run_in_thread(lambda: _forwarded(call, target, deliveries))
    if not isinstance(view, View):
        return view
    agreement = await _ask_first(call, view, context)
    return await run_in_thread(lambda: _opened(call, target, view, agreement, deliveries))


def _forwarded(call: Call, target: Target, deliveries: Deliveries) -> Result[Any] | View:
    """The answer where nobody has to be asked, all in one thread; else what was found."""
    view = _look(call, target)
    position = view.position
    if call.parameters.part is not None:
        return deliver_part(call, position, view.notes, call.parameters.part)
    if call.is_repeated():
        return _opened(call, target, view, None, deliveries)
    if target.behavior is None and view.loaded.state.finished:
        return _finished(call, view)
    _require_understood(call, position)
    if target.action is not None and target.action in call.plan.independent:
        return _independent(call, view, deliveries)
    if not view.location.settled:
        if position.action == INITIALIZE:
            return propose_location(call, position, view.location, view.loaded.notices)
        require_project(call, view.location)
    require_behind_no_gate(call, view.loaded.state, position)
    return view if _asks(call, view) else _opened(call, target, view, None, deliveries)


def _require_understood(call: Call, position: Position) -> None:
    """What a call brings must belong to an action that it opens."""
    actions = [each.action for each in (position, *combined_with(call.plan, position))]
    instead = {each.name: f"{call.bot.name}_{position.behavior}_{each.name}" for each in call.definition.actions}
    require_understood(call.tool, call.parameters.given, actions, instead=instead)


def _look(call: Call, target: Target) -> View:
    loaded = call.project.load(call.parameters.run)
    position, is_gate = _meant(call, target, loaded.state)
    notes = call.project.state.notes(call.parameters.run) if call.project.is_known(loaded) else {}
    location = locate(call, position, loaded, notes)
    return View(loaded=loaded, position=position, notes=notes, location=location, gate=is_gate)


def _meant(call: Call, target: Target, state: RunState) -> tuple[Position, bool]:
    """The action that is meant. The bot's own tool goes back to a gate that the run came to stand behind."""
    position = target.position(call.plan, state)
    gate = closed_gate_before(call, state, position) if target.behavior is None else None
    return (position, False) if gate is None else (gate, True)


def _asks(call: Call, view: View) -> bool:
    """Whether a human has to agree to something before this action is opened."""
    is_weaker = bool(weakened(call, view.loaded.state, view.notes))
    return is_weaker or _asks_to_jump(call, view) or _asks_for_folder(view)


def _asks_to_jump(call: Call, view: View) -> bool:
    # To go back to a gate is always allowed: nothing else is.
    return not view.gate and check_jump(call.plan, jump_of(view.loaded.state, view.position), view.position)


def _asks_for_folder(view: View) -> bool:
    return view.position.action == INITIALIZE and view.location.needs_person


async def _ask_first(call: Call, view: View, context: CallContext) -> Agreement | None:
    """What a person has to agree to before this action is opened; returned is the agreement to the folder."""
    await ask_for_definition(call, view.loaded.state, view.notes, context)
    jump = jump_of(view.loaded.state, view.position)
    if _asks_to_jump(call, view):
        path = view.position.path(call.bot.name)
        binding: JsonObject = {"run": call.parameters.run, "open": path, "version": view.loaded.state.version}
        question = f"Open {path} although it is {'done already' if jump == 'reopened' else 'not its turn'}?"
        await ask_person(call.tool, question, binding, approvals=call.bot.approvals, context=context)
    if _asks_for_folder(view):
        binding = {"project": str(call.project.root), "run": call.parameters.run}
        question = f"Let {call.bot.name} work in {call.project.root}?"
        return await ask_person(call.tool, question, binding, approvals=call.bot.approvals, context=context)
    return None


def _opened(call: Call, target: Target, view: View, agreement: Agreement | None, deliveries: Deliveries) -> Result[Any]:
    moved = _already_open(call, view) or call.project.state.move(
        lambda state: _open(call, target, view, agreement, state),
        kind="open",
        principal=call.principal,
        run=call.parameters.run,
        request=call.request,
    )
    position = Position(behavior=moved.answer["behavior"], action=moved.answer["action"])
    notices = view.loaded.notices + moved.notices
    if moved.answer.get("finished"):
        return _nothing_left(call, moved.state, position, notices)
    if moved.answer["asks"]:
        return propose_location(call, position, view.location, notices)
    told = deliver(call, position, view.notes, deliveries)
    return answer(call, position, _told(call, position, moved, told, notices))


def _already_open(call: Call, view: View) -> Moved | None:
    """The answer without a move, where the action is the current one and was handed out before."""
    state, position = view.loaded.state, view.position
    if view.loaded.raised:
        return None
    if position != state.current or not state.delivered or state.finished or call.parameters.request_key is not None:
        return None
    made = _open(call, Target(behavior=position.behavior, action=position.action), view, None, state)
    return Moved(state=state, answer=made.answer) if made.state == state else None


def _open(call: Call, target: Target, view: View, agreement: Agreement | None, state: RunState) -> Change:
    """The pure change: open the action, and complete it where it is done by itself."""
    plan, at = call.plan, utc_now()
    position, is_gate = _meant(call, target, state)
    require_behind_no_gate(call, state, position)
    if not is_gate:
        _require_same(plan, view, state, position)
    opened = open_action(plan, state, position, at=at, by=call.principal)
    told: JsonObject = {"behavior": position.behavior, "action": position.action, "jump": opened.jump, "asks": False}
    if position.action == INITIALIZE and view.location.asks:
        told["asks"] = True
        return Change(state=opened.state, added=opened.added, answer=told, audit={"jump": opened.jump})
    approval = _approval(call, view, agreement, position)
    if approval is not None:
        by = agreement.by if agreement is not None and agreement.by else call.principal
        how, files = (None, None) if agreement is None else (agreement.how or "asked", _files(call, position))
        closed = close(plan, opened.state, at=at, approval=approval, by=by, how=how, files=files)
        return _completed(call, opened.added, closed, told)
    return Change(state=opened.state, added=opened.added, answer=told, audit={"jump": opened.jump})


def _files(call: Call, position: Position) -> dict[str, str]:
    """What lies there of the files that an action makes."""
    made = produced_files(call.definition, call.definition.behavior(position.behavior), position.action)
    return defined_digests(file_digests(call.project.root, made), call.parameters.run)


def _approval(call: Call, view: View, agreement: Agreement | None, position: Position) -> Approval | None:
    """How an action that is opened is completed at once, if it is."""
    if position.action == INITIALIZE and view.location.new and view.location.confirmed:
        return "claimed" if agreement is None else "proven"
    gates = call.gates(view.loaded.state)
    # A folder that was confirmed before needs no new word, unless a person has to prove every step.
    resumed = position.action == INITIALIZE and not gates.needs_proof(position)
    return "auto" if resumed or gates.policy(position) == "auto" else None


def _completed(call: Call, added: tuple[Any, ...], closed: Closed, told: JsonObject) -> Change:
    notes: JsonObject = {}
    if closed.completed.action == INITIALIZE:
        notes[LOCATION] = str(call.project.root)
    following = closed.next
    done = {
        **told,
        "completed": True,
        "next_action": None if following is None else following.action,
        "next_behavior": closed.next_behavior,
    }
    # Remembered so that a close which is meant for this very action does not close the one after it.
    notes["completed_by_itself"] = closed.state.version
    return Change(state=closed.state, added=(*added, *closed.added), answer=done, notes=notes, audit={"auto": True})


def _require_same(plan: Plan, view: View, state: RunState, position: Position) -> None:
    """A jump that nobody was asked about must not happen because the state moved in between."""
    jump = jump_of(state, position)
    if position == view.position and jump == jump_of(view.loaded.state, view.position):
        return
    if plan.jump_policy(jump) != "allow":
        raise ToolError(
            "The state changed while a person was asked, so nothing was opened.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Send the same call again.",
        )


def _told(call: Call, position: Position, moved: Moved, told: Told, notices: Notices) -> Told:
    jump = moved.answer["jump"]
    fields: JsonObject = dict(told.fields)
    if jump != "in_order":
        fields["jump"] = jump
    if not moved.answer.get("completed"):
        return replace(told, fields=fields, notices=notices, next=call.close_next(position))
    fields["next_action"] = moved.answer["next_action"]
    return replace(
        told,
        fields=fields,
        notices=notices,
        action_completed=True,
        action_state="completed",
        next=call.forward_next(),
        message=_resuming(call, position),
        instruction="This action is done. Go on with `next`.",
    )


def _resuming(call: Call, position: Position) -> str | None:
    return f"Working in {call.project.root}." if position.action == INITIALIZE else None


def _independent(call: Call, view: View, deliveries: Deliveries) -> Result[Any]:
    """An independent action: handed out, noted in the audit, and nothing moves."""
    if view.location.settled:
        body = {"action": view.position.path(call.bot.name)}
        call.project.state.record("independent", call.principal, body, run=call.parameters.run)
    told = deliver(call, view.position, view.notes, deliveries)
    return answer(
        call,
        view.position,
        replace(
            told,
            action_state="independent",
            next=call.forward_next(),
            notices=view.loaded.notices,
            instruction="This action stands outside the workflow: it moves nothing and is not closed. "
            "`next` goes on with the workflow.",
        ),
    )


def _finished(call: Call, view: View) -> Result[Any]:
    """Nothing is open. Under a request key that is remembered too: sent again later, the call must open nothing."""
    position = view.loaded.state.current
    if call.request is None:
        return _nothing_left(call, view.loaded.state, position, view.loaded.notices)
    moved = call.project.state.move(
        lambda state: _rest(position, state),
        kind="open",
        principal=call.principal,
        run=call.parameters.run,
        request=call.request,
    )
    return _nothing_left(call, moved.state, position, view.loaded.notices + moved.notices)


def _rest(position: Position, state: RunState) -> Change:
    """The change that changes nothing, with the answer that is remembered."""
    if not state.finished:
        raise ToolError(
            "The workflow was taken up again in the meantime, so nothing was opened.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Send the same call again.",
        )
    return Change(state=state, answer={"behavior": position.behavior, "action": position.action, "finished": True})


def _nothing_left(call: Call, state: RunState, position: Position, notices: Notices) -> Result[Any]:
    """The end of the order is reached. It is not called complete while something is open."""
    left = call.open_actions(state)
    complete = "Nothing is left to do. To take something up again, call the tool of that action."
    told = Told(
        action_completed=True,
        action_state="completed",
        next=call.action_next(left[0]) if left else None,
        message=ended_text(left) if left else "The workflow is complete.",
        instruction="Tell the user what is open; `next` opens the first of it." if left else complete,
        fields={**end_fields(left), "next_action": None},
        notices=notices,
    )
    return answer(call, position, told)
