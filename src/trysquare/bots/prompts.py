"""Prompts of a bot, which clients show as slash commands, and what its server says of where the work stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from trysquare.bots.definition.folder import TOOL, close_tool_name, tool_name
from trysquare.bots.gates import Gates
from trysquare.bots.projects import LiveBot
from trysquare.bots.workflow.machine import RunState, open_actions, open_gates
from trysquare.bots.workflow.state_file import is_run_name
from trysquare.core.context import CallContext
from trysquare.core.errors import ConfigurationError, InvalidArguments, ToolError
from trysquare.core.json import JsonObject
from trysquare.core.prompts import Complete, Prompt, PromptArgument, PromptMessage
from trysquare.core.text import closest_names
from trysquare.core.threads import run_in_thread

_RUN = PromptArgument(name="run", description="The run (default: that of the project)")
_REASON = PromptArgument(name="reason", description="Why", required=True)
_MAX_RUNS = 5

Text = Callable[[dict[str, str], RunState], str]


def bot_prompts(bot: LiveBot) -> list[Prompt]:
    """One prompt for the bot, one for each behavior, and those that close, reject, skip and report."""
    name = bot.name
    close = close_tool_name(name)

    def closing(word: str) -> Text:
        def text(given: dict[str, str], state: RunState) -> str:
            more = {} if word == "close" else {word: True, "reason": given["reason"]}
            call = _call(close, {**more, "expected_action": str(state.current)}, given)
            said = {"close": "is done", "reject": "is sent back to work", "skip": "is skipped"}[word]
            return f"The user says that {state.current} {said}. {call} Then tell the user what is next."

        return text

    def go_on(given: dict[str, str], state: RunState) -> str:
        return f"{_call(tool_name(name, TOOL), {}, given)} Follow the instructions and show the user the result."

    prompts = [
        _prompt(bot, "", f"Continue {name} at its current action", (_RUN,), go_on),
        _prompt(bot, "status", f"Where the work of {name} stands", (_RUN,), lambda given, _: _report(bot, given)),
        _prompt(bot, "close", "Close the current action", (_RUN,), closing("close")),
        _prompt(bot, "reject", "Send the current action back to work", (_REASON, _RUN), closing("reject")),
        _prompt(bot, "skip", "Close the current action without its work", (_REASON, _RUN), closing("skip")),
    ]
    taken = {prompt.name for prompt in prompts}
    return [*prompts, *(_behavior_prompt(bot, each.name, taken) for each in bot.definition.behaviors)]


def _behavior_prompt(bot: LiveBot, behavior: str, taken: set[str]) -> Prompt:
    actions = [each.name for each in bot.definition.actions_of(behavior)]

    def text(given: dict[str, str], state: RunState) -> str:
        action = given.get("action")
        if action and action not in actions:
            near = closest_names(action, actions)
            meant = f" Did you mean `{near[0]}`?" if near else ""
            raise InvalidArguments(f"`{behavior}` has no action `{action[:80]}`.{meant}")
        call = _call(tool_name(bot.name, behavior, action or TOOL), {}, given)
        return f"{call} Follow the instructions and show the user the result."

    suffix = behavior if tool_name(bot.name, behavior) not in taken else f"{behavior}_work"
    argument = PromptArgument(name="action", description="An action (default: the current one)")
    return _prompt(bot, suffix, f"Work on {behavior}", (argument, _RUN), text, actions)


def _prompt(
    bot: LiveBot,
    suffix: str,
    about: str,
    arguments: tuple[PromptArgument, ...],
    text: Text,
    actions: Sequence[str] = (),
) -> Prompt:
    async def render(given: dict[str, str], context: CallContext) -> Sequence[PromptMessage]:
        state = await run_in_thread(lambda: _state(bot, given))
        return [PromptMessage(content=await run_in_thread(lambda: text(given, state)))]

    name = tool_name(bot.name, suffix) if suffix else bot.name
    return Prompt(
        name=name, description=f"{about}.", arguments=arguments, render=render, complete=_completions(bot, actions)
    )


def _completions(bot: LiveBot, actions: Sequence[str]) -> Complete:
    async def complete(argument: str, typed: str, given: dict[str, str]) -> Sequence[str]:
        known = await run_in_thread(lambda: _runs(bot)) if argument == "run" else actions
        return [each for each in known if each.startswith(typed)]

    return complete


def _runs(bot: LiveBot) -> list[str]:
    home = _home(bot)
    return [home, *(each for each in bot.project().state.recent(limit=100) if each != home)]


def _home(bot: LiveBot) -> str:
    return bot.home(bot.project().root).run


def _state(bot: LiveBot, given: dict[str, str]) -> RunState:
    run = given.get("run") or _home(bot)
    if not is_run_name(run):
        raise InvalidArguments(f"Invalid run name `{run[:80]}`.")
    return bot.project().state.peek(run)


def _call(tool: str, parameters: JsonObject, given: dict[str, str]) -> str:
    run = {"run": given["run"]} if given.get("run") else {}
    inner = {**parameters, **run}
    return f"Call `{tool}` with {json.dumps({'parameters': inner} if inner else {}, ensure_ascii=False)}."


def _report(bot: LiveBot, given: dict[str, str]) -> str:
    run = given.get("run") or _home(bot)
    return f"Tell the user where the work stands: {standing(bot, run)}"


def standing(bot: LiveBot, run: str) -> str:
    """Where a run stands, in one or two sentences."""
    state = bot.project().state.peek(run)
    plan, gates = bot.plan.of(state), Gates.of(bot.definition, state)
    left = sum(1 for _ in open_actions(plan, state, gates.is_defined))
    total = plan.applying()
    gate = next(open_gates(plan, state, gates.is_defined), None)
    if state.finished:
        text = f"Run {run} of {bot.name} has ended, {left} of {total} actions are open."
    elif state.version == 0:
        text = f"Run {run} of {bot.name} has not begun; its first action is {state.current}."
        text += _choice(bot)
    else:
        text = f"Run {run} of {bot.name} is at {state.current}; {total - left} of {total} actions are done."
    return text if gate is None else f"{text} Only a human can close {gate}."


def _choice(bot: LiveBot) -> str:
    """The presets that a run can be started with."""
    presets = bot.plan.presets
    return (
        f" Ask the user for a `preset` to start with: {', '.join(presets)}, or none for all actions." if presets else ""
    )


def introduction(bot: LiveBot) -> str:
    """What a server says of the bot at the start of a conversation."""
    tools = f"`{tool_name(bot.name, TOOL)}` continues it, `{close_tool_name(bot.name)}` closes, rejects or skips."
    try:
        home = _home(bot)
        others = [each for each in bot.project().state.recent(limit=_MAX_RUNS) if each != home]
        stands = " ".join([standing(bot, home), *(["Other runs: " + ", ".join(others) + "."] if others else [])])
    except (ToolError, ConfigurationError) as error:
        stands = f"The state of {bot.name} cannot be read: {error}"
    return f"{stands} {tools}"
