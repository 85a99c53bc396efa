"""Corrections in the tools and commands: keep, show, and decide with a human's consent."""

from __future__ import annotations

from trysquare.bots.corrections import Change, Correction, Corrections, Decision, read_corrections
from trysquare.bots.tools.responses import BotCall
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread


def decision_of(call: BotCall) -> tuple[Decision, int] | None:
    """The decision that a call asks for, with the number of the correction."""
    given = call.parameters.given
    asked = [name for name in ("apply", "take_back", "corrections") if name in given]
    if not asked or asked == ["corrections"]:
        return None
    if len(asked) > 1:
        raise InvalidArguments("Send one of `corrections`, `apply` and `take_back`.")
    number = given[asked[0]]
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidArguments(f"`{asked[0]}` must be the number of a correction.")
    return ("apply" if "apply" in given else "take_back"), number


async def decide(call: BotCall, decision: Decision, number: int, context: CallContext) -> Result[object]:
    """Apply a correction or take it back, once a human has seen its diff and agreed."""
    corrections = Corrections(call.bot, call.project.state)

    def look() -> tuple[Correction, Change]:
        found = corrections.find(number)
        return found, corrections.change(found, decision)

    correction, change = await run_in_thread(look)
    verb = "Apply" if decision == "apply" else "Take back"
    binding: JsonObject = {"bot": call.bot.name, "correction": number, "file": change.file, "diff": change.diff}
    question = f"{verb} this correction of {call.bot.name}? {correction.text}"
    grant = await call.ask(question, binding, context, strict=call.bot.config.strict)
    by = grant.by or call.principal
    done = await run_in_thread(lambda: corrections.decide(number, decision, change, by=by))
    return Result.ok(
        message=f"Correction {number} is {done.status.replace('_', ' ')}; the bot's rules hold.",
        instruction="Tell the user. The workflow goes on with the changed bot.",
        next=call.forward_next(),
        fields={"status": "completed", "data": {"correction": {**corrections.shown(done), "diff": change.diff}}},
    )


def keep(call: BotCall) -> list[JsonObject]:
    """Keep the corrections of a call, and show all that are kept."""
    corrections = Corrections(call.bot, call.project.state)
    edits = read_corrections(call.parameters.given.get("corrections") or [])
    kept = corrections.keep(edits, by=call.principal) if edits else corrections.all()
    return [corrections.shown(each) for each in kept]
