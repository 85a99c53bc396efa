"""The depth of a run: a preset is chosen at its start, and never changed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from trysquare.bots.proofs import write_receipt
from trysquare.bots.tools.responses import BotCall
from trysquare.bots.workflow import machine
from trysquare.bots.workflow.machine import INITIALIZE, Depth, Position, RunState, StateConflict
from trysquare.bots.workflow.runs import Change, Transition
from trysquare.core.approvals import ConsentGrant
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.text import closest_names, truncate
from trysquare.core.threads import run_in_thread

_MAX_NAMED = 8
_FULL = "the full depth"


def chosen(call: BotCall, state: RunState, *, agreed: bool = False) -> RunState:
    """The state at the preset of the call; `agreed` says that a human accepted what the preset takes away."""
    name = call.parameters.preset
    if name is None:
        return state
    if state.version > 0 or state.finished:
        if state.depth is not None and state.depth.name == name:
            return state
        raise _started(call, state)
    depth = _depth(call, name)
    dropped = dropped_gates(call, depth, strict=state.strict)
    if dropped and not call.plan.presets[name].drops_proof:
        raise StateConflict(
            f"The preset `{name}` would leave out {_some(dropped)}, which a strict run demands a human's proof of. "
            "Nothing was changed.",
            instruction="Start without `preset`, or ask the user to choose another one.",
            fields={"preset": name},
        )
    return machine.begin(call.plan, replace(depth, confirmed=agreed and bool(dropped)), strict=state.strict)


def dropped_gates(call: BotCall, depth: Depth, *, strict: bool) -> list[Position]:
    """The gates with proof that a depth takes away, in order; in a strict run every action is one."""
    taken, gates = depth.left_out | depth.waived, call.definition.gates
    return [
        each
        for each in call.plan.order
        if each in taken and (gates[each].proof or (strict and each.action != INITIALIZE))
    ]


def asks_for_depth(call: BotCall, state: RunState) -> list[Position]:
    """The gates that a human has to give up before this run starts; empty where it started, or nothing is lost."""
    if call.parameters.preset is None or state.version > 0 or state.depth is None:
        return []
    return dropped_gates(call, state.depth, strict=state.strict)


async def ask_for_depth(call: BotCall, state: RunState, context: CallContext) -> ConsentGrant | None:
    """Ask a human for the gates that the preset of a new run takes away."""
    dropped = asks_for_depth(call, state)
    if not dropped:
        return None
    name = str(call.parameters.preset)
    binding: JsonObject = {
        "project": str(call.project.root),
        "bot": call.bot.name,
        "run": call.run,
        "preset": name,
        "definition": call.bot.strength.digest,
        "takes_away": list(map(str, dropped)),
    }
    question = (
        f"Start run {call.run} of {call.bot.name} with the preset {name}? It takes away the proof of {_some(dropped)}."
    )
    grant = await call.ask(question, binding, context, strict=state.strict, gate=True)
    if (signed := grant.signed) is not None:
        # Before the move: without its receipt, the preset takes nothing away.
        await run_in_thread(lambda: write_receipt(call.project.root, signed))
    return grant


def require_agreed(call: BotCall, state: RunState, *, agreed: bool) -> None:
    """Refuse a start at a depth that takes away proofs to which nobody agreed."""
    if not agreed and asks_for_depth(call, state):
        raise StateConflict(
            "The preset takes away gates that need a human's proof; nothing was changed.",
            instruction="Send the same call again; the user is asked.",
        )


def require_applies(call: BotCall, state: RunState, position: Position) -> None:
    """Refuse to open an action that the run's preset leaves out."""
    depth = state.in_force
    if depth is None or position not in depth.left_out:
        return
    raise StateConflict(
        f"`{call.path(position)}` does not apply in run `{call.run}`, which was started with the preset "
        f"`{depth.name}`. Nothing was opened.",
        instruction="Continue with `next`. For that action, start another run: send `run` with a new name.",
        next=call.forward_next(),
        fields={"preset": depth.name, "current_action": call.path(state.current)},
    )


def require_no_preset(call: BotCall) -> None:
    """Refuse a preset along with an independent action, which starts no run."""
    if call.parameters.preset is not None:
        raise InvalidArguments(
            f"{call.tool}: `preset` starts a run, and this action is not part of one. Nothing was done.",
            instruction="Remove `preset`, or send it with `next`.",
            next={**call.forward_next(), "arguments": call.parameters.repeated(preset=call.parameters.preset)},
        )


async def start(call: BotCall, context: CallContext) -> RunState:
    """Start a run at the preset of the call, without opening an action. A human is asked where it drops a proof."""
    state = await run_in_thread(lambda: call.project.load(call.run).state)
    if state.version > 0:
        raise _started(call, state)
    agreement = await ask_for_depth(call, chosen(call, state), context)

    def change(now: RunState) -> Change:
        begun = chosen(call, now, agreed=agreement is not None)
        require_agreed(call, begun, agreed=agreement is not None)
        audit = with_start(call, now, {}, agreement)
        return Change(state=replace(begun, version=now.version + 1), audit=audit)

    moved: Transition = await run_in_thread(lambda: call.move(change, kind="start"))
    return moved.state


def with_start(call: BotCall, state: RunState, audit: JsonObject, agreement: ConsentGrant | None) -> JsonObject:
    """The audit record of a run's first change: the preset that was chosen, and who agreed to it."""
    if call.parameters.preset is None or state.version > 0:
        return audit
    how = {} if agreement is None else {
        "preset_agreement": {"by": agreement.by, "how": agreement.how, "digest": agreement.digest}
    }  # fmt: skip
    return {**audit, "preset": call.parameters.preset, **how}


def _depth(call: BotCall, name: str) -> Depth:
    presets = call.plan.presets
    if name in presets:
        return presets[name].depth
    near = closest_names(name, presets)
    meant = f" Did you mean `{near[0]}`?" if near else ""
    known = f"Known are {', '.join(presets)}." if presets else "This bot has none: leave `preset` out."
    raise InvalidArguments(
        f"{call.tool}: unknown preset `{truncate(name)}`.{meant} Nothing was done.",
        instruction=f"{known} Correct that and send the call again.",
    )


def _started(call: BotCall, state: RunState) -> StateConflict:
    depth = _FULL if state.depth is None else f"the preset `{state.depth.name}`"
    return StateConflict(
        f"Run `{call.run}` has started with {depth}, which is never changed. Nothing was done.",
        instruction="Send the call without `preset` to continue, or with a new name as `run` to start another run.",
        next=call.forward_next(),
        fields={"preset": None if state.depth is None else state.depth.name, "version": state.version},
    )


def _some(positions: Collection[Position]) -> str:
    shown = ", ".join(map(str, list(positions)[:_MAX_NAMED]))
    return shown if len(positions) <= _MAX_NAMED else f"{shown} and {len(positions) - _MAX_NAMED} more"
