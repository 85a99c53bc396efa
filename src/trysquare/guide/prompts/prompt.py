"""The `guide` prompt and its commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from trysquare.core.content import Text
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.core.prompts import Prompt, PromptArgument, PromptMessage
from trysquare.core.text import closest_names
from trysquare.guide.documents import Document, DocumentId, read_document
from trysquare.guide.projects import Project, Projects
from trysquare.guide.retrieval import included_text
from trysquare.guide.templates import render

FOLDER = "_commands"
MARKS = (":", ";")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """A command as it was typed: its name, its positional arguments and its options."""

    name: str
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str | bool] = field(default_factory=dict[str, "str | bool"])


def is_command(words: Sequence[str]) -> bool:
    """Whether the words call a command: the first begins with `:` or `;`."""
    return bool(words) and words[0].lstrip().startswith(MARKS)


def parse_command(words: Sequence[str]) -> CommandLine:
    """Read words as a command. `--key=value`, `--key`, `--no-key` and `-abc` are options; `--` ends them."""
    pieces = [piece for word in words for piece in _split(word)]
    name = pieces[0].lstrip("".join(MARKS)).strip("/") if pieces else ""
    if not name:
        raise InvalidArguments("The command's name is missing.", instruction="Write it after the colon: `:review`.")
    options: dict[str, str | bool] = {}
    arguments: list[str] = []
    rest = iter(pieces[1:])
    for piece in rest:
        if piece == "--":
            arguments.extend(rest)
        elif piece.startswith("-") and len(piece) > 1:
            options.update(_options(piece))
        else:
            arguments.append(piece)
    return CommandLine(name=name, arguments=tuple(arguments), options=options)


def _split(word: str) -> list[str]:
    try:
        return shlex.split(word)
    except ValueError as error:
        raise InvalidArguments(f"The command cannot be read: {str(error).lower()}.") from None


def _options(piece: str) -> dict[str, str | bool]:
    if not piece.startswith("--"):
        return dict.fromkeys(piece[1:], True)
    key, equals, value = piece[2:].partition("=")
    is_negated = not equals and key.startswith("no-")
    name = (key.removeprefix("no-") if is_negated else key).replace("-", "_")
    return {name: value if equals else not is_negated}


def commands(project: Project) -> dict[str, Document]:
    """Every command of a project by name: its path below `_commands`, without the ending."""
    found: dict[str, Document] = {}
    for library in project.libraries:
        for path, text in library.texts_below(FOLDER):
            name = path.removeprefix(f"{FOLDER}/").removesuffix(".md")
            found.setdefault(name, read_document(DocumentId(category=FOLDER, name=name), text, path=path))
    return found


def find_command(project: Project, line: CommandLine) -> Document:
    """The command that was called, or the nearest names. Its front matter can ask for arguments."""
    known = commands(project)
    document = known.get(line.name)
    if document is None:
        close = closest_names(line.name, known, count=3) or sorted(known)[:5]
        named = ", ".join(f"`:{each}`" for each in close) or "none"
        raise NotFound(
            f"Unknown command `:{line.name[:80]}`. Known commands: {named}.", code=ErrorCode.PROMPT_NOT_FOUND
        )
    required = document.metadata.get("arguments_required", 0)
    if isinstance(required, int) and len(line.arguments) < required:
        raise InvalidArguments(
            f"`:{line.name}` takes at least {required} argument{'s' if required != 1 else ''}.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
        )
    return document


def command_values(line: CommandLine) -> dict[str, Any]:
    """What a command's template sees of how it was called."""
    return {"arguments": list(line.arguments), "options": _Options(line.options), "command": line.name}


class _Options(dict[str, "str | bool"]):
    """The options of a command; one that was not given is false, so that `{% if options.strict %}` simply works."""

    def __missing__(self, key: str) -> bool:
        return False


POSITIONS = tuple(f"arg{digit}" for digit in "123456789ABCDEF")
"""Prompts have named arguments only; these fifteen stand for `*args`.

They are listed, because clients hand each word that was typed to the next listed argument and drop the rest. People are
shown the words' titles, and the description speaks of `*args`.
"""


# Documented as in guide/prompts/README.md.
def guide_prompt(projects: Projects) -> Prompt:
    async def complete(name: str, typed: str, others: dict[str, str]) -> Sequence[str]:
        return _completions(projects, typed)

    async def render_prompt(given: dict[str, str], context: CallContext) -> Sequence[PromptMessage]:
        # The positional arguments, up to the first that is missing.
        words = [given[name] for name in takewhile(given.get, POSITIONS)]
        if is_command(words):
            return (PromptMessage(content=Text(text=_command_text(projects.get(), parse_command(words)))),)
        expression = ",".join(words) or _startup(projects)
        result = await context.call_tool("get_content", {"expression": expression})
        if not result.success:
            raise ToolError(result.error or "The content could not be fetched.", instruction=result.instruction)
        text = str(result.value or result.message or "")
        whole = f"{text}\n\n{result.instruction}" if result.instruction else text
        return (PromptMessage(content=Text(text=whole)),)

    return Prompt(
        name="guide",
        description="Deliver the team's content by expression, or run one of its commands.",
        arguments=tuple(
            PromptArgument(name=name, title=f"word {number}", description="Expression, command or option")
            for number, name in enumerate(POSITIONS, 1)
        ),
        render=render_prompt,
        complete=complete,
        examples=(
            ("@guide lang/python", "the Python guidelines"),
            ("@guide lang/python docs/api", "two expressions, in this order"),
            ("@guide :review --strict src/app.py", "the team's review command, with an option and an argument"),
        ),
    )


def _startup(projects: Projects) -> str:
    expression = projects.get().flag("startup-instruction").value
    if isinstance(expression, str) and expression:
        return expression
    names = ", ".join(each.name for each in projects.get().categories()) or "none yet"
    raise ToolError(
        f"Say what to deliver: `@guide lang/python`. The categories are {names}.",
        instruction="The flag `startup-instruction` can hold an expression for a call without arguments.",
    )


def _command_text(project: Project, line: CommandLine) -> str:
    document = find_command(project, line)
    flags, values = project.flag_values(), command_values(line)
    return render(document, flags=flags, include=lambda name: included_text(project, name), values=values)


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
