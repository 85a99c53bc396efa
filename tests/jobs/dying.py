"""Dying: what a life of a job does in its steps, and where it kills itself."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from pathlib import Path


class Dying:
    """What a life does in its steps: it writes down every effect, and kills itself where it is told to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kill = json.loads(os.environ.get("KILL", "null"))

    def do(self, name: str, key: str = "") -> None:
        """Have an effect; one with a key happens once for each key."""
        self.at(name, "before")
        with (self._folder / "effects").open("a", encoding="utf-8") as file:
            file.write(f"ran {name}\n")
        if key:
            self._happen(name, key)
        self.at(name, "within")

    def at(self, name: str, point: str) -> None:
        """Die, if it is here."""
        if self._kill == [name, point]:
            os.kill(os.getpid(), signal.SIGKILL)

    def _happen(self, name: str, key: str) -> None:
        ledger = sqlite3.connect(self._folder / "ledger.db", isolation_level=None)
        ledger.execute("CREATE TABLE IF NOT EXISTS happened (key TEXT PRIMARY KEY, name TEXT)")
        ledger.execute("INSERT OR IGNORE INTO happened VALUES (?, ?)", (key, name))
        ledger.close()
