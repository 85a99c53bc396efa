"""What `trysquare doctor` looks at beside the server itself: packages, programs, state folders, clients."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, cast

from trysquare.cli.clients import CLIENTS, Client, this_place
from trysquare.cli.install import EntryPlace, installed_entry
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.types import JsonObject
from trysquare.store.database import open_database
from trysquare.store.location import FILE, project_state, user_state

_OLDEST_PYTHON = (3, 11)
_NEEDED = ("trysquare", "mcp", "pydantic")
_EXTRAS = {
    "otel": "opentelemetry-sdk",
    "fastmcp": "fastmcp",
    "guide": "pyyaml",
    "gateway": "msgspec",
    "jobs": "dbos",
    "code": "tree-sitter-python",
}
_PROGRAMS = {
    "node": "Node 22, for the project's own tests; `make node` installs one",
    "uv": "optional, a faster way to install",
    "git": "for working on a project",
    "bwrap": "the workbench's sandbox for commands; the Debian package bubblewrap",
    "rg": "optional, faster searches of the workbench; the Debian package ripgrep",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that was looked at."""

    group: str
    name: str
    state: Literal["ok", "absent", "broken"]
    """`absent` is no fault: it could be there, and nothing needs it."""
    detail: str
    fix: str | None = None
    """The command that mends or adds it."""


def check_installation() -> list[Finding]:
    """Python, our packages and extras, and the programs beside them."""
    return [_python(), *map(_package, _NEEDED), *map(_extra, _EXTRAS), _sqlite(), *map(_program, _PROGRAMS)]


def _python() -> Finding:
    fine = sys.version_info >= _OLDEST_PYTHON
    return Finding(
        group="installed",
        name="python",
        state="ok" if fine else "broken",
        detail=f"{platform.python_version()} at {sys.executable}",
        fix=None if fine else "install Python 3.11 or newer",
    )


def _package(name: str) -> Finding:
    found = _version(name)
    return Finding(
        group="installed",
        name=name,
        state="ok" if found else "broken",
        detail=found or "not installed",
        fix=None if found else f"{sys.executable} -m pip install trysquare",
    )


def _extra(extra: str) -> Finding:
    found = _version(_EXTRAS[extra])
    return Finding(
        group="installed",
        name=f"extra {extra}",
        state="ok" if found else "absent",
        detail=f"{_EXTRAS[extra]} {found}" if found else f"{_EXTRAS[extra]} is not installed",
        fix=None if found else f"{sys.executable} -m pip install 'trysquare[{extra}]'",
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _sqlite() -> Finding:
    return Finding(group="installed", name="sqlite", state="ok", detail=sqlite3.sqlite_version)


def _program(name: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(group="installed", name=name, state="absent", detail=f"not found ({_PROGRAMS[name]})")
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(group="installed", name=name, state="absent", detail=f"{path} does not run: {error}")
    return Finding(group="installed", name=name, state="ok", detail=f"{told.strip().splitlines()[-1:] or ['?']}"[2:-2])


def check_state(project: Path) -> list[Finding]:
    """Whether state can be kept: in the project, and for the user."""
    return [_state("project", project_state(project)), _state("user", user_state(os.environ))]


def _state(whose: str, file: Path) -> Finding:
    """Open the state file that is there; where none is, try one beside its place and take it away again."""
    try:
        problems = _problems_of(file) if file.exists() else _problems_of_new(file)
    except (ConfigurationError, ToolError, OSError) as error:
        return Finding(group="state", name=f"{whose} state", state="broken", detail=str(error), fix="see above")
    if problems:
        detail = f"{file} is damaged: {problems[0]}"
        return Finding(group="state", name=f"{whose} state", state="broken", detail=detail, fix=f"mv {file} {file}.bad")
    how = "opens and is sound" if file.exists() else "can be made when it is needed"
    return Finding(group="state", name=f"{whose} state", state="ok", detail=f"{file} {how} (SQLite, WAL)")


def _problems_of_new(file: Path) -> list[str]:
    folder = next(folder for folder in (file.parent, *file.parent.parents) if folder.exists())
    with tempfile.TemporaryDirectory(prefix=".trysquare-doctor-", dir=folder) as trial:
        return _problems_of(Path(trial) / "state" / FILE)


def _problems_of(file: Path) -> list[str]:
    database = open_database(file)
    try:
        with database.read() as connection:
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        return database.problems() if mode == "wal" else [f"the journal mode is {mode}, not wal"]
    finally:
        database.close()


def check_clients(project: Path) -> list[Finding]:
    """Every client that is on this computer, and whether it knows us."""
    return [_client(client, project) for client in CLIENTS.values()]


def _client(client: Client, project: Path) -> Finding:
    places = list(_places(client, project))
    if not _is_here(client, places):
        return Finding(group="clients", name=client.title, state="absent", detail="not found on this computer")
    try:
        known = [(place, name, entry) for place in places for name, entry in _our_entries(place)]
    except ConfigurationError as error:
        return Finding(group="clients", name=client.title, state="broken", detail=str(error), fix="mend that file")
    if not known:
        fix = f"trysquare install {client.name}"
        return Finding(group="clients", name=client.title, state="absent", detail="has no entry of ours", fix=fix)
    for place, name, entry in known:
        if not os.access(entry["command"], os.X_OK):
            detail = f"`{name}` in {place.file} starts {entry['command']}, which is not there"
            fix = f"trysquare install {client.name} --name {name} --scope {place.scope} --force"
            return Finding(group="clients", name=client.title, state="broken", detail=detail, fix=fix)
    shown = ", ".join(f"`{name}` in {place.file}" for place, name, _ in known)
    return Finding(group="clients", name=client.title, state="ok", detail=shown)


def _places(client: Client, project: Path) -> Iterator[EntryPlace]:
    here = this_place(project)
    for scope, file in client.files.items():
        yield EntryPlace(client=client, file=file(here), name="", scope=scope)


def _is_here(client: Client, places: list[EntryPlace]) -> bool:
    """Whether there is a sign of the client: a file, a folder of its own, or its command."""
    if any(place.file.exists() for place in places) or (client.program and shutil.which(client.program)):
        return True
    own = [place.file.parent for place in places if place.scope == "user"]
    return any(folder.exists() and folder != Path.home() for folder in own)


def _our_entries(place: EntryPlace) -> Iterator[tuple[str, JsonObject]]:
    """The entries that start a trysquare, whatever their name."""
    servers: Any = installed_entry(place, everything=True)
    for name, entry in cast(JsonObject, servers if isinstance(servers, dict) else {}).items():
        command = cast(JsonObject, entry).get("command") if isinstance(entry, dict) else None
        words = cast(list[Any], cast(JsonObject, entry).get("args") or []) if isinstance(entry, dict) else []
        if isinstance(command, str) and (Path(command).name == "trysquare" or words[:2] == ["-m", "trysquare"]):
            yield name, cast(JsonObject, entry)
