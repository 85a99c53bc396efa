"""Two people with a clone each, two branches, and two runs, with git underneath.

Beside them stands a model: what was completed by whom, in which run. Nothing is shared that should not be, and nothing
is lost in a merge.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.bots.faults.desk import BOT, PLAN, Desk
from tests.bots.git_checkouts import commit, git, repository
from tests.support import size
from trysquare.bots.checkout_runs import home_of
from trysquare.bots.workflow.runs import WorkflowRuns, open_workflows
from trysquare.bots.workflow.sync import StateFileSync

PEOPLE = st.sampled_from([0, 1])
BRANCHES = st.sampled_from(["main", "fix"])
PATHS = st.sampled_from([f"{behavior}.{action}" for behavior in PLAN.behaviors for action in PLAN.actions])
OWN = "own"
"""A run that each person names, beside those of the branches."""


def opened(project: Path) -> Desk:
    """A bot with a run for each branch."""
    state = WorkflowRuns(
        plan=PLAN,
        store=open_workflows(None, project),
        sync=StateFileSync(project, BOT),
        home=lambda: home_of(project, "branch"),
    )
    return Desk(project, state)


class Teams(RuleBasedStateMachine):
    """Work, branches, and merges in both directions."""

    @initialize()
    def begin(self) -> None:
        memory = Path("/dev/shm")
        self.folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
        repository(self.folder / "0")
        git(self.folder, "clone", "-q", "0", "1")
        self.desks = [opened(self.folder / str(number)) for number in (0, 1)]
        self.at = ["main", "main"]
        self.done: dict[tuple[int, str], frozenset[str]] = {}
        self.branches = {(0, "main"), (1, "main")}

    def teardown(self) -> None:
        if hasattr(self, "desks"):
            for desk in self.desks:
                desk.state.close()
            shutil.rmtree(self.folder)

    def run_of(self, person: int, run: str | None) -> tuple[str, tuple[int, str]]:
        """The name of a run, and where the model has it."""
        if run == OWN:
            return OWN, (person, OWN)
        return home_of(self.desks[person].project, "branch").run, (person, self.at[person])

    def known(self, key: tuple[int, str]) -> frozenset[str]:
        return self.done.get(key, frozenset())

    @rule(person=PEOPLE, run=st.sampled_from([None, OWN]))
    def close(self, person: int, run: str | None) -> None:
        name, key = self.run_of(person, run)
        before = self.desks[person].load(name).state
        if not before.finished:
            self.desks[person].close(run=name)
            self.done[key] = self.known(key) | {str(before.current)}

    @rule(person=PEOPLE, path=PATHS, run=st.sampled_from([None, OWN]))
    def open(self, person: int, path: str, run: str | None) -> None:
        name, key = self.run_of(person, run)
        if path not in self.known(key):
            self.desks[person].open(path, run=name)

    @rule(person=PEOPLE, branch=BRANCHES)
    def switch(self, person: int, branch: str) -> None:
        project = self.desks[person].project
        commit(project)
        if (person, branch) not in self.branches:
            git(project, "switch", "-q", "-c", branch)
            self.branches.add((person, branch))
            self.done[person, branch] = self.known((person, self.at[person]))
        else:
            git(project, "switch", "-q", branch)
        self.at[person] = branch

    @rule(person=PEOPLE)
    def pull(self, person: int) -> None:
        """Merge what the other person has committed on the same branch."""
        other, branch = 1 - person, self.at[person]
        if (other, branch) not in self.branches:
            return
        if self.at[other] == branch:
            commit(self.desks[other].project)
        commit(self.desks[person].project)
        project = self.desks[person].project
        git(project, "pull", "-q", "--no-rebase", str(self.desks[other].project), branch, fails=True)
        self.done[person, branch] = self.known((person, branch)) | self.known((other, branch))
        self.read_merged(person)

    def read_merged(self, person: int) -> None:
        """The next call reads the merged file, which is never set aside as unreadable."""
        desk = self.desks[person]
        desk.load(self.run_of(person, None)[0])
        assert not [*desk.project.glob("workflow_state.json.*")]
        commit(desk.project)

    @rule(person=PEOPLE)
    def merge(self, person: int) -> None:
        """Merge the other branch."""
        other = "fix" if self.at[person] == "main" else "main"
        if (person, other) not in self.branches:
            return
        project = self.desks[person].project
        commit(project)
        git(project, "merge", "-q", other, fails=True)
        own = (person, self.at[person])
        self.done[own] = self.known(own) | self.known((person, other))
        self.read_merged(person)

    @rule(person=PEOPLE)
    def start_again(self, person: int) -> None:
        """Another process goes on."""
        self.desks[person].state.close()
        self.desks[person] = opened(self.desks[person].project)

    @invariant()
    def everything_is_where_it_was_done(self) -> None:
        for person, desk in enumerate(getattr(self, "desks", [])):
            for run in (None, OWN):
                name, key = self.run_of(person, run)
                state = desk.load(name).state
                found = {str(each) for each in state.latest if state.is_completed(each)}
                assert found == self.known(key), (person, name)


@pytest.mark.timeout(3600)
def test_two_people_on_two_branches_with_two_runs_lose_and_share_nothing() -> None:
    run_state_machine_as_test(
        Teams,
        settings=settings(
            max_examples=size(6, 150),
            stateful_step_count=size(14, 40),
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )
