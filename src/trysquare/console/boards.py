"""The board of one run: behaviors as columns, actions as cards. What a run is, its bot says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from trysquare.bots.actions import produced_files
from trysquare.bots.artifacts import changed_files
from trysquare.bots.comparison import compare
from trysquare.bots.documents.store import expand
from trysquare.bots.documents.story import StoryGraph
from trysquare.bots.gates import Gates
from trysquare.bots.overview import report_bot, report_entry, report_run
from trysquare.bots.people import People, comments_on
from trysquare.bots.run_files import defined_path
from trysquare.bots.workflow.machine import Plan, Position, RunState, is_gate, is_open, open_gates
from trysquare.bots.workflow.runs import RunSummary
from trysquare.console.decisions import FileChange
from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.json import JsonObject, as_object
from trysquare.files.root import DirectoryRoot, PathNotAllowed

if TYPE_CHECKING:
    from trysquare.bots.projects import LiveBot

LONGEST_HISTORY = 200
"""Lines of a run's history on its page, newest first."""
MAX_FILE = 4_000_000
MAX_LINES = 400
"""Lines of the difference of one file of a gate."""
A_PERSON = "a human's proof"


@dataclass(frozen=True, kw_only=True, slots=True)
class Card:
    """One action of a run."""

    action: str
    state: str
    is_current: bool
    gates: tuple[str, ...]
    waits_for: str
    """The gate that is open before it, or the proof that it needs itself."""
    entry: JsonObject | None
    """The last line of its history."""
    people: JsonObject
    comments: Sequence[JsonObject]


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One behavior of a run."""

    name: str
    about: str
    cards: Sequence[Card]


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentFile:
    """A file that the actions of a run make; `size` is None while it does not exist."""

    path: str
    size: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Board:
    """A run with everything that its page shows."""

    bot: str
    run: str
    project: str
    summary: JsonObject
    columns: Sequence[Column]
    history: Sequence[JsonObject]
    files: Sequence[DocumentFile]
    notices: Sequence[str]
    has_maps: bool
    """Whether the bot keeps story maps."""

    @property
    def versions(self) -> tuple[int, int]:
        """The versions to compare first: the latest, and the one before its last line of history."""
        known = sorted({int(line["version"]) for line in self.history})
        return (known[-2] if len(known) > 1 else 0, int(self.summary["version"]))


def overviews(bots: Sequence[LiveBot], *, limit: int) -> list[JsonObject]:
    """Each bot with its runs, those that changed last first."""
    return [_overview(bot, limit) for bot in bots]


def _overview(bot: LiveBot, limit: int) -> JsonObject:
    about = {"goal": bot.definition.goal, "home": bot.home(bot.project().root).run}
    return {**report_bot(bot, limit=limit), **about}


def board_of(bot: LiveBot, run: str) -> Board:
    """The board of a run. Raises `NotFound` for one that has not started, but for the bot's own one."""
    project = bot.project()
    loaded = project.load(run)
    require_run(bot, run, loaded.state)
    summary = report_run(
        bot, project.state.summary(run) or RunSummary(name=run, state=loaded.state, updated="", origin="")
    )
    return Board(
        bot=bot.name,
        run=run,
        project=str(project.root),
        summary=summary,
        columns=_columns(bot, loaded.state, run),
        history=[report_entry(line.entry) for line in project.state.latest_history(run, limit=LONGEST_HISTORY)],
        files=files_of(bot, run),
        notices=(*loaded.notices.recovered, *loaded.notices.inconsistent, *loaded.notices.warnings),
        has_maps=any(True for _ in map_outputs(bot, run)),
    )


def map_outputs(bot: LiveBot, run: str) -> Iterator[str]:
    """The paths of the story maps that the actions of a run write."""
    known = (each for behavior in bot.definition_of(run).behaviors for each in behavior.content.knowledge)
    return (each.output for each in known if isinstance(each.type, StoryGraph))


def require_run(bot: LiveBot, run: str, state: RunState | None = None) -> None:
    """Refuse a run that does not exist. The bot's own run may not have started yet."""
    project = bot.project()
    if run == bot.home(project.root).run or (state or project.load(run).state).version > 0:
        return
    raise NotFound(
        f"`{bot.name}` has no run of this name.",
        code=ErrorCode.RESOURCE_NOT_FOUND,
        instruction="The page Bots lists its runs.",
    )


def files_of(bot: LiveBot, run: str) -> list[DocumentFile]:
    """The documents and pages that the actions of a run make."""
    definition = bot.definition_of(run)
    steps = product(definition.behaviors, bot.plan.actions)
    paths = dict.fromkeys(path for behavior, action in steps for path in produced_files(definition, behavior, action))
    with DirectoryRoot(bot.project().root) as folder:
        return [DocumentFile(path=each, size=_size(folder, each)) for path in paths for each in expand(folder, path)]


def read_document(bot: LiveBot, run: str, path: str) -> str:
    """A file of a run as text. Only files that its actions make are read."""
    require_run(bot, run)
    if not any(each.path == path and each.size is not None for each in files_of(bot, run)):
        raise NotFound(
            "No action of this run makes such a file, or it does not exist yet.",
            code=ErrorCode.RESOURCE_NOT_FOUND,
            instruction="The page of the run lists its documents.",
        )
    with DirectoryRoot(bot.project().root) as folder:
        return folder.read_bytes(path, limit=MAX_FILE).decode("utf-8", "replace")


def difference(bot: LiveBot, run: str, before: int, after: int) -> dict[str, Any]:
    """What differs between two versions of a run, in actions and files."""
    require_run(bot, run)
    return compare(bot, f"{run}@{before}", f"{run}@{after}")


def gate_changes(bots: Sequence[LiveBot], arguments: JsonObject) -> list[FileChange]:
    """The files of a gate, each beside what a human approved there before; none for a bot that is not served here."""
    name, _, rest = str(arguments["action"]).partition(".")
    bot = next((each for each in bots if each.name == name), None)
    if bot is None or str((project := bot.project()).root) != arguments["project"]:
        return []
    run, after = str(arguments["run"]), as_object(arguments["files"])
    lines = (line.entry for line in project.state.latest_history(run, limit=LONGEST_HISTORY))
    last = next((each for each in lines if str(each.position) == rest and each.is_approved and each.files), None)
    approved: Mapping[str, str] = {} if last is None or last.files is None else last.files
    before = {path: approved[known] for path in after if (known := defined_path(path, run)) in approved}
    headings = ("approved before", "now")
    changed = {each["path"]: each for each in changed_files(project.root, before, after, headings=headings)}
    return [_file_change(path, changed.get(path)) for path in sorted(after)]


def _file_change(path: str, found: JsonObject | None) -> FileChange:
    if found is None:
        return FileChange(path=path, change="unchanged")
    lines = found["lines"]
    if lines is None:
        return FileChange(path=path, change=found["change"], note=found["note"])
    note = f"{len(lines) - MAX_LINES:,} more lines" if len(lines) > MAX_LINES else ""
    return FileChange(path=path, change=found["change"], diff="\n".join(lines[2:MAX_LINES]), note=note)


def _size(folder: DirectoryRoot, path: str) -> int | None:
    try:
        return folder.stat(path).size
    except (NotFound, PathNotAllowed):
        return None


def _columns(bot: LiveBot, state: RunState, run: str) -> list[Column]:
    definition, plan = bot.definition_of(run), bot.plan.of(state)
    gates = Gates.of(definition, state)
    people = People(definition=definition, notes=bot.project().state.notes(run))
    first = next(open_gates(plan, state, gates.is_defined), None)
    return [
        Column(
            name=behavior.name,
            about=behavior.goal or behavior.description,
            cards=[
                _card(plan, state, Position(behavior=behavior.name, action=action), gates, people, first)
                for action in plan.actions
                if plan.contains(Position(behavior=behavior.name, action=action))
            ],
        )
        for behavior in definition.behaviors
    ]


def _card(
    plan: Plan, state: RunState, position: Position, gates: Gates, people: People, first: Position | None
) -> Card:
    last = state.latest.get(position)
    return Card(
        action=position.action,
        state=_state_of(plan, state, position, gates),
        is_current=position == state.current and not state.finished,
        gates=_gates_of(state, position, gates),
        waits_for=_waits_for(plan, state, position, gates, first),
        entry=None if last is None else report_entry(last),
        people=people.shown(position),
        comments=comments_on(people.notes, position),
    )


def _state_of(plan: Plan, state: RunState, position: Position, gates: Gates) -> str:
    last = state.latest.get(position)
    if last is None:
        return "skipped" if plan.policy(position) == "skip" else "open"
    if last.kind == "reopened":
        return "reopened"
    return "not approved" if is_open(state, position, gates.is_defined) else last.approval


def _gates_of(state: RunState, position: Position, gates: Gates) -> tuple[str, ...]:
    proof = (A_PERSON,) if is_gate(state, position, gates.is_defined) else ()
    return (*proof, "clean rules") if gates.requires_clean(position) else proof


def _waits_for(plan: Plan, state: RunState, position: Position, gates: Gates, first: Position | None) -> str:
    if first is None or plan.policy(position) == "skip" or not is_open(state, position, gates.is_defined):
        return ""
    if position == first:
        return A_PERSON
    return str(first) if plan.comes_before(first, position) else ""
