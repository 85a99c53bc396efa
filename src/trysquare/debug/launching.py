"""Launching: what a session is to be started with, whatever the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

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
    just_my_code: bool = False
    timeout: float = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What an engine works with: where processes are started, and how a child's session is made."""

    nursery: Nursery
    open_child: Callable[[Session, str], Session]
    """Makes the session of a program that another one started; the text says which."""


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
