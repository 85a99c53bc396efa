"""`trysquare doctor`: check the installation, the server and its clients, and print the command for each problem."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, cast

from trysquare.app import search_vectors
from trysquare.cli import clients, install
from trysquare.cli.command import Command
from trysquare.cli.options import JSON, add_shared_options, load
from trysquare.cli.terminal import count, print_report, styled, wrapped
from trysquare.core.errors import ConfigurationError, ToolError, TrysquareError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.untrusted import one_line
from trysquare.settings import Settings
from trysquare.store import project_state, user_state
from trysquare.store.database import open_database
from trysquare.store.location import FILE

_NEEDED = ("trysquare", "msgspec", "pydantic", "uvicorn")
EXTRAS = {
    "bots": "jsonschema",
    "console": "webauthn",
    "code": "tree-sitter-python",
    "content": "httpcore2",
    "debug": "debugpy",
    "fastmcp": "fastmcp",
    "gateway": "python-jsonpath",
    "guide": "jinja2",
    "jobs": "dbos",
    "local": "xllamacpp",
    "login": "mcp",
    "models": "httpx2",
    "openapi": "pyyaml",
    "otel": "opentelemetry-sdk",
    "postgres": "psycopg",
    "pydantic-ai": "pydantic-ai-slim",
    "search": "numpy",
}
"""Extras, and for each the package that shows whether it is installed."""
_PROGRAMS = {
    "node": "Node 22, for the project's own tests; `make node` installs one",
    "uv": "optional, a faster way to install",
    "git": "for working on a project",
    "bwrap": "the workbench's sandbox for commands; the Debian package bubblewrap",
    "rg": "optional, faster searches of the workbench; the Debian package ripgrep",
}
_SECONDS = 60
_CLIENT = {"name": "trysquare-doctor", "version": "1"}
_META = "io.modelcontextprotocol/"
VERSIONS: Mapping[str, tuple[JsonObject, ...]] = {
    "2025-11-25": (
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT},
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ),
    "2026-07-28": (
        {
            "id": 2,
            "method": "tools/list",
            "params": {
                "_meta": {
                    f"{_META}protocolVersion": "2026-07-28",
                    f"{_META}clientCapabilities": {},
                    f"{_META}clientInfo": _CLIENT,
                }
            },
        },
    ),
}
_MARKS = {"ok": ("ok", "green"), "absent": ("--", "dim"), "broken": ("NO", "red")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Result of one check."""

    group: str
    name: str
    state: Literal["ok", "absent", "broken"]
    """`absent` is not an error: optional and not installed."""
    detail: str
    fix: str | None = None
    """The command that fixes or adds it."""


def doctor(arguments: argparse.Namespace) -> int:
    """Run every check; 1 if one fails."""
    findings = _examine(arguments)
    broken = [finding for finding in findings if finding.state == "broken"]
    report = {"ok": not broken, "findings": [asdict(finding) for finding in findings]}
    print_report(report, lambda: _print(findings), json=arguments.json)
    return 1 if broken else 0


def _examine(arguments: argparse.Namespace) -> list[Finding]:
    sqlite = Finding(group="installed", name="sqlite", state="ok", detail=sqlite3.sqlite_version)
    findings = [_python(), *map(_package, _NEEDED), *map(_extra, EXTRAS), sqlite, *map(_program, _PROGRAMS)]
    try:
        loaded = load(arguments)
    except TrysquareError as error:
        wrong = partial(Finding, group="server", name="configuration", state="broken")
        return [*findings, wrong(detail=str(error), fix="fix the configuration")]
    findings += [*check_state(loaded.settings.project), check_search(loaded.settings)]
    command = [*install.server_command(), "serve", *install.server_options(arguments, loaded)]
    findings += [_try_version(command, protocol) for protocol in VERSIONS]
    return findings + check_clients(loaded.settings.project)


def _print(findings: Sequence[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    group = None
    for finding in findings:
        if finding.group != group:
            group = finding.group
            print(styled(f"{group}:", "bold"))
        mark, style = _MARKS[finding.state]
        first, *more = wrapped(one_line(finding.detail, 4_000), width + 8)
        print(f"  {styled(mark, style)}  {finding.name.ljust(width)}  {first}")
        for line in more:
            print(f"{' ' * (width + 8)}{line}")
        for line in [] if finding.fix is None else wrapped(f"run: {finding.fix}", width + 8):
            print(f"{' ' * (width + 8)}{styled(line, 'cyan')}")
    broken = sum(finding.state == "broken" for finding in findings)
    print("\nAll required checks passed." if not broken else f"\n{count(broken, 'check')} failed.")


def _installed(name: str, fine: object, detail: str, otherwise: Literal["absent", "broken"], *, fix: str) -> Finding:
    state = "ok" if fine else otherwise
    return Finding(group="installed", name=name, state=state, detail=detail, fix=None if fine else fix)


def _python() -> Finding:
    detail = f"{platform.python_version()} at {sys.executable}"
    return _installed("python", sys.version_info >= (3, 11), detail, "broken", fix="install Python 3.11 or newer")


def _package(name: str) -> Finding:
    found, python = _version(name), sys.executable
    return _installed(name, found, found or "not installed", "broken", fix=f"{python} -m pip install trysquare")


def _extra(extra: str) -> Finding:
    package, found = EXTRAS[extra], _version(EXTRAS[extra])
    detail, python = f"{package} {found or 'is not installed'}", sys.executable
    return _installed(f"extra {extra}", found, detail, "absent", fix=f"{python} -m pip install 'trysquare[{extra}]'")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _program(name: str) -> Finding:
    made, path = partial(Finding, group="installed", name=name), shutil.which(name)
    if path is None:
        return made(state="absent", detail=f"not found ({_PROGRAMS[name]})")
    try:
        output = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        return made(state="absent", detail=f"{path} does not run: {error}")
    return made(state="ok", detail=next(iter(output.strip().splitlines()), "?"))


def check_search(settings: Settings, env: Mapping[str, str] = os.environ) -> Finding:
    """Which encoder searches use, or why they compare words alone; asks it for one vector."""
    own, made = settings.search, partial(Finding, group="server", name="search")
    try:
        vectors = search_vectors(settings, env)
    except ConfigurationError as error:
        return made(state="broken", detail=str(error), fix="fix the configuration")
    if vectors is None:
        if own.encoder == "off":
            return made(state="ok", detail="by words alone: `search.encoder` is off")
        return made(state="absent", detail="by words alone: no encoder", fix="trysquare models install minilm")
    vectors.request(["rename a file"])
    if not vectors.wait(_SECONDS):
        why = vectors.problem or f"no answer in {_SECONDS} seconds"
        fix = "trysquare models check minilm" if own.embeddings_url is None else f"curl {own.embeddings_url}/models"
        return made(state="broken", detail=f"by words alone: {why}", fix=fix)
    by = "minilm" if own.embeddings_url is None else f"{own.embeddings_model} at {own.embeddings_url}"
    return made(state="ok", detail=f"by words and meaning: {by}")


def check_state(project: Path) -> list[Finding]:
    """Check the state files of the project and of the user."""
    return [_state("project", project_state(project)), _state("user", user_state(os.environ))]


def _state(whose: str, file: Path) -> Finding:
    """Open the state file, or a temporary one next to its place if it does not exist."""
    made = partial(Finding, group="state", name=f"{whose} state")
    try:
        problems = _problems_of(file) if file.exists() else _problems_of_new(file)
    except (ConfigurationError, ToolError, OSError) as error:
        return made(state="broken", detail=str(error), fix="see above")
    if problems:
        return made(state="broken", detail=f"{file} is damaged: {problems[0]}", fix=f"mv {file} {file}.bad")
    how = "is intact" if file.exists() else "will be created when needed"
    return made(state="ok", detail=f"{file} {how} (SQLite, WAL)")


def _problems_of_new(file: Path) -> list[str]:
    folder = next(folder for folder in (file.parent, *file.parent.parents) if folder.exists())
    with tempfile.TemporaryDirectory(prefix=".trysquare-doctor-", dir=folder) as trial:
        return _problems_of(Path(trial) / "state" / FILE)


def _problems_of(file: Path) -> list[str]:
    with closing(open_database(file)) as database:
        with database.read() as connection:
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        return database.problems() if mode == "wal" else [f"the journal mode is {mode}, not wal"]


def check_clients(project: Path) -> list[Finding]:
    """Check the entries of every installed client."""
    return [_client(client, project) for client in clients.CLIENTS.values()]


def _client(client: clients.Client, project: Path) -> Finding:
    here, made = clients.this_place(project), partial(Finding, group="clients", name=client.title)
    places = [
        clients.EntryPlace(client=client, file=clients.client_file(client, template, here), name="", scope=scope)
        for scope, template in client.files.items()
    ]
    if not _is_here(client, places):
        return made(state="absent", detail="not found on this computer")
    try:
        known = [(place, name, entry) for place in places for name, entry in _our_entries(place)]
    except ConfigurationError as error:
        return made(state="broken", detail=str(error), fix="fix that file")
    if not known:
        return made(state="absent", detail="not set up", fix=f"trysquare install {client.name}")
    for place, name, entry in known:
        command = entry["command"] if isinstance(entry["command"], str) else entry["command"][0]
        if not os.access(command, os.X_OK):
            detail = f"`{name}` in {place.file} starts {command}, which does not exist"
            fix = f"trysquare install {client.name} --name {name} --scope {place.scope} --force"
            return made(state="broken", detail=detail, fix=fix)
    return made(state="ok", detail=", ".join(f"`{name}` in {place.file}" for place, name, _ in known))


def _is_here(client: clients.Client, places: list[clients.EntryPlace]) -> bool:
    """Whether the client is installed: its file, its directory or its command exists."""
    if any(place.file.exists() for place in places) or (client.program and shutil.which(client.program)):
        return True
    own = [place.file.parent for place in places if place.scope == "user"]
    return any(folder.exists() and folder != Path.home() for folder in own)


def _our_entries(place: clients.EntryPlace) -> Iterator[tuple[str, JsonObject]]:
    """The entries that start trysquare, under any name."""
    for name, found in as_object(clients.installed_entry(place, everything=True)).items():
        if clients.starts_trysquare(entry := as_object(found)):
            yield name, entry


def _try_version(command: list[str], protocol: str) -> Finding:
    made, started = partial(Finding, group="server", name=f"tools/list, {protocol}"), time.monotonic()
    try:
        answer, stderr = _exchange(command, protocol)
    except (OSError, subprocess.TimeoutExpired) as error:
        return made(state="broken", detail=f"the server does not start: {error}")
    tools: Any = as_object(as_object(answer).get("result")).get("tools")
    if not isinstance(tools, list):
        detail = f"no tools were listed: {answer or stderr or 'no answer'}"
        return made(state="broken", detail=detail, fix=" ".join(command))
    took, number = round((time.monotonic() - started) * 1000), len(as_list(tools))
    hint = None if number else "trysquare doctor --tools MODULE:NAME"
    return made(state="ok", detail=f"{count(number, 'tool')} listed, {took} ms", fix=hint)


def _exchange(command: list[str], protocol: str) -> tuple[JsonObject | None, str]:
    """Send the requests of a client, and return the answer to `tools/list` and stderr."""
    sent = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in VERSIONS[protocol])
    run = subprocess.run(
        command, input=sent, capture_output=True, text=True, encoding="utf-8", timeout=_SECONDS, check=False
    )
    for line in run.stdout.splitlines():
        message = cast(JsonObject, json.loads(line))
        if message.get("id") == 2:
            return message, run.stderr
    return None, (run.stderr.strip().splitlines() or [""])[-1]


COMMAND = Command(
    doctor,
    (JSON, add_shared_options),
    examples=("trysquare doctor", "trysquare doctor --tools my_module:tools --json"),
)
