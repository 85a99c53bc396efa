"""What is logged before it is known how to: kept, and told then."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def kept_records() -> Generator[None]:
    """Keep what is logged within the block, until somebody takes it."""
    kept = _Kept()
    logging.getLogger().addHandler(kept)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(kept)


def take_records() -> list[logging.LogRecord]:
    """What was kept; from now on nothing is."""
    root = logging.getLogger()
    found = [handler for handler in root.handlers if isinstance(handler, _Kept)]
    for handler in found:
        root.removeHandler(handler)
    return [record for handler in found for record in handler.records]
