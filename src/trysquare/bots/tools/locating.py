"""Locating: whether it is settled in which folder a run works, and how it gets settled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trysquare.bots.actions.initialize_project import LOCATION
from trysquare.bots.naming import bot_tool_name
from trysquare.bots.plan import INITIALIZE, Position
from trysquare.bots.state import Loaded
from trysquare.bots.state_file import MAIN
from trysquare.bots.tools.answers import Call, Told, answer
from trysquare.bots.window_rules import Notices
from trysquare.bots.workflow import RunState
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.result import Result
from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """What is known of a run's folder."""

    settled: bool
    """Whether anything may be written there."""
    new: bool
    """Whether it was not confirmed yet, or another one was."""
    asks: bool
    """Whether initialize_project has to ask before it is done."""
    confirmed: bool
    """Whether this call confirms it."""
    needs_person: bool
    """Whether only a person can confirm it."""
    saved: str | None = None
    """The folder that was confirmed before, where it is another one."""


def locate(
    call: Call, position: Position, loaded: Loaded, notes: JsonObject, *, confirmed: bool | None = None
) -> Location:
    """Whether the folder is settled: known, named by somebody, or confirmed by this call."""
    place = call.project.place
    known = call.project.is_known(loaded)
    agrees = call.parameters.confirm is not None and call.parameters.confirm is not False
    confirms = agrees if confirmed is None else confirmed
    saved = notes.get(LOCATION)
    differs = saved is not None and saved != str(place.root)
    new = differs or not (_was_initialized(call, loaded.state) or _main_works_here(call, known))
    proof = position.action == INITIALIZE and call.gates(loaded.state).needs_proof(position)
    return Location(
        settled=known or confirms or (place.named and not place.outside),
        new=new,
        asks=new and not confirms,
        confirmed=confirms,
        needs_person=confirms and ((place.outside and not known) or (proof and new)),
        saved=saved if differs else None,
    )


def _was_initialized(call: Call, state: RunState) -> bool:
    behaviors = call.plan.behaviors
    return any(state.is_completed(Position(behavior=each, action=INITIALIZE)) for each in behaviors)


def _main_works_here(call: Call, known: bool) -> bool:
    """Whether the folder of another run was confirmed for the main one."""
    if call.parameters.run == MAIN or not known:
        return False
    return call.project.state.notes(MAIN).get(LOCATION) == str(call.project.root)


def propose_location(call: Call, position: Position, location: Location, notices: Notices) -> Result[Any]:
    """The answer of an initialize_project that waits for a word about the folder."""
    root = str(call.project.root)
    call.bot.proposed.add((root, call.parameters.run))
    data: JsonObject = {
        "requires_confirmation": True,
        "proposed_location": root,
        "location_from": call.project.place.source,
    }
    if location.saved is not None:
        data["saved_location"] = location.saved
    told = Told(
        data=data,
        action_state="awaiting_confirmation",
        next=call.again_next(confirm=True),
        message=f"Is {root} the folder of this project?",
        instruction="Show the person the proposed folder. If they agree, send `next`, or close this action; if they "
        "name another folder, send `confirm` with its path.",
        fields={"requires_confirmation": True},
        notices=notices,
    )
    return answer(call, position, told)


def require_project(call: Call, location: Location) -> None:
    """Refuse to work in a folder that nobody named; nothing was written."""
    root = str(call.project.root)
    raise ToolError(
        f"It is not settled in which folder to work: {root} is only {call.project.place.source}.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Ask the person whether this is the folder of the project; if so, send `next` first.",
        next={"tool": bot_tool_name(call.bot.name), "arguments": call.parameters.repeated(confirm=True)},
        fields={"project_required": True, "proposed_location": root},
    )
