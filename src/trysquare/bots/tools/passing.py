"""Passing gates: what a call must not get behind, and what a human is asked before it does."""

from __future__ import annotations

from trysquare.bots.gates import ask_person
from trysquare.bots.plan import Position
from trysquare.bots.tools.answers import Call
from trysquare.bots.workflow import RunState, gate_before
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject

_MOST_SHOWN = 10


def closed_gate_before(call: Call, state: RunState, position: Position) -> Position | None:
    """The first gate before an action that waits for a human's proof."""
    return gate_before(call.plan, state, position, call.gates(state).is_defined)


def require_behind_no_gate(call: Call, state: RunState, position: Position) -> None:
    """Refuse to open or close what stands behind a gate that waits for a human's proof."""
    gate = closed_gate_before(call, state, position)
    if gate is None:
        return
    path = gate.path(call.bot.name)
    raise ToolError(
        f"`{position.path(call.bot.name)}` stands behind `{path}`, which only a human can close. Nothing was changed.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="`next` opens the action that waits. Do its work and close it; the user is asked to approve that.",
        next=call.action_next(gate),
        fields={"gate": path, "current_action": state.current.path(call.bot.name), "version": state.version},
    )


def weakened(call: Call, state: RunState, notes: JsonObject) -> tuple[str, ...]:
    """What the bot's definition demands no longer of this run."""
    return call.project.state.weakened(notes, strict=state.strict)


async def ask_for_definition(call: Call, state: RunState, notes: JsonObject, context: CallContext) -> None:
    """Have a human agree to a definition that demands less than the one that the run was worked on with."""
    found = weakened(call, state, notes)
    if not found:
        return
    digest = call.bot.strength.digest
    told = "; ".join(found[:_MOST_SHOWN]) + ("; and more" if len(found) > _MOST_SHOWN else "")
    question = (
        f"The definition of {call.bot.name} was changed and demands less: {told}. "
        f"May run {call.parameters.run} go on with it?"
    )
    binding: JsonObject = {
        "project": str(call.project.root),
        "run": call.parameters.run,
        "definition": digest,
        "demands_less": list(found),
    }
    agreement = await ask_person(call.tool, question, binding, approvals=call.bot.approvals, context=context)
    body: JsonObject = {"demands_less": list(found), "agreement": {"by": agreement.by, "how": agreement.how}}
    await run_in_thread(
        lambda: call.project.state.accept_definition(
            call.parameters.run, digest=digest, principal=call.principal, body=body
        )
    )
