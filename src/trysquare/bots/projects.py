"""Configuration of a served bot, and its live state in each project."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trysquare.bots.actions import produced_files
from trysquare.bots.checkout_runs import home_of
from trysquare.bots.definition.check import require_sound_rules
from trysquare.bots.definition.loader import load_bot
from trysquare.bots.definition.model import BotDefinition, Changes, changed_parts, strength_of
from trysquare.bots.proofs import SignedReceipts
from trysquare.bots.run_files import definition_of_run
from trysquare.bots.workflow.machine import Plan, Position, begin
from trysquare.bots.workflow.runs import Loaded, WorkflowRuns
from trysquare.bots.workflow.state_file import MAIN, UnreadableState, is_run_name, parse_state
from trysquare.bots.workflow.sync import NAME, StateFileSync
from trysquare.bots.workflow.transaction import Home
from trysquare.core.approvals import Approvals
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.store import Approvers, project_state
from trysquare.store.workflows import WorkflowStore


@dataclass(frozen=True, kw_only=True, slots=True)
class BotConfig:
    """Which bot is served, for which project, and how strictly."""

    folder: Path
    project: Path
    """Project directory, unless a call names another one."""
    project_from: str = "the working directory"
    """Source of the project directory, for display."""
    project_named: bool = False
    """Whether the project was named explicitly; an unnamed working directory is only proposed."""
    strict: bool = False
    """Whether every close needs proof, and only delivered actions can be closed."""
    approvers: Approvers | None = None
    """Whose signatures close the gates of a strict run."""
    watch: bool = True
    """Whether the definition is reloaded when the bot's folder changes."""


OpenStore: TypeAlias = Callable[[Path], WorkflowStore]
"""Opens the store of one project's runs."""

LEGACY = "project_area"
_MAX_RUNS = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class BotProject:
    """A bot in one project directory."""

    root: Path
    state: WorkflowRuns
    source: str
    """Where the path of the directory comes from."""
    named: bool
    """Whether it was named explicitly, so that state may be written there."""
    outside: bool = False
    """Whether a call named it and it is outside the project that the server was started for."""

    def load(self, run: str) -> Loaded:
        """The state of a run; in an outside directory without state of the bot, a new one."""
        if self.outside and not self._has_state():
            return Loaded(state=begin(self.state.plan))
        return self.state.load(run)

    def is_known(self, loaded: Loaded) -> bool:
        """Whether the bot has worked here before."""
        if loaded.state.version > 0:
            return True
        return (not self.outside or self._has_state()) and self.state.has_runs()

    def _has_state(self) -> bool:
        if project_state(self.root).exists():
            return True
        try:
            parse_state(self.state.plan, (self.root / NAME).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, UnreadableState):
            return False
        return True


class LiveBot:
    """A bot's present definition, and its state in every project that a call named."""

    def __init__(self, config: BotConfig, *, open_store: OpenStore, approvals: Approvals | None) -> None:
        self.config = config
        self.approvals = approvals
        self.definition: BotDefinition = load_bot(config.folder)
        self.plan: Plan = self.definition.plan()
        self.strength = strength_of(self.definition)
        self.proposed: set[tuple[str, str]] = set()
        """Directories that this process proposed, each with a run."""
        self._of_runs: dict[str, BotDefinition] = {}
        self._open_store = open_store
        self._states: dict[Path, WorkflowRuns] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.definition.name

    def reload(self, principal: str = "watch") -> Changes:
        """Reload the definition; an invalid one raises, and the present one stays in use.

        Every reload is audited with the definition's digest, in each project that the bot works in.
        """
        fresh = load_bot(self.config.folder)
        require_sound_rules(fresh)
        with self._lock:
            changes = changed_parts(self.definition, fresh)
            self.definition, self.plan, self.strength = fresh, fresh.plan(), strength_of(fresh)
            self._of_runs = {}
            states = list(self._states.values())
        for state in states:
            state.use_definition(self.plan, self.strength, principal=principal)
        return changes

    def close(self) -> None:
        """Close the stores of all projects."""
        with self._lock:
            states = list(self._states.values())
            self._states = {}
        for state in states:
            state.close()

    def definition_of(self, run: str) -> BotDefinition:
        """The definition with the paths of a run."""
        if run == MAIN or not is_run_name(run):
            return self.definition
        known, definition = self._of_runs, self.definition
        found = known.get(run)
        if found is None:
            found = definition_of_run(definition, run)
            if len(known) < _MAX_RUNS:
                known[run] = found
        return found

    def home(self, root: Path) -> Home:
        """The run of a directory where a call names none."""
        return home_of(root, self.definition.runs)

    def project(self, given: str | None = None) -> BotProject:
        """The bot in the project that a call names, or in the one that the server was started for."""
        config = self.config
        home = config.project.resolve()
        root = home if given is None else _resolve(home, given)
        with self._lock:
            state = self._states.get(root)
            if state is None:
                state = self._states[root] = self._open(root)
        if given is None:
            return BotProject(root=root, state=state, source=config.project_from, named=config.project_named)
        return BotProject(root=root, state=state, source="the call", named=True, outside=not root.is_relative_to(home))

    def _open(self, root: Path) -> WorkflowRuns:
        return WorkflowRuns(
            plan=self.plan,
            store=self._open_store(root),
            sync=StateFileSync(root, self.name, legacy=self.config.folder / LEGACY),
            needs_proof=self._needs_proof,
            strict=self.config.strict,
            strength=self.strength,
            receipts=self.receipts(root),
            home=lambda: self.home(root),
        )

    def receipts(self, root: Path) -> SignedReceipts | None:
        """The signed receipts of this bot in a project directory."""
        approvers = self.config.approvers
        return None if approvers is None else SignedReceipts(root, self.name, approvers, self._produced)

    def _produced(self, position: Position) -> tuple[str, ...]:
        if position not in self.definition.gates:
            return ()
        return produced_files(self.definition, self.definition.behavior(position.behavior), position.action)

    def _needs_proof(self, position: Position) -> bool:
        gate = self.definition.gates.get(position)
        return gate is not None and gate.proof


def _resolve(home: Path, given: str) -> Path:
    if "\0" in given:
        raise InvalidArguments("`project` contains a null character.")
    root = (home / Path(given).expanduser()).resolve()
    if root.is_dir():
        return root
    raise InvalidArguments(
        f"`{root}` is not a directory.",
        code=ErrorCode.RESOURCE_NOT_FOUND,
        instruction="Send the path of an existing directory as `project`, or ask the user to create it.",
    )
