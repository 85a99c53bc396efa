"""LiveBot: a bot as it is served, and the projects that it works in."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trysquare.bots.config import BotConfig
from trysquare.bots.definition import BotDefinition, Changes, changed_parts
from trysquare.bots.loading import load_bot
from trysquare.bots.plan import Plan, Position
from trysquare.bots.run_files import definition_of_run
from trysquare.bots.scanning.self_test import require_sound_rules
from trysquare.bots.state import BotState, Loaded
from trysquare.bots.state_file import MAIN, UnreadableState, is_run_name, parse_state
from trysquare.bots.strength import strength_of
from trysquare.bots.window import NAME, ProjectWindow
from trysquare.bots.workflow import begin
from trysquare.core.consent import Approvals
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.store.location import project_state
from trysquare.store.workflow import WorkflowStore

OpenStore: TypeAlias = Callable[[Path], WorkflowStore]
"""Opens the store that keeps the runs of one project."""

LEGACY = "project_area"
_MOST_RUNS = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A folder in which a bot is to work, and how it came to be named."""

    root: Path
    source: str
    named: bool
    """Whether somebody named it, so that state may be written there."""
    outside: bool = False
    """Whether a call named it and it lies outside the project that the server was started for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BotProject:
    """A bot in one project."""

    place: Place
    state: BotState

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.place.root

    def load(self, run: str) -> Loaded:
        """Where a run stands; in a folder that a call named and that holds nothing of the bot, at the beginning."""
        if self.place.outside and not self._holds_state():
            return Loaded(state=begin(self.state.plan))
        return self.state.load(run)

    def is_known(self, loaded: Loaded) -> bool:
        """Whether the bot has worked here before."""
        if loaded.state.version > 0:
            return True
        return (not self.place.outside or self._holds_state()) and bool(self.state.runs())

    def _holds_state(self) -> bool:
        if project_state(self.root).exists():
            return True
        window = self.root / NAME
        try:
            parse_state(self.state.plan, window.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, UnreadableState):
            return False
        return True


class LiveBot:
    """A bot's definition of the moment, and its state in every project that a call named."""

    def __init__(self, config: BotConfig, *, open_store: OpenStore, approvals: Approvals | None) -> None:
        self.config = config
        self.approvals = approvals
        self.definition: BotDefinition = load_bot(config.folder)
        self.plan: Plan = self.definition.plan()
        self.strength = strength_of(self.definition)
        self.proposed: set[tuple[str, str]] = set()
        """The folders, each with a run, that this process proposed to work in."""
        self._of_runs: dict[str, BotDefinition] = {}
        self._open_store = open_store
        self._states: dict[Path, BotState] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """What its tools begin with."""
        return self.definition.name

    def reload(self, principal: str = "watch") -> Changes:
        """Read the folder again; a folder that is wrong raises, and the definition before it stays.

        Every reading is audited with the definition's digest, in each project that the bot works in.
        """
        fresh = load_bot(self.config.folder)
        require_sound_rules(fresh)
        with self._lock:
            changes = changed_parts(self.definition, fresh)
            self.definition, self.plan, self.strength = fresh, fresh.plan(), strength_of(fresh)
            self._of_runs = {}
            states = list(self._states.values())
        for state in states:
            state.use(self.plan, self.strength, principal=principal)
        return changes

    def definition_of(self, run: str) -> BotDefinition:
        """The definition with the paths of a run."""
        if run == MAIN or not is_run_name(run):
            return self.definition
        known, definition = self._of_runs, self.definition
        found = known.get(run)
        if found is None:
            found = definition_of_run(definition, run)
            if len(known) < _MOST_RUNS:
                known[run] = found
        return found

    def project(self, given: str | None = None) -> BotProject:
        """The bot in the project that a call names, or in the one that the server was started for."""
        place = self.place(given)
        with self._lock:
            state = self._states.get(place.root)
            if state is None:
                state = self._states[place.root] = self._opened(place.root)
        return BotProject(place=place, state=state)

    def place(self, given: str | None) -> Place:
        """The folder that is meant."""
        home = self.config.project.resolve()
        if given is None:
            return Place(root=home, source=self.config.project_from, named=self.config.project_named)
        root = _folder(home, given)
        return Place(root=root, source="the call", named=True, outside=root != home and not root.is_relative_to(home))

    def _opened(self, root: Path) -> BotState:
        window = ProjectWindow(root, self.name, legacy=self.config.folder / LEGACY)
        return BotState(
            plan=self.plan,
            store=self._open_store(root),
            window=window,
            needs_proof=self._needs_proof,
            strict=self.config.strict,
            strength=self.strength,
        )

    def _needs_proof(self, position: Position) -> bool:
        gate = self.definition.gates.get(position)
        return gate is not None and gate.proof


def _folder(home: Path, given: str) -> Path:
    if "\0" in given:
        raise InvalidArguments("`project` holds a character that no path can have.")
    root = (home / Path(given).expanduser()).resolve()
    if root.is_dir():
        return root
    raise InvalidArguments(
        f"There is no folder `{root}`.",
        code=ErrorCode.RESOURCE_NOT_FOUND,
        instruction="Name a folder that exists as `project`, or ask the person to make it.",
    )
