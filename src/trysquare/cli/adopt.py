"""`trysquare adopt`: rewrite a FastMCP server to Trysquare."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trysquare.cli.command import Command, option
from trysquare.cli.terminal import count, say, styled
from trysquare.core.errors import ConfigurationError
from trysquare.files.edit import read_file, replace_file
from trysquare.integrations.adoption import Adopted, adopt

_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "site-packages"})


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    path: Path
    before: str
    adopted: Adopted


def run(arguments: argparse.Namespace) -> int:
    """Print the changes, or write them; exit code 1 where something is left for a person."""
    found = [each for path in arguments.files for each in _adopted(path)]
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


def _adopted(path: Path) -> Iterator[_File]:
    for file in _python_files(path):
        try:
            before = read_file(file)
            adopted = adopt(before)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot be read: {error}.", where=str(file)) from None
        except SyntaxError as error:
            raise ConfigurationError(f"{error.msg} in line {error.lineno}.", where=str(file)) from None
        if adopted is not None:
            yield _File(path=file, before=before, adopted=adopted)


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
