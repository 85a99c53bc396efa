"""A server that is started: its command, arguments, environment and folder, in any client's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from trysquare.gateway.configuration.environment_file import UnusableFile, read_environment
from trysquare.gateway.configuration.fields import Fields
from trysquare.gateway.configuration.launch import launch_digest, shown_command
from trysquare.gateway.server import Place, ServerConfig

COMMAND_KEYS = ("command", "server_script_path")
_FOLDER_KEYS = ("cwd", "workingDirectory")
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")

_CommandLine: TypeAlias = tuple[str, tuple[str, ...]]


def read_process(name: str, tool_name: str, fields: Fields, base: Path) -> ServerConfig:
    """The server, with paths taken from a folder."""
    command, args = _command_line(fields, base)
    env = {**_file_environment(fields, base), **_environment(fields)}
    _check(fields, command, args, env)
    cwd = fields.text(*_FOLDER_KEYS)
    return ServerConfig(
        name=name,
        tool_name=tool_name,
        transport="stdio",
        place=Place(file=str(fields.file.path), line=fields.file.line(fields.node)),
        shown=_shown(fields.as_written(), base),
        launch_digest=_digest(fields.as_written(), base),
        command=command,
        args=args,
        env=env,
        cwd=None if cwd is None else str(base / Path(cwd).expanduser()),
    )


def _command_line(fields: Fields, base: Path) -> _CommandLine:
    """A text, a list with the arguments in it, an object with a path, or the path of a Python script."""
    member = fields.member("command")
    if member is None:
        return "python", (str(base / (fields.text("server_script_path") or "")), *(fields.texts("args") or ()))
    if member.node.items is not None:
        command, *first = fields.texts("command") or ("",)
        return command, (*first, *(fields.texts("args") or ()))
    inner = _command_object(fields)
    if inner is not None:
        return inner.text("path", "command") or "", inner.texts("args") or ()
    return fields.text("command") or "", fields.texts("args") or ()


def _command_object(fields: Fields) -> Fields | None:
    member = fields.member("command")
    return None if member is None or member.node.members is None else fields.inner("command")


def _environment(fields: Fields) -> Mapping[str, str]:
    inner = _command_object(fields)
    return (inner.table("env") if inner is not None else None) or fields.table("env", "environment") or {}


def _file_environment(fields: Fields, base: Path) -> Mapping[str, str]:
    member, path = fields.member("envFile"), fields.text("envFile")
    if path is None:
        return {}
    try:
        return read_environment(base / Path(path).expanduser())
    except UnusableFile as error:
        raise fields.wrong(member, f"cannot be used: {error}") from None


def _check(fields: Fields, command: str, args: tuple[str, ...], env: Mapping[str, str]) -> None:
    if not command.strip():
        raise fields.wrong(fields.member("command"), "is empty.")
    if any(_NO_TEXT.search(text) for text in (command, *args, *env, *env.values())):
        raise fields.wrong(None, "The command line or its environment has characters that no process can take.")
    if any(not name or "=" in name for name in env):
        raise fields.wrong(fields.member("env", "environment"), "has a name that is empty or holds `=`.")


def _shown(written: Fields, base: Path) -> str:
    command, args = _command_line(written, base)
    return shown_command(command, args, _environment(written), written.text(*_FOLDER_KEYS))


def _digest(written: Fields, base: Path) -> str:
    # Values of the environment count too: many a program runs what a variable of it says.
    command_line, folder = _command_line(written, base), written.text(*_FOLDER_KEYS)
    return launch_digest("process", command_line, dict(_environment(written)), folder, written.text("envFile"))
