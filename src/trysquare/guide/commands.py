"""Commands: texts in `_commands/` that a person calls by name, with options: `:review --strict src/app.py`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound
from trysquare.core.nearest import nearest
from trysquare.guide.document import Document, DocumentId
from trysquare.guide.project import Project
from trysquare.guide.reading import read_document

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
    if equals:
        return {_key(key): value}
    if key.startswith("no-"):
        return {_key(key.removeprefix("no-")): False}
    return {_key(key): True}


def _key(text: str) -> str:
    return text.replace("-", "_")


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
        close = nearest(line.name, known, count=3) or sorted(known)[:5]
        named = ", ".join(f"`:{each}`" for each in close) or "none"
        raise NotFound(f"There is no command `:{line.name[:80]}`. There are {named}.", code=ErrorCode.PROMPT_NOT_FOUND)
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
