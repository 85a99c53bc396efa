"""What waits for a human, whatever asks, and the one function through which every decision of the page goes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from trysquare.core.approvals import SignedStatement
from trysquare.core.context import Principal
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject

HOW = "console"
MAX_REASON = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One way to decide."""

    value: str
    label: str
    is_refusal: bool = False


APPROVE = Choice(value="approve", label="Approve")
REFUSE = Choice(value="refuse", label="Refuse", is_refusal=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChange:
    """A file that a decision is about, and how it differs from what was decided on before."""

    path: str
    change: str
    """`added`, `changed`, `removed` or `unchanged`."""
    diff: str = ""
    note: str = ""
    """Why there is no diff."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """Something that waits for a human."""

    kind: str
    """What asks: a call, a server, a definition or a job."""
    key: str
    """Identifies it among those of its kind."""
    digest: str
    """What is decided on, exactly: a question that has changed since it was shown takes no decision."""
    text: str
    meaning: str
    """What happens after a yes."""
    since: float
    """When it began to wait, in seconds since 1970."""
    facts: tuple[tuple[str, str], ...] = ()
    """Who asks, from where, and for what."""
    arguments: JsonObject | None = None
    diff: str = ""
    files: Sequence[FileChange] | None = None
    """What it is about, for the gate of a bot."""
    expires_in: float | None = None
    default: str = ""
    """What happens once that time has ended without an answer."""
    choices: tuple[Choice, ...] = (APPROVE, REFUSE)
    takes_reason: bool = True
    signs: bool = False
    """Whether only an approver's signature approves it."""
    action: str = ""
    """Equal for questions that may be decided together; empty for one that may not."""

    @property
    def id(self) -> str:
        """Its name on the page."""
        return f"{self.kind}-{self.key}"

    def choice(self, value: str) -> Choice:
        """A choice by its value. Raises for one that this question does not have."""
        for choice in self.choices:
            if choice.value == value:
                return choice
        raise ToolError(
            f"This question cannot be answered with `{value[:60]}`.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction=f"Answer with {' or '.join(each.value for each in self.choices)}.",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A decision: what, by whom, how, and what stands behind it."""

    choice: Choice
    by: Principal
    reason: str = ""
    how: str = HOW
    signed: SignedStatement | None = None
    """What the human signed, where they did."""


class QuestionSource(Protocol):
    """Where questions come from and decisions go, such as the store of approvals."""

    kind: str

    async def waiting(self) -> Sequence[Question]:
        """What waits now."""
        ...

    async def decide(self, question: Question, verdict: Verdict) -> str:
        """Record a decision and say what happens now. Raises a `ToolError` where it came too late."""
        ...


@runtime_checkable
class SignedSource(Protocol):
    """A source whose questions may need the signature of an approver."""

    async def statement(self, question: Question, page: str) -> str:
        """The text that is signed to approve a question, on the page of this origin."""
        ...


@runtime_checkable
class DetailedSource(Protocol):
    """A source whose questions have details that are only worth reading when they are shown."""

    async def detailed(self, question: Question) -> Question:
        """A question with its details."""
        ...


class Decisions:
    """Everything that waits, from all sources."""

    def __init__(self, sources: Sequence[QuestionSource]) -> None:
        self._sources = {source.kind: source for source in sources}
        self._deciding = asyncio.Lock()

    async def waiting(self) -> list[Question]:
        """What waits, newest first."""
        found = [question for source in self._sources.values() for question in await source.waiting()]
        return sorted(found, key=lambda each: (-each.since, each.id))

    async def detailed(self, questions: Sequence[Question]) -> list[Question]:
        """Questions as a human reads them, with everything that they are about."""
        sources = [self._sources[each.kind] for each in questions]
        return [
            await source.detailed(each) if isinstance(source, DetailedSource) else each
            for each, source in zip(questions, sources, strict=True)
        ]

    async def find(self, question_id: str) -> Question | None:
        """A question by its id, while it waits."""
        kind, _, key = question_id.partition("-")
        source = self._sources.get(kind)
        if source is None:
            return None
        return next((each for each in await source.waiting() if each.key == key), None)

    async def statement(self, question_id: str, digest: str, page: str) -> str:
        """The text that an approver signs to approve a question as it was shown."""
        question = await self._as_shown(question_id, digest)
        source = self._sources[question.kind]
        if not question.signs or not isinstance(source, SignedSource):
            raise ToolError(
                "This question needs no signature.",
                code=ErrorCode.VALIDATION_INVALID_PARAM,
                instruction="Approve it, or refuse it.",
            )
        return await source.statement(question, page)

    async def decide(
        self,
        question_id: str,
        digest: str,
        choice: str,
        *,
        by: Principal,
        reason: str = "",
        signed: SignedStatement | None = None,
    ) -> str:
        """Decide one question as it was shown. Every decision of the page goes through here, and nowhere else."""
        # One at a time, so that two clicks do not both find the question open.
        async with self._deciding:
            question = await self._as_shown(question_id, digest)
            verdict = Verdict(choice=question.choice(choice), by=by, reason=reason.strip()[:MAX_REASON], signed=signed)
            return await self._sources[question.kind].decide(question, verdict)

    async def _as_shown(self, question_id: str, digest: str) -> Question:
        question = await self.find(question_id)
        if question is None or question.digest != digest:
            raise NotFound(
                "This question was decided elsewhere, has changed or has expired." if question is None else
                "What was asked has changed since it was shown, so nothing was decided.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Look at what waits now.",
            )  # fmt: skip
        return question
