"""Heartbeat: a thread that says every second that this process lives, whatever its event loop is busy with."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from trysquare.jobs.engine import Pulse
from trysquare.jobs.records import Records

logger = logging.getLogger("trysquare.jobs")


def process_name() -> str:
    """A name that no other process has, now or later, and that tells a person where to look."""
    return f"{socket.gethostname()[:40]}-{os.getpid()}-{secrets.token_hex(4)}"


def has_ended(process: str) -> bool:
    """Whether a process of this machine is no more. One of another machine is not known here."""
    host, _, rest = process.rpartition("-")[0].rpartition("-")
    if host != socket.gethostname()[:40] or not rest.isdigit():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


class Heartbeat:
    """Beats from `start` on until it is stopped; after each beat it may do something more."""

    def __init__(self, records: Records, process: str, pulse: Pulse, after: Callable[[], object] | None = None) -> None:
        self._records = records
        self._process = process
        self._pulse = pulse
        self._after = after
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trysquare-heartbeat", daemon=True)

    def start(self) -> None:
        """Beat once, then go on in a thread of its own."""
        self._records.beat(self._process, silence=self._pulse.silence)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more, and wait for the thread's end."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pulse.every):
            try:
                self._records.beat(self._process, silence=self._pulse.silence)
                if self._after is not None:
                    self._after()
            except SQLAlchemyError as error:
                # The database may come back. Until then others take our jobs for orphans, which fences us.
                logger.warning("The heartbeat of %s did not reach the database: %s", self._process, error)
