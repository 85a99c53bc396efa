"""Helpers for tests of tools: a call in one line, and a caller that follows a script.

result = await call(tools, "greet", name="Ada")
assert result.value == "Hello, Ada"

A tool that needs consent refuses to run in a test as everywhere else. `human` says what a human answers, in order:

result = await call(tools, "wipe", human=approve(), folder="/tmp/x")
result = await call(tools, "wipe", human=decline(), folder="/tmp/x")
assert result.code == "CONSENT_REFUSED"

caller = ScriptedCaller(answers=[approve(), accept(colour="red")])
await call(tools, "paint", context=make_context(caller=caller))
assert caller.questions[1].message == "Which colour?"
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from trysquare.core.approvals import Approvals
from trysquare.core.cache import MemoryHandles
from trysquare.core.call import call_tool, direct_calls
from trysquare.core.context import (
    Answer,
    CallContext,
    Caller,
    Capability,
    ClientRequest,
    ElicitRequest,
    LogLevel,
    Principal,
    SamplingRequest,
    Visit,
)
from trysquare.core.declarations import Tools
from trysquare.core.errors import DeclarationError, NobodyToAsk
from trysquare.core.hints import function_name
from trysquare.core.result import Result
from trysquare.core.tool import Tool
from trysquare.core.toolset import StaticToolset, Toolset, lifespans_of, open_lifespans


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One progress report."""

    done: float
    total: float | None = None
    message: str | None = None


class ScriptedCaller:
    """A caller that answers questions from a list and records everything it receives.

    `completions` are what the client's model answers, `roots` its directories, and `headers` those of the request.
    """

    def __init__(
        self,
        answers: Iterable[Answer] = (),
        *,
        completions: Iterable[str] = (),
        roots: Iterable[str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._answers = list(answers)
        self._can_ask = bool(self._answers)
        self._completions = list(completions)
        self._can_sample = bool(self._completions)
        self._roots = None if roots is None else list(roots)
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.samples: list[SamplingRequest] = []
        self.questions: list[ElicitRequest] = []
        self.visits: list[Visit] = []
        self.progress_reports: list[Progress] = []
        self.log_lines: list[tuple[LogLevel, str]] = []

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        self.progress_reports.append(Progress(done=done, total=total, message=message))

    async def log(self, level: LogLevel, message: str) -> None:
        self.log_lines.append((level, message))

    def can_ask(self) -> bool:
        return self._can_ask

    def offers(self, capability: Capability) -> bool:
        if capability.startswith("elicitation"):
            return self._can_ask
        return self._can_sample if capability == "sampling" else self._roots is not None

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        return {each.key: await self._respond(each) for each in requests}

    async def _respond(self, request: ClientRequest) -> Answer:
        if isinstance(request, ElicitRequest):
            return await self.ask(request)
        if isinstance(request, Visit):
            self.visits.append(request)
            return self._next_answer(request)
        if isinstance(request, SamplingRequest):
            self.samples.append(request)
            if not self._completions:
                raise AssertionError(f"The script has no completion left for: {request.prompt}")
            return Answer(action="accept", content={"text": self._completions.pop(0)})
        return Answer(action="accept", content={"roots": [{"uri": uri} for uri in self._roots or ()]})

    async def ask(self, question: ElicitRequest) -> Answer:
        if not self._can_ask:
            raise NobodyToAsk(question.message)
        self.questions.append(question)
        return self._next_answer(question)

    def _next_answer(self, request: ElicitRequest | Visit) -> Answer:
        if not self._answers:
            raise AssertionError(f"The script has no answer left for: {request.message}")
        return self._answers.pop(0)


class Person:
    """A scripted person: answers the questions of tools in order, and records them.

    It is the `elicitation_handler` of a `Client`, and the fixture `person` of the pytest plugin.
    """

    def __init__(self) -> None:
        self._answers: list[Answer] = []
        self.questions: list[str] = []
        """The messages of all questions so far."""

    def approve(self) -> Person:
        """Agree to the next call that needs consent."""
        return self._then(approve())

    def decline(self) -> Person:
        """Say no to the next question."""
        return self._then(decline())

    def cancel(self) -> Person:
        """Close the next question without an answer."""
        return self._then(cancel())

    def answer(self, content: Mapping[str, Any] | str | float | bool | list[str]) -> Person:
        """Fill in the next question and send it: its fields, or the value that a question for one asks for."""
        return self._then(accept(**content) if isinstance(content, Mapping) else accept(content))

    def _then(self, answer: Answer) -> Person:
        self._answers.append(answer)
        return self

    def __call__(self, question: ElicitRequest | Visit) -> Answer:
        self.questions.append(question.message)
        if not self._answers:
            raise AssertionError(
                f"A tool asks, and the test has no answer: {question.message}\n"
                "Say it before the call: person.approve(), person.decline() or person.answer({...})."
            )
        return self._answers.pop(0)

    def require_all_asked(self) -> None:
        """Fail if there are answers to questions that nobody asked."""
        if self._answers:
            asked = f"; asked were {self.questions}" if self.questions else ""
            raise AssertionError(f"{len(self._answers)} scripted answers were not asked for{asked}.")


def accept(value: Any = None, /, **content: Any) -> Answer:
    """The user fills this in and sends it: the fields of a form, or the value that a question for one asks for."""
    return Answer(action="accept", content=content if value is None else {"value": value, **content})


def approve() -> Answer:
    """A human agrees to a call that needs consent."""
    return Answer(action="accept", content={"approve": True})


def decline() -> Answer:
    """The user says no."""
    return Answer(action="decline")


def cancel() -> Answer:
    """The user closes the question without an answer."""
    return Answer(action="cancel")


def make_context(
    *,
    caller: Caller | None = None,
    principal: str = "tester",
    scopes: Iterable[str] | None = None,
    timeout: float | None = None,
    tools: Toolset | Tools | None = None,
    meta: Mapping[str, Any] | None = None,
    approvals: Approvals | None = None,
) -> CallContext:
    """A context with handles of its own; `tools` are those that the call can reach with `context.call_tool`."""
    return CallContext(
        principal=Principal(subject=principal, scopes=None if scopes is None else frozenset(scopes), rights=None),
        caller=caller or ScriptedCaller(),
        handles=MemoryHandles(),
        deadline=None if timeout is None else time.monotonic() + timeout,
        meta=meta or {},
        direct=None if tools is None else direct_calls(as_toolset(tools)),
        approvals=approvals,
    )


@contextmanager
def override(tools: Toolset | Tools | Tool, replacements: Mapping[Callable[..., Any], Any]) -> Generator[None]:
    """Put values in the place of what `Depends(function)` or a lifespan gives, for as long as the block runs.

    with override(tools, {open_db: FakeDb()}):
        result = await call(tools, "count_users")

    `Depends(other)` as a value runs another function instead. A lifespan that a value stands for is not opened, unless
    it is open already. Tools that are mounted in these count too.
    """
    held = lifespans_of(as_toolset(tools))
    with ExitStack() as stack:
        for function, value in replacements.items():
            owners = [each for each in held if function in each.replaceable()]
            if not owners:
                raise _unknown_dependency(function, [known for each in held for known in each.replaceable()])
            for owner in owners:
                stack.enter_context(owner.replacing(function, value))
        yield


def _unknown_dependency(function: Any, known: Sequence[Callable[..., Any]]) -> DeclarationError:
    name = function_name(function) if callable(function) else repr(function)
    names = ", ".join(sorted(f"`{function_name(each)}`" for each in known)) or "nothing"
    return DeclarationError(
        f"No tool depends on `{name}`, so nothing can be put in its place. They depend on {names}. Pass the function "
        "itself, from the module that the tools are loaded from."
    )


async def call(
    tools: Toolset | Tools | Tool,
    name: str,
    /,
    arguments: Mapping[str, Any] | None = None,
    *,
    context: CallContext | None = None,
    human: Answer | Iterable[Answer] = (),
    **more: Any,
) -> Result[Any]:
    """Call a tool by name the way a client does: arguments are checked, failures come back as results.

    `human` answers what the call asks, one answer for each question; without it nobody can be asked. Arguments of the
    tool that are called `context` or `human` go into `arguments`. Lifespans of the tools are open during the call; hold
    them open over several calls with `async with tools.open():`.
    """
    answers = [human] if isinstance(human, Answer) else list(human)
    if answers and context is not None:
        raise ValueError("Give either `human` or `context`; a context has its own caller, such as a ScriptedCaller.")
    known = context or make_context(caller=ScriptedCaller(answers))
    toolset = as_toolset(tools)
    async with open_lifespans(toolset):
        return await call_tool(toolset, name, {**(arguments or {}), **more}, known)


def as_toolset(tools: Toolset | Tools | Tool) -> Toolset:
    """A tool, `Tools` or a toolset as a toolset."""
    if isinstance(tools, Tool):
        return StaticToolset([tools])
    return tools.toolset() if isinstance(tools, Tools) else tools
