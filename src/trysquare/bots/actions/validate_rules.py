"""validate_rules: what was made is held against the rules, by scanners first and by reading second."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trysquare.bots.actions.common import FIRST, GIVEN, base_parts, missing_below, rules_parts
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.definition import BotDefinition
from trysquare.bots.graph.file import is_other_document, load_graph
from trysquare.bots.graph.nodes import Graph
from trysquare.bots.instructions import Part
from trysquare.bots.scanning.findings import Violation
from trysquare.bots.scanning.scan import GRAPH_RULE, Artifacts, ScanCache, ScanReport, scan
from trysquare.bots.scope import Scope, Selected, select
from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.core.types import JsonObject
from trysquare.files.sealed_folder import SealedFolder

_MOST = 50
_CACHE = ScanCache()
"""Kept for the process: what was found depends on nothing but the rule and the contents."""


def execute(work: Work) -> Outcome:
    """Run the scanners, and hand out what they found with the rules and their examples."""
    report = scan_rules(work.definition, work.behavior.name, work.project, work.scope)
    found = Part(name="violations", content=[each.to_json() for each in report.violations[:_MOST]], priority=FIRST)
    return Outcome(
        parts=(*base_parts(work), found, *rules_parts(work, priority=GIVEN)),
        data=told(report),
        warnings=(*_unknown(work), *(str(problem) for problem in report.problems)),
        missing=missing_below(work, "/rules"),
        message=f"{len(report.violations)} violations were found." if report.violations else None,
        failure=_failure(work, report),
    )


def _failure(work: Work, report: ScanReport) -> str | None:
    """Why nothing was validated, where no document is a story graph and nothing else was looked at."""
    if report.scanned:
        return None
    paths = dict.fromkeys(each.output for each in work.behavior.content.knowledge)
    with SealedFolder(work.project) as folder:
        others = [path for path in paths if is_other_document(folder, path)]
    if not others:
        return None
    return f"Nothing was validated: {others[0]} is not a story graph. Only story graphs can be validated yet."


def scan_rules(definition: BotDefinition, behavior: str, project: Path, scope: Scope | None = None) -> ScanReport:
    """Hold the rules of a behavior against what lies in the project, or against the part that a scope names."""
    wanted = scope or Scope()
    rules = [rule for rule in definition.rules_of(behavior) if wanted.holds(rule)]
    graphs = tuple(dict.fromkeys(each.output for each in definition.behavior(behavior).content.knowledge))
    with SealedFolder(project) as folder:
        chosen = [select(wanted, graph) for graph in _graphs(folder, graphs)] if wanted.names_nodes else []
        files = wanted.files if not chosen else (*wanted.files, *(file for each in chosen for file in each.files))
        every = None if not wanted else files
        report = scan(rules, Artifacts(folder=folder, graphs=graphs, files=every), cache=_CACHE)
    return replace(report, violations=tuple(each for each in report.violations if _concerns(each, chosen)))


def _graphs(folder: SealedFolder, paths: tuple[str, ...]) -> list[Graph]:
    found: list[Graph] = []
    for path in paths:
        try:
            found.append(load_graph(folder, path).graph)
        except (NotFound, InvalidArguments):
            continue  # the scan itself tells of a graph that cannot be read
    return found


def _concerns(violation: Violation, chosen: list[Selected]) -> bool:
    return (
        not chosen
        or not violation.where
        or violation.rule == GRAPH_RULE
        or any(each.holds(violation.where) for each in chosen)
    )


def _unknown(work: Work) -> tuple[str, ...]:
    """What the scope names and no document has: most often a slip of the pen that would make everything look clean."""
    if not work.scope.names_nodes:
        return ()
    graphs = tuple(each.output for each in work.behavior.content.knowledge)
    with SealedFolder(work.project) as folder:
        missing = [select(work.scope, graph).unknown for graph in _graphs(folder, graphs)]
    everywhere = [name for name in (missing[0] if missing else ()) if all(name in each for each in missing)]
    return tuple(f"The story graph has no {name}." for name in everywhere)


def told(report: ScanReport) -> JsonObject:
    """A report in short."""
    return {"clean": report.clean, "violations": len(report.violations), "scanned": len(report.scanned)}
