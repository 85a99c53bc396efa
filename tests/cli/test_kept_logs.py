"""What is logged before it is known how to."""

from __future__ import annotations

import logging

import pytest

from trysquare.cli.kept_logs import kept_records, take_records
from trysquare.cli.logs import start_logging
from trysquare.settings.load import Loaded
from trysquare.settings.model import Settings

logger = logging.getLogger("trysquare.early")


def test_it_is_kept_until_it_is_taken_once() -> None:
    with kept_records():
        logger.warning("too early")
        assert [record.getMessage() for record in take_records()] == ["too early"]
        logger.warning("no more")
        assert take_records() == []


def test_nothing_is_kept_outside() -> None:
    with kept_records():
        pass
    logger.warning("too late")
    assert take_records() == []


@pytest.mark.parametrize(("level", "told"), [("WARNING", True), ("ERROR", False)])
def test_it_is_told_at_the_level_that_is_set(level: str, told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, handlers = root.level, list(root.handlers)
    settings = Settings.model_validate({"project": ".", "log_level": level})
    try:
        with kept_records():
            logger.warning("too early")
            start_logging(Loaded(settings=settings, origins={}, file=None, notes=()))
        assert ("WARNING trysquare.early: too early" in capsys.readouterr().err) is told
    finally:
        root.setLevel(before)
        root.handlers = handlers
