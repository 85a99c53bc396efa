"""Calling: one call of a model under the policy, the person's consent and the journal, and what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from trysquare.agent.budgets import RunTime
from trysquare.agent.deadline import Late, within
from trysquare.agent.journal import Journal, Repeat, keyed, repeat_of
from trysquare.agent.policy import Decision, Policy
from trysquare.agent.records import CallRecord, outcome_json, record_of
from trysquare.core.call import call_tool
from trysquare.core.consent import Approvals
from trysquare.core.consent_check import agreed, request_for
from trysquare.core.context import CallContext
from trysquare.core.errors import ConsentNeeded, ErrorCode, ToolError
from trysquare.core.metadata import Consent
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.toolset import FixedToolset
from trysquare.core.types import JsonObject
from trysquare.models.messages import CallRequest

READ_ONLY_ACTIONS = "trysquare/read_only_actions"
"""The key of `meta` under which a tool with actions names those that only read."""
MOST_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Numbered:
    """A call, the tool that it is for, and its place in the run."""

    call: CallRequest
    tool: Tool
    place: str
    """Such as `3.1`: the first call of the third step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Calling:
    """How the calls of a run are made."""

    policy: Policy
    journal: Journal
    context: CallContext
    approvals: Approvals | None
    result_characters: int
    time: RunTime

    async def run_all(self, calls: Sequence[Numbered]) -> list[CallRecord]:
        """Run calls in their order; neighbours that only read run at the same time. After the run's time, none is."""
        records: list[CallRecord] = []
        for group in grouped(calls):
            if self.time.is_up():
                records.extend(_not_run(numbered.call) for numbered in group)
                continue
            ran = await self._run_group(group)
            # What a record says, and not a clock: a job that is taken up again has used what it used before.
            self.time.spend(max(record.seconds for record in ran))
            records.extend(ran)
        return records

    async def _run_group(self, group: Sequence[Numbered]) -> list[CallRecord]:
        # One after the other, before anything runs: the steps of a journal must begin in the same order every time.
        refused = [await self._refused(numbered) for numbered in group]
        if len(group) == 1:
            return [refused[0] or await self._run(group[0])]
        async with asyncio.TaskGroup() as tasks:
            started = [
                None if no is not None else tasks.create_task(self._run(numbered))
                for numbered, no in zip(group, refused, strict=True)
            ]
        return [
            no or cast("asyncio.Task[CallRecord]", task).result() for task, no in zip(started, refused, strict=True)
        ]

    async def _refused(self, numbered: Numbered) -> CallRecord | None:
        """What is told of a call that may not run, by the policy or by the person; None where it may."""
        call = numbered.call
        try:
            decision = self.policy.require(call.name, call.arguments, numbered.tool.arguments.exact)
        except ToolError as error:
            return record_of(call, outcome_json(Result.from_error(error), limit=self.result_characters))
        refused = await self._asked(numbered, decision) if decision.effect == "ask" else None
        return None if refused is None else record_of(call, refused)

    async def _run(self, numbered: Numbered) -> CallRecord:
        call, tool = numbered.call, numbered.tool
        name = f"call {numbered.place} {call.name}"
        outcome = await self.journal.call(name, repeat(tool, call.arguments), lambda key: self._called(numbered, key))
        if outcome.value is not None:
            return record_of(call, outcome.value)
        return CallRecord(call=call, text=outcome.unknown or "", success=False, code="sent_unknown")

    async def _called(self, numbered: Numbered, key: str) -> JsonObject:
        arguments = numbered.call.arguments
        if self.journal.job is not None:
            arguments = keyed(numbered.tool, arguments, key)
        # Found by its own value, since a tool may have been taken out of the set while the model wrote its call.
        alone = FixedToolset([numbered.tool])
        context = replace(
            self.context,
            meta={**self.context.meta, "trysquare/request_key": key},
            approvals=self.context.approvals or self.approvals,
        )
        began = time.monotonic()
        try:
            result = await within(self.time.left(), call_tool(alone, numbered.tool.name, arguments, context))
        except Late:
            result = too_late(numbered.tool.name)
        return {**outcome_json(result, limit=self.result_characters), "seconds": time.monotonic() - began}

    async def _asked(self, numbered: Numbered, decision: Decision) -> JsonObject | None:
        """Ask the person about a call, once in the life of a job; what to tell the model where they did not agree."""
        name = f"consent {numbered.place} {numbered.call.name}"
        answered = await self.journal.step(name, lambda: self._consent(numbered, decision))
        return cast("JsonObject | None", answered["refused"])

    async def _consent(self, numbered: Numbered, decision: Decision) -> JsonObject:
        consent = Consent(question=f"Let the agent call {numbered.tool.name}? {_sentence(decision.why)}")
        try:
            numbered.tool.arguments.parse(numbered.tool.name, numbered.call.arguments)
            if self.approvals is None:
                raise ConsentNeeded(
                    f"A person has to agree to this call of `{numbered.tool.name}`, and none can be asked in this run.",
                    instruction="Do without the call, or give up and say what it was needed for.",
                )
            tool, arguments = numbered.tool, numbered.call.arguments
            request = request_for(tool.name, tool.arguments, consent, arguments, self.context)
            await agreed(request, self.approvals, self.context)
        except ToolError as error:
            return {"refused": outcome_json(Result.from_error(error), limit=self.result_characters)}
        return {"refused": None}


def too_late(name: str) -> Result[Any]:
    """What is told of a call that was ended with the run's time."""
    return Result.failure(
        f"The time of this run was up before `{name}` came back. The call was ended, and may have done a part of it.",
        code=ErrorCode.TOOL_TIMEOUT,
    )


def _not_run(call: CallRequest) -> CallRecord:
    return refusal(call, "The time of this run was up. The call was not made.", code=ErrorCode.TOOL_TIMEOUT)


def refusal(call: CallRequest, message: str, *, code: ErrorCode, instruction: str | None = None) -> CallRecord:
    """The record of a call that was not made."""
    failed: Result[Any] = Result.failure(message, code=code, instruction=instruction)
    return record_of(call, outcome_json(failed, limit=4_000))


def only_reads(tool: Tool, arguments: JsonObject) -> bool:
    """Whether a call changes nothing, as its tool says."""
    if tool.metadata.read_only:
        return True
    actions = cast(Sequence[str], tool.metadata.meta.get(READ_ONLY_ACTIONS, ()))
    return arguments.get("action") in actions


def repeat(tool: Tool, arguments: JsonObject) -> Repeat:
    """What a second call does: one that only reads does no harm, whatever the tool's other actions do."""
    return "harmless" if only_reads(tool, arguments) else repeat_of(tool, arguments)


def grouped(calls: Sequence[Numbered]) -> list[list[Numbered]]:
    """The calls in groups that may run at the same time: neighbours that only read."""
    groups: list[list[Numbered]] = []
    reading = False
    for numbered in calls:
        reads = only_reads(numbered.tool, numbered.call.arguments)
        if groups and reads and reading and len(groups[-1]) < MOST_AT_ONCE:
            groups[-1].append(numbered)
        else:
            groups.append([numbered])
        reading = reads
    return groups


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
