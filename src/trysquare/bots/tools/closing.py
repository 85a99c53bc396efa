"""Closing: the current action is done, sent back to work, or skipped. A person decides; the record says how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from trysquare.bots.actions.built_in import produced_files
from trysquare.bots.actions.initialize_project import LOCATION
from trysquare.bots.actions.validate_rules import scan_rules
from trysquare.bots.artifacts import keep
from trysquare.bots.gates import ask_person, file_digests
from trysquare.bots.plan import INITIALIZE, Plan, Position
from trysquare.bots.run_files import defined_digests, defined_path
from trysquare.bots.state import Change, Loaded
from trysquare.bots.state_checks import names
from trysquare.bots.state_file import MAIN
from trysquare.bots.tools.answers import Call
from trysquare.bots.tools.delivery import combined_with
from trysquare.bots.tools.locating import Location, locate, require_project
from trysquare.bots.tools.meaning import meaning_of
from trysquare.bots.tools.outcomes import already_closed, answered, nothing_left, outcome, repeated
from trysquare.bots.tools.passing import ask_for_definition, require_behind_no_gate, weakened
from trysquare.bots.window_rules import Notices
from trysquare.bots.workflow import Approval, Closed, Entry, RunState, close, reject
from trysquare.core.consent import Agreement
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.store.audit import utc_now

_MOST_SHOWN = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a close found before it asked anybody."""

    loaded: Loaded
    notes: JsonObject
    location: Location
    together: tuple[Position, ...]
    """The current action, and those that are closed with it. All their gates count."""
    files: dict[str, str]
    """The digests of the files that they produced."""
    absent: tuple[str, ...]
    """The files that they would produce and that are not there."""

    @property
    def state(self) -> RunState:
        """Where the run stands."""
        return self.loaded.state


async def close_action(call: Call, context: CallContext, *, proof: bool = False) -> Result[Any]:
    """Close the current action, or send it back, or skip it; with `proof` a person is asked whatever the gate says."""
    _check_parameters(call)
    view = await run_in_thread(lambda: _decided(call, proof=proof))
    if not isinstance(view, View):
        return view
    await ask_for_definition(call, view.state, view.notes, context)
    agreement = await _agreement(call, view, context, proof=proof)
    return await run_in_thread(lambda: _closed(call, view, agreement))


def _decided(call: Call, *, proof: bool) -> Result[Any] | View:
    """The answer where nobody has to be asked, all in one thread; else what was found."""
    view = _look(call)
    if not view.location.settled:
        require_project(call, view.location)
    if call.parameters.reject:
        return _rejected(call, view)
    if call.is_repeated():
        return _closed(call, view, None)
    if (known := _known_answer(call, view)) is not None:
        return known
    _check_gate(call, view)
    _check_clean(call, view)
    is_weaker = bool(weakened(call, view.state, view.notes))
    asks = proof or is_weaker or _needs_proof(call, view) or _asks_for_folder(view)
    return view if asks else _closed(call, view, None)


def _needs_proof(call: Call, view: View) -> bool:
    gates = call.gates(view.state)
    return any(gates.needs_proof(each) for each in view.together)


def _asks_for_folder(view: View) -> bool:
    return view.state.current.action == INITIALIZE and view.location.needs_person


def _check_parameters(call: Call) -> None:
    given = call.parameters
    if (given.reject or given.skip) and not given.reason:
        what = "reject" if given.reject else "skip"
        raise InvalidArguments(
            f"To {what} an action takes a reason.",
            instruction=f'Ask the user why, and send {{"{what}": true, "reason": "…"}}.',
        )


def _look(call: Call) -> View:
    loaded = call.project.load(call.parameters.run)
    notes = call.project.state.notes(call.parameters.run) if call.project.is_known(loaded) else {}
    current = loaded.state.current
    together = _together(call, current)
    paths = _files(call, together)
    files = file_digests(call.project.root, paths)
    return View(
        loaded=loaded,
        notes=notes,
        # To close initialize_project is to confirm the folder that it proposed.
        location=locate(call, current, loaded, notes, confirmed=True if current.action == INITIALIZE else None),
        together=together,
        files=files,
        absent=tuple(path for path in paths if path not in files),
    )


def _files(call: Call, together: tuple[Position, ...]) -> list[str]:
    definition = call.definition
    made = (produced_files(definition, definition.behavior(each.behavior), each.action) for each in together)
    return sorted({path for paths in made for path in paths})


def _together(call: Call, position: Position) -> tuple[Position, ...]:
    return (position, *combined_with(call.plan, position))


def _known_answer(call: Call, view: View) -> Result[Any] | None:
    """The answer where there is nothing to do: what is meant was closed before, or everything is."""
    state, expected = view.state, call.parameters.expected_action
    if call.parameters.request_key is not None:
        return None
    if expected is not None and not _names(call.plan, expected, view.together):
        told = already_closed(call, state, expected)
        return None if told is None else answered(call, told, view.loaded.notices)
    if state.finished:
        return answered(call, nothing_left(call, state), view.loaded.notices)
    return None


def _check_gate(call: Call, view: View) -> None:
    state = view.state
    expected = call.parameters.expected_action
    if expected is not None and not _names(call.plan, expected, view.together):
        raise _other_action(call, state)
    require_behind_no_gate(call, state, state.current)
    if state.strict and not _is_delivered(call, state) and state.current.action != INITIALIZE:
        raise ToolError(
            f"`{state.current.path(call.bot.name)}` was not delivered, so it cannot be closed.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Send `next`, do what it says, and close it then.",
            next=call.forward_next(),
            fields={"current_action": state.current.path(call.bot.name), "delivered": False},
        )


def _check_clean(call: Call, view: View) -> None:
    """Refuse to close over violations where the gate asks for none. A skip says itself that the work was not done."""
    gates = call.gates(view.state)
    strictest = next((each for each in view.together if gates.requires_clean(each)), None)
    if call.parameters.skip or strictest is None:
        return
    report = scan_rules(call.definition, strictest.behavior, call.project.root)
    if report.clean:
        return
    broken = [each.to_json() for each in report.violations if each.severity == "error"]
    count = len(broken) + len(report.problems)
    found = "1 problem" if count == 1 else f"{count} problems"
    raise ToolError(
        f"`{strictest.path(call.bot.name)}` needs clean rules, and they find {found}.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Fix the violations and close again; `next` runs the rules once more.",
        next=call.forward_next(),
        fields={"violations": broken[:_MOST_SHOWN], "problems": [str(each) for each in report.problems[:_MOST_SHOWN]]},
    )


def _is_delivered(call: Call, state: RunState) -> bool:
    # A folder that nobody named is proposed without a trace on the disk; whoever was asked has been told all there is.
    return state.delivered or (state.current.action == INITIALIZE and call.was_proposed())


def _other_action(call: Call, state: RunState) -> ToolError:
    current, expected = state.current.path(call.bot.name), call.parameters.expected_action
    what = "the action that was meant" if expected is None else f"`{expected[:120]}`"
    return ToolError(
        f"Nothing was closed: {what} is not the current action, `{current}` is.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Look at the current action first; `next` delivers it.",
        next=call.forward_next(),
        fields={"current_action": current, "version": state.version},
    )


async def _agreement(call: Call, view: View, context: CallContext, *, proof: bool) -> Agreement | None:
    """A human's agreement where one is asked for. It is bound to the run, the action, the files and what it means."""
    position, root = view.state.current, str(call.project.root)
    binding: JsonObject = {
        "project": root,
        "run": call.parameters.run,
        "action": position.path(call.bot.name),
        "version": view.state.version,
        "files": view.files,
    }
    if call.parameters.skip:
        binding["skip"] = call.parameters.reason
    approvals = call.bot.approvals
    if proof or _needs_proof(call, view):
        closed, _ = _steps(call, view, Agreement(by=call.principal), view.state, utc_now())
        meaning = meaning_of(call, position, closed, view.absent)
        binding.update(meaning.binding)
        return await ask_person(call.tool, meaning.question, binding, approvals=approvals, context=context)
    if _asks_for_folder(view):
        question = f"Let {call.bot.name} work in {root}?"
        return await ask_person(call.tool, question, binding, approvals=approvals, context=context)
    return None


def _closed(call: Call, view: View, agreement: Agreement | None) -> Result[Any]:
    if agreement is not None and file_digests(call.project.root, view.files) != view.files:
        raise ToolError(
            "The files changed while the person looked at them, so nothing was closed.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Send the same call again; the person is asked about the files as they are now.",
        )
    # Before the move: what is acknowledged can be compared later.
    unkept = keep(call.project.root, view.files)
    moved = call.project.state.move(
        lambda state: _close(call, view, agreement, state),
        kind="skip" if call.parameters.skip else "close",
        principal=call.principal,
        run=call.parameters.run,
        expected_version=view.state.version if agreement is not None else None,
        request=call.request,
    )
    notices = view.loaded.notices + moved.notices + Notices(warnings=unkept)
    return answered(call, moved.answer, notices, replayed=moved.replayed)


def _close(call: Call, view: View, agreement: Agreement | None, state: RunState) -> Change:
    """The pure change. Everything is looked at again, on the state that is about to change."""
    plan, expected = call.plan, call.parameters.expected_action
    if expected is not None and not _names(plan, expected, _together(call, state.current)):
        return _repeated_change(call, state, expected)
    if state.finished:
        return Change(state=state, answer=nothing_left(call, state))
    acknowledged = _acknowledged(call, view, state)
    if acknowledged is not None:
        return acknowledged
    require_behind_no_gate(call, state, state.current)
    if state.current != view.state.current:
        _require_open_gate(call, state)
    return _completed(call, agreement, state, view)


def _require_open_gate(call: Call, state: RunState) -> None:
    """Another close was faster: what stands behind it must not slip through a gate that nobody looked at."""
    gates = call.gates(state)
    if any(gates.needs_proof(each) or gates.requires_clean(each) for each in _together(call, state.current)):
        raise _other_action(call, state)


def _repeated_change(call: Call, state: RunState, expected: str) -> Change:
    told = already_closed(call, state, expected)
    if told is None:
        raise _other_action(call, state)
    return Change(state=state, answer=told)


def _acknowledged(call: Call, view: View, state: RunState) -> Change | None:
    """A close right after an action that was done by itself is meant for that one, once."""
    if state.delivered or call.parameters.expected_action is not None or call.parameters.skip:
        return None
    if view.notes.get("completed_by_itself") != state.version or view.notes.get("acknowledged") == state.version:
        return None
    entry = max(state.latest.values(), key=lambda each: each.version, default=None)
    if entry is None:
        return None
    told = repeated(call, state, entry.position, entry)
    return Change(state=state, answer=told, notes={"acknowledged": state.version}, audit={"acknowledged": True})


def _completed(call: Call, agreement: Agreement | None, state: RunState, view: View) -> Change:
    at, before = utc_now(), state
    approval, _ = _approval(call, agreement)
    closed, added = _steps(call, view, agreement, state, at)
    told = outcome(closed.completed, closed.next, approval, call.open_actions(closed.state))
    told.update(_told_of(call, closed, agreement, added, before))
    notes: JsonObject = {"rejection": None}
    if before.current.action == INITIALIZE:
        notes[LOCATION] = str(call.project.root)
    audit: JsonObject = {"approval": approval, "files": view.files, "absent": list(view.absent)}
    if (run := call.parameters.run) != MAIN:
        # By the paths of the definition too, so that the files of two runs can be compared.
        audit["defined"] = defined_digests(view.files, run)
        audit["defined_absent"] = [defined_path(path, run) for path in view.absent]
    if agreement is not None:
        audit["agreement"] = {"by": agreement.by, "how": agreement.how, "at": agreement.at or at}
    return Change(state=closed.state, added=(*added, *closed.added), answer=told, notes=notes, audit=audit)


def _steps(
    call: Call, view: View, agreement: Agreement | None, state: RunState, at: str
) -> tuple[Closed, tuple[Entry, ...]]:
    """Close the current action with those that go with it, one after the other; a proof holds for all of them."""
    plan, (approval, by) = call.plan, _approval(call, agreement)
    state = replace(state, delivered=_is_delivered(call, state))
    last, added = _together(call, state.current)[-1], tuple[Entry, ...]()
    how = None if agreement is None else agreement.how or "asked"
    while state.current != last:
        files = None if agreement is None else _digests(call, view, state.current)
        step = close(plan, state, at=at, approval="combined", by=by, how=how, files=files)
        state, added = step.state, (*added, *step.added)
    files = None if agreement is None else _digests(call, view, state.current)
    reason = call.parameters.reason
    return close(plan, state, at=at, approval=approval, by=by, reason=reason, how=how, files=files), added


def _digests(call: Call, view: View, position: Position) -> dict[str, str]:
    """What a human agreed to of one action, by the paths of the definition."""
    own = _files(call, (position,))
    return defined_digests({path: view.files[path] for path in own if path in view.files}, call.parameters.run)


def _approval(call: Call, agreement: Agreement | None) -> tuple[Approval, str]:
    by = call.principal if agreement is None or agreement.by is None else agreement.by
    if call.parameters.skip:
        return "skipped", by
    return ("claimed" if agreement is None else "proven"), by


def _told_of(
    call: Call, closed: Closed, agreement: Agreement | None, combined: tuple[Entry, ...], before: RunState
) -> JsonObject:
    told: JsonObject = {}
    if closed.completed_behavior is not None:
        told["completed_behavior"] = closed.completed_behavior
        told["next_behavior"] = closed.next_behavior
    if combined:
        told["closed_together"] = [entry.position.action for entry in combined]
    if agreement is not None:
        told["approved_by"], told["approved_how"] = agreement.by, agreement.how
        told["approved_at"] = agreement.at or utc_now()
    if not _is_delivered(call, before):
        told["delivered"] = False
        told["warnings"] = [f"{closed.completed.action} was closed before its instructions were delivered."]
    return told


def _rejected(call: Call, view: View) -> Result[Any]:
    moved = call.project.state.move(
        lambda state: _reject(call, state),
        kind="reject",
        principal=call.principal,
        run=call.parameters.run,
        request=call.request,
    )
    return answered(call, moved.answer, view.loaded.notices + moved.notices, replayed=moved.replayed)


def _reject(call: Call, state: RunState) -> Change:
    expected = call.parameters.expected_action
    if expected is not None and not _names(call.plan, expected, _together(call, state.current)):
        raise _other_action(call, state)
    if state.finished:
        raise _other_action(call, state)
    if state.version == 0:
        raise ToolError(
            f"Run `{call.parameters.run}` has not begun, so there is nothing to send back.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="`next` begins it.",
            next=call.forward_next(),
        )
    at, position = utc_now(), state.current
    where = f"{position.behavior}.{position.action}"
    sent_back: JsonObject = {"action": where, "reason": call.parameters.reason, "by": call.principal, "at": at}
    after = reject(state, at=at)
    told: JsonObject = {
        "status": "rejected",
        "behavior": position.behavior,
        "action": position.action,
        "action_completed": False,
        "action_state": "in_work",
        "reason": call.parameters.reason,
        "rejections": after.rejections,
        "next_action": position.action,
        "message": f"{where} goes back to work: {call.parameters.reason}",
    }
    return Change(state=after, answer=told, notes={"rejection": sent_back}, audit={"reason": call.parameters.reason})


def _names(plan: Plan, path: str, together: tuple[Position, ...]) -> bool:
    return any(names(plan, path, each) for each in together)
