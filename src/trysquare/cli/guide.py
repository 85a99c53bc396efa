"""`trysquare guide`: list, check and export content, as the person at this terminal."""

from __future__ import annotations

import argparse
import json
import unicodedata
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, get_args

from trysquare.app import guide_config, guide_states
from trysquare.cli.logs import start_logging
from trysquare.cli.options import add_guide_options, load
from trysquare.cli.output import count, print_json, print_table, styled
from trysquare.cli.terminal import ask_yes_or_no, require_terminal
from trysquare.core.context import local_principal
from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest
from trysquare.guide.checking import check_content
from trysquare.guide.config import ExportEntry, ExportFormat
from trysquare.guide.exporting import Exported, compare, export, new_entry, remember, remembered
from trysquare.guide.project import Project
from trysquare.guide.projects import Projects
from trysquare.store.documents import StoredDocument

DONE = {
    "missing": "made",
    "content changed": "brought up to date",
    "edited by hand": "edits overwritten",
    "left over": "removed",
}
"""What writing does to a file in each state."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `guide`, each with its options."""
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    for name, about, run_action in (
        ("list", "show categories, collections and their documents", _list),
        ("check", "tell what is wrong with the content: unreadable files, references, contradictions", _check),
        ("projects", "show the projects that calls can name", _projects),
        ("accept", "accept a document that an agent wrote, after looking at it; without a name, list them", _accept),
        ("export", "write content into AGENTS.md, CLAUDE.md or Cursor rules", _export),
    ):
        inner = actions.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".", allow_abbrev=False)
        inner.set_defaults(action=run_action)
        inner.add_argument("--json", action="store_true", help="print JSON")
        if name == "export":
            _add_export_options(inner)
        if name == "accept":
            inner.add_argument("name", metavar="NAME", nargs="?", help="the document, as category/name")
        add_guide_options(inner)


def _add_export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "expression", metavar="EXPRESSION", nargs="?", help="what to export; without it, all known exports"
    )
    parser.add_argument("--format", choices=get_args(ExportFormat), default="agents", help="for which program")
    parser.add_argument("--output", metavar="PATH", help="where to, below the project; by default the usual place")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 and name the files that have drifted"
    )
    parser.add_argument("--force", action="store_true", help="overwrite parts that were edited by hand")


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    with _opened(arguments) as projects:
        action: Callable[[Projects, argparse.Namespace], int] = arguments.action
        return action(projects, arguments)


@contextmanager
def _opened(arguments: argparse.Namespace) -> Generator[Projects]:
    loaded = load(arguments)
    start_logging(loaded)
    if not loaded.settings.guide:
        raise ConfigurationError(
            "no folder of content is named.", where="guide", hint="Name one with --guide FOLDER, or in trysquare.toml."
        )
    with guide_states() as states:
        projects = Projects(guide_config(loaded.settings), project_state=states.of_project, user_state=states.of_user())
        try:
            projects.open_default().require_readable()
            yield projects
        finally:
            projects.close()


def _list(projects: Projects, arguments: argparse.Namespace) -> int:
    project = projects.get()
    documents = {each.name: [str(one.id) for one in project.documents(each.name)] for each in project.categories()}
    waiting = [_name(each) for each in project.stored.all() if each.accepted_by is None]
    if arguments.json:
        collections = {each.name: list(each.expressions) for each in project.collections()}
        told = {"project": project.name, "categories": documents, "collections": collections}
        print_json({**told, "written_by_agents": waiting} if waiting else told)
        return 0
    rows = [(each.name, str(len(documents[each.name])), each.description or "") for each in project.categories()]
    print_table(("CATEGORY", "DOCUMENTS", "PURPOSE"), rows)
    if project.collections():
        print()
        rows = [(each.name, ", ".join(each.expressions), each.description or "") for each in project.collections()]
        print_table(("COLLECTION", "EXPRESSIONS", "PURPOSE"), rows)
    print(f"\n{count(sum(map(len, documents.values())), 'document')} in project {project.name}.")
    if waiting:
        print(f"Written by agents and not accepted yet: {', '.join(waiting)}.")
    return 0


def _check(projects: Projects, arguments: argparse.Namespace) -> int:
    findings = check_content(projects.get())
    if arguments.json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(f"{styled(finding.kind, 'red')}  {finding.where}\n    {finding.message}")
        print(f"{count(len(findings), 'finding')}.")
    return 1 if findings else 0


def _accept(projects: Projects, arguments: argparse.Namespace) -> int:
    stored = projects.get().stored
    waiting = [each for each in stored.all() if each.accepted_by is None]
    if arguments.name is None:
        return _show_waiting(waiting, as_json=arguments.json)
    found = next((each for each in waiting if _name(each) == arguments.name), None)
    if found is None:
        close = nearest(arguments.name, [_name(each) for each in waiting])
        raise ConfigurationError(
            f"no document `{arguments.name}` waits to be accepted.",
            where="guide accept",
            hint=f"Did you mean {close[0]}?" if close else "Run `trysquare guide accept` to list those that do.",
        )
    _show_document(found)
    require_terminal("guide accept", "accept a document")
    if not ask_yes_or_no("Accept it as content of the team, exactly as shown?"):
        print("Not accepted; it stays marked as written by an agent.")
        return 1
    accepted = stored.accept(found.category, found.name, digest=found.digest, by=local_principal().subject)
    print(f"Accepted {_name(accepted)} as {accepted.accepted_by}.")
    return 0


def _show_waiting(waiting: Sequence[StoredDocument], *, as_json: bool) -> int:
    if as_json:
        told = [{"id": _name(each), "by": each.written_by, "at": each.written_at, "digest": each.digest}
                for each in waiting]  # fmt: skip
        print_json(told)
    elif not waiting:
        print("No document waits to be accepted.")
    else:
        rows = [(_name(each), each.written_by, each.written_at[:19], each.digest[:16]) for each in waiting]
        print_table(("DOCUMENT", "WRITTEN FOR", "WRITTEN AT", "DIGEST"), rows)
        print("\nRun `trysquare guide accept NAME` to see one in full and decide.")
    return 0


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


def _projects(projects: Projects, arguments: argparse.Namespace) -> int:
    known = list(projects.known().values())
    if arguments.json:
        print_json(
            [{"name": one.name, "root": str(one.root), "content": [str(each) for each in one.folders]} for one in known]
        )
        return 0
    rows = [(one.name + (" (default)" if one.name == projects.default_name else ""), str(one.root)) for one in known]
    print_table(("PROJECT", "FOLDER"), rows)
    return 0


def _export(projects: Projects, arguments: argparse.Namespace) -> int:
    project = projects.get()
    entries = _entries(project, arguments)
    if arguments.check:
        return _print_drift(compare(project, entries), as_json=arguments.json)
    done = export(project, entries, overwrite_edits=arguments.force)
    if arguments.expression is not None:
        remember(project, entries[0])
    _print_written(done, as_json=arguments.json)
    return 0


def _entries(project: Project, arguments: argparse.Namespace) -> Sequence[ExportEntry]:
    if arguments.expression is not None:
        return [new_entry(arguments.expression, arguments.format, arguments.output)]
    entries = remembered(project)
    if not entries:
        raise ConfigurationError(
            "there are no exports yet.", where="guide export", hint="Name what to export: trysquare guide export rules"
        )
    return entries


def _print_drift(compared: Exported, *, as_json: bool) -> int:
    if as_json:
        print_json(_states(compared))
    else:
        for file in compared.drifted:
            print(f"{styled('drifted', 'red')}  {file.path}: {file.state}")
        same = len(compared.files) - len(compared.drifted)
        print(f"{count(same, 'file')} up to date, {len(compared.drifted)} drifted.")
    return 1 if compared.drifted else 0


def _print_written(done: Exported, *, as_json: bool) -> None:
    if as_json:
        print_json(_states(done))
        return
    for file in done.files:
        print(f"{file.path}: {DONE.get(file.state, 'up to date')}")


def _states(done: Exported) -> dict[str, Any]:
    return {"files": {file.path: file.state for file in done.files}, "written": list(done.written)}
