"""`trysquare adopt`: rewrite a FastMCP server to Trysquare."""

from __future__ import annotations

import argparse
import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trysquare.cli.command import Command, option
from trysquare.cli.terminal import count, say, styled
from trysquare.core.errors import ConfigurationError
from trysquare.files.edit import read_file, replace_file
from trysquare.integrations.adoption import Adopted, adopt, servers_in

_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages"})


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    path: Path
    before: str
    adopted: Adopted


def run(arguments: argparse.Namespace) -> int:
    """Print the changes, or write them; exit code 1 where something is left for a person."""
    found = list(_adopted(arguments.files))
    if not found:
        print("Nothing of FastMCP was found.")
        return 0
    for each in found:
        if arguments.write:
            replace_file(each.path, each.before, each.adopted.text, keep_backup=False)
        else:
            _print_diff(each)
    left = sum(len(each.adopted.left) for each in found)
    for each in found:
        for problem in each.adopted.left:
            say(f"{each.path}:{problem.line}: {problem.problem}")
    changes = count(sum(each.adopted.changes for each in found), "change")
    done = f"Wrote {changes}" if arguments.write else f"{changes} to make; --write makes them"
    say(f"{done} in {count(len(found), 'file')}; {left or 'nothing'} left to change by hand.")
    return 1 if left else 0


def _adopted(paths: Sequence[Path]) -> Iterator[_File]:
    """The files that change; a server of one file is known in those that import it."""
    texts = {file: text for path in paths for file in _python_files(path) if (text := _read(file, path)) is not None}
    servers: dict[str, frozenset[str]] = {}
    count_before = -1
    while count_before != (count_before := sum(map(len, servers.values()))):
        for file, text in texts.items():
            module = file.parent.name if file.stem == "__init__" else file.stem
            if found := servers_in(text, servers):
                servers[module] = servers.get(module, frozenset()) | found
    for file, text in texts.items():
        adopted = adopt(text, servers)
        if adopted is not None:
            yield _File(path=file, before=text, adopted=adopted)


def _read(file: Path, named: Path) -> str | None:
    """The text of a file; in a folder, one that is not Python is left out with a word."""
    try:
        text = read_file(file)
        ast.parse(text)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot be read: {error}.", where=str(file)) from None
    except SyntaxError as error:
        problem = f"{error.msg} in line {error.lineno}."
        if file == named:
            raise ConfigurationError(problem, where=str(file)) from None
        say(f"{file}: left alone: {problem}")
        return None
    return text


def _python_files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise ConfigurationError("not found.", where=str(path), hint="Name a Python file or a folder.")
    if not path.is_dir():
        yield path
        return
    for file in sorted(path.rglob("*.py")):
        if not _SKIPPED & set(file.relative_to(path).parts):
            yield file


def _print_diff(file: _File) -> None:
    lines = difflib.unified_diff(
        file.before.splitlines(), file.adopted.text.splitlines(), str(file.path), str(file.path), lineterm="", n=1
    )
    colours = {"+": "green", "-": "red"}
    for line in lines:
        print(styled(line, colours[line[0]]) if line[:1] in colours and line[:3] not in ("+++", "---") else line)


COMMAND = Command(
    run,
    (
        option("files", metavar="FILE", nargs="+", type=Path, help="Python files or folders with a FastMCP server"),
        option("--write", action="store_true", help="change the files (default: print what would change)"),
    ),
    examples=("trysquare adopt server.py", "trysquare adopt src tests --write"),
)
