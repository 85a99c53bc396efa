"""One PostgreSQL server for the tests of a process."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from tests.bots.faults.postgres import postgres_server


@pytest.fixture(scope="session")
def postgres_url() -> Generator[str]:
    """A server of the tests' own."""
    with postgres_server() as url:
        yield url
