"""Launching: what a session is to be started with, whatever the language."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeAlias

from trysquare.debug.debugger import Debugger
from trysquare.debug.session import Session
from trysquare.debug.targets import Target
from trysquare.processes.child import Child
from trysquare.processes.nursery import Nursery


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchSpec:
    """A program to start under a debugger."""

    target: Target
    root: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    source_paths: tuple[str, ...] = ()
    """Folders in which sources are looked for beside the root."""
    just_my_code: bool = False
    timeout: float = 30.0

    @property
    def title(self) -> str:
        return str(self.target)


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachSpec:
    """A program that runs already: a process of this machine, or one whose debugger listens somewhere."""

    root: Path
    pid: int | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    source_paths: tuple[str, ...] = ()
    just_my_code: bool = False
    timeout: float = 30.0

    @property
    def title(self) -> str:
        return f"process {self.pid}" if self.pid is not None else f"{self.host}:{self.port}"


SessionSpec: TypeAlias = LaunchSpec | AttachSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What an engine works with: where processes are started, and how a child's session is made."""

    nursery: Nursery
    open_child: Callable[[Session, str], Session | None]
    """Makes the session of a program that another one started; the text says which. None where there are too many."""
    keep: Callable[[Coroutine[None, None, None]], None]
    """Runs something to its end beside the session, whatever becomes of that."""
    shows_secrets: bool = False
    """Whether values whose names say that they are secret are shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Launched:
    """A program that waits under its debugger to be let go."""

    debugger: Debugger
    child: Child | None
    close: Callable[[], None] = lambda: None
    """Lets go of what the engine itself keeps open, such as a port."""


class Engine(Protocol):
    """The way to the debuggers of one language."""

    language: str

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        """Start a program and stop it before its first line, so that breakpoints can be set."""
        ...

    async def attach(self, spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
        """Take hold of a program that runs already, or refuse where this language's debugger cannot."""
        ...
