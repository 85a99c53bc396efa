"""Logging of the command line: to stderr only, since stdout belongs to answers and to the protocol."""

from __future__ import annotations

import logging
import sys

from trysquare.settings.load import Loaded
from trysquare.wrappers.logged import TRACE

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_logging(loaded: Loaded) -> None:
    """Log to stderr at the level that is set, and say there what the configuration's reader had to choose."""
    logging.addLevelName(TRACE, "TRACE")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    for old in [known for known in root.handlers if getattr(known, "trysquare", False)]:
        root.removeHandler(old)
    handler.trysquare = True  # type: ignore[attr-defined]
    root.addHandler(handler)
    root.setLevel(loaded.settings.log_level)
    for note in loaded.notes:
        logging.getLogger("trysquare.settings").warning("%s", note)
