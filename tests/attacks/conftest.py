"""The attacker's table: every test here is one attempt to get around consent, a gate, a guard or a rule."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Attack = Callable[..., None]


@pytest.fixture
def attack(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> Attack:
    """Name the attempt; the summary prints it as one row, `held` if the test passes and `BROKEN` if it fails."""
    area = request.path.stem.removeprefix("test_")

    def name(*, door: str, attempt: str) -> None:
        record_property("attack", (area, door, attempt))

    return name
