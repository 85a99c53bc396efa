"""Sessions: all programs that are being debugged, each the business of one principal."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass

from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.debug.dap.client import ConnectionLost, RequestFailed
from trysquare.debug.debugger import BreakpointSpec, Lost
from trysquare.debug.launching import AttachSpec, Engine, Launched, SessionSpec, Surroundings
from trysquare.debug.session import Session, Status
from trysquare.processes.guardian import look_up
from trysquare.processes.nursery import Nursery

MOST = 20
"""Sessions that one principal may have; the oldest that have ended go first."""
MOST_CHILDREN = 32
"""Processes that a program may have under the debugger at once. One that starts more is ended: it may never stop."""
ENDED_CHILDREN_KEPT = 8
_LAST_WORK = 10.0
"""Seconds that work beside the sessions has left once they are closed, such as waiting for an injector to end."""
_ID = re.compile(r"[\w.-]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Begun:
    """How a session was begun, and what it holds on to."""

    spec: SessionSpec
    launched: Launched | None = None


class Sessions:
    """Opens sessions, finds them again, and ends what they started."""

    def __init__(self, nursery: Nursery, engines: Sequence[Engine], *, shows_secrets: bool = False) -> None:
        self._shows_secrets = shows_secrets
        self._nursery = nursery
        self._engines: Mapping[str, Engine] = {engine.language: engine for engine in engines}
        # By principal and name, so that one principal's names say nothing about another's.
        self._sessions: dict[tuple[str, str], Session] = {}
        self._begun: dict[tuple[str, str], _Begun] = {}
        self._defaults: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(
        self,
        language: str,
        spec: SessionSpec,
        *,
        principal: str,
        breakpoints: Sequence[BreakpointSpec] = (),
        session_id: str | None = None,
    ) -> Session:
        """Start a program, or take hold of one, and hold it with its breakpoints set until it is let go."""
        engine = self._engine(language)
        self._make_room(principal)
        if isinstance(spec, AttachSpec) and spec.pid is not None:
            self._require_own(spec.pid, principal)
        session = Session(
            session_id=session_id or f"{language}-{next(self._numbers)}-{secrets.token_hex(3)}",
            language=language,
            principal=principal,
            title=spec.title,
        )
        self._require_free(session)
        session.root = spec.root
        await self._begin(engine, spec, session, breakpoints)
        return session

    async def restart(self, session: Session, *, keep_breakpoints: bool = True) -> Session:
        """The same program from its beginning, under the same name; it is held until it is let go."""
        begun = self._begun.get(_key(session))
        if begun is None or isinstance(begun.spec, AttachSpec):
            raise ToolError(
                f"Session `{session.id}` did not start its program, so it cannot start it again.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction="Attach again with session_start, or restart the session of the program's parent.",
            )
        fresh = session.successor()
        await self.stop(session)
        kept = [each.spec for each in session.breakpoints] if keep_breakpoints else []
        await self._begin(self._engine(session.language), begun.spec, fresh, kept)
        if keep_breakpoints:
            await fresh.rules.take_over(session.rules)
        return fresh

    def find(self, session_id: str | None, *, principal: str) -> Session:
        """The session that is named, or the principal's default. Those of others do not exist."""
        wanted = session_id or self._defaults.get(principal)
        session = None if wanted is None else self._sessions.get((principal, wanted))
        if session is not None:
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

    def default_of(self, principal: str) -> str | None:
        """The name of the session that is meant where none is named."""
        return self._defaults.get(principal)

    def switch(self, session: Session) -> None:
        """Make a session the one that is meant where none is named."""
        self._defaults[session.principal] = session.id

    def is_attached(self, session: Session) -> bool:
        """Whether the program was running before, so that letting go of it does not end it."""
        begun = self._begun.get(_key(session))
        return begun is not None and isinstance(begun.spec, AttachSpec)

    async def stop(self, session: Session) -> None:
        """End a session, and its program with it unless it was only attached to."""
        kill = not self.is_attached(session)
        for child in self._children(session):
            self._forget(child)
        begun = self._begun.get(_key(session))
        if begun is not None and begun.launched is not None:
            await begun.launched.debugger.disconnect(kill=kill)
        elif session.parent is not None and session.status is not Status.TERMINATED:
            await session.debugger.disconnect(kill=True)
        await self._release(session)
        self._forget(session)

    def cleanup(self, principal: str) -> list[Session]:
        """Forget the sessions whose programs have ended, and tell which they were."""
        ended = [session for session in self.of(principal) if session.status is Status.TERMINATED]
        for session in ended:
            self._forget(session)
        return ended

    async def close(self) -> None:
        """End all of them."""
        for session in list(self._sessions.values()):
            try:
                await self.stop(session)
            except (ConnectionLost, RequestFailed, ToolError):
                # Its debugger is gone, or was never there; the nursery ends what it started.
                continue
        if self._tasks:
            _, unfinished = await asyncio.wait(self._tasks, timeout=_LAST_WORK)
            for task in unfinished:
                # It waits for a process that does not end by itself, which the nursery ends.
                task.cancel()

    async def _begin(
        self, engine: Engine, spec: SessionSpec, session: Session, breakpoints: Sequence[BreakpointSpec]
    ) -> None:
        self._sessions[_key(session)] = session
        self._begun[_key(session)] = _Begun(spec=spec)
        around = Surroundings(
            nursery=self._nursery, open_child=self._open_child, keep=self._keep, shows_secrets=self._shows_secrets
        )
        try:
            if isinstance(spec, AttachSpec):
                launched = await engine.attach(spec, session, around)
            else:
                launched = await engine.launch(spec, session, around)
            self._begun[_key(session)] = _Begun(spec=spec, launched=launched)
            launched.debugger.shows_secrets = self._shows_secrets
            session.debugger = launched.debugger
            session.on_end = lambda: self._keep(self._reap(session))
            for breakpoint in breakpoints:
                await session.add_breakpoint(breakpoint)
        except (RequestFailed, ConnectionLost, TimeoutError) as error:
            await self.stop(session)
            raise ToolError(
                f"The debugger was not ready: {error or 'no answer in time'}.",
                code=ErrorCode.SESSION_START_FAILED,
                instruction="Check the breakpoints and the target; the output may say more.",
                fields={"output": session.output.tail()},
            ) from None
        except BaseException:
            await self.stop(session)
            raise
        self._defaults[session.principal] = session.id

    async def _reap(self, session: Session) -> None:
        """A program has ended: let go of its port and end what it left, once its children have ended too."""
        root = self._sessions.get((session.principal, session.parent or session.id))
        if root is None or root.status is not Status.TERMINATED:
            return
        if all(child.status is Status.TERMINATED for child in self._children(root)):
            await self._release(root)

    async def _release(self, session: Session) -> None:
        """Close what a session's engine keeps open, and end its process."""
        begun = self._begun.get(_key(session))
        if begun is None or begun.launched is None:
            return
        launched = begun.launched
        self._begun[_key(session)] = _Begun(spec=begun.spec)
        launched.close()
        if launched.child is not None:
            await self._nursery.end(launched.child, grace=0.3)

    def _forget(self, session: Session) -> None:
        session.drop_tasks()
        self._sessions.pop(_key(session), None)
        self._begun.pop(_key(session), None)
        if self._defaults.get(session.principal) == session.id:
            self._defaults.pop(session.principal)
            if left := self.of(session.principal):
                self._defaults[session.principal] = left[-1].id

    def _engine(self, language: str) -> Engine:
        engine = self._engines.get(language)
        if engine is None:
            raise ToolError(
                f"There is no debugger for `{language}`.",
                code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
                instruction=f"Languages are {', '.join(self._engines)}.",
            )
        return engine

    def _children(self, session: Session) -> list[Session]:
        return [each for each in self.of(session.principal) if each.parent == session.id]

    def _open_child(self, parent: Session, title: str) -> Session | None:
        children = self._children(parent)
        ended = [child for child in children if child.status is Status.TERMINATED]
        for child in ended[:-ENDED_CHILDREN_KEPT]:
            self._forget(child)
        if len(children) - len(ended) >= MOST_CHILDREN:
            self._keep(self._end_overrun(parent))
            return None
        session_id = f"{parent.id}.{next(self._numbers)}"
        session = Session(session_id=session_id, language=parent.language, principal=parent.principal, title=title)
        session.parent, session.root = parent.id, parent.root
        session.allows_side_effects, session.subscribed = parent.allows_side_effects, parent.subscribed
        session.on_end = lambda: self._keep(self._reap(session))
        session.on_stop = lambda: parent.hear_child_stop(session)
        self._sessions[_key(session)] = session
        return session

    async def _end_overrun(self, session: Session) -> None:
        """A program starts processes without end: it is ended, with all of them, before the machine is full of them."""
        reason = f"it had {MOST_CHILDREN} processes at once and started more, so it was ended"
        for each in (session, *self._children(session)):
            each.hear(Lost(reason=reason))
        await self._release(session)

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _require_free(self, session: Session) -> None:
        if not _ID.fullmatch(session.id):
            raise InvalidArguments(
                f"`{session.id}` is no name for a session.", instruction="Use letters, digits, `.`, `_` and `-`."
            )
        if _key(session) in self._sessions:
            raise ToolError(
                f"There is a session `{session.id}` already.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Use another session_id, or `session restart`.",
            )

    def _require_own(self, pid: int, principal: str) -> None:
        """A program that is debugged already is nobody's to attach to, whoever debugs it."""
        found = look_up(pid)
        for (owner, name), begun in self._begun.items():
            child = begun.launched.child if begun.launched else None
            if found is not None and child is not None and found.session == child.pid:
                mine = f" in session `{name}`" if owner == principal else ""
                raise ToolError(
                    f"Process {pid} is under a debugger already{mine}.",
                    code=ErrorCode.STATE_CONFLICT,
                    instruction="Use that session." if mine else "Attach to a process of your own.",
                )

    def _make_room(self, principal: str) -> None:
        mine = [session for session in self.of(principal) if session.parent is None]
        ended = [session for session in mine if session.status is Status.TERMINATED]
        for session in ended[: max(0, len(mine) - MOST + 1)]:
            self._forget(session)
        if len([session for session in self.of(principal) if session.parent is None]) >= MOST:
            raise ToolError(
                f"There are {MOST} sessions under way already.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="End one with `session stop`.",
            )


def _key(session: Session) -> tuple[str, str]:
    return session.principal, session.id
