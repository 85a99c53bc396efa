"""The state file and its approvals, opened when something first needs them."""

from __future__ import annotations

import shlex
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trysquare.core.consent import ConsentDecision, ConsentRequest
from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.store.database import Database, open_database
from trysquare.store.location import project_state, user_state

if TYPE_CHECKING:
    from trysquare.store.approvals import StoredApprovals


class LazyState:
    """The state file, opened when something first needs it: listing tools leaves no trace on the disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._database: Database | None = None
        self._lock = threading.Lock()

    def database(self) -> Database:
        """The open state file."""
        with self._lock:
            if self._database is None:
                self._database = open_database(self.path)
            return self._database

    def needed_database(self) -> Database:
        """The open state file, for a call that cannot do without it."""
        try:
            return self.database()
        except ConfigurationError as error:
            raise ToolError(
                f"The call needs its state file, which is not to be had: {error}",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="Tell the person; once they mended it, the same call can be sent again.",
            ) from error

    def close(self) -> None:
        """Let go of the file, if it was opened."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None


def project_approvals(project: Path) -> LazyApprovals:
    """The approvals of a project, for servers that are built in Python: `trysquare approve` finds them there."""
    return LazyApprovals(LazyState(project_state(project)))


class LazyApprovals:
    """What a consent check asks of the store, with the state file opened at the first question."""

    def __init__(self, state: LazyState) -> None:
        self._state = state

    def decide(self, request: ConsentRequest, *, open_code: bool) -> ConsentDecision:
        decision = self._approvals().decide(request, open_code=open_code)
        if decision.code is None or self._state.path == user_state():
            return decision
        # The person's terminal may be in any folder: the command names the project whose state holds the code.
        project = shlex.quote(str(self._state.path.parent.parent.resolve()))
        return replace(decision, command=f"trysquare approve {decision.code} --project {project}")

    def ticket(self, *, continued: bool = False) -> str:
        return self._approvals().ticket(continued=continued)

    def answer(self, request: ConsentRequest, *, ticket: str, approved: bool, by: str, how: str) -> bool:
        return self._approvals().answer(request, ticket=ticket, approved=approved, by=by, how=how)

    def _approvals(self) -> StoredApprovals:
        from trysquare.store.approvals import StoredApprovals

        return StoredApprovals(self._state.needed_database())
