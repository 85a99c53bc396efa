"""Scanners that are programs, as rules name them: commands, installed functions, and code of the bot's folder."""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from shutil import which

from trysquare.bots.definition import files as schema
from trysquare.bots.definition.folder import BotFolder, nearest
from trysquare.bots.scanners.base import CommandScanner, PythonScanner, Target
from trysquare.bots.scanners.programs import BOT, callable_problem, names_of_module

TREE = "scanners"


def load_program(
    folder: BotFolder, path: str, entry: schema.CommandEntry | schema.PythonEntry, target: Target, message: str
) -> CommandScanner | PythonScanner:
    """The scanner of a rule whose program is there."""
    files = tuple(entry.files)
    words = entry.argv if isinstance(entry, schema.CommandEntry) else [entry.callable]
    own = any(each.startswith((BOT, f"{TREE}/")) for each in words)
    bot, digest = (folder.root.resolve(), digest_of_tree(folder, TREE)) if own else (None, "")
    if isinstance(entry, schema.CommandEntry):
        _check_command(folder, path, entry.argv)
        return CommandScanner(
            argv=tuple(entry.argv), target=target, message=message, files=files, bot=bot, digest=digest
        )
    _check_callable(folder, path, entry.callable)
    return PythonScanner(
        callable=entry.callable,
        target=target,
        message=message,
        options=entry.options,
        files=files,
        bot=bot,
        digest=digest,
    )


def digest_of_tree(folder: BotFolder, tree: str) -> str:
    """Digest of all files below a folder of the bot."""
    inside = [(path, data) for path, data in sorted(folder.files.items()) if path.startswith(f"{tree}/")]
    return hashlib.sha256(repr(inside).encode()).hexdigest() if inside else ""


def _check_command(folder: BotFolder, path: str, argv: list[str]) -> None:
    for each in argv:
        if each.startswith(BOT):
            _use(folder, path, each.removeprefix(BOT), key=each)
    program = argv[0]
    if program.startswith(BOT):
        if not os.access(folder.root / program.removeprefix(BOT), os.X_OK):
            hint = "Run `chmod +x` on it, or begin `argv` with its interpreter."
            message = f"`{program}` is not executable."
            raise folder.error(path, message, hint=hint, key=program, code="missing_file")
    # A path such as `scripts/check.sh` is relative to the project, which is not known here.
    elif ("/" not in program or program.startswith("/")) and which(program) is None:
        message, hint = f"Program `{program}` of this rule not found.", "Install it, or remove the scanner of the rule."
        raise folder.error(path, message, hint=hint, key=program, code="missing_file")


def _check_callable(folder: BotFolder, path: str, dotted: str) -> None:
    place, _, name = dotted.partition(":")
    if not place.endswith(".py"):
        if (problem := callable_problem(dotted)) is not None:
            message, hint = (
                f"The scanner `{dotted}` is not available: {problem}.",
                "Correct the name, or install its package.",
            )
            raise folder.error(path, message, hint=hint, key=dotted, code="missing_file")
        return
    _use(folder, path, place, key=dotted)
    known = names_of_module(parsed(folder, place))
    if name not in known:
        message = f"`{place}` does not define `{name}`."
        raise folder.error(path, message, hint=nearest(name, sorted(known)), key=dotted, code="unknown_name")


def parsed(folder: BotFolder, path: str) -> ast.Module:
    """The code of a file of the bot, which is not run."""
    try:
        return ast.parse(folder.text(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None) or 1
        what = error.msg if isinstance(error, SyntaxError) else str(error)
        raise folder.error_at(path, line, f"This is not Python: {what}.", hint="Correct this line.") from None


def _use(folder: BotFolder, path: str, name: str, *, key: str) -> None:
    """Note that a file of the bot is used, with the modules beside it that it imports."""
    if name not in folder.files:
        known = [each for each in folder.files if each.startswith(f"{TREE}/")]
        hint = nearest(name, known) if known else f"Write it into {TREE}/ of the bot."
        raise folder.error(path, f"`{name}` not found in the bot's directory.", hint=hint, key=key, code="missing_file")
    use_with_imports(folder, name)


def use_with_imports(folder: BotFolder, path: str) -> None:
    """Note that a file is used, and every module of its folder that it imports."""
    waiting = [path]
    while waiting:
        each = waiting.pop()
        folder.used.add(each)
        if each.endswith(".py"):
            beside = (str(PurePosixPath(each).with_name(f"{name}.py")) for name in _imported(parsed(folder, each)))
            waiting += [other for other in beside if other in folder.files and other not in folder.used]


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]
