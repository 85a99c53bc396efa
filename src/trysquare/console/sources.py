"""Where the questions of the page come from: calls that need consent, servers and definitions that are held, jobs."""

from __future__ import annotations

import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from trysquare.console.decisions import APPROVE, Choice, FileChange, Question, Verdict
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.threads import run_in_thread
from trysquare.store import StoredApprovals
from trysquare.store.approvals import PendingApproval
from trysquare.store.signatures import InvalidSignature

if TYPE_CHECKING:
    from trysquare.bots.projects import LiveBot
    from trysquare.gateway import GatewayService, LaunchPins, PendingChange, ServerConfig, UnapprovedServer
    from trysquare.jobs import JobReader, JobStatus

_RUNS_ONCE = "The call runs once, with exactly these arguments."
_ENDS = "The action is closed, and the workflow ends."
_GOES_ON = "The action is closed, and the workflow goes on."
_GATES = 50
"""Gates whose files are kept as they were compared."""


class ConsentQuestions:
    """Calls that wait in the approvals of some state files."""

    kind = "call"

    def __init__(
        self, stores: Callable[[], Sequence[StoredApprovals]], bots: Callable[[], Sequence[LiveBot]] = tuple
    ) -> None:
        self._stores = stores
        self._bots = bots
        self._gates: OrderedDict[str, Sequence[FileChange]] = OrderedDict()

    async def waiting(self) -> Sequence[Question]:
        return await run_in_thread(lambda: [_of_call(each) for store in self._stores() for each in store.pending()])

    async def decide(self, question: Question, verdict: Verdict) -> str:
        return await run_in_thread(lambda: self._decide(question, verdict))

    async def statement(self, question: Question, page: str) -> str:
        return await run_in_thread(lambda: self._holding(question.key).statement(question.key, page=page))

    async def detailed(self, question: Question) -> Question:
        arguments, bots = question.arguments or {}, self._bots()
        if not bots or not is_gate(arguments):
            return question
        # The digest is that of the arguments, and these name the digests of the files.
        known = self._gates.get(question.digest)
        if known is None:
            from trysquare.console.boards import gate_changes

            known = await run_in_thread(lambda: gate_changes(bots, arguments))
            self._gates[question.digest] = known
            while len(self._gates) > _GATES:
                self._gates.popitem(last=False)
        return replace(question, files=known)

    def _decide(self, question: Question, verdict: Verdict) -> str:
        code, by = question.key, verdict.by.subject
        store = self._holding(code)
        if verdict.signed is not None and not verdict.choice.is_refusal:
            try:
                receipt = store.approve_signed(code, verdict.signed)
            except InvalidSignature as error:
                raise ToolError(
                    f"Not approved: {error}.",
                    code=ErrorCode.CONSENT_REQUIRED,
                    instruction="Sign with the passkey of an approver who may approve this.",
                ) from None
            return f"Signed by {receipt.by}: {receipt.tool} is proven."
        record = store.refuse if verdict.choice.is_refusal else store.approve
        receipt = record(code, by=by, how=verdict.how, reason=verdict.reason)
        if receipt.unsigned:
            return "Confirmed, but not proven: the call still waits for the signature of an approver."
        return f"{'Approved' if receipt.approved else 'Refused'}: {receipt.tool}."

    def _holding(self, code: str) -> StoredApprovals:
        for store in self._stores():
            if any(each.code == code for each in store.pending()):
                return store
        raise NotFound(
            "This call waits no longer.", code=ErrorCode.HANDLE_NOT_FOUND, instruction="Look at what waits now."
        )


def is_gate(arguments: JsonObject) -> bool:
    """Whether the arguments of a call close the gate of a bot."""
    return all(name in arguments for name in ("project", "action", "run", "files", "ends_workflow"))


def _of_call(pending: PendingApproval) -> Question:
    arguments = pending.arguments
    facts = [("Tool", pending.tool), ("Caller", pending.principal)]
    facts += [("Client", pending.client)] if pending.client else []
    facts += [("Job", pending.job)] if pending.job else []
    closes = is_gate(arguments)
    facts += [("Run", str(arguments["run"])), ("Action", str(arguments["action"]))] if closes else []
    return Question(
        kind=ConsentQuestions.kind,
        key=pending.code,
        digest=pending.digest,
        text=pending.question,
        meaning=_RUNS_ONCE if not closes else _ENDS if arguments["ends_workflow"] else _GOES_ON,
        since=pending.created,
        facts=tuple(facts),
        arguments=arguments,
        expires_in=pending.expires_in,
        default="the call does not run",
        signs=pending.signs,
        # A gate is decided by itself: each one leads somewhere else. So is what is signed.
        action="" if closes or pending.signs else f"{pending.tool} {pending.principal}",
    )


class GatewayQuestions:
    """Servers that are started or reached differently than before, and tools that are new or have changed."""

    def __init__(self, servers: GatewayService, pins: LaunchPins, opened: float) -> None:
        self._servers, self._pins = servers, pins
        self._opened = opened

    def configured(self) -> list[ServerConfig]:
        """The servers without broken entries."""
        from trysquare.gateway import ServerConfig

        return [entry for entry in self._servers.entries.values() if isinstance(entry, ServerConfig)]


class HeldServers(GatewayQuestions):
    """Servers whose command or address changed."""

    kind = "server"

    async def waiting(self) -> Sequence[Question]:
        return await run_in_thread(
            lambda: [self._question(held) for each in self.configured() if (held := self._pins.pending(each))]
        )

    def _question(self, held: UnapprovedServer) -> Question:
        server = held.server
        what = "was never used before" if held.before is None else "is started or reached differently"
        before = [] if held.before is None else [f"- {held.before}"]
        return Question(
            kind=self.kind,
            key=server.name,
            digest=server.launch_digest,
            text=f"Use the server {server.name}? It {what}.",
            meaning="The server is started or reached as it is configured now, with your rights.",
            since=self._opened,
            facts=(("Server", server.name), ("Configured in", str(server.location))),
            diff="\n".join([*before, f"+ {server.shown}"]),
            choices=(APPROVE,),
            takes_reason=False,
        )

    async def decide(self, question: Question, verdict: Verdict) -> str:
        held = next((each for each in self.configured() if each.name == question.key), None)
        if held is None or held.launch_digest != question.digest:
            raise _gone(question.key)
        await run_in_thread(lambda: self._pins.approve(held))
        return f"Approved: the server {held.name}."


class HeldDefinitions(GatewayQuestions):
    """Tools whose definition is new or has changed."""

    kind = "definition"

    async def waiting(self) -> Sequence[Question]:
        found = await run_in_thread(self._pending)
        return [self._question(each) for each in found]

    def _pending(self) -> list[PendingChange]:
        return [change for each in self.configured() for change in self._servers.registry.pending(each.name)]

    def _question(self, held: PendingChange) -> Question:
        is_new = held.before is None
        meanwhile = "Until then calls are refused." if held.refuses else "Until then the earlier definition is used."
        return Question(
            kind=self.kind,
            key=f"{held.server}.{held.tool}",
            digest=_digest(held),
            text=f"Take the {'new' if is_new else 'changed'} definition of {held.tool} from {held.server}?",
            meaning=f"Models see this definition, and calls follow it. {meanwhile}",
            since=self._opened,
            facts=(("Server", held.server), ("Tool", held.tool), ("Why", " ".join(held.reasons))),
            diff=held.diff,
            choices=(APPROVE,),
            takes_reason=False,
        )

    async def decide(self, question: Question, verdict: Verdict) -> str:
        held = [each for each in await run_in_thread(self._pending) if _digest(each) == question.digest]
        left = await run_in_thread(lambda: self._servers.registry.approve(held[:1]))
        if not held or any(_digest(each) == question.digest for each in left):
            raise _gone(question.key)
        return f"Approved: {held[0].tool} of {held[0].server}."


def _digest(held: PendingChange) -> str:
    text = json.dumps([held.server, asdict(held.after)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _gone(name: str) -> ToolError:
    return NotFound(
        f"What was asked about {name} has changed since, so nothing was approved.",
        code=ErrorCode.STATE_CONFLICT,
        instruction="Look at what waits now.",
    )


class JobQuestions:
    """Questions of agents' jobs."""

    kind = "job"

    def __init__(self, open_jobs: Callable[[], AbstractAsyncContextManager[JobReader]]) -> None:
        self._open_jobs = open_jobs

    async def waiting(self) -> Sequence[Question]:
        async with self._open_jobs() as jobs:
            return [_of_job(each) for each in await jobs.asking()]

    async def decide(self, question: Question, verdict: Verdict) -> str:
        job, _, name = question.key.partition(".")
        async with self._open_jobs() as jobs:
            await jobs.signal(job, name, verdict.choice.value)
        return f"Answered: {verdict.choice.label}."


def _of_job(found: JobStatus) -> Question:
    asked = found.question
    assert asked is not None
    return Question(
        kind=JobQuestions.kind,
        key=f"{found.job}.{asked.name}",
        digest=hashlib.sha256(f"{found.job} {asked.name} {asked.text}".encode()).hexdigest(),
        text=asked.text,
        meaning="The job goes on with your answer.",
        since=found.updated,
        expires_in=None if asked.ends is None else max(0.0, asked.ends - time.time()),
        default=(asked.default or "").capitalize(),
        facts=(("Job", found.job), ("Task", found.title), ("Process", found.holder or "none runs it")),
        choices=tuple(Choice(value=each, label=each.capitalize()) for each in asked.choices),
        takes_reason=False,
    )
