"""Tools that locate the project, restart the server, find and dispatch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trysquare.bots.actions import LOCATION
from trysquare.bots.definition.folder import DO, TOOL, tool_name
from trysquare.bots.definition.model import Changes
from trysquare.bots.parameters import Parameters
from trysquare.bots.projects import LiveBot
from trysquare.bots.tools.responses import BotCall, BotResponse, respond
from trysquare.bots.workflow.conflicts import Notices
from trysquare.bots.workflow.machine import INITIALIZE, Position, RunState, StateConflict
from trysquare.bots.workflow.runs import Loaded
from trysquare.bots.workflow.state_file import MAIN
from trysquare.catalog.search import ASK_AGAIN, ToolIndex, doubts
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError, ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.text import closest_names
from trysquare.core.tool import Tool

_MAX_FOUND = 5


class Finder:
    """Search over the tools of a bot; the index is built by the first query."""

    def __init__(self, tools: Callable[[], Sequence[Tool]]) -> None:
        self._tools = tools
        self._index = ToolIndex()

    async def find(self, bot: LiveBot, parameters: Parameters) -> Result[Any]:
        """The best matches for a query, and the call of the first."""
        query = parameters.given.get("query")
        if not isinstance(query, str) or not query.strip():
            raise InvalidArguments(
                "`query` is missing.", instruction='Describe the task: {"parameters": {"query": "gather context"}}.'
            )
        self._index.update(self._tools())
        await self._index.prepare(query)
        found = self._index.search(query, limit=_MAX_FOUND)
        listed = [
            {"tool": one.tool.name, "fit": one.fit, "about": one.tool.description.splitlines()[0]} for one in found
        ]
        best = found[0].tool.name if found else tool_name(bot.name, TOOL)
        return Result.ok(
            message=doubts(found) if found else "No tool matches; `next` continues at the current action.",
            instruction=f"If none fits, {ASK_AGAIN}." if doubts(found) else None,
            next={"tool": tool_name(bot.name, DO), "arguments": parameters.repeated(tool=best)},
            fields={"status": "completed", "data": {"tools": listed}},
        )


async def do(tools: Sequence[Tool], parameters: Parameters, context: CallContext) -> Result[Any]:
    """Call the tool that `tool` names, with the same parameters."""
    name = parameters.given.get("tool")
    known = {tool.name: tool for tool in tools}
    if not isinstance(name, str) or not name:
        raise InvalidArguments("`tool` is missing. Send the name of the tool to call.")
    found = known.get(name)
    if found is None:
        near = closest_names(name, known, count=3)
        hint = f" Did you mean {', '.join(f'`{each}`' for each in near)}?" if near else ""
        raise NotFound(f"Unknown tool `{name[:80]}`.{hint}")
    inner = {key: value for key, value in parameters.given.items() if key != "tool"}
    return await found.call({"parameters": inner}, context)


def restart(bot: LiveBot, parameters: Parameters, *, reload: Callable[[], Changes]) -> Result[Any]:
    """Reload the definition and report what changed."""
    try:
        changes = reload()
    except ConfigurationError as error:
        raise ToolError(
            f"The bot's folder is invalid; the previous definition stays in use: {error}",
            code=ErrorCode.CONFIG_INVALID,
            instruction="Tell the user, or fix the file; then call again.",
        ) from None
    changed = f"changed: {', '.join(changes.parts)}" if changes else "nothing changed"
    fields: JsonObject = {
        "status": "restarting" if parameters.hard else "reloaded",
        "changed": list(changes.parts),
        "files": {"added": list(changes.added), "changed": list(changes.changed), "removed": list(changes.removed)},
        "tools": len(bot.definition.tool_names()),
        "digest": bot.definition.digest[:16],
    }
    if bot.definition.missing:
        fields["missing"] = list(bot.definition.missing)
    return Result.ok(
        message=f"{bot.name} was reloaded; {changed}.",
        instruction="The state of the workflow is unchanged; `next` continues it.",
        next={"tool": tool_name(bot.name, TOOL), "arguments": {}},
        warnings=bot.definition.warnings,
        fields=fields,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Location:
    """Confirmation state of a run's directory."""

    settled: bool
    """Whether anything may be written there."""
    new: bool
    """Whether no directory was confirmed yet, or another one was."""
    asks: bool
    """Whether initialize_project has to ask before it completes."""
    confirmed: bool
    """Whether this call confirms it."""
    needs_human: bool
    """Whether only a human can confirm it."""
    saved: str | None = None
    """The directory confirmed before, if it is another one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a call found before it changed anything or asked anyone."""

    loaded: Loaded
    position: Position
    notes: JsonObject
    location: Location

    @property
    def state(self) -> RunState:
        return self.loaded.state

    def asks_for_directory(self) -> bool:
        return self.position.action == INITIALIZE and self.location.needs_human


def locate(
    call: BotCall, position: Position, loaded: Loaded, notes: JsonObject, *, confirmed: bool | None = None
) -> Location:
    """Whether the directory is settled: known, named, or confirmed by this call."""
    project, state = call.project, loaded.state
    known = project.is_known(loaded)
    agrees = call.parameters.confirm is not None and call.parameters.confirm is not False
    confirms = agrees if confirmed is None else confirmed
    saved = notes.get(LOCATION)
    differs = saved is not None and saved != str(project.root)
    starts = (Position(behavior=each, action=INITIALIZE) for each in call.plan.behaviors)
    new = differs or not (any(map(state.is_completed, starts)) or _is_confirmed_for_main(call, known))
    proof = position.action == INITIALIZE and call.gates(state).needs_proof(position)
    return Location(
        settled=known or confirms or (project.named and not project.outside),
        new=new,
        asks=new and not confirms,
        confirmed=confirms,
        needs_human=confirms and ((project.outside and not known) or (proof and new)),
        saved=saved if differs else None,
    )


def _is_confirmed_for_main(call: BotCall, known: bool) -> bool:
    if call.run == MAIN or not known:
        return False
    return call.project.state.notes(MAIN).get(LOCATION) == str(call.project.root)


def propose_location(call: BotCall, position: Position, location: Location, notices: Notices) -> Result[Any]:
    """The response of an initialize_project that waits for confirmation of the directory."""
    root = str(call.project.root)
    call.bot.proposed.add((root, call.run))
    data: JsonObject = {
        "requires_confirmation": True,
        "proposed_location": root,
        "location_from": call.project.source,
    }
    if location.saved is not None:
        data["saved_location"] = location.saved
    response = BotResponse(
        data=data,
        action_state="awaiting_confirmation",
        next={"tool": call.tool, "arguments": call.parameters.repeated(confirm=True, preset=call.parameters.preset)},
        message=f"Is {root} the directory of this project?",
        instruction="Show the user the proposed directory. If they agree, send `next`, or close this action; if they "
        "name another directory, send `confirm` with its path.",
        fields={"requires_confirmation": True},
        notices=notices,
    )
    return respond(call, position, response)


def require_project(call: BotCall, location: Location) -> None:
    """Refuse to work in a directory that nobody named; nothing was written."""
    if location.settled:
        return
    root = str(call.project.root)
    raise StateConflict(
        f"The project directory is not confirmed: {root} is only {call.project.source}.",
        instruction="Ask the user whether this is the directory of the project; if so, send `next` first.",
        next={**call.forward_next(), "arguments": call.parameters.repeated(confirm=True)},
        fields={"project_required": True, "proposed_location": root},
    )
