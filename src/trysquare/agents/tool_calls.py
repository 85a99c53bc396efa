"""Tool calls of a run: policy, consent, journal, record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Protocol, cast, runtime_checkable

from trysquare.agents.budget import Late, RunTime, within
from trysquare.agents.journal import Journal, keyed, repeat_of
from trysquare.agents.policy import Decision, Policy
from trysquare.core.approvals import Approvals
from trysquare.core.call import call_tool
from trysquare.core.consent import consent_request, obtain_consent
from trysquare.core.context import CallContext
from trysquare.core.errors import ConsentNeeded, ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.core.metadata import Consent
from trysquare.core.result import Result
from trysquare.core.text import truncate
from trysquare.core.tool import Tool
from trysquare.core.toolset import StaticToolset
from trysquare.models import CallRequest, Message, Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class CallRecord:
    call: CallRequest
    text: str
    """Bounded text for the model."""
    success: bool
    code: str | None = None
    modified_files: tuple[str, ...] = ()
    passed: bool | None = None
    """Whether tests passed; None if the call ran none."""
    handles: tuple[str, ...] = ()
    """Sessions, cursors and jobs that the result names."""
    approval: str | None = None
    """Command by which the user can approve the call."""
    usage: Usage | None = None
    """Usage of a model inside the call."""
    seconds: float = 0.0

    def message(self) -> Message:
        return Message(role="tool", text=self.text, answers=self.call.id, failed=not self.success)


@runtime_checkable
class RecordListener(Protocol):
    """A toolset that depends on the calls made, including replayed ones of a resumed job."""

    def note(self, record: CallRecord) -> None: ...


USAGE = "trysquare/usage"
"""Key of `meta` for what a tool used of a model."""
HANDLE_FIELDS = ("session_id", "handle", "cursor", "job", "run", "project")


def outcome_json(result: Result[Any], *, limit: int) -> JsonObject:
    """What the journal stores of a result: the text for the model and the facts for the loop."""
    opened = result.opened()
    envelope = opened.to_json()
    approval = as_object(envelope.get("approval")).get("command")
    return {
        "text": bounded(opened.to_text(), limit),
        "success": opened.success,
        "code": None if opened.code is None else opened.code.value,
        "modified_files": [str(name) for name in envelope.get("modified_files") or ()],
        "passed": envelope.get("passed") if isinstance(envelope.get("passed"), bool) else None,
        "handles": list(_handles(envelope)),
        "approval": approval if isinstance(approval, str) else None,
        "usage": opened.meta.get(USAGE),
    }


def record_of(call: CallRequest, outcome: JsonObject) -> CallRecord:
    names: JsonObject = {name: tuple(outcome.get(name) or ()) for name in ("modified_files", "handles")}
    names["usage"] = None if outcome.get("usage") is None else Usage(**outcome["usage"])
    return CallRecord(call=call, **{**outcome, **names})


def bounded(text: str, limit: int) -> str:
    """Keep the beginning and the end of a text that is too long."""
    if len(text) <= limit:
        return text
    note = f"\n… {len(text) - limit:,} characters omitted; request less to see them …\n"
    space = max(limit - len(note), 2)
    head = space * 2 // 3
    return text[:head] + note + text[len(text) - (space - head) :]


def _handles(envelope: JsonObject) -> list[str]:
    """Handles at the top level of a result or in its value."""
    parts = (envelope, as_object(envelope.get("value")))
    found = [(key, part.get(key)) for part in parts for key in HANDLE_FIELDS]
    return [f"{key} {given}" for key, given in found if isinstance(given, str) and 0 < len(given) <= 200]


def call_summary(record: CallRecord) -> str:
    """One line about a call for the log: `file read shop.py: ok`."""
    arguments = record.call.arguments
    about = [arguments.get("action"), *(arguments.get(name) for name in _SUMMARY_ARGUMENTS)]
    words = [record.call.name, *(truncate(" ".join(word.split()), 60) for word in about if isinstance(word, str))]
    return f"{' '.join(words)}: {'ok' if record.success else record.code or 'failed'}"


_SUMMARY_ARGUMENTS = ("path", "command", "pattern", "name", "target", "query", "module", "reason")

READ_ONLY_ACTIONS = "trysquare/read_only_actions"
"""Key of `meta` for the actions of a tool that only read."""
MAX_CONCURRENT = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedCall:
    call: CallRequest
    tool: Tool
    position: str
    """Step and position, such as `3.1`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCallRunner:
    policy: Policy
    journal: Journal
    context: CallContext
    approvals: Approvals | None
    result_characters: int
    time: RunTime

    async def run_all(self, calls: Sequence[PlannedCall]) -> list[CallRecord]:
        """Run calls in order, neighbours that only read concurrently; none after the time is up."""
        records: list[CallRecord] = []
        for group in grouped(calls):
            if self.time.left() == 0:
                late = "Timeout: the time of this run is up. The call was not made."
                records.extend(refusal(planned.call, late, code=ErrorCode.TOOL_TIMEOUT) for planned in group)
                continue
            ran = await self._run_group(group)
            # The recorded time, not a clock: a resumed job has used what it used before.
            self.time.spend(max(record.seconds for record in ran))
            records.extend(ran)
        return records

    async def _run_group(self, group: Sequence[PlannedCall]) -> list[CallRecord]:
        # Sequentially, before anything runs: the steps of a journal must start in the same order every time.
        refused = [await self._refused(planned) for planned in group]
        if len(group) == 1:
            return [refused[0] or await self._run(group[0])]
        async with asyncio.TaskGroup() as tasks:
            ended = [
                refusal or tasks.create_task(self._run(planned))
                for planned, refusal in zip(group, refused, strict=True)
            ]
        return [each.result() if isinstance(each, asyncio.Task) else each for each in ended]

    async def _refused(self, planned: PlannedCall) -> CallRecord | None:
        """The refusal by the policy or the user; None if the call may run."""
        call = planned.call
        try:
            decision = self.policy.require(call.name, call.arguments, planned.tool.arguments.exact)
        except ToolError as error:
            return record_of(call, self._failure(error))
        if decision.effect != "ask":
            return None
        # The user is asked once per job.
        name = f"consent {planned.position} {call.name}"
        answered = await self.journal.step(name, lambda: self._consent(planned, decision))
        return None if answered["refused"] is None else record_of(call, answered["refused"])

    def _failure(self, error: ToolError) -> JsonObject:
        return outcome_json(Result.from_error(error), limit=self.result_characters)

    async def _run(self, planned: PlannedCall) -> CallRecord:
        call, tool = planned.call, planned.tool
        name = f"call {planned.position} {call.name}"
        repeat = "harmless" if only_reads(tool, call.arguments) else repeat_of(tool, call.arguments)
        outcome = await self.journal.call(name, repeat, lambda key: self._call(planned, key))
        if outcome.value is not None:
            return record_of(call, outcome.value)
        return CallRecord(call=call, text=outcome.unknown or "", success=False, code="sent_unknown")

    async def _call(self, planned: PlannedCall, key: str) -> JsonObject:
        arguments = planned.call.arguments
        if self.journal.job is not None:
            arguments = keyed(planned.tool, arguments, key)
        # The tool itself, since it may have left the toolset while the model wrote its call.
        alone = StaticToolset([planned.tool])
        context = replace(
            self.context,
            meta={**self.context.meta, "trysquare/request_key": key},
            approvals=self.context.approvals or self.approvals,
        )
        began = time.monotonic()
        try:
            result = await within(self.time.left(), call_tool(alone, planned.tool.name, arguments, context))
        except Late:
            result = Result[Any].failure(
                f"Timeout: the time of this run was up before `{planned.tool.name}` returned. It was cancelled and may "
                "have had effects.",
                code=ErrorCode.TOOL_TIMEOUT,
            )
        return {**outcome_json(result, limit=self.result_characters), "seconds": time.monotonic() - began}

    async def _consent(self, planned: PlannedCall, decision: Decision) -> JsonObject:
        tool, arguments = planned.tool, planned.call.arguments
        consent = Consent(question=f"Let the agent call {tool.name}? {_sentence(decision.why)}")
        try:
            tool.arguments.parse(tool.name, arguments)
            if self.approvals is None:
                raise ConsentNeeded(
                    f"This call of `{tool.name}` needs the user's consent, which this run cannot ask for.",
                    instruction="Work without the call, or give up and say what it was needed for.",
                )
            request = consent_request(tool.name, tool.arguments, consent, arguments, self.context)
            await obtain_consent(request, self.approvals, self.context)
        except ToolError as error:
            return {"refused": self._failure(error)}
        return {"refused": None}


def refusal(call: CallRequest, message: str, *, code: ErrorCode, instruction: str | None = None) -> CallRecord:
    """The record of a call that was not made."""
    failed: Result[Any] = Result.failure(message, code=code, instruction=instruction)
    return record_of(call, outcome_json(failed, limit=4_000))


def only_reads(tool: Tool, arguments: JsonObject) -> bool:
    actions = cast(Sequence[str], tool.metadata.meta.get(READ_ONLY_ACTIONS, ()))
    return tool.metadata.read_only or arguments.get("action") in actions


def grouped(calls: Sequence[PlannedCall]) -> list[list[PlannedCall]]:
    """Group neighbouring calls that only read, to run them concurrently."""
    groups: list[list[PlannedCall]] = []
    for reads, several in groupby(calls, lambda planned: only_reads(planned.tool, planned.call.arguments)):
        planned, size = list(several), MAX_CONCURRENT if reads else 1
        groups += [planned[start : start + size] for start in range(0, len(planned), size)]
    return groups


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")
