"""Verification of a bot's runs in a project: rules, gates, receipts and records. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

from trysquare.bots.actions import scan_rules
from trysquare.bots.definition.check import check_bot
from trysquare.bots.definition.model import BotDefinition
from trysquare.bots.gates import Gates
from trysquare.bots.people import is_one_of
from trysquare.bots.preset_records import Depths
from trysquare.bots.projects import LiveBot
from trysquare.bots.proofs import SignedReceipts
from trysquare.bots.run_files import proof_holds
from trysquare.bots.scanners.runner import self_test
from trysquare.bots.workflow import machine
from trysquare.bots.workflow.machine import Entry, Position, RunState
from trysquare.bots.workflow.runs import WorkflowRuns
from trysquare.bots.workflow.state_file import UnreadableState, parse_state
from trysquare.bots.workflow.sync import NAME
from trysquare.bots.workflow.transaction import agreed, as_unproven
from trysquare.core.errors import ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.store.audit import AuditReport
from trysquare.store.signatures import InvalidSignature

Check: TypeAlias = Literal["definition", "rules", "presets", "gates", "signatures", "receipts", "records", "complete"]
"""What a problem is about, in the order in which the checks are made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    check: Check
    where: str
    problem: str

    def to_json(self) -> JsonObject:
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What is verified."""

    run: str | None = None
    """Only this run."""
    complete: bool = False
    """Whether open actions are a problem."""
    receipts: bool = True
    """Whether proofs without their record in the database are a problem, as in a fresh checkout."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    runs: tuple[str, ...]
    source: str
    """Where the runs were read: the database, or the state file."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Consents:
    """What the audit log of the approvals holds: who agreed to which call, and whether it is unbroken."""

    report: AuditReport | None = None
    agreed: frozenset[tuple[str, str]] = frozenset()
    """Digest of a call, and who agreed to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Site:
    """A bot in the project that is verified."""

    bot: LiveBot
    root: Path
    state: WorkflowRuns
    consents: Consents
    demand: Demand
    stored: bool
    closes: Mapping[tuple[str, int], JsonObject] = field(default_factory=dict[tuple[str, int], JsonObject])
    """Audit rows of the closes, by run and version."""
    depths: Depths | None = None
    """What the audit log says of the presets; None without a database."""
    receipts: SignedReceipts | None = None
    """The signed receipts, where this project has approvers."""

    def signs(self, state: RunState) -> bool:
        """Whether only a signature proves a completion of this run."""
        return self.receipts is not None and (state.strict or self.bot.config.strict)


def verify_bot(bot: LiveBot, demand: Demand, consents: Consents) -> Verification:
    """Check every run of a bot in its project, or one of them."""
    project = bot.project()
    runs, damaged, source = _runs(bot, project.state, project.root)
    wanted = [name for name in runs if demand.run in (None, name)]
    receipts = bot.receipts(project.root)
    site = _Site(
        receipts=receipts if receipts is not None and receipts.demanded() else None,
        bot=bot, root=project.root, state=project.state, consents=consents, demand=demand, stored=source != NAME,
        closes=_closes(project.state) if source != NAME else {},
        depths=Depths.of(project.state, consents.agreed) if source != NAME else None,
    )  # fmt: skip
    problems = [*_definition(bot.definition), *damaged]
    problems += [each for name in wanted for each in _run(site, name, runs[name])]
    if site.stored:
        problems += _records(site, wanted)
    return Verification(runs=tuple(wanted), source=source, problems=tuple(problems))


def _runs(bot: LiveBot, state: WorkflowRuns, root: Path) -> tuple[dict[str, RunState], list[Problem], str]:
    """The stored runs; without a database, those of the state file as it stands."""
    damaged = [Problem(check="records", where=name, problem=text) for name, text in state.damaged().items()]
    if state.has_runs():
        return state.recorded(), damaged, "database"
    try:
        text = (root / NAME).read_text(encoding="utf-8")
        return dict(parse_state(bot.plan, text).runs), [], NAME
    except FileNotFoundError:
        return {}, [], NAME
    except (OSError, UnicodeDecodeError, UnreadableState) as error:
        return {}, [Problem(check="records", where=NAME, problem=f"cannot be read: {error}")], NAME


def _closes(state: WorkflowRuns) -> dict[tuple[str, int], JsonObject]:
    rows = (row for kind in ("close", "skip", "open") for row in state.audited(f"workflow.{kind}"))
    return {(str(row.get("run")), int(row.get("version", 0))): row for row in rows}


def _definition(definition: BotDefinition) -> Iterator[Problem]:
    for rule in definition.all_rules:
        yield from (Problem(check="definition", where=rule.file, problem=str(each)) for each in self_test(rule))
    for defect in check_bot(definition).defects:
        yield Problem(check="definition", where=definition.name, problem=str(defect))


def _run(site: _Site, name: str, state: RunState) -> Iterator[Problem]:
    definition = site.bot.definition_of(name)
    worked_on = {each.behavior for each in state.latest if state.is_completed(each)}
    for behavior in (each.name for each in definition.behaviors if each.name in worked_on):
        yield from _rules(definition, behavior, site.root, name)
    for problem in () if site.depths is None else site.depths.problems(definition, name, state):
        yield Problem(check="presets", where=name, problem=problem)
        # What the preset would take away is checked all the same.
        state = replace(state, depth=None)
    if site.signs(state):
        yield from _signatures(site, name, state)
        state = _as_signed(site, name, state)
    gates = Gates.of(definition, state)
    yield from _passed(site, name, state, gates)
    for position, entry in state.latest.items():
        if entry.is_approved and site.bot.plan.contains(position):
            yield from _receipt(site, definition, name, entry, signed=site.signs(state))
    if site.demand.complete:
        left = machine.open_actions(site.bot.plan, state, gates.is_defined)
        yield from (Problem(check="complete", where=f"{name}: {each}", problem="is open") for each in left)


def _rules(definition: BotDefinition, behavior: str, root: Path, run: str) -> Iterator[Problem]:
    report = scan_rules(definition, behavior, root)
    for violation in report.violations:
        if violation.severity == "error":
            found = violation.to_json()
            place = ":".join(str(found[name]) for name in ("file", "line") if found.get(name) is not None)
            yield Problem(
                check="rules", where=f"{run}: {place or behavior}", problem=f"{violation.rule}: {found['message']}"
            )
    for problem in report.problems:
        yield Problem(check="rules", where=f"{run}: {behavior}", problem=str(problem))


def _signatures(site: _Site, name: str, state: RunState) -> Iterator[Problem]:
    """Completions that count as proven, and that no approver signed."""
    for position, entry in state.latest.items():
        if not entry.is_approved or site.receipts is None or not site.bot.plan.contains(position):
            continue
        try:
            site.receipts.proven(name, entry)
        except InvalidSignature as error:
            yield Problem(check="signatures", where=f"{name}: {position}", problem=str(error))


def _as_signed(site: _Site, name: str, state: RunState) -> RunState:
    """The run with the completions that approvers signed as proven, and no others."""
    if site.receipts is None:
        return state
    found = {
        position: (site.receipts.evidence(name, entry) if entry.kind == "completed" else None) or as_unproven(entry)
        for position, entry in state.latest.items()
    }
    return replace(agreed(site.receipts, name, state), latest=found, strict=True)


def _passed(site: _Site, name: str, state: RunState, gates: Gates) -> Iterator[Problem]:
    """Gates without their proof behind which the run already is."""
    plan = site.bot.plan
    for gate in machine.open_gates(plan, state, gates.is_defined):
        behind = [each for each in state.latest if plan.contains(each) and state.is_completed(each)]
        if state.finished or any(plan.comes_before(gate, each) for each in (*behind, state.current)):
            yield Problem(check="gates", where=f"{name}: {gate}", problem="was passed without a human's proof")


def _receipt(site: _Site, definition: BotDefinition, name: str, entry: Entry, *, signed: bool) -> Iterator[Problem]:
    """Whether a proof has its record, by somebody who may give it, for the files as they are."""
    where, position = f"{name}: {entry.position}", entry.position
    reviewers = definition.gates[position].reviewers
    if reviewers and not is_one_of(entry.by or "", reviewers):
        yield Problem(check="receipts", where=where, problem=f"{entry.by} is none of {', '.join(reviewers)}")
    if not site.stored and not signed:
        if site.demand.receipts:
            yield Problem(check="receipts", where=where, problem="has no record here: there is no database")
        return
    if not proof_holds(site.root, definition, name, entry):
        yield Problem(check="receipts", where=where, problem="its files changed since they were approved")
    if not signed:
        yield from _recorded(site, name, position, where, entry)


def _recorded(site: _Site, name: str, position: Position, where: str, entry: Entry) -> Iterator[Problem]:
    versions = [line.entry.version for line in site.state.history(name, limit=1_000_000) if line.entry == entry]
    agreements = [
        as_object(site.closes.get((name, version), {}).get("agreement")) for version in (*versions, entry.version)
    ]
    agreement = next((each for each in agreements if each), None)
    if agreement is None or agreement.get("by") != entry.by:
        yield Problem(check="receipts", where=where, problem=f"the audit log has no approval by {entry.by}")
    elif agreement.get("digest") and (agreement["digest"], entry.by) not in site.consents.agreed:
        yield Problem(check="receipts", where=where, problem=f"{entry.by} did not agree to this close")


def _records(site: _Site, runs: list[str]) -> Iterator[Problem]:
    reports = {"the runs": site.state.verify()}
    if site.consents.report is not None:
        reports["the approvals"] = site.consents.report
    for name, report in reports.items():
        if report.problem is not None:
            yield Problem(check="records", where=f"audit log of {name}", problem=report.problem)
    for name in runs:
        yield from _state(site, name)


def _state(site: _Site, name: str) -> Iterator[Problem]:
    """Whether the stored state of a run is the one that its last change left."""
    try:
        now = site.state.recorded()[name]
        if now != site.state.recorded_at(name, now.version):
            yield Problem(check="records", where=name, problem="its state is not the one that its last change left")
    except ToolError as error:
        yield Problem(check="records", where=name, problem=str(error))
