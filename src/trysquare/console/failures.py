"""Explanations that a person asks for: each runs one test through the debugger's service, as `trysquare explain`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trysquare.console.runs import OwnedRun, OwnedRuns
from trysquare.console.sessions import Session
from trysquare.core.call import guard_crash
from trysquare.core.context import local_principal
from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError

if TYPE_CHECKING:
    from trysquare.debug.explain.annotations import Report

_KEPT = 20
"""Explanations that are kept."""
_AT_ONCE = 2
"""Explanations that run at the same time, each with processes of its own."""
LONGEST_TARGET = 2_000


@dataclass(kw_only=True, eq=False)
class Failure(OwnedRun):
    """One explanation, and what is known of it."""

    target: str
    report: Report | None = None
    error: ToolError | None = None


class Failures(OwnedRuns[Failure]):
    """The explanations of one console."""

    def __init__(self, project: Path, announce: Callable[[str], None]) -> None:
        super().__init__("explanation", kept=_KEPT)
        self._project, self._announce = project.resolve(), announce

    def start(self, target: str, session: Session) -> Failure:
        """Begin to explain a test. Raises `ToolError` for who may not, and for one too many."""
        require_local(session)
        if not target.strip() or len(target) > LONGEST_TARGET or "\0" in target:
            raise InvalidArguments(
                "There is no test or command to explain.", instruction="Name a test, such as tests/test_x.py::test_y."
            )
        if self.count_running() >= _AT_ONCE:
            raise InvalidArguments(
                "Other explanations still run.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Wait until one has ended, or cancel it.",
            )
        failure = Failure(owner=session.id, target=target.strip())
        self.begin(failure, self._run(failure))
        return failure

    async def _run(self, failure: Failure) -> None:
        try:
            work = _explain(failure.target, self._project)
            failure.report = await guard_crash("The explanation", work, arguments=failure.target)
        except ToolError as error:
            failure.error = error
        except asyncio.CancelledError:
            failure.is_cancelled = True
        finally:
            failure.seconds = time.monotonic() - failure.began
            self._announce(f"failure-{failure.id}")


async def _explain(target: str, root: Path) -> Report:
    """Run a test or command once in a project and explain why it fails. Raises `ToolError`."""
    # Imported here: the debugger loads only for who asks for it.
    from trysquare.debug.explain.annotations import report_of
    from trysquare.debug.explain.native import explain_target
    from trysquare.debug.explain.recording import TIMEOUT
    from trysquare.debug.provider import open_service
    from trysquare.debug.service import DebugConfig
    from trysquare.debug.sessions.launch import read_target
    from trysquare.debug.tools.recording import explain_result

    async with open_service(DebugConfig(root=root)) as service:
        asked = read_target(target, root)
        explained = await explain_target(
            asked, root, service.supervisor, timeout=TIMEOUT, sessions=service.sessions, principal="console"
        )
    result = explain_result(explained, root, str(asked), full=True)
    return report_of(explained, root, summary=str(result.value), warnings=result.warnings)


def require_local(session: Session) -> None:
    """Refuse a program to the holder of a token: only the user of this machine starts one here."""
    if session.principal != local_principal():
        raise ToolError(
            "Programs are started by whoever signed in with the link of the terminal.",
            code=ErrorCode.PERMISSION_DENIED,
            instruction="Open the link, or run the command in a terminal of the machine.",
        )
