"""The steps of the demo in chapters: the eight of the tour, and all others. A new toolset adds its steps here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from examples.demo import bot, conversation, debugger, gateway, guide, local, service, tour, workbench
from examples.demo.bot import bot_server
from examples.demo.conversation import Conversation, converse
from examples.demo.gateway import GatewayTalk
from examples.demo.guide import GuideTalk
from examples.demo.stage import HANDSHAKE, MODERN, HttpServer, Stage

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Step(Generic[T]):
    """One thing to show: its name, and the function that plays it and whose docstring says what to look for."""

    name: str
    title: str
    play: Callable[[T], Awaitable[None]]

    @property
    def shows(self) -> str:
        """What to look for."""
        return (self.play.__doc__ or "").strip()


@dataclass(frozen=True, kw_only=True)
class Chapter(Generic[T]):
    """Steps that share a server, and how it is started."""

    name: str
    title: str
    opened: Callable[[Stage], AbstractAsyncContextManager[T]]
    steps: tuple[Step[T], ...]
    missing: Callable[[], str | None] = lambda: None
    """What to install, or None if everything is there."""
    in_order: bool = False
    """Whether each step continues where the one before it stopped."""


@asynccontextmanager
async def _on_stage(stage: Stage) -> AsyncGenerator[Stage]:
    yield stage


TOUR: tuple[Chapter[Any], ...] = (
    Chapter[Conversation](
        name="server",
        title="A server in one file",
        opened=tour.own_server,
        steps=(
            Step(name="tool", title="A plain function is a tool", play=tour.call_a_function),
            Step(name="mistake", title="A mistake comes back corrected", play=tour.correct_a_mistake),
            Step(name="consent", title="A human decides", play=conversation.ask_for_consent),
        ),
    ),
    Chapter[GatewayTalk](
        name="servers",
        title="Other servers behind the gateway",
        opened=tour.gateway_server,
        steps=(
            Step(name="tokens", title="Four servers, few tokens", play=tour.count_tokens_of_servers),
            Step(name="killed", title="A server is killed during a call", play=tour.kill_during_a_call),
        ),
    ),
    Chapter[Conversation](
        name="failure",
        title="A failing test",
        opened=debugger.debugger_server,
        steps=(Step(name="explain", title="A failing test, explained", play=debugger.explain_failure),),
        missing=debugger.missing,
    ),
    Chapter[Conversation](
        name="checklist",
        title="A workflow",
        opened=tour.release_server,
        steps=(Step(name="gate", title="A gate that only a human opens", play=tour.pass_a_gate),),
    ),
    Chapter[Stage](
        name="model",
        title="A local model",
        opened=_on_stage,
        steps=(Step(name="local", title="A call that cannot be malformed", play=local.write_valid_calls),),
    ),
)
"""What `make demo` plays: it needs nothing but the runtime dependencies."""

_IN_EACH_ERA: tuple[Step[Conversation], ...] = (
    Step(name="listing", title="Listing", play=conversation.list_tools),
    Step(name="call", title="A good call", play=conversation.call_well),
    Step(name="corrected", title="A corrected call", play=conversation.call_corrected),
    Step(name="progress", title="Progress", play=conversation.show_progress),
    Step(name="question", title="Consent", play=conversation.ask_for_consent),
    Step(name="pages", title="A large answer", play=conversation.page_through),
    Step(name="prompt", title="A prompt", play=conversation.get_prompt),
    Step(name="resources", title="Resources", play=conversation.read_resources),
    Step(name="crash", title="A crash", play=conversation.survive_crash),
)
EVERYTHING: tuple[Chapter[Any], ...] = (
    *(
        Chapter[Conversation](
            name=name,
            title=f"A conversation over stdio, protocol {era}",
            opened=partial(converse, era=era),
            steps=_IN_EACH_ERA,
        )
        for name, era in (("stdio", MODERN), ("stdio-2025", HANDSHAKE))
    ),
    Chapter[GuideTalk](
        name="guide",
        title="The guide: a team's content for its agents",
        opened=guide.guide_server,
        steps=(
            Step(name="expression", title="An expression", play=guide.explain_expression),
            Step(name="flag", title="A flag", play=guide.switch_flag),
            Step(name="drift", title="A drifted export", play=guide.let_export_drift),
        ),
        missing=guide.missing,
    ),
    Chapter[GatewayTalk](
        name="gateway",
        title="The gateway: real servers from npm behind one",
        opened=gateway.gateway_server,
        steps=(
            Step(name="npm", title="One tool for each server", play=gateway.list_servers),
            Step(name="repair", title="Calls that are repaired", play=gateway.repair_calls),
            Step(name="restart", title="A server is killed", play=gateway.kill_a_server),
            Step(name="handle", title="A large result", play=gateway.read_by_handle),
        ),
        missing=gateway.missing,
    ),
    Chapter[Conversation](
        name="debugger",
        title="The debugger: why a test fails, and step by step",
        opened=debugger.debugger_server,
        steps=(
            Step(name="failing-test", title="A failing test", play=debugger.explain_failure),
            Step(name="stepping", title="Step by step", play=debugger.step_through),
        ),
        missing=debugger.missing,
    ),
    Chapter[Conversation](
        name="workbench",
        title="The workbench: code in one folder, and commands in a sandbox",
        opened=workbench.workbench_server,
        steps=(
            Step(name="undo", title="An edit, reverted", play=workbench.edit_and_undo),
            Step(name="sandbox", title="A command in a sandbox", play=workbench.confine_a_command),
        ),
        missing=workbench.missing,
    ),
    Chapter[Stage](
        name="local-model",
        title="A local model: calls that cannot be malformed",
        opened=_on_stage,
        steps=(
            Step(name="grammar", title="A grammar at work", play=local.apply_grammar),
            Step(name="smallest", title="Calls of the smallest model", play=local.work_with_smallest),
        ),
        missing=local.missing,
    ),
    Chapter[HttpServer](
        name="http",
        title="A server over streamable HTTP",
        opened=Stage.http_server,
        steps=(
            Step(name="profiles", title="Profiles", play=service.choose_profiles),
            Step(name="search", title="Search", play=service.search_tools),
            Step(name="code", title="Approval by code", play=service.approve_by_code),
            Step(name="http-restart", title="Killed and restarted", play=service.kill_and_restart),
        ),
    ),
    Chapter[HttpServer](
        name="bot",
        title="A workflow bot: two behaviors of story_bot",
        opened=bot_server,
        steps=(
            Step(name="begin", title="A bot begins", play=bot.begin),
            Step(name="answers", title="Answers and an approval", play=bot.answer_and_approve),
            Step(name="reject", title="A rejected close", play=bot.reject_a_close),
            Step(name="resume", title="Killed and resumed", play=bot.kill_and_resume),
            Step(name="second", title="A second behavior", play=bot.finish),
        ),
        in_order=True,
    ),
)
"""What `make demo ARGS=--all` plays."""


def names() -> list[str]:
    """The names that `--only` takes: of chapters and of steps."""
    chapters = (*TOUR, *EVERYTHING)
    return list(dict.fromkeys(name for each in chapters for name in (each.name, *(one.name for one in each.steps))))


def chosen(wanted: Sequence[str]) -> list[Chapter[Any]]:
    """The chapters and steps of these names; a step that continues others comes with all of its chapter."""
    return list(_chosen((*TOUR, *EVERYTHING), set(wanted)))


def _chosen(chapters: Iterable[Chapter[Any]], wanted: set[str]) -> Iterable[Chapter[Any]]:
    for chapter in chapters:
        steps = tuple(step for step in chapter.steps if step.name in wanted)
        if chapter.name in wanted or (steps and chapter.in_order):
            yield chapter
        elif steps:
            yield replace(chapter, steps=steps)
