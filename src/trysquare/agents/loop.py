"""The agent loop: ask the model, run its calls, check completion."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import cast

from trysquare.agents import builtin_tools, completion, tool_calls
from trysquare.agents.budget import Late, RunTime, Spent, exhausted, within
from trysquare.agents.conversation import Conversation, Notes
from trysquare.agents.journal import Journal, NullJournal
from trysquare.agents.parsing import dropped_message, parse_calls
from trysquare.agents.run import ANSWER_TOKENS, AgentOutcome, AgentRun, Status
from trysquare.agents.toolbox import Toolbox, View
from trysquare.core.call import call_tool
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.tool import Tool
from trysquare.core.toolset import StaticToolset
from trysquare.models import CallRequest, Message, ModelRequest, ModelResponse
from trysquare.models.replay import answer_json, read_answer_json

_FULL_SHARE = 0.4
"""Share of the context that a conversation may keep after the server refused it as too long."""


async def run_agent(run: AgentRun, journal: Journal | None = None) -> AgentOutcome:
    """Run an agent to its end. Failures of the model are raised, so that a job can be resumed."""
    with closing(_Loop(run, journal or NullJournal())) as loop:
        return await loop.run()


class _Loop:
    def __init__(self, run: AgentRun, journal: Journal) -> None:
        self._run, self._journal = run, journal
        definition = run.definition
        self._policy = replace(definition.policy, root=run.root)
        self._notes, self._evidence = Notes(), completion.Evidence()
        self._stuck = completion.StuckDetector(self._only_reads)
        self._used, self._time = Spent(), RunTime(definition.budget.seconds)
        self._conversation = Conversation(run.task, run.model, self._notes, answer_tokens=self._answer_tokens())
        self._toolbox = Toolbox(run, self._policy)
        self._builtin = builtin_tools.all_tools(self._notes, self._toolbox.search, can_ask=run.context.can_ask())
        self.close = self._toolbox.close
        self._runner = tool_calls.ToolCallRunner(
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

    @property
    def _spent(self) -> Spent:
        return replace(self._used, seconds=self._time.used)

    async def run(self) -> AgentOutcome:
        await self._toolbox.refresh()
        if taken := [name for name in sorted(builtin_tools.BUILTIN_NAMES) if self._toolbox.find(name) is not None]:
            raise ConfigurationError(
                f"the tools {', '.join(taken)} have names of built-in tools of agents.",
                hint="Give their provider a prefix.",
            )
        while self._ending is None:
            reason = exhausted(self._run.definition.budget, self._spent)
            if reason is not None:
                self._ending = ("out_of_budget", reason)
                break
            await self._step()
        status, summary = self._ending
        return AgentOutcome(
            status=status,
            summary=summary,
            modified_files=self._evidence.modified_files,
            spent=self._spent,
            calls=self._calls,
            waiting=tuple(self._waiting),
            missing=self._toolbox.missing(),
        )

    async def _step(self) -> None:
        await self._toolbox.refresh()
        number = self._spent.steps + 1
        view = self._view()
        answer = await self._next_answer(view, number)
        if answer is None:
            return
        calls, note = self._read(answer, view, number)
        choice = completion.low_confidence(answer, self._run.min_confidence)
        if choice is not None and await self._resolve(choice, number):
            return
        records = await self._run_calls(calls, number)
        self._record_step(answer, calls, records, note)
        await self._report(number, records)

    def _view(self) -> View:
        unmet = completion.missing(self._run.definition.criteria, self._evidence)
        return self._toolbox.view(self._open_builtin(), frozenset({builtin_tools.FINISH} if unmet else ()))

    def _open_builtin(self) -> list[Tool]:
        hidden = self._toolbox.has_hidden()
        return [tool for tool in self._builtin if hidden or tool.name != "find_tools"]

    async def _next_answer(self, view: View, number: int) -> ModelResponse | None:
        """The model's answer; None if time was up, or the context was full."""
        self._conversation.fit(view.system_tokens)
        request = ModelRequest(
            messages=self._conversation.messages(view.system),
            tools=view.offers,
            constraint=view.constraint,
            must_call=True,
            parallel=self._run.definition.parallel,
            max_tokens=self._answer_tokens(),
            sampling=self._run.sampling,
        )
        recorded = await self._journal.step(f"answer {number}", lambda: self._ask(request))
        self._time.spend(recorded["seconds"])
        if "answer" not in recorded:
            if "full" in recorded:
                self._conversation.fit(view.system_tokens, share=_FULL_SHARE)
            return None
        answer = read_answer_json(recorded["answer"])
        self._used = self._used.plus(answer.usage, steps=1)
        return answer

    async def _ask(self, request: ModelRequest) -> JsonObject:
        began = time.monotonic()
        try:
            answer = await within(self._time.left(), self._run.model.answer(request))
        except Late:
            return {"late": True, "seconds": time.monotonic() - began}
        except ToolError as error:
            if error.code != ErrorCode.MODEL_CONTEXT_FULL or not self._conversation.can_shrink():
                raise
            return {"full": True, "seconds": time.monotonic() - began}
        return {"answer": answer_json(answer), "seconds": time.monotonic() - began}

    def _read(self, answer: ModelResponse, view: View, number: int) -> tuple[list[CallRequest], str | None]:
        """The calls of an answer: native ones, else those in its text."""
        if answer.calls:
            return [replace(call, id=call.id or f"{number}.{at}") for at, call in enumerate(answer.calls)], None
        parsed = parse_calls(answer.text, view.names, prefix=f"step-{number}")
        return list(parsed.calls), dropped_message(parsed)

    async def _resolve(self, choice: completion.LowConfidence, number: int) -> bool:
        """Whether a low-confidence choice was replaced by further tools or advice from the user."""
        query = f"{self._run.task} {self._conversation.last_answer()}"
        if self._toolbox.has_hidden() and (found := self._toolbox.show_further(query)):
            names = ", ".join(f"`{match.tool.name}`" for match in found)
            self._conversation.add_user(f"You were unsure between {choice.summary}. Better matches may be: {names}.")
            return True
        if not self._run.context.can_ask() or choice.key in self._conversation.asked:
            return False
        answer = (await self._journal.step(f"question {number}", lambda: self._ask_user(choice)))["answer"]
        self._conversation.asked.add(choice.key)
        if answer:
            self._conversation.add_user(f"The user says how to continue: {answer}")
        return bool(answer)

    async def _ask_user(self, choice: completion.LowConfidence) -> JsonObject:
        """Ask the user about a choice. The answer is advice, not consent."""
        answer = await self._run.context.ask(
            choice.question(self._run.task), builtin_tools.ANSWER_SCHEMA, key=f"doubt-{choice.key}"
        )
        text = answer.content.get("answer") if answer.action == "accept" else None
        return {"answer": text if isinstance(text, str) else None}

    async def _run_calls(self, calls: Sequence[CallRequest], number: int) -> list[tool_calls.CallRecord]:
        """Run the calls of one answer in order, up to `finish` or `give_up`."""
        records: list[tool_calls.CallRecord] = []
        waiting: list[tool_calls.PlannedCall] = []
        for at, call in enumerate(calls, start=1):
            tool = self._toolbox.find(call.name)
            if tool is not None:
                waiting.append(tool_calls.PlannedCall(call=call, tool=tool, position=f"{number}.{at}"))
                continue
            records.extend(await self._run_waiting(waiting))
            waiting = []
            records.append(await self._run_builtin(call, f"{number}.{at}"))
            self._calls += 1
            if self._ending is not None:
                return records
        records.extend(await self._run_waiting(waiting))
        return records

    async def _run_waiting(self, waiting: Sequence[tool_calls.PlannedCall]) -> list[tool_calls.CallRecord]:
        records = await self._runner.run_all(waiting)
        for record in records:
            self._calls += 1
            self._evidence.note(record)
            if isinstance(self._run.toolset, tool_calls.RecordListener):
                self._run.toolset.note(record)
            if record.usage is not None:
                self._used = self._used.plus(record.usage, steps=0)
            if record.approval is not None:
                self._waiting[record.approval] = None
            if record.modified_files:
                self._toolbox.refresh_facts()
        return records

    async def _run_builtin(self, call: CallRequest, position: str) -> tool_calls.CallRecord:
        tool = next((tool for tool in self._open_builtin() if tool.name == call.name), None)
        if tool is None:
            known = ", ".join(offer.name for offer in self._view().offers[:30])
            return tool_calls.refusal(
                call,
                f"Unknown tool `{call.name[:80]}`.",
                code=ErrorCode.TOOL_NOT_FOUND,
                instruction=f"Use one of {known}.",
            )
        if call.name == builtin_tools.ASK_PERSON:
            work = partial(self._call_directly, tool, call.arguments)
            return tool_calls.record_of(call, await self._journal.step(f"question {position}", work))
        record = tool_calls.record_of(call, await self._call_directly(tool, call.arguments))
        if not record.success:
            return record
        if call.name == builtin_tools.FINISH:
            return await self._finish(call, position)
        if call.name == builtin_tools.GIVE_UP:
            self._ending = ("gave_up", str(call.arguments.get("reason", "")))
        return record

    async def _call_directly(self, tool: Tool, arguments: JsonObject) -> JsonObject:
        result = await call_tool(StaticToolset([tool]), tool.name, arguments, self._run.context)
        return tool_calls.outcome_json(result, limit=self._result_characters())

    async def _finish(self, call: CallRequest, position: str) -> tool_calls.CallRecord:
        """End the run if the claims of `finish` are true."""
        files = [str(name) for name in cast("list[object]", call.arguments.get("files") or [])]
        recorded = await self._journal.step(f"check {position}", lambda: self._check(files))
        self._time.spend(recorded.get("seconds", 0.0))
        wrong = cast(list[str], recorded["wrong"])
        if completion.TESTS_FAIL in wrong:
            self._evidence.note_failing_tests()
        if wrong:
            return tool_calls.refusal(
                call,
                f"The run is not finished: {'; '.join(wrong)}.",
                code=ErrorCode.TOOL_FAILED,
                instruction="Do this, then call finish again.",
            )
        summary = str(call.arguments["summary"])
        self._ending = ("finished", summary)
        return tool_calls.CallRecord(call=call, text=summary, success=True)

    async def _check(self, files: list[str]) -> JsonObject:
        criteria, root = self._run.definition.criteria, self._run.root
        began = time.monotonic()
        checked = completion.verify_claims(criteria, self._evidence, files, root=root, run_tests=self._tests_pass)
        try:
            wrong = list(await within(self._time.left(), checked))
        except Late:
            wrong = ["the time of this run was up before this was verified"]
        return {"wrong": wrong, "seconds": time.monotonic() - began}

    async def _tests_pass(self, name: str, arguments: JsonObject) -> bool:
        tool = self._toolbox.find(name)
        return tool is not None and (await self._call_directly(tool, arguments))["passed"] is True

    def _record_step(
        self, answer: ModelResponse, calls: list[CallRequest], records: list[tool_calls.CallRecord], note: str | None
    ) -> None:
        message = Message(role="assistant", text=answer.text, calls=tuple(calls))
        cut = (
            f"Your answer was truncated at {self._answer_tokens():,} tokens, thinking included. Answer again in fewer "
            "words: one short call at a time, long texts in several calls."
            if answer.stop == "length"
            else None
        )
        verdict = self._stuck.observe(records, cut=cut is not None)
        left = self._run.definition.budget.steps - self._spent.steps
        warning = f"Only {left} steps are left. Finish the work." if left in (1, 2, 3) else None
        self._conversation.add(message, records, [text for text in (note, cut or verdict.warning, warning) if text])
        if verdict.stopped is not None and self._ending is None:
            self._ending = ("stuck", verdict.stopped)

    async def _report(self, number: int, records: Sequence[tool_calls.CallRecord]) -> None:
        did = ", ".join(map(tool_calls.call_summary, records)) or "no call"
        steps = self._run.definition.budget.steps
        await self._journal.report(number, steps, did)
        await self._run.context.progress(number, steps, did)

    def _only_reads(self, record: tool_calls.CallRecord) -> bool:
        tool = self._toolbox.find(record.call.name)
        return tool is not None and tool_calls.only_reads(tool, record.call.arguments)

    def _answer_tokens(self) -> int:
        limit = self._run.definition.answer_tokens or self._run.answer_tokens
        context = self._run.model.context_tokens
        return min(ANSWER_TOKENS, max(context // 4, 64)) if limit is None else min(limit, max(context // 2, 64))

    def _result_characters(self) -> int:
        # A token is about four characters; one result may take an eighth of the context.
        return min(self._run.result_characters, max(self._run.model.context_tokens // 2, 400))
