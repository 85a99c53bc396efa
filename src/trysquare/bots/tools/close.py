"""`close_current_action`: complete, reject or skip the current action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trysquare.bots.actions import LOCATION, produced_files, scan_rules
from trysquare.bots.artifacts import store_contents
from trysquare.bots.gates import absent_paths, file_digests
from trysquare.bots.proofs import write_receipt
from trysquare.bots.run_files import defined_digests, defined_path
from trysquare.bots.tools.admin import View, locate, require_project
from trysquare.bots.tools.responses import (
    BotCall,
    already_closed,
    close_fields,
    closed_before,
    nothing_left,
    respond_closed,
)
from trysquare.bots.workflow import machine
from trysquare.bots.workflow.conflicts import Notices
from trysquare.bots.workflow.machine import INITIALIZE, Approval, Closed, Entry, Position, RunState, StateConflict
from trysquare.bots.workflow.runs import Change, refers_to
from trysquare.bots.workflow.state_file import MAIN
from trysquare.core.approvals import ConsentGrant
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.store.audit import utc_now

_MAX_NAMED = 8
_MAX_WEAKENINGS = 10
_MAX_PROBLEMS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class CloseView(View):
    together: tuple[Position, ...]
    """The current action and those that are closed with it. All their gates count."""
    files: dict[str, str]
    """Digests of the files that they produced."""
    absent: tuple[str, ...]
    """Files that they should have produced."""


async def close_action(call: BotCall, context: CallContext, *, proof: bool = False) -> Result[Any]:
    """Close, reject or skip the current action; with `proof` a human is asked whatever the gate demands."""
    given = call.parameters
    if (given.reject or given.skip) and not given.reason:
        what = "reject" if given.reject else "skip"
        raise InvalidArguments(
            f"`{what}` needs a `reason`.", instruction=f'Ask the user why, and send {{"{what}": true, "reason": "…"}}.'
        )
    view = await run_in_thread(lambda: _close_or_view(call, proof=proof))
    if not isinstance(view, CloseView):
        return view
    await ask_for_definition(call, view.state, view.notes, context)
    agreement = await _ask(call, view, context, proof=proof)
    return await run_in_thread(lambda: _close(call, view, agreement))


def _close_or_view(call: BotCall, *, proof: bool) -> Result[Any] | CloseView:
    """The result where nobody has to be asked, all in one thread; else what was found."""
    view = _view(call)
    require_project(call, view.location)
    if call.parameters.reject:
        moved = call.move(lambda state: _reject(call, state, view.notes), kind="reject")
        return respond_closed(call, moved.answer, view.loaded.notices + moved.notices, replayed=moved.replayed)
    if call.is_repeated():
        return _close(call, view, None)
    if (known := _known_response(call, view)) is not None:
        return respond_closed(call, known, view.loaded.notices)
    _check_gate(call, view)
    call.people(view.notes).require_assignee(call.principal, view.together)
    _check_clean(call, view)
    is_weaker = bool(weakened(call, view.state, view.notes))
    asks = proof or is_weaker or _needs_proof(call, view) or view.asks_for_directory()
    return view if asks else _close(call, view, None)


def _view(call: BotCall) -> CloseView:
    loaded = call.project.load(call.run)
    notes = call.project.state.notes(call.run) if call.project.is_known(loaded) else {}
    current = loaded.state.current
    together = call.together(loaded.state, current)
    paths = _files(call, together)
    files = file_digests(call.project.root, paths)
    return CloseView(
        loaded=loaded,
        position=current,
        notes=notes,
        # Closing initialize_project confirms the proposed directory.
        location=locate(call, current, loaded, notes, confirmed=True if current.action == INITIALIZE else None),
        together=together,
        files=files,
        absent=absent_paths(paths, files),
    )


def _files(call: BotCall, together: Sequence[Position]) -> list[str]:
    definition = call.definition
    made = (produced_files(definition, definition.behavior(each.behavior), each.action) for each in together)
    return sorted({path for paths in made for path in paths})


def _needs_proof(call: BotCall, view: CloseView) -> bool:
    return any(map(call.gates(view.state).needs_proof, view.together))


def closed_gate_before(call: BotCall, state: RunState, position: Position) -> Position | None:
    """The first gate before an action that waits for a human's proof."""
    return machine.gate_before(call.plan, state, position, call.gates(state).is_defined)


def require_no_gate_before(call: BotCall, state: RunState, position: Position) -> None:
    """Refuse to open or close an action behind a gate that waits for a human's proof."""
    gate = closed_gate_before(call, state, position)
    if gate is None:
        return
    raise StateConflict(
        f"`{call.path(position)}` is behind `{call.path(gate)}`, which only a human can close. Nothing was changed.",
        instruction="`next` opens the action that waits. Do its work and close it; the user is asked to approve that.",
        next=call.action_next(gate),
        fields={"gate": call.path(gate), "current_action": call.path(state.current), "version": state.version},
    )


def weakened(call: BotCall, state: RunState, notes: JsonObject) -> tuple[str, ...]:
    """What the bot's definition no longer demands of this run."""
    return call.project.state.weakened(notes, strict=state.strict)


async def ask_for_definition(call: BotCall, state: RunState, notes: JsonObject, context: CallContext) -> None:
    """Ask a human to accept a definition that demands less than the one that the run was worked on with."""
    found = weakened(call, state, notes)
    if not found:
        return
    digest = call.bot.strength.digest
    binding: JsonObject = {
        "project": str(call.project.root),
        "run": call.run,
        "definition": digest,
        "demands_less": list(found),
    }
    shown = "; ".join(found[:_MAX_WEAKENINGS]) + ("; and more" if len(found) > _MAX_WEAKENINGS else "")
    question = f"The definition of {call.bot.name} was changed and demands less: {shown}. May run {call.run} use it?"
    agreement = await call.ask(question, binding, context, strict=state.strict)
    body: JsonObject = {"demands_less": list(found), "agreement": {"by": agreement.by, "how": agreement.how}}
    await run_in_thread(
        lambda: call.project.state.accept_definition(call.run, digest=digest, principal=call.principal, body=body)
    )


def _known_response(call: BotCall, view: CloseView) -> JsonObject | None:
    """The response where nothing is to be done: the expected action, or every action, was closed before."""
    state, expected = view.state, call.parameters.expected_action
    if call.parameters.request_key is not None:
        return None
    if expected is not None and not _is_any_of(call, expected, view.together):
        return already_closed(call, state, expected)
    return nothing_left(call, state) if state.finished else None


def _check_gate(call: BotCall, view: CloseView) -> None:
    state, expected = view.state, call.parameters.expected_action
    if expected is not None and not _is_any_of(call, expected, view.together):
        raise _other_action(call, state)
    require_no_gate_before(call, state, state.current)
    if state.strict and not _is_delivered(call, state) and state.current.action != INITIALIZE:
        current = call.path(state.current)
        raise StateConflict(
            f"`{current}` cannot be closed before its instructions are delivered.",
            instruction="Send `next`, follow the instructions, and close it then.",
            next=call.forward_next(),
            fields={"current_action": current, "delivered": False},
        )


def _check_clean(call: BotCall, view: CloseView) -> None:
    """Refuse to close with violations where the gate demands clean rules. A skip needs no finished work."""
    gates = call.gates(view.state)
    strictest = next((each for each in view.together if gates.requires_clean(each)), None)
    if call.parameters.skip or strictest is None:
        return
    report = scan_rules(call.definition, strictest.behavior, call.project.root)
    if report.clean:
        return
    broken = [each.to_json() for each in report.violations if each.severity == "error"]
    count = len(broken) + len(report.problems)
    raise StateConflict(
        f"`{call.path(strictest)}` needs clean rules; {count} problem{'' if count == 1 else 's'} found.",
        instruction="Fix the violations and close again; `next` runs the rules once more.",
        next=call.forward_next(),
        fields={
            "violations": broken[:_MAX_PROBLEMS],
            "problems": [str(each) for each in report.problems[:_MAX_PROBLEMS]],
        },
    )


def _is_delivered(call: BotCall, state: RunState) -> bool:
    # The proposal of an unnamed directory leaves no trace on the disk, and contains all there is to deliver.
    return state.delivered or (state.current.action == INITIALIZE and call.was_proposed())


def _other_action(call: BotCall, state: RunState) -> StateConflict:
    current, expected = call.path(state.current), call.parameters.expected_action
    what = "the expected action" if expected is None else f"`{expected[:120]}`"
    return StateConflict(
        f"Nothing was closed: {what} is not the current action; that is `{current}`.",
        instruction="Check the current action first; `next` delivers it.",
        next=call.forward_next(),
        fields={"current_action": current, "version": state.version},
    )


async def _ask(call: BotCall, view: CloseView, context: CallContext, *, proof: bool) -> ConsentGrant | None:
    """A human's approval where one is needed, bound to the run, the action, the files and the consequences."""
    position = view.state.current
    binding: JsonObject = {
        "project": str(call.project.root),
        "run": call.run,
        "action": call.path(position),
        "version": view.state.version,
        "files": view.files,
    }
    if call.parameters.skip:
        binding["skip"] = call.parameters.reason
    if proof or _needs_proof(call, view):
        closed, _ = _steps(call, view, ConsentGrant(by=call.principal), view.state, utc_now())
        question, consequences = close_question(call, position, closed, view.absent)
        people = call.people(view.notes)
        if reviewers := people.reviewers_of(view.together):
            binding["reviewers"] = sorted({name for names in reviewers for name in names})
        if len(view.together) > 1:
            binding["closes"] = [call.path(each) for each in view.together]
        asking, strict = people.asking(context, view.together), view.state.strict
        grant = await call.ask(question, binding | consequences, asking, strict=strict, gate=True)
        people.require_reviewer(grant.by, view.together)
        return grant
    if not view.asks_for_directory():
        return None
    return await call.ask_directory(binding, context, strict=view.state.strict)


def close_question(call: BotCall, current: Position, closed: Closed, absent: Sequence[str]) -> tuple[str, JsonObject]:
    """The question for a human and the consequences that it is bound to: the end, open actions, missing files."""
    left = call.open_actions(closed.state)
    lines = [f"{'Skip' if call.parameters.skip else 'Close'} {call.path(current)} in run {call.run}?"]
    if call.parameters.skip:
        lines.append(f"Its work is not done. Reason: {call.parameters.reason}.")
    if closed.next is not None:
        lines.append(f"The next action is {closed.next}.")
    elif left:
        lines.append(f"This ends the workflow with {len(left)} open: {_some(left)}.")
    else:
        lines.append("This completes the workflow.")
    earlier = [each for each in left if call.plan.comes_before(each, current)]
    if closed.next is not None and earlier:
        lines.append(f"Open before it: {_some(earlier)}.")
    if absent:
        lines.append(f"Missing files: {_some(absent)}.")
    return " ".join(lines), {"ends_workflow": closed.next is None, "open_actions": len(left), "absent": list(absent)}


def _some(items: Sequence[object]) -> str:
    shown = ", ".join(map(str, items[:_MAX_NAMED]))
    return shown if len(items) <= _MAX_NAMED else f"{shown} and {len(items) - _MAX_NAMED} more"


def _close(call: BotCall, view: CloseView, agreement: ConsentGrant | None) -> Result[Any]:
    if agreement is not None and file_digests(call.project.root, view.files) != view.files:
        raise StateConflict(
            "The files changed during the approval, so nothing was closed.",
            instruction="Send the same call again; the user is asked about the present files.",
        )
    # Before the move, so that recorded files can be compared later.
    warnings = store_contents(call.project.root, view.files)
    if agreement is not None and agreement.signed is not None:
        write_receipt(call.project.root, agreement.signed)
    moved = call.move(
        lambda state: _change(call, view, agreement, state),
        kind="skip" if call.parameters.skip else "close",
        expected_version=view.state.version if agreement is not None else None,
    )
    notices = view.loaded.notices + moved.notices + Notices(warnings=warnings)
    return respond_closed(call, moved.answer, notices, replayed=moved.replayed)


def _change(call: BotCall, view: CloseView, agreement: ConsentGrant | None, state: RunState) -> Change:
    """The pure change. Everything is checked again, on the state that is about to change."""
    expected = call.parameters.expected_action
    if expected is not None and not _is_any_of(call, expected, call.together(state, state.current)):
        if (response := already_closed(call, state, expected)) is None:
            raise _other_action(call, state)
        return Change(state=state, answer=response)
    if state.finished:
        return Change(state=state, answer=nothing_left(call, state))
    if (acknowledged := _acknowledge(call, view, state)) is not None:
        return acknowledged
    require_no_gate_before(call, state, state.current)
    if state.current != view.state.current:
        # Another close was faster: the action after it must not pass a gate that nobody checked.
        gates = call.gates(state)
        if any(gates.needs_proof(each) or gates.requires_clean(each) for each in call.together(state, state.current)):
            raise _other_action(call, state)
    return _complete(call, agreement, state, view)


def _acknowledge(call: BotCall, view: CloseView, state: RunState) -> Change | None:
    """A close right after an action that closed itself applies to that one, once."""
    if state.delivered or call.parameters.expected_action is not None or call.parameters.skip:
        return None
    if view.notes.get("completed_by_itself") != state.version or view.notes.get("acknowledged") == state.version:
        return None
    entry = max(state.latest.values(), key=lambda each: each.version, default=None)
    if entry is None:
        return None
    response = closed_before(call, state, entry)
    return Change(state=state, answer=response, notes={"acknowledged": state.version}, audit={"acknowledged": True})


def _complete(call: BotCall, agreement: ConsentGrant | None, state: RunState, view: CloseView) -> Change:
    at = utc_now()
    approval = _approval(call, agreement)
    closed, added = _steps(call, view, agreement, state, at)
    response = close_fields(closed.completed, closed.next, approval, call.open_actions(closed.state))
    response.update(_more_fields(call, closed, agreement, added, state))
    call.people(view.notes).require_assignee(call.principal, call.together(state, state.current))
    notes: JsonObject = {"rejection": None}
    if state.current.action == INITIALIZE:
        notes[LOCATION] = str(call.project.root)
    audit: JsonObject = {"approval": approval, "files": view.files, "absent": list(view.absent)}
    if call.run != MAIN:
        # By the paths of the definition too, so that the files of two runs can be compared.
        audit["defined"] = defined_digests(view.files, call.run)
        audit["defined_absent"] = [defined_path(path, call.run) for path in view.absent]
    if agreement is not None:
        audit["agreement"] = {
            "by": agreement.by, "how": agreement.how, "at": agreement.at or at, "digest": agreement.digest,
        }  # fmt: skip
    return Change(state=closed.state, added=(*added, *closed.added), answer=response, notes=notes, audit=audit)


def _steps(
    call: BotCall, view: CloseView, agreement: ConsentGrant | None, state: RunState, at: str
) -> tuple[Closed, tuple[Entry, ...]]:
    """Close the current action with those combined with it, one after the other; a proof applies to all of them."""
    by, how = call.evidence(agreement)
    state = replace(state, delivered=_is_delivered(call, state))
    together, added = call.together(state, state.current), tuple[Entry, ...]()

    def complete(position: Position, approval: Approval, reason: str | None = None) -> Closed:
        own = [path for path in _files(call, (position,)) if path in view.files]
        files = None if agreement is None else defined_digests({path: view.files[path] for path in own}, call.run)
        return machine.close(call.plan, state, at=at, approval=approval, by=by, reason=reason, how=how, files=files)

    for position in together[:-1]:
        step = complete(position, "combined")
        state, added = step.state, (*added, *step.added)
    return complete(together[-1], _approval(call, agreement), call.parameters.reason), added


def _approval(call: BotCall, agreement: ConsentGrant | None) -> Approval:
    return "skipped" if call.parameters.skip else call.approval(agreement)


def _more_fields(
    call: BotCall, closed: Closed, agreement: ConsentGrant | None, combined: tuple[Entry, ...], before: RunState
) -> JsonObject:
    fields: JsonObject = {}
    if closed.completed_behavior is not None:
        fields["completed_behavior"] = closed.completed_behavior
        fields["next_behavior"] = closed.next_behavior
    if combined:
        fields["closed_together"] = [entry.position.action for entry in combined]
    if agreement is not None:
        fields["approved_by"], fields["approved_how"] = agreement.by, agreement.how
        fields["approved_at"] = agreement.at or utc_now()
    if not _is_delivered(call, before):
        fields["delivered"] = False
        fields["warnings"] = [f"{closed.completed.action} was closed before its instructions were delivered."]
    return fields


def _reject(call: BotCall, state: RunState, run_notes: JsonObject) -> Change:
    expected, position, reason = call.parameters.expected_action, state.current, call.parameters.reason
    is_other = expected is not None and not _is_any_of(call, expected, call.together(state, position))
    if state.finished:
        raise StateConflict(
            f"The workflow of run `{call.run}` has ended, so there is nothing to reject. Nothing was changed.",
            instruction=f"To take {position} up again, call its tool; then it can be rejected.",
        )
    if is_other:
        raise _other_action(call, state)
    if state.version == 0:
        raise StateConflict(
            f"Run `{call.run}` has not started, so there is nothing to reject.",
            instruction="`next` starts it.",
            next=call.forward_next(),
        )
    call.people(run_notes).require_sender_back(call.principal, position)
    after = machine.reject(state)
    rejection: JsonObject = {"action": str(position), "reason": reason, "by": call.principal, "at": utc_now()}
    response: JsonObject = {
        "status": "rejected",
        "behavior": position.behavior,
        "action": position.action,
        "action_completed": False,
        "action_state": "in_work",
        "reason": reason,
        "rejections": after.rejections,
        "next_action": position.action,
        "message": f"{position} was rejected: {reason}",
    }
    return Change(state=after, answer=response, notes={"rejection": rejection}, audit={"reason": reason})


def _is_any_of(call: BotCall, path: str, together: Sequence[Position]) -> bool:
    return any(refers_to(call.plan, path, each) for each in together)
