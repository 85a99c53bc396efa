"""Sessions: all programs that are being debugged, each the business of one principal."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping, Sequence

from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import BreakpointSpec
from trysquare.debug.launching import Engine, Launched, LaunchSpec, Surroundings
from trysquare.debug.session import Session, Status
from trysquare.processes.nursery import Nursery

MOST = 20
"""Sessions that one principal may have; the oldest that have ended go first."""


class Sessions:
    """Opens sessions, finds them again, and ends what they started."""

    def __init__(self, nursery: Nursery, engines: Sequence[Engine]) -> None:
        self._nursery = nursery
        self._engines: Mapping[str, Engine] = {engine.language: engine for engine in engines}
        self._sessions: dict[str, Session] = {}
        self._launched: dict[str, Launched] = {}
        self._defaults: dict[str, str] = {}
        self._numbers = itertools.count(1)

    async def start(
        self, language: str, spec: LaunchSpec, *, principal: str, breakpoints: Sequence[BreakpointSpec] = ()
    ) -> Session:
        """Start a program and hold it before its first line, with its breakpoints set."""
        engine = self._engine(language)
        self._make_room(principal)
        session = self._new(language, principal, str(spec.target))
        around = Surroundings(nursery=self._nursery, open_child=self._open_child)
        try:
            launched = await engine.launch(spec, session, around)
            self._launched[session.id] = launched
            session.debugger = launched.debugger
            for breakpoint in breakpoints:
                await session.add_breakpoint(breakpoint)
        except BaseException:
            await self.stop(session)
            raise
        self._defaults[principal] = session.id
        return session

    def find(self, session_id: str | None, *, principal: str) -> Session:
        """The session that is named, or the principal's default. Those of others do not exist."""
        wanted = session_id or self._defaults.get(principal)
        session = None if wanted is None else self._sessions.get(wanted)
        if session is not None and session.principal == principal:
            return session
        known = ", ".join(f"`{each.id}`" for each in self.of(principal))
        raise NotFound(
            "There is no session yet." if wanted is None else f"There is no session `{wanted}`.",
            code=ErrorCode.SESSION_NOT_FOUND,
            instruction=f"Use one of {known}." if known else "Start one with session_start.",
        )

    def of(self, principal: str) -> list[Session]:
        """A principal's sessions, the oldest first."""
        return [session for session in self._sessions.values() if session.principal == principal]

    def switch(self, session: Session) -> None:
        """Make a session the one that is meant where none is named."""
        self._defaults[session.principal] = session.id

    async def stop(self, session: Session, *, kill: bool = True) -> None:
        """End a session: the program with it, or not."""
        launched = self._launched.pop(session.id, None)
        if launched is not None:
            await launched.debugger.disconnect(kill=kill)
            launched.close()
            if launched.child is not None and kill:
                await self._nursery.end(launched.child, grace=0.3)
        session.drop_tasks()
        self._sessions.pop(session.id, None)
        if self._defaults.get(session.principal) == session.id:
            left = self.of(session.principal)
            self._defaults.pop(session.principal)
            if left:
                self._defaults[session.principal] = left[-1].id

    async def close(self) -> None:
        """End all of them."""
        for session in list(self._sessions.values()):
            try:
                await self.stop(session)
            except (ConnectionLost, RequestFailed):
                continue

    def _engine(self, language: str) -> Engine:
        engine = self._engines.get(language)
        if engine is None:
            raise ToolError(
                f"There is no debugger for `{language}`.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction=f"Languages are {', '.join(self._engines)}.",
            )
        return engine

    def _new(self, language: str, principal: str, title: str) -> Session:
        session_id = f"{language}-{next(self._numbers)}-{secrets.token_hex(3)}"
        session = Session(session_id=session_id, language=language, principal=principal, title=title)
        self._sessions[session.id] = session
        return session

    def _open_child(self, parent: Session, title: str) -> Session:
        return self._new(parent.language, parent.principal, f"{title} ({parent.id})")

    def _make_room(self, principal: str) -> None:
        mine = self.of(principal)
        ended = [session for session in mine if session.status is Status.TERMINATED]
        for session in ended[: max(0, len(mine) - MOST + 1)]:
            self._sessions.pop(session.id, None)
        if len(self.of(principal)) >= MOST:
            raise ToolError(
                f"There are {MOST} sessions under way already.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="End one with `session stop`.",
            )
