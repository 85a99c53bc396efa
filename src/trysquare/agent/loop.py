"""The loop: think, call, read, repeat, until the work is shown to be done or may not go on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from trysquare.agent.budgets import RunTime, Spent, exhausted
from trysquare.agent.calling import Calling, Numbered, only_reads, refusal
from trysquare.agent.certainty import Doubt, doubt_of
from trysquare.agent.completion import FINISH, GIVE_UP, TESTS_FAIL, checked_evidence, missing, told
from trysquare.agent.deadline import Late, within
from trysquare.agent.dialogue import Dialogue
from trysquare.agent.journal import Journal, Unjournalled
from trysquare.agent.ledger import Ledger
from trysquare.agent.notes import Notes
from trysquare.agent.own_tools import (
    ASK_PERSON,
    OWN_NAMES,
    ask_person_tool,
    find_tools_tool,
    finish_tool,
    give_up_tool,
    note_tool,
)
from trysquare.agent.parse import dropped_note, parse_calls
from trysquare.agent.records import CallRecord, RecordListener, outcome_json, record_of, shown
from trysquare.agent.run import ANSWER_TOKENS, AgentOutcome, AgentRun, Status
from trysquare.agent.stuck import StuckWatch
from trysquare.agent.toolbox import Toolbox, ToolboxSettings, View
from trysquare.core.call import call_tool
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.tool import Tool
from trysquare.core.toolset import FixedToolset
from trysquare.core.types import JsonObject
from trysquare.models.messages import CallRequest, Message
from trysquare.models.model import ModelAnswer, ModelRequest
from trysquare.models.recorded import answer_json, read_answer_json

_PROMPT_SHARE = 4
"""The part of a model's context that the tools may take: one quarter."""
_FULL_SHARE = 0.4
"""How much of the context a dialogue may keep after a server said that it was too long."""


async def run_agent(run: AgentRun, journal: Journal | None = None) -> AgentOutcome:
    """Run an agent to its end. Failures of the model itself are raised, so that a job can be taken up later."""
    loop = _Loop(run, journal or Unjournalled())
    try:
        return await loop.run()
    finally:
        loop.close()


class _Loop:
    """One run on its way."""

    def __init__(self, run: AgentRun, journal: Journal) -> None:
        self._run, self._journal = run, journal
        definition = run.definition
        self._policy = replace(definition.policy, root=run.root)
        self._notes, self._ledger, self._watch = Notes(), Ledger(), StuckWatch(self._only_reads)
        self._used, self._time = Spent(), RunTime(definition.budget.seconds)
        self._dialogue = Dialogue(run.task, run.model, self._notes, answer_tokens=self._answer_tokens())
        self._toolbox = Toolbox(run.toolset, self._toolbox_settings(), run.model.count)
        self._own = self._own_tools()
        self._calling = Calling(
            policy=self._policy,
            journal=journal,
            context=run.context,
            approvals=run.approvals,
            result_characters=self._result_characters(),
            time=self._time,
        )
        self._ending: tuple[Status, str] | None = None
        self._calls = 0
        self._waiting: dict[str, None] = {}

    def close(self) -> None:
        self._toolbox.close()

    @property
    def _spent(self) -> Spent:
        return replace(self._used, seconds=self._time.used)

    async def run(self) -> AgentOutcome:
        await self._toolbox.refresh()
        self._refuse_shadows()
        while self._ending is None:
            reason = exhausted(self._run.definition.budget, self._spent)
            if reason is not None:
                self._ending = ("out_of_budget", reason)
                break
            await self._step()
        return self._outcome(*self._ending)

    def _outcome(self, status: Status, summary: str) -> AgentOutcome:
        return AgentOutcome(
            status=status,
            summary=summary,
            modified_files=self._ledger.modified_files,
            spent=self._spent,
            calls=self._calls,
            waiting=tuple(self._waiting),
            missing=self._toolbox.missing(),
        )

    async def _step(self) -> None:
        await self._toolbox.refresh()
        number = self._spent.steps + 1
        view = self._view()
        answer = await self._answered(view, number)
        if answer is None:
            return
        calls, note = self._read(answer, view, number)
        doubt = doubt_of(answer, self._run.least_certainty)
        if doubt is not None and await self._resolved(doubt, number):
            return
        records = await self._run_calls(calls, number)
        self._took_in(answer, calls, records, note)
        await self._tell(number, records)

    def _view(self) -> View:
        closed = frozenset({FINISH}) if missing(self._run.definition.criteria, self._ledger) else frozenset[str]()
        return self._toolbox.view(self._open_own(), closed)

    def _open_own(self) -> list[Tool]:
        hidden = self._toolbox.has_hidden()
        return [tool for tool in self._own if hidden or tool.name != "find_tools"]

    # What the model says

    async def _answered(self, view: View, number: int) -> ModelAnswer | None:
        """The model's answer to the dialogue so far; None where the time was up before it came."""
        self._dialogue.fit(view.system_tokens)
        request = ModelRequest(
            messages=self._dialogue.messages(view.system),
            tools=view.offers,
            constraint=view.constraint,
            must_call=True,
            parallel=self._run.definition.parallel,
            max_tokens=self._answer_tokens(),
            sampling=self._run.sampling,
        )
        kept = await self._journal.step(f"answer {number}", lambda: self._ask(request))
        self._time.spend(kept["seconds"])
        if "answer" not in kept:
            if "full" in kept:
                self._dialogue.fit(view.system_tokens, share=_FULL_SHARE)
            return None
        answer = read_answer_json(kept["answer"])
        self._used = self._used.plus(answer.usage)
        return answer

    async def _ask(self, request: ModelRequest) -> JsonObject:
        began = time.monotonic()
        try:
            answer = await within(self._time.left(), self._run.model.answer(request))
        except Late:
            return {"late": True, "seconds": time.monotonic() - began}
        except ToolError as error:
            if error.code != ErrorCode.MODEL_CONTEXT_FULL or not self._dialogue.can_shrink():
                raise
            return {"full": True, "seconds": time.monotonic() - began}
        return {"answer": answer_json(answer), "seconds": time.monotonic() - began}

    def _read(self, answer: ModelAnswer, view: View, number: int) -> tuple[list[CallRequest], str | None]:
        """The calls of an answer: those that the backend knows of, else those that its text holds."""
        if answer.calls:
            return [replace(call, id=call.id or f"{number}.{place}") for place, call in enumerate(answer.calls)], None
        parsed = parse_calls(answer.text, view.names, prefix=f"step-{number}")
        return list(parsed.calls), dropped_note(parsed)

    async def _resolved(self, doubt: Doubt, number: int) -> bool:
        """Whether a doubtful choice was answered with something better: further tools, or the person's word."""
        if self._toolbox.has_hidden():
            found = self._toolbox.show_further(f"{self._run.task} {self._dialogue.last_said()}")
            if found:
                shown = ", ".join(f"`{tool.name}`" for tool in found)
                self._dialogue.say(f"You hesitated between {doubt.told}. These tools may fit better: {shown}.")
                return True
        if not self._run.context.can_ask() or doubt.is_told_before(self._dialogue.asked):
            return False
        kept = await self._journal.step(f"question {number}", lambda: self._question(doubt))
        self._dialogue.asked.add(doubt.key)
        if kept["answer"]:
            self._dialogue.say(f"The person says how to go on: {kept['answer']}")
        return bool(kept["answer"])

    async def _question(self, doubt: Doubt) -> JsonObject:
        """What the person says about a choice. It is advice to the model, and no consent to any call."""
        answer = await self._run.context.ask(doubt.question(self._run.task), doubt.schema, key=f"doubt-{doubt.key}")
        said = answer.content.get("answer") if answer.action == "accept" else None
        return {"answer": said if isinstance(said, str) else None}

    # What the tools do

    async def _run_calls(self, calls: Sequence[CallRequest], number: int) -> list[CallRecord]:
        """Run the calls of one answer in their order. After `finish` or `give_up` nothing more is run."""
        records: list[CallRecord] = []
        waiting: list[Numbered] = []
        for place, call in enumerate(calls, start=1):
            tool = self._toolbox.find(call.name)
            if tool is not None:
                waiting.append(Numbered(call=call, tool=tool, place=f"{number}.{place}"))
                continue
            records.extend(await self._run_waiting(waiting))
            waiting = []
            records.append(await self._run_own(call, f"{number}.{place}"))
            self._calls += 1
            if self._ending is not None:
                return records
        records.extend(await self._run_waiting(waiting))
        return records

    async def _run_waiting(self, waiting: Sequence[Numbered]) -> list[CallRecord]:
        records = await self._calling.run_all(waiting)
        for record in records:
            self._note(record)
        return records

    def _note(self, record: CallRecord) -> None:
        self._calls += 1
        self._ledger.note(record)
        if isinstance(self._run.toolset, RecordListener):
            self._run.toolset.note(record)
        if record.usage is not None:
            self._used = self._used.used(record.usage)
        if record.approval is not None:
            self._waiting[record.approval] = None
        if record.modified_files:
            self._toolbox.refresh_facts()

    async def _run_own(self, call: CallRequest, place: str) -> CallRecord:
        """Run a tool of the loop itself, or say why there is none of that name."""
        own = {tool.name: tool for tool in self._open_own()}
        tool = own.get(call.name)
        if tool is None:
            return self._unknown(call)
        if call.name == ASK_PERSON:
            kept = await self._journal.step(f"question {place}", lambda: self._call_own(tool, call))
            return record_of(call, kept)
        record = record_of(call, await self._call_own(tool, call))
        if not record.success:
            return record
        if call.name == FINISH:
            return await self._finished(call, place)
        if call.name == GIVE_UP:
            self._ending = ("gave_up", str(call.arguments.get("reason", "")))
        return record

    async def _call_own(self, tool: Tool, call: CallRequest) -> JsonObject:
        result = await call_tool(FixedToolset([tool]), tool.name, call.arguments, self._run.context)
        return outcome_json(result, limit=self._result_characters())

    def _unknown(self, call: CallRequest) -> CallRecord:
        known = [offer.name for offer in self._view().offers]
        return refusal(
            call,
            f"There is no tool `{call.name[:80]}` in this run.",
            code=ErrorCode.TOOL_NOT_FOUND,
            instruction=f"Use one of {', '.join(known[:30])}.",
        )

    async def _finished(self, call: CallRequest, place: str) -> CallRecord:
        """End the run if what `finish` claims is true."""
        files = [str(name) for name in cast("list[object]", call.arguments.get("files") or [])]
        kept = await self._journal.step(f"check {place}", lambda: self._checked(files))
        self._time.spend(kept.get("seconds", 0.0))
        wrong = cast(list[str], kept["wrong"])
        if TESTS_FAIL in wrong:
            self._ledger.note_failing_whole()
        if wrong:
            return refusal(
                call,
                "The run is not finished: " + "; ".join(wrong) + ".",
                code=ErrorCode.TOOL_FAILED,
                instruction="Do what is missing, then call finish again.",
            )
        summary = str(call.arguments["summary"])
        self._ending = ("finished", summary)
        return CallRecord(call=call, text=summary, success=True)

    async def _checked(self, files: list[str]) -> JsonObject:
        criteria, root = self._run.definition.criteria, self._run.root
        began = time.monotonic()
        checked = checked_evidence(criteria, self._ledger, files, root=root, run_tests=self._tests_pass)
        try:
            wrong = list(await within(self._time.left(), checked))
        except Late:
            wrong = ["the time of this run was up before that could be checked"]
        return {"wrong": wrong, "seconds": time.monotonic() - began}

    async def _tests_pass(self, name: str, arguments: JsonObject) -> bool:
        tool = self._toolbox.find(name)
        if tool is None:
            return False
        result = await call_tool(FixedToolset([tool]), name, arguments, self._run.context)
        return outcome_json(result, limit=self._result_characters())["passed"] is True

    # What the loop makes of it

    def _took_in(
        self, answer: ModelAnswer, calls: Sequence[CallRequest], records: Sequence[CallRecord], note: str | None
    ) -> None:
        said = Message(role="assistant", text=answer.text, calls=tuple(call for call in calls))
        cut = self._cut(answer)
        verdict = self._watch.observe(records, cut=cut)
        self._dialogue.add(said, records, [text for text in (note, cut or verdict.told, self._warning()) if text])
        if verdict.stopped is not None and self._ending is None:
            self._ending = ("stuck", verdict.stopped)

    def _cut(self, answer: ModelAnswer) -> str | None:
        """What is told of an answer that was cut; None where it came to its own end."""
        if answer.stop != "length":
            return None
        return (
            f"Your answer was cut at its limit of {self._answer_tokens():,} tokens, thinking included; what was cut is "
            "lost. Answer again in fewer words: one short call at a time, and long texts in several calls."
        )

    def _warning(self) -> str | None:
        left = self._run.definition.budget.steps - self._spent.steps
        return f"Only {left} steps are left. Bring the work to an end." if left in (1, 2, 3) else None

    async def _tell(self, number: int, records: Sequence[CallRecord]) -> None:
        did = ", ".join(map(shown, records)) or "no call"
        steps = self._run.definition.budget.steps
        await self._journal.tell(number, steps, did)
        await self._run.context.progress(number, steps, did)

    def _only_reads(self, record: CallRecord) -> bool:
        tool = self._toolbox.find(record.call.name)
        return tool is not None and only_reads(tool, record.call.arguments)

    # What the run is made of

    def _toolbox_settings(self) -> ToolboxSettings:
        run, definition = self._run, self._run.definition
        return ToolboxSettings(
            instructions=definition.instructions,
            task=run.task,
            bundle=definition.bundle,
            policy=self._policy,
            finish=told(definition.criteria),
            probes=run.probes,
            narrow=run.narrow,
            constraint=run.constraint,
            parallel=definition.parallel,
            prompt_tokens=min(3_000, run.model.context_tokens // _PROMPT_SHARE),
        )

    def _own_tools(self) -> list[Tool]:
        own = [finish_tool(), give_up_tool(), note_tool(self._notes), find_tools_tool(self._toolbox)]
        return [*own, ask_person_tool()] if self._run.context.can_ask() else own

    def _refuse_shadows(self) -> None:
        taken = [name for name in sorted(OWN_NAMES) if self._toolbox.find(name) is not None]
        if taken:
            raise ConfigurationError(
                f"the tools {', '.join(taken)} have names that an agent's own tools have.",
                hint="Give their source a prefix.",
            )

    def _answer_tokens(self) -> int:
        wanted = self._run.definition.answer_tokens or self._run.answer_tokens
        context = self._run.model.context_tokens
        return min(ANSWER_TOKENS, max(context // 4, 64)) if wanted is None else min(wanted, max(context // 2, 64))

    def _result_characters(self) -> int:
        # A token is about four characters; one result may take an eighth of the context.
        return min(self._run.result_characters, max(self._run.model.context_tokens // 2, 400))
