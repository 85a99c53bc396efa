"""Children: what a program starts and its debugger hears of, such as processes and threads of their own."""

from __future__ import annotations

from trysquare.debug.debugger import Debugger
from trysquare.debug.session import Session


async def begin_child(session: Session, debugger: Debugger, parent: Session) -> None:
    """Let a child run, with the breakpoints of its parent."""
    session.debugger = debugger
    for breakpoint in parent.breakpoints:
        await session.add_breakpoint(breakpoint.spec)
    await session.rules.take_over(parent.rules)
    await debugger.start()
    session.has_started()
