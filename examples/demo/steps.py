"""The steps of the demo, in order. A new toolset adds its steps here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, ParamSpec

from examples.demo import bot, conversation, debugger, gateway, guide, local, service, workbench
from examples.demo.conversation import Conversation
from examples.demo.gateway import GatewayTalk
from examples.demo.guide import GuideTalk
from examples.demo.stage import HttpServer, Stage

P = ParamSpec("P")


@dataclass(frozen=True, kw_only=True, slots=True)
class Step(Generic[P]):
    """One thing to show: its name, and the function that plays it and whose docstring says what to look for."""

    title: str
    play: Callable[P, Awaitable[None]]

    @property
    def shows(self) -> str:
        """What to look for."""
        text = (self.play.__doc__ or "").strip()
        return text[:1].lower() + text[1:]


IN_EACH_ERA: tuple[Step[[Conversation]], ...] = (
    Step(title="Listing", play=conversation.list_tools),
    Step(title="A good call", play=conversation.call_well),
    Step(title="A corrected call", play=conversation.call_corrected),
    Step(title="Progress", play=conversation.show_progress),
    Step(title="Consent", play=conversation.ask_for_consent),
    Step(title="A large answer", play=conversation.page_through),
    Step(title="A prompt", play=conversation.get_prompt),
    Step(title="Resources", play=conversation.read_resources),
    Step(title="A crash", play=conversation.survive_crash),
)
OF_THE_GUIDE: tuple[Step[[GuideTalk]], ...] = (
    Step(title="An expression", play=guide.explain_expression),
    Step(title="A flag", play=guide.switch_flag),
    Step(title="A drifted export", play=guide.let_export_drift),
)
BEHIND_THE_GATEWAY: tuple[Step[[GatewayTalk]], ...] = (
    Step(title="One tool for each server", play=gateway.list_servers),
    Step(title="Calls that are repaired", play=gateway.repair_calls),
    Step(title="A server is killed", play=gateway.kill_a_server),
    Step(title="A large result", play=gateway.read_by_handle),
)
OF_THE_DEBUGGER: tuple[Step[[Conversation]], ...] = (
    Step(title="A failing test", play=debugger.explain_failure),
    Step(title="Step by step", play=debugger.step_through),
)
AT_THE_WORKBENCH: tuple[Step[[Conversation]], ...] = (
    Step(title="An edit, taken back", play=workbench.edit_and_undo),
    Step(title="A command, held", play=workbench.hold_a_command),
)
WITH_A_LOCAL_MODEL: tuple[Step[[Stage]], ...] = (
    Step(title="A grammar at work", play=local.hold_to_grammar),
    Step(title="Calls of the smallest model", play=local.work_with_smallest),
)
OVER_HTTP: tuple[Step[[Stage, HttpServer]], ...] = (
    Step(title="Profiles", play=service.choose_profiles),
    Step(title="Search", play=service.search_tools),
    Step(title="Approval by code", play=service.approve_by_code),
    Step(title="Killed and restarted", play=service.kill_and_restart),
)
WITH_A_BOT: tuple[Step[[Stage, HttpServer]], ...] = (
    Step(title="A bot begins", play=bot.begin),
    Step(title="Answers and an approval", play=bot.answer_and_approve),
    Step(title="A rejected close", play=bot.reject_a_close),
    Step(title="Killed and resumed", play=bot.kill_and_resume),
    Step(title="A second behavior", play=bot.finish),
)
