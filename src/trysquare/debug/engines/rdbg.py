"""The engine for Ruby: rdbg, from the gem that comes with Ruby."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.debugger import Event, Exited, Listener, Stopped
from trysquare.debug.engines.adapter import begun, found_program, hear_streams, start_child
from trysquare.debug.launching import Launched, LaunchSpec, Surroundings
from trysquare.debug.session import Session
from trysquare.processes.child import Child

NAMES = ("rdbg", "rdbg3.3", "rdbg3.2", "rdbg3.1")
INSTALL = "apt-get install ruby"
_OWN = re.compile(r"DEBUGGER: ")


class RdbgEngine:
    """Starts Ruby programs under rdbg, and attaches to them over a port of theirs."""

    language = "ruby"

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        rdbg = found_program(NAMES, hint=INSTALL)
        words = list(spec.target.words)
        if Path(words[0]).name.startswith("ruby"):
            words = words[1:]
        arguments = ["--open", "--host", "127.0.0.1", "--port", "0", "-c", "--", spec.target.python or "ruby", *words]
        child = start_child(rdbg, arguments, spec, around, RUBY_DEBUG_NO_COLOR="1", RUBY_DEBUG_LOG_LEVEL="WARN")
        heard = hear_streams(child, session, but=_OWN)
        debugger = DapDebugger(_quiet_entry(session.hear), adapter_id="rdbg")
        try:
            found = await heard.wait_for(r"\(127\.0\.0\.1:(\d+)\)", timeout=spec.timeout)
            await asyncio.get_running_loop().create_connection(lambda: debugger.client, "127.0.0.1", int(found[1]))
            await begun(debugger, "launch", {"localfs": True}, session, child, spec)
        except BaseException:
            await around.nursery.end(child, grace=0.2)
            raise
        session.watch(_end_of(child, session))
        return Launched(debugger=debugger, child=child)


def _quiet_entry(listener: Listener) -> Listener:
    """rdbg stops a program at its first line to be attached to; that is no stop that anybody asked for."""

    def hear(event: Event) -> None:
        is_entry = isinstance(event, Stopped) and event.reason in ("entry", "pause") and not event.hit
        if not is_entry and not isinstance(event, Exited):
            listener(event)

    return hear


async def _end_of(child: Child, session: Session) -> None:
    await child.exited.wait()
    status = child.exit_status()
    session.hear(Exited(signal=-status) if status is not None and status < 0 else Exited(code=status))
