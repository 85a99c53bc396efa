"""Logging of the command line: to stderr only, since stdout belongs to answers and to the protocol."""

from __future__ import annotations

import logging
import sys

from trysquare.cli.kept_logs import take_records
from trysquare.cli.log_lines import LineFormatter
from trysquare.settings.load import Loaded
from trysquare.wrappers.logged import TRACE

HANDLER = "trysquare"


def start_logging(loaded: Loaded) -> None:
    """Log to stderr at the level that is set, and say there what the configuration's reader had to choose."""
    logging.addLevelName(TRACE, "TRACE")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    for old in [known for known in root.handlers if known.name == HANDLER]:
        root.removeHandler(old)
    handler.name = HANDLER
    root.addHandler(handler)
    root.setLevel(loaded.settings.log_level)
    for record in take_records():
        if record.levelno >= root.level:
            handler.handle(record)
    for note in loaded.notes:
        logging.getLogger("trysquare.settings").warning("%s", note)
