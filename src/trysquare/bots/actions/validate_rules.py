"""validate_rules: what was made is held against the rules, by scanners first and by reading second."""

from __future__ import annotations

from pathlib import Path

from trysquare.bots.actions.common import FIRST, GIVEN, base_parts, missing_below, rules_parts
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.definition import BotDefinition
from trysquare.bots.instructions import Part
from trysquare.bots.scanning.scan import Artifacts, ScanCache, ScanReport, scan
from trysquare.bots.scope import Scope
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
        warnings=tuple(str(problem) for problem in report.problems),
        missing=missing_below(work, "/rules"),
        message=f"{len(report.violations)} violations were found." if report.violations else None,
    )


def scan_rules(definition: BotDefinition, behavior: str, project: Path, scope: Scope | None = None) -> ScanReport:
    """Hold the rules of a behavior against what lies in the project."""
    wanted = scope or Scope()
    rules = [rule for rule in definition.rules_of(behavior) if wanted.holds(rule)]
    graphs = dict.fromkeys(each.output for each in definition.behavior(behavior).content.knowledge)
    with SealedFolder(project) as folder:
        artifacts = Artifacts(folder=folder, graphs=tuple(graphs), files=wanted.files or None)
        return scan(rules, artifacts, cache=_CACHE)


def told(report: ScanReport) -> JsonObject:
    """A report in short."""
    return {"clean": report.clean, "violations": len(report.violations), "scanned": len(report.scanned)}
