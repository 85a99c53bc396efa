"""Step journal of a run, durable or not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

from trysquare.core.call import guard_crash
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object, choices_of, properties_of
from trysquare.core.tool import Tool
from trysquare.jobs import JobBody, JobRun

Repeat: TypeAlias = Literal["harmless", "keyed", "unknown"]
"""Effect of a repeated call: none, none because of its key, or unknown."""
REQUEST_KEY = "request_key"
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class CallOutcome:
    """The value of a call, or the message for the model if its effect is unknown."""

    value: JsonObject | None = None
    unknown: str | None = None


class Journal(Protocol):
    """Records the steps of a run in order; step names are unique."""

    @property
    def job(self) -> str | None: ...

    async def step(self, name: str, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        """The result of `run`, or the recorded one of an earlier attempt."""
        ...

    async def call(self, name: str, repeat: Repeat, run: Callable[[str], Awaitable[JsonObject]]) -> CallOutcome:
        """As `step`, for a tool call: one whose effect is unknown after a crash is resent only if the user agrees."""
        ...

    async def report(self, done: int, total: int | None, message: str) -> None:
        """Report progress; nothing is recorded."""
        ...


class NullJournal:
    job: str | None = None

    async def step(self, name: str, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        return await run()

    async def call(self, name: str, repeat: Repeat, run: Callable[[str], Awaitable[JsonObject]]) -> CallOutcome:
        return CallOutcome(value=await run(name))

    async def report(self, done: int, total: int | None, message: str) -> None:
        return None


def repeat_of(tool: Tool, arguments: JsonObject) -> Repeat:
    if tool.metadata.read_only or tool.metadata.idempotent:
        return "harmless"
    return "unknown" if _key_location(tool, arguments) is None else "keyed"


def keyed(tool: Tool, arguments: JsonObject, key: str) -> JsonObject:
    """Set the call's key where the tool accepts one, overriding the model's own."""
    name = _key_location(tool, arguments)
    if name is None:
        return arguments
    if name == REQUEST_KEY:
        return {**arguments, REQUEST_KEY: key}
    return {**arguments, name: {**as_object(arguments.get(name)), REQUEST_KEY: key}}


def _key_location(tool: Tool, arguments: JsonObject) -> str | None:
    """The argument that takes the key: itself, or an object that contains it."""
    exact = tool.arguments.exact
    # Not every action accepts a key.
    called = (
        option
        for option in as_list(exact.get("oneOf"))
        if arguments.get("action") in choices_of(properties_of(option).get("action"))
    )
    properties = properties_of(next(called, exact))
    if REQUEST_KEY in properties:
        return REQUEST_KEY
    if tool.metadata.toolset == "bots" and "parameters" in properties:
        # The open object that the tools of a bot share accepts a key without naming it.
        return "parameters"
    return next((name for name, schema in properties.items() if REQUEST_KEY in properties_of(schema)), None)


KIND = "agent"
AGAIN = "again"
SKIP = "skip"

RunAgent: TypeAlias = Callable[[JsonObject, Journal], Awaitable[JsonObject]]


def agent_bodies(run: RunAgent, *, question_seconds: float | None = None) -> dict[str, JobBody]:
    """Job bodies for the engine, by kind. A question of theirs that nobody answers in time is answered with `skip`."""

    async def body(argument: JsonObject, job_run: JobRun) -> JsonObject:
        journal = JobJournal(job_run, question_seconds)
        return await guard_crash(f"Job {job_run.job}", report_config_error(run(argument, journal)))

    return {KIND: body}


async def report_config_error(work: Awaitable[T]) -> T:
    """Await the work; a configuration error becomes a tool error."""
    try:
        return await work
    except ConfigurationError as error:
        raise ToolError(
            str(error),
            code=ErrorCode.CONFIG_INVALID,
            instruction="Ask the user to fix this setting of the server; a job can be resumed afterwards.",
        ) from error


class JobJournal:
    def __init__(self, run: JobRun, question_seconds: float | None = None) -> None:
        self._run = run
        self._question_seconds = question_seconds
        self.job: str | None = run.job

    async def step(self, name: str, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        return await self._run.step(name, lambda: guard_crash(f"Step `{name}` of job {self.job}", run()))

    async def call(self, name: str, repeat: Repeat, run: Callable[[str], Awaitable[JsonObject]]) -> CallOutcome:
        async def work() -> JsonObject:
            if repeat != "unknown" or await self._may_send(name):
                return {"value": await run(f"{self.job}/{name}")}
            unknown = (
                f"sent_unknown: `{name}` was in flight when the process ended; whether it took effect is unknown. It "
                "was not sent again. Inspect the present state before doing anything that depends on it."
            )
            return {"sent_unknown": unknown}

        recorded = await self.step(name, work)
        return CallOutcome(value=recorded.get("value"), unknown=recorded.get("sent_unknown"))

    async def report(self, done: int, total: int | None, message: str) -> None:
        await self._run.tell(done, total, message)

    async def _may_send(self, name: str) -> bool:
        """Whether the call was not sent before, or the user wants it sent again."""
        if await self._run.claim(name):
            return True
        question = (
            f"`{name}` was in flight when its process ended; whether it took effect is unknown (sent_unknown). "
            f"Check, then choose: `{AGAIN}` sends it once more, `{SKIP}` continues without it and informs the model."
        )
        # Skipping is the default: a call must not be sent twice because nobody looked.
        timeout = self._question_seconds
        return await self._run.ask(name, question, (AGAIN, SKIP), default=SKIP, timeout=timeout) == AGAIN
