"""One PostgreSQL server for the tests of a process, and states that are closed after each test."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.bots.faults.desk import OPENED
from tests.bots.faults.postgres import postgres_server


@pytest.fixture(scope="session")
def postgres_url() -> Generator[str]:
    """A server of the tests' own."""
    with postgres_server() as url:
        yield url


@pytest.fixture(autouse=True)
def closed_states() -> Generator[None]:
    """Let go of every state that a test opened."""
    yield
    while OPENED:
        OPENED.pop().close()
