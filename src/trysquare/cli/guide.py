"""`trysquare guide`: list, check and export the guide's content."""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from typing import Any, get_args

from trysquare.cli.command import Command, Run, option
from trysquare.cli.options import JSON, add_guide_options, load_and_log
from trysquare.cli.terminal import (
    ask_yes_or_no,
    count,
    print_json,
    print_listing,
    print_report,
    print_table,
    require_terminal,
    styled,
)
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.text import closest_names
from trysquare.guide.config import ExportEntry, ExportFormat
from trysquare.guide.exports import Exported, compare, export, new_entry, remember, remembered
from trysquare.guide.lint import check_content
from trysquare.guide.projects import Project, Projects
from trysquare.providers import guide_config, open_states
from trysquare.store.content import StoredDocument

DONE = {
    "missing": "Created {}",
    "content changed": "Updated {}",
    "edited by hand": "Updated {}, overwriting edits",
    "left over": "Removed {}",
}
"""What writing does to a file in each state."""
_SHARED = (JSON, add_guide_options)
_NAME = option("name", metavar="NAME", nargs="?", help="the document, as category/name (default: list them)")
_EXPORT = (
    option("expression", metavar="EXPRESSION", nargs="?", help="the content to export (default: all known exports)"),
    option("--format", choices=get_args(ExportFormat), default="agents", help="the target (default: agents)"),
    option("--output", metavar="PATH", help="a path below the project (default: the usual one)"),
    option("--check", action="store_true", help="write nothing; exit 1 and list the files that differ"),
    option("--force", action="store_true", help="overwrite parts that were edited by hand"),
    *_SHARED,
)


@contextmanager
def _opened(arguments: argparse.Namespace) -> Generator[Projects]:
    loaded = load_and_log(arguments)
    if not loaded.settings.guide:
        raise ConfigurationError(
            "no content directory is configured.",
            where="guide",
            hint="Name one with --guide FOLDER, or in trysquare.toml.",
        )
    with open_states() as states:
        config = guide_config(loaded.settings)
        with closing(Projects(config, project_state=states.of_project, user_state=states.of_user())) as projects:
            projects.open_default().require_readable()
            yield projects


def _list(projects: Projects, arguments: argparse.Namespace) -> None:
    project = projects.get()
    documents = {each.name: [str(one.id) for one in project.documents(each.name)] for each in project.categories()}
    waiting = [_name(each) for each in project.stored.all() if each.accepted_by is None]
    if arguments.json:
        collections = {each.name: list(each.expressions) for each in project.collections()}
        report = {"project": project.name, "categories": documents, "collections": collections}
        print_json({**report, "written_by_agents": waiting} if waiting else report)
        return
    rows = [(each.name, str(len(documents[each.name])), each.description or "") for each in project.categories()]
    print_table(("CATEGORY", "DOCUMENTS", "PURPOSE"), rows)
    if project.collections():
        print()
        rows = [(each.name, ", ".join(each.expressions), each.description or "") for each in project.collections()]
        print_table(("COLLECTION", "EXPRESSIONS", "PURPOSE"), rows)
    print(f"\n{count(sum(map(len, documents.values())), 'document')} in project `{project.name}`.")
    if waiting:
        print(f"Written by agents and not accepted yet: {', '.join(waiting)}.")


def _check(projects: Projects, arguments: argparse.Namespace) -> int:
    findings = check_content(projects.get())
    if arguments.json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(f"{styled(finding.kind, 'red')}  {finding.where}\n    {finding.message}")
        print(f"{count(len(findings), 'problem')} found." if findings else "OK: no problems found.")
    return 1 if findings else 0


def _accept(projects: Projects, arguments: argparse.Namespace) -> int | None:
    stored = projects.get().stored
    waiting = [each for each in stored.all() if each.accepted_by is None]
    if arguments.name is None:
        return _show_waiting(waiting, as_json=arguments.json)
    found = next((each for each in waiting if _name(each) == arguments.name), None)
    if found is None:
        close = closest_names(arguments.name, [_name(each) for each in waiting])
        raise ConfigurationError(
            f"no pending document `{arguments.name}`.",
            where="guide accept",
            hint=f"Did you mean {close[0]}?" if close else "Run `trysquare guide accept` to list those that do.",
        )
    _show_document(found)
    require_terminal("guide accept", "accept a document")
    if not ask_yes_or_no("Accept it as team content, exactly as shown?"):
        print("Not accepted; it stays marked as written by an agent.")
        return 1
    accepted = stored.accept(found.category, found.name, digest=found.digest, by=local_principal().subject)
    print(f"Accepted {_name(accepted)} as {accepted.accepted_by}.")
    return 0


def _show_waiting(waiting: Sequence[StoredDocument], *, as_json: bool) -> None:
    report = [
        {"id": _name(each), "by": each.written_by, "at": each.written_at, "digest": each.digest} for each in waiting
    ]
    rows = [(_name(each), each.written_by, each.written_at[:19], each.digest[:16]) for each in waiting]
    headings = ("DOCUMENT", "WRITTEN FOR", "WRITTEN AT", "DIGEST")
    then = "Run `trysquare guide accept NAME` to see one in full and decide."
    print_listing(report, headings, rows, json=as_json, empty="No pending documents.", then=then)


def _show_document(document: StoredDocument) -> None:
    print(styled(f"{_name(document)}, written by an agent for {document.written_by} at {document.written_at}", "bold"))
    for key, value in document.metadata.items():
        print(f"  {_plain(f'{key}: {json.dumps(value, ensure_ascii=False)}')}")
    for line in document.text.splitlines():
        print(f"  | {_plain(line)}")
    print(f"  Digest     {document.digest}", flush=True)


def _plain(line: str) -> str:
    """A line without characters that a terminal would obey or hide."""
    return "".join(
        letter if letter in "\t " or unicodedata.category(letter)[0] not in "CZ" else f"\\u{ord(letter):04x}"
        for letter in line
    )


def _name(document: StoredDocument) -> str:
    return f"{document.category}/{document.name}"


def _projects(projects: Projects, arguments: argparse.Namespace) -> None:
    known = list(projects.known().values())
    report = [{"name": one.name, "root": str(one.root), "content": list(map(str, one.folders))} for one in known]
    rows = [(one.name + (" (default)" if one.name == projects.default_name else ""), str(one.root)) for one in known]
    print_listing(report, ("PROJECT", "FOLDER"), rows, json=arguments.json)


def _export(projects: Projects, arguments: argparse.Namespace) -> int:
    project = projects.get()
    entries = _entries(project, arguments)
    if arguments.check:
        compared = compare(project, entries)
        print_report(_states(compared), lambda: _print_drift(compared), json=arguments.json)
        return 1 if compared.drifted else 0
    done = export(project, entries, overwrite_edits=arguments.force)
    if arguments.expression is not None:
        remember(project, entries[0])
    print_report(_states(done), lambda: _print_written(done), json=arguments.json)
    return 0


def _entries(project: Project, arguments: argparse.Namespace) -> Sequence[ExportEntry]:
    if arguments.expression is not None:
        return [new_entry(arguments.expression, arguments.format, arguments.output)]
    entries = remembered(project)
    if not entries:
        raise ConfigurationError(
            "no exports are configured.", where="guide export", hint="Name what to export: trysquare guide export rules"
        )
    return entries


def _print_drift(compared: Exported) -> None:
    for file in compared.drifted:
        print(f"{styled('drifted', 'red')}  {file.path}: {file.state}")
    same = len(compared.files) - len(compared.drifted)
    print(f"{count(same, 'file')} up to date, {len(compared.drifted)} drifted.")


def _print_written(done: Exported) -> None:
    for file in done.files:
        print(DONE.get(file.state, "Unchanged: {}").format(file.path))


def _states(done: Exported) -> dict[str, Any]:
    return {"files": {file.path: file.state for file in done.files}, "written": list(done.written)}


def _opening(action: Callable[[Projects, argparse.Namespace], int | None]) -> Run:
    """Run an action on the opened projects."""

    def run(arguments: argparse.Namespace) -> int | None:
        with _opened(arguments) as projects:
            return action(projects, arguments)

    return run


COMMAND = Command(
    subcommands={
        "list": Command(
            _opening(_list),
            _SHARED,
            "show categories, collections and their documents",
            examples=(
                "trysquare guide list --guide guide",
                "trysquare guide list --json",
            ),
        ),
        "check": Command(
            _opening(_check),
            _SHARED,
            "find unreadable files, broken references and contradictions",
            examples=(
                "trysquare guide check",
                "trysquare guide check --guide guide --json",
            ),
        ),
        "projects": Command(
            _opening(_projects),
            _SHARED,
            "show the projects that calls can name",
            examples=(
                "trysquare guide projects",
                "trysquare guide projects --json",
            ),
        ),
        "accept": Command(
            _opening(_accept),
            (_NAME, *_SHARED),
            "review and accept a document that an agent wrote",
            examples=(
                "trysquare guide accept",
                "trysquare guide accept rules/naming",
            ),
        ),
        "export": Command(
            _opening(_export),
            _EXPORT,
            "write content into AGENTS.md, CLAUDE.md or Cursor rules",
            examples=(
                "trysquare guide export rules",
                "trysquare guide export --check",
            ),
        ),
    },
    examples=(
        "trysquare guide list --guide guide",
        "trysquare guide export rules --format agents",
    ),
)
