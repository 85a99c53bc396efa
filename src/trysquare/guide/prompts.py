"""Prompts: `@guide` with an expression or a command. See docs/templates/prompts/README.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trysquare.core.content import Text
from trysquare.core.context import CallContext
from trysquare.core.errors import ToolError
from trysquare.core.prompt import Prompt, PromptArgument, PromptMessage
from trysquare.core.result import Result
from trysquare.guide.commands import command_values, commands, find_command, is_command, parse_command
from trysquare.guide.fetch import included_text
from trysquare.guide.projects import Projects
from trysquare.guide.render import render

POSITIONS = tuple(f"arg{digit}" for digit in "123456789ABCDEF")
"""Prompts know named arguments only; these fifteen stand for `*args` and are not shown to people."""


def guide_prompt(projects: Projects) -> Prompt:
    """The prompt that delivers content, or runs a command."""

    async def complete(name: str, typed: str, others: dict[str, str]) -> Sequence[str]:
        return _completions(projects, typed)

    async def render_prompt(given: dict[str, str], context: CallContext) -> Sequence[PromptMessage]:
        words = _words(given)
        if is_command(words):
            return (_message(_command_text(projects, words)),)
        expression = ",".join(words) or _startup(projects)
        result = await context.call_tool("get_content", {"expression": expression})
        return (_message(_told(result)),)

    return Prompt(
        name="guide",
        description="Deliver the team's content by expression, or run one of its commands.",
        arguments=tuple(PromptArgument(name=name, description="Expression, command or option") for name in POSITIONS),
        render=render_prompt,
        complete=complete,
        examples=(
            ("@guide lang/python", "the Python guidelines"),
            ("@guide lang/python docs/api", "two expressions, in this order"),
            ("@guide :review --strict src/app.py", "the team's review command, with an option and an argument"),
        ),
    )


def _words(given: dict[str, str]) -> list[str]:
    """The positional arguments, up to the first that is missing."""
    words: list[str] = []
    for name in POSITIONS:
        if not given.get(name):
            break
        words.append(given[name])
    return words


def _startup(projects: Projects) -> str:
    expression = projects.get().flag("startup-instruction").value
    if isinstance(expression, str) and expression:
        return expression
    names = ", ".join(each.name for each in projects.get().categories()) or "none yet"
    raise ToolError(
        f"Say what to deliver: `@guide lang/python`. The categories are {names}.",
        instruction="The flag `startup-instruction` can hold an expression for a call without arguments.",
    )


def _command_text(projects: Projects, words: Sequence[str]) -> str:
    project = projects.get()
    line = parse_command(words)
    document = find_command(project, line)
    return render(
        document,
        flags=project.flag_values(),
        include=lambda name: included_text(project, name),
        values=command_values(line),
    )


def _told(result: Result[Any]) -> str:
    if not result.success:
        raise ToolError(result.error or "The content could not be fetched.", instruction=result.instruction)
    text = str(result.value or result.message or "")
    return f"{text}\n\n{result.instruction}" if result.instruction else text


def _message(text: str) -> PromptMessage:
    return PromptMessage(content=Text(text=text))


def _completions(projects: Projects, typed: str) -> Sequence[str]:
    project = projects.get()
    if typed.startswith(":"):
        return [f":{name}" for name in sorted(commands(project)) if f":{name}".startswith(typed)][:100]
    head, comma, last = typed.rpartition(",")
    name, slash, _ = last.partition("/")
    if slash and project.category(name.strip()) is not None:
        found = [str(each.id) for each in project.documents(name.strip())]
    else:
        found = [each.name for each in (*project.categories(), *project.collections())]
    return [f"{head}{comma}{each}" for each in found if each.startswith(last.strip())][:100]
