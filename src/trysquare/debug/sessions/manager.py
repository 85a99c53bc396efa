"""DebugSessionRegistry: start, find, restart and stop sessions, per principal."""

from __future__ import annotations

import itertools
import re
import secrets
from collections.abc import Mapping, Sequence

from trysquare.core.concurrency import BackgroundTasks
from trysquare.core.errors import ErrorCode, InvalidArguments, NotFound, ToolError
from trysquare.debug.debugger import DEBUGGER_ERRORS, BreakpointSpec, Disconnected, RequestFailed, unsupported
from trysquare.debug.sessions.launch import AttachSpec, DebugAdapter, LaunchedProgram, LaunchEnvironment, SessionSpec
from trysquare.debug.sessions.session import DebugSession, Status
from trysquare.net.rpc import ConnectionLost
from trysquare.processes.reaper import look_up
from trysquare.processes.supervisor import ProcessSupervisor

MOST = 20
"""Sessions per principal; the oldest ended ones are dropped first."""
MOST_CHILDREN = 32
"""Child processes under the debugger at once. A program that starts more is ended: it may never stop."""
MAX_ENDED_CHILDREN = 8
_CLOSE_TIMEOUT = 10.0
"""Seconds for background tasks on close, such as waiting for an injector to end."""
_ID = re.compile(r"[\w.-]{1,64}")


class DebugSessionRegistry:
    def __init__(
        self,
        supervisor: ProcessSupervisor,
        adapters: Mapping[str, DebugAdapter],
        *,
        shows_secrets: bool = False,
        chosen: Mapping[str, str] | None = None,
    ) -> None:
        self._shows_secrets = shows_secrets
        self.chosen: Mapping[str, str] = chosen or {}
        """Versions or paths of debuggers, by the names of their packages."""
        self._supervisor = supervisor
        self._adapters = adapters
        # By principal and id, so that ids reveal nothing about other principals.
        self._sessions: dict[tuple[str, str], DebugSession] = {}
        self._specs: dict[tuple[str, str], SessionSpec] = {}
        self._launched: dict[tuple[str, str], LaunchedProgram] = {}
        self.defaults: dict[str, str] = {}
        """By principal, the id of the session that is used without a session_id."""
        self._numbers = itertools.count(1)
        self._background = BackgroundTasks()

    async def start(
        self,
        language: str,
        spec: SessionSpec,
        *,
        principal: str,
        breakpoints: Sequence[BreakpointSpec] = (),
        exceptions: Sequence[str] | None = None,
        session_id: str | None = None,
    ) -> DebugSession:
        """Start a program, or attach to one, and set its breakpoints; it is stopped until `go`.

        `exceptions` are filters of the debugger; None means its own choice.
        """
        adapter = self._adapter(language)
        self._enforce_limit(principal)
        if isinstance(spec, AttachSpec):
            _require_pid_or_port(spec)
            self._require_undebugged(spec.pid, principal)
        session = DebugSession(
            session_id=session_id or f"{language}-{next(self._numbers)}-{secrets.token_hex(3)}",
            language=language,
            principal=principal,
            title=spec.title,
            root=spec.root,
        )
        self._require_free(session)
        await self._begin(adapter, spec, session, breakpoints, exceptions)
        return session

    async def restart(self, session: DebugSession, *, keep_breakpoints: bool = True) -> DebugSession:
        spec = self._specs.get(_key(session))
        if spec is None or isinstance(spec, AttachSpec):
            raise unsupported(
                f"Session `{session.id}` was attached to its program, so it cannot restart it.",
                "Attach again with session_start, or restart the session of the program's parent.",
            )
        fresh = session.successor(session.id, session.title)
        fresh.history = session.history
        await self.stop(session)
        breakpoints = [each.spec for each in session.breakpoints] if keep_breakpoints else []
        await self._begin(self._adapter(session.language), spec, fresh, breakpoints)
        if keep_breakpoints:
            await fresh.rules.copy_from(session.rules)
        return fresh

    def find(self, session_id: str | None, *, principal: str) -> DebugSession:
        """A session of the principal by its id, or the default one."""
        wanted = session_id or self.defaults.get(principal)
        session = None if wanted is None else self._sessions.get((principal, wanted))
        if session is not None:
            return session
        known = ", ".join(f"`{each.id}`" for each in self.of(principal))
        raise NotFound(
            "No session is active." if wanted is None else f"Unknown session `{wanted}`.",
            code=ErrorCode.SESSION_NOT_FOUND,
            instruction=f"Use one of {known}." if known else "Start one with session_start.",
        )

    def of(self, principal: str) -> list[DebugSession]:
        """A principal's sessions, the oldest first."""
        return [session for session in self._sessions.values() if session.principal == principal]

    def is_attached(self, session: DebugSession) -> bool:
        """Whether the program was running before, so that stopping the session does not end it."""
        return isinstance(self._specs.get(_key(session)), AttachSpec)

    async def stop(self, session: DebugSession) -> None:
        """End a session, and its program unless it was attached to."""
        kill = not self.is_attached(session)
        for child in self._children(session):
            self._drop(child)
        if (launched := self._launched.get(_key(session))) is not None:
            await launched.debugger.disconnect(kill=kill)
        elif session.parent is not None and session.status is not Status.TERMINATED:
            await session.debugger.disconnect(kill=True)
        await self._release(session)
        self._drop(session)

    def cleanup(self, principal: str) -> list[DebugSession]:
        """Drop the sessions whose programs have ended, and return them."""
        ended = [session for session in self.of(principal) if session.status is Status.TERMINATED]
        for session in ended:
            self._drop(session)
        return ended

    async def close(self) -> None:
        for session in list(self._sessions.values()):
            try:
                await self.stop(session)
            except (ConnectionLost, RequestFailed, ToolError):
                # Its debugger is gone, or was never connected; the supervisor ends its processes.
                continue
        await self._background.wait(_CLOSE_TIMEOUT)
        # The rest waits for processes that the supervisor ends.
        self._background.cancel()

    async def _begin(
        self,
        adapter: DebugAdapter,
        spec: SessionSpec,
        session: DebugSession,
        breakpoints: Sequence[BreakpointSpec],
        exceptions: Sequence[str] | None = None,
    ) -> None:
        self._sessions[_key(session)] = session
        self._specs[_key(session)] = spec
        environment = LaunchEnvironment(
            session=session,
            supervisor=self._supervisor,
            open_child=self._open_child,
            run_in_background=self._background.start,
            shows_secrets=self._shows_secrets,
            chosen=self.chosen,
        )
        try:
            is_attach = isinstance(spec, AttachSpec)
            launched = await (adapter.attach(spec, environment) if is_attach else adapter.launch(spec, environment))
            self._launched[_key(session)] = launched
            launched.debugger.shows_secrets = self._shows_secrets
            session.debugger = launched.debugger
            session.on_end = lambda: self._background.start(self._reap(session))
            session.send_input = launched.send_input
            await session.add_breakpoints(breakpoints)
            if exceptions is not None:
                await session.rules.stop_at_exceptions(exceptions)
        except DEBUGGER_ERRORS as error:
            await self.stop(session)
            raise ToolError(
                f"The debugger did not become ready: {error or 'timeout'}.",
                code=ErrorCode.SESSION_START_FAILED,
                instruction="Check the breakpoints and the target, and read `output`.",
                fields={"output": session.output.tail()},
            ) from None
        except BaseException:
            await self.stop(session)
            raise
        self.defaults[session.principal] = session.id

    async def _reap(self, session: DebugSession) -> None:
        """Release an ended program once its children have ended too."""
        root = self._sessions.get((session.principal, session.parent or session.id))
        if root is None or root.status is not Status.TERMINATED:
            return
        if all(child.status is Status.TERMINATED for child in self._children(root)):
            await self._release(root)

    async def _release(self, session: DebugSession) -> None:
        """Close the resources of a session's adapter and end its process."""
        if (launched := self._launched.pop(_key(session), None)) is None:
            return
        launched.close()
        if launched.child is not None:
            await self._supervisor.end(launched.child, grace=0.3)

    def _drop(self, session: DebugSession) -> None:
        session.cancel_tasks()
        self._sessions.pop(_key(session), None)
        self._specs.pop(_key(session), None)
        self._launched.pop(_key(session), None)
        if self.defaults.get(session.principal) == session.id:
            self.defaults.pop(session.principal)
            if left := self.of(session.principal):
                self.defaults[session.principal] = left[-1].id

    def _adapter(self, language: str) -> DebugAdapter:
        adapter = self._adapters.get(language)
        if adapter is None:
            raise unsupported(f"Unknown language `{language}`.", f"Use one of {', '.join(self._adapters)}.")
        return adapter

    def _children(self, session: DebugSession) -> list[DebugSession]:
        return [each for each in self.of(session.principal) if each.parent == session.id]

    def _open_child(self, parent: DebugSession, title: str) -> DebugSession | None:
        children = self._children(parent)
        ended = [child for child in children if child.status is Status.TERMINATED]
        for child in ended[:-MAX_ENDED_CHILDREN]:
            self._drop(child)
        if len(children) - len(ended) >= MOST_CHILDREN:
            self._background.start(self._end_overrun(parent))
            return None
        session = parent.successor(f"{parent.id}.{next(self._numbers)}", title)
        session.parent = parent.id
        session.on_end = lambda: self._background.start(self._reap(session))
        session.on_stop = lambda: parent.on_child_stop(session)
        self._sessions[_key(session)] = session
        return session

    async def _end_overrun(self, session: DebugSession) -> None:
        """End a program that starts processes without limit, with all of them."""
        reason = f"it was ended because it started more than {MOST_CHILDREN} processes at once"
        for each in (session, *self._children(session)):
            each.receive(Disconnected(reason=reason))
        await self._release(session)

    def _require_free(self, session: DebugSession) -> None:
        if not _ID.fullmatch(session.id):
            raise InvalidArguments(
                f"Invalid session_id `{session.id}`.", instruction="Use letters, digits, `.`, `_` and `-`."
            )
        if _key(session) in self._sessions:
            raise ToolError(
                f"Session `{session.id}` exists already.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Use another session_id, or `session restart`.",
            )

    def _require_undebugged(self, pid: int | None, principal: str) -> None:
        """Refuse to attach to a program that is under a debugger already, whichever principal's."""
        found = None if pid is None else look_up(pid)
        for (owner, name), launched in self._launched.items():
            if found is not None and launched.child is not None and found.session == launched.child.pid:
                mine = f" in session `{name}`" if owner == principal else ""
                raise ToolError(
                    f"Process {pid} is already under a debugger{mine}.",
                    code=ErrorCode.STATE_CONFLICT,
                    instruction="Use that session." if mine else "Attach to a process of your own.",
                )

    def _enforce_limit(self, principal: str) -> None:
        mine = [session for session in self.of(principal) if session.parent is None]
        ended = [session for session in mine if session.status is Status.TERMINATED]
        dropped = ended[: max(0, len(mine) - MOST + 1)]
        for session in dropped:
            self._drop(session)
        if len(mine) - len(dropped) >= MOST:
            raise ToolError(
                f"The limit of {MOST} sessions is reached.",
                code=ErrorCode.STATE_CONFLICT,
                instruction="Stop one with `session stop`.",
            )


def _require_pid_or_port(spec: AttachSpec) -> None:
    if (spec.pid is None) == (spec.port is None):
        raise InvalidArguments(
            "Attaching requires either `pid` or `port`.",
            code=ErrorCode.VALIDATION_MISSING_PARAM,
            instruction="Give the process id, or the host and port where its debugger listens.",
        )


def _key(session: DebugSession) -> tuple[str, str]:
    return session.principal, session.id
